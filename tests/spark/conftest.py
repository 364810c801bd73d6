"""These tests take the one Spark of the run: starting it costs more than most of them."""

from tests.making.sparks import spark, started_spark

__all__ = ["spark", "started_spark"]
