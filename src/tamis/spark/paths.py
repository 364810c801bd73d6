"""Names on their way to Spark and back: paths as metadata has them, as a reader takes them, as Spark shows them.

Metadata has plain strings. A reader takes glob patterns. Spark shows URIs, with a scheme and with escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from tamis.errors import UnreadableFileError
from tamis.formats.errors import shown

__all__ = ["as_shown", "canonical", "check_visible", "pattern", "plain", "quoted"]

_GLOB: Final = re.compile(r"[{}\[\]*?\\]")
_FILE: Final = re.compile(r"^file:/*")
_URI: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)$")


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


def as_shown(paths: Sequence[str], listed: Sequence[str]) -> dict[str, str]:
    """For each path of the metadata its URI among those that Spark lists; UnreadableFileError if it is not there."""
    by_path = {canonical(unquote(one)): one for one in listed}
    found: dict[str, str] = {}
    without: dict[str, list[str]] | None = None
    for path in paths:
        uri = by_path.get(canonical(path))
        if uri is None:
            # A path without a scheme lies in Spark's default file system, whichever that is.
            if without is None:
                without = {}
                for one, shown_as in by_path.items():
                    without.setdefault(_bare(one), []).append(shown_as)
            candidates = without.get(path, [])
            if len(candidates) != 1:
                raise UnreadableFileError(
                    f"Spark does not list {shown(path)}, so its rows would be lost. "
                    "Check that the file system's settings of the session reach it.",
                    path=shown(path),
                    reason="not listed",
                )
            uri = candidates[0]
        found[path] = uri
    return found


def quoted(name: str) -> str:
    """A column's name as Spark's expressions take it.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def canonical(path: str) -> str:
    """One spelling for an unescaped path: a local file may come as /x, file:/x and file:///x."""
    local = _FILE.match(path)
    if local:
        return "/" + re.sub("//+", "/", path[local.end() :])
    uri = _URI.match(path)
    if uri:
        return f"{uri[1]}://{uri[2]}{re.sub('//+', '/', uri[3])}"
    return re.sub("//+", "/", path)


def _bare(path: str) -> str:
    uri = _URI.match(path)
    return uri[3] if uri else path
