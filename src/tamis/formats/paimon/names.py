"""What a table's name asks for behind a `$`, as in Paimon's own catalogs.

    orders$branch_dev       the branch dev
    orders$ro               the read-optimized form
    orders$branch_dev$ro    that of the branch
    orders$files            a system table: tamis reads none

Law: what a name asks for is opened, or refused by its name; it is never taken for something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tamis.errors import NoSuchTableError, UnsupportedFormatError
from tamis.formats.errors import shown

__all__ = ["Form", "form_of_folder", "form_of_name"]

_MARK: Final = "$"
_BRANCH: Final = "branch_"
_READ_OPTIMIZED: Final = "ro"


@dataclass(frozen=True, slots=True)
class Form:
    """A name, taken apart."""

    table: str
    """The name, or the folder, of the table itself."""
    asked: tuple[str, ...] = ()
    """What stands behind it; nothing if the table itself is meant."""

    def checked(self) -> tuple[str | None, bool]:
        """The branch that is asked for, and whether its read-optimized form; an error for every other form."""
        name = _MARK.join((self.table, *self.asked))
        branch = self.asked[0] if self.asked and self.asked[0].startswith(_BRANCH) else None
        rest = self.asked if branch is None else self.asked[1:]
        if branch == _BRANCH or len(rest) > 1 or "" in rest:
            raise NoSuchTableError(
                f"{shown(name)} names nothing: behind a table's name come $branch_NAME, $ro, or both in this order.",
                table=shown(name),
            )
        if rest and rest[0].lower() != _READ_OPTIMIZED:
            raise UnsupportedFormatError(
                f"cannot read {shown(name)}: ${shown(rest[0])} is none of the forms of a Paimon table that tamis "
                "reads. Open the table itself, a branch with $branch_NAME, or what compaction has made with $ro.",
                path=shown(name),
                feature=f"the system table ${shown(rest[0])}",
            )
        return None if branch is None else branch.removeprefix(_BRANCH), bool(rest)


def form_of_folder(folder: str) -> Form:
    """What a path asks for behind the name of its last folder.

    >>> form_of_folder("/lake/db.db/orders$branch_dev$ro")
    Form(table='/lake/db.db/orders', asked=('branch_dev', 'ro'))
    """
    above, slash, name = folder.rstrip("/").rpartition("/")
    return _form(folder, above + slash, name)


def form_of_name(name: str) -> Form:
    """What a name in a catalog asks for behind that of the table: a branch may have dots in its name.

    >>> form_of_name("db.orders$branch_v1.2")
    Form(table='db.orders', asked=('branch_v1.2',))
    """
    database, dot, table = name.partition(".")
    return _form(name, database + dot, table)


def _form(whole: str, before: str, name: str) -> Form:
    table, *asked = name.split(_MARK)
    return Form(before + table, tuple(asked)) if table and asked else Form(whole)
