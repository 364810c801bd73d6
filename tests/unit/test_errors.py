"""Errors have one root and carry their facts."""

import pickle

import pytest

from tamis import errors
from tamis.errors import BindError, MissingDependency, ParseError, TamisError, UnevaluableError, UnknownSpecError

LEAVES = [getattr(errors, name) for name in errors.__all__ if name != "TamisError"]


@pytest.mark.parametrize("kind", LEAVES)
def test_every_error_is_caught_by_the_root(kind: type[TamisError]) -> None:
    with pytest.raises(TamisError):
        raise kind("what went wrong")


def test_facts_are_attributes() -> None:
    error = BindError("no column x", column="x", nearest=("y",))
    assert (error.column, error.nearest) == ("x", ("y",))
    assert error.facts == {"column": "x", "nearest": ("y",)}
    assert (str(error), error.message) == ("no column x", "no column x")


@pytest.mark.parametrize(
    "error",
    [
        UnknownSpecError("m", spec_id=7, known=(0, 1)),
        UnevaluableError("m", reason="r"),
        MissingDependency("m", package="pypaimon", extra="paimon"),
        ParseError("m", text="a =", line=1, column=3),
    ],
)
def test_declared_facts_are_there(error: TamisError) -> None:
    for name in type(error).__annotations__:
        assert getattr(error, name) == error.facts[name]


def test_error_survives_a_trip_to_another_process() -> None:
    """Spark's workers send errors back pickled."""
    error = pickle.loads(pickle.dumps(UnknownSpecError("a file has spec 7", spec_id=7, known=(0,))))  # noqa: S301 - our own
    assert isinstance(error, UnknownSpecError)
    assert (str(error), error.spec_id, error.known, error.facts) == (
        "a file has spec 7",
        7,
        (0,),
        {"spec_id": 7, "known": (0,)},
    )


def test_every_public_error_is_listed_and_described() -> None:
    kinds = {name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, Exception)}
    assert kinds == set(errors.__all__)
    assert all(kind.__doc__ for kind in LEAVES)
