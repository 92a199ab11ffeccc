"""What the tests of experiments share: rows made by hand, rows read back, and a run that dies."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.records.ids import digest
from lessonbank_bench.experiment.journal import ROWS, read_rows
from lessonbank_bench.experiment.records import AttemptRow, Experiment
from lessonbank_bench.experiment.runner import Progress, run


class Killed(BaseException):
    """What a test throws into a run: no part of the code may catch it."""


def killed(experiment: Experiment, place: Any, folder: Path, *, after: int) -> None:
    """Run an experiment that dies after so many rows."""

    def tell(progress: Progress) -> None:
        if progress.done == after:
            raise Killed

    with pytest.raises(Killed):
        run(experiment, place, folder, tell=tell)


def rows_of(folder: Path, arm: str = "") -> list[AttemptRow]:
    """Those of one arm, or of all."""
    return [row for row in read_rows(folder)[1] if arm in ("", row.arm)]


def facts(folder: Path) -> list[dict[str, Any]]:
    """What has to be equal in two runs of one experiment."""
    return [row.facts() for row in rows_of(folder)]


def copied(source: Path, target: Path, *, lines: int, extra: bytes = b"") -> None:
    """The first rows of an experiment, without its banks, and what a killed process left behind them."""
    for path in source.iterdir():
        if path.is_file():
            (target / path.name).write_bytes(path.read_bytes())
    kept = (source / ROWS).read_bytes().split(b"\n")[:lines]
    (target / ROWS).write_bytes(b"\n".join(kept) + b"\n" + extra)


def made_row(arm: str, seed: int, place: int, success: bool | None, **more: Any) -> AttemptRow:
    """An attempt that nobody made."""
    memory = digest(more.get("memory", ""))
    told: dict[str, Any] = {
        "config": "c",
        "versions": {"lessonbank": "0"},
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "task_id": f"{seed}/{place}",
        "task": f"task {place} of {seed}",
        "family": f"family {place % 2}",
        "memory_digest": memory,
        "same_digest": memory,
    }
    return AttemptRow(arm=arm, seed=seed, place=place, success=success, **{**told, **more})
