"""The options of a rewrite on the command line: those of tamis.rewrite.options, which is not loaded for --help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Final

import typer

__all__ = ["REWRITE_OPTIONS", "with_rewrite_options"]

PANEL: Final = "Options of the rewrite, as Iceberg's rewrite_data_files has them"
REWRITE_OPTIONS: Final = {
    "target-file-size-bytes": (
        "SIZE",
        "Bytes of a new file, such as 512MB (default: what the table aims at).",
    ),
    "min-file-size-bytes": ("SIZE", "Rewrite smaller files (default: 0.75 of the target)."),
    "max-file-size-bytes": ("SIZE", "Rewrite larger files (default: 1.8 of the target)."),
    "min-input-files": ("N", "So many files are a group worth rewriting (default: 5)."),
    "delete-file-threshold": ("N", "Rewrite files with so many delete files (default: off)."),
    "delete-ratio-threshold": ("PART", "Rewrite files with such a part of their rows deleted (default: 0.3)."),
    "rewrite-all": (None, "Rewrite every file that the condition leaves."),
    "max-file-group-size-bytes": ("SIZE", "Most bytes of a group (default: 100GB)."),
    "max-file-group-input-files": ("N", "Most files of a group (default: no limit)."),
    "max-concurrent-file-group-rewrites": ("N", "Groups to rewrite at a time (default: 5)."),
    "max-files-to-rewrite": ("N", "Most files of one run (default: no limit)."),
    "partial-progress.enabled": (None, "Commit some groups while others are rewritten."),
    "partial-progress.max-commits": ("N", "Commits of such a run (default: 10)."),
    "partial-progress.max-failed-commits": ("N", "How many of them may fail (default: all)."),
    "rewrite-job-order": ("ORDER", "none, bytes-asc, bytes-desc, files-asc or files-desc (default: none)."),
    "output-spec-id": ("ID", "The partition spec of new files (default: the current one)."),
    "only-old-specs": (None, "Rewrite the files of all other specs, whatever their size, and no others."),
    "remove-dangling-deletes": (None, "Remove deletes that apply to nothing."),
    "use-starting-sequence-number": ("BOOL", "New files are as old as the snapshot planned with (default: true)."),
    "strategy": ("NAME", "binpack, sort or zorder (default: binpack)."),
    "compression-factor": ("FACTOR", "With sort or zorder: new bytes for one old byte (default: 1.0)."),
    "shuffle-partitions-per-file": ("N", "With sort or zorder: tasks that make a file (default: 1)."),
    "max-output-size": ("N", "With zorder: bytes of a row that are interleaved."),
    "var-length-contribution": ("N", "With zorder: bytes of a text that are interleaved (default: 8)."),
}
"""By name: what its value is called, None for yes or no, and its help. A test holds it to the options there are."""


def with_rewrite_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all of them as its own: they come as keywords, None where they are not given."""
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    more = [_parameter(name, *about) for name, about in REWRITE_OPTIONS.items()]
    command.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined] # asked for by typer
    return command


def _parameter(name: str, metavar: str | None, text: str) -> inspect.Parameter:
    option = typer.Option(f"--{name}", metavar=metavar, help=text, show_default=False, rich_help_panel=PANEL)
    kind = Annotated[bool | None, option] if metavar is None else Annotated[str | None, option]
    keyword = name.replace("-", "_").replace(".", "_")
    return inspect.Parameter(keyword, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
