"""Run benchmarks: `python -m bench` all of them, `python -m bench judge_million import_time` those two.

Each script runs in a process of its own, so that its imports and its peak memory are its own. A goal that is missed
is shown and is no failure; a script that fails, or whose two sides disagree, is one.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.harness import HERE, RESULTS, Claim, table

NO_SCRIPTS = {"__init__", "__main__", "harness"}
PACKAGES = ("tamis", "pyarrow", "numpy", "datafusion", "pyiceberg", "deltalake")


def scripts() -> list[str]:
    """Every module of this folder that is no part of the harness."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NO_SCRIPTS)


def run(name: str) -> dict[str, Any] | None:
    """What one script measured; None if it failed, after its own words on the error stream."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "claims.json"
        start = perf_counter()
        code = subprocess.run(
            [sys.executable, "-m", f"bench.{name}", "--json", str(target)], cwd=HERE.parent, check=False
        ).returncode
        if code:
            return None
        found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return {"script": name, "seconds": perf_counter() - start, **found}


def machine() -> dict[str, Any]:
    """Where the figures were taken: they compare within one machine only."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        **versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def keep(where: dict[str, Any], ran: list[dict[str, Any]], failed: list[str]) -> None:
    """Write down what was measured so far: a run that is broken off keeps the figures of the scripts that ended."""
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"machine": where, "scripts": ran, "failed": failed}, indent=1) + "\n", encoding="utf-8"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run benchmarks against their peers.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"which ones; all if none: {', '.join(scripts())}")
    names = parser.parse_args().names or scripts()
    if unknown := set(names) - set(scripts()):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(scripts())}")
    where = machine()
    ran: list[dict[str, Any]] = []
    failed: list[str] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = run(name)
        if found is None:
            failed.append(name)
        else:
            ran.append(found)
            print(table([Claim.from_dict(claim) for claim in found["claims"]]) + "\n", flush=True)
        keep(where, ran, failed)
    claims = [Claim.from_dict(claim) for script in ran for claim in script["claims"]]
    if len(ran) > 1:
        print(table(claims))
    missed = sum(not claim.met for claim in claims)
    print(f"\n{len(claims)} claims, {missed} missed; {where['cores']} cores, load {where['load']:.1f}: {RESULTS}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
