"""What a session wants audited before it is published is not published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tamis.errors import CommitRefused
from tamis.jobs.auditing import check_audit


@dataclass
class Table:
    """As much of a table as is asked."""

    audits: bool = True
    name: str = "db.t"


@dataclass
class Session:
    """Its settings."""

    said: dict[str, str] = field(default_factory=dict)

    @property
    def conf(self) -> Any:  # noqa: ANN401 - a dict has the get that is asked
        return self.said


@pytest.mark.parametrize(
    ("table", "session", "branch"),
    [
        (Table(), None, "main"),
        (Table(), Session(), "main"),
        (Table(audits=False), Session({"spark.wap.id": "7"}), "main"),
        (Table(), Session({"spark.wap.branch": "audit"}), "audit"),
    ],
)
def test_other_writes_go_on(table: Any, session: Any, branch: str) -> None:  # noqa: ANN401 - stand-ins
    check_audit(table, session, branch)


@pytest.mark.parametrize(
    ("settings", "branch", "feature"),
    [
        ({"spark.wap.id": "7"}, "main", "spark.wap.id"),
        ({"spark.wap.id": "7"}, "audit", "spark.wap.id"),
        ({"spark.wap.branch": "audit"}, "main", "spark.wap.branch"),
    ],
)
def test_what_is_to_be_audited_is_refused_by_name(settings: dict[str, str], branch: str, feature: str) -> None:
    table: Any = Table()
    session: Any = Session(settings)
    with pytest.raises(CommitRefused, match=feature.replace(".", r"\.")) as caught:
        check_audit(table, session, branch)
    assert (caught.value.feature, caught.value.table) == (feature, "db.t")
