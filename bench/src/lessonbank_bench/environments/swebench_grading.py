"""Predictions as the SWE-bench harness takes them, and what its reports say, put back into attempts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lessonbank.errors import FormatError, UsageError
from lessonbank.guard import one_line

from .swebench_data import PUBLISHED

if TYPE_CHECKING:  # at run time the experiment's records would import this package
    from lessonbank_bench.experiment.records import AttemptRow

MODULE = "swebench.harness.run_evaluation"
_START = 60.0
_SLACK = 1_800
"""Seconds beyond the tests: an image is fetched first."""
_UNAPPLIED = "Patch Apply Failed"
"""What the harness writes where a patch does not fit the repository: the agent's failure, not its own."""


def prediction(instance_id: str, patch: str, /, *, model: str) -> dict[str, str]:
    """One entry of a predictions file."""
    return {"instance_id": instance_id, "model_name_or_path": model, "model_patch": patch}


def predictions(rows: Iterable[AttemptRow], /, *, arm: str, seed: int, model: str) -> dict[str, dict[str, str]]:
    """`preds.json` for one arm and seed of an experiment: the official format, by instance.

    A run that handed nothing in is an empty patch; an attempt that broke is left out, and can be made again.
    """
    chosen = [row for row in rows if row.arm == arm and row.seed == seed and row.run is not None]
    return {
        instance_of(row): prediction(instance_of(row), row.run.answer or "" if row.run else "", model=model)
        for row in chosen
    }


def graded(rows: Sequence[AttemptRow], report: Mapping[str, Any], /, *, arm: str, seed: int) -> list[AttemptRow]:
    """The rows, those of one arm and seed with the success that an official report gives them.

    Args:
        rows: the attempts of an experiment.
        report: of a run (`resolved_ids`, ...), or of single instances (`{ID: {"resolved": ...}}`).
        arm: whose predictions were graded.
        seed: of which stream.

    Raises:
        FormatError: it is no such report.
        UsageError: it is about none of these attempts.
    """
    resolved = outcomes(report)
    named = [row.arm == arm and row.seed == seed and instance_of(row) in resolved for row in rows]
    mine = [its and row.run is not None for row, its in zip(rows, named, strict=True)]  # what broke handed nothing in
    if not any(mine):
        raise UsageError(f"the report is about no attempt of arm {arm!r}, seed {seed}")
    return [
        row.model_copy(update={"success": resolved[instance_of(row)]}) if its else row
        for row, its in zip(rows, mine, strict=True)
    ]


def outcomes(report: Mapping[str, Any], /) -> dict[str, bool]:
    """By instance, whether a report has it resolved; as officially, an error or an empty patch is not.

    Raises:
        FormatError: it is no report of the harness.
    """
    if isinstance(report.get("resolved_ids"), list):
        lost = (_ids(report, key) for key in ("unresolved_ids", "empty_patch_ids", "error_ids"))
        return {**{name: False for ids in lost for name in ids}, **dict.fromkeys(_ids(report, "resolved_ids"), True)}
    single = {
        name: cast("Mapping[str, Any]", told)["resolved"]
        for name, told in report.items()
        if isinstance(told, Mapping) and isinstance(cast("Mapping[str, Any]", told).get("resolved"), bool)
    }
    if not single or len(single) < len(report):
        raise FormatError("this is no report of the SWE-bench harness: it has no resolved_ids")
    return single


def read_report(path: Path, /) -> dict[str, Any]:
    """A report file.

    Raises:
        UsageError: it cannot be read.
        FormatError: it is no JSON object.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the report {str(path)!r}: {error.strerror or error}") from error
    except ValueError as error:
        raise FormatError(f"{str(path)!r} is no JSON: {one_line(str(error), limit=200)}") from error
    if not isinstance(told, dict):
        raise FormatError(f"{str(path)!r} is no report of the SWE-bench harness")
    return cast("dict[str, Any]", told)


def instance_of(row: AttemptRow, /) -> str:
    """The instance an attempt was made at."""
    return row.task_id.rpartition("/")[2]


class Harness:
    """The official command, for one instance at a time.

    Args:
        dataset: as the environment is told it.
        split: of a published set.
        seconds: what an instance's tests may take.
        python: the interpreter that has the harness.

    Raises:
        UsageError: that interpreter has none.
    """

    def __init__(self, dataset: str, /, *, split: str, seconds: int, python: str = "") -> None:
        self._dataset = PUBLISHED.get(dataset) or str(Path(dataset).resolve())
        self._split, self._seconds, self._python = split, seconds, python or sys.executable
        if not _runs([self._python, "-c", "import swebench"]):
            raise UsageError(
                f"environment 'swebench': grade = 'official' needs the harness in {self._python}: pip install swebench"
            )

    def command(self, file: Path, instance_id: str, run: str, /) -> list[str]:
        """What is run for one instance of a predictions file."""
        told = {
            "--dataset_name": self._dataset,
            "--split": self._split,
            "--predictions_path": str(file),
            "--instance_ids": instance_id,
            "--run_id": run,
            "--max_workers": "1",
            "--timeout": str(self._seconds),
        }
        return [self._python, "-m", MODULE, *(part for pair in told.items() for part in pair)]

    def resolved(self, file: Path, made: Mapping[str, str], run: str, /) -> bool:
        """Whether the harness has a prediction resolved.

        Raises:
            RuntimeError: the harness broke; its output is in `harness.log` beside the file.
        """
        if not made["model_patch"].strip():
            return False
        instance_id, folder = made["instance_id"], file.parent
        done = subprocess.run(
            self.command(file.resolve(), instance_id, run),
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=self._seconds + _SLACK,
            check=False,
        )
        folder.joinpath("harness.log").write_bytes(done.stdout)
        logs = folder / "logs" / "run_evaluation" / run / made["model_name_or_path"].replace("/", "__") / instance_id
        if (logs / "report.json").is_file():
            return outcomes(read_report(logs / "report.json")).get(instance_id, False)
        log = logs / "run_instance.log"
        if log.is_file() and _UNAPPLIED in log.read_text(encoding="utf-8", errors="replace"):
            return False
        raise RuntimeError(f"the SWE-bench harness gave no report for {instance_id}: see {folder / 'harness.log'}")


def _ids(report: Mapping[str, Any], key: str) -> list[str]:
    told = report.get(key)
    return [name for name in cast("list[Any]", told) if isinstance(name, str)] if isinstance(told, list) else []


def _runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=_START, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
