"""Errors have one root, declare their fields, and cannot be made without them."""

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_type_hints

import pytest

from tamis import errors
from tamis.errors import AmbiguousTableError, BindError, NoSuchTableError, TamisError, UnsupportedValueError

ROOT = Path(__file__).parents[2]
LEAVES = [getattr(errors, name) for name in errors.__all__ if name != "TamisError"]

by_kind = pytest.mark.parametrize("kind", LEAVES)


def facts_of(kind: type[TamisError]) -> dict[str, object]:
    """Some value for each field."""
    return {name: (name, number) for number, name in enumerate(kind.fields)}


@by_kind
def test_error_with_all_its_fields_is_caught_by_the_root(kind: type[TamisError]) -> None:
    with pytest.raises(TamisError, match="what went wrong") as caught:
        raise kind("what went wrong", **facts_of(kind))
    error = caught.value
    assert (str(error), error.message, error.args) == ("what went wrong",) * 2 + (("what went wrong",),)
    assert error.facts == facts_of(kind) == {name: getattr(error, name) for name in kind.fields}


@by_kind
def test_error_without_one_of_its_fields_cannot_be_made(kind: type[TamisError]) -> None:
    """Who reads the field would get an AttributeError in place of the error."""
    assert kind.fields, "an error without facts makes callers read its text"
    for name in kind.fields:
        facts = facts_of(kind)
        del facts[name]
        with pytest.raises(TypeError, match=rf"{kind.__name__} takes message, .*\b{name}\b.*, and was given"):
            kind("m", **facts)


@pytest.mark.parametrize("kind", [TamisError, *LEAVES])
def test_error_with_a_field_that_it_does_not_declare_cannot_be_made(kind: type[TamisError]) -> None:
    for foreign in ("colour", "facts", "fields", "args"):
        with pytest.raises(TypeError, match=rf"and was given .*\b{foreign}\b"):
            kind("m", **facts_of(kind), **{foreign: 1})
    with pytest.raises(TypeError):
        kind(**facts_of(kind))  # type: ignore[call-arg] # no message


def test_fields_are_those_that_the_class_and_its_bases_annotate() -> None:
    assert (NoSuchTableError.fields, AmbiguousTableError.fields) == (("table",), ("table", "candidates", "reason"))
    for kind in LEAVES:
        assert set(kind.fields) == set(get_type_hints(kind)) - {"message", "fields"}


def test_field_with_a_default_or_with_a_taken_name_cannot_be_declared() -> None:
    """A default would let an error be made without the field; a field called `args` would replace Python's own."""
    with pytest.raises(TypeError, match="default"):

        class _Lax(TamisError):
            path: str = ""

    with pytest.raises(TypeError, match="name of something else"):

        class _Clash(TamisError):
            args: tuple[str]  # type: ignore[assignment]


def same(a: TamisError, b: TamisError) -> bool:
    return (type(a), repr(a), a.facts, str(a), vars(a)) == (type(b), repr(b), b.facts, str(b), vars(b))


@by_kind
def test_error_survives_a_trip_to_another_process_and_a_copy(kind: type[TamisError]) -> None:
    """Spark's workers send errors back pickled; a lost field would be an AttributeError on the driver."""
    error = kind("went wrong\x1b[1m\n  here", **facts_of(kind))
    error.add_note("on executor 3")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert same(pickle.loads(pickle.dumps(error, protocol)), error)  # noqa: S301 - our own
    assert same(copy.copy(error), error)
    assert same(copy.deepcopy(error), error)


def test_deep_copy_shares_no_fact_with_its_error_and_a_copy_shares_all() -> None:
    error = UnsupportedValueError("m", column=None, nearest=(), value=[1])
    deep, flat = copy.deepcopy(error), copy.copy(error)
    assert deep.value == error.value
    assert deep.value is not error.value
    assert flat.value is error.value


def test_repr_of_an_error_makes_it_again() -> None:
    error = BindError("no column x", column="x\x1b", nearest=("y",))
    assert repr(error) == "BindError('no column x', column='x\\x1b', nearest=('y',))"
    assert same(eval(repr(error)), error)  # noqa: S307 - our own


# -- the source ------------------------------------------------------------------------------------------------


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py")}


@cache
def declared() -> dict[str, tuple[str, ...]]:
    """Every error below the root by name, those of single modules too, with its fields."""
    found = {"TamisError": ()} | {kind.__name__: kind.fields for kind in LEAVES}
    classes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in classes:  # until nothing is new, whatever the order
        for node in classes:
            bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in found]
            own = (part.target.id for part in node.body if isinstance(part, ast.AnnAssign))
            if bases and node.name not in found:
                found[node.name] = (*found[bases[0]], *own)
    return found


def made() -> Iterator[tuple[str, str, ast.Call]]:
    """Every place in the source that makes an error: where, of which kind, and how."""
    kinds = declared()
    for path, tree in trees().items():
        for node in ast.walk(tree):
            name = node.func if isinstance(node, ast.Call) else None
            called = name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else ""
            if isinstance(node, ast.Call) and called in kinds:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", called, node


def test_every_error_in_the_source_is_made_with_its_fields() -> None:
    """Also where no test comes by. That the values have the declared types, mypy sees."""
    kinds, calls = declared(), list(made())
    assert len(calls) > 80, "the search finds too little"
    wrong = [
        f"{where}: {kind}"
        for where, kind, call in calls
        if len(call.args) != 1 or {part.arg for part in call.keywords} != set(kinds[kind])
    ]
    assert not wrong


def test_no_error_in_the_source_says_nothing_by_an_empty_text() -> None:
    """What is not known is None, and the type of the field says so."""
    empty = [
        f"{where}: {kind}.{part.arg}"
        for where, kind, call in made()
        for part in call.keywords
        if isinstance(part.value, ast.Constant) and part.value.value == ""
    ]
    assert not empty


@by_kind
def test_reference_lists_the_error_with_its_fields(kind: type[TamisError]) -> None:
    text = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{kind.__name__}` \| .+ \| (.*) \|$", text, re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [list(kind.fields)]


def test_every_public_error_is_listed_and_described() -> None:
    kinds = {name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, Exception)}
    assert kinds == set(errors.__all__)
    assert all(kind.__doc__ for kind in LEAVES)
