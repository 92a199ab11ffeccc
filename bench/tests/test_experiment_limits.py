"""What an experiment costs and keeps where models break, and how little of it has to be read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lessonbank import Step, Trajectory
from lessonbank.contracts.ports import Message
from lessonbank.errors import ModelError, StoreUnavailable
from lessonbank.testing import ScriptedModel
from lessonbank_bench.cassette import Recorded
from lessonbank_bench.environments import ArmMemories, Finished, Job, environment
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.environments.model_agent import Speaker
from lessonbank_bench.environments.null import NullEnvironment
from lessonbank_bench.experiment.journal import BROKEN, ROWS, read_rows
from lessonbank_bench.experiment.records import Budget, Experiment, made
from lessonbank_bench.experiment.runner import run

from .experiments import facts, killed, rows_of

ASYNC = pytest.mark.anyio
ASKED = [Message(role="user", content="what now?")]


class Doors(NullEnvironment):
    """Four doors, opened as a test says."""

    def __init__(self, attempt: Callable[[Job], Finished], memories: Any) -> None:
        super().__init__()
        self.memories, self._attempt = memories, attempt

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        return [Job(f"{seed}/{i}", seed, f"open door {i % 4}", f"door {i % 4}", "hall", None) for i in range(n)]

    def attempt(self, task: Job, agent: int, memory: str, /) -> Finished:
        return self._attempt(task)


def asked(**more: Any) -> Experiment:
    told = {"environment": "doors", "seeds": [1], "tasks": 12, "arms": [{"name": "none"}, {"name": "lessonbank"}]}
    return made({**told, "shuffle": False, "leave_out": [], **more}, source="test")


# --- a model that breaks ----------------------------------------------------------------------------------------------


def forgetful(fails: int) -> ScriptedModel:
    """Draws a lesson from each run, and is busy once."""
    count = iter(range(1, 10_000))

    def reply(messages: Sequence[Message]) -> str | ModelError:
        system, shown = messages[0].content, messages[-1].content
        if system.startswith("You judge"):
            check = re.search(r'"check": "([0-9a-f]{8})"', shown)
            return json.dumps(
                {"check": check[1] if check else "", "reason": "It says so", "outcome": "success", "confidence": 0.9}
            )
        if next(count) == fails:
            return ModelError("busy")
        door = re.search(r"open door (\d)", shown)
        lesson = {
            "evidence": ["step 1"],
            "cause": "it opened",
            "title": f"Door {door and door[1]} opens when it is turned left",
            "description": f"When asked to open door {door and door[1]}.",
            "content": f"On door {door and door[1]}, turn left first: `turn left` opened it at once.",
        }
        return json.dumps({"items": [lesson]})

    return ScriptedModel(reply, name="m")


def doors(fails: int) -> Doors:
    steps = (Step(observation="A closed door."), Step(action="turn left", observation="The door is open."))
    return Doors(
        lambda task: Finished(Trajectory(task=task.goal, steps=steps), True), ArmMemories("doors", forgetful(fails))
    )


def test_a_request_that_failed_once_and_came_again_is_rebuilt_as_it_was(tmp_path: Path) -> None:
    what = asked(model="m", judged=True)
    run(what, doors(fails=1), tmp_path / "whole")
    killed(what, doors(fails=1), tmp_path / "cut", after=20)
    ran = run(what, doors(fails=99), tmp_path / "cut", resume=True)
    assert (ran.made, ran.errors, ran.complete) == (4, 1, True)
    assert facts(tmp_path / "cut") == facts(tmp_path / "whole")


def test_controls_that_tear_up_what_marks_a_memory_go_on_as_they_were(tmp_path: Path) -> None:
    arms = [{"name": name} for name in ("none", "shuffled", "placebo", "synapse", "awm", "lessonbank")]
    for folder, budget in (("whole", None), ("cut", 14), ("cut", None)):
        what = asked(environment="desk", seeds=[5], tasks=4, arms=arms, budget={"attempts": budget})
        run(what, environment("desk"), tmp_path / folder, resume=True)
    assert facts(tmp_path / "cut") == facts(tmp_path / "whole")
    assert len(facts(tmp_path / "cut")) == 24


@ASYNC
async def test_a_failure_is_kept_and_repeated_only_where_that_is_wanted(tmp_path: Path) -> None:
    cassette = tmp_path / "c.jsonl"
    model = ScriptedModel([ModelError("busy \ud800"), "first", ModelError("gone"), "never"])
    for asks in (model, ScriptedModel([])):
        recording = Recorded(asks, cassette=cassette, failures=True)
        with pytest.raises(ModelError, match="busy"):
            await recording.generate(ASKED)
        assert (await recording.generate(ASKED)).text == "first"
        with pytest.raises(ModelError, match="gone"):
            await recording.generate(ASKED)
    assert (await Recorded(None, cassette=cassette).generate(ASKED)).text == "first"


@ASYNC
async def test_an_answer_that_is_no_unicode_is_kept_mended(tmp_path: Path) -> None:
    cassette = tmp_path / "c.jsonl"
    first = await Recorded(ScriptedModel(["I think \ud83d this"]), cassette=cassette).generate(ASKED)
    assert first.text == "I think \ufffd this" == (await Recorded(None, cassette=cassette).generate(ASKED)).text


def test_an_agent_of_mini_swe_agent_knows_what_it_cost_when_it_breaks() -> None:
    speaker = Speaker(ScriptedModel(["a word", ModelError("gone")]), temperature=0.7)
    speaker(ASKED)
    spent = speaker.usage
    with pytest.raises(ModelError, match="gone"):
        speaker(ASKED)
    assert (speaker.usage, spent.requests) == (spent, 1)
    assert spent.input_tokens > 0


def test_a_task_of_mind2web_that_breaks_half_way_is_paid_for(tmp_path: Path) -> None:
    (tmp_path / "test_task").mkdir()
    page = '<html backend_node_id="1"><a backend_node_id="2">go</a><b backend_node_id="3">stay</b></html>'
    right, wrong = ({"tag": "a", "backend_node_id": n, "attributes": f'{{"backend_node_id": "{n}"}}'} for n in "23")
    action = {
        "action_uid": "u",
        "operation": {"op": "CLICK", "value": ""},
        "cleaned_html": page,
        "raw_html": page,
        "pos_candidates": [right],
        "neg_candidates": [wrong],
    }
    told = {"annotation_id": "t", "confirmed_task": "go", "website": "w", "domain": "d", "subdomain": "s"}
    told |= {"action_reprs": ["[a] go -> CLICK"] * 2, "actions": [action, {**action, "action_uid": "v"}]}
    (tmp_path / "test_task" / "test_task_0.json").write_text(json.dumps([told]), encoding="utf-8")
    model = ScriptedModel(["CLICK [2]", ModelError("gone")])
    place = environment("mind2web", model, {"data": str(tmp_path), "candidates": "drawn"})
    run(asked(environment="mind2web", seeds=[1], tasks=1, share=False), place, tmp_path / "out")
    row = rows_of(tmp_path / "out")[0]
    assert (row.error and row.error.message, row.requests, row.run) == ("gone", 1, None)
    assert row.tokens > 0


# --- reading ----------------------------------------------------------------------------------------------------------


class Says:
    """A memory that says one thing."""

    live, failure = True, None

    def __init__(self, text: str) -> None:
        self._text = text

    def make(self, name: str, seed: int, /, *, limit: int, answers: Path | None = None) -> Any:
        return self

    def recall(self, goal: str, /) -> str:
        return self._text

    def learn(self, run: Trajectory, /, *, success: bool | None) -> None:
        pass

    def close(self) -> None:
        pass


def test_rows_can_be_read_without_the_runs(tmp_path: Path) -> None:
    tricky = 'x,"run":{"id":1},"lessons":[],"y":"'

    def attempt(task: Job) -> Finished:
        told: Any = {"lessons": [], "run": {"lessons": []}}
        return Finished(
            Trajectory(task=task.goal, steps=(Step(action=tricky),), metadata=told), True, {"run": 1.0, "lessons": 2.0}
        )

    run(asked(), Doors(attempt, Says(tricky)), tmp_path)
    whole, bare = rows_of(tmp_path), read_rows(tmp_path, runs=False)[1]
    assert all(row.run is not None for row in whole)
    assert bare == [row.model_copy(update={"run": None}) for row in whole]
    spaced = [json.dumps(json.loads(line)) for line in (tmp_path / ROWS).read_text(encoding="utf-8").splitlines()]
    (tmp_path / ROWS).write_text("\n".join(spaced) + "\n", encoding="utf-8")
    assert read_rows(tmp_path, runs=False)[1] == bare


def test_attempts_that_an_outage_ended_are_made_again_and_cost_no_task(tmp_path: Path) -> None:
    """What a run without the outage leaves, but for the lines of the outage, which are kept beside it."""
    experiment = made(
        {"seeds": [100], "tasks": 6, "leave_out": [], "arms": [{"name": "none"}, {"name": "lessonbank"}]}, source="test"
    )
    patient = experiment.model_copy(update={"budget": Budget(errors=3)})
    run(experiment, DeskEnvironment(), tmp_path / "whole")

    class Down(DeskEnvironment):
        made = 0

        def attempt(self, task: Job, agent: Any, memory: str, /) -> Finished:
            self.made += 1
            if self.made > 4:
                raise ModelError("the provider is down")
            return super().attempt(task, agent, memory)

    ran = run(patient, Down(), tmp_path / "out")
    assert ran.stopped.endswith("in a row met an error of infrastructure, the last: the provider is down")
    before = (tmp_path / "out" / ROWS).read_bytes()
    assert run(patient, DeskEnvironment(), tmp_path / "out", resume=True).complete
    one, other = ([row.facts() for row in read_rows(tmp_path / name)[1]] for name in ("whole", "out"))
    assert [{**row, "config": ""} for row in one] == [{**row, "config": ""} for row in other]
    broken = (tmp_path / "out" / BROKEN).read_bytes()
    assert broken.count(b"the provider is down") == broken.count(b"\n") >= 3
    assert before.endswith(broken)


def test_an_error_in_the_middle_of_a_run_stays(tmp_path: Path) -> None:
    arms = [{"name": "none"}, {"name": "another", "memory": "a/a-none"}]
    what = {"seeds": [100], "tasks": 4, "arms": arms, "shuffle": False, "share": False}
    experiment = made(what, source="test")

    class Once(DeskEnvironment):
        def attempt(self, task: Job, agent: Any, memory: str, /) -> Finished:
            if task.id.endswith("/1"):
                raise ModelError("gone for a moment")
            return super().attempt(task, agent, memory)

    run(experiment.model_copy(update={"budget": Budget(attempts=6)}), Once(), tmp_path)
    rows = (tmp_path / ROWS).read_bytes()
    run(experiment, Once(), tmp_path, resume=True)
    assert (tmp_path / ROWS).read_bytes().startswith(rows)
    assert not (tmp_path / BROKEN).exists()


def test_attempts_that_may_not_be_read_are_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = made({"seeds": [100], "tasks": 1, "arms": [{"name": "none"}, {"name": "random"}]}, source="test")
    run(experiment, DeskEnvironment(), tmp_path)

    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(StoreUnavailable, match=r"cannot read .*: Permission denied"):
        read_rows(tmp_path)
