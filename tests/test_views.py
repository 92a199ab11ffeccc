"""What a person finds with the views of a bank: filtered, in pages, and with a word of their own on a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Lesson, Parts, ReasoningBank, Step, Trajectory
from lessonbank.contracts.records import Run
from lessonbank.errors import NotFound, UsageError

pytestmark = pytest.mark.full


async def teaching(attempts: Any) -> Extraction:
    """One lesson for each run, of its own."""
    run: Trajectory = attempts[0].trajectory
    kind = "strategy" if attempts[0].verdict.outcome == "success" else "guardrail"
    text = f"Fill customs field {run.metadata['n']} before the parcel label is printed."
    return Extraction(lessons=(Lesson(title=f"Customs field {run.metadata['n']}", content=text, kind=kind),))


def opened(**parts: Any) -> ReasoningBank:
    parts_of_ours, evidence = Parts(extractor=teaching, **parts), Evidence(holdout=None)
    return lessonbank.connect(":memory:", scope="acme/a", embedder="lexical", evidence=evidence, parts=parts_of_ours)


@pytest.fixture
def bank() -> Iterator[ReasoningBank]:
    with opened() as made:
        yield made


def run(n: int) -> Trajectory:
    return Trajectory(
        id=f"run-{n}", task=f"Ship parcel {n}", steps=(Step(action=f"print label {n}"),), metadata={"n": n}
    )


def learn(bank: ReasoningBank, n: int, *, outcome: str | None = "success", **told: Any) -> Any:
    recall = bank.retrieve(f"Ship parcel {n}", metadata=told.get("metadata"))
    return bank.learn(run(n), recall=recall, outcome=outcome, **told)


@pytest.fixture
def five(bank: ReasoningBank) -> ReasoningBank:
    """A bank of five runs, of which the odd ones failed."""
    for n in range(5):
        learn(bank, n, outcome="failure" if n % 2 else "success", metadata={"user": f"u-{n % 2}"})
    return bank


def ids(records: Any) -> list[str]:
    return [(one.trajectory if isinstance(one, Run) else one).id for one in records]


def test_a_list_is_newest_first_and_its_pages_join_without_gap_or_overlap(five: ReasoningBank) -> None:
    for view in (five.lessons, five.runs, five.recalls):
        whole = ids(view.list())
        assert len(whole) == len(set(whole)) == 5
        pages, after = list[str](), None
        while page := ids(view.list(limit=2, after=after)):
            assert len(page) <= 2
            pages += page
            after = page[-1]
        assert pages == whole
        assert whole == sorted(whole, reverse=True)


def test_a_list_of_fewer_than_one_and_what_nobody_knows_are_refused(bank: ReasoningBank) -> None:
    learn(bank, 1)
    for view in (bank.lessons, bank.runs, bank.recalls):
        for limit in (0, -1):
            with pytest.raises(UsageError, match="limit"):
                view.list(limit=limit)
        with pytest.raises(NotFound):
            view.list(after="nobody")
        with pytest.raises(NotFound):
            view.get("nobody")
    with pytest.raises(UsageError, match="count"):
        bank.runs.audit(0)


def test_lessons_are_filtered_by_kind_writer_state_and_words(five: ReasoningBank) -> None:
    by_ana = five.scoped(writer="Ana")
    learn(by_ana, 7)
    assert [lesson.title for lesson in five.lessons.list(writer="Ana")] == ["Customs field 7"]
    assert [lesson.title for lesson in five.lessons.list(kind="guardrail")] == ["Customs field 3", "Customs field 1"]
    assert [lesson.title for lesson in five.lessons.search("CUSTOMS 3 label")] == ["Customs field 3"]
    assert five.lessons.search("customs submarine") == ()
    assert len(five.lessons.list(state="probation")) == 6
    assert five.lessons.list(state="active") == ()


def test_runs_are_filtered_by_outcome_status_words_and_metadata(five: ReasoningBank) -> None:
    five.learn(run(8))  # without a truth and without a judge it waits
    assert ids(five.runs.list(outcome="failure")) == ["run-3", "run-1"]
    assert ids(five.runs.list(status="pending")) == ["run-8"]
    assert ids(five.runs.pending()) == ["run-8"]
    assert ids(five.runs.search("label 4")) == ["run-4"]
    assert ids(five.runs.search(metadata={"user": "u-1"})) == ["run-3", "run-1"]
    assert ids(five.runs.list(text="label", outcome="success", metadata={"user": "u-0"}, limit=2)) == ["run-4", "run-2"]
    found = five.runs.get("run-3")
    assert (found.verdict.outcome, found.status, found.metadata["user"]) == ("failure", "learned", "u-1")


def test_pending_runs_come_oldest_first_in_pages(bank: ReasoningBank) -> None:
    for n in range(3):
        bank.learn(run(n))
    assert ids(bank.runs.pending(limit=2)) == ["run-0", "run-1"]
    assert ids(bank.runs.pending(limit=2, after="run-1")) == ["run-2"]


def test_recalls_are_filtered_by_words_metadata_lesson_and_whether_their_outcome_is_known(five: ReasoningBank) -> None:
    (lesson,) = five.lessons.search("field 4")
    last = five.retrieve("Ship parcel 4", metadata={"user": "u-9"})
    assert lesson in last.shown
    assert ids(five.recalls.list(settled=False)) == [last.id]
    assert len(five.recalls.list(settled=True)) == 5
    assert ids(five.recalls.list(lesson=lesson.id)) == [last.id]
    assert ids(five.recalls.search(metadata={"user": "u-9"})) == [last.id]
    assert last.id in ids(five.recalls.search("parcel 4"))
    assert five.recalls.search("submarine") == ()
    assert five.recalls.get(last.id).metadata == {"user": "u-9"}
    assert lesson.title in str(five.recalls.explain(last.id))


def test_history_is_oldest_first_and_comes_in_pages(five: ReasoningBank) -> None:
    whole = [entry.sequence for entry in five.history.list()]
    assert whole == list(range(1, len(whole) + 1))
    assert [entry.sequence for entry in five.history.list(limit=3)] == [1, 2, 3]
    assert [entry.sequence for entry in five.history.list(after=3, limit=2)] == [4, 5]
    with pytest.raises(UsageError, match="limit"):
        five.history.list(limit=0)


async def says_failure(_: Any) -> lessonbank.Verdict:
    return lessonbank.Verdict(outcome="failure", confidence=0.9, reason="the label is missing")


def test_a_person_corrects_a_verdict_and_the_receipt_is_settled_again() -> None:
    with opened(judge=says_failure) as bank:
        learn(bank, 1, outcome=None)
        assert bank.runs.get("run-1").verdict.source == "judge"
        corrected = bank.runs.correct("run-1", outcome="success", by="Ana", reason="the label was on the box")
        assert corrected.known == ("run-1",)
        verdict = bank.runs.get("run-1").verdict
        assert (verdict.outcome, verdict.source) == ("success", "human")
        assert verdict.reason == "Ana: the label was on the box"
        assert len(bank.recalls.list(settled=True)) == 1
        with pytest.raises(UsageError):
            bank.runs.correct("run-1", outcome="success", by="  ")
        with pytest.raises(NotFound):
            bank.runs.correct("nobody", outcome="success", by="Ana")
