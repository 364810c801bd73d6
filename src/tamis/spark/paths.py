"""Names on their way to Spark and back: paths as metadata has them, as a reader takes them, as Spark shows them.

Metadata has plain strings. A reader takes glob patterns. Spark shows URIs, with a scheme and with escapes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import UnreadableFileError
from tamis.formats.errors import shown

__all__ = ["as_shown", "canonical", "check_distinct", "check_visible", "pattern", "plain"]

_FOLDED: Final = r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*/(?:.*/)?(?:/|\.\.?/)"
_FOLDING: Final = frozenset({"file", "hdfs", "viewfs"})
"""File systems in which such a path leads to the same file."""
_GLOB: Final = re.compile(r"[{}\[\]*?\\]")
_FILE: Final = re.compile(r"^file:/*")
_URI: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(/.*)$")
"""Hadoop writes one without a host as hdfs:/x, and reads hdfs:///x as the same."""


def pattern(path: str) -> str:
    r"""The path as a pattern that matches it alone.

    >>> pattern("/a/b[1]*.parquet")
    '/a/b\\[1\\]\\*.parquet'
    """
    return _GLOB.sub(r"\\\g<0>", path)


def plain(escaped: str) -> str:
    r"""The one path that a pattern of ours matches.

    >>> plain(pattern("/a/b[1]*.parquet"))
    '/a/b[1]*.parquet'
    """
    return re.sub(r"\\(.)", r"\1", escaped)


def check_visible(paths: Sequence[str]) -> None:
    """UnreadableFileError for a file that Spark would leave out without a word: one with a hidden file's name."""
    for path in paths:
        name = path.rpartition("/")[2]
        if name.startswith((".", "_")) or name.endswith("._COPYING_"):
            raise UnreadableFileError(
                f"Spark's readers ignore files with such a name: {shown(path)}. "
                "Rewrite it with the table's own engine, which reads it.",
                path=shown(path),
                reason="hidden file name",
            )


def check_distinct(paths: pa.ChunkedArray, unknown: Collection[str]) -> None:
    """UnreadableFileError for an object that Hadoop's clients would take another for.

    To a store `a//b` and `a/b` are two names, to Hadoop one. unknown are paths of which nobody could tell that there
    is such an object: who writes through Hadoop may write that path into the metadata, and mean the other.
    """
    for path in paths.filter(pc.match_substring_regex(paths, _FOLDED)).to_pylist():
        if path not in unknown and path.partition("://")[0].lower() not in _FOLDING:
            raise UnreadableFileError(
                f"Spark's clients cannot ask a store for {shown(path)}: they shorten empty and dotted names, to "
                "that of another object. Rewrite the file with the table's own engine, under a plain name.",
                path=shown(path),
                reason="a name that Hadoop changes",
            )


def as_shown(paths: Sequence[str], listed: Sequence[str]) -> dict[str, str]:
    """For each path of the metadata its URI among those that Spark lists; UnreadableFileError if it is not there."""
    by_path = {canonical(unquote(uri)): uri for uri in listed}
    uris: dict[str, str] = {}
    without: dict[str, list[str]] | None = None
    for path in paths:
        uri = by_path.get(canonical(path))
        if uri is None:
            # A path without a scheme, or of HDFS without a host, lies in Spark's default file system.
            if without is None:
                without = {}
                for known, shown_as in by_path.items():
                    without.setdefault(_bare(known), []).append(shown_as)
            scheme = _no_host(path)
            candidates = [one for one in without.get(_bare(canonical(path)), []) if one.startswith(scheme)]
            if len(candidates) != 1:
                raise UnreadableFileError(
                    f"Spark does not list {shown(path)}, so its rows would be lost. "
                    "Check that the file system's settings of the session reach it.",
                    path=shown(path),
                    reason="not listed",
                )
            uri = candidates[0]
        uris[path] = uri
    return uris


def canonical(path: str) -> str:
    """One spelling for an unescaped path: a local file may come as /x, file:/x and file:///x."""
    local = _FILE.match(path)
    if local:
        return "/" + re.sub("//+", "/", path[local.end() :])
    uri = _URI.match(path)
    if uri:
        return f"{uri[1]}://{uri[2] or ''}{re.sub('//+', '/', uri[3])}"
    return re.sub("//+", "/", path)


def _no_host(path: str) -> str:
    """How the URI begins that Spark shows for a path without a host; for one with a host, nothing does."""
    uri = _URI.match(path)
    if uri is None:
        return ""
    return "no other" if uri[2] else f"{uri[1]}:"


def _bare(path: str) -> str:
    uri = _URI.match(path)
    return uri[3] if uri else path
