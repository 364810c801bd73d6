"""Columns of char(n), as Spark's connectors show them: padded with blanks, and compared so.

Spark knows such a column, a string, by what its schema says of it: then it pads the texts that it is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tamis.formats.scan import ReadField
from tamis.predicate.names import backticked

__all__ = ["as_padded"]

_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_PADS: Final = "spark.sql.readSideCharPadding"
_PLAIN: Final = "spark.sql.legacy.charVarcharAsString"


def as_padded(frame: DataFrame, fields: Sequence[ReadField]) -> DataFrame:
    """The rows, with blanks behind what is shorter than its column, unless the session reads without them."""
    lengths = {field.name: field.padded for field in fields if field.padded and field.name in frame.columns}
    conf = frame.sparkSession.conf
    if not lengths or conf.get(_PLAIN, "false") == "true":
        return frame
    pads = conf.get(_PADS, "true") != "false"

    def shown(name: str) -> Column:
        column, length = f.col(backticked(name)), lengths.get(name)
        if length is None:
            return column
        if pads:  # rpad would cut what is longer
            column = f.when(f.length(column) < length, f.rpad(column, length, " ")).otherwise(column)
        return column.alias(name, metadata={_TYPE: f"char({length})"})

    return frame.select(*map(shown, frame.columns))
