"""A judge reads little first, and sees more only where it asks for steps that were cut."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pytest
from coded_replies import coded

import lessonbank
from lessonbank import Learning, Model, Observation, Step, Trajectory
from lessonbank.contracts.ports import Message
from lessonbank.errors import ModelError, UsageError
from lessonbank.learning.judging import LLMJudge, parse_verdict
from lessonbank.testing import ScriptedModel
from lessonbank.text.rendering import estimate_tokens, incomplete_steps, render

pytestmark = [pytest.mark.anyio, pytest.mark.full]

DECIDES = "the second parcel went to the wrong street"
NUMBER = 7


def long_run(steps: int = 30) -> Trajectory:
    """Every step reads a long list of its own; what decides stands in the middle of one."""

    def seen(number: int) -> str:
        lines = [f"row {number}-{n}: {'lorem ipsum dolor sit amet ' * 3}" for n in range(60)]
        if number == NUMBER:
            lines[30] = DECIDES
        return "\n".join(lines)

    return Trajectory(
        task="Send two parcels",
        instructions="Be exact.",
        steps=tuple(Step(action=f"read list {n}", observation=seen(n)) for n in range(1, steps + 1)),
        answer="Both are sent.",
    )


def first(*steps: int) -> Callable[[Sequence[Message]], str]:
    return coded(reason="r", outcome="success", confidence=0.7, steps=[*steps])


SURE = coded(reason="r", outcome="failure", confidence=0.95, steps=[])


async def test_the_first_look_fits_six_thousand_tokens_whatever_the_run() -> None:
    model = ScriptedModel([first()])
    await LLMJudge(model)(long_run(200))
    words = LLMJudge(model).prompt
    frame = estimate_tokens(words.system + words.user)
    assert estimate_tokens("".join(m.content for m in model.calls[0].messages)) - frame < 6_150


async def test_steps_that_the_first_look_cut_are_shown_whole_in_a_second_one() -> None:
    model = ScriptedModel([first(NUMBER), SURE])
    verdict = await LLMJudge(model)(long_run())
    assert (verdict.outcome, verdict.confidence) == ("failure", 0.95)
    one, two = (call.messages for call in model.calls)
    assert DECIDES not in one[-1].content
    assert two[: len(one)] == one, "the first request again, which a cache holds"
    assert two[len(one)].role == "assistant"
    assert DECIDES in two[-1].content
    assert estimate_tokens(two[-1].content) < 8_300
    assert verdict.usage.requests == 2


async def test_nothing_more_is_shown_where_nothing_was_cut_or_nothing_is_asked_for() -> None:
    short = Trajectory(task="Send", steps=(Step(action="send", observation="sent"),))
    for run, named in ((short, (1,)), (long_run(), ()), (long_run(), (999, 0))):
        model = ScriptedModel([first(*named)])
        verdict = await LLMJudge(model)(run)
        assert (len(model.calls), verdict.outcome) == (1, "success")


async def test_a_second_look_that_fails_leaves_the_first_verdict() -> None:
    for failure in (ModelError("down"), "no idea"):
        verdict = await LLMJudge(ScriptedModel([first(NUMBER), failure]))(long_run())
        assert (verdict.outcome, verdict.confidence, verdict.error) == ("success", 0.7, None)


async def test_a_second_look_has_its_own_code_in_every_line_of_strangers() -> None:
    model = ScriptedModel([first(NUMBER), SURE])
    await LLMJudge(model)(long_run())
    (code,) = set(re.findall(r"<<<(?:end )?steps ([0-9a-f]{8})>>>", model.calls[1].messages[-1].content))
    body = model.calls[1].messages[-1].content.split(f"<<<steps {code}>>>\n")[1].split(f"\n<<<end steps {code}>>>")[0]
    ours = [line for line in body.splitlines() if line and not line.startswith(("|", "[", "agent", "environment"))]
    assert ours == []


async def test_the_settings_of_a_bank_reach_its_judge() -> None:
    for learning, calls in ((Learning(), 2), (Learning(second_look=None), 1)):
        model = ScriptedModel([first(NUMBER), SURE])
        async with await lessonbank.connect_async(
            ":memory:", scope="a", embedder="lexical", model=Model(model), learning=learning
        ) as bank:
            verdict = await bank.judge(long_run())
        assert (len(model.calls), verdict.usage.requests) == (calls, calls)
    model = ScriptedModel([first(NUMBER), SURE])
    less = Learning(judge_budget=1_000, second_look=1_500)
    async with await lessonbank.connect_async(
        ":memory:", scope="a", embedder="lexical", model=Model(model), learning=less
    ) as bank:
        await bank.judge(long_run())
    sizes = [estimate_tokens(call.messages[-1].content) for call in model.calls]
    assert sizes[0] < 1_900
    assert sizes[1] < 1_900


def test_a_second_look_takes_a_number_of_tokens() -> None:
    with pytest.raises(UsageError, match=r"second_look="):
        Learning(second_look=3)
    with pytest.raises(UsageError, match=r"second_look="):
        Learning(second_look="much")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "steps"),
    [
        ('{"outcome": "success", "steps": [3, "step 7", true, {"a": 1}]}', (3, 7)),
        ('{"outcome": "success", "steps": "3 and 7"}', (3, 7)),
        ('{"outcome": "success", "steps": "none"}', ()),
        ('{"outcome": "success"}', ()),
        ("Outcome: success\nSteps: 4, 5", (4, 5)),
        (json.dumps({"outcome": "success", "steps": [*range(1000)]}), tuple(range(12))),
    ],
)
def test_the_steps_that_a_reply_names_are_read_from_any_form(said: str, steps: tuple[int, ...]) -> None:
    assert parse_verdict(said).steps == steps


def test_a_rendering_says_which_steps_it_does_not_show_whole() -> None:
    assert NUMBER in incomplete_steps(render(long_run(), budget=6_000))
    assert incomplete_steps(render(long_run(1), budget=60_000)) == ()


async def test_a_step_of_a_web_run_that_is_told_by_what_changed_is_shown_whole_on_request() -> None:
    fields = "\n".join(f"\t[a{n}] textbox 'Field {n}'" for n in range(12))

    def page(state: str) -> Observation:
        return Observation(text=f"RootWebArea 'Order'\n{fields}\n\t[b1] button 'Order Now' {state}", source="user")

    run = Trajectory(
        task="Order it",
        steps=(Step(observations=(page(""),)), Step(action="```click('b1')```", observations=(page("disabled=True"),))),
    )
    model = ScriptedModel([first(2), SURE])
    verdict = await LLMJudge(model)(run)
    assert "Field 3" not in model.calls[0].messages[-1].content.partition("[step 2]")[2]
    assert "Field 3" in model.calls[1].messages[-1].content
    assert verdict.usage.requests == 2
