"""Prose that is passed over at a glance is prose in which nothing would have been found, and nothing changed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lessonbank.guard import sanitise
from lessonbank.guard.sanitise import canonical, is_prose

SIGNS = ["<", ">", "[", "]", "(", ")", ":", "&", "!", "`", "~~~", "|", "#", "### ", "\n", "    ", ".", "/", "//", "\\"]
WORDS = ["User", "www", "WWW", "x", "im_end", "think", "Instruction", "Response", "https", "b", "org", "amp;", "Human"]
ODD = ["é", "e\u0301", "\u0301", "\u202e", "\ufb01", "\uff21", "\u2460", "½", "²", "—", "’", "ß", "ſ", "İ", "東", "한"]
ODD += ["\u1112\u1161", "\r", "\x1b[31m", "\x00", "\u2028", "\u037e", "\u212b", "\u0340", "\u00a0", "\u2011", "\ud800"]
TEXTS = st.lists(st.sampled_from([*SIGNS, *WORDS, *ODD]) | st.characters(), max_size=12)


def at_length(text: str) -> str:
    """The form of a text, reached by every step."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sanitise, "is_prose", lambda _: False)
        return canonical(text)


@given(TEXTS)
@example(["café: x", "\u037e"])
def test_prose_is_its_own_form(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces), f"{': '.join(pieces)}:"):
        assert canonical(text) == at_length(text)
        if is_prose(text):
            assert at_length(text) == text


def test_sentences_are_prose_and_every_sign_counts() -> None:
    assert is_prose("Open the orders page first (it is `slow`), then filter by date; don't reload it!")
    assert is_prose("The user may wait: it's slow.")
    for sign in ("<", "[", "]", "&", "wWw", ":x", "\r", "\u202e", "\u0301", "\uff21"):
        assert not is_prose(f"Open the page{sign}")
    for speaker in ("Human", "human", "Assistant", "User", "System", "DEVELOPER", "### Response", "## Instruction"):
        assert not is_prose(f"{speaker}: go")
