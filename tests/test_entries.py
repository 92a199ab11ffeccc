"""What a change means stands with the change: what it says to people, and what it makes of lessons and experiences."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

import pytest

from lessonbank import Experience, Lesson, Verdict
from lessonbank.bank.views.history import SPEAK_OF_LESSONS
from lessonbank.contracts.records import Change, JournalEntry, Settlement
from lessonbank.contracts.records.changes import Add, Edit, Rejudge, Restore, Retire, Trust
from lessonbank.contracts.records.entry import Entry
from lessonbank.guard.redact import redact, redacted
from lessonbank.guard.redact._records import TEXTS
from lessonbank.stores._erasure import Erasing

LESSON = Lesson(title="Weigh it", content="Weigh it before you ship it.")
EXPERIENCE = Experience(scope="t", task="Ship a parcel", lessons=(LESSON,))
FIELDS: dict[str, Any] = {
    "experience": EXPERIENCE,
    "experience_id": EXPERIENCE.id,
    "trajectory_id": "r",
    "verdict": Verdict(outcome="failure"),
    "lesson_ids": (LESSON.id,),
    "source_lesson_ids": (LESSON.id,),
    "lesson_id": LESSON.id,
    "state": "active",
    "title": "Weigh it twice",
    "description": "",
    "content": "Twice.",
    "seed": "s",
    "odds": 0.5,
    "act": "admin.export",
    "to": 1,
    "what": "lesson",
    "digest": "0",
    "before": datetime(2026, 1, 1, tzinfo=UTC),
    "settlement": Settlement(recall_id="q", scope="t", outcome="success"),
    "reason": "why",
}


def kinds(annotation: Any) -> tuple[type[Entry], ...]:
    """The records of a union, also of one inside of another."""
    inner = get_args(annotation)
    if not inner:
        return (annotation,) if isinstance(annotation, type) else ()
    return tuple(kind for one in inner for kind in kinds(one))


KINDS = kinds(JournalEntry.model_fields["entry"].annotation)


def made(kind: type[Entry]) -> Entry:
    fields = {name: FIELDS[name] for name in kind.model_fields if name in FIELDS}
    if "by" in kind.model_fields:
        fields["by"] = {"erased": 3, "trust": "person"}.get(kind.model_fields["kind"].default, "Ana")
    if kind is Rejudge:
        del fields["before"]
    return kind(**fields)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_entry_says_in_words_what_was_done(kind: type[Entry]) -> None:
    sentence = made(kind).sentence()
    assert sentence.text not in ("", made(kind).kind)  # type: ignore[attr-defined]
    assert "_" not in sentence.text


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_marks_a_lesson_names_it_and_what_brings_an_experience_holds_it(kind: type[Entry]) -> None:
    entry = made(kind)
    assert set(entry.marks) <= {LESSON.id}
    assert (entry.mark(LESSON) != LESSON) <= bool(entry.marks) or isinstance(entry, Restore)
    assert entry.brings in (None, EXPERIENCE)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_of_an_erased_lesson_is_left_in_any_kind_of_entry(kind: type[Entry]) -> None:
    erasing = Erasing("lesson", LESSON.id)
    erasing.read([Add(experience=EXPERIENCE)])
    left = erasing.entry(cast(Any, made(kind)), by=9).model_dump_json()
    assert LESSON.id not in left
    assert LESSON.content not in left


def test_an_erasure_fails_at_a_kind_of_entry_that_does_not_say_what_goes_with_it() -> None:
    class Praise(Entry):
        kind: Literal["praise"] = "praise"
        of: Lesson

    with pytest.raises(NotImplementedError, match="Praise has no `without`"):
        Erasing("lesson", LESSON.id).entry(cast(Any, Praise(of=LESSON)), by=9)


def test_the_texts_of_every_kind_of_change_are_redacted() -> None:
    assert set(kinds(Change)) <= TEXTS.keys()
    mail = Edit(lesson_id="i", title="Ask ana@shop.example", description="", content="Mail ana@shop.example.", by="Ana")
    assert (redacted(mail, redact).title, redacted(mail, redact).content) == ("Ask [e-mail 1]", "Mail [e-mail 1].")


def test_the_story_of_a_lesson_is_made_of_every_kind_of_entry_that_changes_one() -> None:
    changing = {entry.kind for entry in map(made, KINDS) if entry.marks or entry.amends}  # type: ignore[attr-defined]
    assert changing <= SPEAK_OF_LESSONS


def test_a_change_refuses_the_lesson_that_it_would_not_change() -> None:
    retire, restore = Retire(lesson_ids=(LESSON.id,), reason="x"), Restore(lesson_ids=(LESSON.id,), reason="x")
    retired = retire.mark(LESSON)
    assert (retire.misfit(LESSON), retire.misfit(retired)) == ("", "is retired already: nothing was changed")
    assert (restore.misfit(retired), restore.misfit(LESSON)) == ("", "is not retired: nothing was changed")
    held = LESSON.model_copy(update={"state": "quarantined"})
    let_out = Trust(lesson_ids=(LESSON.id,), state="active", by="ledger", reason="x")
    assert let_out.misfit(held) == "is quarantined: only a person can let it out"
    edit = Edit(lesson_id=LESSON.id, title="Weigh", description="", content="Twice.", by="Ana")
    assert edit.misfit(LESSON) == ""
    assert edit.misfit(edit.mark(LESSON)) == "says this already: nothing was changed"
