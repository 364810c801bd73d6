"""What Spark raises, as one message that a user of the command line can act on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tamis.errors import MissingFileError, TamisError

__all__ = ["SparkFailure", "explained", "not_started"]

_CONDITION: Final = re.compile(
    r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\] (.+?)(?=\s+SQLSTATE: |\n\s*at |\n\n|\Z)", re.DOTALL
)
"""How Spark writes an error: [CONDITION] text. SQLSTATE: 42703."""
_GONE: Final = re.compile(r"FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.\s+File does not exist")
_UNRESOLVED: Final = re.compile(r"^\s*:: (\S+#\S+): (?:not found|.*failed)", re.MULTILINE)
_THROWN: Final = re.compile(
    r"^(?:Exception in thread \S+ |Error: |Caused by: )?((?:[\w$]+\.)+\w*(?:Error|Exception): .+)$", re.MULTILINE
)
_LONGEST: Final = 600
"""Characters of a message of Spark's: some quote a whole query plan."""


class SparkFailure(TamisError):
    """Spark did not start, or a job failed."""

    reason: str
    log: str | None
    """The file with Spark's output; None if it printed nothing."""


def explained(error: Exception, log: Path) -> Exception:
    """The error itself if it is none of Spark's; else what it says, in few words."""
    from tamis.spark.shipping import explained as of_executors

    if isinstance(error, TamisError) or not _of_spark(error):
        return error
    cause = of_executors(error)
    if isinstance(cause, TamisError):
        return cause
    text = str(error)
    gone = _GONE.search(text)
    if gone:
        return MissingFileError(
            f"the table lists a file that is not there: {gone[1]}. It was removed while the command ran; run it "
            "again, or read a snapshot or version that does not need it.",
            path=gone[1],
        )
    return _failure("Spark failed", _reason(text), log)


def not_started(error: Exception, log: Path) -> Exception:
    """Why there is no session. PySpark only sees that the JVM has ended: its output has the reason."""
    if isinstance(error, TamisError) or not _of_spark(error):
        return error
    text = log.read_text(encoding="utf-8", errors="replace")
    unresolved, thrown = _UNRESOLVED.search(text), _THROWN.findall(text)
    if "UnsupportedClassVersionError" in text or "Unrecognized option" in text:
        reason = "it needs Java 17 or newer, and the java that was found is older. Set JAVA_HOME to a newer one"
    elif unresolved:
        reason = f"it cannot resolve {unresolved[1]}, a package that the settings ask for"
    elif "JAVA_GATEWAY_EXITED" in str(error):
        reason = thrown[-1] if thrown else "its JVM ended at once"
    else:
        reason = _reason(str(error))
    return _failure("Spark does not start", reason, log)


def _of_spark(error: Exception) -> bool:
    """py4j's errors and PySpark's share no root but Exception."""
    return any(class_.__module__.startswith(("py4j.", "pyspark.errors.")) for class_ in type(error).__mro__)


def _failure(what: str, reason: str, log: Path) -> SparkFailure:
    printed = log.exists() and log.stat().st_size > 0
    where = f" Spark's output is in {log}." if printed else ""
    return SparkFailure(f"{what}: {reason.rstrip('. ')}.{where}", reason=reason, log=str(log) if printed else None)


def _reason(text: str) -> str:
    """The innermost of Spark's own messages; if there is none, the first line."""
    conditions = _CONDITION.findall(text)
    message = (
        f"[{conditions[-1][0]}] {conditions[-1][1]}"
        if conditions
        else (_THROWN.findall(text) or [text.strip().partition("\n")[0]])[-1]
    )
    message = " ".join(message.split())
    return message if len(message) <= _LONGEST else message[:_LONGEST] + "…"
