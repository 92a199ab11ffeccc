"""The loop, through the public object and the in-memory store."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Extraction, Learning, Lesson, Model, Run, Step, Trajectory, Verdict
from lessonbank.contracts.events import Event, ExtractionFailed
from lessonbank.contracts.ports import Message
from lessonbank.contracts.store_calls import get_experience, get_recall, settlement_of
from lessonbank.errors import FormatError, ModelError, ModelUnavailable, NotFound, UsageError
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


async def test_usage_of_judge_and_extractor_is_summed() -> None:
    model = ScriptedModel([verdict("success"), some_lessons(LESSON)])
    async with await open_with(model) as bank:
        usage = (await bank.learn(run())).usage
    assert usage.requests == 2
    assert (
        usage.input_tokens == sum(len(m.content) for c in model.calls for m in c.messages) // 4
        or usage.input_tokens > 0
    )


async def test_a_reward_is_ground_truth() -> None:
    async with await open_with(ScriptedModel([some_lessons(), some_lessons()])) as bank:
        good, bad = await bank.learn(run(), reward=1.0), await bank.learn(run(), reward=0.4)
    assert (good.verdicts[0].outcome, good.verdicts[0].reward) == ("success", 1.0)
    assert (bad.verdicts[0].outcome, bad.verdicts[0].reward) == ("failure", 0.4)


async def test_an_error_that_stopped_the_run_beats_the_judge_and_ground_truth_beats_the_error() -> None:
    async with await open_with(ScriptedModel([some_lessons(), some_lessons()])) as bank:
        stopped = await bank.learn(run(error="TimeoutError: no answer"))
        known = await bank.learn(run(error="TimeoutError: no answer"), outcome="success")
    assert (stopped.verdicts[0].outcome, stopped.verdicts[0].source) == ("failure", "framework_error")
    assert known.verdicts[0].source == "ground_truth"


@pytest.mark.parametrize("bad", [{"outcome": "success", "reward": 0.0}, {"outcome": "maybe"}, {"reward": float("nan")}])
async def test_truth_that_contradicts_itself_is_refused_before_anything_is_kept(
    bank: AsyncReasoningBank, bad: dict[str, Any]
) -> None:
    with pytest.raises(UsageError):
        await bank.learn(run(), **bad)
    assert await bank.runs.pending(limit=10_000) == ()


async def test_an_unknown_verdict_mints_no_lesson_and_the_run_waits(bank: AsyncReasoningBank) -> None:
    trajectory = run()
    learned = await bank.learn(trajectory)
    assert learned.verdicts[0].outcome == "unknown"
    assert learned.lessons == ()
    assert "no model to judge with" in learned.notes[0]
    assert await bank.runs.pending(limit=10_000) == (trajectory,)
    assert (await bank.retrieve("find the invoice")).text == ""


async def test_a_waiting_run_is_learned_when_its_outcome_is_known(bank: AsyncReasoningBank) -> None:
    trajectory = run()
    first = await bank.learn(trajectory)
    later = await bank.learn(trajectory, outcome="success")
    assert later.lessons
    assert later.experience and first.experience
    assert later.experience.id == first.experience.id
    assert await bank.runs.pending(limit=10_000) == ()
    assert (await bank.admin.counts()).experiences == 1


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


async def test_runs_of_different_tasks_are_refused(bank: AsyncReasoningBank) -> None:
    with pytest.raises(UsageError, match="one task at a time"):
        await bank.learn([run("a"), run("b")])


async def test_plain_messages_are_learned_as_they_are(bank: AsyncReasoningBank) -> None:
    messages = [
        {"role": "user", "content": "rename the branch"},
        {"role": "assistant", "content": "git branch -m main"},
        {"role": "user", "content": "fatal: a branch named 'main' already exists"},
    ]
    learned = await bank.learn(messages, outcome="failure")
    assert learned.experience
    assert learned.experience.task == "rename the branch"
    assert learned.lessons


async def test_a_source_that_is_no_run_is_refused_in_one_sentence(bank: AsyncReasoningBank) -> None:
    with pytest.raises((FormatError, UsageError)) as raised:
        await bank.learn(42)
    assert "\n" not in str(raised.value)


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


async def test_a_recall_may_be_named_by_its_id(bank: AsyncReasoningBank) -> None:
    recall = await bank.retrieve("find the invoice")
    await bank.learn(run(), recall=recall.id, outcome="failure")
    settlement = await settlement_of(bank.store, recall.id, scope="t")
    assert settlement
    assert settlement.outcome == "failure"


async def test_a_recall_of_another_scope_is_refused(bank: AsyncReasoningBank) -> None:
    recall = await bank.scoped("other").retrieve("find the invoice")
    with pytest.raises(UsageError, match="scope 'other'"):
        await bank.learn(run(), recall=recall, outcome="success")
    with pytest.raises(NotFound):
        await bank.learn(run(), recall=recall.id, outcome="success")


async def test_the_stored_receipt_holds_all_that_the_ledger_needs() -> None:
    options: dict[str, Any] = {"scope": "t", "embedder": "hashing", "holdout": 0.5}
    async with await lessonbank.connect_async(":memory:", **grouped(**options)) as bank:
        for n in range(6):
            await bank.learn(run(f"find the invoice {n}"), outcome="success")
        recalls = [await bank.retrieve("find the invoice", limit=6) for _ in range(24)]
        recall = next(one for one in recalls if not one.control)  # which withholds them all
        stored = await get_recall(bank.store, recall.id, scope="t")
    assert stored.candidates == recall.candidates
    assert {c.probability for c in stored.candidates} == {0.5}
    assert any(c.withheld for c in stored.candidates) or any(c.shown for c in stored.candidates)
    assert (stored.text, stored.text_digest, stored.space) == (recall.text, recall.text_digest, HashingEmbedder().space)
    assert stored.lessons == ()


@pytest.mark.parametrize(("task", "limit"), [("", 1), ("  \n", 1), ("x", 0), ("x", -1)])
async def test_retrieving_for_nothing_is_a_usage_error(bank: AsyncReasoningBank, task: str, limit: int) -> None:
    with pytest.raises(UsageError):
        await bank.retrieve(task, limit=limit)


async def test_parts_of_ones_own_take_their_place_in_the_loop() -> None:
    async def judge(trajectory: Trajectory, /) -> Verdict:
        return Verdict(outcome="success", source="human")

    async def extract(attempts: Sequence[Run], /) -> Extraction:
        lesson = "Sort by `date` before paging; the newest entry is on the last page."
        return Extraction(lessons=(Lesson(title="Mine", content=lesson),))

    options: dict[str, Any] = {"scope": "t", "embedder": "lexical", "judge": judge, "extractor": extract}
    async with await lessonbank.connect_async(":memory:", **grouped(**options)) as bank:
        learned = await bank.learn(run())
    assert [i.title for i in learned.lessons] == ["Mine"]
    assert learned.verdicts[0].source == "human"


async def test_an_embedder_that_fails_makes_retrieval_lexical_and_says_so() -> None:
    class Broken(HashingEmbedder):
        async def embed(self, texts: Any, /, *, role: Any) -> Any:
            raise ModelError("embedding service down")

    options: dict[str, Any] = {"scope": "t", "embedder": Broken(), "holdout": None}
    async with await lessonbank.connect_async(":memory:", **grouped(**options)) as bank:
        learned = await bank.learn(run(), outcome="success")
        recall = await bank.retrieve("find the invoice")
    assert "embedding service down" in learned.notes[-1]
    assert "searched by words only" in recall.notes[0]
    assert recall.shown


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


@pytest.mark.parametrize("scope", ["", " ", "a b", "/a", "a/", "a//b", "..", "a/../b", "x" * 201, "a\n"])
async def test_a_scope_that_is_no_path_is_refused_and_never_taken_for_the_banks_own(
    bank: AsyncReasoningBank, scope: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a scope"):
        (await bank.scoped(scope).lessons.list(limit=10_000))[::-1]
    with pytest.raises(UsageError, match="cannot be a scope"):
        await bank.scoped(scope).retrieve("x")
    with pytest.raises(UsageError, match="cannot be a scope"):
        await lessonbank.connect_async(":memory:", scope=scope)


async def test_trying_again_without_anything_new_changes_nothing(bank: AsyncReasoningBank) -> None:
    trajectory = run()
    await bank.learn(trajectory)
    before = [e.sequence async for e in bank.store.journal(scope="t")]
    assert (await bank.learn(trajectory)).changes == ()
    assert [e.sequence async for e in bank.store.journal(scope="t")] == before


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


@pytest.mark.parametrize("threshold", ["0.5", None, True, float("nan"), float("inf")])
async def test_a_threshold_that_is_no_number_is_refused(threshold: Any) -> None:
    with pytest.raises(UsageError, match=r"success_at=\) is above 0 and at most 1"):
        await lessonbank.connect_async(":memory:", scope="t", learning=Learning(success_at=threshold))


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


async def test_a_blank_key_is_one_sentence_and_makes_no_bank(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"api_key=. takes a text of one line"):
        await lessonbank.connect_async(tmp_path / "bank.db", scope="t", model=Model("openai:gpt-5", api_key=""))
    assert not (tmp_path / "bank.db").exists()
