"""A person writes, corrects and annotates lessons; the journal says who, and the evidence starts again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lessonbank
from lessonbank import Evidence, Lesson, ReasoningBank, Safety, Step, Trajectory
from lessonbank.errors import Conflict, NotFound, UsageError

TASK = "Cancel the pending order"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    with lessonbank.connect(
        tmp_path / "bank.db", scope="acme", embedder="hashing", evidence=Evidence(holdout=None)
    ) as opened:
        yield opened


def written(bank: ReasoningBank) -> Lesson:
    return bank.lessons.add(
        title="Ask for the reason first",
        content="Ask why the order is to be cancelled before the cancel tool is called.",
        when="An order is still pending.",
        task=TASK,
        kind="guardrail",
        by="Ana",
    )


def run(n: int) -> Trajectory:
    return Trajectory(id=f"run-{n}", task=TASK, steps=(Step(action="cancel", observation="done"),))


def test_a_lesson_of_a_person_is_shown_at_once_and_says_who_wrote_it(bank: ReasoningBank) -> None:
    lesson = written(bank)
    assert (lesson.provenance.method, lesson.provenance.writer) == ("human", "Ana")
    assert (lesson.state, lesson.version, lesson.kind) == ("active", 1, "guardrail")
    recall = bank.retrieve(TASK)
    assert [shown.id for shown in recall.shown] == [lesson.id]
    assert "Ask for the reason first" in recall.text
    assert {entry.writer for entry in bank.history.list()} == {"Ana"}
    assert bank.lessons.list(writer="Ana") == (lesson,)


def test_a_lesson_of_a_person_passes_every_trust_policy() -> None:
    for trust in ("corroborated", "reviewed"):
        safety, evidence = Safety(trust=trust), Evidence(holdout=None)
        with lessonbank.connect(":memory:", scope="acme", embedder="lexical", safety=safety, evidence=evidence) as bank:
            lesson = written(bank)
            assert [shown.id for shown in bank.retrieve(TASK).shown] == [lesson.id]


def test_an_edit_changes_only_what_it_names_and_makes_another_version(bank: ReasoningBank) -> None:
    lesson = written(bank)
    edited = bank.lessons.edit(lesson.id, content="Ask why, and repeat the order number.", by="Ben", reason="clearer")
    assert edited.content == "Ask why, and repeat the order number."
    assert (edited.title, edited.description) == (lesson.title, lesson.description)
    assert (edited.id, edited.state, edited.version) == (lesson.id, "active", 2)
    assert (edited.provenance.method, edited.provenance.writer) == ("human", "Ben")
    assert [(one.writer, one.entry.kind) for one in bank.history.list()[-2:]] == [("Ben", "edit"), ("Ben", "trust")]
    assert edited.content in bank.retrieve(TASK).text
    assert bank.lessons.edit(lesson.id, title="Ask first", by="Ben").version == 3


def test_a_lesson_that_was_learned_becomes_a_persons_by_an_edit(bank: ReasoningBank) -> None:
    learned = bank.learn(
        Trajectory(task=TASK, steps=(Step(action="cancel", observation="error: no reason"),)), reward=0
    )
    (lesson,) = learned.lessons
    assert lesson.provenance.method == "extractive"
    edited = bank.lessons.edit(lesson.id, when="Always.", by="Ana")
    assert edited.provenance.method == "human"
    assert edited.provenance.trajectory_ids == lesson.provenance.trajectory_ids
    assert lesson.state == "probation"
    assert (edited.state, edited.approved) == ("active", True)


def test_an_edit_lets_no_lesson_out_of_quarantine_and_brings_none_back(bank: ReasoningBank) -> None:
    lesson = written(bank)
    bank.lessons.quarantine(lesson.id, reason="let us look")
    assert bank.lessons.edit(lesson.id, when="Always.", by="Ana").state == "quarantined"
    bank.lessons.retire(lesson.id, reason="old")
    assert bank.lessons.edit(lesson.id, when="Never.", by="Ana").retired


def test_the_evidence_of_a_lesson_starts_again_after_an_edit(bank: ReasoningBank) -> None:
    lesson = written(bank)
    for n in range(4):
        bank.learn(run(n), recall=bank.retrieve(TASK), outcome="success")
    assert counted(bank, lesson.id) == 4
    bank.lessons.edit(lesson.id, content="Ask why, and repeat the order number.", by="Ana")
    assert counted(bank, lesson.id) == 0
    bank.learn(run(9), recall=bank.retrieve(TASK), outcome="success")
    assert counted(bank, lesson.id) == 1


def counted(bank: ReasoningBank, id: str) -> int:
    """The settled recalls that count for or against a lesson."""
    return sum(one.shown + one.withheld for one in bank.lift().lessons if one.lesson_id == id)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"title": "Ask for the reason first"}, Conflict),
        ({"content": " "}, UsageError),
        ({"id": "nobody", "title": "A title"}, NotFound),
    ],
    ids=["nothing new", "an empty text", "no such lesson"],
)
def test_an_edit_that_cannot_be_is_refused(bank: ReasoningBank, change: dict[str, str], error: type) -> None:
    lesson = written(bank)
    told = {"id": lesson.id} | change
    with pytest.raises(error):
        bank.lessons.edit(told.pop("id"), by="Ana", **told)  # type: ignore[arg-type]
    assert bank.lessons.get(lesson.id) == lesson


def test_an_edit_can_be_undone(bank: ReasoningBank) -> None:
    lesson = written(bank)
    before = bank.history.list()[-1].sequence
    bank.lessons.edit(lesson.id, title="Another title", by="Ana")
    bank.history.rollback(to=before, reason="the first was better", by="Ana")
    assert bank.lessons.get(lesson.id).title == "Ask for the reason first"


def test_everything_a_person_does_stands_in_the_journal_under_the_persons_name(bank: ReasoningBank) -> None:
    lesson = written(bank)
    bank.lessons.quarantine(lesson.id, reason="let us look", by="Ben")
    assert bank.lessons.get(lesson.id).state == "quarantined"
    assert bank.retrieve(TASK).shown == ()
    bank.lessons.approve(lesson.id, by="Cleo", reason="it is fine")
    assert bank.lessons.get(lesson.id).state == "active"
    bank.lessons.retire(lesson.id, reason="the shop closed", by="Dan")
    assert bank.retrieve(TASK).shown == ()
    bank.lessons.restore(lesson.id, reason="it opened again", by="Eve")
    assert bank.retrieve(TASK).shown
    writers = [entry.writer for entry in bank.history.list(lesson=lesson.id)]
    assert list(dict.fromkeys(writers)) == ["Ana", "Ben", "Cleo", "Dan", "Eve"]


@pytest.mark.parametrize("by", ["", "  ", None, 3])
def test_nobody_cannot_write_approve_or_edit(bank: ReasoningBank, by: object) -> None:
    lesson = written(bank)
    before = bank.history.list()
    told = {"by": by}
    with pytest.raises(UsageError):
        bank.lessons.add(title="A title", content="Some words.", task=TASK, **told)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        bank.lessons.edit(lesson.id, title="Another", **told)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        bank.lessons.approve(lesson.id, **told)  # type: ignore[arg-type]
    assert bank.history.list() == before


@pytest.mark.parametrize("empty", ["title", "content", "task"])
def test_a_lesson_without_words_is_refused(bank: ReasoningBank, empty: str) -> None:
    told = {"title": "A title", "content": "Some words.", "task": TASK, empty: "  "}
    with pytest.raises(UsageError):
        bank.lessons.add(by="Ana", **told)  # type: ignore[arg-type]
    assert bank.admin.counts().experiences == 0


def test_a_secret_in_a_persons_words_is_not_kept(bank: ReasoningBank) -> None:
    key = "sk-proj-" + "a1B2" * 12
    lesson = bank.lessons.add(title="Call the shop", content=f"Use the key {key} for the shop.", task=TASK, by="Ana")
    assert key not in lesson.content
    edited = bank.lessons.edit(lesson.id, content=f"Put {key} into the header.", by="Ana")
    assert key not in edited.content
    assert all(key not in entry.model_dump_json() for entry in bank.history.list())


def test_a_lesson_of_a_person_survives_export_and_import(bank: ReasoningBank, tmp_path: Path) -> None:
    lesson = written(bank)
    bank.lessons.edit(lesson.id, title="Ask first", by="Ben")
    bank.admin.export(tmp_path / "bank.jsonl")
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical") as other:
        other.admin.import_(tmp_path / "bank.jsonl", approved_by="Cleo")
        (kept,) = other.lessons.list()
    assert (kept.title, kept.version, kept.provenance.writer) == ("Ask first", 2, "Ben")
