"""`lessonbank_bench.measure.packets`: what blind readers of failed runs are given, and what their answers come to."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank_bench.measure.judging.labelled import Labelled
from lessonbank_bench.measure.packets import __main__ as packets
from lessonbank_bench.measure.packets import arms
from lessonbank_bench.measure.packets.__main__ import main
from lessonbank_bench.measure.packets.arms import ARMS, FILES, first_error, first_repeat, folds, with_codes

PLACES = ["Bonn", "Ulm", "Kiel", "Jena", "Trier", "Mainz"]


def row(place: str, *, success: bool) -> dict[str, Any]:
    """A run that books a room: the one that fails looks at a page twice."""
    calls = ("find_hotel", "book_room") if success else ("find_hotel", "find_hotel")
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Book a room in {place} for two nights."}]
    for number, name in enumerate(calls):
        call = {
            "id": f"c{number}",
            "type": "function",
            "function": {"name": name, "arguments": f'{{"city": "{place}"}}'},
        }
        said = "The hotel is fully booked; no room is left" if not success else f"{name} gave H{number}77"
        messages += [{"role": "assistant", "content": "", "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": f"c{number}", "content": said}]
    told = {"task_id": place, "task": messages[0]["content"], "reward": float(success), "success": success}
    return {"source": "own", "run_id": place, "messages": messages, "n_steps": 2, "meta": {}, **told}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of each of two sources, each with its own towns."""
    few = dict(list(FILES.items())[:2])
    monkeypatch.setattr(packets, "FILES", few)
    monkeypatch.setattr(arms, "FILES", few)
    for name in few:
        rows = [row(f"{place} {name.split('_')[0]}", success=at % 2 == 0) for at, place in enumerate(PLACES)]
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in rows)
    return tmp_path


def lines(path: Path) -> Sequence[Mapping[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.full
def test_readers_get_runs_and_lessons_without_an_arm_and_their_answers_become_a_table(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, answers = tmp_path / "out", tmp_path / "answers"
    assert main(["--data", str(data), "--out", str(out)]) == 0
    key = {one["packet"]: one for one in lines(out / "key.jsonl")}
    given = {folder.name: sorted(folder.glob("*.txt")) for folder in (out / "packets").iterdir() if folder.is_dir()}
    texts = {path.stem: path.read_text(encoding="utf-8") for each in given.values() for path in each}
    assert set(texts) == {name for name, one in key.items() if one["lessons"]}
    for name, text in texts.items():
        assert all(line in text for told in key[name]["lessons"].values() for line in told.split("\n"))
        assert not [arm for arm in (*ARMS, "mixed:") if arm in text]
    answers.mkdir()
    for reader, each in given.items():
        helps = [{"packet": x.stem, "lessons": {at: ["helps", "so"] for at in key[x.stem]["lessons"]}} for x in each]
        (answers / f"{reader}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in helps), encoding="utf-8")
    capsys.readouterr()
    assert main(["--out", str(out), "--answers", str(answers)]) == 0
    told = capsys.readouterr().out
    shown = sum(bool(one["arms"]["own: default"]) for one in key.values())
    assert f"{shown}/{len(key)}" in next(line for line in told.splitlines() if line.startswith("| own: default"))
    assert "kappa 1.00" in told
    assert "not answered" not in told


def test_all_runs_of_a_task_are_in_one_part() -> None:
    runs = [Labelled(Trajectory(task=f"task {n % 7}", steps=()), n % 2 == 0, "own", "general") for n in range(21)]
    parts = [{one.run.task for one in part} for part in folds(runs, 1)]
    assert [len(part) for part in parts] == [3, 2, 2]
    assert len(set[str]().union(*parts)) == 7


def test_a_second_look_is_at_the_first_error_and_where_nothing_new_came_back() -> None:
    def step(number: int, text: str) -> Step:
        call = ToolCall(id=f"c{number}", name="bash", arguments={"command": "make"})
        return Step(action=Action(calls=(call,)), observations=(Observation(text=text, call_id=call.id),))

    printed = ["<returncode>0</returncode>\n<output>\nnothing to be done for all\n</output>"] * 2
    failed = "<returncode>2</returncode>\n<output>\nmake: *** no rule\n</output>"
    steps = tuple(step(at, text) for at, text in enumerate([*printed, failed]))
    run, codes = with_codes(Trajectory(task="build", steps=steps))
    assert run.steps[2].observations[0].text.strip() == "make: *** no rule"
    assert (codes["c2"], first_error(run, codes), first_repeat(run)) == (2, 2, 1)
