"""Partition keys of several specs: each judged once, by its own spec, and kept with a note where it cannot be."""

import math
import pickle
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import UnevaluableError, UnknownSpecError
from tamis.predicate.bind import bind
from tamis.predicate.schema import ColumnId, Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve import partitions as module
from tamis.sieve.domain import Facts
from tamis.sieve.notes import MAX_NOTES
from tamis.sieve.partitions import (
    FilterStats,
    MultiSpecPartitionFilter,
    PartitionField,
    PartitionKey,
    PartitionSpec,
    Undecoded,
    distinct,
)
from tamis.sieve.transforms import parse_transform
from tamis.sieve.trial import Trial

INT = pa.int32()
SCHEMA = Schema.of(ts=pa.timestamp("us"), region=pa.string(), id=INT, tags=pa.list_(pa.string()), f=pa.float64())


def spec(spec_id: int, *fields: tuple[ColumnId | None, str]) -> PartitionSpec:
    return PartitionSpec(
        spec_id,
        tuple(PartitionField(f"p{i}", source, parse_transform(text)) for i, (source, text) in enumerate(fields)),
    )


NONE = spec(0)
BY_REGION = spec(1, (2, "identity"))
BY_DAY = spec(2, (1, "day"), (2, "identity"))
STRANGE = spec(3, (2, "zorder[2]"))
TRUNCATED = spec(4, (3, "truncate[10]"))
SPECS = (NONE, BY_REGION, BY_DAY, STRANGE, TRUNCATED)


def struct(*children: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(children), [f"p{i}" for i in range(len(children))])


def made(sql: str, *specs: PartitionSpec, strict: bool = False, **kinds: Any) -> MultiSpecPartitionFilter:  # noqa: ANN401 - columns
    schema = Schema.of(**kinds) if kinds else SCHEMA
    return MultiSpecPartitionFilter(bind(parse(sql), schema), specs or SPECS, strict=strict)


def kept(filter_: MultiSpecPartitionFilter, spec_id: int, *children: pa.Array, **more: Any) -> list[bool]:  # noqa: ANN401 - undecoded
    found = filter_.judge(spec_id, struct(*children), len(children[0]), **more)
    return found.bucket.possible[found.codes].tolist()


# -- keys -----------------------------------------------------------------------------------------------------


def test_unpartitioned_is_the_file_s_own_spec_s_to_say() -> None:
    assert PartitionKey.of(NONE, ("eu",)) == PartitionKey(0, None)
    assert PartitionKey.of(BY_REGION, ("eu",)) == PartitionKey(1, ("eu",))
    assert PartitionKey.of(spec(7, (1, "void"), (2, "void")), (None, None)) == PartitionKey(7)
    assert PartitionKey.of(spec(7, (1, "void"), (2, "identity")), (None, "eu")) == PartitionKey(7, (None, "eu"))


def test_keys_of_equal_values_are_equal_and_hash_alike() -> None:
    one, two = PartitionKey.of(BY_DAY, (19_737, "eu")), PartitionKey.of(BY_DAY, (19_737, "eu"))
    assert one == two
    assert len({one, two}) == 1


def test_keys_of_other_specs_or_values_differ() -> None:
    assert PartitionKey(1, ("eu",)) != PartitionKey(2, ("eu",))
    assert PartitionKey(1, ("eu",)) != PartitionKey(1, ("us",))
    assert PartitionKey(1, (None,)) != PartitionKey(1, None)


def test_nan_partition_equals_itself() -> None:
    by_f = spec(5, (5, "identity"))
    assert PartitionKey.of(by_f, (math.nan,)) == PartitionKey.of(by_f, (float("nan"),))
    assert len({PartitionKey.of(by_f, (math.nan,)), PartitionKey.of(by_f, (float("nan"),))}) == 1


def test_sort_key_orders_keys_of_different_types() -> None:
    keys = [
        PartitionKey(2, (date(2024, 1, 1),)),
        PartitionKey(1, ("us",)),
        PartitionKey(1, (None,)),
        PartitionKey(0),
        PartitionKey(1, (5,)),
        PartitionKey(1, (Decimal("1.5"),)),
    ]
    ordered = sorted(keys, key=lambda key: key.sort_key)
    assert ordered == sorted(set(keys), key=lambda key: key.sort_key)
    assert [key.spec_id for key in ordered] == [0, 1, 1, 1, 1, 2]
    assert PartitionKey(1, ("us",)).sort_key == PartitionKey(1, ("us",)).sort_key


def test_distinct_numbers_tuples_by_first_appearance() -> None:
    codes, first = distinct([pa.array(["b", "a", "b", None, "b", None]), pa.array([1, 1, 1, 1, 2, 1])], 6)
    assert codes.tolist() == [0, 1, 0, 2, 3, 2]
    assert first.tolist() == [0, 1, 3, 4]
    codes, first = distinct([pa.array([], pa.string())], 0)
    assert (len(codes), len(first)) == (0, 0)


# -- one spec, several specs ----------------------------------------------------------------------------------


def test_single_spec_keeps_what_matches() -> None:
    assert kept(made("region = 'eu'"), 1, pa.array(["eu", "us", None, "eu"])) == [True, False, False, True]
    assert kept(made("region IS NULL"), 1, pa.array(["eu", None])) == [False, True]
    assert kept(made("region != 'eu'"), 1, pa.array(["eu", "us", None])) == [False, True, False]


def test_each_file_is_judged_by_its_own_spec() -> None:
    filter_ = made("ts >= timestamp '2024-01-15' AND region = 'eu'")
    days = pa.array([19_736, 19_737, 19_737], INT)
    assert filter_.judge(0, None, 3).bucket.possible.tolist() == [True]
    assert kept(filter_, 1, pa.array(["eu", "us"])) == [True, False]
    assert kept(filter_, 2, days, pa.array(["eu", "eu", "us"])) == [False, True, False]
    assert kept(filter_, 4, pa.array([0, 10], INT)) == [True, True]


def test_unpartitioned_file_is_kept_and_is_no_failure() -> None:
    filter_ = made("region = 'eu'")
    assert filter_.matches(PartitionKey(0))
    assert filter_.stats == FilterStats(unevaluable_specs=1)
    assert not filter_.is_fail_open(PartitionKey(0))


def test_contradiction_drops_an_unpartitioned_file_too() -> None:
    assert not made("id = 1 AND id = 2").matches(PartitionKey(0))


def test_column_that_the_spec_does_not_know_excludes_nothing() -> None:
    assert kept(made("id = 5"), 1, pa.array(["eu", None])) == [True, True]


def test_all_is_said_where_the_partition_proves_it() -> None:
    found = made("region = 'eu'").judge(1, struct(pa.array(["eu", "us", None])), 3)
    assert found.partition.certain.tolist() == [True, False, False]
    found = made("ts >= timestamp '2024-01-15'").judge(2, struct(pa.array([19_737], INT), pa.array(["eu"])), 1)
    assert found.partition.certain.tolist() == [True]


def test_day_may_be_stored_as_an_int_or_as_a_date() -> None:
    filter_ = made("ts >= timestamp '2024-01-15'")
    region = pa.array(["eu", "eu"])
    assert kept(filter_, 2, pa.array([19_736, 19_737], INT), region) == [False, True]
    assert kept(filter_, 2, pa.array([19_736, 19_737], pa.date32()), region) == [False, True]


# -- failing open ---------------------------------------------------------------------------------------------


def test_spec_that_cannot_be_evaluated_is_kept_counted_and_noted() -> None:
    filter_ = made("region = 'eu'")
    assert kept(filter_, 3, pa.array([1, 2, 1], INT)) == [True, True, True]
    assert filter_.stats == FilterStats(unevaluable_specs=1, fail_open_partitions=2)
    assert filter_.is_fail_open(PartitionKey(3, (1,)))
    (note,) = filter_.notes.to_list()
    assert "spec 3" in note
    assert "zorder[2]" in note


def test_spec_is_evaluable_if_the_predicate_does_not_need_its_strange_field() -> None:
    filter_ = made("id = 5")
    assert kept(filter_, 3, pa.array([1], INT)) == [True]
    assert filter_.stats == FilterStats()


def test_field_of_an_unordered_column_makes_a_spec_unevaluable() -> None:
    filter_ = made("tags IS NULL", spec(0, (4, "identity")))
    assert filter_.stats.unevaluable_specs == 1
    assert made("tags IS NULL", spec(0, (4, "void"))).stats.unevaluable_specs == 0


def test_value_that_cannot_be_decoded_is_kept_counted_and_noted() -> None:
    """13 is no multiple of 10: its writer's arithmetic wrapped."""
    filter_ = made("id = 100")
    assert kept(filter_, 4, pa.array([10, 13, 100, 13], INT)) == [False, True, True, True]
    assert filter_.stats == FilterStats(unevaluable_specs=0, eval_errors=1, fail_open_partitions=1)
    assert filter_.is_fail_open(PartitionKey(4, (13,)))
    assert not filter_.is_fail_open(PartitionKey(4, (100,)))
    (note,) = filter_.notes.to_list()
    assert "partition value ignored" in note
    assert "13" in note


def test_value_of_a_wrong_type_is_kept() -> None:
    filter_ = made("id = 100")
    assert kept(filter_, 4, pa.array(["x", "y"])) == [True, True]
    assert filter_.stats.eval_errors == 2


def test_value_that_the_format_could_not_decode_is_kept() -> None:
    filter_ = made("region = 'eu'")
    undecoded = Undecoded(0, np.array([False, True, False]), "not UTF-8")
    assert kept(filter_, 1, pa.array(["us", None, "us"]), undecoded=[undecoded]) == [False, True, False]
    assert filter_.stats == FilterStats(1, 1, 1)
    assert "not UTF-8" in filter_.notes.to_list()[-1]


def test_undecoded_value_is_kept_whatever_stands_in_its_place() -> None:
    filter_ = made("region = 'eu'")
    undecoded = Undecoded(0, np.array([True]), "not UTF-8")
    assert kept(filter_, 1, pa.array(["us"]), undecoded=[undecoded]) == [True]


def test_undecoded_value_is_kept_after_a_real_null_was_judged() -> None:
    """Both have NULL in their place; the memo of one must not decide the other."""
    filter_ = made("region = 'eu'")
    nothing = pa.array([None], pa.string())
    assert kept(filter_, 1, nothing) == [False]
    assert kept(filter_, 1, nothing, undecoded=[Undecoded(0, np.array([True]), "not UTF-8")]) == [True]
    assert filter_.stats.eval_errors == 1


def test_real_null_is_dropped_after_an_undecoded_value_was_kept() -> None:
    filter_ = made("region = 'eu'")
    nothing = pa.array([None], pa.string())
    assert kept(filter_, 1, nothing, undecoded=[Undecoded(0, np.array([True]), "not UTF-8")]) == [True]
    assert kept(filter_, 1, nothing) == [False]


def test_values_undecoded_for_two_reasons_are_both_kept() -> None:
    filter_ = made("region = 'eu'")
    reasons = [
        Undecoded(0, np.array([True, False, False]), "not UTF-8"),
        Undecoded(0, np.array([False, True, False]), "cut"),
    ]
    assert kept(filter_, 1, pa.array([None, None, None], pa.string()), undecoded=reasons) == [True, True, False]


def test_undecoded_values_of_two_fields_are_both_ignored() -> None:
    filter_ = made("ts >= timestamp '2024-01-15' AND region = 'eu'")
    reasons = [Undecoded(0, np.array([True, False]), "no day"), Undecoded(1, np.array([True, True]), "not UTF-8")]
    days, regions = pa.array([None, 19_736], INT), pa.array([None, None], pa.string())
    assert kept(filter_, 2, days, regions, undecoded=reasons) == [True, False]
    assert filter_.stats.eval_errors == 2


def test_undecoded_value_of_a_field_that_is_not_asked_for_is_no_error() -> None:
    filter_ = made("ts >= timestamp '2024-01-15'")
    undecoded = Undecoded(1, np.array([True]), "not UTF-8")
    assert kept(filter_, 2, pa.array([19_736], INT), pa.array([None], pa.string()), undecoded=[undecoded]) == [False]
    assert filter_.stats.eval_errors == 0


def test_other_field_still_excludes_what_could_not_be_decoded() -> None:
    """An error that changes nothing is counted as an error, and not as a partition that was included."""
    filter_ = made("id = 100 AND region = 'eu'", spec(0, (3, "truncate[10]"), (2, "identity")))
    assert kept(filter_, 0, pa.array([13, 13], INT), pa.array(["eu", "us"])) == [True, False]
    assert filter_.stats == FilterStats(0, 2, 1)


def test_errors_are_counted_once_a_key_over_batches() -> None:
    filter_ = made("id = 100")
    for _ in range(3):
        kept(filter_, 4, pa.array([13, 17, 13], INT))
    assert filter_.stats == FilterStats(0, 2, 2)
    assert len([note for note in filter_.notes.to_list() if "13" in note]) == 1


def test_notes_are_bounded() -> None:
    filter_ = made("id = 100")
    for value in range(1, 400, 10):
        kept(filter_, 4, pa.array([value], INT))
    notes = filter_.notes.to_list()
    assert len(notes) == MAX_NOTES + 1
    assert notes[-1] == "and 20 more"
    assert filter_.stats.eval_errors == 40


def test_files_are_counted_by_whoever_selects_candidates() -> None:
    filter_ = made("region = 'eu'")
    kept(filter_, 3, pa.array([1, 1], INT))
    assert filter_.stats.fail_open_files == 0


# -- errors ---------------------------------------------------------------------------------------------------


def test_unknown_spec_id_is_an_error_that_names_it() -> None:
    filter_ = made("region = 'eu'")
    for ask in (lambda: filter_.judge(99, None, 1), lambda: filter_.matches(PartitionKey(99, ("eu",)))):
        with pytest.raises(UnknownSpecError, match="99") as caught:
            ask()
        assert (caught.value.spec_id, caught.value.known) == (99, (0, 1, 2, 3, 4))


def test_strict_refuses_a_spec_that_cannot_be_evaluated() -> None:
    filter_ = made("region = 'eu'", strict=True)
    assert kept(filter_, 1, pa.array(["eu"])) == [True]
    with pytest.raises(UnevaluableError, match="spec 3") as caught:
        kept(filter_, 3, pa.array([1], INT))
    assert "zorder[2]" in caught.value.reason


def test_strict_says_nothing_of_a_spec_without_files() -> None:
    filter_ = made("region = 'eu'", strict=True)
    filter_.judge(3, struct(pa.array([], INT)), 0)


def test_strict_refuses_a_value_that_cannot_be_decoded() -> None:
    filter_ = made("id = 100", strict=True)
    with pytest.raises(UnevaluableError, match="13") as caught:
        kept(filter_, 4, pa.array([13], INT))
    assert "truncate" in caught.value.reason or "multiple" in caught.value.reason
    with pytest.raises(UnevaluableError, match="not UTF-8"):
        kept(
            made("region = 'eu'", strict=True), 1, pa.array([None], pa.string()),
            undecoded=[Undecoded(0, np.array([True]), "not UTF-8")],
        )  # fmt: skip


# -- the memo -------------------------------------------------------------------------------------------------


def test_each_distinct_key_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []
    real = module.try_all

    def counting(conjuncts: Any, facts: Facts) -> Trial:  # noqa: ANN401 - passed on
        judged.append(facts.count)
        return real(conjuncts, facts)

    monkeypatch.setattr(module, "try_all", counting)
    filter_ = made("region = 'eu'")
    kept(filter_, 1, pa.array(["eu", "us", "eu", None] * 1000))
    first = sum(judged)
    assert first <= 2 * 3  # with and without buckets
    kept(filter_, 1, pa.array(["us", "eu", None]))
    filter_.matches(PartitionKey(1, ("eu",)))
    assert sum(judged) == first
    kept(filter_, 1, pa.array(["us", "de"]))
    assert sum(judged) <= first + 2


def test_memo_of_one_spec_is_not_another_s() -> None:
    """The same tuple means something else under another spec."""
    other = spec(9, (2, "truncate[1]"))
    filter_ = made("region = 'eu'", BY_REGION, other)
    assert kept(filter_, 1, pa.array(["e"])) == [False]
    assert kept(filter_, 9, pa.array(["e"])) == [True]


@pytest.mark.parametrize(
    ("type_", "sql", "values"),
    [
        (pa.time64("ns"), "x = '00:00:00.000000002'", pa.array([2, 1], pa.time64("ns"))),
        (pa.time64("ns"), "x = '00:00:00.000000002'", pa.array([1, 2], pa.time64("ns"))),
        (pa.timestamp("ns"), "x >= '1970-01-01 00:00:00.000001'", pa.array([1000, 999], pa.timestamp("ns"))),
        (pa.timestamp("ns"), "x < '1970-01-01 00:00:00.000001'", pa.array([1000, 999], pa.timestamp("ns"))),
    ],
)
def test_values_that_differ_in_nanoseconds_are_two_keys(type_: pa.DataType, sql: str, values: pa.Array) -> None:
    """Python's times end at microseconds: as keys they would be one, and one verdict would serve both."""
    together = kept(made(sql, spec(0, (1, "identity")), x=type_), 0, values)
    apart = [kept(made(sql, spec(0, (1, "identity")), x=type_), 0, values.slice(place, 1))[0] for place in range(2)]
    assert together == apart
    assert sorted(together) == [False, True]


@pytest.mark.parametrize(
    ("type_", "transform", "values"),
    [
        (pa.date32(), "identity", pa.array([1 << 30, 0], INT).view(pa.date32())),
        (pa.date32(), "day", pa.array([1 << 22, 0], INT).view(pa.date32())),
        (pa.date32(), "identity", pa.array([-(1 << 22), 0], INT).view(pa.date32())),
        (pa.timestamp("us"), "identity", pa.array([1 << 60, 0], pa.timestamp("us"))),
        (pa.timestamp("us", "UTC"), "identity", pa.array([-(1 << 60), 0], pa.timestamp("us", "UTC"))),
        (pa.timestamp("us"), "day", pa.array([4_000_000, 0], INT).view(pa.date32())),
    ],
)
def test_days_beyond_the_years_of_python_are_judged(type_: pa.DataType, transform: str, values: pa.Array) -> None:
    """Spark writes the year 12000; Python's dates end in 9999."""
    filter_ = made("x = '1970-01-01'", spec(0, (1, transform)), x=type_)
    assert kept(filter_, 0, values) == [False, True]


def test_far_day_beside_a_near_one_does_not_change_its_key() -> None:
    """A key is one key whatever batch it comes in: it is counted once, and found again."""
    filter_ = made("x = '1970-01-01'", spec(0, (1, "truncate[3]")), x=pa.date32())
    near, far = pa.array([5], INT).view(pa.date32()), pa.array([5, 1 << 30], INT).view(pa.date32())
    kept(filter_, 0, near)
    kept(filter_, 0, far)
    assert filter_.stats.eval_errors == 2


def test_matches_answers_as_judge_does_for_nan() -> None:
    by_f = spec(0, (5, "identity"))
    key = PartitionKey.of(by_f, (math.nan,))
    for sql in ("f = 5D", "f > 5D", "f = double('NaN')", "f IS NULL"):
        filter_ = made(sql, by_f)
        assert [filter_.matches(key)] == kept(made(sql, by_f), 0, pa.array([math.nan])), sql
        assert filter_.stats == FilterStats()


@pytest.mark.parametrize(
    "array",
    [
        pa.array([5], pa.timestamp("ns")),
        pa.array([5], pa.timestamp("ns", "UTC")),
        pa.array([5], pa.time64("ns")),
        pa.array([1 << 30], INT).view(pa.date32()),
        pa.array([1 << 60], pa.timestamp("us")),
    ],
    ids=lambda array: str(array.type),
)
def test_matches_reads_keys_that_python_has_no_value_for(array: pa.Array) -> None:
    by_x = spec(0, (1, "identity"))
    key = PartitionKey.of(by_x, tuple(module.plain_values(array)))
    for sql in ("x IS NULL", "x IS NOT NULL"):
        filter_ = made(sql, by_x, x=array.type)
        assert [filter_.matches(key)] == kept(made(sql, by_x, x=array.type), 0, array)
        assert filter_.stats == FilterStats()


def test_keys_are_equal_after_a_trip_to_another_process() -> None:
    """Groups and memos are keyed by them, on Spark's workers too."""
    by_f = spec(0, (5, "identity"))
    for values in ((math.nan,), (-0.0,), (None,), ("eu",), (date(2024, 1, 1),)):
        key = PartitionKey.of(by_f, values)
        again = pickle.loads(pickle.dumps(key))  # noqa: S301 - our own
        assert again == key
        assert hash(again) == hash(key)


def test_zero_of_either_sign_is_one_key_with_one_place() -> None:
    by_f = spec(0, (5, "identity"))
    one, two = PartitionKey.of(by_f, (0.0,)), PartitionKey.of(by_f, (-0.0,))
    assert one == two
    assert one.sort_key == two.sort_key


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.bool_(), True),
        (pa.int8(), 5),
        (pa.float32(), 0.5),
        (pa.decimal128(5, 2), Decimal("1.50")),
        (pa.decimal128(30, 2), Decimal("1.50")),
        (pa.date32(), date(2024, 1, 15)),
        (pa.string(), "é"),
        (pa.binary(), b"\xff"),
        (pa.binary(2), b"\xff\x00"),
        (pa.string(), None),
    ],
)
def test_matches_reads_keys_of_every_type(type_: pa.DataType, value: object) -> None:
    by_x = spec(0, (1, "identity"))
    for sql in ("x IS NULL", "x IS NOT NULL"):
        filter_ = made(sql, by_x, x=type_)
        array = pa.array([value], type_)
        assert [filter_.matches(PartitionKey.of(by_x, (value,)))] == kept(made(sql, by_x, x=type_), 0, array)
        assert filter_.stats == FilterStats()


def test_facts_of_further_columns_come_along() -> None:
    also = SCHEMA.columns[2]
    filter_ = MultiSpecPartitionFilter(bind(parse("region = 'eu'"), SCHEMA), (TRUNCATED,), also=[also])
    found = filter_.judge(4, struct(pa.array([10], INT)), 1)
    assert set(found.facts.domains) == {3}


def test_no_files_are_no_keys() -> None:
    filter_ = made("region = 'eu'")
    assert kept(filter_, 1, pa.array([], pa.string())) == []
    assert filter_.judge(0, None, 0).codes.tolist() == []
    assert filter_.stats == FilterStats(unevaluable_specs=1)


def test_buckets_are_told_apart_from_other_partitions() -> None:
    """A file that only its bucket excludes is credited to the bucket layer."""
    by_bucket = spec(0, (3, "bucket[16]"))
    found = made("id = 5", by_bucket).judge(0, struct(pa.array(range(16), INT)), 16)
    assert found.partition.possible.all()
    assert found.bucket.possible.sum() == 1


def test_two_fields_of_one_column_both_exclude() -> None:
    both = spec(0, (3, "truncate[10]"), (3, "bucket[16]"))
    filter_ = made("id = 25", both)
    found = filter_.judge(0, struct(pa.array([20] * 16, INT), pa.array(range(16), INT)), 16)
    assert found.bucket.possible.sum() == 1
    assert not kept(made("id = 25", both), 0, pa.array([30], INT), pa.array([3], INT))[0]


def test_field_without_a_source_says_nothing() -> None:
    """A transform of several columns has no single source."""
    assert kept(made("id = 5", spec(0, (None, "identity"))), 0, pa.array([7], INT)) == [True]


def test_equal_values_of_two_specs_are_two_keys() -> None:
    """Under identity 10 is 10, under truncate[10] any of 10 to 19: the memo of one must not decide the other."""
    filter_ = made("x = 15", spec(0, (1, "identity")), spec(1, (1, "truncate[10]")), x=INT)
    assert kept(filter_, 0, pa.array([10], INT)) == [False]
    assert kept(filter_, 1, pa.array([10], INT)) == [True]


@pytest.mark.parametrize("type_", [pa.time32("s"), pa.time32("ms"), pa.timestamp("s"), pa.timestamp("ms", "UTC")])
def test_key_of_a_coarse_clock_is_asked_in_the_column_s_own_unit(type_: pa.DataType) -> None:
    """Keys count in microseconds: taken for seconds, a key would be asked for another time, and lost."""
    spec = PartitionSpec(0, (PartitionField("t", 1, parse_transform("identity")),))
    second = "time '00:00:01'" if pa.types.is_time(type_) else "timestamp '1970-01-01 00:00:01'"
    asked = MultiSpecPartitionFilter(bind(parse(f"t = {second}"), Schema.of(t=type_)), [spec])
    assert asked.matches(PartitionKey(0, (1_000_000,)))
    assert not asked.matches(PartitionKey(0, (2_000_000,)))
