"""`tamis inspect` of a format that has no spec ids, no aim for file sizes and one kind of deletes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tamis.cli.inspect import _lines
from tamis.formats.inspection import (
    ColumnInspection,
    DeleteKind,
    Deletes,
    Fact,
    Inspection,
    SpecField,
    SpecInspection,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArkInspection(Inspection):
    """What a toy format adds."""

    logs: int

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (Fact("log", f"{self.logs} files", after="location", bytes=2048), Fact("deck", "1", after="data"))

    @property
    def delete_kinds(self) -> tuple[DeleteKind, ...]:
        return ("vectors",)


def found(*specs: SpecInspection) -> ArkInspection:
    return ArkInspection(
        table="t",
        format="ark v1",
        location="/t",
        snapshot_id=12,
        snapshot_ms=0,
        operation="WRITE",
        columns=1,
        target_file_size=None,
        small_below=None,
        specs=specs,
        properties={},
        schema=(ColumnInspection("id", "bigint"),),
        logs=3,
    )


def test_facts_of_a_format_stand_behind_those_that_all_have() -> None:
    one = SpecInspection(
        None, current=True, fields=(SpecField("id", "identity", "id"),), files=2, rows=5, bytes=2048,
        deletes=Deletes(vectors=1, rows=2, bytes=40),
    )  # fmt: skip
    assert "\n".join(_lines(found(one))).splitlines() == [
        "table     t",
        "format    ark v1",
        "location  /t",
        "log       3 files, 2.0 KiB",
        "snapshot  12, made by WRITE at 1970-01-01 00:00:00 UTC",
        "columns   1",
        "data      2 files, 5 rows, 2.0 KiB, 1.0 KiB on average",
        "deck      1",
        "deletes   1 vector, 40 B",
        "",
        "partitioned by  files  rows     size  average  vectors",
        "id                  2     5  2.0 KiB  1.0 KiB        1",
        "",
        "schema",
        "  id  bigint",
    ]


def test_document_has_the_fields_of_the_format_and_null_for_what_it_lacks() -> None:
    document = json.loads(json.dumps(found(SpecInspection(None, current=True, fields=())).to_dict()))
    assert (document["logs"], document["small_below"], document["specs"][0]["spec_id"]) == (3, None, None)
    assert document["total"]["files"] == 0
