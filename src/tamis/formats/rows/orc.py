"""The rows of an ORC file as Arrow, times exact.

pyarrow gives times as nanoseconds since 1970, which hold the years 1677 to 2262: others come out as some other time.
Where the file's own statistics do not rule those out, its times are read a second time as the seconds that are
stored. Law: a time is what its writer stored, to the microsecond, in UTC.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import numpy as np
import pyarrow as pa
from pyarrow import orc
from pyarrow import types as pt

from tamis.formats.errors import unreadable
from tamis.formats.rows.nested import rebuilt
from tamis.formats.rows.orc_footer import TIMES, OrcFooter, patched, read_footer, writer_zones
from tamis.formats.rows.orc_stripes import QuickStripes, quick_stripes

__all__ = ["OrcRows", "read_orc"]

_UTC: Final = frozenset({"", "UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu"})
"""Names of one zone; files without times name none."""
EPOCH: Final = 1_420_070_400
"""Seconds from 1970 to 2015, from which ORC counts them."""
_SPAN_MS: Final = 9_223_372_036_854 - 2 * 86_400_000
"""Milliseconds before and after 1970 that nanoseconds surely hold; bounds may be of a zone up to a day away."""


@dataclass(frozen=True, slots=True)
class OrcRows:
    """An ORC file."""

    path: str
    stream: BinaryIO
    file: orc.ORCFile
    schema: pa.Schema

    def batches(self, wanted: Sequence[int], nanos: Container[int] = ()) -> Iterator[pa.RecordBatch]:
        """These columns, by their places, of all rows in order: a stripe at a time.

        nanos are the places of columns whose times all are within the years of nanoseconds, and stay in them.
        """
        places = list(wanted)
        times = any(_has_time(self.schema.field(place).type) for place in places if place not in nanos)
        seconds = None
        footer = read_footer(self.stream)
        if times and not times_are_near(footer):
            if footer is None:
                raise unreadable(self.path, "it has times, and its footer is not understood: they may be any")
            seconds = orc.ORCFile(pa.PythonFile(patched(self.stream, footer), mode="r"))
        quick = quick_stripes(self.stream, footer)
        for stripe in range(self.file.nstripes):
            if not places:
                yield _rows(_stripe_rows(self.file, stripe, self.schema))
                continue
            batch = self._stripe(self.file, stripe, places) if quick is None else self._quickly(quick, stripe, places)
            if not times:
                yield batch
                continue
            stored = None if seconds is None else self._stripe(seconds, stripe, places)
            arrays = [
                batch.column(number)
                if place in nanos
                else exact(batch.column(number), None if stored is None else stored.column(number))
                for number, place in enumerate(places)
            ]
            fields = [field.with_type(array.type) for field, array in zip(batch.schema, arrays, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def check_zone(self) -> None:
        """ValueError unless the file says that the clock of its writer showed UTC."""
        footer = read_footer(self.stream)
        zones = None if footer is None else writer_zones(self.stream, footer)
        if zones is None or not zones <= _UTC:
            said = "a zone that its footer does not tell" if zones is None else ", ".join(sorted(zones - _UTC))
            raise ValueError(
                f"{self.path} cannot be read: it has times, and its writer's clock showed {said}: what is meant by "
                "them is not known. Read without these columns, or rewrite such files as Parquet with the table's "
                "own engine."
            )

    def _stripe(self, file: orc.ORCFile, stripe: int, places: Sequence[int]) -> pa.RecordBatch:
        """Columns of a stripe, in that order: the file gives them in its own."""
        batch = file.read_stripe(stripe, columns=sorted(set(places)))
        at = {place: number for number, place in enumerate(sorted(set(places)))}
        return batch.select([at[place] for place in places])

    def _quickly(self, quick: QuickStripes, stripe: int, places: Sequence[int]) -> pa.RecordBatch:
        """The same as _stripe of the file, which alone can tell what is wrong with it."""
        alone = quick.alone(stripe, places)
        if alone is not None:
            with suppress(pa.ArrowException, OSError):
                return self._stripe(orc.ORCFile(pa.BufferReader(alone)), 0, places)
        return self._stripe(self.file, stripe, places)


def times_are_near(footer: OrcFooter | None) -> bool:
    """Whether statistics prove that nanoseconds hold all times of a file."""
    if footer is None:
        return False
    for place, kind in enumerate(footer.kinds):
        if kind in TIMES:
            if place not in footer.extents:
                return False
            extent = footer.extents[place]
            if extent is not None and not (extent[0] > -_SPAN_MS and extent[1] < _SPAN_MS):
                return False
    return True


def read_orc(path: str, stream: BinaryIO) -> OrcRows:
    """The file. UnreadableMetadataError if it is damaged."""
    try:
        file = orc.ORCFile(stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r"))
        return OrcRows(path, stream, file, file.schema)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, str(error).partition("\n")[0]) from error


def exact(nanos: pa.Array, seconds: pa.Array | None) -> pa.Array:
    """The array with times of microseconds, of what was read twice; once if nanoseconds hold all of them."""
    if pt.is_timestamp(nanos.type):
        return _exact(nanos, seconds)
    if not _has_time(nanos.type):
        return nanos
    return rebuilt(nanos, seconds, exact)


def _exact(nanos: pa.Array, seconds: pa.Array | None) -> pa.Array:
    """A time is seconds * 10^9 + the rest, to a multiple of 2^64; what is left of it without the seconds is small."""
    counted = nanos.view(pa.int64()).to_numpy(zero_copy_only=False) if not nanos.null_count else _values(nanos)
    if seconds is None:
        micros = counted // 1000
    else:
        whole = _values(seconds) + EPOCH
        rest = (counted.view(np.uint64) - whole.view(np.uint64) * np.uint64(1_000_000_000)).view(np.int64)
        micros = whole * 1_000_000 + rest // 1000
    mask = nanos.is_null().to_numpy(zero_copy_only=False) if nanos.null_count else None
    return pa.array(micros, pa.int64(), mask=mask).view(pa.timestamp("us", nanos.type.tz))


def _values(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Numbers of 64 bits, zero where NULL."""
    return cast(
        "np.ndarray[tuple[int], np.dtype[np.int64]]",
        array.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False),
    )


def _has_time(kind: pa.DataType) -> bool:
    if pt.is_nested(kind):
        return any(_has_time(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pt.is_timestamp(kind))


def _stripe_rows(file: orc.ORCFile, stripe: int, schema: pa.Schema) -> int:
    """The rows of a stripe; pyarrow counts none where it reads no column."""
    return len(file.read_stripe(stripe, columns=[0])) if len(schema) else 0


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(count)], names=[""])
