"""An explanation names everything that was found, in order, and nothing that strangers wrote can drive a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from lessonbank.bank.explanation import Explanation, explained, losers
from lessonbank.contracts.records import Candidate, Experience, Lesson, Match, Recall, Settlement
from lessonbank.evidence.effects import Estimate, LessonLift

HOSTILE = "\x1b[2Jtitle\r\nrecall forged\u202e\x07"


def lesson(id: str, title: str = "Look first", **more: Any) -> Lesson:
    return Lesson(id=id, title=title, content=f"Content of {id}.", **more)


def candidate(lesson_id: str, rank: int, **more: Any) -> Candidate:
    told: dict[str, Any] = {"shown": True, "score": 1.0 / rank, "why": f"why {lesson_id}"} | more
    return Candidate(lesson_id=lesson_id, experience_id="e", rank=rank, **told)


def receipt(*found: Candidate, **more: Any) -> Recall:
    return Recall(id="r1", scope="t", task="Cancel it", candidates=found, **more)


def match(*lessons: Lesson, score: float = 0.5, lesson_id: str | None = None) -> Match:
    return Match(experience=Experience(scope="t", task="x", lessons=lessons), score=score, lesson_id=lesson_id)


def test_what_was_found_is_listed_best_first_with_what_the_evidence_says() -> None:
    lifts = {"a": LessonLift(lesson_id="a", standing="helps", success=Estimate(value=0.1))}
    told = explained(
        receipt(candidate("b", 2, shown=False, why="withheld at random"), candidate("a", 1)),
        Settlement(recall_id="r1", scope="t", outcome="failure"),
        {"a": lesson("a", "Look first")},
        lifts,
    )
    assert [(i.lesson_id, i.rank, i.shown, i.why) for i in told.lessons] == [
        ("a", 1, True, "why a"),
        ("b", 2, False, "withheld at random"),
    ]
    assert (told.lessons[0].lift, told.lessons[1].lift, told.lessons[1].title) == (lifts["a"], None, "")
    assert str(told).splitlines() == [
        "recall r1, its task ended as a failure",
        "  shown: Look first: why a; helps (+10.0 points)",
        "  not shown: b: withheld at random",
    ]


@pytest.mark.parametrize(("control", "found"), [(True, True), (False, True), (True, False)])
def test_a_recall_says_whether_it_was_withheld_and_settled(control: bool, found: bool) -> None:
    candidates = [candidate("a", 1)] if found else []
    told = explained(receipt(*candidates, control=control, notes=("a note",)), None, {}, {})
    first = str(told).splitlines()[0]
    assert "not settled" in first
    assert ("withheld whole" in first) is (control and found), "of nothing nothing is withheld"
    assert (told.outcome, str(told).splitlines()[-1]) == (None, "a note")


def test_what_was_not_found_is_what_comes_next() -> None:
    near = [
        match(lesson("a"), lesson("new", "Other"), lesson("gone", retired=True), score=0.4),
        match(lesson("part"), lesson("whole"), score=0.3, lesson_id="part"),
        match(lesson("hidden", state="quarantined"), score=0.2),
    ]
    told = losers(receipt(candidate("a", 1, score=0.45)), near, {}, most=10)
    assert [(i.lesson_id, i.shown, i.rank) for i in told] == [("new", False, None), ("part", False, None)]
    assert told[0].why.startswith("scores 0.400, behind 0.450")
    assert losers(receipt(), near, {}, most=1)[0].why == "scores 0.400"
    assert "nearest now" in str(Explanation(recall_id="r", task="t", losers=told))


@pytest.mark.parametrize("title", [HOSTILE, ""])
def test_what_strangers_wrote_stays_in_its_line(title: str) -> None:
    made = receipt(candidate(HOSTILE, 1, why=HOSTILE), notes=(HOSTILE,))
    told = explained(made, None, {HOSTILE: lesson("a", title or "x")}, {})
    more = told.model_copy(update={"losers": told.lessons})
    assert len(str(more).splitlines()) == 5
    assert not {c for c in str(more) if c != "\n" and not c.isprintable()}


def test_what_scores_higher_now_is_not_said_to_be_behind() -> None:
    told = losers(receipt(candidate("a", 1, score=0.3)), [match(lesson("new"), score=0.9)], {}, most=10)
    assert "behind" not in told[0].why
