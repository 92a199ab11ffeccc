"""What a search with other settings would show, while the bank stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import lessonbank
from lessonbank import Extraction, Lesson, Parts, ReasoningBank, Retrieval, Run, Trajectory
from lessonbank.errors import UsageError

TASKS = ("Cancel the pending order of a customer", "Cancel the flight to Oslo", "Return the blue headphones")


async def extract(attempts: Sequence[Run], /) -> Extraction:
    """A strategy of each success, a guardrail of each failure."""
    run = attempts[0]
    kind = "strategy" if run.verdict.outcome == "success" else "guardrail"
    title = f"{kind} of {run.trajectory.task}"
    return Extraction(lessons=(Lesson(title=title, content="Look twice. " * 30, kind=kind),))  # type: ignore[arg-type]


def fill(bank: ReasoningBank) -> None:
    for number, task in enumerate(TASKS * 2):
        bank.learn(Trajectory(task=f"{task}, case {number}"), outcome="success" if number % 2 else "failure")


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.full)])
def bank(request: pytest.FixtureRequest) -> Iterator[ReasoningBank]:
    where = ":memory:"
    if request.param == "postgres":
        pytest.importorskip("psycopg", reason="pip install 'lessonbank[postgres]'")
        make: Callable[[], str] = request.getfixturevalue("postgres_bank")
        where = make()
    settings: dict[str, Any] = {"embedder": "hashing", "evidence": 0.9, "parts": Parts(extractor=extract)}
    with lessonbank.connect(where, scope="t", **settings) as made:
        fill(made)
        yield made


def test_each_setting_changes_what_is_shown_and_no_receipt_is_kept(bank: ReasoningBank) -> None:
    before = bank.admin.counts(), len(bank.history.list())
    task = "Cancel the order of a customer"
    own = bank.recalls.preview(task)
    assert len(own.shown) == 3
    assert len(bank.recalls.preview(task, limit=1).shown) == 1
    assert len(bank.recalls.preview(task, budget=200).shown) < 3
    assert not bank.recalls.preview(task, floor=1.0).shown
    assert len(bank.recalls.preview("a customer", floor=0, limit=9).shown) == 6
    assert "never cite" in own.text
    assert "never cite" not in bank.recalls.preview(task, preface="cite").text
    assert "Hints of old." in bank.recalls.preview(task, preface="Hints of old.").text
    assert "lexical" in bank.recalls.preview(task, by="lexical").retriever
    assert "hybrid" in bank.recalls.preview(task, by="hybrid").retriever
    assert (bank.admin.counts(), len(bank.history.list())) == before
    assert bank.recalls.preview(task).lessons == own.lessons, "the bank searches as before"


def test_a_stricter_trust_shows_what_people_approved(bank: ReasoningBank) -> None:
    nothing = bank.recalls.preview("Cancel the order", trust="reviewed")
    assert not nothing.shown
    assert "none trusted yet (reviewed)" in " ".join(nothing.notes)
    lesson = bank.lessons.list()[-1]
    bank.lessons.approve(lesson.id, by="Ana")
    assert [one.id for one in bank.recalls.preview("Cancel the order", trust="reviewed").shown] == [lesson.id]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"limit": 0}, "limit"),
        ({"budget": 5}, "budget="),
        ({"floor": 2}, "floor="),
        ({"preface": "one"}, "preface"),
        ({"by": "magic"}, "by="),
        ({"trust": "blind"}, "trust="),
    ],
)
def test_a_wrong_setting_is_named(given: dict[str, Any], word: str) -> None:
    with (
        lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank,
        pytest.raises(UsageError, match=word),
    ):
        bank.recalls.preview("Cancel the order", **given)


def test_what_a_bank_cannot_search_by_is_said() -> None:
    with (
        lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank,
        pytest.raises(UsageError, match="needs an embedder"),
    ):
        bank.recalls.preview("Cancel the order", by="dense")
    with (
        lessonbank.connect(":memory:", scope="t", embedder="hashing", retrieval=Retrieval(level="lesson")) as bank,
        pytest.raises(UsageError, match="level='lesson'"),
    ):
        bank.recalls.preview("Cancel the order", by="lexical")
