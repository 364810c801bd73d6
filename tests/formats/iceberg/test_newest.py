"""A folder opens at its newest state, or not at all: an older one would bring deleted rows back, in silence."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table import Table

import tamis
from tamis.errors import AmbiguousTableError, NoSuchTableError
from tamis.formats.iceberg.newest import newest_metadata
from tests.making.cli_tables import events, folder_of
from tests.making.manifests import table_document

A, B = "9c12d441-03fe-4693-9a96-a0705ddf69c1", "1b54a0ba-5bd2-4a3c-b9bb-2c6f93a8a34d"

Put = Callable[..., None]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a metadata file of that name, updated at a time, by a table whose log has these files."""

    def write(name: str, at: int = 1, log: Sequence[str] = (), sequence: int = 0, uuid: str = A) -> None:
        document = table_document(
            **{
                "table-uuid": uuid,
                "last-updated-ms": at,
                "last-sequence-number": sequence,
                "metadata-log": [{"timestamp-ms": 1, "metadata-file": f"s3://b/t/metadata/{one}"} for one in log],
                "properties": {"which": name},
            }
        )
        path = tmp_path / "metadata" / name
        path.parent.mkdir(exist_ok=True)
        data = json.dumps(document).encode()
        path.write_bytes(gzip.compress(data) if ".gz" in name else data)

    return write


def hint(folder: Path, text: str) -> None:
    (folder / "metadata" / "version-hint.text").write_text(text, encoding="utf-8")


def opened(folder: Path) -> str:
    """The name of the file that the folder opens at."""
    found = tamis.open(str(folder)).source.metadata.properties["which"]  # type: ignore[attr-defined] # Iceberg's
    assert isinstance(found, str)
    return found


def refused(folder: Path, *names: str) -> str:
    with pytest.raises(AmbiguousTableError) as caught:
        tamis.open(str(folder))
    assert set(names) <= set(caught.value.candidates)
    for name in names:
        assert name in caught.value.message
    assert "Name the metadata file" in caught.value.message
    assert caught.value.table == str(folder)
    return caught.value.reason


def name(version: int, tag: str = "a") -> str:
    return f"{version:05}-{tag * 8}-03fe-4693-9a96-a0705ddf69c1.metadata.json"


# -- names out of the common pattern ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["00002-legacy-bare-dv", "00002-legacy-bare-dv\n", "2", None])
def test_name_without_a_uuid_is_a_version_like_any_other(tmp_path: Path, put: Put, text: str | None) -> None:
    """Such a file was not seen at all, and the version before it opened: a deleted row came back."""
    put(name(1), at=1)
    put("00002-legacy-bare-dv.metadata.json", at=2)
    if text is not None:
        hint(tmp_path, text)
    assert opened(tmp_path) == "00002-legacy-bare-dv.metadata.json"


@pytest.mark.parametrize(
    "only", ["table.metadata.json", "1.metadata.json", "snap.gz.metadata.json", f"{A}.metadata.json"]
)
def test_only_metadata_file_opens_whatever_its_name(tmp_path: Path, put: Put, only: str) -> None:
    put(only)
    assert opened(tmp_path) == only


def test_unnumbered_names_are_decided_by_what_the_documents_say(tmp_path: Path, put: Put) -> None:
    put("first.metadata.json", at=10, sequence=1)
    put("second.metadata.json", at=20, sequence=2)
    assert opened(tmp_path) == "second.metadata.json"
    put("third.metadata.json", at=15, sequence=3, log=["first.metadata.json", "second.metadata.json"])
    assert opened(tmp_path) == "third.metadata.json", "it was made of the second, whatever the clocks said"


def test_unnumbered_names_without_facts_are_not_guessed_between(tmp_path: Path, put: Put) -> None:
    put("a.metadata.json", at=10)
    put("b.metadata.json", at=10)
    refused(tmp_path, "a.metadata.json", "b.metadata.json")
    hint(tmp_path, "a")
    assert opened(tmp_path) == "a.metadata.json"


def test_later_file_of_fewer_commits_is_not_believed(tmp_path: Path, put: Put) -> None:
    put("a.metadata.json", at=10, sequence=7)
    put("b.metadata.json", at=11, sequence=3)
    refused(tmp_path, "a.metadata.json", "b.metadata.json")


def test_table_of_files_that_goes_on_in_a_catalog_opens_at_the_catalogs_file(tmp_path: Path, put: Put) -> None:
    """Java counts from 0 again when it registers a table of v-files: v3 has the greater number, and is older."""
    for version in (1, 2, 3):
        put(f"v{version}.metadata.json", at=version)
    put(name(0), at=4, log=["v2.metadata.json", "v3.metadata.json"])
    assert opened(tmp_path) == name(0)
    hint(tmp_path, "3")
    assert opened(tmp_path) == name(0), "it was made of the file that the hint names"


# -- the version hint -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["9", "v9", "00009-gone", "x", "../v1"])
def test_hint_to_a_file_that_is_gone_is_an_error(tmp_path: Path, put: Put, text: str) -> None:
    """The hint is written after the file: what was current is lost, and what is left is older."""
    put("v1.metadata.json")
    hint(tmp_path, text)
    assert "version-hint.text" in refused(tmp_path, "v1.metadata.json")


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_hint_says_nothing(tmp_path: Path, put: Put, text: str) -> None:
    put("v1.metadata.json")
    put("v2.metadata.json")
    hint(tmp_path, text)
    assert opened(tmp_path) == "v2.metadata.json"


def test_hint_that_is_no_text_is_an_error(tmp_path: Path, put: Put) -> None:
    put("v1.metadata.json")
    (tmp_path / "metadata" / "version-hint.text").write_bytes(b"\xff\xfe1")
    refused(tmp_path, "v1.metadata.json")


def test_stale_hint_with_a_gap_is_followed_only_by_facts(tmp_path: Path, put: Put) -> None:
    """Java looks for the next number alone, and would stop at the gap."""
    put("v1.metadata.json", at=1)
    put("v3.metadata.json", at=1)
    hint(tmp_path, "1")
    refused(tmp_path, "v1.metadata.json", "v3.metadata.json")
    put("v3.metadata.json", at=2)
    assert opened(tmp_path) == "v3.metadata.json", "numbers that are times have gaps"
    put("v3.metadata.json", at=1, log=["v1.metadata.json"])
    assert opened(tmp_path) == "v3.metadata.json"


def test_greater_number_that_is_older_than_the_hint_is_not_opened(tmp_path: Path, put: Put) -> None:
    """A table was made anew in the folder of another, whose files are still there."""
    put("v1.metadata.json", at=100, uuid=B)
    put("v2.metadata.json", at=2)
    hint(tmp_path, "1")
    refused(tmp_path, "v1.metadata.json", "v2.metadata.json")


def test_catalog_file_that_does_not_come_from_the_hint_is_not_opened(tmp_path: Path, put: Put) -> None:
    put(name(1), at=1)
    put(name(2), at=2)
    hint(tmp_path, name(1).removesuffix(".metadata.json"))
    refused(tmp_path, name(1), name(2))
    put(name(2), at=2, log=[name(1)])
    assert opened(tmp_path) == name(2)


def test_hint_decides_between_files_of_one_version(tmp_path: Path, put: Put) -> None:
    put(name(1, "a"), at=5)
    put(name(1, "b"), at=5)
    assert "version 1" in refused(tmp_path, name(1, "a"), name(1, "b"))
    hint(tmp_path, name(1, "b").removesuffix(".metadata.json"))
    assert opened(tmp_path) == name(1, "b")


# -- numbers that mislead ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("v1.metadata.json", "v7.metadata.json"), (name(0, "b"), name(7))])
def test_table_made_anew_in_an_old_folder_does_not_open_at_the_old_one(
    tmp_path: Path, put: Put, names: tuple[str, str]
) -> None:
    new, old = names
    put(old, at=10)
    put(new, at=20, uuid=B)
    refused(tmp_path, new, old)


def test_old_files_of_a_table_that_was_dropped_do_not_hide_the_new_one(tmp_path: Path, put: Put) -> None:
    put(name(0), at=10)
    put(name(0, "b"), at=20, uuid=B)
    put(name(1, "b"), at=30, uuid=B, log=[name(0, "b")])
    assert opened(tmp_path) == name(1, "b")


def test_table_that_was_set_back_and_goes_on_is_not_opened_at_the_branch_that_was_left(
    tmp_path: Path, put: Put
) -> None:
    for version in range(5):
        put(name(version), at=version, log=[name(one) for one in range(version)])
    put(name(2, "b"), at=9, log=[name(0), name(1)])
    refused(tmp_path, name(4), name(2, "b"))


def test_greater_number_of_fewer_commits_is_not_believed(tmp_path: Path, put: Put) -> None:
    put(name(1), at=5, sequence=7)
    put(name(2), at=5, sequence=3)
    refused(tmp_path, name(1), name(2))


def test_commit_that_failed_leaves_a_file_that_does_not_matter(tmp_path: Path, put: Put) -> None:
    put(name(0), at=1)
    put(name(1, "b"), at=2, log=[name(0)])
    put(name(1), at=3, log=[name(0)])
    put(name(2), at=4, log=[name(0), name(1)])
    assert opened(tmp_path) == name(2)


def test_temporary_file_of_a_commit_is_no_state(tmp_path: Path, put: Put) -> None:
    """Writers of v-files write `<uuid>.metadata.json`, and rename it: until then it is not committed."""
    put("v1.metadata.json", at=1)
    put(f"{B}.metadata.json", at=2)
    assert opened(tmp_path) == "v1.metadata.json"


def test_hidden_files_and_folders_are_no_metadata(tmp_path: Path, put: Put) -> None:
    put("v1.metadata.json")
    put(".v2.metadata.json")
    (tmp_path / "metadata" / "v3.metadata.json").mkdir()
    assert opened(tmp_path) == "v1.metadata.json"


def test_file_that_cannot_be_read_beside_the_newest_does_not_matter(tmp_path: Path, put: Put) -> None:
    """A writer that died left half of it; it has the smaller number."""
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / name(1, "b")).write_text('{"format-', encoding="utf-8")
    put(name(2))
    assert opened(tmp_path) == name(2)


@pytest.mark.parametrize("second", ["v1.gz.metadata.json", "v1.metadata.json.gz"])
def test_one_version_packed_and_plain_opens_if_both_say_the_same(tmp_path: Path, put: Put, second: str) -> None:
    put("v1.metadata.json")
    plain = (tmp_path / "metadata" / "v1.metadata.json").read_bytes()
    (tmp_path / "metadata" / second).write_bytes(gzip.compress(plain))
    assert opened(tmp_path) == "v1.metadata.json"
    put(second)
    refused(tmp_path, "v1.metadata.json", second)


def test_long_log_is_followed_through_older_files(tmp_path: Path, put: Put) -> None:
    """Logs end after a hundred files by default; the files stay. None of them may be read for nothing."""
    for version in range(30):
        put(name(version), at=version, log=[name(one) for one in range(max(0, version - 10), version)])
    assert opened(tmp_path) == name(29)
    read: list[Path] = []

    def fetch(path: str) -> bytes:
        read.append(Path(path))
        return Path(path).read_bytes()

    assert newest_metadata(tmp_path, fetch)[0].name == name(29)
    assert len(read) <= 4
    put(name(3, "b"), at=99)
    refused(tmp_path, name(29), name(3, "b"))


def test_folder_without_any_metadata_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    with pytest.raises(NoSuchTableError, match="is not a table"):
        tamis.open(str(tmp_path))


@given(st.permutations(range(6)), st.integers(0, 5), st.booleans(), st.none() | st.integers(0, 5))
def test_chain_of_commits_opens_at_its_end_in_any_guise(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], numbered: int, logged: bool, told: int | None
) -> None:
    """However the files are called, and however stale the hint: the end of the chain, or an error; never a middle."""
    folder = tmp_path_factory.mktemp("chain")
    (folder / "metadata").mkdir()
    names = [name(one) if one < numbered else f"{chr(97 + order[one])}.metadata.json" for one in range(6)]
    for version, one in enumerate(names):
        log = [{"metadata-file": f"/t/metadata/{older}", "timestamp-ms": 1} for older in names[:version]]
        document = table_document(**{"last-updated-ms": version, "metadata-log": log if logged else []})
        (folder / "metadata" / one).write_text(json.dumps(document), encoding="utf-8")
    if told is not None:
        hint(folder, names[told].removesuffix(".metadata.json"))
    try:
        found = newest_metadata(folder)[0].name
    except AmbiguousTableError:
        assert not logged
        assert told is not None
    else:
        assert found == names[-1]


def test_real_table_with_a_foreign_file_is_not_opened_at_it(tmp_path: Path) -> None:
    table: Table = events(tmp_path)
    metadata = Path(folder_of(table), "metadata")
    early = next(metadata.glob("00001-*.metadata.json"))
    (metadata / "backup.metadata.json").write_bytes(early.read_bytes())
    assert tamis.open(folder_of(table)).snapshot_id == table.metadata.current_snapshot_id
