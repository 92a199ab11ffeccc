"""A reader of a terminal or a page is told what is there, and no call of the library."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from lessonbank.evidence import Estimate, LessonLift, Lift
from lessonbank.evidence.doors import PAGES, SHELL, translate_for
from lessonbank.evidence.lift import advice, in_words
from lessonbank.pages.reports.lift_page import content, page

CALL = re.compile(r"\b(?:bank|lessons|runs)\.[a-z]+\b(?!\.db)|Learning\(|\b(?:learn|retrieve)\(|\b(?:recall|outcome)=")
SURE = Estimate(value=0.1, always_low=0.05, always_high=0.15, basis="truth")
NOTHING = Estimate(value=0.0, always_low=-0.02, always_high=0.02)


def lift(**told: Any) -> Lift:
    usual: dict[str, Any] = {"scope": "t", "recalls": 100, "settled": 90, "controls": 10, "success": SURE}
    return Lift(**(usual | told))


LIFTS = (
    lift(recalls=0, settled=0, empty=3, unfinished=2, success=Estimate()),
    lift(recalls=0, settled=0, success=Estimate()),
    lift(settled=0, success=Estimate()),
    lift(settled=9),
    lift(missing_differs=True),
    lift(lessons=(LessonLift(lesson_id="a", standing="helps", proposed=True),)),
    lift(standing="likely harms", lessons=(LessonLift(lesson_id="a", standing="harms", proposed=True),)),
    lift(lessons=(LessonLift(lesson_id="a", success=NOTHING), LessonLift(lesson_id="b", success=NOTHING))),
    lift(success=SURE.model_copy(update={"basis": "judge"})),
)


@pytest.mark.parametrize("told", LIFTS)
def test_advice_names_no_call_of_the_library_on_pages_and_in_a_terminal(told: Lift) -> None:
    shell = in_words(told, door=SHELL)
    for text in (shell, page(told), content(told, address=lambda kind, id: f"/{kind}/{id}")):
        assert not CALL.search(text), CALL.search(text)


def test_pages_send_a_reader_to_pages() -> None:
    assert sum(bool(CALL.search(" ".join(advice(told)))) for told in LIFTS) > 5
    told = " ".join(translate_for(PAGES, one) for each in LIFTS for one in advice(each))
    for place in ("in the Inbox", "the page Runs", "on their pages", "a trial is quicker"):
        assert place in told


def test_what_a_stranger_wrote_stays_as_it_is_through_every_door() -> None:
    title = "Read bank.lessons.proposals() and bank.trial(…)"
    notes = (f"'{title}' starts again, because its text was changed",)
    told = lift(lessons=(LessonLift(lesson_id="a", title=title), LessonLift(lesson_id="b")), notes=notes)
    for text in (in_words(told, door=SHELL), unescape(content(told, address=lambda *_: "/"))):
        assert text.count(title) == 2
        assert notes[0] in text
