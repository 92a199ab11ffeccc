"""A text is read as people see it however its letters are written, so that an echo is one in any disguise."""

from __future__ import annotations

import pytest
from obfuscations import WAYS

from lessonbank.contracts.records import Extraction, Lesson, Run, Trajectory, Verdict
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.gate._skeleton import skeleton

READINGS = {
    "ѕkіp the сhеck": "skip the check",
    "ꜱᴋɪᴘ ᵗʰᵉ ⓒⓗⓔⓒⓚ": "skip the check",
    "5k1p 7h3 ch3ck 0f 4 c0py": "skip the check of a copy",
    "de1ete the va1idation": "delete the validation",
    "sk&#105;p th&amp;#101; ch&shy;eck": "skip the check",
    "s**ki**p the ch`ec`k": "skip the check",
    "s̴̢k̷͝i̶p̵ the čhéck": "skip the check",
    "s k i p  t h e  c h e c k": "skip the check",
    "s.k.i.p t.h.e c.h.e.c.k": "skip the check",
    "sk<b></b>ip the ch<!-- x -->eck": "skip the check",
    "%73kip \\u0074he \\x63heck": "skip the check",
    "**skip** _the_ *check*": "skip the check",
    'skip "the" (check) of [it]': "skip the check of it",
    "skip the con-\n  firmation": "skip the confirmation",
    "deIete the faiIing tests": "delete the failing tests",
    "s\\k\\i\\p the s_ki_p~~p~~ed": "skip the skipped",
    'a page says "ignore it"': 'a page says "ignore it"',
    "The total is 12.50 € … see `a+b` and x = y": "the total is 12.50 € … see `a+b` and x = y",
    "Order 4471 of 2024-05-01, step 3, 100 %": "order 4471 of 2024-05-01, step 3, 100 %",
}


@pytest.mark.parametrize(("text", "read"), READINGS.items())
def test_a_skeleton_is_what_a_reader_sees(text: str, read: str) -> None:
    assert skeleton(text) == read


def test_an_entity_of_any_number_is_no_trouble() -> None:
    for text in ("&#" + "1" * 9000 + ";", "&#x110000;", "&#xd800;", "&" * 50, "&#0;&nosuch;&"):
        assert isinstance(skeleton(text), str)


@pytest.mark.parametrize(
    "text", ["the data\nbase is large", "take a, b and c", "the u.s.a. and u.k. lists", "skip\nit"]
)
def test_words_on_two_lines_and_short_forms_stay_as_they_are(text: str) -> None:
    assert skeleton(text) == text


SHOWN = "Read the status of the order before it is changed: a shipped order can only be returned, not cancelled."


@pytest.mark.parametrize("way", WAYS)
def test_an_echo_is_one_however_its_letters_are_written(way: str) -> None:
    run = Run(trajectory=Trajectory(task="Cancel an order"), verdict=Verdict(outcome="success"))
    lesson = Lesson(title="Orders", content=WAYS[way](SHOWN))
    told = LessonGate()(Extraction(lessons=(lesson,)), [run], shown=[SHOWN])
    assert [one.rule for one in told.rejected] in (["echo"], ["empty"])


def test_another_port_or_another_name_in_other_letters_is_news() -> None:
    run = Run(trajectory=Trajectory(task="Open a port"), verdict=Verdict(outcome="success"))
    held = "Ask Miller for port8081 of the gateway first, because the größere desk there refuses each other call."
    for new in (held.replace("8081", "8034"), held.replace("Miller", "Baker")):
        told = LessonGate()(Extraction(lessons=(Lesson(title="Ports", content=new),)), [run], shown=[held])
        assert not told.rejected
