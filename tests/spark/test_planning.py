"""Planning on the executors gives the local plan: the same files, in the same order, with the same counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import ExecutorError, TamisError, UnevaluableError, UnreadableMetadataError
from tamis.sieve.join.bloom import Bloom
from tamis.sieve.order import encode
from tamis.spark import planning
from tests.making.evolved_tables import evolved, odd
from tests.making.parts import kept, said, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

PREDICATES = (
    None,
    "id = 205",
    "id between 100 and 210",
    "id not in (1, 2, 3, 207)",
    "area = 'eu'",
    "area is null",
    "area is not null and id < 30",
    "area in ('uk', 'nowhere') or score > 35",
    "ts >= '2024-03-01T00:00:00'",
    "ts < '2024-01-03T00:00:00' and area = 'us'",
    "score is null",
    "score between 10 and 19",
    "not (area = 'eu' or score < 20)",
    "id = -1",
    "id >= 0",
    "area like 'u%' and ts > '2024-02-02T00:00:00'",
    "cast(ts as date) = date '2024-01-01'",
)


def _bloom(values: list[int]) -> tamis.RuntimeFilter:
    bloom = Bloom.sized(len(values), of_bytes=False)
    bloom.add(encode(pa.array(values, pa.int64()), pa.int64()).keys)
    return tamis.RuntimeFilter.of_bloom("id", bloom, min(values), max(values), type=pa.int64())


FILTERS: dict[str, list[tamis.RuntimeFilter]] = {
    "keys": [tamis.RuntimeFilter.of("id", pa.array([3, 111, 222, None, 330]))],
    "range": [tamis.RuntimeFilter.of_range("score", 10, 14)],
    "bloom": [_bloom([8, 120, 401])],
    "tuples": [
        tamis.RuntimeFilter.of(["id", "area"], {"id": pa.array([4, 101, 205]), "area": pa.array(["eu", "us", "us"])})
    ],
    "several": [
        tamis.RuntimeFilter.of("area", pa.array(["eu", "us"])),
        tamis.RuntimeFilter.of_range("ts", None, None),
    ],
    "nothing": [tamis.RuntimeFilter.of("id", pa.array([], pa.int64()))],
    "null safe": [tamis.RuntimeFilter.of("area", pa.array([None, "uk"]), null_safe=True)],
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("planned here [and] there {1,2}")
    return {"evolved": evolved(folder / "evolved"), "odd": odd(folder / "odd")}


def assert_same(spark: SparkSession, metadata: str, where: str | None, filters: list[tamis.RuntimeFilter]) -> None:
    table = tamis.open(metadata)
    here = table.plan(where, runtime_filters=filters, spark=spark, executors="never")
    there = table.plan(where, runtime_filters=filters, spark=spark, executors="always")
    assert there.stats.notes[-1] == planning.NOTE
    assert said(there) == said(here)
    assert there.files.equals(here.files)
    assert kept(there) == kept(here)
    mine = here.verdicts.filter(pc.field("verdict") != "none")
    assert there.verdicts.equals(mine)


ATOMS = st.one_of(
    st.builds("id {} {}".format, st.sampled_from(["=", "<", ">=", "!=", "<=>"]), st.integers(-5, 420)),
    st.builds("id in ({}, {})".format, st.integers(0, 420), st.integers(0, 420)),
    st.builds(
        "area {} '{}'".format, st.sampled_from(["=", "<", ">=", "!="]), st.sampled_from(["eu", "uk", "us", "x"])
    ),
    st.builds("score between {} and {}".format, st.integers(0, 40), st.integers(0, 40)),
    st.builds("ts {} '2024-0{}-0{}T0{}:00:00'".format, st.sampled_from(["<", ">="]), *[st.integers(1, 4)] * 3),
    st.sampled_from(["area is null", "score is not null", "area like 'u%'", "year(ts) = 2024", "score % 3 = 1"]),
)
WHERES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=5,
)
KEYS = st.lists(
    st.one_of(
        st.lists(st.integers(-5, 420), max_size=6).map(
            lambda ids: tamis.RuntimeFilter.of("id", pa.array(ids, pa.int64()))
        ),
        st.sampled_from([keys for some in FILTERS.values() for keys in some]),
    ),
    max_size=2,
)


@pytest.mark.parametrize("name", ["evolved", "odd"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=WHERES, filters=KEYS)
def test_generated_plan_shared_out_is_the_plan_of_one_process(
    tables: dict[str, str], name: str, where: str, filters: list[tamis.RuntimeFilter]
) -> None:
    """Whatever is asked, whatever cannot be judged: parts that share nothing add up to the whole."""
    table = tamis.open(tables[name])
    here, there = table.plan(where, runtime_filters=filters), shared_out(table, where, filters)
    assert said(there) == said(here)
    assert there.files.equals(here.files)
    assert kept(there) == kept(here)


@pytest.mark.parametrize("where", PREDICATES)
def test_predicate_planned_there_gives_the_plan_made_here(
    spark: SparkSession, tables: dict[str, str], where: str | None
) -> None:
    assert_same(spark, tables["evolved"], where, [])


@pytest.mark.parametrize("name", FILTERS)
def test_runtime_filters_planned_there_give_the_plan_made_here(
    spark: SparkSession, tables: dict[str, str], name: str
) -> None:
    assert_same(spark, tables["evolved"], "score >= 5 or score is null", FILTERS[name])


@pytest.mark.parametrize("where", PREDICATES[4:10])
def test_what_nobody_can_judge_is_counted_once_however_many_tasks_meet_it(
    spark: SparkSession, tables: dict[str, str], where: str
) -> None:
    """The same partition keys and notes come up in several units: the counts are of distinct ones."""
    assert_same(spark, tables["odd"], where, FILTERS["keys"])
    plan = tamis.open(tables["odd"]).plan(where, spark=spark, executors="always")
    assert plan.stats.filter_stats.unevaluable_specs == 1 or "ts" not in where


def test_plan_that_has_waves_tells_progress_and_stays_in_order(
    spark: SparkSession, tables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "WAVE_BYTES", 50_000)
    told: list[tuple[int, int]] = []
    table = tamis.open(tables["odd"])
    there = table.plan("id >= 0", spark=spark, executors="always", progress=lambda *args: told.append(args))
    assert there.files.equals(table.plan("id >= 0").files)
    assert len(told) > 2
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]


def test_small_table_stays_here_and_a_large_one_goes(
    spark: SparkSession, tables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tamis.open(tables["evolved"])
    assert planning.NOTE not in table.plan(spark=spark).stats.notes
    monkeypatch.setattr(planning, "MOST_LOCAL_FILES", 10)
    assert planning.NOTE in table.plan(spark=spark).stats.notes
    assert planning.NOTE not in table.plan(spark=spark, executors="never").stats.notes


def test_strict_planning_fails_there_as_it_does_here(spark: SparkSession, tables: dict[str, str]) -> None:
    table = tamis.open(tables["odd"])
    errors = [failure(table, spark, executors, where="area = 'eu'", strict=True) for executors in ("never", "always")]
    assert isinstance(errors[0], UnevaluableError)
    assert (type(errors[1]), errors[1].message, errors[1].facts) == (
        type(errors[0]),
        errors[0].message,
        errors[0].facts,
    )


def failure(table: tamis.Table, spark: SparkSession, executors: Any, **options: Any) -> TamisError:  # noqa: ANN401
    with pytest.raises(TamisError) as caught:
        table.plan(spark=spark, executors=executors, **options)
    return caught.value


@pytest.mark.parametrize("damage", ["cut", "gone", "garbage"])
def test_unreadable_manifest_is_the_same_error_there(spark: SparkSession, tmp_path: Path, damage: str) -> None:
    """Whoever reads a manifest, its error names it and says what is wrong with it."""
    metadata = evolved(tmp_path / "t")
    table = tamis.open(metadata)
    where = "id = 205"
    first = table.source.list(table.plan(where).sieve).units[0].locations[0]
    path = Path(first.removeprefix("file://"))
    match damage:
        case "cut":
            path.write_bytes(path.read_bytes()[:-40])
        case "gone":
            path.unlink()
        case _:
            path.write_bytes(path.read_bytes()[:600].ljust(path.stat().st_size, b"x"))
    here, there = (failure(table, spark, executors, where=where) for executors in ("never", "always"))
    assert isinstance(here, UnreadableMetadataError)
    assert (type(there), there.message) == (type(here), here.message)


def test_manifest_with_characters_of_a_pattern_in_its_name_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes paths for patterns, and shows them as URIs: a name must come through both."""
    assert_same(spark, odd(tmp_path / "t", "50% of [it] {a,b}*? + ü#1"), "area = 'eu'", [])


def test_second_session_of_an_application_is_sent_the_same_again(spark: SparkSession, tables: dict[str, str]) -> None:
    """Both have one context on classic Spark, which must not take the second zip for another of the same name."""
    for session in (spark, spark.newSession()):
        plan = tamis.open(tables["evolved"]).plan("id = 205", spark=session, executors="always")
        assert planning.NOTE in plan.stats.notes


def test_manifest_that_spark_hides_is_planned_here_and_said_or_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark ignores files that begin with an underscore: silently, and with them the files that they list."""
    table = tamis.open(odd(tmp_path / "t", "_hidden"))
    monkeypatch.setattr(planning, "MOST_LOCAL_FILES", 10)
    plan = table.plan(spark=spark)
    assert plan.files.equals(table.plan().files)
    assert "planned by this process alone" in plan.stats.notes[-1]
    with pytest.raises(ExecutorError, match="executors='auto'"):
        table.plan(spark=spark, executors="always")


def test_word_that_is_none_of_the_three_is_refused(spark: SparkSession, tables: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="'auto', 'always', 'never'"):
        tamis.open(tables["evolved"]).plan(spark=spark, executors="sometimes")  # type: ignore[arg-type]
