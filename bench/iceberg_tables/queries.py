"""The four questions of the planning benches, as SQL for tamis and as expressions for PyIceberg; Java has its own."""

from __future__ import annotations

from datetime import UTC, datetime

from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThanOrEqual, In, LessThan

__all__ = ["DAY", "FILTERS", "IDS", "MASK", "REGION", "WHERE", "ids", "mix"]

IDS = 1_000_000_000
MASK = (1 << 64) - 1
DAY = datetime(2024, 3, 15, tzinfo=UTC)
REGION = "region-07"


def mix(value: int) -> int:
    """SplitMix64, as the Java program has it: any number to a signed 64-bit one that looks random."""
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    z ^= z >> 31
    return z - (1 << 64) if z >> 63 else z


def ids() -> list[int]:
    """The 200 ids that the Java program asks for as well."""
    return [mix(i * 7919) % IDS for i in range(200)]


WHERE: dict[str, str | None] = {
    "all": None,
    "region": f"region = '{REGION}'",
    "in200": f"id in ({', '.join(map(str, ids()))})",
    "day": "ts >= timestamp '2024-03-15 00:00:00Z' and ts < timestamp '2024-03-16 00:00:00Z'",
}
FILTERS: dict[str, BooleanExpression] = {
    "all": AlwaysTrue(),
    "region": EqualTo("region", REGION),
    "in200": In("id", ids()),
    "day": And(GreaterThanOrEqual("ts", DAY.isoformat()), LessThan("ts", DAY.replace(day=16).isoformat())),
}
