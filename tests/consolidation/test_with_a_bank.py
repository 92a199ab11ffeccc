"""Merging and undoing it through a bank, in memory and on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lessonbank
from lessonbank import Extraction, Lesson, Run, Step, Trajectory
from lessonbank.contracts.records import Merge
from lessonbank.contracts.store_calls import get_experience
from lessonbank.errors import Conflict, UsageError
from lessonbank.learning.consolidation import unmerge
from lessonbank.testing import HashingEmbedder, ScriptedModel
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.anyio

OLD = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
NEAR = "When a search comes back empty, the index may be stale: run `rebuild` once and repeat the search."
BOTH = "If a search finds nothing, the index may be stale. Run `rebuild` once, then search again."
REPLY = json.dumps({"merge": True, "title": "Rebuild a stale index", "description": "", "content": BOTH})


def drawing(*contents: str) -> Any:
    left = list(contents)

    async def extract(attempts: Any, /) -> Extraction:
        assert all(isinstance(a, Run) for a in attempts)
        return Extraction(lessons=(Lesson(title="Rebuild a stale index", content=left.pop(0)),))

    return extract


def run(task: str) -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="search", observation="0 results"),), answer="Found.")


async def connected(where: str | Path, *contents: str, **more: Any) -> lessonbank.AsyncReasoningBank:
    options: dict[str, Any] = {"scope": "t", "embedder": HashingEmbedder(), "holdout": None} | more
    return await lessonbank.connect_async(where, **grouped(extractor=drawing(*contents), **options))


@pytest.mark.parametrize("kept", ["memory", "disk"])
async def test_unmerging_brings_the_sources_back_byte_for_byte(kept: str, tmp_path: Path) -> None:
    where = ":memory:" if kept == "memory" else tmp_path / "bank.db"
    model = ScriptedModel([REPLY])
    async with await connected(where, OLD, NEAR, model=model, consolidation="merge_similar") as bank:
        first = await bank.learn(run("find the invoice"), outcome="success")
        old = ((await bank.lessons.list(limit=10_000))[::-1])[0].model_dump_json()
        learned = await bank.learn(run("find the receipt of the invoice"), outcome="success")
        merge = next(c for c in learned.changes if isinstance(c, Merge))
        assert [i.content for i in (await bank.lessons.list(limit=10_000))[::-1]] == [BOTH]

        made = await get_experience(bank.store, merge.experience.id, scope="t")
        await _is_embedded_anew(bank, made)
        await bank.store.apply(unmerge(made), scope="t", writer="tests")

        lessons = (await bank.lessons.list(limit=10_000))[::-1]
        assert lessons[0].model_dump_json() == old
        assert lessons[1] == next(i for i in learned.lessons if i.content == NEAR)
        assert first.lessons == lessons[:1]
        assert not (await get_experience(bank.store, made.id, scope="t")).active_lessons
        assert await bank.admin.verify() == ()
        with pytest.raises(UsageError, match="is retired"):
            unmerge(await get_experience(bank.store, made.id, scope="t"))
        with pytest.raises(Conflict):
            await bank.store.apply(unmerge(made), scope="t", writer="tests")


async def _is_embedded_anew(bank: lessonbank.AsyncReasoningBank, made: lessonbank.Experience) -> None:
    """Nothing waits for a vector, and the merged experience is found by its own."""
    embedder = HashingEmbedder()
    assert await bank.store.unindexed(scope="t", space=embedder.space, limit=9) == []
    row = (await embedder.embed([made.task], role="document"))[0]
    (match,) = (await bank.store.nearest(row, scope="t", space=embedder.space, limit=1)).matches
    assert match.experience.id == made.id
    assert np.isclose(match.score, 1.0, atol=1e-5)


async def test_a_merge_of_a_merge_is_undone_from_its_end() -> None:
    third = (
        "If a search that should find something finds nothing, run `rebuild` once and search again, since the index"
        " may be stale by then."
    )
    options: dict[str, Any] = {"model": ScriptedModel([REPLY, REPLY]), "consolidation": "merge_similar"}
    async with await connected(":memory:", OLD, NEAR, third, **options) as bank:
        before = []
        merges = []
        for task in ("find the invoice", "find the receipt of the invoice", "find the invoice of May"):
            before.append([i.model_dump_json() for i in (await bank.lessons.list(limit=10_000))[::-1]])
            learned = await bank.learn(run(task), outcome="success")
            merges += [c.experience.id for c in learned.changes if isinstance(c, Merge)]
        assert len(merges) == 2
        for made, state in zip(reversed(merges), reversed(before), strict=False):
            await bank.store.apply(
                unmerge(await get_experience(bank.store, made, scope="t")), scope="t", writer="tests"
            )
            assert set(state) <= {i.model_dump_json() for i in (await bank.lessons.list(limit=10_000))[::-1]}


async def test_the_same_lesson_twenty_times_stays_one() -> None:
    async with await connected(":memory:", *[OLD] * 20, consolidation="recognise") as bank:
        for i in range(20):
            await bank.learn(run(f"find the invoice {i}"), outcome="success")
        assert len((await bank.lessons.list(limit=10_000))[::-1]) == 1
        repeats = [e.metadata.get("repeats") async for e in bank.store.scan(scope="t")]
    assert sum(bool(r) for r in repeats) == 19


async def test_a_run_judged_later_can_merge_too() -> None:
    model = ScriptedModel([REPLY])
    options: dict[str, Any] = {"model": {"extractor": model}, "consolidation": "merge_similar"}
    async with await connected(":memory:", OLD, NEAR, **options) as bank:
        await bank.learn(run("find the invoice"), outcome="success")
        waiting = run("find the receipt of the invoice")
        await bank.learn(waiting)
        await bank.learn(waiting, outcome="success")
        assert [i.content for i in (await bank.lessons.list(limit=10_000))[::-1]] == [BOTH]


async def test_merging_without_a_model_is_refused_when_the_bank_is_opened(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a model"):
        await connected(tmp_path / "bank.db", consolidation="merge_similar")
