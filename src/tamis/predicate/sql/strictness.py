"""What Spark's parser refuses in an expression, though its words can be made sense of.

sqlglot reads more than Spark does, since it reads many dialects. Whatever is opaque reaches Spark as it is written:
what its parser refuses is refused here, before a plan is made of it. Queries in brackets are left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType as Kind

from tamis.predicate.compare.times import SPECIAL_DAYS, only_spark_reads, parse_date, parse_moment, parse_time
from tamis.predicate.keys import MAX_DIGITS
from tamis.predicate.sql.tokens import Words
from tamis.predicate.sql.units import INTERVAL_MICROS, INTERVAL_MONTHS

__all__ = ["check_words", "refused_type"]

Fault = tuple[int, str, str] | None
"""Where a fault stands, what it is, and what to write instead; None if there is none."""

_QUERY: Final = {Kind.SELECT, Kind.WITH, Kind.FROM, Kind.VALUES}
_COMPARISONS: Final = {Kind.EQ, Kind.NEQ, Kind.LT, Kind.LTE, Kind.GT, Kind.GTE, Kind.NULLSAFE_EQ}
_BEFORE_VALUE: Final = {*_COMPARISONS, Kind.PLUS, Kind.DASH, Kind.SLASH, Kind.MOD, Kind.DIV, Kind.DPIPE, None}
"""What stands before the beginning of a value; None is the beginning of the text."""
_BEFORE_CONDITION: Final = {*_BEFORE_VALUE, Kind.AND, Kind.OR, Kind.NOT}
_VALUE_ENDS: Final = {Kind.NUMBER, Kind.STRING, Kind.VAR, Kind.IDENTIFIER, Kind.R_PAREN, Kind.R_BRACKET}
_TYPE_WORDS: Final = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"}
_LITERALS: Final = {Kind.NUMBER, Kind.STRING}
_ENDS: Final = {Kind.R_PAREN, Kind.R_BRACKET, Kind.COMMA, None}
_TYPES: Final = SparkParser.TYPE_TOKENS
_UNITS: Final = {unit + plural for unit in (*INTERVAL_MONTHS, *INTERVAL_MICROS) for plural in ("", "s")}
_SPANS: Final = {
    "year": {"month"},
    "day": {"hour", "minute", "second"},
    "hour": {"minute", "second"},
    "minute": {"second"},
}
"""What may follow TO in an interval, by the unit before it."""
_YEARS_MONTHS: Final = re.compile(r"\s*[+-]?[0-9]+-([0-9]+)\s*")
_WORD: Final = re.compile(r"[^\W\d_]+")
_MONTHS: Final = 12
_INTERVAL_FORM: Final = "Write it as INTERVAL 3 DAYS, or as INTERVAL '1-2' YEAR TO MONTH."


def check_words(words: Words) -> None:
    """ParseError, with the place, at the first words that Spark's parser refuses."""
    index, end = 0, len(words.tokens)
    while index < end:
        kind = words.tokens[index].token_type
        if kind is Kind.L_PAREN and words.kind(index + 1) in _QUERY:
            index = words.closing[index]
        elif (check := _CHECKS.get(kind)) is not None and (fault := check(words, index)) is not None:
            raise words.error(*fault)
        index += 1


def refused_type(expression: exp.Expression) -> str | None:
    """Why Spark refuses a type that expression casts to; None if it has none such."""
    for type_ in expression.find_all(exp.DataType):
        sizes = [int(size.name) for size in type_.expressions if size.name.isdecimal()]
        if type_.this is exp.DataType.Type.DECIMAL and sizes:
            precision, scale = (*sizes, 0)[:2]
            if precision > MAX_DIGITS or scale > precision:
                return f"a decimal has at most {MAX_DIGITS} digits, and no more behind the point than in all"
    return None


def _before(words: Words, index: int) -> Kind | None:
    return words.kind(index - 1) if index else None


def _adjacent(words: Words, index: int) -> bool:
    """Whether the token at index begins where the one before it ends."""
    return words.tokens[index - 1].end + 1 == words.tokens[index].start


def _unknown(words: Words, index: int) -> Fault:
    return index, f"unexpected {words.tokens[index].text!r}", ""


def _national(_: Words, index: int) -> Fault:
    return index, "Spark has no strings of the form N'…'", "Leave out the N."


def _parameter(words: Words, index: int) -> Fault:
    """`${name}` is a variable of Spark's, put in before the text is parsed; any other parameter has no value."""
    variable = words.tokens[index].text == "$" and words.kind(index + 1) is Kind.L_BRACE
    return None if variable else _unbound(words, index)


def _unbound(words: Words, index: int) -> Fault:
    return index, f"unexpected {words.tokens[index].text!r}", "A condition has no parameters: write the value itself."


def _brace(words: Words, index: int) -> Fault:
    return None if _before(words, index) is Kind.PARAMETER else _unknown(words, index)


def _bracket(words: Words, index: int) -> Fault:
    """A bracket follows what it takes a part of."""
    opens = _before(words, index) in {*_BEFORE_CONDITION, Kind.L_PAREN, Kind.COMMA}
    return (index, "unexpected '['", "An array is written array(1, 2).") if opens else None


def _star(words: Words, index: int) -> Fault:
    return _unknown(words, index) if _before(words, index) in _BEFORE_CONDITION else None


def _colon(words: Words, index: int) -> Fault:
    """A path into a variant: `v:a.b`."""
    if _before(words, index) in {*_BEFORE_CONDITION, Kind.L_PAREN, Kind.COMMA}:
        return _unbound(words, index)
    return _unknown(words, index) if words.kind(index + 1) in {*_BEFORE_CONDITION, *_ENDS, Kind.COLON} else None


def _cast(words: Words, index: int) -> Fault:
    after = words.kind(index + 1)
    return (index, "a type is missing after '::'", "") if after in {*_LITERALS, *_ENDS, Kind.NULL} else None


def _dot(words: Words, index: int) -> Fault:
    """A name follows a dot, or a digit where the dot begins a number."""
    if words.kind(index + 1) is Kind.NUMBER:
        return None if _adjacent(words, index + 1) else _unknown(words, index)
    return (
        _unknown(words, index)
        if words.kind(index + 1) in {*_ENDS, *_BEFORE_VALUE, Kind.L_PAREN, Kind.DOT, Kind.STRING}
        else None
    )


def _comma(words: Words, index: int) -> Fault:
    """Something stands on both sides of a comma."""
    if _before(words, index) in {Kind.L_PAREN, Kind.COMMA, None} or words.kind(index + 1) in _ENDS:
        return index, "nothing stands on one side of ','", "Remove the comma, or write what is missing."
    return None


def _paren(words: Words, index: int) -> Fault:
    """Brackets with nothing in them are those of a call."""
    empty = words.kind(index + 1) is Kind.R_PAREN
    if empty and _before(words, index) in {*_BEFORE_CONDITION, Kind.L_PAREN, Kind.COMMA}:
        return index + 1, "a condition is expected before ')'", ""
    return None


def _string(words: Words, index: int) -> Fault:
    """Of the types' names only those of dates and times make a literal of a string, if it can be read as one."""
    if not index or _before(words, index - 1) is Kind.DOT:
        return None
    before, token = words.tokens[index - 1].text.upper(), words.tokens[index]
    if before in _TYPE_WORDS:
        readable = token.start in words.unsure or _is_read(before, token.text)
        return None if readable else (index, f"{token.text!r} is no {before.lower()}", "Check its format.")
    if _before(words, index) in _TYPES and before != "INTERVAL":
        return index, f"Spark has no literals of the form {before} '…'", f"Write it as cast('…' AS {before})."
    return None


def _is_read(word: str, text: str) -> bool:
    """Whether Spark reads the text of a typed literal."""
    day = text.strip().lower()
    if word == "DATE":
        return parse_date(text) is not None or day in SPECIAL_DAYS
    if word == "TIME":
        return parse_time(text) is not None or day.endswith(("am", "pm"))
    special = day.startswith(tuple(SPECIAL_DAYS)) or (word != "TIMESTAMP_NTZ" and only_spark_reads(text))
    return special or parse_moment(text) is not None


def _number(words: Words, index: int) -> Fault:
    before = _before(words, index)
    typed = before is not None and words.tokens[index - 1].text.upper() in _TYPE_WORDS
    if typed and _before(words, index - 1) is not Kind.DOT:
        return index, f"{words.tokens[index - 1].text} is followed by a number", "Write it as date '2024-01-15'."
    if before is Kind.DOT and words.tokens[index].text[-1].upper() in "LSY":
        return index, "an integer of a type has no point", "Write 5L, or 0.5."
    after_value = before is Kind.DOT and _before(words, index - 1) in _VALUE_ENDS  # else it is .5
    return _unknown(words, index) if before is Kind.NUMBER or after_value else None


def _comparison(words: Words, index: int) -> Fault:
    """Two signs of comparison are none; `>>` and `<<` shift."""
    before, kind = _before(words, index), words.kind(index)
    if before not in _COMPARISONS:
        return None
    return (
        None if before is kind and kind in {Kind.GT, Kind.LT} and _adjacent(words, index) else _unknown(words, index)
    )


def _not(words: Words, index: int) -> Fault:
    before = _before(words, index)
    if before in _COMPARISONS | {Kind.BETWEEN, Kind.PLUS, Kind.DASH, Kind.STAR, Kind.SLASH}:
        return index, f"NOT follows {words.tokens[index - 1].text!r}", "Put what it negates in brackets: x = (NOT y)."
    return None


def _quantifier(words: Words, index: int) -> Fault:
    """ANY, ALL and SOME are for LIKE, with a list in brackets; no comparison with a query takes them."""
    before, after = _before(words, index), words.kind(index + 1)
    if before in _COMPARISONS and after is Kind.L_PAREN and words.kind(index + 2) in _QUERY:
        return index, f"Spark has no {words.tokens[index].text} of a query", "Use IN, or a query that gives one row."
    if before in {Kind.LIKE, Kind.ILIKE} and after in _LITERALS:
        return index + 1, "a list in brackets is expected", "Write it as s LIKE ANY ('a%', 'b%')."
    return None


def _rlike(words: Words, index: int) -> Fault:
    """A regular expression escapes by itself, with a backslash."""
    for at in words.steps(index + 1, len(words.tokens)):
        if words.kind(at) is Kind.ESCAPE:
            return at, f"ESCAPE follows {words.tokens[index].text.upper()}", "Only LIKE and ILIKE take an ESCAPE."
        if words.kind(at) in {Kind.AND, Kind.OR, *_ENDS}:
            break
    return None


def _arrow(words: Words, index: int) -> Fault:
    """Of a lambda one parameter stands without brackets, two or three in them."""
    single = index > 2 and words.closing.get(index - 3) == index - 1  # noqa: PLR2004 - `( x )` before the arrow
    named = single and words.tokens[index - 3].token_type is Kind.L_PAREN
    return (index - 3, "a single parameter stands in brackets", "Write it as x -> x + 1.") if named else None


def _collate(words: Words, index: int) -> Fault:
    if words.kind(index + 1) is Kind.STRING:
        return index + 1, "COLLATE is followed by a name without quotes", ""
    return None


def _sized(words: Words, index: int) -> Fault:
    """VARCHAR and CHAR have a length, where they are types."""
    cast_to = _before(words, index) in {Kind.ALIAS, Kind.DCOLON}
    if cast_to and words.kind(index + 1) is not Kind.L_PAREN:
        return index, f"the type {words.tokens[index].text} needs a length", "Write it as varchar(10), or as string."
    return None


def _word(words: Words, index: int) -> Fault:
    """`extract(year FROM x)`, with the unit as a bare word."""
    if words.tokens[index].text.lower() != "extract" or words.kind(index + 1) is not Kind.L_PAREN:
        return None
    if words.kind(index + 2) is Kind.STRING or words.kind(index + 3) is Kind.COMMA:
        return (
            index + 2,
            "extract takes a unit and FROM",
            "Write it as extract(year FROM x), or date_part('year', x).",
        )
    return None


def _interval(words: Words, index: int) -> Fault:
    """INTERVAL, a count and a unit; a column or a function may have the name as well, and a type has no count."""
    if _before(words, index) in {Kind.ALIAS, Kind.DCOLON}:
        return None
    at = index + 1
    if words.kind(at) in {Kind.DASH, Kind.PLUS} and words.kind(at + 1) in _LITERALS:
        at += 1
    value, unit = words.kind(at), _name(words, at + 1)
    if value is Kind.VAR and at == index + 1:
        return at, "an interval's count is a number or a text", _INTERVAL_FORM
    if value not in _LITERALS:
        return None  # a name
    count = words.tokens[at].text
    if value is Kind.STRING and unit not in _UNITS:
        # INTERVAL '3 days'
        odd = [word for word in _WORD.findall(count.lower()) if word not in {*_UNITS, "interval"}]
        return (at, f"{odd[0]!r} is no unit of an interval", _INTERVAL_FORM) if odd else None
    if unit not in _UNITS:
        return at + 1, "an interval has a unit: from year to microsecond", _INTERVAL_FORM
    if value is Kind.NUMBER and "." in count and not unit.startswith("second"):
        return at, "only seconds have fractions in an interval", _INTERVAL_FORM
    if _name(words, at + 2) != "to":
        return None
    if _name(words, at + 3) not in _SPANS.get(unit, set()):
        return at + 3, f"an interval of {unit}s does not go to {_name(words, at + 3) or 'that'}", _INTERVAL_FORM
    written = _YEARS_MONTHS.fullmatch(count)
    if unit == "year" and (written is None or int(written[1]) >= _MONTHS):
        return at, f"{count!r} is no interval of years and months", _INTERVAL_FORM
    return None


def _name(words: Words, index: int) -> str:
    return words.tokens[index].text.lower() if index < len(words.tokens) else ""


_CHECKS: Final[dict[Kind, Callable[[Words, int], Fault]]] = {
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys((Kind.ANY, Kind.ALL, Kind.SOME), _quantifier),
    Kind.ARROW: _arrow,
    Kind.HASH: _unknown,
    Kind.RLIKE: _rlike,
    **dict.fromkeys((Kind.VARCHAR, Kind.CHAR), _sized),
    Kind.COLLATE: _collate,
    Kind.COLON: _colon,
    Kind.COMMA: _comma,
    Kind.DCOLON: _cast,
    Kind.DOT: _dot,
    Kind.INTERVAL: _interval,
    Kind.L_BRACE: _brace,
    Kind.L_BRACKET: _bracket,
    Kind.L_PAREN: _paren,
    Kind.NATIONAL_STRING: _national,
    Kind.NOT: _not,
    Kind.NUMBER: _number,
    Kind.PARAMETER: _parameter,
    **dict.fromkeys((Kind.PLACEHOLDER, Kind.DQMARK), _unbound),
    Kind.STAR: _star,
    Kind.STRING: _string,
    Kind.VAR: _word,
}
"""What is looked at, by the kind of the word that it begins with."""
