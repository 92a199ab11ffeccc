"""Runs that are handed in again, several at once, or under one receipt: nothing is lost, doubled or paid for twice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import anyio
import numpy as np
import pytest

import lessonbank
from lessonbank import (
    AsyncReasoningBank,
    Experience,
    Extraction,
    Lesson,
    ReasoningBank,
    Run,
    Step,
    Trajectory,
    Verdict,
)
from lessonbank._base.aio import gather
from lessonbank.contracts.ports import ExperienceKey, RecallFilter, SavedRecall
from lessonbank.contracts.records import Change, JournalEntry, PromptRef, Provenance, Rejudge, Replace, Usage
from lessonbank.contracts.settings import UNSET
from lessonbank.contracts.store_calls import settlement_of
from lessonbank.errors import NotFound, StoreUnavailable, UsageError
from lessonbank.learning.consolidation import append
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import ScriptedModel
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.anyio
OPTIONS: dict[str, Any] = {"scope": "t", "embedder": "lexical", "holdout": None, "admission": None}
LESSON = '{"items": [{"evidence": ["step 1"], "title": "Rebuild first", "content": "Rebuild the index, then search."}]}'
CONTRAST = LESSON.replace("step 1", "run 1, step 1")


def run(task: str = "find the invoice", **more: Any) -> Trajectory:
    steps = (
        Step(action="search", observation="error: 0 results"),
        Step(action="rebuild index", observation="rebuilt"),
        Step(action="search again", observation="found 3"),
    )
    return Trajectory(task=task, steps=steps, answer="ok", **more)


@pytest.fixture
async def bank() -> AsyncIterator[AsyncReasoningBank]:
    async with await lessonbank.connect_async(":memory:", **grouped(**OPTIONS)) as opened:
        yield opened


def open_with(**more: Any) -> Any:
    return lessonbank.connect_async(":memory:", **grouped(**{**OPTIONS, **more}))


async def test_what_a_call_paid_for_is_reported_even_when_another_was_quicker(bank: AsyncReasoningBank) -> None:
    trajectory = run()

    async def extract(attempts: Sequence[Run], /) -> Extraction:
        await bank.learn(trajectory, outcome="success")
        return Extraction(usage=Usage(requests=3))

    slower = AsyncReasoningBank(bank.store, replace(bank.parts, extractor=extract), bank.options, scope="t")
    learned = await slower.learn(trajectory, outcome="success")
    assert learned.known == (trajectory.id,)
    assert learned.usage.requests == 3
    assert "meanwhile" in learned.notes[0]
    assert (await bank.admin.counts()).experiences == 1


async def test_the_id_of_another_banks_receipt_is_refused_before_a_model_is_asked_or_anything_is_kept(
    bank: AsyncReasoningBank,
) -> None:
    model = ScriptedModel([])
    foreign = await bank.retrieve("find the invoice")
    async with await open_with(model=model) as other:
        with pytest.raises(NotFound):
            await other.learn(run(), recall=foreign.id, outcome="success")
        assert model.calls == []
        assert await other.runs.pending(limit=10_000) == ()


async def test_a_receipts_task_names_messages_but_never_renames_a_run(bank: AsyncReasoningBank) -> None:
    recall = await bank.retrieve("something else")
    with pytest.raises(UsageError, match="one task at a time"):
        await bank.learn([run("a"), run("b")], recall=recall, outcome="success")
    learned = await bank.learn(run("a"), recall=recall, outcome="success")
    assert learned.experience and learned.experience.task == "a"
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "done"}]
    told = await bank.learn(messages, recall=recall, outcome="success")
    assert told.experience and told.experience.task == "something else"


async def test_a_later_truth_stays_with_the_run(bank: AsyncReasoningBank) -> None:
    recall, corrected = await bank.retrieve("find the invoice"), run()
    first = await bank.learn(corrected, recall=recall, outcome="success")
    second = await bank.learn(corrected, outcome="failure")
    assert [type(change) for change in second.changes] == [Rejudge]
    assert (await bank.learn(corrected, outcome="failure")).changes == ()
    await bank.learn(run(), recall=recall, outcome="failure")
    settlement = await settlement_of(bank.store, recall.id, scope="t")
    assert settlement and (settlement.outcome, settlement.reward) == ("failure", 0.0)
    assert first.lessons[0] in (await bank.lessons.list(limit=10_000))[::-1]


async def test_a_waiting_run_settles_its_receipt_when_it_is_learned_at_last(bank: AsyncReasoningBank) -> None:
    recall, trajectory = await bank.retrieve("find the invoice"), run()
    await bank.learn(trajectory, recall=recall)
    waiting = await settlement_of(bank.store, recall.id, scope="t")
    assert waiting and waiting.outcome == "unknown"
    await bank.learn((await bank.runs.pending(limit=10_000))[0], outcome="success")
    settled = await settlement_of(bank.store, recall.id, scope="t")
    assert settled and settled.outcome == "success"


async def test_a_receipt_counts_all_its_runs_when_one_of_them_is_learned_later(bank: AsyncReasoningBank) -> None:
    recall = await bank.retrieve("find the invoice")
    late, early = run(), run()
    await bank.learn([late, early], recall=recall, outcome=["unknown", "success"])
    await bank.learn(late, outcome="failure")
    settlement = await settlement_of(bank.store, recall.id, scope="t")
    assert settlement
    assert set(settlement.trajectory_ids) == {late.id, early.id}
    assert (settlement.outcome, settlement.reward, settlement.steps) == ("failure", 0.5, 6)


async def test_runs_learned_one_by_one_under_one_receipt_count_together(tmp_path: Path) -> None:
    async with await lessonbank.connect_async(tmp_path / "bank.db", **grouped(**OPTIONS)) as bank:
        recall = await bank.retrieve("find the invoice")
        one, two, three = run(), run(), run()
        await bank.learn(one, recall=recall, outcome="success")
        async with anyio.create_task_group() as tasks:
            for other in (two, three):
                tasks.start_soon(partial(bank.learn, other, recall=recall, outcome="failure"))
        settlement = await settlement_of(bank.store, recall.id, scope="t")
        assert settlement
        assert set(settlement.trajectory_ids) == {one.id, two.id, three.id}
        assert (settlement.outcome, settlement.steps) == ("failure", 9)
        await bank.learn(two, outcome="success")
        settlement = await settlement_of(bank.store, recall.id, scope="t")
        assert settlement and settlement.outcome == "success"


async def test_a_run_known_from_another_receipt_and_what_is_handed_in_beside_it_settle_no_second_one(
    bank: AsyncReasoningBank,
) -> None:
    first, second = await bank.retrieve("find the invoice"), await bank.retrieve("find the invoice")
    a, b, c = run(), run(), run()
    await bank.learn([a, b], recall=first, outcome="success")
    learned = await bank.learn([b, c], recall=second, outcome=["success", "failure"])
    assert await settlement_of(bank.store, second.id, scope="t") is None
    settlement = await settlement_of(bank.store, first.id, scope="t")
    assert settlement and settlement.trajectory_ids == (a.id, b.id)
    assert (learned.known, learned.notes[0][:15]) == ((b.id,), "settled before:")


async def test_runs_whose_extraction_failed_wait_and_are_contrasted_together() -> None:
    model = ScriptedModel(["rubbish", CONTRAST])
    async with await open_with(model=model) as bank:
        one, two = run(), run()
        await bank.learn([one, two], outcome=["success", "failure"])
        assert len(await bank.runs.pending(limit=10_000)) == 2
        learned = await bank.learn(one)
        assert await bank.runs.pending(limit=10_000) == ()
    assert len(learned.verdicts) == 1
    assert set(learned.lessons[0].provenance.trajectory_ids) == {one.id, two.id}
    model.assert_all_used()


async def test_a_verdict_is_paid_for_once() -> None:
    async def judge(trajectory: Trajectory, /) -> Verdict:
        return Verdict(outcome="success", usage=Usage(requests=1, input_tokens=100))

    model = ScriptedModel(["rubbish", LESSON])
    async with await open_with(model={"extractor": model}, judge=judge) as bank:
        first = await bank.learn(trajectory := run())
        second = await bank.learn(trajectory)
    assert first.usage.requests == 2  # the judge, and the extraction that failed
    assert second.usage.requests == 1


async def test_an_extraction_that_fails_again_writes_nothing_new() -> None:
    async with await open_with(model=ScriptedModel(["rubbish", "rubbish"])) as bank:
        await bank.learn(trajectory := run(), outcome="success")
        before = [entry async for entry in bank.store.journal(scope="t")]
        assert (await bank.learn(trajectory)).changes == ()
        assert [entry async for entry in bank.store.journal(scope="t")] == before
        assert await bank.runs.pending(limit=10_000) == (trajectory,)


async def test_the_consolidator_decides_about_lessons_that_came_late_too() -> None:
    model = ScriptedModel([LESSON, "rubbish", LESSON])
    async with await open_with(model=model, consolidation="recognise") as bank:
        await bank.learn(run(), outcome="success")
        await bank.learn(late := run(), outcome="success")
        learned = await bank.learn(late)
        assert learned.lessons == ()
        assert isinstance(learned.changes[0], Replace)
        assert len((await bank.lessons.list(limit=10_000))[::-1]) == 1
        assert await bank.runs.pending(limit=10_000) == ()


async def test_a_late_lesson_joins_those_of_its_experience(bank: AsyncReasoningBank) -> None:
    late, early = run(), run()
    first = await bank.learn([late, early], outcome=["unknown", "success"])
    second = await bank.learn(late, outcome="failure")
    assert first.experience and second.experience
    assert second.experience.id == first.experience.id
    assert second.experience.lessons == (*first.lessons, *second.lessons)
    assert (await bank.lessons.list(limit=10_000))[::-1] == second.experience.lessons


async def test_a_lesson_says_who_wrote_it_with_which_release_and_from_which_run() -> None:
    prompt = PromptRef(id="mine/judge", version="1", digest="0" * 64)

    async def judge(trajectory: Trajectory, /) -> Verdict:
        return Verdict(outcome="success", source="human", prompt=prompt)

    async def extract(attempts: Sequence[Run], /) -> Extraction:
        return Extraction(
            lessons=(
                Lesson(
                    title="Mine",
                    content="Read the invoice list by its date column.",
                    provenance=Provenance(method="mine"),
                ),
            )
        )

    async with await open_with(judge=judge, extractor=extract) as opened:
        bank = opened.scoped(writer="ann")
        (lesson,) = (await bank.learn(trajectory := run())).lessons
    source = lesson.provenance
    assert (source.writer, source.method, source.package_version) == ("ann", "mine", lessonbank.__version__)
    assert (source.trajectory_ids, source.verdict, source.verdict_source) == ((trajectory.id,), "success", "human")
    assert source.prompts == (prompt,)


async def test_rewards_may_be_numbers_of_numpy(bank: AsyncReasoningBank) -> None:
    one = await bank.learn(run(), reward=np.float32(1.0))  # type: ignore[arg-type]
    two = await bank.learn([run(), run()], reward=np.array([1.0, 0.0], dtype="float32"))  # type: ignore[arg-type]
    assert [v.outcome for v in (*one.verdicts, *two.verdicts)] == ["success", "success", "failure"]


async def test_judging_takes_one_run(bank: AsyncReasoningBank) -> None:
    with pytest.raises(UsageError):
        await bank.judge([run(), run()], outcome="success")


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ValueError])
def test_what_a_part_of_ones_own_raises_reaches_its_caller_and_the_run_is_kept(
    error: type[BaseException],
) -> None:
    async def judge(trajectory: Trajectory, /) -> Verdict:
        raise error

    bank: ReasoningBank = lessonbank.connect(":memory:", **grouped(judge=judge, **OPTIONS))
    for _ in range(2):
        with pytest.raises(error):
            bank.learn(run())
    assert len(bank.runs.pending(limit=10_000)) == 2
    bank.close()


async def test_a_judge_that_cancels_itself_cancels_the_call_and_the_run_is_kept() -> None:
    async def judge(trajectory: Trajectory, /) -> Verdict:
        raise anyio.get_cancelled_exc_class()

    async with await open_with(judge=judge) as bank:
        with pytest.raises(anyio.get_cancelled_exc_class()):
            await bank.learn(run())
        assert len(await bank.runs.pending(limit=10_000)) == 1


async def test_a_consolidator_that_calls_its_own_bank_is_told_so_instead_of_waiting_for_itself() -> None:
    async def consolidate(new: Experience, /) -> Sequence[Change]:
        await bank.learn(run("inner"), outcome="failure")
        return ()

    async with await open_with(consolidation=consolidate) as bank:
        with pytest.raises(UsageError, match="its own bank"):
            await bank.learn(run(), outcome="success")
        assert (await bank.admin.counts()).experiences == 0


TOWNS = ["Oslo", "Rome", "Kyiv", "Bern", "Graz", "Lyon", "Bonn", "Cork", "Porto", "Riga", "Turin", "Ghent"]


async def test_learning_that_is_cancelled_anywhere_leaves_a_bank_that_learns_on(tmp_path: Path) -> None:
    async with await lessonbank.connect_async(tmp_path / "bank.db", **grouped(**OPTIONS)) as bank:
        runs = [run(f"find the invoice of {town}") for town in TOWNS]
        for n, one in enumerate(runs):
            with anyio.move_on_after(n * 0.001):
                await bank.learn(one, outcome="success")
        with anyio.fail_after(60):
            for one in runs:
                await bank.learn(one, outcome="success")
        counts = await bank.admin.counts()
        assert (counts.experiences, counts.lessons, counts.pending) == (12, 12, 0)
        assert await bank.admin.verify() == ()


class Counted(SqliteStore):
    """A store that says what it was asked for."""

    asked: ClassVar[list[str]] = []

    async def recalls(self, wanted: RecallFilter, /, *, scope: str) -> Sequence[SavedRecall]:
        self.asked.append("recalls")
        return await super().recalls(wanted, scope=scope)

    async def experiences(self, by: ExperienceKey, values: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        self.asked.append(by)
        return await super().experiences(by, values, scope=scope)


async def test_a_learn_without_a_model_looks_at_the_words_and_only_at_a_run_and_a_receipt_that_were_there() -> None:
    async with await lessonbank.connect_async(Counted.in_memory(), **grouped(**OPTIONS)) as bank:
        await bank.learn(run(), recall=await bank.retrieve("find the invoice"), outcome="success")
        recall = await bank.retrieve("find the invoice")
        Counted.asked.clear()
        learned = await bank.learn(run(), recall=recall, outcome="success")
        assert "taught again" in " ".join(learned.notes)
        assert Counted.asked == ["wording"]
        Counted.asked.clear()
        again = await bank.learn(run(), recall=recall, outcome="failure")
        assert Counted.asked == ["wording", "run", "wording", "run", "wording", "recalls"]
        assert "settled again" in " ".join(again.notes)
        settled = await settlement_of(bank.store, recall.id, scope=bank.scope)
        assert settled is not None
        assert settled.runs == 2


class Writes(SqliteStore):
    """A store that says what it was asked to write, and refuses it while it is told to."""

    asked: ClassVar[list[str]] = []
    is_full: ClassVar[bool] = False

    async def save_runs(self, trajectories: Sequence[Trajectory], /, **more: Any) -> Sequence[str]:
        self.asked.append("runs")
        return await super().save_runs(trajectories, **more)

    async def apply(self, changes: Sequence[Change], /, **more: Any) -> Sequence[JournalEntry]:
        self.asked.append("changes")
        if self.is_full:
            raise StoreUnavailable("the disk is full")
        return await super().apply(changes, **more)


async def own_consolidator(new: Experience, /) -> Sequence[Change]:
    return await append(new)


async def own_extractor(attempts: Sequence[Run], /) -> Extraction:
    return Extraction()


FIRST_THE_RUN: list[dict[str, Any]] = [
    {"hooks": [lambda event: None]},
    {"consolidation": own_consolidator},
    {"extractor": own_extractor},
    {"redact": lambda text: text},
    {"admission": lambda drawn, attempts, shown: drawn},
    {"embedder": HashingEmbedder()},
]


@pytest.mark.parametrize("more", [{}, *FIRST_THE_RUN], ids=["", *(next(iter(more)) for more in FIRST_THE_RUN)])
async def test_a_short_run_is_kept_in_the_write_of_its_lessons_where_nothing_of_the_callers_is_asked(more: Any) -> None:
    options = {**OPTIONS, "admission": UNSET, **more}
    async with await lessonbank.connect_async(Writes.in_memory(), **grouped(**options)) as bank:
        Writes.asked.clear()
        one = run()
        await bank.learn(one, outcome="success")
        assert Writes.asked == (["runs", "changes"] if more else ["changes"])
        assert (await bank.runs.get(one.id)).status == "learned"
        Writes.asked.clear()
        await bank.learn([run(), run()], outcome="success")
        await bank.learn(run().model_copy(update={"instructions": "x" * 5000}), outcome="success")
        assert Writes.asked == ["runs", "changes", "runs", "changes"]


async def test_an_attempt_at_a_short_task_is_kept_in_the_write_of_its_lessons() -> None:
    async with await lessonbank.connect_async(Writes.in_memory(), **grouped(**OPTIONS)) as bank:
        async with bank.attempt("find the invoice") as attempt:
            for step in run().steps:
                attempt.step(step.action, step.observations[0])
            Writes.asked.clear()
            assert (await attempt.finish(answer="ok", outcome="success")).lessons
        assert Writes.asked == ["changes"]
        assert [*(await bank.runs.get(attempt.run_id)).trajectory.metadata] == ["seconds"]


async def test_a_short_run_whose_only_write_fails_is_learned_when_it_is_handed_in_again() -> None:
    async with await lessonbank.connect_async(Writes.in_memory(), **grouped(**OPTIONS)) as bank:
        one, recall, Writes.is_full = run(), await bank.retrieve("find the invoice"), True
        try:
            with pytest.raises(StoreUnavailable):
                await bank.learn(one, recall=recall, outcome="success")
        finally:
            Writes.is_full = False
        assert (await bank.admin.counts()).trajectories == 0
        learned = await bank.learn(one, recall=recall, outcome="success")
        assert learned.lessons
        assert (await bank.runs.get(one.id)).status == "learned"
        settled = await settlement_of(bank.store, recall.id, scope=bank.scope)
        assert settled is not None
        assert settled.trajectory_ids == (one.id,)


async def test_a_short_run_that_waits_is_learned_once_with_the_recall_that_it_was_handed_in_with() -> None:
    async with await lessonbank.connect_async(SqliteStore.in_memory(), **grouped(**OPTIONS)) as bank:
        one, recall = run(), await bank.retrieve("find the invoice")
        await bank.submit(one, recall=recall, learn=False, metadata={"user": "u-17"})
        learned = await bank.learn(one, outcome="success")
        assert (len(learned.lessons), (await bank.admin.counts()).experiences) == (1, 1)
        settled = await settlement_of(bank.store, recall.id, scope=bank.scope)
        assert settled is not None
        assert (await bank.runs.get(one.id)).trajectory.metadata == {"user": "u-17"}
        again = await bank.learn(one, outcome="failure")
        assert again.known == (one.id,)
        assert (await bank.runs.get(one.id)).verdict.outcome == "failure"


async def test_of_short_runs_that_are_learned_at_once_each_is_learned_once(tmp_path: Path) -> None:
    async with await lessonbank.connect_async(tmp_path / "bank.db", **grouped(**OPTIONS)) as bank:
        runs = [run(f"find the invoice of {town}") for town in TOWNS]
        learn = [partial(bank.learn, one, outcome="success") for one in (*runs, *runs)]
        every = await gather(learn, limit=24)
        counts = await bank.admin.counts()
        assert (counts.experiences, counts.trajectories, counts.pending) == (len(runs), len(runs), 0)
        assert sum(len(learned.known) for learned in every) == len(runs)
