"""The judge shows the model what decides, and an answer it cannot trust is `unknown`, never an exception."""

from __future__ import annotations

from pathlib import Path

import pytest
from coded_replies import code_in, coded

from lessonbank.contracts.ports import Completion
from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory, Usage
from lessonbank.errors import ModelError, ModelTimeout, PromptError, UsageError
from lessonbank.learning.judging import LLMJudge, PaperJudge
from lessonbank.testing.fakes import ScriptedModel
from lessonbank.text.prompts import load, load_file

pytestmark = pytest.mark.anyio

RUN = Trajectory(
    task="Cancel order W123",
    instructions="Only pending orders may be cancelled, after the user confirmed.",
    steps=(
        Step(observation=Observation(text="Please cancel W123. I confirm.", source="user")),
        Step(
            thought="It must be pending.",
            action=Action(calls=(ToolCall(name="get_order", arguments={"id": "W123"}),)),
            observations=(Observation(text='{"status": "pending"}', source="tool", name="get_order"),),
        ),
        Step(
            action=Action(calls=(ToolCall(name="cancel_order", arguments={"id": "W123", "reason": "by user"}),)),
            observations=(Observation(text="cancelled", source="tool", name="cancel_order"),),
        ),
    ),
    answer="Your order is cancelled.",
)


async def test_a_verdict_keeps_reason_confidence_model_prompt_and_usage() -> None:
    model = ScriptedModel([coded(reason="Step 3 did it.", outcome="success", confidence=0.9)], name="judge-1")
    verdict = await LLMJudge(model)(RUN)
    assert (verdict.outcome, verdict.confidence, verdict.reason) == ("success", 0.9, "Step 3 did it.")
    assert (verdict.source, verdict.model, verdict.prompt) == ("judge", "judge-1", load("general/judge").ref)
    assert verdict.usage.requests == 1


async def test_the_model_sees_instructions_user_turns_calls_results_and_answer() -> None:
    model = ScriptedModel([coded(outcome="success", confidence=0.9)])
    await LLMJudge(model)(RUN)
    prompt = model.calls[0].prompt
    for fact in (
        "Only pending orders may be cancelled",
        "Please cancel W123. I confirm.",
        'cancel_order {"id": "W123", "reason": "by user"}',
        '{"status": "pending"}',
        "Your order is cancelled.",
    ):
        assert f"| {fact}" in prompt
    assert model.calls[0].temperature == 0.0
    assert model.calls[0].schema is not None


async def test_every_call_draws_a_new_code() -> None:
    model = ScriptedModel(code_in)
    await LLMJudge(model)(RUN)
    await LLMJudge(model)(RUN)
    assert code_in(model.calls[0].messages) != code_in(model.calls[1].messages)


async def test_a_verdict_below_the_wanted_confidence_is_unknown_and_keeps_its_reason() -> None:
    model = ScriptedModel([coded(reason="Step 3 was cut.", outcome="failure", confidence=0.55)])
    verdict = await LLMJudge(model, min_confidence=0.7)(RUN)
    assert (verdict.outcome, verdict.confidence) == ("unknown", 0.55)
    assert verdict.reason == "Leaning to failure, not sure enough: Step 3 was cut."


async def test_a_verdict_without_a_figure_counts_as_just_sure_enough() -> None:
    verdict = await LLMJudge(ScriptedModel([coded(outcome="success")]), min_confidence=0.7)(RUN)
    assert (verdict.outcome, verdict.confidence) == ("success", 0.7)


async def test_an_unknown_stays_unknown_however_sure() -> None:
    verdict = await LLMJudge(ScriptedModel([coded(outcome="unknown", confidence=0.9, reason="cut")]))(RUN)
    assert (verdict.outcome, verdict.reason) == ("unknown", "cut")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ModelError("401 bad key"), "The judge's model failed: 401 bad key"),
        (ModelTimeout("60 s"), "The judge's model did not answer in time."),
        (TimeoutError(), "The judge's model did not answer in time."),
        ("", "The judge's reply is empty."),
        ("Success.", "The judge's reply does not carry the check code it was given: Success."),
        ("x" * 5_000_000, f"The judge's reply does not carry the check code it was given: {'x' * 120} …[cut]"),
    ],
)
async def test_a_judge_that_fails_says_unknown_and_why(reply: str | Exception, reason: str) -> None:
    verdict = await LLMJudge(ScriptedModel([reply], name="judge-1"))(RUN)
    assert (verdict.outcome, verdict.confidence, verdict.reason) == ("unknown", 0.0, reason)
    assert (verdict.model, verdict.prompt) == ("judge-1", load("general/judge").ref)


async def test_an_unreadable_reply_is_paid_for_all_the_same() -> None:
    reply = Completion(text="no idea", usage=Usage(requests=1, input_tokens=70), model="served-by")
    verdict = await LLMJudge(ScriptedModel([reply]))(RUN)
    assert (verdict.usage.input_tokens, verdict.model) == (70, "served-by")


async def test_a_model_that_cannot_be_asked_at_all_is_the_callers_to_fix() -> None:
    with pytest.raises(UsageError):
        await LLMJudge(ScriptedModel([UsageError("no API key")]))(RUN)


@pytest.mark.parametrize("judge", [LLMJudge, PaperJudge])
async def test_a_run_in_which_nothing_was_done_is_not_judged(judge: type[LLMJudge] | type[PaperJudge]) -> None:
    model = ScriptedModel([])
    verdict = await judge(model)(Trajectory(task="Cancel W123", steps=(Step(observation="docker: no such image"),)))
    assert (verdict.outcome, verdict.confidence, model.calls) == ("unknown", 0.0, [])


def test_a_prompt_without_the_check_slot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("id: mine\nversion: 1\nslots: run\nsource: me\n---\n# User\n{{run}}\n", encoding="utf-8")
    with pytest.raises(PromptError, match="mine"):
        LLMJudge(ScriptedModel([]), prompt=load_file(path))


@pytest.mark.parametrize("min_confidence", [-0.1, 1.1])
def test_a_confidence_outside_its_range_is_refused(min_confidence: float) -> None:
    with pytest.raises(UsageError, match="min_confidence"):
        LLMJudge(ScriptedModel([]), min_confidence=min_confidence)
