"""The loop, through the public object and the in-memory store."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Learning, Step, Trajectory
from lessonbank.contracts.events import Event, ExtractionFailed
from lessonbank.contracts.ports import Message
from lessonbank.contracts.store_calls import get_experience, settlement_of
from lessonbank.errors import ModelUnavailable, UsageError
from lessonbank.search import DenseRetriever
from lessonbank.testing import HashingEmbedder, ScriptedModel
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.anyio

LESSON = {
    "evidence": ["step 2"],
    "cause": "the index was stale",
    "title": "Rebuild the index before searching",
    "description": "When a search finds nothing that should be there; not for typing errors.",
    "content": "If a search comes back empty, run the rebuild command once and search again.",
}


def run(task: str = "find the invoice", **more: Any) -> Trajectory:
    steps = (
        Step(action="search invoice", observation="0 results"),
        Step(action="rebuild", observation="index rebuilt"),
    )
    return Trajectory(task=task, steps=steps, answer="Found it.", **more)


def check_code(messages: Sequence[Message]) -> str:
    found = re.search(r'"check": "([0-9a-f]{8})"', messages[-1].content)
    assert found
    return found.group(1)


def verdict(outcome: str, confidence: float = 0.95) -> Callable[[Sequence[Message]], str]:
    def reply(messages: Sequence[Message]) -> str:
        body = {"check": check_code(messages), "reason": "seen in step 2", "outcome": outcome, "confidence": confidence}
        return json.dumps(body)

    return reply


def some_lessons(*lessons: dict[str, Any]) -> str:
    return json.dumps({"items": lessons})


@pytest.fixture
async def bank() -> AsyncIterator[AsyncReasoningBank]:
    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None)
    ) as opened:
        yield opened


def open_with(model: object, **more: Any) -> Any:
    return lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", **grouped(model=model, holdout=None, timeout=5.0, **more)
    )


async def test_a_judged_success_becomes_a_strategy_that_the_next_like_task_is_shown() -> None:
    model = ScriptedModel([verdict("success"), some_lessons(LESSON)])
    async with await open_with(model) as bank:
        learned = await bank.learn(run())
        recall = await bank.retrieve("find the receipt")
    assert learned.verdicts[0].outcome == "success"
    assert learned.verdicts[0].source == "judge"
    assert [i.kind for i in learned.lessons] == ["strategy"]
    assert recall.shown == learned.lessons
    assert LESSON["content"] in recall.text
    assert [c.temperature for c in model.calls] == [0.0, 1.0]
    model.assert_all_used()


async def test_every_lesson_says_where_it_comes_from() -> None:
    trajectory = run()
    async with await open_with(ScriptedModel([verdict("success"), some_lessons(LESSON)])) as bank:
        (lesson,) = (await bank.learn(trajectory)).lessons
    source = lesson.provenance
    assert source.trajectory_ids == (trajectory.id,)
    assert (source.writer, source.method, source.verdict, source.verdict_source) == ("learn", "llm", "success", "judge")
    assert {p.id for p in source.prompts} == {"general/extract_success", "general/judge"}
    assert all(len(p.digest) == 64 for p in source.prompts)
    assert source.model == "scripted"
    assert source.package_version == lessonbank.__version__
    assert source.evidence == ("step 2",)


async def test_ground_truth_beats_an_error_that_stopped_the_run(bank: AsyncReasoningBank) -> None:
    (verdict,) = (await bank.learn(run(error="TimeoutError: no answer"), outcome="success")).verdicts
    assert (verdict.outcome, verdict.source) == ("success", "ground_truth")


async def test_an_unknown_verdict_mints_no_lesson_and_the_run_waits(bank: AsyncReasoningBank) -> None:
    trajectory = run()
    learned = await bank.learn(trajectory)
    assert learned.verdicts[0].outcome == "unknown"
    assert learned.lessons == ()
    assert "no model to judge with" in learned.notes[0]
    assert await bank.runs.pending(limit=10_000) == (trajectory,)
    assert (await bank.retrieve("find the invoice")).text == ""


def raising(prompt: str) -> str:
    raise RuntimeError("boom")


async def hanging(prompt: str) -> str:
    await anyio.sleep_forever()
    return ""


def rubbish(prompt: str) -> str:
    return "\x00\ufffd%%% no"


def enormous(prompt: str) -> str:
    return "[{" * 2_500_000


def nothing(prompt: str) -> Any:
    return None


@pytest.mark.full
@pytest.mark.parametrize("model", [raising, hanging, rubbish, enormous, nothing])
async def test_a_model_that_misbehaves_costs_the_verdict_but_neither_the_run_nor_the_bank(model: Any) -> None:
    options: dict[str, Any] = {"scope": "t", "embedder": "lexical", "holdout": None, "model": model, "timeout": 0.2}
    async with await lessonbank.connect_async(":memory:", **grouped(**options)) as bank:
        with anyio.fail_after(30):
            learned = await bank.learn(trajectory := run())
        assert learned.verdicts[0].outcome == "unknown"
        assert learned.lessons == ()
        assert learned.notes
        assert await bank.runs.pending(limit=10_000) == (trajectory,)
        assert (await bank.retrieve("anything")).text == ""


@pytest.mark.full
@pytest.mark.parametrize("model", [raising, hanging, rubbish, enormous, nothing])
async def test_an_extractor_that_misbehaves_leaves_the_run_waiting_with_its_verdict(model: Any) -> None:
    events: list[Event] = []
    options: dict[str, Any] = {"scope": "t", "embedder": "lexical", "holdout": None, "model": model, "timeout": 0.2}
    async with await lessonbank.connect_async(":memory:", **grouped(hooks=[events.append], **options)) as bank:
        with anyio.fail_after(30):
            learned = await bank.learn(trajectory := run(), outcome="success")
        assert learned.lessons == ()
        assert "kept for another try" in learned.notes[0]
        assert await bank.runs.pending(limit=10_000) == (trajectory,)
        kept = await get_experience(bank.store, learned.experience.id, scope=bank.scope)  # type: ignore[union-attr]
    assert kept.attempts[0].verdict.outcome == "success"
    assert any(
        isinstance(e, ExtractionFailed) and e.error.code in ("extraction_output", "model", "model_timeout")
        for e in events
    )


async def test_a_recall_is_settled_by_learning_with_it(bank: AsyncReasoningBank) -> None:
    recall = await bank.retrieve("find the invoice")
    await bank.learn(run(), recall=recall, reward=1.0)
    settlement = await settlement_of(bank.store, recall.id, scope="t")
    assert settlement
    assert (settlement.outcome, settlement.reward, settlement.steps, settlement.source) == (
        "success",
        1.0,
        2,
        "ground_truth",
    )
    counts = await bank.admin.counts()
    assert (counts.recalls, counts.recalls_with_a_run) == (1, 1)


@pytest.mark.parametrize(
    ("task", "limit"),
    [("", 1), ("  \n", 1), (None, 1), (b"x", 1), ([{"role": "user"}], 1), ("x", 0), ("x", -1), ("x", "3"), ("x", 2.5)],
)
async def test_retrieving_for_nothing_is_a_usage_error(bank: AsyncReasoningBank, task: Any, limit: Any) -> None:
    with pytest.raises(UsageError, match=r"the task|limit is a whole number of at least 1"):
        await bank.retrieve(task, limit=limit)


async def test_changing_the_embedder_embeds_the_records_again() -> None:
    options: dict[str, Any] = {"scope": "t", "holdout": None}
    async with await lessonbank.connect_async(":memory:", embedder="lexical", **grouped(**options)) as bank:
        await bank.learn(run(), outcome="success")
        changed = AsyncReasoningBank(
            bank.store, replace(bank.parts, retriever=DenseRetriever(bank.store, HashingEmbedder())), scope="t"
        )
        seen: list[int] = []
        assert await changed.admin.reindex(progress=seen.append) == 1
        assert seen == [1]
        assert (await changed.retrieve("find the invoice")).space == HashingEmbedder().space
        assert await changed.admin.reindex() == 0


GRADED = [
    (0.9, 1.0, "failure", "the reward 0.9 was taken for a failure: success starts at 1, and success_at= changes that"),
    (
        0.9,
        0.5,
        "success",
        "the reward 0.9 was taken for a success: success starts at 0.5, and success_at=",
    ),
    (2.5, 1.0, "success", "the reward 2.5 was taken for a success"),
    (-1, 1.0, "failure", "the reward -1 was taken for a failure"),
    (1.0, 0.5, "success", ""),
    (0.0, 0.5, "failure", ""),
    (0.1 * 3 + 0.7, 1.0, "success", ""),
    (sum([0.1] * 10), 1.0, "success", ""),
]


@pytest.mark.full
@pytest.mark.parametrize(("reward", "success_at", "outcome", "said"), GRADED)
async def test_a_graded_reward_is_read_by_the_threshold_and_the_notes_say_so(
    reward: float, success_at: float, outcome: str, said: str
) -> None:
    async with await lessonbank.connect_async(
        ":memory:",
        scope="t",
        embedder="lexical",
        evidence=Evidence(holdout=None),
        learning=Learning(success_at=success_at),
    ) as bank:
        one = run()
        learned = await bank.learn(one, reward=reward)
        again = await bank.learn(one, reward=reward)
        async with bank.attempt("find the invoice") as attempt:
            finished = await attempt.finish(run(), reward=reward)
        judged = await bank.judge(run(), reward=reward)
        score = max(0.0, min(reward, 1.0))  # what a verifier may say
        scaled = await bank.scale("find the invoice", lambda task, memory: run(), k=1, verify=lambda run: score)
    assert learned.verdicts[0].outcome == finished.verdicts[0].outcome == judged.outcome == outcome
    assert scaled.attempts[0].verdict.outcome == outcome
    for notes in (learned.notes, again.notes, finished.notes):
        graded = [note for note in notes if "was taken for" in note]
        assert len(graded) == bool(said)
        assert all(note.startswith(said) for note in graded)


async def test_graded_rewards_of_several_runs_are_one_note_and_a_stated_outcome_needs_none(
    bank: AsyncReasoningBank,
) -> None:
    several = await bank.learn([run(), run(), run(), run()], reward=[0.2, 0.9, 1.0, 1.5])
    assert several.notes[0] == (
        "the rewards 0.2, 0.9 were taken for failures and the reward 1.5 was taken for a success: "
        "success starts at 1, and success_at= changes that"
    )
    stated = await bank.learn(run(), outcome="failure", reward=0.9)
    assert not any("taken" in note for note in stated.notes)


@pytest.mark.parametrize("given", [{}, {"outcome": "success"}], ids=["judge", "extractor"])
async def test_a_model_that_is_not_to_be_had_is_named_by_its_code_and_the_run_waits(given: dict[str, Any]) -> None:
    async with await open_with(
        ScriptedModel([ModelUnavailable("desk could not be reached"), some_lessons(LESSON)])
    ) as bank:
        one = run()
        learned = await bank.learn(one, **given)
        assert learned.errors == ("model_unavailable",)
        assert "desk could not be reached" in learned.notes[0]
        assert [waiting.id for waiting in await bank.runs.pending(limit=10_000)] == [one.id]
        again = await bank.learn(one, outcome="success")
        assert again.errors == ()
        assert len(again.lessons) == 1


async def test_a_function_whose_key_is_refused_is_a_model_that_is_not_to_be_had() -> None:
    class RefusedError(Exception):
        status_code = 401

    def model(prompt: str) -> str:
        raise RefusedError("no such key")

    async with await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", model=model, evidence=Evidence(holdout=None)
    ) as bank:
        assert (await bank.learn(run())).errors == ("model_unavailable",)
