"""One value is one placeholder wherever a model reads it: in every run of a task, and in what is said of them."""

from __future__ import annotations

import pytest

import lessonbank
from lessonbank import Model, Run, Step, Trajectory, Verdict
from lessonbank.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.full]
KIM, LEE = "kim.doe@example.com", "lee.roe@example.com"


def run(*seen: str) -> Trajectory:
    return Trajectory(task="Write to both", steps=tuple(Step(action="look", observation=text) for text in seen))


async def asked(*runs: Run) -> str:
    model = ScriptedModel(lambda _: '{"items": []}')
    async with await lessonbank.connect_async(":memory:", scope="a", embedder="lexical", model=Model(model)) as bank:
        await bank.extract(runs)
    return model.calls[0].messages[-1].content


async def test_a_value_is_the_same_placeholder_in_every_run_of_a_task() -> None:
    first = Run(trajectory=run(f"to {KIM}", f"cc {LEE}"), verdict=Verdict(outcome="success"))
    second = Run(trajectory=run(f"bcc {LEE}", f"from {KIM}"), verdict=Verdict(outcome="failure"))
    text = await asked(first, second)
    for line in ("to [e-mail 1]", "cc [e-mail 2]", "bcc [e-mail 2]", "from [e-mail 1]"):
        assert f"| {line}" in text


async def test_a_verdicts_reason_names_a_value_as_the_run_does() -> None:
    told = Verdict(outcome="failure", source="human", reason=f"It should have gone to {LEE}, not to {KIM}.")
    text = await asked(Run(trajectory=run(f"to {KIM}", f"cc {LEE}"), verdict=told))
    assert "It should have gone to [e-mail 2], not to [e-mail 1]." in text
    assert "Run: failure (said by a person who checked)." in text


async def test_runs_that_are_learned_together_are_kept_with_equal_placeholders() -> None:
    model = ScriptedModel(lambda _: '{"items": []}')
    async with await lessonbank.connect_async(":memory:", scope="a", embedder="lexical", model=Model(model)) as bank:
        await bank.learn([run(f"to {KIM}", f"cc {LEE}"), run(f"bcc {LEE}")], reward=[1.0, 0.0])
        kept = await bank.runs.list()
    seen = {step.observations[0].text for one in kept for step in one.trajectory.steps}
    assert seen == {"to [e-mail 1]", "cc [e-mail 2]", "bcc [e-mail 2]"}
