"""A person labels runs that chance drew: which ones, with which odds, and how long each waits, is kept by the bank."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Run, Step, Trajectory, Verdict
from lessonbank.contracts.records import Audit, Outcome, Settlement
from lessonbank.evidence import Holdout
from lessonbank.evidence.audits import Audits
from lessonbank.evidence.lift import advice
from lessonbank.testing.settings import grouped

pytestmark = [pytest.mark.anyio, pytest.mark.full]
TASK = "Cancel the pending order"


async def says_success(_: Any) -> Verdict:
    return Verdict(outcome="success", confidence=0.9, reason="it looks fine")


async def opened(where: str | Path = ":memory:") -> AsyncReasoningBank:
    told = grouped(scope="t", embedder="lexical", holdout=Holdout(0.2, 0.2, seed="s"), judge=says_success)
    return await lessonbank.connect_async(where, **told)


async def add_lesson(bank: AsyncReasoningBank) -> None:
    await bank.lessons.add(title="Ask first", content="Ask for the order's number.", task=TASK, by="Ana")


@pytest.fixture
async def bank() -> AsyncIterator[AsyncReasoningBank]:
    async with await opened() as made:
        await add_lesson(made)
        yield made


def run(n: int) -> Trajectory:
    return Trajectory(id=f"run-{n}", task=TASK, steps=(Step(action="cancel", observation="cancelled"),), answer="done")


async def worked(bank: AsyncReasoningBank, numbers: Iterable[int], outcome: Outcome | None = None) -> None:
    for n in numbers:
        await bank.learn(run(n), recall=await bank.retrieve(TASK), outcome=outcome)


def ids(runs: Iterable[Run]) -> list[str]:
    return [run.trajectory.id for run in runs]


async def label(bank: AsyncReasoningBank, runs: Iterable[Run]) -> None:
    for one in runs:
        await bank.runs.correct(one.trajectory.id, outcome="failure", by="Ana")


async def missing(bank: AsyncReasoningBank) -> int:
    lift = await bank.lift()
    assert any(one.startswith(f"Label {lift.unlabelled} runs that") for one in advice(lift)) == (lift.unlabelled > 0)
    return lift.unlabelled


async def test_only_runs_are_drawn_of_which_a_judge_alone_spoke_and_that_settle_a_recall(
    bank: AsyncReasoningBank,
) -> None:
    await worked(bank, range(3), outcome="success")
    await worked(bank, range(3, 7))
    await bank.learn(run(7))
    await bank.runs.correct("run-6", outcome="failure", by="Ana")
    assert ids(await bank.runs.audit(20)) == ["run-3", "run-4", "run-5"]


async def test_drawn_runs_wait_until_each_has_a_label_and_are_told_meanwhile(bank: AsyncReasoningBank) -> None:
    await worked(bank, range(6))
    drawn = await bank.runs.audit(6, by="Ana", reason="monthly check")
    assert len(drawn) == await missing(bank) == 6
    await label(bank, drawn[:4])
    assert await missing(bank) == 2
    assert await bank.runs.audit(6) == await bank.runs.unlabelled() == drawn[4:]
    await label(bank, drawn[4:])
    assert (await missing(bank), await bank.runs.unlabelled()) == (0, ())
    audits = [entry.entry for entry in await bank.history.list() if isinstance(entry.entry, Audit)]
    assert [(audit.odds, audit.by, audit.reason) for audit in audits] == [(1.0, "Ana", "monthly check")]


async def test_the_next_audit_draws_from_what_has_no_label(bank: AsyncReasoningBank) -> None:
    await worked(bank, range(12))
    first = await bank.runs.audit(6)
    await label(bank, first)
    second = await bank.runs.audit(1000)
    assert len(first) < 12
    assert sorted(ids((*first, *second))) == sorted(f"run-{n}" for n in range(12))
    await label(bank, second)
    assert await bank.runs.audit(20) == ()


async def test_an_audit_of_nothing_writes_nothing(bank: AsyncReasoningBank) -> None:
    await worked(bank, range(3), outcome="success")
    before = await bank.history.list()
    assert await bank.runs.audit(20) == ()
    assert await bank.history.list() == before


async def test_a_rollback_leaves_an_audit_and_its_labels_as_they_are(bank: AsyncReasoningBank) -> None:
    await worked(bank, range(4))
    at = (await bank.history.list())[-1].sequence
    drawn = await bank.runs.audit(4)
    await label(bank, drawn[:2])
    await bank.history.rollback(to=at, reason="too early")
    assert await missing(bank) == 2
    assert await bank.runs.unlabelled() == drawn[2:]


async def test_a_drawn_run_that_is_purged_waits_no_more(bank: AsyncReasoningBank) -> None:
    await worked(bank, range(4))
    drawn = await bank.runs.audit(4)
    await bank.admin.purge(run=drawn[1].trajectory.id, by="Ana", reason="erasure request")
    assert ids(await bank.runs.unlabelled()) == ["run-0", "run-2", "run-3"]
    assert await missing(bank) == 3


async def test_labels_survive_an_export_as_a_persons_words_and_the_audit_stays_behind(
    bank: AsyncReasoningBank, tmp_path: Path
) -> None:
    await worked(bank, range(4))
    await label(bank, (await bank.runs.audit(4))[:3])
    await bank.admin.export(tmp_path / "export.jsonl")
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as other:
        await other.admin.import_(tmp_path / "export.jsonl")
        assert [one.verdict.source for one in await other.runs.list()].count("human") == 3
        assert (await other.runs.unlabelled(), await other.runs.audit(20), await missing(other)) == ((), (), 0)


async def test_another_process_sees_the_same_drawn_runs(tmp_path: Path) -> None:
    async with await opened(tmp_path / "bank.db") as bank:
        await add_lesson(bank)
        await worked(bank, range(12))
        drawn = await bank.runs.audit(6)
    async with await opened(tmp_path / "bank.db") as bank:
        assert await bank.runs.unlabelled() == drawn
        assert await missing(bank) == len(drawn)


# -- the odds, by themselves -------------------------------------------------------------------------------------------


@cache
def told(id: str, source: Any = "judge") -> Settlement:
    return Settlement(recall_id=id, scope="t", outcome="success", source=source, trajectory_ids=(f"run of {id}",))


def audits(count: int) -> tuple[Audits, list[str]]:
    made, names = Audits(), [str(n) for n in range(count)]
    for name in names:
        made.settle(told(name))
    return made, names


def test_labels_count_up_to_the_last_one_before_the_first_drawn_recall_that_waits() -> None:
    made, names = audits(40)
    made.make(Audit(seed="a", odds=0.25, by="Ana"))
    waiting = made.waiting
    for name in (waiting[0], waiting[1], waiting[3]):
        made.settle(told(name, "human"))
    odds, audited = made.by_row(names)
    end = names.index(waiting[1]) + 1
    assert np.allclose(odds[:end], 0.25)
    assert np.isnan(odds[end:]).all()
    assert [names[row] for row in np.flatnonzero(audited)] == [waiting[0], waiting[1]]


def test_what_a_person_corrects_without_being_asked_was_not_drawn() -> None:
    made, names = audits(20)
    made.make(Audit(seed="a", odds=0.3, by="Ana"))
    chosen = next(name for name in names if name not in made.waiting)
    for name in (chosen, *made.waiting):
        made.settle(told(name, "human"))
    odds, audited = made.by_row(names)
    assert np.allclose(odds, 0.3)
    assert not audited[names.index(chosen)]


def test_what_was_erased_because_of_its_age_is_asked_of_nobody_and_stops_nothing() -> None:
    made, names = audits(20)
    made.make(Audit(seed="a", odds=0.3, by="Ana"))
    old = made.waiting[0]
    made.forget([old])
    for name in made.waiting:
        made.settle(told(name, "human"))
    odds, _ = made.by_row(names)
    assert np.flatnonzero(np.isnan(odds)).tolist() == [names.index(old)]


def test_over_several_audits_and_a_person_who_corrects_what_looks_odd_weighted_truths_add_up_to_all_truths() -> None:
    """Each truth over its odds, summed over what was drawn: on average the sum over all of the pool, and no other."""
    chance, names, ratios = np.random.default_rng(1), [str(n) for n in range(60)], list[float]()
    truth = {name: float(n % 3 == 0) for n, name in enumerate(names)}
    for _ in range(150):
        made, _ = audits(60)
        for odds in (0.2, 0.3):
            made.make(Audit(seed=f"{chance.random()}", odds=odds, by="Ana"))
            for name in made.waiting:
                made.settle(told(name, "human"))
            for name in names[:20]:
                if truth[name] and chance.random() < 0.5:
                    made.settle(told(name, "human"))
        pi, drawn = made.by_row(names)
        assert np.allclose(pi, 1 - 0.8 * 0.7)
        ratios.append(sum(truth[name] / pi[row] for row, name in enumerate(names) if drawn[row]) / 20)
    assert abs(np.mean(ratios) - 1) < 4 * np.std(ratios) / np.sqrt(len(ratios))
    assert np.std(ratios) < 0.4


def test_runs_that_were_forgotten_after_a_while_wait_for_no_label() -> None:
    from lessonbank.contracts.records import Candidate, Recall
    from lessonbank.evidence.evidence_table import EvidenceTable

    made, at = EvidenceTable(), datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(10):
        shown = Candidate(lesson_id="a", experience_id="e", score=0.5, rank=1, shown=True, probability=0.2)
        made.receipt(Recall(id=str(n), scope="t", task=TASK, candidates=(shown,), created_at=at + timedelta(days=n)))
        made.settle(told(str(n)))
    made.audits.make(Audit(seed="a", odds=1.0, by="Ana"))
    made.forget(at + timedelta(days=4))
    assert made.audits.waiting == tuple("456789")
