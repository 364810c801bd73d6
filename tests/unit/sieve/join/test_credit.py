"""What each runtime filter is credited with: its keys, its files, and the facts that removed them."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import LAYERS, sift
from tamis.sieve.join.runtime import Collected, RuntimeFilter
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.plan import ScanPlan, Unread
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import apply, parse_transform

INT = pa.int32()
SCHEMA = Schema.of(region=pa.string(), id=INT, amount=INT)
SPEC = PartitionSpec(
    1,
    (
        PartitionField("region", 1, parse_transform("identity")),
        PartitionField("id_bucket", 2, parse_transform("bucket[16]")),
    ),
)
BUCKET_OF_FIVE = apply(parse_transform("bucket[16]"), pa.array([5], INT))[0].as_py()


def files(spec_id: int | None = 1, amounts: tuple[int, int, int, int] = (9, 9, 9, 9)) -> FileBatch:
    """Four files of 1, 10, 100 and 1000 bytes: of another region, of another bucket, and two of region eu."""
    other = (BUCKET_OF_FIVE + 1) % 16
    partition = pa.StructArray.from_arrays(
        [
            pa.array(["us", "eu", "eu", "eu"]),
            pa.array([BUCKET_OF_FIVE, other, BUCKET_OF_FIVE, BUCKET_OF_FIVE], INT),
        ],
        ["region", "id_bucket"],
    )
    return FileBatch(
        pa.array(["a", "b", "c", "d"]),
        pa.array([1, 10, 100, 1000]),
        pa.array([1, 1, 1, 1]),
        spec_id,
        partition if spec_id is not None else None,
        stats={3: ColumnStats(pa.array(amounts, INT), pa.array(amounts, INT), pa.array([0] * 4))},
    )


def plan(*filters: RuntimeFilter, sql: str = "true", unread: tuple[Unread, ...] = (), **more: object) -> ScanPlan:
    sieve = Sieve(bind(parse(sql), SCHEMA), (SPEC,), tuple(one.bind(SCHEMA) for one in filters))
    return sift(sieve, [files(**more)], unread=unread).plan  # type: ignore[arg-type] # as its arguments are


def test_files_are_credited_to_the_cheapest_facts() -> None:
    """A user who asks why a filter was worth its job wants to know whether partitions or statistics made it so."""
    keys = pa.table({"region": ["eu"], "id": pa.array([5], INT), "amount": pa.array([7], INT)})
    (found,) = plan(RuntimeFilter.of(keys.column_names, keys), amounts=(7, 7, 8, 7)).stats.runtime_filters
    assert found.dropped == {"manifest": 0, "partition": 1, "bucket": 1, "stats": 1}
    assert found.dropped_bytes == {"manifest": 0, "partition": 1, "bucket": 10, "stats": 100}
    assert (found.files, found.bytes, found.keys, found.exact, found.idle) == (3, 111, 1, True, None)
    assert found.columns == ("region", "id", "amount")


def test_what_the_predicate_drops_is_not_credited_to_a_filter() -> None:
    (found,) = plan(RuntimeFilter.of("region", ["eu"]), sql="region = 'eu'").stats.runtime_filters
    assert (found.files, found.bytes) == (0, 0)


def test_each_of_several_filters_has_its_own_count() -> None:
    first, second = plan(
        RuntimeFilter.of("amount", [7]), RuntimeFilter.of("region", ["eu"]), amounts=(8, 7, 8, 7)
    ).stats.runtime_filters
    assert (first.dropped["stats"], second.dropped["partition"]) == (
        1,
        1,
    )  # "a" goes by its partition, the cheaper fact
    assert first.files + second.files == 2


def test_manifest_that_a_filter_pruned_counts_for_it() -> None:
    unread = (Unread(1, 40, 0, 0), Unread(1, 2))
    (found,) = plan(RuntimeFilter.of("region", ["eu"]), unread=unread).stats.runtime_filters
    assert found.dropped["manifest"] == 40
    assert found.files == 41


def test_collecting_is_told() -> None:
    keys = replace(RuntimeFilter.of_range("id", 1, 9), collected=Collected(1026, exact=False, seconds=0.5))
    (found,) = plan(keys).stats.runtime_filters
    assert (found.keys, found.exact, found.collect_seconds) == (1026, False, 0.5)


def test_given_keys_took_no_time_and_ranges_have_no_count() -> None:
    counted, ranged = plan(
        RuntimeFilter.of("id", [5, 5, 6]), RuntimeFilter.of_range("id", 1, 9)
    ).stats.runtime_filters
    assert (counted.keys, counted.collect_seconds) == (2, None)
    assert (ranged.keys, ranged.exact) == (None, True)


def test_filter_that_can_never_prune_says_why() -> None:
    (found,) = plan(RuntimeFilter.of("amount", [5.5])).stats.runtime_filters
    assert found.idle is None  # 5.5 equals no int at all: everything goes
    (found,) = plan(RuntimeFilter.of_range("id", None, None, null_safe=True)).stats.runtime_filters
    assert found.idle == "any value, and NULL, may be a join key"


def test_filter_on_a_column_of_which_nothing_is_known_says_so() -> None:
    (found,) = plan(RuntimeFilter.of("id", [5]), spec_id=None).stats.runtime_filters
    assert found.idle == "no statistics for id in these files"


def test_filter_that_met_no_file_is_not_idle() -> None:
    """Nobody can tell: the predicate left nothing to judge."""
    (found,) = plan(RuntimeFilter.of("id", [5]), sql="1 = 0").stats.runtime_filters
    assert found.idle is None


def test_rows_that_satisfy_the_predicate_are_known_beside_a_filter() -> None:
    """A reader needs no row filter there, though a join's keys leave nothing certain."""
    found = plan(RuntimeFilter.of("id", [5]), sql="region = 'eu'")
    (outcome,) = found.outcomes
    assert outcome.holds.tolist() == [False, False, True, True]
    assert not outcome.certain.any()


@pytest.mark.parametrize("order", [LAYERS, LAYERS[::-1], (LAYERS[3], *LAYERS[:3])])
def test_order_of_layers_changes_no_count_in_all(order: tuple[object, ...]) -> None:
    """Whoever comes first is credited, but a file that only a filter can drop stays the filter's."""
    keys = pa.table({"region": ["eu"], "id": pa.array([5], INT)})
    bound = RuntimeFilter.of(keys.column_names, keys).bind(SCHEMA)
    found = sift(Sieve(bind(parse("true"), SCHEMA), (SPEC,), (bound,)), [files()], layers=order).plan  # type: ignore[arg-type] # a tuple of layers
    assert found.stats.runtime_filters[0].files == 2
    assert found.files["path"].to_pylist() == ["c", "d"]
