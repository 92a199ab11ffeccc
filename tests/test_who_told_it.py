"""Outcomes and lessons keep the identity of who told them: this process, or a writer with a key; never a typed name."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import AsyncReasoningBank, Extraction, Lesson, Safety, Step, Trajectory
from lessonbank.contracts.records import Experience, Provenance, Settle
from lessonbank.contracts.settings import Parts
from lessonbank.errors import UsageError
from lessonbank.guard.identity import of_process

pytestmark = pytest.mark.anyio
TASK = "Find the parcel of Mrs Ash"


async def opened(where: str | Path = ":memory:") -> AsyncReasoningBank:
    async def extractor(attempts: Any) -> Extraction:
        content = f"Ask the courier's portal about it, as run {attempts[0].trajectory.id} did."
        return Extraction(lessons=(Lesson(title="Ask the courier", content=content),))

    return await lessonbank.connect_async(
        where,
        scope="acme/desk",
        embedder="lexical",
        safety=Safety(admission=None),
        parts=Parts(extractor=extractor),
    )


@pytest.fixture
async def bank() -> AsyncIterator[AsyncReasoningBank]:
    async with await opened() as made:
        yield made


def run(number: int = 0) -> Trajectory:
    return Trajectory(task=TASK, steps=(Step(action=f"look {number}", observation="there"),))


async def told(bank: AsyncReasoningBank, number: int = 0) -> tuple[str, str]:
    """The identity of the settlement, and of the lesson."""
    learned = await bank.learn(run(number), recall=await bank.retrieve(TASK), outcome="success")
    entries = [e.entry.settlement.identity for e in await bank.history.list() if isinstance(e.entry, Settle)]
    return entries[-1], learned.lessons[0].provenance.identity


async def test_without_a_key_everything_is_told_by_the_process_whatever_names_are_typed(
    bank: AsyncReasoningBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_process.cache_clear()
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME", "HOSTNAME", "HOST"):
        monkeypatch.setenv(name, "mallory")
    mine = of_process()
    assert mine.startswith("process:")
    assert "mallory" not in mine
    assert "@" in mine
    for handle in (bank, bank.scoped(writer="u-17"), bank.scoped(writer="key:u-17"), bank.scoped(writer=mine)):
        assert await told(handle) == (mine, mine)


async def test_a_writer_with_a_key_is_an_identity_of_its_own(bank: AsyncReasoningBank) -> None:
    key = await bank.admin.add_writer("u-17")
    writer = bank.scoped(writer="u-17", key=key)
    assert await told(writer) == ("key:u-17", "key:u-17")
    assert await told(writer.scoped("acme/desk"), 1) == ("key:u-17", "key:u-17"), "a handle of a handle keeps it"
    assert (await told(writer.scoped(writer="u-18"), 2))[0] == of_process(), "another name does not"
    assert await bank.admin.writers() == ("u-17",)


async def test_no_writer_overturns_an_outcome_that_another_one_told() -> None:
    async with await opened() as bank:
        ana, eve = [bank.scoped(writer=name, key=await bank.admin.add_writer(name)) for name in ("Ana", "Eve")]
        recall, done = await ana.retrieve(TASK), run()
        await ana.learn(done, recall=recall, outcome="success")
        for tried in (done, run(1)):
            learned = await eve.learn(tried, recall=recall.id, outcome="failure")
            assert any(note.startswith("told by another writer") for note in learned.notes)
        assert (await bank.runs.get(done.id)).verdict.outcome == "success"
        assert (await bank.recalls.explain(recall.id)).outcome == "success"
        await ana.learn(done, recall=recall, outcome="failure")
        assert (await bank.recalls.explain(recall.id)).outcome == "failure", "who told it may correct it"
        await bank.learn(done, recall=recall, outcome="success")
        assert (await bank.recalls.explain(recall.id)).outcome == "success", "and so may the process itself"


async def test_a_wrong_and_a_removed_and_a_replaced_key_are_refused_before_a_model_is_asked(
    bank: AsyncReasoningBank,
) -> None:
    first = await bank.admin.add_writer("u-17")
    second = await bank.admin.add_writer("u-17")
    other = await bank.admin.add_writer("u-18")
    for key in (first, other, "x"):
        handle = bank.scoped(writer="u-17", key=key)
        lesson = Experience(scope=handle.scope, task=TASK, lessons=(Lesson(title="A", content="B"),))
        for call in (handle.learn(run(), outcome="success"), handle.submit(run()), handle.consolidate(lesson)):
            with pytest.raises(UsageError, match="not the key of writer 'u-17'"):
                await call
    assert await bank.runs.list() == ()
    assert (await told(bank.scoped(writer="u-17", key=second)))[0] == "key:u-17"
    await bank.admin.remove_writer("u-17")
    with pytest.raises(UsageError):
        await bank.scoped(writer="u-17", key=second).learn(run(1), outcome="success")
    with pytest.raises(UsageError, match="has a key"):
        await bank.admin.remove_writer("u-17")
    assert await bank.admin.writers() == ("u-18",)


async def test_a_key_comes_with_a_name_and_writers_are_made_by_the_owner(bank: AsyncReasoningBank) -> None:
    for wrong in ({"key": "x"}, {"writer": "u", "key": ""}, {"writer": "u", "key": 5}):
        with pytest.raises(UsageError, match="key"):
            bank.scoped(**wrong)  # type: ignore[arg-type]
    for call in (bank.scoped().admin.add_writer("u"), bank.scoped().admin.writers(), bank.admin.add_writer(" ")):
        with pytest.raises(UsageError):
            await call


async def test_the_file_holds_no_key_and_a_copy_of_it_is_no_use(tmp_path: Path) -> None:
    async with await opened(tmp_path / "bank.db") as bank:
        key = await bank.admin.add_writer("u-17")
        await told(bank.scoped(writer="u-17", key=key))
        assert key not in str(bank.scoped(writer="u-17", key=key).settings)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.encode() not in kept
    async with await opened(tmp_path / "bank.db") as again:
        assert await again.admin.writers() == ("u-17",)
        assert (await told(again.scoped(writer="u-17", key=key), 1))[0] == "key:u-17"


async def test_an_experience_cannot_say_itself_who_taught_it(bank: AsyncReasoningBank) -> None:
    forged = Lesson(title="A", content="B", provenance=Provenance(writer="x", identity="key:u-17"))
    await bank.consolidate(Experience(scope=bank.scope, task=TASK, lessons=(forged,)))
    assert (await bank.lessons.get(forged.id)).provenance.identity == of_process()


async def test_telling_the_same_again_changes_nothing_whoever_does(bank: AsyncReasoningBank) -> None:
    recall, same = await bank.retrieve(TASK), run()
    await bank.learn(same, recall=recall, outcome="success")
    key = await bank.admin.add_writer("u-17")
    before = (await bank.history.list())[-1].sequence
    await bank.scoped(writer="u-17", key=key).learn(same, recall=recall, outcome="success")
    assert (await bank.history.list())[-1].sequence == before


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a POSIX system names its users so")
def test_the_process_is_the_system_s_user() -> None:
    import pwd

    assert of_process().startswith(f"process:{pwd.getpwuid(os.getuid()).pw_name}@")
