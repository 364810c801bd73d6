"""Paths on their way to Spark and back: the same file under each spelling, and no other."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark.sql")
from tamis.errors import UnreadableFileError
from tamis.spark.paths import as_shown, check_distinct, check_visible, pattern, plain


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_pattern_leads_back_to_its_path(path: str) -> None:
    assert plain(pattern(path)) == path


@pytest.mark.parametrize(
    ("path", "listed"),
    [
        ("/w/a.parquet", "file:/w/a.parquet"),
        ("file:/w/a b.parquet", "file:///w/a%20b.parquet"),
        ("file:///w/é%20.parquet", "file:/w/%C3%A9%2520.parquet"),
        ("/w//x///a+b.parquet", "file:/w/x/a+b.parquet"),
        ("s3a://b/x//a=1/ü#.parquet", "s3a://b/x/a=1/%C3%BC%23.parquet"),
        ("/w/a.parquet", "hdfs://name:8020/w/a.parquet"),
        ("hdfs:///w//a.parquet", "hdfs://name:8020/w/a.parquet"),
        ("hdfs:/w/a.parquet", "hdfs://name:8020/w/a.parquet"),
        ("hdfs:/w/a.parquet", "hdfs:/w/a.parquet"),
        ("hdfs:///w/a.parquet", "hdfs:/w/a.parquet"),
        ("viewfs:/w/a%b.parquet", "viewfs://cluster/w/a%25b.parquet"),
        ("hdfs://name:8020/w/a.parquet", "hdfs://name:8020/w/a.parquet"),
        ("abfss://box@account.dfs.core.windows.net/a b", "abfss://box@account.dfs.core.windows.net/a%20b"),
    ],
)
def test_what_spark_shows_is_found_for_each_spelling(path: str, listed: str) -> None:
    """Schemes, slashes and escapes differ; a path without a scheme lies in the session's own file system."""
    assert as_shown([path], [listed, "file:/w/other.parquet"]) == {path: listed}


def test_a_path_that_spark_does_not_list_is_an_error() -> None:
    """Its rows would be missing without a word."""
    with pytest.raises(UnreadableFileError, match=r"does not list /w/b\.parquet"):
        as_shown(["/w/a.parquet", "/w/b.parquet"], ["file:/w/a.parquet"])


@pytest.mark.parametrize("path", ["hdfs:///w/a.parquet", "hdfs:/w/a.parquet"])
@pytest.mark.parametrize("listed", ["file:/w/a.parquet", "s3a://name/w/a.parquet"])
def test_a_path_without_a_host_is_not_sought_in_another_file_system(path: str, listed: str) -> None:
    with pytest.raises(UnreadableFileError, match="does not list"):
        as_shown([path], [listed])


def test_a_path_with_a_host_is_not_that_of_another_host() -> None:
    with pytest.raises(UnreadableFileError, match="does not list"):
        as_shown(["hdfs://one/w/a.parquet"], ["hdfs://two/w/a.parquet"])


def test_the_same_path_in_two_file_systems_is_not_guessed() -> None:
    with pytest.raises(UnreadableFileError, match="does not list"):
        as_shown(["/w/a.parquet"], ["hdfs://one/w/a.parquet", "hdfs://two/w/a.parquet"])


@pytest.mark.parametrize("path", ["s3://b//a", "s3a://b/w//a", "gs://b/w/./a", "abfss://c@h/w/../a", "s3://b/../a"])
def test_an_object_whose_name_hadoop_changes_is_not_read_as_another(path: str) -> None:
    """The other may be there, of the same size: its rows would be taken for those of this one."""
    paths = pa.chunked_array([["s3://b/a", path]])
    with pytest.raises(UnreadableFileError, match="another object"):
        check_distinct(paths, frozenset())
    check_distinct(paths, frozenset({path}))


@pytest.mark.parametrize(
    "path", ["/w//a", "w//a", "file:///w//a", "file:/w//a", "hdfs://nn/w//a", "hdfs:///w/../a", "s3://b/w/.a/..b/a."]
)
def test_a_path_that_leads_to_one_file_however_it_is_spelt_is_read(path: str) -> None:
    check_distinct(pa.chunked_array([[path]]), frozenset())


@pytest.mark.parametrize("name", ["_a.parquet", ".a.parquet", "a.parquet._COPYING_"])
def test_names_that_spark_hides_are_refused(name: str) -> None:
    with pytest.raises(UnreadableFileError, match="ignore files with such a name"):
        check_visible(["/w/_folders/.may/a.parquet", f"/w/{name}"])
