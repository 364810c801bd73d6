"""A format whose partitioning never changes has no spec ids: it prunes by partition all the same, and shows none."""

import json

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import UnevaluableError, UnknownSpecError
from tamis.explain.listing import file_lines, verdict_lines
from tamis.predicate.bind import bind
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.files import FileBatch
from tamis.sieve.funnel import sift
from tamis.sieve.join.runtime import RuntimeFilter
from tamis.sieve.partitions import (
    MultiSpecPartitionFilter,
    PartitionField,
    PartitionKey,
    PartitionSpec,
    Undecoded,
)
from tamis.sieve.plan import ScanPlan
from tamis.sieve.sieve import Sieve
from tamis.sieve.transforms import parse_transform

SCHEMA = Schema.of(region=pa.string(), amount=pa.int32())
SPEC = PartitionSpec(None, (PartitionField("region", 1, parse_transform("identity")),))


def batch(*regions: str | None, undecoded: tuple[Undecoded, ...] = ()) -> FileBatch:
    return FileBatch(
        pa.array([f"f{place}" for place in range(len(regions))]),
        pa.array([100] * len(regions)),
        pa.array([1] * len(regions)),
        partition=pa.StructArray.from_arrays([pa.array(regions, pa.string())], ["region"]),
        undecoded=undecoded,
    )


def plan(sql: str, *batches: FileBatch, strict: bool = False, keys: RuntimeFilter | None = None) -> ScanPlan:
    filters = () if keys is None else (keys.bind(SCHEMA),)
    return sift(Sieve(bind(parse(sql), SCHEMA, sql=sql), (SPEC,), filters, strict=strict), batches).plan


def test_partition_prunes_without_a_spec_id() -> None:
    """Without this a table of such a format would be pruned by statistics alone."""
    found = plan("region = 'eu'", batch("eu", "us", None))
    assert found.files.select(["path", "spec_id", "partition", "verdict"]).to_pylist() == [
        {"path": "f0", "spec_id": None, "partition": "region=eu", "verdict": "all"}
    ]
    assert found.verdicts["layer"].to_pylist() == [None, "partition", "partition"]
    (stats,) = found.stats.specs
    assert (stats.spec_id, stats.files, stats.kept) == (None, 3, 1)
    assert json.loads(found.explain("json"))["stats"]["specs"][0]["spec_id"] is None


def test_join_keys_prune_without_a_spec_id() -> None:
    keys = RuntimeFilter.of(["region"], pa.array(["us"]))
    found = plan("true", batch("eu", "us"), keys=keys)
    assert found.files["path"].to_pylist() == ["f1"]


def test_listings_show_no_column_of_specs() -> None:
    found = plan("region = 'eu'", batch("eu", "us"))
    assert file_lines(found.files)[0].split() == ["verdict", "rows", "size", "deletes", "partition"]
    assert file_lines(found.files)[1].split() == ["all", "1", "100", "B", "-", "region=eu"]
    assert verdict_lines(found, found.verdicts)[0].split() == ["verdict", "pruned", "by", "partition"]
    assert "spec" not in found.explain()


def test_value_that_cannot_be_decoded_is_kept_and_noted_without_an_id() -> None:
    bad = Undecoded(0, np.array([False, True]), "bad text")
    found = plan("region = 'eu'", batch("us", "eu", undecoded=(bad,)))
    assert found.files["path"].to_pylist() == ["f1"]
    (note,) = found.stats.notes
    assert note.startswith("partition value ignored: the partition spec, partition field region, value ")
    with pytest.raises(UnevaluableError, match="the partition spec, partition field region"):
        plan("region = 'eu'", batch("us", "eu", undecoded=(bad,)), strict=True)


def test_file_without_a_spec_of_a_table_whose_specs_have_ids_is_not_judged_by_them() -> None:
    sieve = Sieve(bind(parse("region = 'eu'"), SCHEMA), (PartitionSpec(0, SPEC.fields),))
    assert sift(sieve, [batch("us")]).plan.stats.kept == 1
    judge = MultiSpecPartitionFilter(bind(parse("region = 'eu'"), SCHEMA), (PartitionSpec(0, SPEC.fields),))
    with pytest.raises(UnknownSpecError) as caught:
        judge.matches(PartitionKey(None, ("us",)))
    assert (caught.value.spec_id, caught.value.known) == (None, (0,))


def test_keys_are_told_apart_and_have_an_order() -> None:
    judge = MultiSpecPartitionFilter(bind(parse("region = 'eu'"), SCHEMA), (SPEC,))
    assert judge.matches(PartitionKey(None, ("eu",)))
    assert not judge.matches(PartitionKey(None, ("us",)))
    keys = [PartitionKey(1, ("a",)), PartitionKey(None, ("b",)), PartitionKey(None, ("a",)), PartitionKey(0, ("a",))]
    assert sorted(keys, key=lambda key: key.sort_key) == [keys[2], keys[1], keys[3], keys[0]]
