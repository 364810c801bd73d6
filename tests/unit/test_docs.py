"""The documentation hangs together: links lead somewhere, no page is lost, and its tables tell the truth."""

import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tamis.changing import Changeable
from tamis.cli import app
from tamis.errors import BindError
from tamis.formats.delta.protocol import READ
from tamis.merging import Merged
from tamis.predicate.bound import AllOf, AnyOf, Bound, Known, Leaf
from tamis.predicate.schema import Column, Schema
from tamis.predicate.where import bind_text
from tamis.results import Appended, Deleted, Evolved, Updated
from tamis.table import Table

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"``.+?``|`[^`\n]+`")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SOURCE = re.compile(r"`((?:src|tests|bench|docs)/[\w./-]+\.\w+)`")
_REGISTRIES = ("pypi.", "pythonhosted", "npmjs", "crates.io", "repo1.maven", "repo.maven", "anaconda")

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page: Path) -> str:
    """The text of a page without code."""
    return _CODE.sub("", _FENCE.sub("", page.read_text(encoding="utf-8")))


def links(page: Path) -> list[str]:
    """The relative links of a page."""
    return [link for link in _LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links write them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@by_page
def test_relative_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_page_can_be_reached_from_the_readme_or_the_index() -> None:
    """A page that nothing links to is a page that nobody reads, and that nobody corrects."""
    todo = [ROOT / "README.md", DOCS / "index.md"]
    seen: set[Path] = set()
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        todo += [(page.parent / link.partition("#")[0]).resolve() for link in links(page) if not link.startswith("#")]
    assert set(PAGES) <= seen, "not linked: " + ", ".join(str(page.relative_to(ROOT)) for page in set(PAGES) - seen)


@by_page
def test_page_names_no_registry(page: Path) -> None:
    """A machine may use a mirror: where packages come from is its own affair."""
    text = page.read_text(encoding="utf-8").lower()
    assert not [host for host in _REGISTRIES if host in text]


@by_page
def test_file_that_a_page_names_exists(page: Path) -> None:
    for path in _SOURCE.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).exists(), f"there is no {path}"


def test_explain_of_the_how_to_is_the_one_of_the_demo() -> None:
    """But for blanks, which a page has in other places."""
    shown = CliRunner().invoke(app, ["demo", "--no-spark"]).output
    lines = _FENCE.sub("", (DOCS / "how-to/read-an-explain.md").read_text(encoding="utf-8")).splitlines()
    quoted = [line for line in lines if line.startswith("    ") and line.strip()]
    printed = [" ".join(line.split()) for line in shown.splitlines()]
    assert len(quoted) > 10
    for line in quoted:
        assert " ".join(line.split()) in printed


def test_nothing_that_exists_is_called_planned() -> None:
    """A page that calls a thing planned is not read again when the thing is built."""
    glossary = (DOCS / "glossary.md").read_text(encoding="utf-8")
    planned = re.findall(r"^\*\*(\w+)\*\*\. \*Planned", glossary, re.MULTILINE)
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert not [name for name in planned if re.search(rf"^class {name}\b", source, re.MULTILINE)]
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")):
        text = " ".join(prose(page).split())
        assert not re.search(r"does not read tables|cannot read tables|tables cannot be read", text), page


def test_readme_s_picture_has_the_demo_s_numbers() -> None:
    shown = CliRunner().invoke(app, ["demo", "--no-spark"]).output
    picture = (DOCS / "pictures/funnel.svg").read_text(encoding="utf-8")
    total, kept = re.search(r"would read (\d+) of (\d+) files", shown).group(2, 1)  # type: ignore[union-attr]
    assert f">{total} files<" in picture
    assert f">{kept} to read<" in picture
    assert re.findall(r">\u2212(\d+)<", picture) == re.findall(r"^  - +(\d+) ", shown, re.MULTILINE)


# -- tables ---------------------------------------------------------------------------------------------------

HOW_TO = Schema(
    tuple(
        Column(place, path, type_)
        for place, (path, type_) in enumerate(
            {
                ("x",): pa.int32(),
                ("l",): pa.int64(),
                ("s",): pa.string(),
                ("d",): pa.date32(),
                ("ts",): pa.timestamp("us", "UTC"),
                ("b",): pa.bool_(),
                ("a", "b"): pa.int32(),
            }.items(),
            1,
        )
    )
)
TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "decimal(9, 2)": pa.decimal128(9, 2),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("us"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
    "struct, list, map": pa.list_(pa.int32()),
}


def table(page: str, first_header: str) -> Iterator[list[str]]:
    """The rows, header first, of the table whose first column has this header."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {first_header} |"))
    for place, line in enumerate(lines[start:]):
        if not line.startswith("|"):
            return
        if place != 1:
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def treatment(condition: str, schema: Schema) -> str:
    """How a condition prunes, in the words of the documentation."""
    try:
        return _word(bind_text(condition, schema, instant=0, names=("db", "events")).root)
    except BindError:
        return "error"


def _word(root: Bound) -> str:
    match root:
        case Known():
            return "constant"
        case Leaf(outer=outer, inner=inner):
            return "exact" if outer == inner else "inexact"
        case AllOf() | AnyOf():
            return "several"
    return "opaque"


def how_to_rows() -> list[tuple[str, str]]:
    rows = list(table("how-to/write-a-predicate.md", "condition"))[1:]
    return [(condition, row[1]) for row in rows for condition in re.findall(r"`([^`]+)`", row[0])]


@pytest.mark.parametrize(("condition", "prunes"), how_to_rows())
def test_condition_prunes_as_the_how_to_says(condition: str, prunes: str) -> None:
    assert treatment(condition, HOW_TO) == prunes


def comparisons() -> list[tuple[str, str, str]]:
    header, *rows = table("reference/predicates.md", "column")
    return [
        (row[0].strip("| "), literal.strip("`| "), cell.strip("| "))
        for row in rows
        for literal, cell in zip(header[1:], row[1:], strict=True)
    ]


@pytest.mark.parametrize(("column", "literal", "said"), comparisons())
def test_types_compare_as_the_reference_says(column: str, literal: str, said: str) -> None:
    assert treatment(f"c >= {literal}", Schema.of(c=TYPES[column])) == said


def test_every_job_of_a_table_is_in_the_reference() -> None:
    text = (DOCS / "reference/open.md").read_text(encoding="utf-8")
    jobs = [name for name, thing in vars(Table).items() if callable(thing)] + list(vars(Changeable))
    assert [name for name in jobs if not name.startswith("_") and f"`{name}(" not in text and name != "source"] == []


def test_every_option_of_a_command_is_in_the_reference() -> None:
    text = "".join(
        (DOCS / "reference" / name).read_text(encoding="utf-8") for name in ("command-line.md", "rewrite-options.md")
    )
    commands = get_command(app).commands  # type: ignore[attr-defined] # of a group
    options = {name for command in commands.values() for param in command.params for name in param.opts}
    assert [name for name in sorted(options) if name.startswith("--") and name.removeprefix("--") not in text] == []


@pytest.mark.parametrize("result", [Appended, Deleted, Updated, Merged, Evolved], ids=lambda one: one.__name__)
def test_every_field_of_a_result_is_in_the_reference(result: type) -> None:
    text = (DOCS / "reference/plans.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if f"`{result.__name__}` |" in line)
    assert re.findall(r"`(\w+)`", row.split("|")[3]) == [field.name for field in fields(result)[1:]]


def test_reader_features_of_delta_in_the_reference_are_those_that_are_read() -> None:
    text = (DOCS / "reference/open.md").read_text(encoding="utf-8")
    said = set(re.findall(r"`(\w+)`", text[text.index("Read\nare") :].split(". A", 1)[0]))
    assert said == {name for name in READ if not name.endswith("-preview")}


@by_page
def test_module_that_a_page_names_has_what_the_page_says(page: Path) -> None:
    for name, module in re.findall(
        r"`(\w+)(?:\([^`]*\)\S*)?` \(in `(tamis[\w.]*)`\)", page.read_text(encoding="utf-8")
    ):
        assert hasattr(import_module(module), name), f"{module} has no {name}"
