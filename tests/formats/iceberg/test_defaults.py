"""Initial defaults: every type's JSON as the format's specification has it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from tamis.formats.iceberg.defaults import default_scalar
from tamis.formats.iceberg.document import Misfit
from tamis.formats.iceberg.types import parse_schema

UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


@pytest.mark.parametrize(
    ("type_", "written", "value"),
    [
        (pa.bool_(), True, True),
        (pa.int32(), 34, 34),
        (pa.int64(), -(2**63), -(2**63)),
        (pa.float32(), 1, 1.0),
        (pa.float64(), -0.1, -0.1),
        (pa.decimal128(9, 2), "14.20", Decimal("14.20")),
        (pa.decimal128(38, 0), "-" + "9" * 38, Decimal("-" + "9" * 38)),
        (pa.date32(), "1500-02-28", date(1500, 2, 28)),
        (pa.time64("us"), "22:31:08.123456", time(22, 31, 8, 123456)),
        (pa.timestamp("us"), "2017-11-16T22:31:08.123456", datetime(2017, 11, 16, 22, 31, 8, 123456)),
        (pa.timestamp("us", "UTC"), "1969-12-31T23:00:00+00:00", datetime(1969, 12, 31, 23, tzinfo=UTC)),
        (pa.string(), "it's", "it's"),
        (pa.uuid(), UUID_TEXT, UUID(UUID_TEXT).bytes),
        (pa.binary(4), "78797A00", b"xyz\0"),
        (pa.binary(), "00ff", b"\0\xff"),
        (pa.binary(), "", b""),
        (pa.struct([("a", pa.int32())]), {}, {}),
        (pa.list_(pa.date32()), ["1500-02-28", None], [date(1500, 2, 28), None]),
        (pa.list_(pa.struct([("a", pa.int32())])), [{}], [{}]),
        (pa.map_(pa.int32(), pa.string()), {"keys": [1, 2], "values": ["a", None]}, [(1, "a"), (2, None)]),
    ],
)
def test_each_types_json_is_its_value(type_: pa.DataType, written: Any, value: object) -> None:  # noqa: ANN401
    found = default_scalar(type_, written)
    assert found is not None
    assert found.as_py() == value


def test_nanoseconds_are_kept() -> None:
    """Python's own times would cut them off."""
    found = default_scalar(pa.timestamp("ns"), "2017-11-16T22:31:08.123456789")
    assert found is not None
    assert found.value % 1000 == 789


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        (pa.int32(), "x"),
        (pa.int32(), 2**40),
        (pa.binary(2), "00ff00"),
        (pa.binary(), "0g"),
        (pa.date32(), "1500-02-30"),
        (pa.decimal128(3, 2), "12345.67"),
        (pa.uuid(), "no"),
        (pa.timestamp("us"), 5),
        (pa.struct([("a", pa.int32())]), {"1": 5}),
        (pa.struct([("a", pa.int32())]), []),
        (pa.list_(pa.int32()), {}),
        (pa.list_(pa.int32()), ["x"]),
        (pa.map_(pa.int32(), pa.int32()), {"keys": [1], "values": []}),
        (pa.map_(pa.int32(), pa.int32()), {}),
    ],
)
def test_json_of_another_type_is_an_error(type_: pa.DataType, written: Any) -> None:  # noqa: ANN401
    """A default that is guessed would be a wrong value in every old row."""
    with pytest.raises(ValueError, match="is no"):
        default_scalar(type_, written)


def test_a_wrong_default_is_refused_with_its_place_when_the_schema_is_parsed() -> None:
    """Whoever reads a field later may rely on its default."""
    amount = {"id": 3, "name": "amount", "required": False, "type": "int", "initial-default": "many"}
    with pytest.raises(Misfit, match="is not an int") as caught:
        parse_schema({"schema-id": 0, "fields": [amount]})
    assert caught.value.place == "fields[0].initial-default"


def test_unknown_types_have_no_default() -> None:
    """They are not read; other columns of the table are."""
    assert default_scalar(pa.null(), {"x": 1}) is None
    assert default_scalar(pa.int32(), None) is None
