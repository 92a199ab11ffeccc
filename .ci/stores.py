#!/usr/bin/env python3
"""Runs the suites that every store and every way to a bank must pass, and prints a table: suites down, places across.

A number is how many tests passed; `3 of 4` says that one did not. The port's own suites are for stores alone, since a
client over HTTP is no store; the bank's suite is for all. `.ci/stores.py PYTEST-OPTIONS` hands these to pytest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from adapters import SIGNS, outcome, show
from lessonbank.testing import BankContract, StoreContract

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "tests/stores/test_contract.py",
    "tests/stores/postgres/test_contract.py",
    "tests/service/test_bank_contract.py",
)
PLACES = {
    "memory": ("stores.test_contract.TestInMemory", "test_bank_contract.TestInMemory"),
    "file": ("stores.test_contract.TestSqliteStore", "test_bank_contract.TestFile"),
    "PostgreSQL": ("postgres.test_contract.TestPostgresStore", "test_bank_contract.TestPostgres"),
    "HTTP over a file": ("test_bank_contract.TestServedFile",),
    "HTTP over PostgreSQL": ("test_bank_contract.TestServedPostgres",),
}


def suites() -> dict[str, str]:
    """The suite that each test of a contract belongs to, by the test's name."""
    parts = [*reversed(StoreContract.__mro__), BankContract]
    return {
        name: part.__name__.removesuffix("Tests").replace("BankContract", "the whole bank")
        for part in parts
        for name in vars(part)
        if name.startswith("test_")
    }


def cases(more: list[str]) -> list[ElementTree.Element]:
    """Every test that ran."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not models and not release", f"--junitxml={report}"]
        subprocess.run([*command, *FILES, *more], cwd=ROOT, check=False)
        return list(ElementTree.parse(report).iter("testcase"))


def table(found: list[ElementTree.Element]) -> dict[str, dict[str, str]]:
    """Place to suite to how many tests passed."""
    suite_of, every = suites(), dict[tuple[str, str], list[bool]]()
    for case in found:
        place = next((name for name, those in PLACES.items() if case.get("classname", "").endswith(those)), None)
        suite = suite_of.get(case.get("name", "").split("[")[0])
        if place and suite:
            every.setdefault((place, suite), []).append(outcome(case) == SIGNS["passed"])
    return {
        place: {suite: told(every.get((place, suite), [])) for suite in dict.fromkeys(suite_of.values())}
        for place in PLACES
    }


def told(passed: list[bool]) -> str:
    """A cell."""
    return f"{sum(passed)} of {len(passed)}" if not all(passed) else str(len(passed)) if passed else "-"


def main() -> int:
    """The exit code is 1 where a test did not pass, or a place has none."""
    columns = table(cases(sys.argv[1:]))
    show(columns)
    cells = [cell for column in columns.values() for cell in column.values()]
    return int(any(" of " in cell for cell in cells) or any({*column.values()} == {"-"} for column in columns.values()))


if __name__ == "__main__":
    sys.exit(main())
