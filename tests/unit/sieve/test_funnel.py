"""The layers in order: which of them drops a file, what is kept, and what the last layer knows."""

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import UnevaluableError, UnknownSpecError
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats
from tamis.sieve.file_buckets import FileBuckets
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import LAYERS, sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.partitions import PartitionField, PartitionSpec, Undecoded
from tamis.sieve.plan import ScanPlan, Unread
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import apply, parse_transform
from tests.making.hashes import ValueHash

INT = pa.int32()
SCHEMA = Schema.of(region=pa.string(), id=INT, amount=INT)
SPEC = PartitionSpec(
    1,
    (
        PartitionField("region", 1, parse_transform("identity")),
        PartitionField("id_bucket", 2, parse_transform("bucket[16]")),
    ),
)
PLAIN = PartitionSpec(0)
STRANGE = PartitionSpec(2, (PartitionField("z", 1, parse_transform("zorder")),))
SPECS = (PLAIN, SPEC, STRANGE)
BUCKET_OF_FIVE = apply(parse_transform("bucket[16]"), pa.array([5], INT))[0].as_py()
ZERO = pa.array([0])


def stats(low: int | None, high: int | None, nulls: int | None = 0) -> ColumnStats:
    return ColumnStats(pa.array([low], INT), pa.array([high], INT), pa.array([nulls], pa.int64()))


def file(name: str, spec_id: int | None = 0, **more: object) -> FileBatch:
    """A batch of one file of 100 bytes and 10 rows."""
    given: dict[str, object] = {"size": pa.array([100]), "rows": pa.array([10]), **more}
    return FileBatch(path=pa.array([name]), spec_id=spec_id, **given)  # type: ignore[arg-type] # as the fields are


def in_partition(region: str | None, bucket: int) -> pa.StructArray:
    return pa.StructArray.from_arrays(
        [pa.array([region], pa.string()), pa.array([bucket], INT)], ["region", "id_bucket"]
    )


def plan(sql: str, *batches: FileBatch, **more: object) -> ScanPlan:
    return sift(Sieve(bind(parse(sql), SCHEMA), SPECS, **more), batches).plan  # type: ignore[arg-type] # as the fields are


def outcome(found: ScanPlan) -> list[tuple[str, str | None]]:
    return [(row["verdict"], row["layer"]) for row in found.verdicts.to_pylist()]


def test_layers_are_tried_from_the_cheapest() -> None:
    assert [layer.name for layer in LAYERS] == ["partition", "bucket", "stats", "runtime"]


def test_each_layer_is_credited_with_what_it_drops() -> None:
    keys = RuntimeFilter.of("amount", [7]).bind(SCHEMA)
    found = plan(
        "region = 'eu' AND id = 5 AND amount > 5",
        file("p", 1, partition=in_partition("us", BUCKET_OF_FIVE)),
        file("b", 1, partition=in_partition("eu", (BUCKET_OF_FIVE + 1) % 16)),
        file("s", 1, partition=in_partition("eu", BUCKET_OF_FIVE), stats={3: stats(0, 5)}),
        file("r", 1, partition=in_partition("eu", BUCKET_OF_FIVE), stats={3: stats(8, 9)}),
        file("k", 1, partition=in_partition("eu", BUCKET_OF_FIVE), stats={3: stats(6, 9)}),
        runtime_filters=(keys,),
    )
    assert outcome(found) == [
        ("none", "partition"),
        ("none", "bucket"),
        ("none", "stats"),
        ("none", "runtime"),
        ("some", None),
    ]


def test_partition_and_statistics_decide_an_or_together() -> None:
    """Neither layer alone can: the Java Delta kernel prunes nothing here."""
    sql = "(region = 'eu' AND amount > 100) OR (region = 'us' AND amount < 5)"
    found = plan(
        sql,
        file("a", 1, partition=in_partition("eu", 0), stats={3: stats(0, 50)}),
        file("b", 1, partition=in_partition("us", 0), stats={3: stats(0, 50)}),
        file("c", 1, partition=in_partition("us", 0), stats={3: stats(0, 4)}),
    )
    assert outcome(found) == [("none", "stats"), ("some", None), ("all", None)]


def test_file_without_rows_is_dropped_and_one_of_unknown_size_is_not() -> None:
    rows = [pa.array([0]), pa.array([None], pa.int64()), pa.array([-1])]
    found = plan("amount > 5", *(file(str(place), rows=count) for place, count in enumerate(rows)))
    assert outcome(found) == [("none", "stats"), ("some", None), ("some", None)]


def test_predicate_without_columns_keeps_all_or_nothing() -> None:
    assert outcome(plan("true", file("a"), file("b", 1, partition=in_partition("eu", 0)))) == [("all", None)] * 2
    assert {verdict for verdict, _ in outcome(plan("1 = 0", file("a"), file("b", None)))} == {"none"}


def test_format_without_specs_is_judged_by_statistics() -> None:
    found = plan(
        "amount > 5",
        file("a", None, stats={3: stats(0, 5)}),
        file("b", None, stats={3: stats(6, 9)}),
        file("c", None),
    )
    assert outcome(found) == [("none", "stats"), ("all", None), ("some", None)]


def test_empty_table_and_empty_batch_make_a_plan() -> None:
    empty = FileBatch(
        pa.array([], pa.string()),
        pa.array([], pa.int64()),
        pa.array([], pa.int64()),
        0,
        stats={3: ColumnStats(pa.array([], INT), pa.array([], INT), pa.array([], pa.int64()))},
    )
    for batches in ([], [empty], [empty, empty]):
        found = plan("amount > 5", *batches)
        assert found.files.num_rows == found.verdicts.num_rows == found.stats.files == 0
        assert "0 files" in found.explain()


def test_every_file_dropped_early_leaves_nothing_for_later_layers() -> None:
    """Statistics of decimals, strings and uuids are still read, of no files."""
    schema = Schema.of(region=pa.string(), d=pa.decimal128(20, 2), u=pa.uuid())
    types = {2: pa.decimal128(20, 2), 3: pa.uuid()}
    given = {column: ColumnStats(pa.nulls(1, type_), pa.nulls(1, type_), ZERO) for column, type_ in types.items()}
    spec = PartitionSpec(0, (PartitionField("r", 1, parse_transform("identity")),))
    one = file("a", 0, partition=pa.StructArray.from_arrays([pa.array(["us"])], ["r"]), stats=given)
    bound = bind(parse("region = 'eu' AND d > 5 AND u IS NOT NULL"), schema)
    assert outcome(sift(Sieve(bound, (spec,)), [one]).plan) == [("none", "partition")]


def test_statistics_that_do_not_fit_are_ignored_and_noted() -> None:
    bad = ColumnStats(pa.array([1 << 40]), pa.array([1 << 41]))
    found = plan("amount > 5 AND id = 1", file("a", stats={3: bad, 2: stats(5, 9)}), file("b", stats={3: bad}))
    assert outcome(found) == [("none", "stats"), ("some", None)]
    (note,) = found.stats.notes
    assert "statistics ignored" in note
    assert "amount" in note


def test_strict_refuses_statistics_that_do_not_fit() -> None:
    bad = ColumnStats(pa.array([1 << 40]), pa.array([1 << 41]))
    with pytest.raises(UnevaluableError, match="amount") as caught:
        plan("amount > 5", file("a", stats={3: bad}), strict=True)
    assert "do not fit" in caught.value.reason


def test_unknown_spec_is_an_error_even_if_everything_else_would_drop_the_file() -> None:
    with pytest.raises(UnknownSpecError) as caught:
        plan("1 = 0", file("a", 7))
    assert caught.value.spec_id == 7


def test_fail_open_files_are_those_that_are_still_there_in_the_end() -> None:
    """Seed: candidates, not raw entries: what statistics drop afterwards is not counted."""
    z = pa.StructArray.from_arrays([pa.array([1], INT)], ["z"])
    found = plan(
        "region = 'eu' AND amount > 5",
        file("a", 2, partition=z),
        file("b", 2, partition=z, stats={3: stats(0, 1)}),
        file("c", 2, partition=z, stats={3: stats(6, 9)}),
        file("d", 1, partition=in_partition("eu", 0)),
    )
    counted = found.stats.filter_stats
    assert (counted.unevaluable_specs, counted.eval_errors) == (1, 0)
    assert (counted.fail_open_partitions, counted.fail_open_files) == (1, 2)


def test_undecoded_partition_is_kept_and_counted() -> None:
    found = plan(
        "region = 'eu'",
        file("a", 1, partition=in_partition(None, 0), undecoded=(Undecoded(0, np.array([True]), "not UTF-8"),)),
        file("b", 1, partition=in_partition("us", 0)),
    )
    assert outcome(found) == [("some", None), ("none", "partition")]
    assert (found.stats.filter_stats.eval_errors, found.stats.filter_stats.fail_open_files) == (1, 1)
    assert any("not UTF-8" in note for note in found.stats.notes)


def test_undecoded_partition_is_kept_though_a_null_one_went_before() -> None:
    found = plan(
        "region = 'eu'",
        file("a", 1, partition=in_partition(None, 0)),
        file("b", 1, partition=in_partition(None, 0), undecoded=(Undecoded(0, np.array([True]), "not UTF-8"),)),
    )
    assert outcome(found) == [("none", "partition"), ("some", None)]


def by_remainder(keys: pa.Table, total: int) -> np.ndarray:
    return sum(np.asarray(column.fill_null(0)) for column in keys.columns) % total  # type: ignore[no-any-return]


def in_bucket(*buckets: int | None, of: int = 4, key: tuple[str, ...] = ("id",)) -> FileBuckets:
    columns = tuple(SCHEMA.find((name,)) for name in key)
    return FileBuckets(pa.array(buckets, INT), pa.array([of] * len(buckets), INT), columns, ValueHash(by_remainder))


def test_files_of_other_buckets_are_dropped_with_the_bucket_and_the_key_named() -> None:
    bound = bind(parse("id = 5"), SCHEMA)
    batches = [file(str(place), None, buckets=(in_bucket(place),)) for place in (0, 1, None)]
    found = sift(Sieve(bound), batches).plan
    assert outcome(found) == [("none", "bucket"), ("some", None), ("some", None)]
    assert found.verdicts["reason"][0].as_py() == "id = 5 hashes to bucket 1, this file is in bucket 0"


def test_keys_of_several_columns_choose_buckets_by_predicate_and_by_join() -> None:
    key = ("id", "amount")
    batches = [file(str(place), None, buckets=(in_bucket(place, key=key),)) for place in range(4)]
    found = sift(Sieve(bind(parse("id = 5 AND amount = 2"), SCHEMA)), batches).plan
    assert outcome(found) == [("none", "bucket")] * 3 + [("some", None)]
    said = "id = 5 AND amount = 2 hashes to other buckets of (id, amount) than 0 of 4"
    assert found.verdicts["reason"][0].as_py() == said
    keys = RuntimeFilter.of(["id", "amount"], {"id": [5, 9], "amount": [2, 2]}).bind(SCHEMA)
    joined = sift(Sieve(bind(parse("true"), SCHEMA), runtime_filters=(keys,)), batches).plan
    assert outcome(joined) == [("none", "runtime")] * 3 + [("some", None)]
    assert joined.stats.runtime_filters[0].dropped["bucket"] == 3
    assert joined.verdicts["reason"][0].as_py() == f"{keys.text} hashes to other buckets of (id, amount) than 0 of 4"


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("amount = 2", [3]),  # (5, 2) and (9, 2) are both 3 of 4
        ("amount in (2, 3)", [0, 3]),
        ("amount = 2 or (amount = 3 and region = 'eu')", [0, 3]),
        ("amount is null", [1]),  # NULL counts as 0
        ("amount = 2 or region = 'eu'", [0, 1, 2, 3]),
        ("amount > 2", [0, 1, 2, 3]),
    ],
)
def test_join_key_and_predicate_choose_buckets_together(where: str, kept: list[int]) -> None:
    """The bucket key is (id, amount): the join has the one, the predicate the other."""
    batches = [file(str(place), None, buckets=(in_bucket(place, key=("id", "amount")),)) for place in range(4)]
    keys = RuntimeFilter.of("id", [5, 9]).bind(SCHEMA)
    found = sift(Sieve(bind(parse(where), SCHEMA), runtime_filters=(keys,)), batches).plan
    assert [place for place, (verdict, _) in enumerate(outcome(found)) if verdict != "none"] == kept
    assert found.stats.runtime_filters[0].dropped["bucket"] == 4 - len(kept)


def test_two_joins_choose_buckets_together() -> None:
    batches = [file(str(place), None, buckets=(in_bucket(place, key=("id", "amount")),)) for place in range(4)]
    keys = tuple(RuntimeFilter.of(name, [value]).bind(SCHEMA) for name, value in (("id", 5), ("amount", 2)))
    found = sift(Sieve(bind(parse("true"), SCHEMA), runtime_filters=keys), batches).plan
    assert outcome(found) == [("none", "runtime")] * 3 + [("some", None)]


def test_whole_key_outside_the_files_range_is_dropped_by_statistics() -> None:
    """Of the two keys one hashes into the file's bucket, and the other lies in its range."""
    root = "(id = 5 AND amount = 2) OR (id = 8 AND amount = 8)"
    buckets = in_bucket(3, key=("id", "amount"))
    found = sift(Sieve(bind(parse(root), SCHEMA)), [file("a", None, buckets=(buckets,), stats={2: stats(6, 9)})]).plan
    assert outcome(found) == [("none", "stats")]
    assert "within what the file holds" in found.verdicts["reason"][0].as_py()


def test_buckets_that_cannot_be_used_are_noted_and_refused_in_strict_mode() -> None:
    refusing = FileBuckets(pa.array([0], INT), pa.array([4], INT), (SCHEMA.columns[1],), ValueHash(lambda *_: None))
    bound = bind(parse("id = 5"), SCHEMA)
    found = sift(Sieve(bound), [file("a", None, buckets=(refusing,))]).plan
    assert outcome(found) == [("some", None)]
    assert "buckets of id ignored: the bucket hash cannot take these values" in found.stats.notes
    with pytest.raises(UnevaluableError, match="cannot judge by buckets"):
        sift(Sieve(bound, strict=True), [file("a", None, buckets=(refusing,))])


def test_runtime_filter_drops_by_partition_bucket_and_statistics() -> None:
    keys = RuntimeFilter.of("id", [5]).bind(SCHEMA)
    found = plan(
        "true",
        file("a", 1, partition=in_partition("eu", BUCKET_OF_FIVE)),
        file("b", 1, partition=in_partition("eu", (BUCKET_OF_FIVE + 1) % 16)),
        file("c", 0, stats={2: stats(6, 9)}),
        file("d", 0, stats={2: stats(1, 9)}),
        runtime_filters=(keys,),
    )
    assert [verdict != "none" for verdict, _ in outcome(found)] == [True, False, False, True]
    assert {layer for _, layer in outcome(found)} == {None, "runtime"}


def test_unread_files_are_counted_and_credited_to_the_manifest() -> None:
    sieve = Sieve(bind(parse("amount > 5"), SCHEMA), SPECS)
    found = sift(sieve, [file("a")], unread=[Unread(0, 3, 300), Unread(1, 2), Unread(1, 1, 50)]).plan
    assert (found.stats.files, found.stats.kept, found.stats.bytes) == (7, 1, 450)
    first = found.stats.layers[0]
    assert (first.layer, first.files_before, first.files_after, first.bytes_before, first.bytes_after) == (
        "manifest", 7, 1, 450, 100,
    )  # fmt: skip
    assert {spec.spec_id: (spec.files, spec.kept, spec.dropped["manifest"]) for spec in found.stats.specs} == {
        0: (4, 1, 3),
        1: (3, 0, 3),
    }
    assert found.verdicts.num_rows == 1


def test_same_input_gives_the_same_plan() -> None:
    batches = [
        file(
            str(place),
            1,
            partition=in_partition(["eu", "us", None][place % 3], place % 16),
            stats={3: stats(place, place)},
        )
        for place in range(40)
    ]
    one, two = (plan("region != 'us' AND amount > 5", *batches) for _ in range(2))
    assert one.verdicts.equals(two.verdicts)
    assert one.files.equals(two.files)
    assert one.verdicts["path"].to_pylist() == [str(place) for place in range(40)]


def test_layers_left_out_prune_nothing() -> None:
    sieve = Sieve(bind(parse("region = 'eu' AND amount > 5"), SCHEMA), SPECS)
    batches = [file("a", 1, partition=in_partition("us", 0), stats={3: stats(0, 1)})]
    assert outcome(sift(sieve, batches, layers=LAYERS[2:3]).plan) == [("none", "stats")]
    assert outcome(sift(sieve, batches, layers=()).plan) == [("some", None)]


def test_files_of_many_batches_keep_their_order_and_their_specs() -> None:
    found = plan("amount > 5", file("b", 1, partition=in_partition("eu", 0)), file("a"), file("c", None))
    assert found.files["path"].to_pylist() == ["b", "a", "c"]
    assert found.files["spec_id"].to_pylist() == [1, 0, None]
