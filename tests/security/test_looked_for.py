"""A detector that is not asked about a text would have found nothing in it."""

from __future__ import annotations

import secrets_corpus
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.guard.redact import _keys, _named, _personal, _places  # pyright: ignore[reportPrivateUsage]
from lessonbank.guard.redact._detect import DETECTORS, found_in
from lessonbank.guard.redact._spans import Page
from lessonbank.guard.redact._views import decoded, legible
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
]


@st.composite
def cut(draw: st.DrawFn) -> str:
    """A piece of something secret, a blank or another sign put in somewhere."""
    said = draw(st.sampled_from(SAID))
    start, end = sorted((draw(st.integers(0, len(said))), draw(st.integers(0, len(said)))))
    at = draw(st.integers(start, end))
    return said[start:at] + draw(st.sampled_from(["", "", "", " ", "\n", "x", "0", "é"])) + said[at:end]


@given(st.lists(cut() | st.sampled_from(NEAR) | st.text(max_size=8), max_size=6))
def test_what_is_not_looked_for_is_not_there(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces)):
        assert found_in(text) == found_in(text, detectors=[*DETECTORS])
        long = Page(text).long
        assert long is None or legible(long) or not list(decoded(text))


@given(st.data())
def test_every_key_is_as_long_as_is_taken_for_granted(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(_keys.FORMS))
    for text in (data.draw(st.from_regex(form.source)), data.draw(st.from_regex(form.source, fullmatch=True))):
        page = Page(text)
        assert not list(form(page)) or form in _keys.promising(page)


def test_every_secret_of_the_corpus_is_looked_for() -> None:
    for case in CASES:
        page = Page(case.text)
        for part in (_keys, _places, _personal):
            finding = [detect for detect in part.DETECTORS if list(detect(page))]
            assert set(finding) <= set(part.promising(page)), case.id
        assert not list(_named.named(page)) or _named.promising(page)


def test_every_name_of_a_secret_has_one_of_the_parts_that_are_looked_for() -> None:
    assert all(_named.promising(Page(f"x {stem} y")) for stem in (*STEMS, "api key", "key"))
