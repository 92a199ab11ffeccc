"""A scope grows no faster and no further than it may, whoever writes to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Extraction, Lesson, Run, Step, Trajectory
from lessonbank.errors import UsageError
from lessonbank.learning.consolidation import Caps, append
from lessonbank.learning.consolidation import caps as room_for_time
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.anyio
WORDS = ("valve", "ladder", "bucket", "lantern")


async def three(attempts: Sequence[Run], /) -> Extraction:
    what = attempts[0].trajectory.task.split()[-1]
    said = (f"Oil the hinge of `{what}-{n}` before it is turned, because rust holds it." for n in range(3))
    return Extraction(lessons=tuple(Lesson(title=f"Oil {what} {n}", content=c) for n, c in enumerate(said)))


def run(n: int) -> Trajectory:
    return Trajectory(task=f"Mend the {WORDS[n]}", steps=(Step(action="look", observation="it is stuck"),), answer="ok")


def options(**more: Any) -> dict[str, Any]:
    return {"scope": "t", "embedder": "lexical", "holdout": None, "extractor": three} | more


async def test_an_hour_brings_no_more_lessons_than_it_may() -> None:
    async with await lessonbank.connect_async(":memory:", **grouped(**options(caps=Caps(hour=7)))) as bank:
        learned = [await bank.learn(run(n), outcome="success") for n in range(4)]
        assert [len(one.lessons) for one in learned] == [3, 3, 1, 0]
        assert (await bank.admin.counts()).lessons == 7
        last = learned[-1].experience
        assert last and [r.rule for r in last.rejected] == ["cap"] * 3


async def test_what_the_scope_holds_in_the_same_words_takes_no_room() -> None:
    async with await lessonbank.connect_async(":memory:", **grouped(**options(caps=Caps(hour=3)))) as bank:
        first = await bank.learn(run(0), outcome="success")
        again = (await bank.learn(run(0).model_copy(update={"id": "again"}), outcome="success")).experience
        assert again and not again.rejected
        assert set(again.repeats) == {lesson.id for lesson in first.lessons}


async def test_an_hour_later_there_is_room_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await lessonbank.connect_async(":memory:", **grouped(**options(caps=Caps(hour=3)))) as bank:
        assert len((await bank.learn(run(0), outcome="success")).lessons) == 3
        assert (await bank.learn(run(1), outcome="success")).lessons == ()
        later = room_for_time.now() + room_for_time._SPAN * 2
        monkeypatch.setattr(room_for_time, "now", lambda: later)
        assert len((await bank.learn(run(2), outcome="success")).lessons) == 3


async def test_a_full_scope_takes_nothing_until_something_is_retired() -> None:
    async with await lessonbank.connect_async(":memory:", **grouped(**options(caps=Caps(scope=4)))) as bank:
        first = await bank.learn(run(0), outcome="success")
        assert len((await bank.learn(run(1), outcome="success")).lessons) == 1
        assert (await bank.learn(run(2), outcome="success")).lessons == ()
        await bank.lessons.retire(*(lesson.id for lesson in first.lessons), reason="old")
        assert len((await bank.learn(run(3), outcome="success")).lessons) == 3


async def test_what_others_added_counts_and_other_scopes_do_not(tmp_path: Path) -> None:
    async with (
        await lessonbank.connect_async(tmp_path / "bank.db", **grouped(**options(caps=Caps(hour=6)))) as one,
        await lessonbank.connect_async(tmp_path / "bank.db", **grouped(**options(caps=Caps(hour=6)))) as other,
    ):
        await one.learn(run(0), outcome="success")
        assert len((await other.learn(run(1), outcome="success")).lessons) == 3
        assert (await one.learn(run(2), outcome="success")).lessons == ()
        assert len((await other.scoped("else").learn(run(3), outcome="success")).lessons) == 3


async def test_the_first_decision_of_a_process_reads_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    async with await lessonbank.connect_async(":memory:", **grouped(**options(caps=Caps(hour=5)))) as bank:
        first = (await bank.learn(run(0), outcome="success")).experience
        assert first

        def read(**_: object) -> None:
            raise AssertionError("the journal was read")

        monkeypatch.setattr(bank.store, "journal", read)
        await room_for_time.CappedConsolidator(append, bank.store, Caps(hour=5))(first)


async def test_a_cap_that_is_none_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="caps="):
        await lessonbank.connect_async(":memory:", **grouped(**options(caps=5)))
