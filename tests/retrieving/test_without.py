"""Lessons and experiences that are named are left out, and the places they took are filled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from listed import SCOPE, Listed, delegates, experience, listed, tasks

from lessonbank.contracts.records import Match
from lessonbank.search import Without

pytestmark = pytest.mark.anyio


async def test_one_question_is_enough_when_little_is_left_out() -> None:
    inner = listed(*[("a", 0.5)] * 50)
    gone = frozenset({inner.matches[0].experience.id})
    found = await Without(inner, gone)("q", scope=SCOPE, limit=5)
    assert found.matches == tuple(inner.matches[1:6])
    assert len(inner.asked) == 1


async def test_it_asks_for_more_until_enough_are_left() -> None:
    inner = listed(*[("a", 0.5)] * 300)
    gone = frozenset(match.experience.id for match in inner.matches[:60])
    found = await Without(inner, gone)("q", scope=SCOPE, limit=5)
    assert found.matches == tuple(inner.matches[60:65])
    assert len(inner.asked) == 3
    assert inner.asked[-1] < 300, "and not for all there are"


@given(st.lists(st.booleans(), max_size=80), st.integers(1, 12))
async def test_never_what_is_named_and_never_fewer_than_there_are(named: list[bool], limit: int) -> None:
    inner = Listed([Match(experience=experience(str(n)), score=1.0 - n / 100) for n in range(len(named))])
    pairs = list(zip(inner.matches, named, strict=True))
    gone = {match.experience.id for match, is_gone in pairs if is_gone}
    found = await Without(inner, frozenset(gone))("q", scope=SCOPE, limit=limit)
    assert tasks(found) == [match.experience.task for match, is_gone in pairs if not is_gone][:limit]


async def test_it_indexes_as_the_inner_retriever() -> None:
    await delegates(Without(listed(), frozenset({"x"})))
