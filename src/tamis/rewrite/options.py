"""The options of a rewrite: those of Iceberg's own action, by its names and with its defaults.

Law: an option that is not known, not this format's, given twice or out of range is an error; all such faults are told
at once. Dashes, dots and underscores are the same in a name, so that each can be a keyword of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

from tamis.errors import OptionError
from tamis.predicate.names import nearest
from tamis.rewrite import values
from tamis.rewrite.terms import RewriteTerms

__all__ = ["JOB_ORDERS", "OPTIONS", "STRATEGIES", "Option", "RewriteOptions", "parse_options"]

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
JOB_ORDERS: Final = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")
STRATEGIES: Final = ("binpack", "sort", "zorder")
MIN_RATIO: Final = 0.75
MAX_RATIO: Final = 1.8
WRITE_SHARE: Final = 0.5
"""How far between target and maximum a writer goes before it begins another file: at the target, most groups would
end in a tiny file."""


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """How files are chosen, grouped and written."""

    target_file_size_bytes: int
    min_file_size_bytes: int
    max_file_size_bytes: int
    min_input_files: int = 5
    delete_file_threshold: int = INT_MAX
    delete_ratio_threshold: float = 0.3
    rewrite_all: bool = False
    max_file_group_size_bytes: int = 100 << 30
    max_file_group_input_files: int = LONG_MAX
    max_concurrent_file_group_rewrites: int = 5
    max_files_to_rewrite: int | None = None
    partial_progress_enabled: bool = False
    partial_progress_max_commits: int = 10
    partial_progress_max_failed_commits: int = 10
    rewrite_job_order: str = "none"
    output_spec_id: int | None = None
    only_old_specs: bool = False
    remove_dangling_deletes: bool = False
    use_starting_sequence_number: bool = True
    strategy: str = "binpack"
    compression_factor: float = 1.0
    shuffle_partitions_per_file: int = 1
    max_output_size: int = INT_MAX
    var_length_contribution: int = 8

    @property
    def takes_all(self) -> bool:
        """Whether neither files nor groups are screened by size and deletes."""
        return self.rewrite_all or self.only_old_specs

    @property
    def write_max_file_size(self) -> int:
        """Bytes at which a writer begins another file."""
        return int(
            self.target_file_size_bytes + (self.max_file_size_bytes - self.target_file_size_bytes) * WRITE_SHARE
        )

    def to_dict(self) -> dict[str, Any]:
        """By the names of Iceberg's action."""
        return {option.name: getattr(self, option.field) for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, how its value is read, and what it is for."""

    name: str
    read: Callable[[object], Any]
    text: str
    least: int | None = None
    """The least value; None if the rule is another."""
    strategies: tuple[str, ...] = STRATEGIES

    @property
    def field(self) -> str:
        """The keyword of Python."""
        return folded(self.name).replace("-", "_")


OPTIONS: Final = (
    Option("target-file-size-bytes", values.size, "bytes of a new file; by default what the table aims at", 1),
    Option("min-file-size-bytes", values.size, "a smaller file is rewritten; by default 0.75 of the target", 0),
    Option("max-file-size-bytes", values.size, "a larger file is rewritten; by default 1.8 of the target", 1),
    Option("min-input-files", values.number, "so many files are a group worth rewriting; by default 5", 1),
    Option(
        "delete-file-threshold", values.number, "a file with so many delete files is rewritten; off by default", 0
    ),
    Option("delete-ratio-threshold", values.ratio, "a file with such a part of deleted rows is; by default 0.3"),
    Option("rewrite-all", values.flag, "rewrite every file that the condition leaves"),
    Option("max-file-group-size-bytes", values.size, "most bytes of a group; by default 100 GiB", 1),
    Option("max-file-group-input-files", values.number, "most files of a group; no limit by default", 1),
    Option("max-concurrent-file-group-rewrites", values.number, "groups rewritten at a time; by default 5", 1),
    Option("max-files-to-rewrite", values.number, "most files of a run; no limit by default", 1),
    Option("partial-progress.enabled", values.flag, "commit some groups while others are rewritten"),
    Option("partial-progress.max-commits", values.number, "commits of such a run; by default 10", 1),
    Option("partial-progress.max-failed-commits", values.number, "of which may fail; by default all of them", 0),
    Option("rewrite-job-order", partial(values.choice, choices=JOB_ORDERS), "which groups come first"),
    Option("output-spec-id", values.number, "the partition spec of new files; by default the current one", 0),
    Option("only-old-specs", values.flag, "rewrite the files of all other specs, whatever their size, and no others"),
    Option("remove-dangling-deletes", values.flag, "remove deletes that apply to nothing, in a commit of their own"),
    Option("use-starting-sequence-number", values.flag, "new files are as old as the snapshot that was planned with"),
    Option("strategy", partial(values.choice, choices=STRATEGIES), "how rows are arranged; by default binpack"),
    Option(
        "compression-factor", values.ratio, "new bytes for one old byte; by default 1.0", strategies=STRATEGIES[1:]
    ),
    Option("shuffle-partitions-per-file", values.number, "tasks that make a file; by default 1", 1, STRATEGIES[1:]),
    Option("max-output-size", values.number, "bytes of a row that are interleaved", 1, STRATEGIES[2:]),
    Option("var-length-contribution", values.number, "bytes of a text that are interleaved", 1, STRATEGIES[2:]),
)
"""All options, in the order in which they are shown."""


def folded(name: str) -> str:
    """A name with dashes alone: what tells options apart.

    >>> folded("partial_progress_enabled") == folded("partial-progress.enabled")
    True
    """
    return name.strip().replace("_", "-").replace(".", "-")


_BY_NAME: Final = {folded(option.name): option for option in OPTIONS}


def parse_options(
    given: Mapping[str, object], terms: RewriteTerms, more: Mapping[str, object] | None = None
) -> RewriteOptions:
    """The options with their defaults; OptionError names every fault. A value of None is as if not given.

    more are others, given apart from these: what is in both of them is given twice, and neither prevails.
    """
    faults = _Faults({})
    read = _read([*given.items(), *(more or {}).items()], terms, faults)
    target = read.setdefault("target_file_size_bytes", terms.target_file_size)
    read.setdefault("min_file_size_bytes", int(target * MIN_RATIO))
    read.setdefault("max_file_size_bytes", min(int(target * MAX_RATIO), LONG_MAX))
    read.setdefault("output_spec_id", terms.current_spec)
    commits = read.setdefault("partial_progress_max_commits", 10)
    read.setdefault("partial_progress_max_failed_commits", commits)
    options = RewriteOptions(**read)
    _check_together(options, terms, faults)
    faults.raise_any(terms)
    return options


@dataclass(frozen=True, slots=True)
class _Faults:
    """What is wrong, by the option as it was written: the first fault of each."""

    found: dict[str, tuple[str, tuple[str, ...]]]

    def add(self, name: str, reason: str, near: tuple[str, ...] = ()) -> None:
        self.found.setdefault(name, (reason, near))

    def raise_any(self, terms: RewriteTerms) -> None:
        if not self.found:
            return
        told = [f"{name}: {reason}" for name, (reason, _) in self.found.items()]
        listed = f" {told[0]}." if len(told) == 1 else "".join(f"\n  {one}." for one in told)
        raise OptionError(
            f"cannot plan a rewrite of {'an' if terms.format[0] in 'AEIOU' else 'a'} {terms.format} table:{listed}",
            options=tuple(self.found),
            reasons=tuple(reason for reason, _ in self.found.values()),
            nearest=tuple(dict.fromkeys(name for _, near in self.found.values() for name in near)),
        )


def _read(given: Iterable[tuple[object, object]], terms: RewriteTerms, faults: _Faults) -> dict[str, Any]:
    """The values of the options that are given, each checked by itself."""
    words = {folded(word): _BY_NAME[folded(name)] for word, name in terms.words.items()}
    refused = {folded(name): why for name, why in terms.refused.items()}
    read: dict[str, Any] = {}
    written: dict[str, str] = {}
    for name, value in given:
        if value is None:
            continue
        if not isinstance(name, str):
            faults.add(_shown(name), "an option's name is a text")
            continue
        key = folded(name)
        if key in refused:
            faults.add(name, refused[key])
            continue
        option = _BY_NAME.get(key) or words.get(key)
        if option is None:
            known = {name: name for name in (*(one.name for one in OPTIONS), *terms.words)}
            near = nearest(key, known)
            hint = f"; the nearest {'name is' if len(near) == 1 else 'names are'} {', '.join(near)}" if near else ""
            faults.add(name, f"there is no such option{hint}", near)
            continue
        if option.field in written:
            other = written[option.field]
            faults.add(
                name, "it is given twice" if other == name else f"it is given as {other} too: give one of them"
            )
            continue
        written[option.field] = name
        try:
            read[option.field] = _in_range(option, option.read(value))
        except ValueError as error:
            faults.add(name, f"{_shown(value)} will not do: {error}")
    return read


def _in_range(option: Option, value: Any) -> Any:  # noqa: ANN401 - of the option's own type
    if option.least is not None and value < option.least:
        raise ValueError(f"it is {option.least} or more")
    if isinstance(value, int) and value > LONG_MAX:
        raise ValueError(f"it is {LONG_MAX} at most")
    return value


def _check_together(options: RewriteOptions, terms: RewriteTerms, faults: _Faults) -> None:
    """Rules over several options, and over the table's specs."""
    low, target, high = (
        options.min_file_size_bytes,
        options.target_file_size_bytes,
        options.max_file_size_bytes,
    )
    if low >= target:
        faults.add("min-file-size-bytes", f"{low} is not less than target-file-size-bytes, which is {target}")
    if high <= target:
        faults.add("max-file-size-bytes", f"{high} is not more than target-file-size-bytes, which is {target}")
    if not 0 < options.delete_ratio_threshold <= 1:
        faults.add("delete-ratio-threshold", f"{options.delete_ratio_threshold} is not above 0 and at most 1")
    if options.compression_factor <= 0:
        faults.add("compression-factor", f"{options.compression_factor} is not above 0")
    if options.output_spec_id not in terms.spec_ids:
        known = ", ".join(str(id_) for id_ in terms.spec_ids if id_ is not None)
        faults.add("output-spec-id", f"the table has no partition spec {options.output_spec_id}; it has {known}")
    if options.rewrite_all and options.only_old_specs:
        faults.add("only-old-specs", "rewrite-all takes the files of every spec: give one of them")
    for option in OPTIONS:
        changed = getattr(options, option.field) != _DEFAULTS.get(option.field)
        if option.strategies != STRATEGIES and changed and options.strategy not in option.strategies:
            faults.add(option.name, f"it needs strategy={' or strategy='.join(option.strategies)}")


_DEFAULTS: Final = {one.name: one.default for one in fields(RewriteOptions)}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= values.LONGEST else f"{text[: values.LONGEST]}…"
