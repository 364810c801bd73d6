"""Which files are left: the newest action of each logical file wins."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tamis.errors import UnreadableMetadataError
from tamis.formats.delta.keys import file_keys
from tamis.formats.delta.replay import Tail, left_over, replay
from tests.making.delta_logs import VECTOR, Action, add, remove, vector


def _replayed(*commits: list[Action], columns: tuple[str, ...] = ("part",)) -> Tail:
    texts = {f"{number}.json": "\n".join(map(json.dumps, one)).encode() for number, one in enumerate(commits)}
    return replay(texts, columns)


def _paths(tail: Tail) -> list[str]:
    return list(tail.adds.field("path").to_pylist())


def test_an_add_is_there_until_it_is_removed() -> None:
    assert _paths(_replayed([add("a"), add("b")], [remove("a")], [add("c")])) == ["b", "c"]


def test_a_file_that_is_added_again_is_there_once() -> None:
    """An update of its statistics or tags, say: the newest add tells of it."""
    tail = _replayed([add("a", size=1)], [add("a", size=2)])
    assert tail.adds.field("size").to_pylist() == [2]


def test_a_file_comes_back_by_a_later_add() -> None:
    assert _paths(_replayed([add("a")], [remove("a")], [add("a")])) == ["a"]


def test_a_new_vector_replaces_the_old_one() -> None:
    """A delete adds the file with its vector and removes the one without: path alone would lose the file."""
    dv = vector("ab^-aqEH.-t@S}K{vb[*k^")
    tail = _replayed([add("a")], [add("a", dv=dv), remove("a")])
    assert tail.adds.field("deletionVector").to_pylist() == [dv]
    later = _replayed([add("a")], [add("a", dv=dv), remove("a")], [remove("a", dv), add("a", dv=vector("other"))])
    assert [one["pathOrInlineDv"] for one in later.adds.field("deletionVector").to_pylist()] == ["other"]


def test_a_remove_without_the_vector_leaves_the_file() -> None:
    """As deltalake writes it: the protocol's key is path and vector, so nothing was removed."""
    assert _paths(_replayed([add("a", dv=vector("x"))], [remove("a")])) == ["a"]


def test_vectors_at_two_offsets_of_one_file_are_two() -> None:
    tail = _replayed([add("a", dv=vector("x", 1))], [remove("a", vector("x", 2))])
    assert _paths(tail) == ["a"]
    assert _paths(_replayed([add("a", dv=vector("x", 1))], [remove("a", vector("x", 1))])) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("p=a%20b/x", "p=a b/x"),
        ("x%25y", "x%25y"),
        ("%C3%A9.parquet", "é.parquet"),
        ("file:///t/x", "file:/t/x"),
        ("file:/t/a%20b/x", "/t/a b/x"),
        ("a%2Fb", "a/b"),
    ],
)
def test_one_path_that_is_escaped_in_two_ways_is_one_file(one: str, other: str) -> None:
    assert _paths(_replayed([add(one)], [remove(other)])) == []
    assert _paths(_replayed([add(other)], [remove(one)])) == []


@pytest.mark.parametrize(("one", "other"), [("a%2520b", "a%20b"), ("%FE", "%FF"), ("A", "a"), ("x", "./x")])
def test_paths_that_differ_unescaped_are_two_files(one: str, other: str) -> None:
    assert _paths(_replayed([add(one)], [remove(other)])) == [one]


def test_a_checkpoints_file_goes_if_a_later_commit_touched_it() -> None:
    tail = _replayed([remove("p=a%20b/x"), add("y", dv=vector("v")), remove("y")])
    adds = pa.array(
        [{"path": one, "deletionVector": None} for one in ("p=a b/x", "y", "z")],
        pa.struct([("path", pa.string()), ("deletionVector", VECTOR)]),
    )
    assert left_over(adds, tail.touched).field("path").to_pylist() == ["z"]


def test_partition_values_and_their_absence() -> None:
    tail = _replayed([add("a", part="x"), add("b", part=None), add("c", values={}), add("d", values={"other": "1"})])
    assert [one["part"] for one in tail.adds.field("partitionValues").to_pylist()] == ["x", None, None, None]


def test_values_of_other_types_than_the_protocols_are_read_all_the_same() -> None:
    """Some writers have numbers in the map, and sizes with a fraction of zero."""
    odd = add("a")
    odd["add"] |= {"size": 10.0, "partitionValues": {"part": 7}}
    tail = _replayed([odd, add("b", part="x")])
    assert tail.adds.field("size").to_pylist() == [10, 10]
    assert [one["part"] for one in tail.adds.field("partitionValues").to_pylist()] == ["7", "x"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"add":{"path":"x"',
        b"[]",
        b"3",
        b'{"add":{"path":"x","size":"ten"}}',
        b"\xff",
        b'{"add":{"path":"\xff"}}',
        b'{"add":[]}',
    ],
)
def test_a_damaged_commit_is_named(line: bytes) -> None:
    texts = {"0.json": json.dumps(add("a")).encode(), "1.json": line, "2.json": json.dumps(add("b")).encode()}
    with pytest.raises(UnreadableMetadataError, match=r"1\.json"):
        replay(texts, ("part",))


def test_an_add_without_a_path_is_an_error() -> None:
    with pytest.raises(UnreadableMetadataError, match="no path"):
        _replayed([{"add": {"size": 1}}])


def test_a_line_longer_than_a_block_is_read() -> None:
    """Statistics of a thousand columns: Arrow refuses an object that does not fit its block."""
    long = add("a", stats="x" * (17 << 20))
    assert _paths(_replayed([add("b")], [long], [add("c")])) == ["b", "a", "c"]


def test_no_commits_touch_nothing() -> None:
    tail = replay({}, ())
    assert (len(tail.adds), len(tail.touched)) == (0, 0)


def test_keys_of_files_without_vectors_are_their_paths() -> None:
    assert file_keys(pa.array(["a", "b%20c"]), None).to_pylist() == [b"a", b"b c"]
