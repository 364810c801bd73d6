"""What a Paimon table says to the planner of rewrites: its words, and which files are merged together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import UnsupportedFormatError
from tamis.formats.errors import shown
from tamis.formats.paimon.kept_vectors import KeptVectors
from tamis.rewrite.deletes import BatchDeletes, FileDeletes
from tamis.rewrite.terms import RewriteTerms
from tamis.rewrite.values import size
from tamis.sieve.plan import ScanPlan

if TYPE_CHECKING:
    from tamis.formats.paimon.table import PaimonTable

__all__ = ["rewrite_terms"]

TARGET: Final = "target-file-size"
TARGET_WITH_KEY: Final = 128 << 20
TARGET_WITHOUT_KEY: Final = 256 << 20
"""What Paimon aims at where the table does not say."""
WORDS: Final = {
    TARGET: "target-file-size-bytes",
    "compaction.min.file-num": "min-input-files",
    "compaction.delete-ratio-threshold": "delete-ratio-threshold",
}
_NO_SPECS: Final = "a Paimon table is partitioned in one way, which has no id"
_LEVELS: Final = "it steers Paimon's own compaction by levels, and has no equal here"
REFUSED: Final = {
    "output-spec-id": _NO_SPECS,
    "only-old-specs": _NO_SPECS,
    "remove-dangling-deletes": "a deletion vector goes with its file: none is left behind",
    "use-starting-sequence-number": "Paimon numbers rows, not files",
    "compaction.small-file-ratio": "it has no equal here: give min-file-size-bytes",
    "compaction.max.file-num": "it has no equal here: give min-input-files or max-file-group-input-files",
    "compaction.size-ratio": _LEVELS,
    "compaction.max-size-amplification-percent": _LEVELS,
    "compaction.optimization-interval": _LEVELS,
    "num-sorted-run.compaction-trigger": _LEVELS,
    "num-levels": _LEVELS,
}


def rewrite_terms(table: PaimonTable) -> RewriteTerms:
    """Paimon's target and words. A bucket of a primary-key table is merged whole, or left.

    UnsupportedFormatError for tables of which a batch read, and so a plan, does not see every file.
    """
    options = table.options
    hidden = "bucket-postpone" if options.bucket_mode == "postpone" else "level 0" if options.skips_level_0 else None
    if table.level is not None:
        raise UnsupportedFormatError(
            f"cannot plan a rewrite of {shown(table.name)}: a read-optimized table shows what compaction has made, "
            "and no other files. Open the table itself, without $ro.",
            path=shown(table.name),
            feature="rewriting read-optimized tables",
        )
    if hidden is not None:
        raise UnsupportedFormatError(
            f"cannot plan a rewrite of {shown(table.name)}: its files of {hidden} are seen by its compaction alone. "
            "Let Paimon compact it: CALL sys.compact.",
            path=shown(table.name),
            feature=f"rewriting tables with files of {hidden}",
        )
    default = TARGET_WITH_KEY if options.has_key else TARGET_WITHOUT_KEY
    try:
        target = size(options.values.get(TARGET, default)) or default
    except ValueError:
        target = default
    return RewriteTerms("Paimon", target, words=WORDS, refused=REFUSED, whole_keys=options.has_key, deletes=_deletes)


def _deletes(plan: ScanPlan) -> FileDeletes:
    return plan.deletes if isinstance(plan.deletes, KeptVectors) else BatchDeletes(plan)
