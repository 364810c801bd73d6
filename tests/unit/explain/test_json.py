"""A plan for programs: one JSON object, with the same numbers as the text."""

import json

import pyarrow as pa

from tamis.explain.json import SCHEMA_VERSION
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve

SCHEMA = Schema.of(ts=pa.timestamp("us", "UTC"), amount=pa.int32(), s=pa.string())


def plan(sql: str, zone: str = "UTC") -> ScanPlan:
    batch = FileBatch(pa.array(["a", "b"]), pa.array([1, None], pa.int64()), pa.array([1, 0]))
    keys = RuntimeFilter.of("amount", [7]).bind(SCHEMA)
    return sift(Sieve(bind(parse(sql), SCHEMA, time_zone=zone), runtime_filters=(keys,)), [batch]).plan


def test_document_has_the_keys_that_scripts_rely_on() -> None:
    found = json.loads(plan("ts > '2024-01-01' AND amount > 5", "Europe/Paris").explain("json"))
    assert set(found) >= {"version", "predicate", "runtime_filters", "stats"}
    assert found["version"] == SCHEMA_VERSION == 1
    assert found["predicate"]["parts"] == ["ts > '2024-01-01'", "amount > 5"]
    assert (found["predicate"]["time_zone"], found["predicate"]["zone_dependent"]) == ("Europe/Paris", True)
    assert len(found["runtime_filters"]) == 1


def test_numbers_are_the_plan_s_own() -> None:
    made = plan("amount > 5")
    found = json.loads(made.explain("json"))["stats"]
    assert found == json.loads(json.dumps(made.stats.to_dict()))
    assert (found["files"], found["kept"]) == (2, 1)
    assert [layer["layer"] for layer in found["layers"]] == ["manifest", "partition", "bucket", "stats", "runtime"]
    assert not json.loads(made.explain("json"))["predicate"]["zone_dependent"]


def test_letters_of_every_script_stay_readable() -> None:
    assert "naïve 😀" in plan("s = 'naïve 😀'").explain("json")


def test_filter_s_numbers_are_there_for_programs() -> None:
    (found,) = json.loads(plan("true").explain("json"))["stats"]["runtime_filters"]
    assert list(found) == [
        "text",
        "columns",
        "keys",
        "exact",
        "collect_seconds",
        "files",
        "bytes",
        "dropped",
        "dropped_bytes",
        "idle",
    ]
    assert (found["keys"], found["collect_seconds"], found["columns"]) == (1, None, ["amount"])
    assert set(found["dropped"]) == set(found["dropped_bytes"]) == {"manifest", "partition", "bucket", "stats"}
    assert found["idle"] == "no statistics for amount in these files"
