"""Claim: conditions as programs make them cost in proportion to their length.

A list of 1,000,000 values becomes a bound predicate in less than 5 seconds as SQL text, and in less than 2 as a
Python list or an array. An OR of 4,000 pairs of columns is parsed, bound and judged against 100,000 files in less
than 5. A table of 300 specs, each of which still names all fields before it, is planned in less than 10. The peer for
lists is PyIceberg: its own parser and binding, on fewer values and extrapolated by count, which is kind to it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyiceberg import types
from pyiceberg.expressions import In
from pyiceberg.expressions.parser import parse as peer_parse
from pyiceberg.expressions.visitors import bind as peer_bind
from pyiceberg.schema import Schema as IcebergSchema

import tamis
from bench.harness import Claim, best_of, main, require
from bench.iceberg_tables.specs import FILES, many_specs
from tamis.predicate.bind import bind
from tamis.predicate.bound import BoundPredicate, Leaf
from tamis.predicate.build import col
from tamis.predicate.nodes import Node
from tamis.predicate.schema import Schema
from tamis.predicate.sql.parse import parse
from tamis.sieve.domain import ColumnStats, Facts, stats_domain
from tamis.sieve.judge import Verdicts, judge

VALUES, PEER_VALUES = 1_000_000, 2_000
BRANCHES, JUDGED = 4_000, 100_000
SPECS = 300
SCHEMA = Schema.of(id=pa.int64(), name=pa.string(), x=pa.int32(), y=pa.int32())
PEER_SCHEMA = IcebergSchema(
    types.NestedField(1, "id", types.LongType()), types.NestedField(2, "name", types.StringType())
)
PEER = f"PyIceberg, extrapolated from {PEER_VALUES:,} values"


def run() -> list[Claim]:
    """The claims, each with its goal."""
    return [*_lists(), _branches(), _specs()]


def _lists() -> list[Claim]:
    numbers = [place * 7 for place in range(VALUES)]
    forms = {
        "integers": ("id", [str(number) for number in numbers]),
        "strings": ("name", [f"'v{number}'" for number in numbers]),
    }
    claims = []
    for kind, (column, written) in forms.items():
        text = f"{column} IN ({', '.join(written)})"
        part = f"{column} IN ({', '.join(written[:PEER_VALUES])})"
        ours = best_of(lambda text=text: _bound(parse(text), text), rounds=3)
        peer = best_of(lambda part=part: peer_bind(PEER_SCHEMA, peer_parse(part), case_sensitive=True), rounds=3)
        _check(ours.result)
        says = f"parse and bind a list of {VALUES:,} {kind}"
        extrapolated = peer.best * VALUES / PEER_VALUES
        claims.append(
            Claim(f"sql_{kind}", says, ours.best, peer_name=PEER, peer=extrapolated, at_most=5, at_least=10)
        )
    for kind, values in {"list": numbers, "array": np.array(numbers)}.items():
        ours = best_of(lambda values=values: _bound(col("id").isin(values).node, "unused"), rounds=3)
        peer = best_of(
            lambda: peer_bind(PEER_SCHEMA, In("id", numbers), case_sensitive=True), rounds=1, warm_up=False
        )
        _check(ours.result)
        says = f"build and bind {VALUES:,} integers of a Python {kind}"
        claims.append(Claim(f"python_{kind}", says, ours.best, peer_name="PyIceberg's In", peer=peer.best, at_most=2))
    return claims


def _bound(node: Node, sql: str) -> BoundPredicate:
    return bind(node, SCHEMA, sql=sql)


def _check(found: BoundPredicate) -> None:
    root = found.root
    require(isinstance(root, Leaf) and len(root.outer.cuts) == 2 * VALUES, "the list has lost values")


def _branches() -> Claim:
    text = " OR ".join(f"(x = {place} AND y = {place + 1})" for place in range(BRANCHES))
    random = np.random.default_rng(1)
    facts = Facts(JUDGED, {})
    for name in ("x", "y"):
        low = random.integers(0, 2 * BRANCHES, JUDGED)
        high = low + random.integers(0, 200, JUDGED)
        column = SCHEMA.find((name,))
        bounds = (pa.array(side, pa.int32()) for side in (low, high))
        stats = ColumnStats(*bounds, pa.array(np.zeros(JUDGED, np.int64)), None, pa.array(np.full(JUDGED, 10)))
        facts.domains[column.id] = stats_domain(column, stats, JUDGED)

    def ours() -> Verdicts:
        return judge(_bound(parse(text), text).root, facts)

    timing = best_of(ours, rounds=3)
    few = facts.take(np.arange(0, JUDGED, 1000))
    expected = np.zeros(few.count, np.bool_)
    for place in range(BRANCHES):
        expected |= judge(_bound(parse(f"x = {place} AND y = {place + 1}"), "unused").root, few).possible
    require((timing.result.possible[::1000] == expected).all(), "a branch judged alone disagrees")
    says = f"parse, bind and judge an OR of {BRANCHES:,} branches, {JUDGED:,} files"
    return Claim("wide_or", says, timing.best, at_most=5)


def _specs() -> Claim:
    folder = str(many_specs(SPECS))
    timing = best_of(lambda: tamis.open(folder, cache=False).plan("id IN (5, 1000, 12003)"), rounds=2)
    require(timing.result.stats.files == SPECS * FILES, "files are missing")
    says = f"plan a table of {SPECS} specs, the last of {SPECS} fields, without the cache"
    return Claim("many_specs", says, timing.best, at_most=10)


if __name__ == "__main__":
    main(run)
