"""What is not trusted yet is left out before the places are counted, so that it takes nobody's place."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from listed import SCOPE, Listed, delegates, filled, listed, tasks

from lessonbank.contracts.records import Experience, Lesson, Match, Trust, TrustState
from lessonbank.guard.trust import POLICIES, TrustPolicy
from lessonbank.search import LexicalRetriever, TrustFilter

pytestmark = pytest.mark.anyio

STATES: tuple[TrustState, ...] = get_args(TrustState)


def shown_by(policy: TrustPolicy) -> set[str]:
    return {"probation", "active"} if policy == "open" else {"active"}


def found_with(*states: TrustState, lesson_level: bool = False) -> Listed:
    """A retriever that finds one experience for each, with a lesson in that state."""
    matches: list[Match] = []
    for number, state in enumerate(states):
        lesson = Lesson(title="A lesson", content="Look first.", state=state, approved=state == "active")
        experience = Experience(scope=SCOPE, task=f"{number} {state}", lessons=(lesson,))
        named = lesson.id if lesson_level else None
        matches.append(Match(experience=experience, score=1 / (number + 1), lesson_id=named))
    return Listed(matches)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("lesson_level", [False, True])
async def test_each_policy_finds_what_it_shows_in_order_and_with_its_score(
    policy: TrustPolicy, lesson_level: bool
) -> None:
    inner = found_with(
        "quarantined", "probation", "active", "quarantined", "probation", "active", lesson_level=lesson_level
    )
    found = await TrustFilter(inner, policy)("q", scope=SCOPE, limit=9)
    assert list(found.matches) == [m for m in inner.matches if m.experience.task.split()[1] in shown_by(policy)]
    assert found.notes == ()


async def test_of_an_experience_only_what_is_trusted_is_found() -> None:
    lessons = tuple(Lesson(title=state, content="Look first.", state=state) for state in STATES)
    whole = Experience(scope=SCOPE, task="mixed", lessons=lessons)
    by_task = TrustFilter(Listed([Match(experience=whole, score=1.0)]), "corroborated")
    (match,) = (await by_task("q", scope=SCOPE, limit=1)).matches
    assert [lesson.state for lesson in match.experience.lessons] == ["active"]
    for lesson in lessons:
        by_lesson = TrustFilter(Listed([Match(experience=whole, score=1.0, lesson_id=lesson.id)]), "corroborated")
        assert bool((await by_lesson("q", scope=SCOPE, limit=1)).matches) is (lesson.state == "active")


async def test_sixty_that_are_nearer_starve_none_of_five_that_are_trusted() -> None:
    inner = found_with(*["probation"] * 60, *["active"] * 5)
    found = await TrustFilter(inner, "reviewed")("q", scope=SCOPE, limit=5)
    assert len(found.matches) == 5
    assert len(inner.asked) <= 4


async def test_one_question_is_enough_where_all_are_trusted() -> None:
    inner = found_with(*["active"] * 50)
    assert len((await TrustFilter(inner, "reviewed")("q", scope=SCOPE, limit=5)).matches) == 5
    assert inner.asked == [5]


@pytest.mark.full
async def test_a_search_ends_however_much_nobody_trusts() -> None:
    inner = found_with(*["probation"] * 5000)
    found = await TrustFilter(inner, "reviewed")("q", scope=SCOPE, limit=1)
    assert found.matches == ()
    assert max(inner.asked) <= 2048
    assert len(inner.asked) <= 6


async def test_a_note_says_that_there_is_something_which_nobody_trusts_yet() -> None:
    found = await TrustFilter(found_with("probation", "probation"), "reviewed")("q", scope=SCOPE, limit=3)
    assert found.empty == "past tasks found: 2, none trusted yet (reviewed)"
    assert (await TrustFilter(found_with(), "reviewed")("q", scope=SCOPE, limit=3)).empty == ""


async def test_the_notes_of_the_inner_search_stay() -> None:
    kept = TrustFilter(listed(("a", 1.0), notes=("the embedder is down",)), "open")
    assert (await kept("q", scope=SCOPE, limit=3)).notes == ("the embedder is down",)
    dropped = TrustFilter(listed(("a", 1.0), notes=("the embedder is down",)), "reviewed")
    assert (await dropped("q", scope=SCOPE, limit=3)).notes[0] == "the embedder is down"


@given(st.lists(st.sampled_from(STATES), max_size=90), st.integers(1, 12), st.sampled_from(POLICIES))
async def test_never_what_is_not_trusted_and_never_fewer_than_there_are(
    states: list[TrustState], limit: int, policy: TrustPolicy
) -> None:
    inner = found_with(*states)
    found = await TrustFilter(inner, policy)("q", scope=SCOPE, limit=limit)
    wanted = [f"{n} {state}" for n, state in enumerate(states) if state in shown_by(policy)]
    assert tasks(found) == wanted[:limit]


async def test_in_a_store_trust_is_looked_up_and_not_remembered() -> None:
    lessons = [Lesson(title=f"Lesson {n}", content="Look first.") for n in range(65)]
    known = [Experience(scope=SCOPE, task="cancel the order", lessons=(lesson,)) for lesson in lessons]
    store = await filled(*known)
    search = TrustFilter(LexicalRetriever(store), "reviewed")
    assert (await search("cancel the order", scope=SCOPE, limit=5)).matches == ()
    ids = tuple(lesson.id for lesson in lessons[:5])  # the oldest: equal scores come newest first
    await store.apply([_trust(ids, "active")], scope=SCOPE, writer="ana")
    found = await search("cancel the order", scope=SCOPE, limit=9)
    assert {m.experience.lessons[0].id for m in found.matches} == set(ids)
    await store.apply([_trust(ids[:4], "quarantined")], scope=SCOPE, writer="ana")
    assert len((await search("cancel the order", scope=SCOPE, limit=9)).matches) == 1


def _trust(ids: tuple[str, ...], state: TrustState) -> Trust:
    return Trust(lesson_ids=ids, state=state, by="person", reason="seen")


async def test_the_rest_is_left_to_the_inner_retriever() -> None:
    assert TrustFilter(listed(), "corroborated").name == "experience/listed+corroborated"
    await delegates(TrustFilter(listed(), "corroborated"))
