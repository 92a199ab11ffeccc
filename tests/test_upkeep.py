"""Lessons that no run meets sleep and wake again, a scope keeps its number of lessons, and all of it can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lessonbank import Evidence, Experience, Extraction, Learning, Lesson, Parts, ReasoningBank, Trajectory, connect
from lessonbank.bank.upkeep import Use, sleepers, surplus
from lessonbank.contracts.records import Run
from lessonbank.errors import UsageError

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=200)
REFUND, CANCEL = "Refund the ticket of a passenger", "Cancel the order of a customer"


async def nothing(_runs: Sequence[Run]) -> Extraction:
    return Extraction()


def opened(path: Path, **learning: Any) -> ReasoningBank:
    return connect(
        path / "bank.db",
        scope="t",
        embedder="lexical",
        parts=Parts(extractor=nothing),
        evidence=Evidence(holdout=None),
        learning=Learning(**learning),
    )


def teach(bank: ReasoningBank, task: str, title: str, *, at: datetime = OLD) -> str:
    lesson = Lesson(title=title, content=f"{title}, and then look again.", created_at=at)
    bank.consolidate(Experience(scope="t", task=task, lessons=(lesson,), created_at=at))
    return lesson.id


def run(bank: ReasoningBank, task: str) -> tuple[str, ...]:
    """The notes of a run that met what memory shows for its task."""
    return bank.learn(Trajectory(task=task, answer="x"), recall=bank.retrieve(task), outcome="success").notes


def test_a_lesson_that_no_run_met_for_long_sleeps_and_a_run_of_a_like_task_wakes_it(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        refund, cancel = teach(bank, REFUND, "Ask for the ticket"), teach(bank, CANCEL, "Read the order")
    with opened(tmp_path, sleep_after=180) as bank:
        notes = run(bank, CANCEL)  # it finds the other one, so only one was not met
        assert "1 lesson was put to sleep: no run met it for 180 days" in notes
        assert bank.retrieve(CANCEL).shown[0].id == cancel
        assert bank.retrieve(REFUND).shown == ()
        asleep = bank.lessons.get(refund)
        assert (asleep.asleep, asleep.retired, bank.lessons.get(cancel).asleep) == (True, True, False)
        assert "1 lesson woke up, because this run met it again" in run(bank, f"{REFUND} today")
        awake = bank.lessons.get(refund)
        assert (awake.asleep, awake.retired) == (False, False)
        assert [entry.entry.kind for entry in bank.history.list()][-1] == "restore"
    with opened(tmp_path, sleep_after=180) as bank:
        run(bank, CANCEL)
        assert not bank.lessons.get(refund).asleep  # to be woken is to be met
        assert bank.admin.verify() == ()


def test_sleep_is_in_the_journal_and_can_be_undone(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        refund = teach(bank, REFUND, "Ask for the ticket")
        before = bank.history.list()[-1].sequence
    with opened(tmp_path, sleep_after=180) as bank:
        run(bank, CANCEL)
        assert "put to sleep" in [one.entry.sentence().text for one in bank.history.list()]
        bank.history.rollback(to=before, reason="it is needed")
        assert bank.retrieve(REFUND).shown[0].id == refund
    with opened(tmp_path) as bank:
        assert not bank.lessons.get(refund).asleep


def test_what_a_person_retired_since_it_fell_asleep_wakes_for_no_run_and_no_note_says_so(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        refund, ticket = teach(bank, REFUND, "Ask for the ticket"), teach(bank, f"{REFUND} now", "Read the ticket")
    with opened(tmp_path, sleep_after=180) as bank:
        bank.learn(Trajectory(task=CANCEL, answer="x"), outcome="success")
        bank.lessons.restore(refund, reason="to look at it", by="Ana")
        bank.lessons.retire(refund, reason="wrong", by="Ana")
        bank.lessons.restore(ticket, reason="it is good", by="Ana")
        assert not any("woke" in note for note in run(bank, REFUND))
        assert (bank.lessons.get(refund).retired, bank.lessons.get(ticket).retired) == (True, False)


def test_a_person_retires_a_sleeping_lesson_and_no_run_wakes_it(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        refund = teach(bank, REFUND, "Ask for the ticket")
    with opened(tmp_path, sleep_after=180) as bank:
        bank.learn(Trajectory(task=CANCEL, answer="x"), outcome="success")
        assert bank.lessons.get(refund).asleep
        bank.lessons.retire(refund, reason="wrong", by="Ana")
    with opened(tmp_path, sleep_after=180) as bank:
        run(bank, REFUND)
        lesson = bank.lessons.get(refund)
        assert (lesson.retired, lesson.asleep, bank.admin.verify()) == (True, False, ())


def test_what_a_person_approved_neither_sleeps_nor_makes_room(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        refund = teach(bank, REFUND, "Ask for the ticket")
        bank.lessons.approve(refund, by="Ana")
    with opened(tmp_path, sleep_after=180, keep_lessons=1) as bank:
        other = teach(bank, "Book a seat", "Take the window", at=NOW)
        assert "1 lesson was removed: this scope keeps 1 lesson" in run(bank, CANCEL)
        assert not bank.lessons.get(refund).retired
        assert bank.lessons.get(other).retired


def test_a_scope_keeps_the_lessons_that_were_met_last(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        ids = [teach(bank, f"{word} the flight", f"{word} first") for word in ("Book", "Change", "Find", "Hold")]
    with opened(tmp_path, keep_lessons=2) as bank:
        bank.retrieve("Change the flight")
        run(bank, CANCEL)
        shown = [lesson.id for lesson in bank.lessons.list() if not lesson.retired]
        assert len(shown) == 2
        assert ids[1] in shown
        assert not any(bank.lessons.get(id).asleep for id in ids)


def test_nothing_is_put_away_unless_it_is_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path) as bank:
        refund = teach(bank, REFUND, "Ask for the ticket", at=NOW - timedelta(days=4_000))
        assert run(bank, CANCEL) == ()
        assert bank.retrieve(REFUND).shown[0].id == refund


def test_what_does_nothing_goes_before_what_was_not_met_for_longest() -> None:
    uses = [Use("new", NOW), Use("old", OLD), Use("useless", NOW, does_nothing=True)]
    assert surplus(uses, count=2) == ("useless", "old")
    assert surplus(uses, count=-1) == ()
    assert sleepers(uses, before=NOW) == ("old",)


@pytest.mark.parametrize(("name", "wrong"), [("keep_lessons", 0), ("keep_lessons", 1.5), ("sleep_after", "9")])
def test_a_bound_that_cannot_be_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(UsageError, match=name):
        Learning(**{name: wrong})
