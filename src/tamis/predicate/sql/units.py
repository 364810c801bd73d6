"""Units of time by the names that Spark has for them, in functions and in intervals."""

from __future__ import annotations

from typing import Final

__all__ = ["DATE_UNITS", "INTERVAL_MICROS", "INTERVAL_MONTHS", "TIMESTAMP_UNITS"]

TIMESTAMP_UNITS: Final = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
    **dict.fromkeys(("day", "dd"), "day"),
    **{unit: unit for unit in ("hour", "minute", "second", "millisecond", "microsecond")},
}
"""Every spelling of a unit that date_trunc knows; of any other it makes NULL."""
DATE_UNITS: Final = {
    spelt: unit for spelt, unit in TIMESTAMP_UNITS.items() if unit in {"year", "quarter", "month", "week"}
}
"""Those that trunc knows."""
INTERVAL_MONTHS: Final = {"year": 12, "month": 1}
INTERVAL_MICROS: Final = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""How many months, or microseconds, a unit of an interval has; each may have an s at its end."""
