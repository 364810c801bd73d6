"""One predicate: a comparison, a list, a pattern, a range, or an expression that stands as a condition."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import pyarrow as pa
from pyarrow import types as pt
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType as Kind

from tamis.predicate.compare.kinds import clashing, kind_of
from tamis.predicate.compare.times import parse_date
from tamis.predicate.nodes import (
    And,
    Call,
    Compare,
    Constant,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Opaque,
    Operator,
    Or,
    Ref,
    StartsWith,
    Truth,
)
from tamis.predicate.sql.folding import fold
from tamis.predicate.sql.operands import Operand, Operands
from tamis.predicate.sql.terms import term
from tamis.predicate.sql.tokens import Words
from tamis.predicate.type_names import a_type

__all__ = ["Comparisons", "truth"]

_OPERATORS: Final[dict[Kind, Operator]] = {
    Kind.EQ: "=",
    Kind.NEQ: "!=",
    Kind.LT: "<",
    Kind.LTE: "<=",
    Kind.GT: ">",
    Kind.GTE: ">=",
    Kind.NULLSAFE_EQ: "<=>",
}
_TURNED: Final[dict[Operator, Operator]] = {
    "=": "=", "!=": "!=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip
_ORDERS: Final[dict[Operator, set[int]]] = {
    "=": {0}, "<=>": {0}, "!=": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1},
}  # fmt: skip
"""How the sides may compare where the operator is true."""
_NAME = re.compile(r"[\w.]+")
_NAN: Final = Literal(float("nan"), pa.float64())
_KEYWORDS = {Kind.IN, Kind.LIKE, Kind.ILIKE, Kind.RLIKE, Kind.BETWEEN, Kind.IS}


class Comparisons:
    """Reads predicates from ranges of tokens that hold no AND, OR or IS of their own."""

    def __init__(self, words: Words, operands: Operands, condition: Callable[[int, int], Node | None]) -> None:
        self.words = words
        self.operands = operands
        self.condition = condition
        """Reads what stands beside a truth value; None if it is too deep to look into."""

    def read(self, start: int, end: int) -> Node:
        """The node of a predicate; Opaque if it is not one on a term and literals."""
        words = self.words
        keyword = self.keyword(start, end)
        if keyword is None:
            return self._value(start, end)
        self._refuse_second(start, keyword, end)
        negated = words.kind(keyword - 1) is Kind.NOT
        left = keyword - negated
        node: Node | None = None
        # A keyword applies to a whole comparison before it: `a = b IN (...)` asks whether a truth value is listed.
        if not any(words.kind(index) in _OPERATORS for index in words.steps(start, left)):
            node = self._keyword(start, left, keyword, end)
        if node is None:
            return self.operands.opaque(start, end)
        return Not(node) if negated and words.kind(keyword + 1) not in {Kind.ANY, Kind.ALL, Kind.SOME} else node

    def keyword(self, start: int, end: int) -> int | None:
        """Where the IN, LIKE, BETWEEN or IS of a predicate stands; None if it has none."""
        words = self.words
        return next((i for i in words.steps(start, end) if i > start and words.kind(i) in _KEYWORDS), None)

    def _refuse_second(self, start: int, keyword: int, end: int) -> None:
        """Spark takes one keyword; a second one needs brackets around the first."""
        words = self.words
        second = next((i for i in words.steps(start, end) if i > keyword and words.kind(i) in _KEYWORDS), None)
        if second is not None:
            first, then = (words.tokens[index].text.upper() for index in (keyword, second))
            raise words.error(
                second, f"{then} follows {first}", "Spark takes one of them: put the first in brackets."
            )

    def _keyword(self, start: int, left: int, keyword: int, end: int) -> Node | None:
        """The node of `start...left [NOT] keyword ...end`, before the NOT."""
        match self.words.kind(keyword):
            case Kind.IN:
                return self._in(start, left, keyword + 1, end)
            case Kind.LIKE | Kind.ILIKE:
                return self._like(start, left, keyword + 1, end)
            case Kind.BETWEEN:
                return self._between(start, left, keyword + 1, end)
            case Kind.IS:
                return self._distinct(start, keyword, end)
        return None

    def _value(self, start: int, end: int) -> Node:
        """A comparison, or a value alone."""
        words = self.words
        signs = [index for index in words.steps(start, end) if words.kind(index) in _OPERATORS]
        node: Node | None = None
        match signs:
            case []:
                node = self._bare(start, end)
            case [at]:
                node = self._comparison(start, at, at + 1, end)
            case [*_, at]:
                # Signs of comparison are read from left to right: `i = 5 = true` is `(i = 5) = true`.
                node = self._truth(_OPERATORS[words.tokens[at].token_type], (start, at), (at + 1, end))
        return node or self.operands.opaque(start, end)

    def _comparison(self, start: int, at: int, right: int, end: int) -> Node | None:
        """A term against a literal, or a condition in brackets against a truth value, in either order."""
        operator = _OPERATORS[self.words.tokens[at].token_type]
        node = compare(operator, self.operands.read(start, at), self.operands.read(right, end))
        if node is None and self._bracketed(start, at):
            node = self._truth(operator, (start, at), (right, end))
        elif node is None and self._bracketed(right, end):
            node = self._truth(_TURNED[operator], (right, end), (start, at))
        return node

    def _bracketed(self, start: int, end: int) -> bool:
        return self.words.kind(start) is Kind.L_PAREN and self.words.closing[start] == end - 1

    def _truth(self, operator: Operator, condition: tuple[int, int], value: tuple[int, int]) -> Node | None:
        """A condition compared with TRUE, FALSE or NULL; None if it is none, or not compared with one."""
        literal = self.operands.read(*value)
        if not isinstance(literal, Literal) or not (pt.is_boolean(literal.type) or pt.is_null(literal.type)):
            return None
        node = self.condition(*condition)
        # What only Spark understands need not be a truth value at all.
        return None if node is None or isinstance(node, Opaque) else truth(node, operator, literal.value)

    def _bare(self, start: int, end: int) -> Node | None:
        match self.operands.read(start, end):
            case Ref() | Call() as operand:
                return operand
            case Literal(value=bool() | None as value):
                return Constant(value)
            case Literal(type=type_):
                if type_ != pa.string() and not self._asks_for_null(end):
                    what = f"{a_type(type_)} stands as a condition"
                    raise self.words.error(start, what, "Compare it with a value.")
                return None  # of a text Spark makes a truth value
        return _function(self.operands.expression(start, end)) if self.operands.plain(start, end) else None

    def _asks_for_null(self, at: int) -> bool:
        """Whether IS [NOT] NULL follows."""
        words = self.words
        return words.kind(at) is Kind.IS and Kind.NULL in {words.kind(at + 1), words.kind(at + 2)}

    def _in(self, start: int, left: int, listed: int, end: int) -> Node | None:
        words = self.words
        tested = self.operands.read(start, left)
        if words.kind(listed) is not Kind.L_PAREN or words.closing[listed] != end - 1:
            raise words.error(listed, "IN is followed by a list in brackets", "Write it as x IN (1, 2).")
        if listed + 1 == end - 1:
            raise words.error(end - 1, "the list of IN is empty", "Give it a value at least.")
        if words.kind(listed + 1) in {Kind.SELECT, Kind.WITH, Kind.FROM, Kind.VALUES} or not isinstance(
            tested, (Ref, Call)
        ):
            return None
        if listed + 1 in words.lists:
            return In(tested, words.lists[listed + 1])
        members = self._list(listed, end)
        return None if members is None else In(tested, members)

    def _list(self, start: int, end: int) -> tuple[Literal, ...] | None:
        """The literals in brackets; None if one of them is none."""
        commas = [index for index in self.words.steps(start + 1, end - 1) if self.words.kind(index) is Kind.COMMA]
        starts, ends = [start, *commas], [*commas, end - 1]
        members: list[Literal] = []
        for before, stop in zip(starts, ends, strict=True):
            member = self.operands.read(before + 1, stop)
            if not isinstance(member, Literal):
                return None
            members.append(member)
        return tuple(members)

    def _like(self, start: int, left: int, pattern: int, end: int) -> Node | None:
        words = self.words
        tested = self.operands.read(start, left)
        other = words.kind(pattern - 1) is Kind.ILIKE  # only Spark knows the case of every letter
        if other and words.kind(pattern) in {Kind.ANY, Kind.ALL, Kind.SOME}:
            return None
        if words.kind(pattern) in {Kind.ANY, Kind.ALL, Kind.SOME}:
            return self._likes(tested, pattern, end, negated=words.kind(left) is Kind.NOT)
        stop = next((i for i in words.steps(pattern, end) if words.kind(i) is Kind.ESCAPE and i > pattern), end)
        escape = "\\" if stop == end else self._escape(stop + 1, end)
        return None if other else _like(tested, self.operands.read(pattern, stop), escape)

    def _escape(self, start: int, end: int) -> str:
        operand = self.operands.read(start, end)
        text = operand.value if isinstance(operand, Literal) and operand.type == pa.string() else None
        if not isinstance(text, str) or len(text) != 1:
            raise self.words.error(start, "ESCAPE is followed by one character", "Write it as ESCAPE '!'.")
        return text

    def _likes(self, tested: Operand, quantifier: int, end: int, *, negated: bool) -> Node | None:
        """LIKE ANY is the OR of LIKEs, ALL their AND; a NOT before it belongs to each LIKE."""
        words = self.words
        if words.kind(quantifier + 1) is not Kind.L_PAREN or words.closing[quantifier + 1] != end - 1:
            return None
        patterns = self._list(quantifier + 1, end)
        likes = [_like(tested, pattern, "\\") for pattern in patterns or ()]
        nodes = [Not(like) if negated else like for like in likes if like is not None]
        if not nodes or len(nodes) < len(likes):
            return None
        if len(nodes) == 1:
            return nodes[0]
        return And(tuple(nodes)) if words.kind(quantifier) is Kind.ALL else Or(tuple(nodes))

    def _between(self, start: int, left: int, low: int, end: int) -> Node | None:
        """`x BETWEEN a AND b` is `x >= a AND x <= b`; a bound that is no literal is opaque by itself."""
        words = self.words
        middle = next((index for index in words.steps(low, end) if words.kind(index) is Kind.AND), None)
        if middle is None:
            raise words.error(end, "BETWEEN lacks its AND", "Write it as x BETWEEN 1 AND 2.")
        if any(words.kind(index) in _OPERATORS for index in words.steps(low, end)):
            return None
        tested, least, most = (self.operands.read(*r) for r in ((start, left), (low, middle), (middle + 1, end)))
        sides = (compare(">=", tested, least), compare("<=", tested, most))
        match sides:
            case None, None:
                return None
            case None, Compare() as upper:
                return And((self._bound(start, left, ">=", low, middle), upper))
            case Compare() as lower, None:
                return And((lower, self._bound(start, left, "<=", middle + 1, end)))
            case (Compare() | Constant()) as lower, (Compare() | Constant()) as upper:
                return And((lower, upper))
        return None

    def _bound(self, start: int, left: int, operator: str, low: int, end: int) -> Opaque:
        """One side of a BETWEEN, in brackets unless it is a name."""
        sides = self.operands.opaque(start, left), self.operands.opaque(low, end)
        tested, bound = (side.sql if _NAME.fullmatch(side.sql) else f"({side.sql})" for side in sides)
        columns = dict.fromkeys((*sides[0].refs, *sides[1].refs))
        return Opaque(f"{tested} {operator} {bound}", tuple(columns))

    def _distinct(self, start: int, at: int, end: int) -> Node | None:
        """`IS NOT DISTINCT FROM` is `<=>`."""
        words = self.words
        negated = words.kind(at + 1) is Kind.NOT
        if words.kind(at + 2 + negated) is not Kind.FROM:
            raise words.error(at + 2 + negated, "DISTINCT lacks its FROM", "Write it as x IS DISTINCT FROM 1.")
        right = at + 3 + negated
        if any(words.kind(index) in _OPERATORS for index in words.steps(right, end)):
            return None
        node = compare("<=>", self.operands.read(start, at), self.operands.read(right, end))
        return node if negated or node is None else Not(node)


def truth(node: Node, operator: Operator, value: object) -> Node:
    """The condition that compares the truth of another; FALSE is less than TRUE, and NULL stays NULL.

    >>> truth(Ref(("b",)), "<", value=True)
    Not(operand=Ref(path=('b',)))
    """
    if value is None and operator == "<=>":
        return Truth(node, None)
    if value is None:
        # NULL whatever the condition is, which stays to be bound: its columns and its types have to exist.
        return Or((And((Truth(node, value=True), Constant(None))), Constant(None)))
    if operator == "<=>":
        return Truth(node, bool(value))
    wanted = {held for held in (False, True) if (held > bool(value)) - (held < bool(value)) in _ORDERS[operator]}
    if len(wanted) == 1:
        return node if True in wanted else Not(node)
    # Of both, or of neither: but of what is unknown it is unknown.
    return Or((node, Not(node))) if wanted else And((node, Not(node)))


def compare(operator: Operator, left: Operand, right: Operand) -> Node | None:
    """A term against a literal, in either order, or two literals if they certainly compare; else None."""
    match left, right:
        case ((Ref() | Call()), Literal()):
            return Compare(operator, left, right)
        case Literal(), (Ref() | Call()):
            return Compare(_TURNED[operator], right, left)
        case Literal(), Literal():
            return _constant(operator, left, right)
    return None


def _constant(operator: Operator, left: Literal, right: Literal) -> Constant | None:
    if clashing((kind_of(left.type), kind_of(right.type))) is not None:
        return None  # Spark refuses it: so does whoever binds it
    if left.value is None or right.value is None:
        return Constant(left.value is right.value if operator == "<=>" else None)
    order = _order(left, right)
    return None if order is None else Constant(order in _ORDERS[operator])


def _order(left: Literal, right: Literal) -> int | None:
    """-1, 0 or 1 as left is less, equal or greater; None if Spark would cast, or only a session can tell."""
    match left.value, right.value:
        case bool(a), bool(b):
            return a - b
        case (bool(), _) | (_, bool()):
            return None
        case ((int() | Decimal() as x), (int() | Decimal() as y)):
            return (x > y) - (x < y)
        case bytes(c), bytes(d):
            return (c > d) - (c < d)
        case str(s), str(t) if left.type == right.type == pa.string():
            # Python compares code points, Spark UTF-8 bytes: the order is the same.
            return (s > t) - (s < t)
        case str(s), str(t) if left.type == right.type == pa.date32():
            first, second = parse_date(s), parse_date(t)
            return None if first is None or second is None else (first > second) - (first < second)
    return None


def _like(tested: Operand, pattern: Operand, escape: str) -> Node | None:
    match tested, pattern:
        case ((Ref() | Call()), Literal(value=str(text), type=type_)) if type_ == pa.string():
            return Like(tested, text, escape) if _well_escaped(text, escape) else None
    return None


def _well_escaped(pattern: str, escape: str) -> bool:
    """Spark refuses, row by row, a pattern that escapes anything but %, _ and the escape itself."""
    index = 0
    while index < len(pattern):
        if pattern[index] == escape:
            index += 1
            if pattern[index : index + 1] not in {"%", "_", escape}:
                return False
        index += 1
    return True


def _function(expression: exp.Expression) -> Node | None:
    """A function that is a condition; None if it is not known."""
    if not isinstance(expression, exp.Anonymous):
        return None
    match expression.name.lower(), expression.expressions:
        case "startswith", [tested, prefix]:
            operand, literal = term(tested), fold(prefix)
            if operand is not None and literal is not None and isinstance(literal.value, (str, bytes)):
                return StartsWith(operand, literal) if literal.type in {pa.string(), pa.binary()} else None
        case "isnull", [tested]:
            operand = term(tested)
            return None if operand is None else IsNull(operand)
        case "isnotnull", [tested]:
            operand = term(tested)
            return None if operand is None else Not(IsNull(operand))
        case "isnan", [tested]:
            # FALSE of NULL, as `<=>` is; what is no float becomes a double, as beside one.
            operand = term(tested)
            return None if operand is None else Compare("<=>", operand, _NAN)
        case "equal_null", [left, right]:
            return compare("<=>", _side(left), _side(right))
    return None


def _side(expression: exp.Expression) -> Operand:
    return term(expression) or fold(expression)
