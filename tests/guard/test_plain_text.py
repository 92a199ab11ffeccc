"""The text that is kept, shown and sent is what a reader sees, and making it twice changes nothing."""

from __future__ import annotations

import unicodedata

import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.guard import clean, plain
from lessonbank.guard.redact import redact

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
PIECES = [
    "\x1b[01;31m", "\x1b[", "\x1b[K", "\x1b]8;;http://a.example\x1b\\", "\x1b]8;;", "\x9b1m", "\x1b", "[31m",
    "\0", "\b", "\x7f", "\a", "\r", "\n", "\r\n",
    "\u200d", "\ufe0f", "\u200b", "\ue000", "\u0378", "\u0301", "\u20e3", "1", "a",
    "é", FAMILY, "\u2764\ufe0f", "\U0001f525", "\U0001f44d\U0001f3fd", "\u202e", "\ud800", "עברית", "\u2028",
]  # fmt: skip
terminal = st.lists(st.sampled_from(PIECES) | any_text(max_size=3), max_size=14).map("".join)


@given(terminal)
def test_a_text_is_made_plain_once(text: str) -> None:
    told = plain(text)
    assert plain(told) == told
    assert redact(told) == redact(text) or "\b" in text
    hidden = {c for c in told if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn"}}
    assert hidden <= {"\n", "\t", "\u200d"}


@given(terminal)
def test_nothing_that_a_later_step_would_remove_is_left_by_the_redactor(text: str) -> None:
    told = redact(text)
    assert plain(told) == told
    assert redact(told) == told


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("ab\bc", "ac"),
        ("N\bNA\bAM\bME\bE", "NAME"),
        ("_\bN_\bA_\bM_\bE", "NAME"),
        ("10%\b\b\b20%", "20%"),
        ("one\n\b\btwo", "one\ntwo"),
        ("a\u200b\bb", "b"),
        ("\b", ""),
        ("no\r\nbreak\rlost", "no\nbreak\nlost"),
        ("t\0e\0x\0t\0", "text"),
        ("\x1b\0[\x003\x001\0mred\x1b\0[\0m", "red"),
        ("\x1b[38;5;28;01mdef\x1b[39;00m \x9b31mx\x9bm", "def x"),
        ("\x1b]8;;https://a.example\x07here\x1b]8;;\x07", "here"),
    ],
)
def test_a_text_of_a_terminal_is_what_the_terminal_shows(typed: str, read: str) -> None:
    assert plain(typed) == read
    assert redact(typed) == read


@pytest.mark.parametrize(
    "text",
    [
        "one\n\ttwo\n",
        FAMILY,
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\U0001f44d\U0001f3fd",
        "1\ufe0f\u20e3",
        "cafe\u0301 na\u0308ive",
        "العربية עברית हिन्दी ไทย",
        "日本語のテキスト 🎌",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert plain(text) == clean(text) == redact(text) == text


@pytest.mark.parametrize(
    "text", ["a\u200db", "\U0001f469\u200d", "\u200d\U0001f467", "a\ufe0f", "\U0001f469\u200d\u200d\U0001f467"]
)
def test_a_joiner_that_joins_no_two_emoji_is_gone(text: str) -> None:
    assert not {"\u200d", "\ufe0f"} & set(plain(text))
