"""Units of time: how many of one make another.

A timestamp, a date or a time is an integer for tamis: so many of its unit since 1970, or since midnight.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DAY",
    "DAY_SECONDS",
    "HOUR",
    "NANOS_IN_MICRO",
    "PER_SECOND",
    "SECOND",
]

PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of each of Arrow's units make a second."""
DAY_SECONDS: Final = 24 * 3600
NANOS_IN_MICRO: Final = 1000

# In microseconds, as Spark counts.
SECOND: Final = PER_SECOND["us"]
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR
