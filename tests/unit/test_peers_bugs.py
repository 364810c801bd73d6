"""What peers got wrong, each as a test that we do not. Names of issues are the peers' own.

Only what belongs to predicates and the sieve; formats, commits and engines have theirs beside them.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.buckets import BucketSelector
from tamis.sieve.domain import ColumnStats, Facts
from tamis.sieve.file_buckets import FileBuckets, bucket_facts
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.judge import judge
from tamis.sieve.partitions import PartitionField, PartitionSpec
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import apply, parse_transform
from tamis.sieve.transforms.bucket import bucket_of_keys
from tests.making.harness import arrow
from tests.making.hashes import ValueHash
from tests.making.told_rules import told

INT, LONG, TEXT, DOUBLE = pa.int32(), pa.int64(), pa.string(), pa.float64()
TZ, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")


def spec(transform: str, spec_id: int = 0, source: int = 1) -> PartitionSpec:
    return PartitionSpec(spec_id, (PartitionField("p", source, parse_transform(transform)),))


def file(**more: object) -> FileBatch:
    given: dict[str, object] = {
        "path": pa.array(["f"]),
        "size": pa.array([1]),
        "rows": pa.array([5]),
        "spec_id": 0,
        **more,
    }
    return FileBatch(**given)  # type: ignore[arg-type] # as the fields are


def by_partition(sql: str, type_: pa.DataType, transform: str, part: pa.Array, zone: str = "UTC") -> str:
    """The verdict on a file of that partition of x."""
    one = file(partition=pa.StructArray.from_arrays([part], ["p"]))
    bound = bind(parse(sql), Schema.of(x=type_), time_zone=zone, ask=told)
    return verdict(sift(Sieve(bound, (spec(transform),)), [one]).plan)


def by_stats(
    sql: str,
    type_: pa.DataType,
    low: object,
    high: object,
    nulls: int | None = 0,
    nans: int | None = 0,
    zone: str = "UTC",
) -> str:
    """The verdict on a file of these statistics of x; five values."""
    counts = [None if count is None else pa.array([count], pa.int64()) for count in (nulls, nans)]
    stats = ColumnStats(arrow([low], type_), arrow([high], type_), counts[0], counts[1], pa.array([5]))
    bound = bind(parse(sql), Schema.of(x=type_), time_zone=zone, ask=told)
    return verdict(sift(Sieve(bound, (PartitionSpec(0),)), [file(stats={1: stats})]).plan)


def verdict(plan: ScanPlan) -> str:
    (found,) = plan.verdicts["verdict"].to_pylist()
    return str(found)


# -- Iceberg --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("type_", "literal"), [(INT, "5"), (TEXT, "'m'"), (pa.date32(), "date '2024-01-01'")])
@pytest.mark.parametrize("operator", ["<", "<=", "!="])
def test_null_partition_is_not_deleted_by_a_comparison(type_: pa.DataType, literal: str, operator: str) -> None:
    """Iceberg Java compares nulls first: DELETE WHERE x < 5 dropped the whole partition of NULL, as metadata only."""
    assert by_partition(f"x {operator} {literal}", type_, "identity", pa.array([None], type_)) == "none"
    assert by_partition(f"NOT (x {operator} {literal})", type_, "identity", pa.array([None], type_)) == "none"


def test_prefix_with_an_emoji_is_counted_in_code_points() -> None:
    """Iceberg Java compares UTF-16 lengths: with truncate[3], LIKE '😀a%' became = '😀a', and lost the row."""
    part = apply(parse_transform("truncate[3]"), pa.array(["😀abc"]))
    assert part.to_pylist() == ["😀ab"]
    assert by_partition("x LIKE '😀a%'", TEXT, "truncate[3]", part) == "all"
    assert by_partition("x LIKE '😀b%'", TEXT, "truncate[3]", part) == "none"


@pytest.mark.parametrize(("type_", "least"), [(INT, -(2**31)), (LONG, -(2**63))])
@pytest.mark.parametrize("width", [10, 3])
def test_least_integer_truncates_to_a_great_one_and_is_still_found(
    type_: pa.DataType, least: int, width: int
) -> None:
    """Iceberg Java wraps truncate(INT_MIN) to 2147483646; `x < 0` then pruned the row's own partition."""
    part = apply(parse_transform(f"truncate[{width}]"), pa.array([least], type_))
    assert part[0].as_py() > 0
    assert by_partition("x < 0", type_, f"truncate[{width}]", part) != "none"
    assert by_partition(f"x = {least}", type_, f"truncate[{width}]", part) != "none"


def test_missing_null_count_is_not_zero() -> None:
    """Iceberg's strict evaluators read a missing count as none; PyIceberg said MUST for `v < 5` and bounds 1..4."""
    assert by_stats("x < 5", INT, 1, 4, nulls=None) == "some"
    assert by_stats("x < 5", INT, 1, 4, nulls=0) == "all"


def test_missing_nan_count_is_not_zero() -> None:
    """Iceberg Java: a wholly missing NaN map too counted as none. NaN is below nothing."""
    assert by_stats("x < 5D", DOUBLE, 1.0, 4.0, nans=None) == "some"
    assert by_stats("x > 5D", DOUBLE, 1.0, 4.0, nans=None) == "some"
    assert by_stats("x > 5D", DOUBLE, 1.0, 4.0, nans=0) == "none"


@pytest.mark.parametrize("transform", ["year", "month", "day", "hour"])
def test_time_before_1970_that_an_old_writer_rounded_up_is_found(transform: str) -> None:
    """Iceberg Java to 0.10 wrote 0 for what belongs to -1; PyIceberg has no fix, and prunes such a file."""
    old = pa.array([0], INT)
    assert by_partition("x = '1969-12-31 23:30:00'", NTZ, transform, old) != "none"
    assert by_partition("x < '1970-01-01'", NTZ, transform, old) == "some"
    assert by_partition("x >= '1970-01-01'", NTZ, transform, old) == "some"


def test_day_of_a_date_was_never_rounded() -> None:
    """Its ordinals are the dates themselves: allowing for the old fault would only prune less."""
    zero = pa.array([0], INT)
    assert by_partition("x < date '1970-01-01'", pa.date32(), "day", zero) == "none"
    assert by_partition("x >= date '1970-01-01'", pa.date32(), "day", zero) == "all"


def test_time_after_1970_is_exact() -> None:
    one = pa.array([1], INT)
    assert by_partition("x < '1970-01-02'", NTZ, "day", one) == "none"
    assert by_partition("date(x) = '1970-01-02'", NTZ, "day", one) == "all"


@pytest.mark.parametrize("size", [200, 201, 10_000])
def test_long_list_still_prunes(size: int) -> None:
    """Iceberg Java stops at IN_PREDICATE_LIMIT = 200, for bounds, manifests and row groups."""
    listed = ", ".join(str(2 * place) for place in range(size))
    assert by_stats(f"x IN ({listed})", INT, -5, -1) == "none"
    assert by_stats(f"x IN ({listed})", INT, 101, 101) == "none"
    assert by_stats(f"x IN ({listed})", INT, 100, 100) == "all"


def test_not_like_is_not_pushed_through_truncation() -> None:
    """PyIceberg #3493: NOT STARTS WITH 'abcd' became != 'abc' on truncate[3], and pruned rows such as 'abce'."""
    part = pa.array(["abc"])
    assert by_partition("x NOT LIKE 'abcd%'", TEXT, "truncate[3]", part) == "some"
    assert by_partition("x NOT LIKE 'abc%'", TEXT, "truncate[3]", part) == "none"
    assert by_partition("x NOT LIKE 'abd%'", TEXT, "truncate[3]", part) == "all"


def test_inverted_bounds_are_ignored() -> None:
    """ClickHouse #116499: real tables hold lower > upper; pruning by them lost rows."""
    for sql in ("x = 5", "x > 7", "x < 3", "x BETWEEN 4 AND 6"):
        assert by_stats(sql, INT, 7, 3) == "some"
    assert by_stats("x = 'm'", TEXT, "z", "a") == "some"


def test_uuid_bounds_of_either_order_are_read_with_care() -> None:
    """Java compares uuids as two signed longs, the specification as bytes; Trino does not push them at all."""
    low, high = UUID(int=1 << 127), UUID(int=1)  # signed: 8... is negative, and so below 0...1
    for value in (UUID(int=5 << 64), UUID(int=9 << 124), low, high):
        assert by_stats(f"x = '{value}'", pa.uuid(), low, high) == "some"
        assert by_stats(f"x = '{value}'", pa.uuid(), high, low) == "some"
    near, far = UUID(int=5 << 64), UUID(int=9 << 64)
    assert by_stats(f"x = '{UUID(int=20 << 64)}'", pa.uuid(), near, far) == "none"


def test_sql_null_rules_hold_for_not_in_and_not_equal() -> None:
    """Iceberg's own expressions take != and NOT IN for true of NULL; SQL does not."""
    nothing = pa.array([None], INT)
    assert by_partition("x != 5", INT, "identity", nothing) == "none"
    assert by_partition("x NOT IN (1, 2)", INT, "identity", nothing) == "none"
    assert by_stats("x NOT IN (1, NULL)", INT, 5, 9) == "none"


def test_void_field_says_nothing() -> None:
    """A field that version 1 dropped is void: its NULL is no row's NULL. XTable #668 stumbled over it."""
    assert by_partition("x = 5", INT, "void", pa.array([None], INT)) == "some"
    assert by_partition("x IS NULL", INT, "void", pa.array([None], INT)) == "some"


def test_unknown_transform_is_not_taken_for_identity() -> None:
    """A mapping that is not found, assumed to be identity, is unsound; the file is kept, counted and noted."""
    one = file(partition=pa.StructArray.from_arrays([pa.array([7], INT)], ["p"]))
    plan = sift(Sieve(bind(parse("x = 5"), Schema.of(x=INT)), (spec("zorder[4]"),)), [one]).plan
    assert verdict(plan) == "some"
    assert plan.stats.filter_stats.unevaluable_specs == 1
    assert plan.stats.filter_stats.fail_open_files == 1


def test_bucket_is_used_for_lists_and_not_for_ranges() -> None:
    """It is said that buckets cannot be used: true of ranges alone."""
    bucket = bucket_of_keys(np.array([5, 6]), INT, 64)
    assert bucket is not None
    other = next(number for number in range(64) if number not in bucket)
    part = pa.array([other], INT)
    assert by_partition("x IN (5, 6)", INT, "bucket[64]", part) == "none"
    assert by_partition("x > 5", INT, "bucket[64]", part) == "some"


def test_bucket_of_an_emoji_may_be_any() -> None:
    """Iceberg up to 0.13 hashed characters beyond 16 bits wrongly: its files are where their writer put them."""
    part = pa.array([0], INT)
    assert all(by_partition("x = '😀'", TEXT, "bucket[8]", pa.array([number], INT)) == "some" for number in range(8))
    assert by_partition("x IS NULL", TEXT, "bucket[8]", part) == "none"


def test_hour_beyond_thirty_two_bits_is_not_trusted() -> None:
    """hour() of a far timestamp wraps to an ordinal of our own days."""
    far = (2**31 + 500_000) * 3_600_000_000
    part = apply(parse_transform("hour"), pa.array([far], NTZ))
    assert by_partition("x > '9999-01-01'", NTZ, "hour", part) != "none"


# -- Delta ----------------------------------------------------------------------------------------------------


def test_or_over_partition_and_data_columns_prunes() -> None:
    """The Java kernel splits at AND only: a mixed OR goes to the data side whole, and prunes nothing."""
    schema = Schema.of(region=TEXT, amount=INT)
    sql = "(region = 'eu' AND amount > 100) OR (region = 'us' AND amount < 5)"
    stats = {2: ColumnStats(pa.array([0], INT), pa.array([50], INT), pa.array([0]))}
    found = []
    for region in ("eu", "us", "asia"):
        one = file(partition=pa.StructArray.from_arrays([pa.array([region])], ["p"]), stats=stats)
        found.append(verdict(sift(Sieve(bind(parse(sql), schema), (spec("identity"),)), [one]).plan))
    assert found == ["none", "some", "none"]


@pytest.mark.parametrize("sql", ["x LIKE 'a%'", "x <=> NULL", "upper(x) = 'A'", "x = NULL", "concat(x, 'a') = 'b'"])
def test_what_a_reader_cannot_analyse_is_no_error(sql: str) -> None:
    """The deltalake package raises for LIKE, <=> NULL and year(); what Spark allows in a WHERE is planned here."""
    assert by_stats(sql, TEXT, "b", "c", nulls=1) in {"none", "some"}


def test_null_result_of_a_statistic_keeps_the_file() -> None:
    """Delta: missing statistics make the skipping predicate NULL, which must keep the file."""
    assert by_stats("x > 5", INT, None, None, nulls=None) == "some"
    assert by_stats("NOT (x > 5)", INT, None, None, nulls=None) == "some"


def test_negation_is_pushed_down_and_never_applied_to_a_verdict() -> None:
    """NOT of "may match" is not "cannot match": delta kernels push NOT to the leaves first."""
    assert by_stats("NOT (x > 5)", INT, 1, 9) == "some"
    assert by_stats("NOT (x > 5 OR x IS NULL)", INT, 1, 9, nulls=None) == "some"


# -- Paimon ---------------------------------------------------------------------------------------------------


def test_nan_as_upper_bound_does_not_hide_the_rest() -> None:
    """The pypaimon package skipped a file with max = NaN for f = -2.5, though the row was there."""
    assert by_stats("x = -2.5D", DOUBLE, -2.5, math.nan, nans=None) == "some"
    assert by_stats("x > 100D", DOUBLE, -2.5, math.nan, nans=None) == "some"


def test_minus_zero_equals_zero() -> None:
    """The pypaimon package dropped the row -0.0 for = 0.0."""
    assert by_stats("x = 0D", DOUBLE, -0.0, -0.0) == "all"
    assert by_partition("x = 0D", DOUBLE, "identity", pa.array([-0.0])) == "all"
    assert by_stats("x = -0.0D", DOUBLE, 0.0, 0.0) == "all"


def test_bucket_key_with_two_values_at_once_needs_no_bucket() -> None:
    """A repeated constraint intersects: id = 1 AND id = 2 matches nothing, and is not "either bucket"."""
    schema = Schema.of(id=INT)
    bound = bind(parse("id = 1 AND id = 2"), schema)
    assert not BucketSelector(bound, schema.columns).possible(Facts(4, {})).any()
    assert not judge(bound.root, Facts(4, {})).possible.any()


def test_files_of_several_bucket_counts_are_hashed_by_their_own() -> None:
    """Partitions really mix total bucket counts after a rescale: Paimon's are per file."""
    schema = Schema.of(id=INT)
    bound = bind(parse("id = 6"), schema)
    by = ValueHash(lambda keys, total: np.asarray(keys.column(0).fill_null(0)) % total)
    stated = FileBuckets(pa.array([2, 6, 2, 6, 0]), pa.array([4, 8, 8, 4, -1]), schema.columns, by)
    facts, _ = bucket_facts([stated], {column.id: column for column in schema.columns}, np.arange(5))
    found = judge(bound.root, facts).possible
    assert found.tolist() == [True, True, False, True, True]  # bucket 6 of 4 is out of range: keep


# -- engines --------------------------------------------------------------------------------------------------


def test_binary_partition_is_not_sent_through_text() -> None:
    """Doris #59564: a binary value was corrupted on its way through a UTF-8 string."""
    part = pa.array([b"\xff\xfe\x00"])
    assert by_partition("x = X'FFFE00'", pa.binary(), "identity", part) == "all"
    assert by_partition("x = X'FFFE01'", pa.binary(), "identity", part) == "none"
    assert by_partition("x = X'EFBFBD'", pa.binary(), "identity", part) == "none"


def test_files_of_mixed_specs_are_each_read_with_their_own() -> None:
    """Doris #62177: a map built from the first range only crashed where specs mix in one scan."""
    schema = Schema.of(ts=NTZ, id=INT)
    specs = (PartitionSpec(0), spec("day", 1, 1), spec("identity", 2, 2), spec("month", 3, 1))
    values = [None, pa.array([19_737], INT), pa.array([7], INT), pa.array([648], INT)]
    batches = [
        file(
            path=pa.array([str(place)]),
            spec_id=place,
            partition=None if part is None else pa.StructArray.from_arrays([part], ["p"]),
        )
        for place, part in enumerate(values)
    ]
    for order in (batches, batches[::-1]):
        plan = sift(Sieve(bind(parse("ts < '2024-01-01' AND id = 5"), schema), specs), order).plan
        found = {row["path"]: row["verdict"] for row in plan.verdicts.to_pylist()}
        assert found == {"0": "some", "1": "none", "2": "none", "3": "none"}


def test_hour_of_the_clock_set_back_is_not_taken_for_monotone() -> None:
    """Doris #65903: in the fall-back hour a cast to local time goes backwards; a range lost its rows."""
    # 00:30 and 01:30 UTC both show 02:30 in Paris; 01:10 UTC shows 02:10, after 02:30 was shown once.
    late = datetime(2024, 10, 27, 1, 10, tzinfo=UTC)
    assert by_stats("x < '2024-10-27 02:20:00'", TZ, late, late, zone="Europe/Paris") in {"none", "some"}
    assert by_stats("date_trunc('minute', x) <= '2024-10-27 02:10:00'", TZ, late, late, zone="Europe/Paris") != "all"
    assert by_stats("date_trunc('hour', x) = '2024-10-27 02:00:00'", TZ, late, late, zone="Europe/Paris") != "none"
    day = datetime(2024, 10, 27, 22, 30, tzinfo=UTC)
    assert by_stats("date(x) = '2024-10-27'", TZ, day, day, zone="Europe/Paris") == "all"


def test_partitions_of_instants_are_days_of_utc_whatever_the_session_s_zone() -> None:
    """Boundaries by the session's zone prune an hour too much, or too little."""
    part = pa.array([19_737], INT)  # 2024-01-15 in UTC
    sql = "x >= '2024-01-16 00:30:00'"
    assert by_partition(sql, TZ, "day", part, zone="Europe/Paris") == "some"
    assert by_partition(sql, TZ, "day", part, zone="UTC") == "none"


def test_pruning_never_settles_the_predicate() -> None:
    """Daft #7428: after evolution the residual was dropped, and rows came back that do not match."""
    sql = "ts >= timestamp '2024-01-15' AND region IN ('eu', 'uk') AND upper(name) = 'X' AND NOT (id = 3)"
    schema = Schema.of(ts=NTZ, region=TEXT, name=TEXT, id=INT)
    bound = bind(parse(sql), schema)
    for part in ("ts >=", "region IN ('eu', 'uk')", "upper(name) = 'X'", "id = 3"):
        assert part in bound.sql
    assert bind(parse(bound.sql), schema).root == bound.root


def test_expression_that_may_raise_is_not_run_on_made_up_values() -> None:
    """Doris #65857: assert_true on a partition boundary raised an error that no row would."""
    one = file(partition=pa.StructArray.from_arrays([pa.array([0], INT)], ["p"]))
    bound = bind(parse("assert_true(x > 0) IS NULL AND 10 / x > 1"), Schema.of(x=INT))
    assert verdict(sift(Sieve(bound, (spec("identity"),)), [one]).plan) == "some"


def test_null_join_key_matches_nothing_unless_null_safe() -> None:
    """A null partition is pruned by an equi-join, and kept by a null-safe one."""
    schema = Schema.of(x=INT)
    one = file(partition=pa.StructArray.from_arrays([pa.array([None], INT)], ["p"]))
    found = []
    for null_safe in (False, True):
        keys = RuntimeFilter.of("x", pa.array([5, None], INT), null_safe=null_safe).bind(schema)
        found.append(verdict(sift(Sieve(bind(parse("true"), schema), (spec("identity"),), (keys,)), [one]).plan))
    assert found[0] == "none"
    assert found[1] != "none"


def test_truncated_upper_bound_is_no_value_that_occurs() -> None:
    """A prefix successor bounds the column, and is in no row: `=` must not be certain of it."""
    assert by_stats("x = 'abd'", TEXT, "abc", "abd") == "some"
    assert by_stats("x >= 'abd'", TEXT, "abc", "abd") == "some"


def test_code_points_above_the_basic_plane_sort_last() -> None:
    """UTF-16 puts surrogates below U+FFFD: bounds compared so prune the wrong side."""
    assert by_stats("x > '\ufffd'", TEXT, "\U0001f600", "\U0001f64f") == "all"
    assert by_stats("x < '\ufffd'", TEXT, "\U0001f600", "\U0001f64f") == "none"


def test_promoted_column_is_judged_by_its_old_bounds() -> None:
    """Type widening: statistics and partitions may be of the narrower type."""
    stats = {1: ColumnStats(pa.array([1], INT), pa.array([5], INT), pa.array([0]))}
    bound = bind(parse("x > 5000000000"), Schema.of(x=LONG))
    assert verdict(sift(Sieve(bound, (PartitionSpec(0),)), [file(stats=stats)]).plan) == "none"
    assert by_partition("x > 5000000000", LONG, "identity", pa.array([5], INT)) == "none"
    bucket = bucket_of_keys(np.array([-5]), LONG, 16)
    assert bucket is not None
    assert by_partition("x = -5", LONG, "bucket[16]", pa.array(bucket, INT)) != "none"
