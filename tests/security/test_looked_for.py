"""A detector that is not asked about a text would have found nothing in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import secrets_corpus
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.guard.redact._detect import DETECTORS, found_in, found_together
from lessonbank.guard.redact._named import PARTS
from lessonbank.guard.redact._rules import ruled, rules
from lessonbank.guard.redact._spans import Detector, Page, Span, found_on
from lessonbank.guard.redact._views import (
    RUN,
    decoded,
    decoded_signs,
    in_ascii,
    is_line,
    joined,
    may_be_text,
    readings,
    spelled_out,
    unbroken,
)
from lessonbank.guard.redact._words import STEMS

CASES = secrets_corpus.cases()
SAID = [part for case in CASES for part in (case.core, case.text) if len(part) < 2_000]
NEAR = [
    "password",
    "pw=",
    "tel ",
    "+49 ",
    "00",
    "-",
    "-1234",
    "@",
    "key-",
    "ssn ",
    "://",
    "\n",
    " ",
    "token ",
    "é",
    "7",
    *("pass", ": ", "=", "4111 1111", "AKIA", "DE89", "Xy7", "W-9", "\u200b", "\u00ad", "Ｘ", "%41", "&amp;"),
]


@st.composite
def cut(draw: st.DrawFn) -> str:
    """A piece of something secret, a blank or another sign put in somewhere."""
    said = draw(st.sampled_from(SAID))
    start, end = sorted((draw(st.integers(0, len(said))), draw(st.integers(0, len(said)))))
    at = draw(st.integers(start, end))
    return said[start:at] + draw(st.sampled_from(["", "", "", " ", "\n", "x", "0", "é"])) + said[at:end]


RULES = [rule for table in ("keys", "places", "options") for rule in rules(table)]


def every_rule(page: Page) -> Iterator[Span]:
    """What the rules find where each is tried, whether one of its words stands in the text or not."""
    return (span for rule in RULES for word in rule.words for span in rule.at(word, page))


EVERY = [Detector(every_rule if detector.find is ruled else detector.find) for detector in DETECTORS]
"""Every detector, asked whatever signs a text has."""


@pytest.mark.full
@given(st.lists(cut() | st.sampled_from(NEAR) | any_text(max_size=8), max_size=6))
def test_what_is_not_looked_for_is_not_there(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces)):
        assert found_in(text) == found_in(text, detectors=EVERY)
        page = Page(text)
        assert {*ruled(page)} == {*every_rule(page)}
        tokens = may_be_text([token for word in text.split() for token in RUN.findall(word)])
        if not any(map(is_line, tokens)):
            assert [said for *_, said in decoded(page)] == [said for token in tokens for said in readings(token)]


@given(st.lists(cut() | st.sampled_from(NEAR) | any_text(max_size=8), max_size=6).map("".join))
def test_a_view_knows_where_its_characters_come_from(text: str) -> None:
    for look in (in_ascii, spelled_out, decoded_signs, unbroken, joined):
        if view := look(text):
            for at, letter in enumerate(view.text):
                start, end = view.back(at, at + 1)
                assert 0 <= start < end <= len(text)
                assert letter == text[start] or end - start > 1 or letter == "\n" or not text.isascii()
    for start, end, said in decoded(Page(text)):
        assert 0 <= start < end <= len(text)
        assert said


@pytest.mark.full
@given(st.lists(st.lists(cut() | st.sampled_from(NEAR) | any_text(max_size=8), max_size=3).map("".join), max_size=8))
def test_what_is_found_in_a_text_among_others_is_what_is_found_in_it_alone(texts: list[str]) -> None:
    assert all(found == found_in(text) for text, found in found_together(texts).items())


@pytest.mark.full
@pytest.mark.parametrize(
    "neighbour", ["", "-----BEGIN", "password=", 'token "', "Authorization:", "--password \\", "a"]
)
def test_no_secret_of_the_corpus_is_missed_between_others(neighbour: str) -> None:
    texts = [case.text for case in CASES]
    between = [part for text in texts for part in (text, f"{text[:3]} {len(text)} {neighbour}")]
    told = found_together(between)
    assert all(found == found_in(text) for text, found in told.items())
    assert len(told) > len(texts) / 2, "most neighbours hold nothing"


def test_every_option_stands_behind_a_blank_where_it_is_looked_for() -> None:
    for rule in rules("options"):
        assert re.match(r"(?:\(\?:)?\(\?<=\\s-", rule.rest), rule


@pytest.mark.full
@given(st.data())
def test_a_key_is_found_wherever_its_rule_matches(data: st.DataObject) -> None:
    rule = data.draw(st.sampled_from([rule for rule in rules("keys") if not rule.before]))
    word = data.draw(st.sampled_from(rule.words))
    page = Page(data.draw(st.sampled_from(["", "(", "a-", "= "])) + word + data.draw(st.from_regex(rule.rest)))
    anywhere = Page(page.text)
    anywhere.keys = page.text
    assert {*rule.at(word, anywhere)} <= {*ruled(page)}


@pytest.mark.full
def test_what_has_no_sign_is_not_there_in_the_corpus() -> None:
    for case in CASES:
        page = Page(case.text)
        assert {*found_on(page, DETECTORS)} == {*found_on(page, EVERY)}, case.id


def test_every_name_of_a_secret_has_one_of_the_parts_that_are_looked_for() -> None:
    assert all(any(part in stem for part in PARTS) for stem in (*STEMS, "api key"))
