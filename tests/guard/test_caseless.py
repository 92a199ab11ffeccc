"""Phrases are found wherever and however `re.IGNORECASE` finds them."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.guard.gate._caseless import Caseless
from lessonbank.guard.gate._needed import alternatives, needed
from lessonbank.guard.gate._orders import risks
from lessonbank.guard.gate._phrases import any_of

ALL = {
    "orders": any_of("orders"),
    "chatter": any_of("chatter"),
    "submission": any_of("submission", re.MULTILINE | re.DOTALL),
    **risks(),
}
WORDS = sorted({word for each in ALL.values() for word in re.findall(r"[a-zA-Zа-я]{2,}", each.source)})
SIGNS = [
    *(" " * 3),
    ". ",
    "\n",
    ": ",
    "'",
    "’",
    "<|",
    "|>",
    "[",
    "]",
    '{"name": "',
    "--",
    "@x.org",
    " | ",
    *"ıſİé",
    "(",
    ")",
    "##",
    "&&",
    "`",
]
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(str.upper),
    st.sampled_from(WORDS).map(str.title),
    st.sampled_from(SIGNS),
    st.sampled_from(SIGNS[:3]),
)


def usual(pattern: Caseless) -> re.Pattern[str]:
    return re.compile(pattern.source, re.IGNORECASE | pattern.flags)


@pytest.mark.full
@pytest.mark.parametrize("name", ALL)
def test_phrases_of_the_gate_are_found_where_a_pattern_without_case_finds_them(name: str) -> None:
    pattern, plain = ALL[name], usual(ALL[name])

    @given(st.lists(PIECES, max_size=30))
    def holds(pieces: list[str]) -> None:
        for text in ("".join(pieces), " ".join(pieces)):
            assert list(pattern.spans(text)) == [match.span() for match in plain.finditer(text)]

    holds()


@pytest.mark.parametrize("name", ALL)
def test_each_alternative_is_found_behind_others(name: str) -> None:
    """A text of the words of every alternative: what one finds first, the whole finds in the same order."""
    pattern, plain = ALL[name], usual(ALL[name])
    for part in alternatives(pattern.source):
        text = f"Well: {' '.join(re.findall(r'[A-Za-z]+', part))}. {part}"
        for said in (text, text.upper(), text.title()):
            assert list(pattern.spans(said)) == [match.span() for match in plain.finditer(said)]


@pytest.mark.full
def test_no_letter_is_another_in_small_than_it_is_without_case() -> None:
    letters = {c for each in ALL.values() for c in each.source if c.isalpha()}
    letters |= {c.lower() for c in letters}
    without_case = re.compile("[" + "".join(sorted(letters)) + "]", re.IGNORECASE)
    small = Caseless("[" + "".join(sorted(letters)) + "]")
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000:
            continue
        assert bool(without_case.fullmatch(chr(code))) == bool(list(small.spans(chr(code)))), hex(code)


def test_alternatives_are_told_from_what_groups_and_classes_hold() -> None:
    assert alternatives(r"a|b(c|d)|[|)]e|\|f|[^]|]|g\\|h") == ["a", "b(c|d)", "[|)]e", r"\|f", "[^]|]", r"g\\", "h"]


def test_the_first_alternative_that_fits_still_wins() -> None:
    assert list(Caseless(r"\bab|\babc|x\d|\bab").spans("ABC abc X1")) == [(0, 2), (4, 6), (8, 10)]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (r"\bkeep (?:this|it) out\b", [{" out"}, {"keep "}, {"this", "it"}]),
        (r"a?bcd*e+\s(?:never )?\|x", [{"|x"}, {"bc"}, {"e"}]),
        (r"(?:ab|c\w*d|[xy])z{0,3}", []),
        (r"(?<=before)(?!not)(?:one(?: or)?|two){1,2}", [{"one", "two"}]),
        (r"\n{2}\{\s*[\"'](?:name|\(tool\))", [{"name", "(tool)"}, {"{"}]),
        (r"(?P<it>very long) [^.\n]{0,30}\b(?:a(?:b|c)d|e)", [{"very long"}, {"a", "e"}]),
    ],
)
def test_a_pattern_needs_the_words_that_it_cannot_leave_out(source: str, words: list[set[str]]) -> None:
    assert sorted(map(sorted, needed(source))) == sorted(map(sorted, words))


@pytest.mark.full
@given(st.data())
def test_whatever_the_gate_finds_has_the_words_that_its_alternative_needs(data: st.DataObject) -> None:
    part = data.draw(st.sampled_from([part for each in ALL.values() for part in alternatives(each.source)]))
    text = data.draw(st.from_regex(part))
    for found in re.compile(part, re.MULTILINE | re.DOTALL).finditer(text):
        assert all(any(word in found[0] for word in words) for words in needed(part))
