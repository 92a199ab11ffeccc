"""Hooks are told what happened. What a hook raises changes nothing of it, and is reported."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, LessonbankError, Parts, ReasoningBank, Step, Trajectory
from lessonbank.contracts.events import (
    Consolidated,
    Event,
    Extracted,
    ExtractionFailed,
    FellBack,
    Judged,
    Retrieved,
    Settled,
)
from lessonbank.errors import Conflict, ExtractionError, NotFound

STUCK = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


def opened(*hooks: Callable[[Event], None], where: str | Path = ":memory:", **parts: Any) -> ReasoningBank:
    return lessonbank.connect(
        where,
        scope="t",
        embedder="lexical",
        evidence=Evidence(holdout=None),
        parts=Parts(hooks=hooks, **parts),
    )


def raising(error: Exception, *kinds: type) -> Callable[[Event], None]:
    def hook(event: Event) -> None:
        if isinstance(event, kinds):
            raise error

    return hook


@pytest.mark.parametrize("error", [NotFound("no row in the audit table"), Conflict("row exists")])
def test_a_hook_that_raises_a_store_error_is_not_taken_for_a_conflict_of_the_bank(error: LessonbankError) -> None:
    with opened(raising(error, Consolidated)) as bank:
        learned = bank.learn(STUCK, outcome="failure")
        assert learned.lessons
        assert learned.known == ()
        assert learned.experience
        assert not any("learned by another call" in note for note in learned.notes)
        assert any("a hook failed after Consolidated" in note and str(error) in note for note in learned.notes)
        assert bank.lessons.list() == learned.lessons
        assert (bank.admin.counts().experiences, bank.admin.counts().pending) == (1, 0)


def test_consolidate_reports_a_lesson_that_was_kept_although_a_hook_raised_a_conflict() -> None:
    calls = list[Event]()

    def hook(event: Event) -> None:
        if isinstance(event, Consolidated):
            calls.append(event)
            raise Conflict("row exists")

    with opened(hook) as bank:
        learned = bank.learn(STUCK, outcome="failure")
        assert learned.experience
        again = learned.experience.model_copy(update={"id": "another", "lessons": ()})
        assert [change.kind for change in bank.consolidate(again)] == ["add"]
        assert len(calls) == 2
        assert bank.admin.counts().experiences == 2


def test_every_hook_is_called_once_for_each_event_and_in_the_order_of_the_loop() -> None:
    seen = list[str]()
    with opened(lambda event: seen.append(type(event).__name__)) as bank:
        recall = bank.retrieve("open the valve")
        bank.learn(STUCK, recall=recall, outcome="failure")
    told = [name for name in seen if name not in ("FellBack", "Reviewed")]
    assert told == [kind.__name__ for kind in (Retrieved, Judged, Extracted, Consolidated, Settled)]


def test_a_hook_is_called_after_the_thing_is_on_disk(tmp_path: Path) -> None:
    path, found = tmp_path / "bank.db", list[int]()

    def look(event: Event) -> None:
        import sqlite3

        if isinstance(event, Consolidated):
            other = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            found.extend(other.execute("SELECT count(*) FROM experiences").fetchone())
            other.close()

    with opened(look, where=path) as bank:
        bank.learn(STUCK, outcome="failure")
    assert found == [1]


def test_a_hook_that_raises_does_not_keep_the_next_hook_from_its_event() -> None:
    seen = list[str]()
    with opened(raising(OSError("log full"), Retrieved), lambda event: seen.append(type(event).__name__)) as bank:
        recall = bank.retrieve("open the valve")
    assert "Retrieved" in seen
    assert any("a hook failed after Retrieved: OSError: log full" in note for note in recall.notes)


def test_what_a_hook_raises_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "lessonbank"),
        opened(raising(OSError("full\n\x1b[2Jtwice"), Judged)) as bank,
    ):
        bank.learn(STUCK, outcome="failure")
    (line,) = [record.getMessage() for record in caplog.records if "a hook failed" in record.getMessage()]
    assert "\n" not in line
    assert "\x1b" not in line


def test_a_hook_that_fails_where_the_extraction_failed_leaves_the_run_pending_once() -> None:
    async def broken(attempts: Any) -> Any:
        raise ExtractionError("no lesson could be read")

    hooks = raising(NotFound("no such ticket"), ExtractionFailed)
    with opened(hooks, extractor=broken) as bank:
        learned = bank.learn(STUCK, outcome="failure")
        assert learned.errors == ("extraction_output",)
        assert any("a hook failed after ExtractionFailed" in note for note in learned.notes)
        assert [run.id for run in bank.runs.pending()] == [STUCK.id]


def test_a_fallback_is_told_to_hooks_as_well() -> None:
    fallbacks = list[FellBack]()

    def hook(event: Event) -> None:
        if isinstance(event, FellBack):
            fallbacks.append(event)

    async def noted(attempts: Any) -> Any:
        return lessonbank.Extraction(notes=("the longest step was cut",))

    with opened(hook, extractor=noted) as bank:
        bank.learn(STUCK, outcome="failure")
    assert FellBack(what="Extracted", why="the longest step was cut") in fallbacks
