"""What moves rows: reading what a plan keeps, a join's keys, planning at scale. Public Spark APIs only."""

from tamis.errors import MissingDependency

try:
    import pyspark  # noqa: F401 - whether it is there
except ImportError as error:
    raise MissingDependency(
        "running on Spark needs 'pyspark': pip install 'tamis[spark]'", package="pyspark", extra="spark"
    ) from error
