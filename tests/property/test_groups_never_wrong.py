"""Never lose a row, never revive one: tables of versions of keyed rows, pruned, and merged by key afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tamis.predicate.bind import bind
from tamis.predicate.nodes import And, Compare, In, Literal, Node, Not, Or, Ref
from tamis.sieve.domain import ColumnStats
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import LAYERS, sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.outcome import Outcome
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import parse_transform
from tests.making.harness import arrow, schema_of
from tests.making.hashes import ValueHash
from tests.making.oracle import evaluate
from tests.making.oracle_casts import CastError
from tests.making.strategies import ColumnFacts, File, Row, Types, described, predicates
from tests.property.test_buckets_never_wrong import by_bits

LONG = pa.int64()
P, J, K, V, W = (("p",), ("j",), ("k",), ("v",), ("w",))
TYPES: Types = {P: LONG, J: LONG, K: pa.string(), V: LONG, W: pa.string()}
"""The partition, a key of two columns, and two columns of values."""
SCHEMA = schema_of(TYPES)
KEYS = (J, K)
SPEC = PartitionSpec(0, (PartitionField("p", 1, parse_transform("identity")),))
TOTAL = 2
BY_BITS = ValueHash(by_bits)


@dataclass(frozen=True, eq=False)
class Version:
    """A row as it was written once; a removal has values too, the last that the row had, or any."""

    row: Row
    sequence: int
    removal: bool

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(self.row[path] for path in (P, *KEYS))


@dataclass(frozen=True, eq=False)
class Stored:
    """A file: its versions, and what its metadata says of them."""

    versions: tuple[Version, ...]
    facts: File
    group: tuple[object, int]
    alone: bool = False


def merged(versions: Iterable[Version]) -> list[Version]:
    """The newest version of each key, unless it is a removal."""
    newest: dict[tuple[object, ...], Version] = {}
    for version in versions:
        known = newest.get(version.key)
        if known is None or version.sequence > known.sequence:
            newest[version.key] = version
    return [version for version in newest.values() if not version.removal]


FEW, NUMBERS, TEXTS = st.integers(0, 1), st.integers(0, 3), st.sampled_from(["", "a", "b", "c"])


@st.composite
def tables(draw: DrawFn) -> list[Stored]:
    """Versions in the buckets that their keys hash to, and in random files of these, in an order of no group's."""
    # Few keys and few versions a file: one that is no other's older or newer one proves little, wide bounds less.
    key = st.tuples(st.sampled_from([0, 0, 1, None]), FEW, st.sampled_from("ab"))
    keys = draw(st.lists(key, min_size=1, max_size=3))
    groups: dict[tuple[object, int], dict[int, list[Version]]] = {}
    for sequence in draw(st.permutations(range(draw(st.integers(2, 8))))):
        row: Row = dict(zip((P, *KEYS), draw(st.sampled_from(keys)), strict=True))
        row |= {V: draw(NUMBERS | st.none()), W: draw(TEXTS | st.none())}
        version = Version(row, sequence, draw(st.integers(0, 4)) == 0)
        group = (row[P], bucket_of([row])[0])
        groups.setdefault(group, {}).setdefault(draw(st.integers(0, 2)), []).append(version)
    found = []
    tight = draw(st.booleans())
    for group, files in groups.items():
        for versions in files.values():
            rows = tuple(version.row for version in versions)
            facts = _tight(rows) if tight else draw(described(TYPES, rows))
            lonely = len(files) == 1 and draw(st.booleans())
            found.append(Stored(tuple(versions), facts, group, lonely))
    return list(draw(st.permutations(found)))


def _tight(rows: tuple[Row, ...]) -> File:
    """A file of these rows whose metadata says all that it can."""
    facts = {}
    for path in TYPES:
        known = [row[path] for row in rows if row[path] is not None]
        ends = (min(known), max(known)) if known else (None, None)  # type: ignore[type-var] # numbers, or texts
        facts[path] = ColumnFacts(*ends, value_count=len(rows), null_count=len(rows) - len(known))
    return File(rows, facts)


def bucket_of(rows: Sequence[Row]) -> list[int]:
    arrays = [arrow([row[path] for row in rows], TYPES[path]) for path in KEYS]
    return list(by_bits(pa.Table.from_arrays(arrays, ["0", "1"]), TOTAL).tolist())


def batch_of(files: Sequence[Stored], *, with_buckets: bool) -> FileBatch:
    stats = {}
    for place, (path, type_) in enumerate(TYPES.items(), 1):
        facts = [file.facts.facts[path] for file in files]
        bounds = (arrow([getattr(fact, side) for fact in facts], type_) for side in ("lower", "upper"))
        counts = (pa.array([getattr(fact, name) for fact in facts], LONG) for name in COUNTS)
        stats[place] = ColumnStats(*bounds, *counts)
    numbers = {group: place for place, group in enumerate(dict.fromkeys(file.group for file in files))}
    buckets = FileBuckets(
        pa.array([file.group[1] for file in files], pa.int32()),
        pa.array([TOTAL] * len(files), pa.int32()),
        tuple(SCHEMA.find(path) for path in KEYS),
        BY_BITS,
    )
    return FileBatch(
        path=pa.array([str(place) for place in range(len(files))]),
        size=pa.array([1] * len(files)),
        rows=pa.array([len(file.versions) for file in files], LONG),
        spec_id=0,
        partition=pa.StructArray.from_arrays([pa.array([file.group[0] for file in files], LONG)], ["p"]),
        stats=stats,
        buckets=(buckets,) if with_buckets else (),
        group=pa.array([None if file.alone else numbers[file.group] for file in files], pa.int32()),
        keys=frozenset(SCHEMA.find(path).id for path in (P, *KEYS)),
    )


COUNTS = ("null_count", "nan_count", "value_count")


def literals(path: tuple[str, ...]) -> st.SearchStrategy[Node]:
    """A condition that often leaves some files out."""
    ref, values = Ref(path), NUMBERS if TYPES[path] == LONG else TEXTS
    literal = values.map(lambda value: Literal(value, TYPES[path]))
    compared = st.builds(Compare, st.sampled_from(["=", "!=", "<", ">="]), st.just(ref), literal)
    return compared | st.lists(literal, min_size=1, max_size=2).map(lambda listed: In(ref, tuple(listed)))


LEAVES = st.sampled_from([P, J, K, V, V, W]).flatmap(literals)
OF_VALUES = literals(V) | st.builds(
    lambda kind, one, other: kind((one, other)), st.sampled_from([And, Or]), literals(V), LEAVES
)
CONDITIONS = OF_VALUES | st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.lists(part, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(part, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
        part.map(Not),
    ),
    max_leaves=5,
)


@dataclass(frozen=True, eq=False)
class Join:
    """Join keys of some columns, of the columns' own types."""

    paths: tuple[tuple[str, ...], ...]
    keys: list[tuple[object, ...]] = field(default_factory=list)

    def takes(self, row: Row) -> bool:
        wanted = tuple(row[path] for path in self.paths)
        return None not in wanted and wanted in self.keys

    def filter(self) -> RuntimeFilter:
        columns = zip(*self.keys, strict=True) if self.keys else ([] for _ in self.paths)
        arrays = {path[0]: arrow(list(column), TYPES[path]) for path, column in zip(self.paths, columns, strict=True)}
        return RuntimeFilter.of([path[0] for path in self.paths], arrays)


@st.composite
def joins(draw: DrawFn) -> Join:
    paths = tuple(draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3, unique=True)))
    key = st.tuples(*(NUMBERS if TYPES[path] == LONG else TEXTS for path in paths))
    return Join(paths, draw(st.lists(key, max_size=4)))


def truths(node: Node, files: Sequence[Stored]) -> dict[int, bool] | None:
    """Whether the condition is true of each version; None if Spark would stop the query."""
    try:
        return {id(each): evaluate(node, each.row, TYPES) is True for file in files for each in file.versions}
    except CastError:
        return None


def sifted(node: Node, files: Sequence[Stored], asked: Sequence[Join], *, with_buckets: bool, order: int) -> Outcome:
    filters = tuple(join.filter().bind(SCHEMA) for join in asked)
    sieve = Sieve(bind(node, SCHEMA, case_sensitive=True), (SPEC,), filters)
    layers = (LAYERS, LAYERS[::-1], LAYERS[2:] + LAYERS[:2])[order]
    plan = sift(sieve, [batch_of(files, with_buckets=with_buckets)], layers=layers).plan
    gone = sum(step.files_before - step.files_after for step in plan.stats.layers)
    assert gone + plan.stats.kept == len(files)
    assert sum(reason.files for reason in plan.stats.kept_because) == plan.stats.kept
    assert sum(part.files for part in plan.stats.runtime_filters) <= gone
    return plan.outcomes[0]


@given(st.data(), tables(), st.just([]) | st.lists(joins(), max_size=1), st.booleans(), st.integers(0, 2))
def test_pruned_and_merged_rows_are_those_of_the_whole_table(
    data: st.DataObject, files: list[Stored], asked: list[Join], with_buckets: bool, order: int
) -> None:
    """The reader merges what is kept, skips the filter where ALL was said, and joins: no row more, no row less."""
    rows = tuple(version.row for file in files for version in file.versions)
    node = data.draw(st.one_of(OF_VALUES, CONDITIONS, predicates(TYPES, rows)))
    true = truths(node, files)
    if true is None:
        return
    outcome = sifted(node, files, asked, with_buckets=with_buckets, order=order)

    def wanted(version: Version) -> bool:
        return true[id(version)] and all(join.takes(version.row) for join in asked)

    expected = [
        id(version) for version in merged(each for file in files for each in file.versions) if wanted(version)
    ]
    kept = [file for file, keep in zip(files, outcome.kept, strict=True) if keep]
    unfiltered = {
        id(each) for file, holds in zip(files, outcome.holds, strict=True) if holds for each in file.versions
    }
    read = [
        id(version)
        for version in merged(each for file in kept for each in file.versions)
        if (id(version) in unfiltered or true[id(version)]) and all(join.takes(version.row) for join in asked)
    ]
    assert sorted(read) == sorted(expected)
    event(f"dropped: {len(kept) < len(files)}, held: {outcome.together is not None and bool(outcome.together.any())}")


@given(st.data(), tables(), st.integers(0, 2))
def test_files_that_wholly_match_can_be_removed_with_their_group(
    data: st.DataObject, files: list[Stored], order: int
) -> None:
    """ALL lets a DELETE remove files unread: what then lives of the group is just what did not match."""
    node = data.draw(CONDITIONS)
    true = truths(node, files)
    assert true is not None
    outcome = sifted(node, files, (), with_buckets=True, order=order)
    for group in dict.fromkeys(file.group for file in files):
        mine = [place for place, file in enumerate(files) if file.group == group]
        kept = [place for place in mine if outcome.kept[place]]
        assert len({bool(outcome.certain[place]) for place in kept}) <= 1, "a group has one verdict"
        if not kept or not outcome.certain[kept[0]]:
            continue
        event("a group that wholly matches")
        left = merged(each for place in mine if place not in kept for each in files[place].versions)
        every = merged(each for place in mine for each in files[place].versions)
        assert {id(each) for each in left} == {id(each) for each in every if not true[id(each)]}


# -- must prune -----------------------------------------------------------------------------------------------


@given(tables(), NUMBERS, NUMBERS)
def test_exactly_what_keys_and_groups_allow_is_dropped(files: list[Stored], key: int, value: int) -> None:
    """`j = ? AND v = ?` with tight bounds: a file without the key goes alone, a group without the value whole."""
    files = [replace(file, facts=_tight(file.facts.rows)) for file in files]
    node = And((Compare("=", Ref(J), Literal(key, LONG)), Compare("=", Ref(V), Literal(value, LONG))))
    outcome = sifted(node, files, (), with_buckets=False, order=0)
    for place, file in enumerate(files):
        group = [file] if file.alone else [each for each in files if each.group == file.group]
        may = any(_within(each, J, key) and _within(each, V, value) for each in group)
        assert outcome.kept[place] == (_within(file, J, key) and may)


def _within(file: Stored, path: tuple[str, ...], value: int) -> bool:
    known = [version.row[path] for version in file.versions if version.row[path] is not None]
    return bool(known) and min(known) <= value <= max(known)  # type: ignore[operator,type-var] # numbers
