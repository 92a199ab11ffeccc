"""What a user writes, as a type checker sees it: read by tests/architecture/test_types.py, never run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

import lessonbank
from lessonbank import Extraction, Learned, Recall, Run, Step, ToolCall, Trajectory, Verdict
from lessonbank.events import Event, Hook, Retrieved
from lessonbank.protocols import Extractor, Judge, Redactor, Role
from lessonbank.types import Action, Change, Observation, Usage


def three_lines(messages: list[dict[str, object]]) -> str:
    bank = lessonbank.connect("bank.db", scope="acme/support")
    recall = bank.retrieve("Cancel the pending order #W123")
    learned = bank.learn(messages, recall=recall, outcome="success")
    assert_type(bank, lessonbank.ReasoningBank)
    assert_type(recall, Recall)
    assert_type(learned, Learned)
    return recall.text


async def the_same_awaited(run: Trajectory) -> Sequence[Change]:
    async with await lessonbank.connect_async(":memory:", scope="acme") as bank:
        recall = await bank.retrieve(run.task, limit=3)
        assert_type(recall, Recall)
        learned = await bank.learn([run, run], recall=recall.id, reward=[1.0, 0.0])
        return learned.changes


def short_and_long_forms() -> Trajectory:
    short = Step(action="ls", observation="a.txt")
    long = Step(
        thought="look around",
        action=Action(calls=(ToolCall(name="list_files", arguments={"path": "."}),)),
        observations=(Observation(text="a.txt", source="tool"), "b.txt"),
    )
    return Trajectory(task="List the files", steps=(short, long), answer="a.txt", usage=Usage() + Usage())


async def my_judge(trajectory: Trajectory, /) -> Verdict:
    return Verdict(outcome="unknown", confidence=0.0, reason=f"nobody looked at {trajectory.id}")


async def my_extractor(attempts: Sequence[Run], /) -> Extraction:
    return Extraction(notes=(f"{len(attempts)} attempts",))


def my_redactor(text: str, /) -> str:
    return text.replace("hunter2", "[password]")


def my_hook(event: Event) -> None:
    if isinstance(event, Retrieved):
        assert_type(event.recall, Recall)


judge: Judge = my_judge
extractor: Extractor = my_extractor
redactor: Redactor = my_redactor
hook: Hook = my_hook
role: Role = "user"
