"""One value is one placeholder wherever a model reads it: in every run of a task, and in what is said of them."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessonbank
from lessonbank import Model, Run, Step, Trajectory, Verdict
from lessonbank.guard.redact import redact, redacted
from lessonbank.testing import ScriptedModel

pytestmark = pytest.mark.full
KIM, LEE = "kim.doe@example.com", "lee.roe@example.com"


def run(*seen: str) -> Trajectory:
    return Trajectory(task="Write to both", steps=tuple(Step(action="look", observation=text) for text in seen))


async def asked(*runs: Run) -> str:
    model = ScriptedModel(lambda _: '{"items": []}')
    async with await lessonbank.connect_async(":memory:", scope="a", embedder="lexical", model=Model(model)) as bank:
        await bank.extract(runs)
    return model.calls[0].messages[-1].content


@pytest.mark.anyio
async def test_a_value_is_the_same_placeholder_in_every_run_of_a_task() -> None:
    first = Run(trajectory=run(f"to {KIM}", f"cc {LEE}"), verdict=Verdict(outcome="success"))
    second = Run(trajectory=run(f"bcc {LEE}", f"from {KIM}"), verdict=Verdict(outcome="failure"))
    text = await asked(first, second)
    for line in ("to [e-mail 1]", "cc [e-mail 2]", "bcc [e-mail 2]", "from [e-mail 1]"):
        assert f"| {line}" in text


@pytest.mark.anyio
async def test_a_verdicts_reason_names_a_value_as_the_run_does() -> None:
    told = Verdict(outcome="failure", source="human", reason=f"It should have gone to {LEE}, not to {KIM}.")
    text = await asked(Run(trajectory=run(f"to {KIM}", f"cc {LEE}"), verdict=told))
    assert "It should have gone to [e-mail 2], not to [e-mail 1]." in text
    assert "Run: failure (said by a person who checked)." in text


@pytest.mark.anyio
async def test_runs_that_are_learned_together_are_kept_with_equal_placeholders() -> None:
    model = ScriptedModel(lambda _: '{"items": []}')
    async with await lessonbank.connect_async(":memory:", scope="a", embedder="lexical", model=Model(model)) as bank:
        await bank.learn([run(f"to {KIM}", f"cc {LEE}"), run(f"bcc {LEE}")], reward=[1.0, 0.0])
        kept = await bank.runs.list()
    seen = {step.observations[0].text for one in kept for step in one.trajectory.steps}
    assert seen == {"to [e-mail 1]", "cc [e-mail 2]", "bcc [e-mail 2]"}


FORMS = (
    "{0}{1}{2}",
    "{0}-{1}-{2}",
    "({0}) {1}-{2}",
    "({0}){1}{2}",
    "{0}.{1}.{2}",
    "{0} {1} {2}",
    "+1 {0} {1} {2}",
    "+1{0}{1}{2}",
    "1-{0}-{1}-{2}",
    "+1 ({0}) {1}-{2}",
    "001 {0} {1} {2}",
)


@settings(max_examples=60)
@given(
    area=st.integers(200, 999),
    middle=st.integers(200, 999),
    last=st.integers(0, 9999).map("{:04}".format),
    forms=st.permutations(FORMS),
)
def test_a_telephone_number_is_one_placeholder_in_every_form(
    area: int, middle: int, last: str, forms: list[str]
) -> None:
    written = [form.format(area, middle, last) for form in (*forms, "{0}-{1}-{2}")]
    told = redacted(run(*(f"[57] textbox 'Phone' value='{one}', then" for one in written)), redact)
    assert {step.observations[0].text for step in told.steps} == {"[57] textbox 'Phone' value='[phone 1]', then"}


@pytest.mark.parametrize(
    ("named", "again"),
    [
        ("call 206-555-5555", "[a1] cell '2065555555'"),
        ("card 4111 1111 1111 1111", "paid with 4111.1111.1111.1111 today"),
        ("SSN 123-45-6788", "on file: 123456788"),
        ("telephone +44 20 7946 0958", "dial 0044 (20) 79460958"),
    ],
)
def test_a_number_is_masked_in_another_form_also_before_it_was_recognised(named: str, again: str) -> None:
    told = redacted(run(again, named, again), redact)
    first, named, last = (step.observations[0].text for step in told.steps)
    placeholder = named[named.index("[") :]
    assert placeholder in first
    assert first == last
    assert not re.search(r"\d{4}", first + named)


def test_a_number_in_data_keeps_the_data_readable() -> None:
    told = redacted(run("call 206-555-5555", '{"id": 12, "contact": 2065555555}'), redact)
    assert json.loads(told.steps[1].observations[0].text) == {"id": 12, "contact": "[phone 1]"}


def test_numbers_that_only_resemble_a_known_one_stay() -> None:
    others = ("order 2065555556", "x2065555555", "20655555551", "2.2065555555", "2065555555.25", "12065555555123")
    told = redacted(run("call 206-555-5555", *others), redact)
    assert tuple(step.observations[0].text for step in told.steps[1:]) == others
