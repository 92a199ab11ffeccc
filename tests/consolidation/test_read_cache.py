"""Learning searches the store for the task of a run once, however many parts of the decision ask what is near."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Step, Trajectory
from lessonbank.bank.parts import BankParts
from lessonbank.contracts.ports import Retriever, Store
from lessonbank.learning.consolidation import Recognise
from lessonbank.learning.topics import TopicsByWords
from lessonbank.search import DenseRetriever, HybridRetriever, LexicalRetriever, by_words, cached_reads
from lessonbank.testing import HashingEmbedder

pytestmark = pytest.mark.anyio


class Counting:
    """A store that notes what is searched for in it, and for how many."""

    def __init__(self, store: Store) -> None:
        self._store, self.asked = store, list[tuple[str, int]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def search(self, query: str, /, **how: Any) -> Any:
        self.asked.append((query, how["limit"]))
        return await self._store.search(query, **how)


def words_only(store: Store) -> Retriever:
    return LexicalRetriever(store)


def both(store: Store) -> Retriever:
    return HybridRetriever(DenseRetriever(store, HashingEmbedder()), LexicalRetriever(store))


def run(number: int) -> Trajectory:
    steps = (
        Step(action="print label", observation="error: customs form missing"),
        Step(action=f"fill form {chr(97 + number % 26) * 3}", observation="form saved"),
        Step(action="print label", observation="label printed"),
    )
    return Trajectory(task=f"Ship parcel {number} abroad", steps=steps, answer="sent")


async def learned(bank: AsyncReasoningBank, retriever: Callable[[Store], Retriever]) -> list[tuple[str, int]]:
    """What a bank that knows five such tasks searches for while it learns the sixth."""
    counting = Counting(bank.store)
    store = cast("Store", counting)
    parts = BankParts(
        retriever=retriever(store),
        injector=bank.parts.injector,
        judge=bank.parts.judge,
        extractor=bank.parts.extractor,
        consolidator=Recognise(retriever(store)),
        topics=TopicsByWords(store),
    )
    watched = AsyncReasoningBank(store, parts, scope="t")
    for number in range(5):
        await watched.learn(run(number), outcome="success")
    counting.asked.clear()
    last = await watched.learn(run(9), outcome="success")
    assert last.lessons
    assert last.lessons[0].topic == (await watched.lessons.list(limit=99))[-1].topic
    return counting.asked


@pytest.mark.parametrize("retriever", [words_only, both])
async def test_a_new_lesson_costs_one_search_in_a_file(tmp_path: Path, retriever: Callable[[Store], Retriever]) -> None:
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        assert [task for task, _ in await learned(bank, retriever)] == ["Ship parcel 9 abroad"]


@pytest.mark.full
async def test_a_new_lesson_costs_one_search_in_postgresql(postgres_bank: Callable[..., str]) -> None:
    async with await lessonbank.connect_async(postgres_bank(), scope="t", embedder="lexical") as bank:
        assert [task for task, _ in await learned(bank, words_only)] == ["Ship parcel 9 abroad"]


async def places(store: Store) -> None:
    """Whatever is asked for within one look, in whatever order, is what the store itself would say."""
    for limits in ((1, 3, 10), (10, 20, 3), (30, 50), (0, 1)):
        with cached_reads():
            for limit in limits:
                found = await by_words(store, "Ship parcel 3 abroad", scope="t", limit=limit)
                assert list(found) == list(await store.search("Ship parcel 3 abroad", scope="t", limit=limit))


async def filled(where: str | Path) -> AsyncReasoningBank:
    bank = await lessonbank.connect_async(where, scope="t", embedder="lexical")
    for number in range(24):
        await bank.learn(run(number), outcome="success")
    return bank


@pytest.mark.full
async def test_cached_reads_tell_what_a_file_would(tmp_path: Path) -> None:
    async with await filled(tmp_path / "bank.db") as bank:
        await places(bank.store)


@pytest.mark.full
async def test_cached_reads_tell_what_postgresql_would(postgres_bank: Callable[..., str]) -> None:
    async with await filled(postgres_bank()) as bank:
        await places(bank.store)


async def test_the_next_look_sees_what_was_written_since(tmp_path: Path) -> None:
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        with cached_reads():
            assert not await by_words(bank.store, "Paint the fence", scope="t", limit=5)
        await bank.learn(run(1).model_copy(update={"id": "fence", "task": "Paint the fence"}), outcome="success")
        with cached_reads():
            assert len(await by_words(bank.store, "Paint the fence", scope="t", limit=5)) == 1
