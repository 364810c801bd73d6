"""The types of what is left to Spark, checked before a plan is made.

Law: a condition is refused only if Spark's analyzer refuses it. Of files that a plan drops, or takes whole, Spark
never sees a row: what it would refuse must not prune anything, in no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tamis.errors import BindError
from tamis.predicate.nodes import Call, Compare, In, IsNull, Like, Node, Opaque, StartsWith, operands_of
from tamis.predicate.schema import Schema
from tamis.predicate.sql.operands import Operands
from tamis.predicate.sql.rendering import render, shortened
from tamis.predicate.sql.tokens import read
from tamis.predicate.sql.type_of import condition_fault

__all__ = ["check_types"]

MAX_TEXT = 10_000
"""Longest text, in characters, whose types are looked at: a longer one is a list, and is parsed once at most."""


def check_types(root: Node, schema: Schema, *, case_sensitive: bool = False) -> None:
    """BindError if the types of an opaque condition, or of a function of a column, are none to Spark."""

    def column(path: tuple[str, ...]) -> pa.DataType | None:
        try:
            found, whole = schema.read(path, case_sensitive=case_sensitive)
        except BindError:
            return None  # of a query, or of a lambda
        return found.type if whole else None

    for node in _looked_at(root):
        sql = node.sql if isinstance(node, Opaque) else render(node)
        if len(sql) > MAX_TEXT:
            continue
        words = read(sql)
        operands, end = Operands(words), len(words.tokens)
        if not operands.plain(0, end):
            continue
        fault = condition_fault(operands.expression(0, end), column, alone=node is root)
        if fault is not None:
            raise BindError(
                f"Spark refuses {shortened(sql)!r}: {fault}. Cast one side, or write a value of the other type.",
                column=None,
                nearest=(),
            )


def _looked_at(root: Node) -> Iterator[Node]:
    """The conditions that binding does not check, each once."""
    todo, seen = [root], set()
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        todo.extend(reversed(operands_of(node)))
        of_call = isinstance(node, (Compare, In, IsNull, Like, StartsWith)) and isinstance(node.term, Call)
        if isinstance(node, Opaque) or of_call:
            yield node
