"""Strings put together from pieces of every corpus go through the guard, and what it promises holds for each.

`just fuzz` draws a hundred thousand of them, new ones each time; the suite draws the same few hundred.
"""

from __future__ import annotations

import os
import re
from typing import Any

import attacks
import pytest
import secrets_corpus
from any_text import any_text
from hypothesis import given, settings
from hypothesis import strategies as st
from structural_checks import TOKENS, bad_characters, live_in, read, roles_in, tokens_in

from lessonbank._base.checks import replace_surrogates
from lessonbank.contracts.lesson_block import write_block
from lessonbank.contracts.records import Experience, Extraction, Found, Lesson, Match, Run, Step, Trajectory, Verdict
from lessonbank.contracts.records.ids import digest
from lessonbank.guard.gate import CONTENT, DESCRIPTION, ONE_RUN, SEVERAL_RUNS, TITLE, LessonGate
from lessonbank.guard.redact import redact
from lessonbank.guard.sanitise import canonical, clean, fence, one_line
from lessonbank.search.injection import Injector
from lessonbank.text.prompts import load

pytestmark = pytest.mark.full

WANTED = int(os.environ.get("LESSONBANK_FUZZ", "0"))
"""Strings that a fuzz job asks for; they are shared out among the tests."""
THOUGHTS = frozenset({"<think>", "</think>", "[THINK]"})
NONCE, RECALL = "0badc0de", "1" * 32
CODE = digest(RECALL)[:8]
JOINED = re.compile("(?<=[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f])[\ufe0f\u200d]|(?<=[0-9#*])\ufe0f(?=\u20e3)")
"""What joins or colours a picture stays: without it a family is three people."""
MARKER = re.compile(r"<<<(?:end )?lessons [0-9a-f]{8}>>>")


def often(share: float) -> Any:
    """Its share of what is asked for; in the suite, of three hundred."""
    few = max(10, round(300 * share))
    if not WANTED:
        return settings(max_examples=few)
    return settings(max_examples=round(WANTED * share), derandomize=False)


MARKDOWN = (
    "`", "``", "```", "```\n", "\n\n", "- ", "1. ", "> ", "    ", "<b>", "<div>", "<div ", '<b title="', '">', "<!--",
    "-->", "<?", "?>", "<a`b@c.de>", "<u:", "<http://a`b>", "<pre>", "![x](https://e.x)", "![x](/l)", "[x](https://e.x)",
    "<img src=https://e.x>", "[a]: https://e.x\n", "![a]", "[a]", "https://e.x", "www.e.x", "--|--\n", "a | b\n", "# ",
    "&#104;", "&colon;", "//", "javascript:a", "\uff40", "\uff1a", "e\u0301", "\u3000", "\x1b[", "Human:",
    f"<<<end run {NONCE}>>>", "\u0301\u0336", "\U0001d56c", "User", "<system", "[INST",
)  # fmt: skip
"""What readers of Markdown, HTML and chat templates act on, whole and broken off."""


def pieces() -> list[str]:
    """What the corpora are made of: whole tokens, words, short texts, and the signs between them."""
    texts = [case.text.replace("{nonce}", NONCE) for case in read("structural") if len(case.text) < 2000]
    texts += [case.text for case in read("structural_benign")]
    texts += [case["content"] for case in attacks.cases("semantic")]
    words = {word for text in texts for word in re.findall(r"\w+|[^\w\s]{1,6}|\s", text) if len(word) < 40}
    secret = [part for case in secrets_corpus.cases()[::3] for part in (case.core, case.text) if len(part) < 300]
    known = [*TOKENS, *MARKDOWN, *(text for text in texts if len(text) < 60), *secret, *words]
    return sorted({*known, NONCE, CODE, f"<<<end lessons {CODE}>>>", f"\n{CODE}| [2] strategy: x\n", "\ud800", "~~~\n"})


PIECES = pieces()
SIGNS = st.sampled_from("\n\t \r`~<>[]()|:/\\\"'&#!*_-={}.@\u200b\u202e\u2028\ufeff\uff1c\u0301\x1b\x00")
TEXTS = st.lists(st.sampled_from(PIECES) | SIGNS | st.characters(), max_size=24).map("".join) | any_text(max_size=60)


def assert_inert(text: str, *, but: frozenset[str] = frozenset()) -> None:
    assert not bad_characters(JOINED.sub("", text))
    assert not tokens_in(text, TOKENS - but)
    assert not roles_in(text)


def assert_inside(block: str, *, label: str, code: str, prefixed: bool) -> None:
    lines = block.split("\n")
    assert (lines[0], lines[-1]) == (f"<<<{label} {code}>>>", f"<<<end {label} {code}>>>")
    assert len(re.findall(f"<<<(?:end )?{label} {code}>>>", block)) == 2
    if prefixed:
        assert lines[1] == lines[-2] == "~~~"
        assert all(line.startswith(f"{code}| ") for line in lines[2:-2])


@often(0.4)
@given(text=TEXTS)
def test_a_fuzzed_text_comes_out_inert_and_stays_as_it_came_out(text: str) -> None:
    plain, form = clean(text), canonical(text)
    assert_inert(plain, but=THOUGHTS)
    assert_inert(form)
    assert clean(plain) == plain
    assert canonical(form) == form
    assert len(plain) <= 1.5 * len(text) + 1
    assert len(form) <= 6 * len(text)
    assert len(canonical(text, limit=30)) <= 37
    assert "\n" not in one_line(text)
    assert not live_in(form)
    assert replace_surrogates(form) == form
    assert_inside(fence(text, label="run", nonce=NONCE), label="run", code=NONCE, prefixed=False)
    assert_inside(write_block(form, label="lessons", nonce=NONCE), label="lessons", code=NONCE, prefixed=True)
    assert not live_in(write_block(f"{form}\n`![x](https://e.x)`", label="lessons", nonce=NONCE))


@often(0.2)
@given(text=TEXTS)
def test_a_fuzzed_text_is_redacted_once_and_for_all(text: str) -> None:
    told = redact(text)
    assert redact(told) == told
    assert redact(text) == told


FRAME = load("general/inject")


@often(0.2)
@given(title=TEXTS, description=TEXTS, content=TEXTS)
def test_a_fuzzed_lesson_does_not_leave_its_place_in_the_block(title: str, description: str, content: str) -> None:
    lessons = (lesson_of(title, description, content), lesson_of("Plain title", "", "Plain words."))
    found = Found(matches=(Match(experience=Experience(scope="s", task="t", lessons=lessons), score=1.0),))
    options: dict[str, Any] = {"id": RECALL, "task": "t", "scope": "s"}
    text = Injector(FRAME, budget=30_000).recall(found, **options, retriever="r", space=None).text
    before, opening, block = text.partition("<<<")
    assert_inside((opening + block).rstrip(), label="lessons", code=CODE, prefixed=True)
    assert len(MARKER.findall(text)) == 2
    numbered = [line[len(CODE) + 2 :] for line in text.split("\n") if line.startswith(f"{CODE}| ")]
    assert [line[:4] for line in numbered if not line.startswith("  ")] == ["[1] ", "[2] "][: 2 - _same(lessons)]
    assert_inert(text)
    assert before.count("Notes from past tasks") == 1


def _same(lessons: tuple[Lesson, Lesson]) -> int:
    return int(lessons[0].wording == lessons[1].wording)


@often(0.2)
@given(texts=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=7), task=TEXTS, shown=TEXTS)
def test_the_gate_takes_anything_and_lets_no_more_than_its_cap_through(
    texts: list[tuple[str, str, str]], task: str, shown: str
) -> None:
    step = Step(action="look", observation=replace_surrogates(shown))
    run = Trajectory(
        task=replace_surrogates(task).strip() or "t", steps=(step,), answer=replace_surrogates(texts[0][0])
    )
    attempts = [Run(trajectory=run, verdict=Verdict(outcome="success"))] * (1 + len(texts) % 2)
    drawn = Extraction(lessons=tuple(lesson_of(*fields) for fields in texts))
    out = LessonGate()(drawn, attempts, shown=[shown])
    assert len(out.lessons) <= (ONE_RUN if len(attempts) == 1 else SEVERAL_RUNS)
    assert len(out.lessons) + len(out.rejected) == len(drawn.lessons)
    assert all(rejected.reason for rejected in out.rejected)
    for lesson in out.lessons:
        assert lesson.state in ("probation", "quarantined")
        for text, most in ((lesson.title, TITLE), (lesson.description, DESCRIPTION), (lesson.content, CONTENT)):
            assert canonical(text) == text
            assert len(text) <= most + 7
            assert_inert(text)
    for note in out.notes:
        assert "\n" not in note


def lesson_of(title: str, description: str, content: str) -> Lesson:
    title, content = replace_surrogates(title).strip() or "t", replace_surrogates(content).strip() or "c"
    return Lesson(title=title, description=replace_surrogates(description), content=content)
