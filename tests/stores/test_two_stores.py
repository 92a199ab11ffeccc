"""Whatever is done to a file through one store, another one sees, and both answer as the reference does."""

from __future__ import annotations

import asyncio

import pytest
from _trouble import quick_folder
from _walk import MOVES, Walk
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [pytest.mark.usefixtures("small_boundaries"), pytest.mark.full]

STEPS = st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 2**32)), min_size=30, max_size=60)


async def walk(steps: list[tuple[str, int]]) -> None:
    with quick_folder() as folder:
        made = await Walk.begin(folder / "bank.db")
        try:
            for move, number in steps:
                await made.step(move, number)
        finally:
            await made.end()


@given(steps=STEPS)
@settings(max_examples=settings().max_examples // 10)
def test_two_stores_of_one_file_and_the_reference_always_agree(steps: list[tuple[str, int]]) -> None:
    asyncio.run(walk(steps))
