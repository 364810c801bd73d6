"""Arrow's client for S3, for whoever reads, writes or lists there, on whichever machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyarrow import fs

from tamis.formats.storage.access import environment_region

__all__ = ["bucket_region", "s3_client"]


def s3_client(bucket: str, told: Mapping[str, Any]) -> fs.S3FileSystem:
    """The client for a bucket. What it is not told, Arrow looks for in the environment, but for the region.

    Arrow takes one that it is not told from this machine; the bucket may lie in another, and is asked.
    """
    if told.get("region") is None:
        told = {**told, "region": bucket_region(bucket)}
    return fs.S3FileSystem(**told)


@lru_cache
def bucket_region(bucket: str) -> str:
    """The region of one of Amazon's own buckets; the environment's if nobody can be asked, OSError if it has none."""
    try:
        return str(fs.resolve_s3_region(bucket))
    except OSError:
        region = environment_region()
        if region is None:
            raise
        return region
