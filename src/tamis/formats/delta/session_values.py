"""Partition values of which engines make different things, as Spark's connector reads them: for rows, not for plans.

A plan keeps such a file whatever is asked. Its rows have a value all the same, which no file holds: that of the
connector, a cast of the text in the zone of the session. Law: a value is what Spark's cast gives, or it is not given.
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
from pyarrow import types as pt

from tamis.formats.delta.text_values import HIVE_NULL
from tamis.predicate.compare.casts import cast
from tamis.predicate.compare.times import parse_date, parse_moment
from tamis.predicate.compare.zones import Zone
from tamis.predicate.nodes import Literal
from tamis.predicate.type_names import is_bytes, is_text
from tamis.sieve.order import mask_of

__all__ = ["read_texts"]

_WHOLE: Final = re.compile(r"([+-]?[0-9]+)\.[0-9]*")
_FLOAT_MARK: Final = re.compile(r"(.*[0-9.])[dDfF]")


def read_texts(texts: pa.Array, type_: pa.DataType, zone: Zone | None) -> tuple[pa.Array, pa.Array]:
    """The value of each text, and whether it has one, which may be NULL. zone is the session's, if it is known."""
    encoded = texts.dictionary_encode()
    values, known = [], []
    for text in encoded.dictionary.to_pylist():
        found = _read(text, type_, zone)
        known.append(found is not None)
        values.append(None if found is None else found.value)
    given = pa.array(values, pa.int64() if pt.is_temporal(type_) and not pt.is_date(type_) else _plain(type_))
    given = given.view(type_) if pt.is_temporal(type_) else given
    at = encoded.indices
    return given.take(at), pa.array(mask_of(pa.array(known, pa.bool_()).take(at).fill_null(False)))  # noqa: FBT003


def _plain(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if pt.is_date32(type_) else type_


def _read(text: str, type_: pa.DataType, zone: Zone | None) -> Literal | None:
    """The value, times as numbers since 1970; None if it is not sure what Spark makes of the text."""
    if is_text(type_):
        return Literal(text, type_)
    if is_bytes(type_):
        return Literal(text.encode(), type_)
    if text in {"", HIVE_NULL}:
        return Literal(None, type_)
    if pt.is_date32(type_):
        days = parse_date(text)
        return None if days is None else Literal(days, type_)
    if pt.is_timestamp(type_):
        return _moment(text, type_, zone)
    stripped = text.strip(" ")
    if pt.is_integer(type_) and (whole := _WHOLE.fullmatch(stripped)):
        stripped = whole[1]  # Spark cuts a fraction of zero or more
    elif pt.is_floating(type_) and (marked := _FLOAT_MARK.fullmatch(stripped)):
        stripped = marked[1]
    return cast(Literal(stripped, pa.string()), type_)


def _moment(text: str, type_: pa.DataType, zone: Zone | None) -> Literal | None:
    found = parse_moment(text)
    if found is None:
        return None
    if type_.tz is None:
        return Literal(found.wall, type_)  # a zone in it is left out
    session = found.zone if zone is None else zone
    if session is None:
        return None
    first, last = found.instants(session)
    return Literal(first, type_) if first == last else None
