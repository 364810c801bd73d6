"""What is missing, damaged, foreign or misspelt is an error of tamis that says so: never fewer rows, never a crash.

Nothing that is asked of a table changes a file of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import BindError, NoSuchSnapshotError, NoSuchTableError, ParseError, TamisError
from tamis.explain.json import json_text
from tamis.formats import FORMATS
from tests.contract.chance import few
from tests.contract.conftest import Making
from tests.contract.history import ID, ROW, Append, History, Rename
from tests.contract.maker import Made, Maker
from tests.contract.tables import plain, table_of
from tests.contract.truth import files_of, opened, untouched
from tests.making.cli_tables import Ran, run
from tests.making.mangling import mangled

Command = Callable[..., Ran]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line, given its arguments."""
    return lambda *arguments: run(capsys, monkeypatch, *arguments)


@pytest.fixture(scope="module")
def made(maker: Maker, making: Making) -> Iterator[Made]:
    """A table that these tests leave as it is."""
    with making(plain(maker)) as found, untouched(found.folder):
        yield found


def refused(command: Command, *arguments: str) -> str:
    """What the command line says as it refuses."""
    ran = command(*arguments)
    assert (ran.code, ran.out) == (2, ""), ran
    assert "Traceback" not in ran.err
    assert ran.err.strip()
    return ran.err


# -- tables that are none ---------------------------------------------------------------------------------------


def test_missing_table_is_named(maker: Maker, command: Command, tmp_path: Path) -> None:
    lost = str(tmp_path / "lost")
    for chosen in (None, maker.format):
        with pytest.raises(NoSuchTableError) as caught:
            tamis.open(lost, format=chosen)
        assert lost in caught.value.table
    for name in ("explain", "inspect"):
        assert "lost" in refused(command, name, lost)


def empty(folder: Path) -> None:
    """Nothing is in it."""


def data_alone(folder: Path) -> None:
    """A folder of data, as a table has it, and no table."""
    (folder / "data").mkdir()
    (folder / "data" / "part-0.parquet").write_bytes(b"PAR1")


def marks_of_others(folder: Path) -> None:
    """What each format has in its folder, as a file where a folder should be or the other way round."""
    (folder / "_delta_log").write_text("no folder", encoding="utf-8")
    (folder / "schema").mkdir()
    (folder / "metadata").mkdir()


@pytest.mark.parametrize("foreign", [empty, data_alone, marks_of_others])
def test_folder_that_is_no_table_is_refused(
    maker: Maker, command: Command, tmp_path: Path, foreign: Callable[[Path], None]
) -> None:
    foreign(tmp_path)
    with untouched(tmp_path):
        for chosen in (None, maker.format):
            with pytest.raises(NoSuchTableError, match="is not a") as caught:
                tamis.open(str(tmp_path), format=chosen)
            assert caught.value.table == str(tmp_path)
        refused(command, "explain", str(tmp_path))


def test_table_of_another_format_is_not_taken_for_one_of_this(maker: Maker, made: Made) -> None:
    """Asked for by name, as a user might in error."""
    for other in FORMATS:
        if other.key != maker.format:
            with pytest.raises(NoSuchTableError, match=f"is not {other.a_name} table") as caught:
                tamis.open(made.target, format=other.key)
            assert caught.value.table == made.target


@pytest.mark.parametrize("content", [b"", b"{}", b"[1", b"\x00\xff" * 40, b"PAR1"])
def test_file_that_is_no_table_is_refused(maker: Maker, command: Command, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file.json"
    file.write_bytes(content)
    for chosen in (None, maker.format):
        with pytest.raises(TamisError):
            tamis.open(str(file), format=chosen)
    refused(command, "inspect", str(file))


# -- damage -----------------------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(b"\x93garbage\x00" * (1 + path.stat().st_size // 9))


def gone(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@contextmanager
def damaged(path: Path, damage: Callable[[Path], None]) -> Iterator[None]:
    """The file, damaged for a while."""
    content = path.read_bytes()
    damage(path)
    try:
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, emptied, garbage, gone, folder])
def test_damaged_metadata_is_an_error_that_names_the_file(
    made: Made, command: Command, damage: Callable[[Path], None]
) -> None:
    """Each file that a plan reads, its deletes too, one at a time. Of what is left, no smaller table is made."""
    whole = files_of(made, opened(made))
    for path in made.metadata:
        if damage in (gone, folder) and path in made.heads:
            continue
        with damaged(path, damage):
            with pytest.raises(TamisError) as caught:
                files_of(made, opened(made))
            assert path.name in str(caught.value)
            assert path.name in refused(command, "inspect", made.target)
            ran = command("explain", made.target)  # which does not read deletes: it shows no count of them
            assert (ran.code in (0, 2), "Traceback" in ran.err) == (True, False)
    assert files_of(made, opened(made)) == whole


@pytest.mark.filterwarnings("ignore:No preferred file implementation:UserWarning")  # PyIceberg's, of a flipped scheme
@few(2)
@given(data=st.data())
def test_flipped_bit_never_loses_a_file_in_silence(made: Made, data: st.DataObject) -> None:
    """Where nothing but a checksum could tell, a path or a number may change; but no file goes missing."""
    count = opened(made).plan().stats.files
    path = data.draw(st.sampled_from(made.metadata))
    content = path.read_bytes()
    bit = data.draw(st.integers(0, 8 * len(content) - 1))

    def flip(path: Path) -> None:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed))

    with damaged(path, flip):
        try:
            found = opened(made).plan()
            kept = len(found.files)
            assert kept == count or (made.removes_by_path and kept > count), (
                path.name,
                bit,
                content[bit // 8 - 30 : bit // 8 + 30],
            )
        except TamisError:
            pass


@pytest.mark.filterwarnings("ignore:No preferred file implementation:UserWarning")  # PyIceberg's, of a flipped scheme
@few(4)
@given(data=st.data())
def test_no_value_of_metadata_is_a_traceback(made: Made, data: st.DataObject) -> None:
    """Any other kind of value in its place, or none, or twice: a plan, or an error that says so."""
    path = data.draw(st.sampled_from(made.metadata))
    changed = mangled(data, path.read_bytes())
    where = data.draw(st.sampled_from([None, "region = 'eu' and id > 3", "region is null or row < 2"]))
    with damaged(path, lambda path: bool(path.write_bytes(changed)) and None):
        for ask in (
            lambda table: table.plan(where).explain("json"),
            lambda table: (table.plan(where).files, table.plan(where).verdicts),
            lambda table: json_text(table.inspect().to_dict()),
            lambda table: table.rewrite(where).plan_with_stats(),
        ):
            with suppress(TamisError):
                ask(opened(made))


# -- questions that cannot be answered --------------------------------------------------------------------------


def test_unknown_state_tells_those_that_are_known(made: Made) -> None:
    with pytest.raises(NoSuchSnapshotError) as caught:
        opened(made, **made.unknown)
    assert caught.value.known


def test_unknown_column_tells_the_nearest(made: Made, command: Command) -> None:
    with pytest.raises(BindError) as caught:
        opened(made).plan("regoin = 'eu'")
    assert (caught.value.column, caught.value.nearest) == ("regoin", ("region",))
    assert "region" in refused(command, "explain", made.target, "--where", "regoin = 'eu'")


@pytest.mark.parametrize("where", ["row = date'2024-01-01'", "not (id > true)", "id in (1, X'00')"])
def test_values_of_other_types_are_refused(made: Made, command: Command, where: str) -> None:
    with pytest.raises(BindError, match="cannot compare"):
        opened(made).plan(where)
    refused(command, "explain", made.target, "--where", where)


def test_text_that_is_no_condition_is_refused(made: Made, command: Command) -> None:
    with pytest.raises(ParseError):
        opened(made).plan("region = ")
    refused(command, "explain", made.target, "--where", "region = ")


def test_condition_that_does_not_fit_fails_before_anything_is_read(made: Made) -> None:
    """With all metadata gone, it is still the condition that is refused."""
    table = opened(made)
    with ExitStack() as stack:
        for path in made.metadata:
            stack.enter_context(damaged(path, gone))
        with pytest.raises(BindError) as caught:
            table.plan("regoin = 'eu'")
        assert caught.value.nearest == ("region",)
        with pytest.raises(ParseError):
            table.plan("region =")


def test_old_name_of_a_renamed_column_is_unknown_today_and_known_then(maker: Maker, making: Making) -> None:
    if "rename" not in maker.steps:
        pytest.skip("the format renames no columns")
    n = ("n",)
    found = table_of({n: pa.int64()}, [{n: 1}])
    later = Append(({ID: 1, ROW: 1, ("m",): 2},))
    with making(History(found.types, (*found.steps, Rename("n", "m"), later))) as made:
        with pytest.raises(BindError, match="no column n"):
            opened(made).plan("n = 1")
        assert opened(made).plan("m = 1").stats.kept == 1
        _, at = made.states[0]
        assert opened(made, **at).plan("n = 1").stats.kept == 1
        with pytest.raises(BindError, match="no column m"):
            opened(made, **at).plan("m = 1")
