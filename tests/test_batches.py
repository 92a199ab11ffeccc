"""Batches lose nothing, keep the order, and close what they read from."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from lessonbank._batches import async_batches, batches


def test_batches_keep_everything_in_its_order() -> None:
    assert list(batches(iter(range(5)), size=2)) == [[0, 1], [2, 3], [4]]
    assert list(batches((), size=2)) == []


@pytest.mark.anyio
async def test_a_source_is_closed_when_its_consumer_leaves_early() -> None:
    closed: list[bool] = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            for number in range(5):
                yield number
        finally:
            closed.append(True)

    assert [batch async for batch in async_batches(numbers(), size=2)] == [[0, 1], [2, 3], [4]]
    source = async_batches(numbers(), size=2)
    assert await anext(source) == [0, 1]
    await source.aclose()
    assert closed == [True, True]
