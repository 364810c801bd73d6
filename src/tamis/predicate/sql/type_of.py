"""What type a SQL expression has, and whether Spark's analyzer refuses one in it.

Law: a fault is told only where Spark refuses the expression whatever its values, by ANSI rules. What is not known has
no type, and nothing is said of it: that is so of most functions, and wherever sqlglot's tree may not be Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import pyarrow as pa
from pyarrow import types as pt
from sqlglot import exp

from tamis.predicate.compare.casts import ZONED
from tamis.predicate.compare.kinds import Kind, castable, clashing, kind_of
from tamis.predicate.sql.folding import CASTS, fold
from tamis.predicate.sql.terms import path_of
from tamis.predicate.sql.types import target
from tamis.predicate.sql.units import INTERVAL_MICROS, INTERVAL_MONTHS
from tamis.predicate.type_names import a_type, is_list

__all__ = ["TypeFaultError", "condition_fault", "type_of"]

Columns = Callable[[tuple[str, ...]], pa.DataType | None]
"""The type of a column, by its path; None if it is not known."""
Classes = tuple[type, ...]

_BOOLEAN, _NUMBER, _TEXT = pa.bool_(), pa.float64(), pa.string()
"""Of numbers only the kind matters here: any of them stands for all."""
_DAYS, _MONTHS, _ARRAY = pa.duration("us"), pa.month_day_nano_interval(), pa.list_(pa.null())
_NESTED: Final = {
    exp.DataType.Type.ARRAY: _ARRAY,
    exp.DataType.Type.STRUCT: pa.struct([]),
    exp.DataType.Type.MAP: pa.map_(pa.string(), pa.null()),
}
_COMPARISONS: Final[Classes] = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_PREDICATES: Final[Classes] = (*_COMPARISONS, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Is)
_NOT_READ: Final[Classes] = (exp.Query, exp.Lambda, exp.Kwarg, exp.Star, exp.Alias)
"""What has names of its own in it, or an order of its own."""
_JOINED: Final[Classes] = (exp.Connector, exp.Not)
_OPERATORS: Final[Classes] = (exp.Binary,)
_SUMS: Final[Classes] = (exp.Add, exp.Sub)
_PRODUCTS: Final[Classes] = (exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_CONDITION_KINDS: Final[set[Kind | None]] = {None, "void", "boolean", "text"}
_CASE_KINDS: Final[set[Kind | None]] = {None, "boolean"}
_NESTED_KINDS: Final[set[Kind | None]] = {"array", "struct", "map"}
_NUMBER_KINDS: Final[set[Kind | None]] = {"number", "text", "void"}
_DAY_KINDS: Final[set[Kind | None]] = {None, "void", "text", "moment"}
_PLAIN_KINDS: Final[set[Kind | None]] = {None, "void", "boolean", "number", "text", "binary", "moment", "time"}
_OF_DAYS: Final = {"year", "month", "quarter", "dayofyear", "weekofyear"}
_CONDITIONS: Final = {
    *("in", "and", "or", "not", "between", "like", "ilike", "rlike", "isnull", "isnotnull", "isnan", "equal_null"),
    *("startswith", "endswith", "contains", "array_contains", "exists", "forall"),
}
_OF_TEXTS: Final = {"startswith", "endswith", "contains", "like", "ilike", "rlike"}
_RESULTS: Final = {
    **dict.fromkeys(_CONDITIONS, _BOOLEAN),
    **dict.fromkeys(("date_add", "date_sub", "add_months", "make_date", "last_day", "trunc"), pa.date32()),
    **dict.fromkeys(("struct", "named_struct"), pa.struct([])),
    "array": _ARRAY,
    "date_trunc": ZONED,
}
"""What functions give whatever they are given."""
_FIRST_OF_ALL: Final = {"coalesce", "nvl", "ifnull"}


class TypeFaultError(Exception):
    """Why Spark refuses the types of an expression."""


def condition_fault(expression: exp.Expression, columns: Columns, *, alone: bool) -> str | None:
    """Why Spark refuses the expression as a condition; None if it may take it.

    alone says that nothing stands beside it: then Spark makes no truth value of a text.
    """
    try:
        type_ = type_of(expression, columns)
    except TypeFaultError as fault:
        return str(fault)
    except RecursionError:
        return None  # a sum of a thousand summands
    fits = type_ is None or kind_of(type_) in (_CONDITION_KINDS - {"text"} if alone else _CONDITION_KINDS)
    return None if fits or type_ is None else f"{a_type(type_)} stands as a condition"


def type_of(expression: exp.Expression, columns: Columns) -> pa.DataType | None:
    """The type of an expression; None if it is not known. TypeFaultError if Spark refuses what is in it."""
    if isinstance(expression, _NOT_READ) or _is_mixed(expression):
        return None
    if isinstance(expression, (exp.Column, exp.Dot)):
        path = path_of(expression)
        return None if path is None else columns(path)
    types = [type_of(child, columns) for child in _children(expression)]
    match expression:
        case exp.Paren():
            return types[0]
        case exp.Literal() | exp.Null() | exp.Boolean() | exp.HexString():
            literal = fold(expression)
            return None if literal is None else literal.type
        case exp.And() | exp.Or() | exp.Not():
            _check_conditions(types)
            return _BOOLEAN
        case exp.Cast():
            # A try_cast is safe, and refused all the same.
            return _cast(types[0], _target(expression.to))
        case exp.Interval():
            return _interval(expression)
        case exp.Array():
            return _ARRAY
        case exp.DPipe():
            kinds = {None if type_ is None else kind_of(type_) for type_ in types}
            return _TEXT if kinds <= {"void", "boolean", "number", "text", "moment"} else None
        case exp.Bracket():
            return _element(types[0])
        case exp.In() if expression.args.get("query") is None and expression.args.get("unnest") is None:
            _check_common(types, "compared with")
        case exp.Like() | exp.ILike() | exp.RegexpLike():
            _check_texts(types, "LIKE")
        case exp.Between():
            _check_common(types[:2], "compared with")
            _check_common([types[0], *types[2:]], "compared with")
        case _ if isinstance(expression, _COMPARISONS):
            _check_common(types, "compared with")
        case exp.Case():
            return _case(expression, columns)
        case exp.If():
            _check_conditions(types[:1], _CASE_KINDS | {"void"})
            return _common(types[1:], "in one IF with")
        case exp.Anonymous():
            return _function(expression.name.lower(), types)
        case exp.Neg():
            return _negated(types[0])
        case _ if isinstance(expression, (*_SUMS, *_PRODUCTS)):
            return _arithmetic(expression, types)
    return _BOOLEAN if isinstance(expression, _PREDICATES) else None


def _children(expression: exp.Expression) -> Iterable[exp.Expression]:
    """What is computed with; not the types that it is cast to."""
    if isinstance(expression, exp.Case):
        return ()  # read branch by branch
    return (child for child in expression.iter_expressions() if not isinstance(child, exp.DataType))


def _is_mixed(expression: exp.Expression) -> bool:
    """Whether operators follow each other without brackets of which Spark may apply another one first."""
    # The members of a list stand apart.
    inside = [expression.this] if isinstance(expression, exp.In) else list(expression.iter_expressions())
    if isinstance(expression, _PREDICATES):
        return any(isinstance(child, (*_PREDICATES, *_JOINED)) for child in inside)
    if isinstance(expression, (*_JOINED, exp.Dot)) or not isinstance(expression, _OPERATORS):
        return False
    plain: Classes = (type(expression),)
    if isinstance(expression, (*_SUMS, *_PRODUCTS)):
        plain = (*_SUMS, *_PRODUCTS) if isinstance(expression, _SUMS) else _PRODUCTS
    return any(isinstance(child, _OPERATORS) and not isinstance(child, (*plain, exp.Dot)) for child in inside)


def _check_conditions(types: Iterable[pa.DataType | None], kinds: set[Kind | None] = _CONDITION_KINDS) -> None:
    """All of the types are those of conditions: beside AND, OR and NOT Spark makes a truth value of a text."""
    for type_ in types:
        if type_ is not None and kind_of(type_) not in kinds:
            raise TypeFaultError(f"{a_type(type_)} stands as a condition")


def _check_common(types: list[pa.DataType | None], how: str) -> None:
    """All of the types can be brought to one."""
    known = [type_ for type_ in types if type_ is not None]
    for type_ in known:
        if how == "compared with" and kind_of(type_) == "map":
            raise TypeFaultError(f"{a_type(type_)} is compared, and Spark compares no maps")
    if clashing(map(kind_of, known)) is None:
        return
    for place, type_ in enumerate(known):
        for before in known[:place]:
            if clashing((kind_of(before), kind_of(type_))) is not None:
                raise TypeFaultError(f"{a_type(before)} is {how} {a_type(type_)}")


def _common(types: Iterable[pa.DataType | None], how: str) -> pa.DataType | None:
    """The type of values of which the first, or one of several, is taken."""
    listed = list(types)
    _check_common(listed, how)
    known = [type_ for type_ in listed if type_ is not None]
    if len(known) < len(listed):
        return None
    others = [type_ for type_ in known if kind_of(type_) not in {"void", "text"}]
    texts = [type_ for type_ in known if kind_of(type_) == "text"]
    return next(iter([*others, *texts, *known]), None)


def _cast(source: pa.DataType | None, to: pa.DataType | None) -> pa.DataType | None:
    if source is not None and to is not None and not castable(source, to):
        raise TypeFaultError(f"{a_type(source)} is cast to {a_type(to)}")
    return to


def _target(to: exp.DataType) -> pa.DataType | None:
    """As a literal may have it, or one of the others that casts name; of a nested type only the kind."""
    if isinstance(to.this, exp.Interval):
        return _interval(to.this)
    return target(to) or _NESTED.get(to.this)


def _element(type_: pa.DataType | None) -> pa.DataType | None:
    if type_ is not None and is_list(type_):
        return type_.value_type
    return type_.item_type if type_ is not None and pt.is_map(type_) else None


def _interval(interval: exp.Interval) -> pa.DataType | None:
    """Of days or of months; None if it says so in its text alone."""
    unit = interval.args.get("unit")
    first = unit.this if isinstance(unit, exp.IntervalSpan) else unit
    name = "" if first is None else first.name.lower().removesuffix("s")
    return _MONTHS if name in INTERVAL_MONTHS else _DAYS if name in INTERVAL_MICROS else None


def _case(case: exp.Case, columns: Columns) -> pa.DataType | None:
    tested = None if case.this is None else type_of(case.this, columns)
    values: list[pa.DataType | None] = []
    for branch in case.args["ifs"]:
        when = type_of(branch.this, columns)
        if case.this is None:
            _check_conditions([when], _CASE_KINDS)
        else:
            _check_common([tested, when], "compared with")
        values.append(type_of(branch.args["true"], columns))
    if (default := case.args.get("default")) is not None:
        values.append(type_of(default, columns))
    return _common(values, "in one CASE with")


def _function(name: str, types: list[pa.DataType | None]) -> pa.DataType | None:
    kinds = [None if type_ is None else kind_of(type_) for type_ in types]
    if name in CASTS and len(types) == 1 and not name.startswith("to_"):
        return _cast(types[0], CASTS[name])
    if name in _OF_TEXTS:
        _check_texts(types, name)
    if name == "equal_null":
        _check_common(types, "compared with")
    if name in _RESULTS:
        return _RESULTS[name]
    if name in _FIRST_OF_ALL:
        return _common(types, f"in one {name} with")
    if name == "abs" and len(types) == 1:
        return _negated(types[0])
    if name in {"left", "right"} and types:
        _check_texts(types[:1], name)
        return None if kinds[0] is None else types[0] if kinds[0] == "binary" else _TEXT
    if name == "nullif" and len(types) == 2:  # noqa: PLR2004 - the value, and what makes it NULL
        _check_common(types, "compared with")
        return types[0]
    if name in _OF_DAYS and len(types) == 1:
        _check_kind(types[0], kinds[0], _DAY_KINDS, name)
        return _NUMBER
    if name in {"lower", "upper"} and len(types) == 1:
        _check_kind(types[0], kinds[0], _PLAIN_KINDS, name)
        return _TEXT
    return _NUMBER if name in {"length", "size", "cardinality"} and len(types) == 1 else None


def _check_kind(type_: pa.DataType | None, kind: Kind | None, kinds: set[Kind | None], name: str) -> None:
    if type_ is not None and kind not in kinds:
        raise TypeFaultError(f"{name} is given {a_type(type_)}")


def _check_texts(types: Iterable[pa.DataType | None], name: str) -> None:
    """All of the types can be made text."""
    for type_ in types:
        if type_ is not None and kind_of(type_) in _NESTED_KINDS:
            raise TypeFaultError(f"{name} is given {a_type(type_)}")


def _negated(type_: pa.DataType | None) -> pa.DataType | None:
    kind = None if type_ is None else kind_of(type_)
    if type_ is not None and kind in {"boolean", "moment", "binary", "array", "struct", "map"}:
        raise TypeFaultError(f"{a_type(type_)} is computed with")
    return type_ if kind == "number" else None


def _arithmetic(expression: exp.Expression, types: list[pa.DataType | None]) -> pa.DataType | None:
    """Numbers, and texts that become numbers; dates and intervals are left alone, but for those that have no sum."""
    if len(types) != 2:  # noqa: PLR2004 - both sides
        return None
    kinds = [None if type_ is None else kind_of(type_) for type_ in types]
    if "number" in kinds and set(kinds) <= _NUMBER_KINDS:
        return _NUMBER
    if isinstance(expression, _SUMS) and "moment" in kinds and not {"days", "months"}.isdisjoint(kinds):
        return ZONED  # or a date: whatever a date is cast to, an instant is as well
    if isinstance(expression, _SUMS) and kinds == ["moment", "number"] and types[0] == pa.date32():
        return types[0]
    if isinstance(expression, exp.Sub) and kinds == ["moment", "moment"]:
        return _DAYS
    known = [type_ for type_ in types if type_ is not None]
    odd = {"boolean", "binary", "array", "struct", "map"}
    if isinstance(expression, _PRODUCTS):
        odd.add("moment")
    for type_ in known:
        if kind_of(type_) in odd:
            raise TypeFaultError(f"{a_type(type_)} is computed with")
    return None
