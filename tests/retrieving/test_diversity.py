"""Maximal marginal relevance: near the task, and not what was said already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from listed import SCOPE, Listed, delegates, experience, listed, tasks

from lessonbank.contracts.ports import Vectors
from lessonbank.contracts.records import Lesson, Match
from lessonbank.errors import ModelError
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.search import Diverse, alike, pick
from lessonbank.search.diversity import taught

pytestmark = pytest.mark.anyio
texts = st.lists(st.text(alphabet="ab 中.-\n", max_size=12), max_size=7)


class Broken:
    """An embedder whose service is down."""

    space = "broken-2"

    async def embed(self, texts: object, /, *, role: str) -> Vectors:
        raise ModelError("embedding service down")


def teaching(*contents: str) -> Listed:
    """A retriever whose experiences teach these, falling in score."""
    return Listed(
        [Match(experience=experience(str(n), content=c), score=0.9 - n / 100) for n, c in enumerate(contents)]
    )


REPEATED = ("press save twice", "press save twice", "open the settings page", "press save twice")


async def test_a_lesson_said_before_gives_way_to_a_new_one() -> None:
    found = await Diverse(teaching(*REPEATED), 0.5)("q", scope=SCOPE, limit=2)
    assert tasks(found) == ["0", "2"]
    assert [m.score for m in found.matches] == [0.9, 0.88]


async def test_lessons_can_be_compared_by_their_vectors() -> None:
    diverse = Diverse(teaching(*REPEATED), 0.5, HashingEmbedder())
    assert tasks(await diverse("q", scope=SCOPE, limit=2)) == ["0", "2"]
    assert diverse.name == "experience/listed+diverse(0.5, vectors)"


async def test_when_the_embedder_fails_lessons_are_compared_by_words_and_a_note_says_so() -> None:
    found = await Diverse(teaching(*REPEATED), 0.5, Broken())("q", scope=SCOPE, limit=2)
    assert tasks(found) == ["0", "2"]
    assert "compared by words only" in found.notes[0]


async def test_one_wanted_is_the_nearest_and_no_more_are_asked_for() -> None:
    inner = teaching(*REPEATED)
    assert tasks(await Diverse(inner, 0.1)("q", scope=SCOPE, limit=1)) == ["0"]
    assert inner.asked == [1]


async def test_nothing_found_is_nothing_and_no_embedder_is_asked() -> None:
    assert (await Diverse(listed(), 0.5, Broken())("q", scope=SCOPE, limit=3)).notes == ()


@given(texts, st.integers(1, 8))
async def test_with_weight_one_the_answer_is_the_inner_one(contents: list[str], limit: int) -> None:
    inner = Listed(
        [Match(experience=experience(str(n), content=f"x{c}"), score=n % 3 / 3) for n, c in enumerate(contents)]
    )
    wrapped = await Diverse(inner, 1.0)("q", scope=SCOPE, limit=limit)
    assert wrapped == await inner("q", scope=SCOPE, limit=limit)


@given(texts, st.data())
def test_with_weight_one_every_order_is_kept_whatever_the_scores(contents: list[str], data: st.DataObject) -> None:
    scores = data.draw(st.lists(st.floats(-1, 1), min_size=len(contents), max_size=len(contents)))
    assert pick(scores, alike(contents), weight=1.0, limit=99) == list(range(len(contents)))


@given(texts, st.floats(0, 1), st.integers(1, 8))
def test_as_many_as_wanted_are_picked_each_once_the_first_one_first(
    contents: list[str], weight: float, limit: int
) -> None:
    chosen = pick([0.5] * len(contents), alike(contents), weight=weight, limit=limit)
    assert len(chosen) == len(set(chosen)) == min(limit, len(contents))
    assert chosen[:1] == ([0] if contents else [])


@given(texts, st.floats(0, 1), st.integers(1, 7))
def test_fewer_wanted_are_the_first_of_more_wanted(contents: list[str], weight: float, limit: int) -> None:
    scores = [1.0 - n / 10 for n in range(len(contents))]
    more = pick(scores, alike(contents), weight=weight, limit=limit + 1)
    assert pick(scores, alike(contents), weight=weight, limit=limit) == more[:limit]


@given(texts)
def test_likeness_is_symmetric_from_zero_to_one_and_one_for_the_same_words(contents: list[str]) -> None:
    shape = alike(contents)
    for a, row in enumerate(shape):
        assert all(0 <= like <= 1 and like == shape[b][a] for b, like in enumerate(row))
        assert row[a] == (1.0 if any(c in "ab中" for c in contents[a]) else 0.0)


def test_scripts_without_blanks_are_compared_by_character() -> None:
    assert alike(["保存する", "保存した"])[0][1] == pytest.approx(2 / 6)


def test_retired_lessons_are_not_compared() -> None:
    kept = experience("t", content="kept")
    gone = Lesson(title="Gone", content="gone", retired=True)
    both = kept.model_copy(update={"lessons": (*kept.lessons, gone)})
    assert taught(Match(experience=both, score=1.0)) == "A lesson\nkept"
    assert taught(Match(experience=both, score=1.0, lesson_id=gone.id)) == ""


def test_of_a_found_lesson_only_its_own_words_are_compared() -> None:
    other = Lesson(title="Other", content="other")
    both = experience("t", content="kept").model_copy(update={"lessons": (other, other.model_copy(update={"id": "x"}))})
    assert taught(Match(experience=both, score=1.0, lesson_id="x")) == "Other\nother"


async def test_diversity_indexes_as_the_inner_retriever() -> None:
    await delegates(Diverse(listed(), 0.5))
