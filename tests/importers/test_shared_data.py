"""Real runs of real agents import whole: every file of the shared data, with the labels its README states."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from lessonbank.contracts.records import Step, Trajectory
from lessonbank.importers import Entry, Imported, Skipped, detect, read
from lessonbank.text.messages import to_messages

DATA = Path(__file__).parents[2].parent / "shared" / "data"
NATIVE = DATA / "native"
pytestmark = [pytest.mark.skipif(not DATA.is_dir(), reason=f"the recorded runs are not here: {DATA}"), pytest.mark.full]

ROWS = {
    "tau_bench_airline.jsonl.gz": 120,
    "swe_bench_mini_swe_agent.jsonl.gz": 95,
    "browsergym_web.jsonl.gz": 33,
    "tau2_telecom.jsonl.gz": 12,
    "hotpotqa_react.jsonl.gz": 213,
}
FILES = {
    "tau_bench/gpt-4o-airline.subset.json": ("tau_bench", 20, 0),
    "tau2/telecom_gpt-4o.json": ("tau2", 20, 0),
    "mini_swe_agent/local.traj.json": ("mini_swe_agent", 1, 0),
    "mini_swe_agent/github_issue.traj.json": ("mini_swe_agent", 1, 0),
    "mini_swe_agent/deepseek_chat_dev/marshmallow-code__marshmallow-1359.traj.json": ("mini_swe_agent", 1, 0),
    "mini_swe_agent/deepseek_chat_dev/pydicom__pydicom-1694.traj.json": ("mini_swe_agent", 1, 0),
    "mini_swe_agent/deepseek_chat_dev_rerun/marshmallow-code__marshmallow-1359.traj.json": ("mini_swe_agent", 1, 0),
    "mini_swe_agent/deepseek_chat_dev_rerun/pydicom__pydicom-1694.traj.json": ("mini_swe_agent", 1, 0),
    "swe_agent/function_calling_simple.traj": ("swe_agent", 1, 0),
    "swe_agent/pydicom__pydicom-1458.traj": ("swe_agent", 1, 0),
    "swe_agent/all_preds.jsonl": ("swe_bench", 0, 1),
    "swe_bench/preds.deepseek_chat_dev_rerun.json": ("swe_bench", 0, 1),
    "swe_bench/run_report.deepseek_chat_dev_rerun.json": ("swe_bench", 0, 1),
    "swe_bench/report.astropy__astropy-12907.json": ("swe_bench", 0, 1),
    "swe_bench/report.django__django-11019.json": ("swe_bench", 0, 1),
    "openhands/basic.json": ("openhands", 1, 0),
    "openhands/resolver_output.jsonl": ("openhands", 2, 0),
    "claude_code/coverage-test-fix.jsonl": ("claude_code", 1, 0),
    "claude_code/hello-world-script.jsonl": ("claude_code", 1, 0),
    "claude_code/representative_messages.synthetic.jsonl": ("claude_code", 2, 0),
    "claude_code/sample_session.synthetic.jsonl": ("claude_code", 2, 0),
    "claude_code/edge_cases.synthetic.jsonl": ("claude_code", 2, 7),
    "browsergym/2024-11-06_13-52-18_DemoAgentArgs_on_webarena.210_30": ("browsergym", 1, 0),
    "browsergym/2025-01-02_12-36-04_DemoAgentArgs_on_workarena.servicenow.order-apple-watch_31": ("browsergym", 1, 0),
}


def runs(path: Path) -> list[Imported]:
    return [entry for entry in read(path) if isinstance(entry, Imported)]


@cache
def entries_of(name: str) -> tuple[Entry, ...]:
    """What a file of rows holds, read once by the tests that look into it."""
    return tuple(read(DATA / name))


@pytest.mark.parametrize("name", ROWS)
def test_every_row_imports_with_its_label_and_its_messages(name: str) -> None:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    entries = entries_of(name)
    assert len(rows) == ROWS[name] == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        assert isinstance(entry, Imported)
        outcome = {True: "success", False: "failure", None: None}[row["success"]]
        assert (entry.verdict.outcome if entry.verdict else None) == outcome
        assert (entry.verdict.reward if entry.verdict else None) == row["reward"]
        assert to_messages(entry.trajectory) == row["messages"]
        made = sum(len(m.get("tool_calls") or []) for m in row["messages"] if m["role"] == "assistant")
        assert sum(len(step.action.calls) for step in entry.trajectory.steps) == made
        results = sum(m["role"] == "tool" for m in row["messages"])
        assert (
            sum(o.source == "tool" or o.call_id is not None for s in entry.trajectory.steps for o in s.observations)
            == results
        )


@pytest.mark.parametrize("name", FILES)
def test_every_native_file_imports(name: str) -> None:
    format, good, bad = FILES[name]
    assert detect(NATIVE / name) == format
    entries = list(read(NATIVE / name))
    assert sum(isinstance(entry, Imported) for entry in entries) == good
    assert sum(isinstance(entry, Skipped) for entry in entries) == bad


def test_no_native_file_is_forgotten() -> None:
    there = {str(path.relative_to(NATIVE)) for path in NATIVE.rglob("*") if path.is_file()}
    known = {name for name in there if name in FILES or str(Path(name).parent) in FILES}
    assert there == known


def test_everything_at_once_gives_each_run_its_own_id_and_the_same_one_again() -> None:
    first = runs(DATA)
    assert len(first) == sum(ROWS.values()) + sum(good for _, good, _ in FILES.values())
    assert len({entry.trajectory.id for entry in first}) == len(first)
    again = [*runs(NATIVE), *(entry for name in ROWS for entry in entries_of(name) if isinstance(entry, Imported))]
    assert ids_by_file(again) == ids_by_file(first)


def ids_by_file(entries: list[Imported]) -> dict[Path, list[str]]:
    found: dict[Path, list[str]] = {}
    for entry in entries:
        found.setdefault(entry.path, []).append(entry.trajectory.id)
    return found


def test_native_results_carry_the_labels_of_their_benchmarks() -> None:
    tau = Counter(e.verdict and e.verdict.outcome for e in runs(NATIVE / "tau_bench/gpt-4o-airline.subset.json"))
    tau2 = Counter(e.verdict and e.verdict.outcome for e in runs(NATIVE / "tau2/telecom_gpt-4o.json"))
    assert tau == {"failure": 15, "success": 5}
    assert tau2 == {"success": 14, "failure": 6}


def converted(name: str) -> dict[tuple[str, str], Trajectory]:
    found = (entry.trajectory for entry in entries_of(name) if isinstance(entry, Imported))
    return {(str(run.metadata["run_id"]), str(run.metadata["task_id"])): run for run in found}


def test_tau_bench_originals_tell_the_same_as_their_conversion() -> None:
    neutral = converted("tau_bench_airline.jsonl.gz")
    same = 0
    for entry in runs(NATIVE / "tau_bench/gpt-4o-airline.subset.json"):
        trial = str(entry.trajectory.metadata["run_id"]).rpartition("/")[2]
        twin = neutral.get((f"gpt-4o-airline/{trial}", f"airline-{entry.trajectory.metadata['task_id']}"))
        if twin:
            assert (entry.trajectory.task, entry.trajectory.steps) == (twin.task, twin.steps)
            same += 1
    assert same


def unflagged(run: Trajectory) -> list[Step]:
    """The steps without what an exit code says, which the conversion has not."""

    def plain(step: Step) -> Step:
        seen = tuple(one.model_copy(update={"is_error": False, "is_success": False}) for one in step.observations)
        return step.model_copy(update={"observations": seen})

    return [plain(step) for step in run.steps]


def test_mini_swe_agent_originals_tell_the_same_as_their_conversion() -> None:
    neutral = converted("swe_bench_mini_swe_agent.jsonl.gz")
    same = 0
    for entry in runs(NATIVE / "mini_swe_agent"):
        run = entry.trajectory
        twin = neutral.get((str(run.metadata["run_id"]), str(run.metadata["task_id"])))
        if twin:
            assert (run.task, unflagged(run)) == (twin.task, unflagged(twin))
            same += 1
    assert same == 2


def test_browsergym_originals_tell_the_same_actions_as_their_conversion() -> None:
    neutral = converted("browsergym_web.jsonl.gz")
    same = 0
    for folder in sorted((NATIVE / "browsergym").iterdir()):
        (entry,) = runs(folder)
        twin = neutral.get((folder.name, str(entry.trajectory.metadata["task_id"])))
        if twin:
            assert entry.trajectory.task == twin.task
            assert [s.action.text for s in entry.trajectory.steps] == [s.action.text for s in twin.steps]
            same += 1
    assert same
