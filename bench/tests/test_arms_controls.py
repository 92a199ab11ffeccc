"""Placebo text is as long as the real one and says nothing about the task."""

from __future__ import annotations

import random
import re
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.records import Experience, Found, Lesson, Match
from lessonbank.demo.desk import CHOICES, LABELS, OPERATIONS, VENDORS
from lessonbank.demo.reading import opinion, read
from lessonbank.search.injection import Injector
from lessonbank.text.prompts import load
from lessonbank.text.rendering import estimate_tokens
from lessonbank_bench import Episode, play
from lessonbank_bench.arms import irrelevant

WORDS = re.compile(r"[a-z]{4,}")
blanks_apart = st.text(min_size=1, max_size=200).filter(lambda text: text.strip() != "")
lessons = st.lists(
    st.builds(Lesson, title=blanks_apart, description=st.text(max_size=80), content=blanks_apart),
    min_size=1,
    max_size=4,
)


@cache
def played(arm: str) -> list[Episode]:
    """A stream of 25 tasks, played once for all tests."""
    return list(play(arm, 3, tasks=25))  # type: ignore[arg-type]


@given(lessons=lessons, seed=st.integers(0, 99), paper=st.booleans())
def test_a_placebo_has_the_tokens_and_the_lines_of_the_text_it_stands_for(
    lessons: list[Lesson], seed: int, paper: bool
) -> None:
    injector = Injector(load("paper/inject"), style="paper") if paper else Injector(load("general/inject"))
    found = Found(matches=(Match(experience=Experience(scope="s", task="t", lessons=tuple(lessons)), score=1.0),))
    real = injector.recall(found, id="1", task="t", scope="s", retriever="r", space=None).text
    placebo = irrelevant(real, random.Random(seed))
    assert abs(estimate_tokens(placebo) - estimate_tokens(real)) <= 0.1 * estimate_tokens(real)
    assert [line[:9] for line in placebo.split("\n")] == [line[:9] for line in real.split("\n")]


@given(size=st.integers(0, 400), seed=st.integers(0, 9))
def test_any_width_is_met_exactly(size: int, seed: int) -> None:
    line = "0a1b2c3d| [1] strategy: "
    assert len(irrelevant(line + "é" * (size // 2) + "x" * (size % 2), random.Random(seed))) == len(line) + size


def test_the_prose_shares_no_word_with_the_world_and_moves_no_opinion() -> None:
    world_words = " ".join((*LABELS, *CHOICES, *OPERATIONS, *VENDORS, *(s for v in VENDORS.values() for s in v)))
    head = "0a1b2c3d| [1] strategy: "
    placebos = (irrelevant(f"{head}{'x' * size}", random.Random(size)) for size in range(400))
    prose = set(WORDS.findall(" ".join(text.removeprefix(head) for text in placebos).lower()))
    assert len(prose) > 60
    assert not prose & set(WORDS.findall(world_words.lower()))
    shown = [e for e in played("placebo") if e.memory]
    assert shown
    for episode in shown:
        said = read(episode.memory, goal=episode.task.goal)
        assert all(opinion(said, c, step=2, after=None) == 0.0 for c in (*LABELS, *CHOICES))


def test_an_agent_with_a_placebo_does_what_it_does_without_memory() -> None:
    one, two = (played(arm) for arm in ("none", "placebo"))
    assert [[s.action.text for s in e.run.steps] for e in one] == [[s.action.text for s in e.run.steps] for e in two]
    assert any(e.memory for e in two)


def test_shuffled_text_has_the_same_words_in_another_order() -> None:
    texts = (next(e.memory for e in play(arm, 3, tasks=15) if e.memory) for arm in ("lessonbank", "shuffled"))
    real, shuffled = (re.sub(r"\b[0-9a-f]{8}\b", "code", text).split() for text in texts)
    assert sorted(shuffled) == sorted(real)
    assert shuffled != real
