"""What every suite shares: the budget of the property tests, and no silent skip of a required engine."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, Phase, settings

# "test" gives the same examples on every run: a red build is red for everybody. "soak" looks for new ones.
settings.register_profile("test", max_examples=200, derandomize=True, database=None, deadline=None, print_blob=True)
settings.register_profile(
    "soak",
    max_examples=20_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no finding
)
settings.register_profile(
    "probe",
    max_examples=2_000,
    deadline=None,
    print_blob=True,
    phases=[Phase.explicit, Phase.generate],  # finds soon, and does not shrink: for work on the engine itself
)
settings.load_profile(os.environ.get("TAMIS_HYPOTHESIS_PROFILE", "test"))

# Tests leave nothing behind in the user's cache, and find nothing there; those of the cache itself have their own.
os.environ["TAMIS_CACHE"] = "off"


@pytest.hookimpl(tryfirst=True)  # pytest looks for the marks when it leaves out what -m does not name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that share the one Spark session: `make test` runs them beside the rest."""
    for item in items:
        if "started_spark" in getattr(item, "fixturenames", ()):
            item.add_marker("session")


_ENGINES_REQUIRED = os.environ.get("TAMIS_REQUIRE_ENGINES", "") not in ("", "0")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail, where engines are required, what a developer's machine may skip for want of one."""
    report = yield
    if _ENGINES_REQUIRED and report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker("engine"):
        reason = call.excinfo.value if call.excinfo else "no reason given"
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and TAMIS_REQUIRE_ENGINES is set: {reason}"
    return report
