"""A person makes one lesson of several that say nearly the same; everything about it can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Experience, Learning, Lesson, ReasoningBank, Step, Trajectory
from lessonbank.contracts.records import Change, Merge, Proposal, Trust
from lessonbank.contracts.records.timeline import about, lineage
from lessonbank.errors import Conflict, NotFound, UsageError
from lessonbank.testing import ScriptedModel

TASKS = ("Find the invoice of March", "Look up a receipt")
WORDS: Any = {"title": "Rebuild a stale index", "content": "Run `rebuild` once when a search finds nothing."}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    evidence = Evidence(holdout=None)
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical", evidence=evidence) as opened:
        yield opened


def two(bank: ReasoningBank) -> tuple[Lesson, Lesson]:
    one = bank.lessons.add(title="Stale index", content="Rebuild the index.", task=TASKS[0], by="Ana")
    return one, bank.lessons.add(title="Empty search", content="Rebuild it once.", task=TASKS[1], by="Ana")


def test_a_merge_keeps_one_lesson_that_the_tasks_of_all_find_and_is_one_act_in_the_journal(bank: ReasoningBank) -> None:
    one, other = two(bank)
    before = len(bank.history.list())
    merged = bank.lessons.merge(one.id, other.id, **WORDS, when="A search is empty.", by="Ben", reason="twins")
    assert (merged.title, merged.content, merged.state, merged.approved) == (*WORDS.values(), "active", True)
    assert (merged.provenance.writer, merged.provenance.method) == ("Ben", "human")
    assert bank.lessons.list() == (merged,)
    assert {shown.id for task in TASKS for shown in bank.retrieve(task).shown} == {merged.id}
    assert set(bank.history.lineage(merged.id).sources) == {one.id, other.id}
    made, vouched = bank.history.list(after=before)
    assert isinstance(made.entry, Merge) and made.writer == vouched.writer == "Ben"
    assert made.entry.source_lesson_ids == (one.id, other.id) and made.entry.reason.startswith("twins")
    assert isinstance(vouched.entry, Trust) and vouched.entry.lesson_ids == (merged.id,)


def test_unmerging_shows_the_lessons_again_as_they_were(bank: ReasoningBank) -> None:
    one, other = two(bank)
    merged = bank.lessons.merge(one.id, other.id, **WORDS, by="Ben")
    assert bank.lessons.unmerge(merged.id, by="Ana", reason="they differ") == (one, other)
    assert bank.lessons.list() == (other, one)
    with pytest.raises(UsageError, match="is retired"):
        bank.lessons.unmerge(merged.id, by="Ana", reason="again")
    with pytest.raises(UsageError, match="not made by a merge"):
        bank.lessons.unmerge(one.id, by="Ana", reason="no merge")


@pytest.mark.full
def test_a_merge_can_keep_the_words_of_one_and_a_new_run_repeats_what_is_shown(bank: ReasoningBank) -> None:
    one, other = two(bank)
    merged = bank.lessons.merge(one.id, other.id, title=one.title, content=one.content, by="Ben")
    twin = Lesson(title=one.title, content=one.content)
    bank.consolidate(Experience(scope="acme", task="Search the archive", lessons=(twin,)))
    assert bank.lessons.list() == (merged,)
    assert [again.task for again in bank.lessons.repeats(merged.id)] == ["Search the archive"]
    assert [shown.id for shown in bank.retrieve("Search the archive").shown] == [merged.id]


@pytest.mark.full
def test_the_tasks_that_taught_a_lesson_again_find_what_it_became(bank: ReasoningBank) -> None:
    one, other = two(bank)
    twin = Lesson(title=one.title, content=one.content)
    bank.consolidate(Experience(scope="acme", task="Search the archive", lessons=(twin,)))
    merged = bank.lessons.merge(one.id, other.id, **WORDS, by="Ben")
    assert [shown.id for shown in bank.retrieve("Search the archive").shown] == [merged.id]


@pytest.mark.full
def test_narrowed_lessons_become_one_for_the_tasks_of_both(bank: ReasoningBank) -> None:
    one, other = two(bank)
    bank.lessons.narrow(one.id, to="invoice", by="Ana")
    bank.lessons.narrow(other.id, to="receipt", by="Ana")
    assert bank.lessons.merge(one.id, other.id, **WORDS, by="Ben").only_for_tasks == ("invoice", "receipt")


@pytest.mark.full
def test_a_merge_that_cannot_be_changes_nothing(bank: ReasoningBank) -> None:
    one, other = two(bank)
    third = bank.lessons.add(title="Never", content="Delete the index.", task="x", kind="guardrail", by="Ana")
    before = bank.history.list()
    for ids, error in (
        ((one.id,), UsageError),
        ((one.id, one.id), UsageError),
        ((one.id, third.id), UsageError),
        ((one.id, "nothing"), NotFound),
    ):
        with pytest.raises(error):
            bank.lessons.merge(*ids, **WORDS, by="Ben")
    bank.lessons.retire(other.id, reason="old")
    with pytest.raises(Conflict, match="retired already"):
        bank.lessons.merge(one.id, other.id, **WORDS, by="Ben")
    assert len(bank.history.list()) == len(before) + 1


@pytest.mark.full
def test_a_merge_in_the_words_of_a_third_lesson_is_refused(bank: ReasoningBank) -> None:
    one, other = two(bank)
    third = bank.lessons.add(**WORDS, task="x", by="Ana")
    with pytest.raises(Conflict, match=third.id):
        bank.lessons.merge(one.id, other.id, **WORDS, by="Ben")
    assert {lesson.id for lesson in bank.lessons.list()} == {one.id, other.id, third.id}


@pytest.mark.full
def test_the_story_of_a_lesson_is_read_from_the_entries_that_can_be_about_it(bank: ReasoningBank) -> None:
    one, other = two(bank)
    bank.learn(Trajectory(task="Cancel", steps=(Step(action="x", observation="error: y"),)), outcome="failure")
    for days, said in ((-9, "Look twice."), (9, "Look once.")):
        at, said_so = datetime.now(UTC) + timedelta(days), (Lesson(title="Look", content=said),)
        told = Experience(scope="acme", task="x", lessons=said_so, created_at=at)
        bank.consolidate(told)
    bank.lessons.edit(one.id, content="Rebuild it.", by="Ben")
    merged = bank.lessons.merge(one.id, other.id, **WORDS, by="Ben")
    bank.lessons.unmerge(merged.id, reason="no", by="Ben")
    for _ in range(2):
        whole = bank.history.list()
        for lesson in bank.lessons.list(retired=True):
            assert bank.history.list(lesson=lesson.id) == tuple(about(whole, lesson=lesson.id))
            assert set(bank.history.lineage(lesson.id).sources) == set(lineage(whole, lesson.id).sources)
        bank.history.rollback(to=len(whole) - 2, reason="again")


OLD = "A search that finds nothing may have a stale index. Run `rebuild` once, then search again."
NEW = "When a search comes back empty, the index may be stale: run `rebuild` once and repeat the search."


def taught(bank: ReasoningBank, task: str, lesson: Lesson) -> tuple[Change, ...]:
    return tuple(bank.consolidate(Experience(scope="acme", task=task, lessons=(lesson,))))


def proposed(bank: ReasoningBank) -> list[Proposal]:
    return [one for one in bank.lessons.proposals() if one.change == "merge"]


def near(bank: ReasoningBank) -> tuple[Lesson, Lesson]:
    old = Lesson(id="old", title="Rebuild a stale index", content=OLD)
    new = Lesson(id="new", title="Rebuild a stale index", content=NEW)
    for lesson in (old, new):
        taught(bank, "find the invoice", lesson)
    return old, new


def test_two_lessons_that_say_nearly_the_same_are_proposed_to_be_merged(bank: ReasoningBank) -> None:
    near(bank)
    (proposal,) = proposed(bank)
    assert (proposal.lesson.id, proposal.of) == ("new", "old") and "“Rebuild a stale index”" in proposal.reason
    merged = bank.lessons.merge("new", "old", **WORDS, by="Ben")
    assert proposed(bank) == [] and bank.lessons.list() == (merged,)
    bank.lessons.unmerge(merged.id, by="Ben", reason="no")
    assert [one.lesson.id for one in proposed(bank)] == ["new"]


@pytest.mark.full
@pytest.mark.parametrize("decision", ["keeps both", "gives one new words"])
def test_who_decided_about_two_that_are_near_is_not_asked_again(bank: ReasoningBank, decision: str) -> None:
    near(bank)
    if decision == "keeps both":
        bank.lessons.approve("new", by="Ben")
    else:
        bank.lessons.edit("new", content="Ask the librarian.", by="Ben")
    assert proposed(bank) == []


@pytest.mark.full
def test_a_model_that_told_two_lessons_apart_is_believed(tmp_path: Path) -> None:
    for name, reply, expected in (("apart", '{"same": false}', []), ("unclear", "perhaps", ["new"])):
        model = ScriptedModel([reply])
        learning = Learning(consolidation="recognise", topics="words")
        path = tmp_path / f"{name}.db"
        with lessonbank.connect(path, scope="acme", model=model, embedder="lexical", learning=learning) as bank:
            near(bank)
            assert [one.lesson.id for one in proposed(bank)] == expected
