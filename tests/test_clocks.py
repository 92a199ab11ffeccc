"""A clock that leaps erases nothing, and an export with a time of the future comes in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo

import pytest

import lessonbank
from lessonbank import Evidence, Learning, ReasoningBank, Step, Trajectory
from lessonbank.contracts.records import ids
from lessonbank.errors import UsageError

Sets = Callable[[float], None]


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch) -> Sets:
    """Sets the clock of this process so many days ahead."""

    def set_ahead(days: float) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> datetime:  # pyright: ignore[reportIncompatibleMethodOverride]
                return datetime.now(tz) + timedelta(days=days)

        monkeypatch.setattr(ids, "datetime", Clock)

    return set_ahead


def opened(keep_runs: float | None = 90) -> ReasoningBank:
    return lessonbank.connect(
        ":memory:",
        scope="t",
        embedder="lexical",
        learning=Learning(keep_runs=keep_runs),
        evidence=Evidence(holdout=None),
    )


def learned(bank: ReasoningBank, name: str) -> tuple[str, ...]:
    """The notes of learning from a run of this name."""
    steps = (Step(action="look", observation="error: it is stuck"), Step(action="oil it", observation="it turns"))
    return bank.learn(Trajectory(id=name, task=f"Mend the {name}", steps=steps), outcome="success").notes


def kept(bank: ReasoningBank) -> list[str]:
    return sorted(run.trajectory.id for run in bank.runs.list())


def test_one_leap_of_the_clock_erases_nothing_and_is_noted(sets: Sets) -> None:
    with opened() as bank:
        for name in ("valve", "ladder", "bucket"):
            learned(bank, name)
        sets(400)
        (note,) = [note for note in learned(bank, "lantern") if "leap" in note]
        assert "admin.forget(days=90, by=NAME)" in note
        assert kept(bank) == ["bucket", "ladder", "lantern", "valve"]
        with pytest.raises(UsageError, match="the journal leaps from"):
            bank.admin.forget(days=90)
        sets(0)
        assert not [note for note in learned(bank, "anchor") if "leap" in note]
        assert len(kept(bank)) == 5
        sets(400)
        assert bank.admin.forget(days=90, by="Ana").runs == 4
        assert kept(bank) == ["lantern"]


def test_a_leap_between_cures_erases_none_of_them_unless_a_person_says_that_the_clock_is_right(sets: Sets) -> None:
    with opened(keep_runs=None) as bank:
        cures = bank.scoped("t/@cures")
        for day in range(0, 120, 6):
            sets(day)
            learned(bank, f"thing{day:03}")
            if day in (0, 114):
                learned(cures, f"cure{day:03}")
        with pytest.raises(UsageError, match="the journal leaps from"):
            bank.admin.forget(days=90)
        assert (len(kept(bank)), len(kept(cures))) == (20, 2)
        bank.admin.forget(days=90, by="Ana")
        assert (len(kept(bank)), len(kept(cures))) == (15, 1)


def test_what_is_old_without_the_leap_is_erased(sets: Sets) -> None:
    with opened() as bank:
        for day in range(0, 120, 6):
            sets(day)
            learned(bank, f"thing{day:03}")
        assert kept(bank)[0] == "thing030"
        sets(160)
        assert [note for note in learned(bank, "thing160") if "leap" in note]
        assert kept(bank)[0] == "thing030"
        for day in range(162, 180, 6):
            sets(day)
            learned(bank, f"thing{day:03}")
        assert kept(bank)[0] == "thing042"


def test_a_clock_that_was_wrong_and_was_put_right_keeps_nothing_back(sets: Sets) -> None:
    with opened(keep_runs=None) as bank:
        for day, wrong in ((0, 0), (5, 0), (7, 400), (10, 0), (12, -300), (15, 0), (20, 0)):
            sets(day + wrong)
            learned(bank, f"thing{day:03}")
        assert bank.admin.forget(days=11).runs == 3
        assert kept(bank) == ["thing007", "thing010", "thing015", "thing020"]
