"""What the detector makes of lessons that people labelled: nothing that says something else is ever called the same."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest

from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Add, Found, Match
from lessonbank.learning.consolidation import Recognise, compare
from lessonbank.learning.consolidation._normal_form import FILLERS, normal
from lessonbank.testing import ScriptedModel

pytestmark = pytest.mark.full


def a_lesson(pair: dict[str, Any], side: str) -> Lesson:
    return Lesson(kind=pair["kind"], **pair[side])


def level(pair: dict[str, Any], **more: Any) -> str:
    return compare(a_lesson(pair, "a"), a_lesson(pair, "b"), **more).level


def test_the_set_is_large_balanced_and_split_by_family(pairs: list[dict[str, Any]]) -> None:
    assert len(pairs) >= 400
    assert min(Counter(p["label"] for p in pairs).values()) >= 100
    halves = {p["family"]: p["half"] for p in pairs}
    assert all(halves[p["family"]] == p["half"] for p in pairs)
    assert abs(2 * sum(p["half"] == "tune" for p in pairs) - len(pairs)) < 10
    assert {p["domain"] for p in pairs} == {"web", "code", "service", "data", "ops"}


@pytest.mark.parametrize(
    ("similarity", "allowed"), [(None, {"different"}), (0.95, {"different"}), (1.0, {"different", "near"})]
)
def test_no_opposite_and_no_other_target_is_called_the_same_or_proposed_to_a_model_however_close(
    pairs: list[dict[str, Any]], similarity: float | None, allowed: set[str]
) -> None:
    apart = [p for p in pairs if p["label"] in ("opposite", "target")]
    assert not [p for p in apart if level(p, similarity=similarity) not in allowed]


def test_two_words_that_change_places_never_give_the_same(pairs: list[dict[str, Any]]) -> None:
    draw, changed = Random(1), 0
    for pair in pairs:
        words = pair["a"]["content"].split()
        for _ in range(5):
            i, j = sorted(draw.sample(range(len(words)), 2))
            one, other = (normal(words[at].strip(".,;:`").lower()) for at in (i, j))
            if one == other or {one, other} & (FILLERS | {"", "and", "then"}):
                continue
            told = [*words[:i], words[j], *words[i + 1 : j], words[i], *words[j + 1 :]]
            lesson = a_lesson(pair, "a")
            assert compare(lesson, lesson.model_copy(update={"content": " ".join(told)})).level != "same", told
            changed += 1
    assert changed > 1_000


@pytest.mark.full
def test_lessons_of_two_families_are_never_the_same(pairs: list[dict[str, Any]]) -> None:
    lessons = list({p["family"]: a_lesson(p, "a") for p in pairs}.values())
    assert all(compare(a, b).level != "same" for a, b in combinations(lessons, 2))


@pytest.mark.parametrize(("half", "least"), [("tune", 0.94), ("held", 0.94)])
def test_most_of_what_differs_in_form_only_is_found(pairs: list[dict[str, Any]], half: str, least: float) -> None:
    found = [level(p) == "same" for p in pairs if p["half"] == half and p["label"] == "same"]
    assert sum(found) / len(found) >= least


def test_a_cosine_lifts_paraphrases(pairs: list[dict[str, Any]]) -> None:
    assert sum(p["label"] == "paraphrase" and level(p, similarity=0.95) == "near" for p in pairs) > 20


class OneDirection:
    """An embedder to which all texts are alike."""

    space, name, dimensions = "one", "one", 2

    async def embed(self, texts: Any, /, *, role: str) -> Any:
        return np.tile(np.array([1.0, 0.0], dtype=np.float32), (len(texts), 1))


class Holding:
    """A retriever that finds one lesson."""

    name, space = "holding", None

    def __init__(self, lesson: Lesson) -> None:
        self.found = Experience(scope="t", task="before", lessons=(lesson,))

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        return Found(matches=(Match(experience=self.found, score=1.0),))

    async def index(self, experiences: Any, /) -> Any:
        return {}

    async def catch_up(self, *, scope: str, most: int) -> int:
        return 0


def always(asked: object, /) -> str:
    return '{"same": true}'


async def joined(pair: dict[str, Any]) -> bool:
    """Whether `b` is taken for `a` where a model says yes to everything and all texts are close."""
    policy = Recognise(Holding(a_lesson(pair, "a")), ScriptedModel(always), OneDirection())
    (change,) = await policy(Experience(scope="t", task="after", lessons=(a_lesson(pair, "b"),)))
    assert isinstance(change, Add)
    return not change.experience.lessons


@pytest.mark.anyio
async def test_a_model_that_always_says_yes_joins_no_opposite_and_no_other_target(pairs: list[dict[str, Any]]) -> None:
    told = Counter([pair["label"] for pair in pairs if await joined(pair)])
    assert (told["opposite"], told["target"]) == (0, 0)
    assert told["paraphrase"] >= 24 and told["same"] >= 95
