"""What is read as one, looked for among words first, or left out as known hides no secret from the plain reading."""

from __future__ import annotations

import anyio
import pytest
from any_text import any_text
from hypothesis import example, given, settings
from hypothesis import strategies as st
from redaction_corpus import harmless, secrets

from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Add, Duplicate, Step, Trajectory
from lessonbank.contracts.records.repeats import taught_again
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.redact import redact, redacted

pytestmark = pytest.mark.full

BOUNDARY = "\n" * 10 + "\0" + "\n" * 10
HALVES = (
    "password",
    "password: ",
    "token is ",
    "hunter2Xy9!",
    f"-----BEGIN RSA {'PRIVATE'} KEY-----",
    "jane.doe",
    "4111 ",
)
HALVES += (
    "@example.com",
    "Cookie: session=",
    "AKIA",
    "Bearer ",
    "ssh ",
    BOUNDARY,
    "\0",
    "\\n",
    "\u200b",
    "\u00a0",
    "İ",
)
PART = (
    st.sampled_from([leak.text for leak in secrets()]) | st.sampled_from([*harmless(), *HALVES]) | any_text(max_size=6)
)
WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
TEXT = st.builds(
    lambda parts, between, wide: between.join(parts).translate(WIDE if wide else {}),
    st.lists(PART, min_size=1, max_size=4),
    st.sampled_from(["\n", " ", "", "\u200b", "\r\n", "\u2028", "', '", "=", BOUNDARY]),
    st.integers(0, 5).map(lambda drawn: drawn == 0),
)


@settings(max_examples=settings().max_examples * 3, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=8))
@example(["password: ", "hunter2Xy9!"])
def test_a_run_is_left_as_it_is_only_if_each_text_of_it_is_left_alone(texts: list[str]):
    run = Trajectory(task="t", steps=tuple(Step(action="look", observation=text) for text in texts))
    if redacted(run, redact) == run:
        assert [redact(text) for text in texts] == texts


# --- what a consolidator leaves out -----------------------------------------------------------------------------------

SECRET = "jane.doe@example.com"
FIRST, SECOND = Lesson(title="Check it", content="Read it twice."), Lesson(title="Save it", content="Press save.")
GIVEN = Experience(scope="s", task="Order 7", lessons=(FIRST, SECOND), template="Order", repeats={"known": ()})
LEAF = st.sampled_from(["", "the same words", SECRET, "known", "why"])
AGAIN = st.builds(
    lambda lesson, why, words: taught_again(lesson, why, words=words),
    st.sampled_from([FIRST, SECOND, SECOND.model_copy(update={"content": SECRET})]),
    st.sampled_from(["the same words", SECRET]),
    st.booleans(),
) | st.builds(Duplicate, title=LEAF, evidence=st.lists(LEAF, max_size=2), why=LEAF)
REPEATS = st.dictionaries(
    st.sampled_from(["known", "held", FIRST.id, SECRET]), st.lists(AGAIN, max_size=2).map(tuple), max_size=3
)


@settings(max_examples=settings().max_examples * 3, deadline=None)
@given(REPEATS, st.sampled_from([(), (FIRST,), (SECOND,), (FIRST, SECOND)]))
@example({SECRET: ()}, (FIRST,))
@example({SECRET: (taught_again(SECOND, "the same words", words=True),)}, (FIRST,))
def test_whatever_a_consolidator_says_of_what_it_left_out_no_secret_stays(
    told: dict[str, tuple[Duplicate, ...]], kept: tuple[Lesson, ...]
):
    change = Add(experience=GIVEN.model_copy(update={"lessons": kept, "repeats": told}))

    async def through() -> str:
        (known,) = await IntakeFilter(redact).changes([change], given=GIVEN)
        assert isinstance(known, Add)
        assert len(known.experience.repeats) == len(told)
        return known.model_dump_json()

    assert SECRET not in anyio.run(through)
