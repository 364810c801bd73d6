"""What tells one logical file of a table from another: its path and the deletion vector that applies to it.

The path in an action is a URI, relative to the table or absolute. Writers may escape the same path in two ways, so
that paths are compared unescaped, as the bytes that they name.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.sieve.order import mask_of

__all__ = ["file_keys", "file_path", "vector_ids"]

_LOCAL: Final = re.compile(rb"file:/+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def file_keys(paths: pa.Array, vectors: pa.Array | None) -> pa.Array:
    """A key for each logical file: two are equal only if they are the same file with the same vector."""
    keys = _unescaped(paths)
    if vectors is None or vectors.null_count == len(vectors):
        return keys
    # A file without a vector has its path for a key, whatever files it comes with. No path has a NUL in it.
    ids = pc.binary_join_element_wise("\0", vector_ids(vectors), "", null_handling="emit_null").fill_null("")
    return pc.binary_join_element_wise(keys, ids.cast(pa.binary()), pa.scalar(b"", pa.binary()))


def vector_ids(vectors: pa.Array) -> pa.Array:
    """The protocol's unique id of each deletion vector, null where there is none."""
    kind, where, offset = (vectors.field(name) for name in ("storageType", "pathOrInlineDv", "offset"))
    at = pc.binary_join_element_wise("@", offset.cast(pa.string()), "", null_handling="emit_null").fill_null("")
    found = pc.binary_join_element_wise(kind, where, at, "", null_handling="emit_null")
    return pc.if_else(_there(vectors), found, pa.scalar(None, pa.string()))


def _there(vectors: pa.Array) -> pa.Array:
    """Where there is a vector: readers of Parquet may give a struct of nulls for none."""
    return pc.and_(vectors.is_valid(), vectors.field("storageType").is_valid())


def _unescaped(paths: pa.Array) -> pa.Array:
    """The bytes that each path names. A folder has many files: it is unescaped once."""
    found = paths.cast(pa.binary())
    odd = mask_of(pc.or_(pc.match_substring(paths, "%"), pc.starts_with(paths, "file:")))
    if not odd.any():
        return found
    parts = pc.split_pattern(paths.filter(pa.array(odd)), "/", max_splits=1, reverse=True)
    words, ends = parts.flatten(), np.cumsum(pc.list_value_length(parts).to_numpy())
    names = words.take(pa.array(ends - 1))
    lone = np.diff(ends, prepend=0) == 1
    folders = pc.if_else(pa.array(lone), "", words.take(pa.array(np.maximum(ends - 2, 0)))).dictionary_encode()
    heads = [_plain(one) for one in folders.dictionary.to_pylist()]
    tails = names.cast(pa.binary())
    escaped = mask_of(pc.match_substring(names, "%"))
    if escaped.any():
        mine = [unquote_to_bytes(one) for one in names.filter(pa.array(escaped)).to_pylist()]
        tails = pc.replace_with_mask(tails, pa.array(escaped), pa.array(mine, pa.binary()))
    slash = pa.array([b"" if one else b"/" for one in lone.tolist()], pa.binary())
    whole = pc.binary_join_element_wise(
        pa.array(heads, pa.binary()).take(folders.indices), slash, tails, pa.scalar(b"", pa.binary())
    )
    return pc.replace_with_mask(found, pa.array(odd), whole)


def _plain(folder: str) -> bytes:
    """A folder unescaped; of this machine's, which has three spellings, the path alone."""
    return (
        _LOCAL.sub(b"/", unquote_to_bytes(folder), count=1)
        if folder.startswith("file:")
        else unquote_to_bytes(folder)
    )


def file_path(root: str, path: str) -> str:
    """Where a file is: the path of an action unescaped, under the table's root unless it is absolute.

    >>> file_path("/t", "p=a%20b/x.parquet"), file_path("s3://b/t", "s3://c/x%25.parquet"), file_path("/t", "/y")
    ('/t/p=a b/x.parquet', 's3://c/x%.parquet', '/y')
    """
    plain = unquote_to_bytes(path).decode("utf-8", "surrogateescape")
    if path.startswith("/") or _URI.match(path):
        return plain
    return f"{root.rstrip('/')}/{plain}"
