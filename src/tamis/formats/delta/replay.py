"""The files that are left at a version: the newest action of each logical file wins, and it has to be an add.

Commits after a checkpoint are read whole, here; a checkpoint's files are then those of its adds that no later commit
has touched. Law: what a later commit removed, or added again, is never taken from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.formats.delta.actions import file_actions
from tamis.formats.delta.checkpoints import check_vectors, vectors_of
from tamis.formats.delta.keys import file_keys
from tamis.formats.errors import unreadable
from tamis.predicate.arrays import Int64s
from tamis.sieve.order import mask_of

__all__ = ["Tail", "left_over", "replay", "untouched"]


@dataclass(frozen=True, slots=True)
class Tail:
    """What the commits after a checkpoint did, all together."""

    adds: pa.StructArray
    """The files that they added and that are still there, in the order of the log."""
    touched: pa.Array
    """The keys of all files that they added or removed."""


def replay(texts: Mapping[str, bytes], partition_columns: Sequence[str]) -> Tail:
    """What commits did, given in the order of their versions."""
    actions = file_actions(texts, partition_columns)
    add, remove = (actions[name].combine_chunks() for name in ("add", "remove"))
    if pc.any(pc.and_(add.is_valid(), remove.is_valid())).as_py():
        raise unreadable(list(texts)[-1], "a line in it, or before it, has both an add and a remove action")
    rows, keys, is_add = [], [], []
    for action, adds in ((add, True), (remove, False)):
        places = np.flatnonzero(action.is_valid().to_numpy(zero_copy_only=False))
        mine = action.take(pa.array(places))
        if mine.field("path").null_count:
            raise unreadable(list(texts)[-1], "an add or remove action in it, or before it, has no path")
        check_vectors(next(reversed(list(texts)), ""), mine)
        rows.append(places)
        keys.append(file_keys(mine.field("path"), vectors_of(mine)))
        is_add.append(np.full(len(places), adds))
    order = np.argsort(np.concatenate(rows), kind="stable")
    places, added = np.concatenate(rows)[order], np.concatenate(is_add)[order]
    every = pa.concat_arrays(keys).take(pa.array(order))
    last = _last(every)
    alive = np.sort(places[last][added[last]])
    return Tail(add.take(pa.array(alive)), every.take(pa.array(last)))


def _last(keys: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The place of the last of each key, ascending."""
    codes = keys.dictionary_encode()
    found = np.full(len(codes.dictionary), -1, np.int64)
    np.maximum.at(found, codes.indices.to_numpy(), np.arange(len(keys)))
    return np.sort(found)


def left_over(add: pa.StructArray, touched: pa.Array) -> pa.StructArray:
    """Those of a checkpoint's files that no later commit has touched."""
    kept = untouched(add.field("path"), vectors_of(add), touched)
    return add if kept is None else add.take(pa.array(kept))


def untouched(paths: pa.Array, vectors: pa.Array | None, touched: pa.Array) -> Int64s | None:
    """The places of the files that no later commit has touched; None if that is all of them."""
    if not len(touched) or not len(paths):
        return None
    gone = mask_of(pc.is_in(file_keys(paths, vectors), value_set=touched))
    return np.flatnonzero(~gone) if gone.any() else None
