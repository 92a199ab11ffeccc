"""A note is a sentence with a level and a code: what went wrong can be told from what is well."""

from __future__ import annotations

from pathlib import Path

import pytest

import lessonbank
from lessonbank import Evidence, Learned, Parts, Recall
from lessonbank.contracts.records import Note, notes_of
from lessonbank.evidence import Holdout

RUN = [
    {"role": "user", "content": "Publish release 1.4"},
    {"role": "assistant", "content": "make changelog"},
    {"role": "user", "content": "updated"},
    {"role": "assistant", "content": "make release"},
    {"role": "user", "content": "released"},
]


def told(notes: tuple[Note, ...]) -> list[tuple[str, str]]:
    return [(note.code, note.level) for note in notes]


def test_a_lesson_that_came_again_is_all_well() -> None:
    with lessonbank.connect(":memory:", scope="s", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        bank.learn(RUN, reward=1.0)
        assert told(bank.learn(RUN + RUN[1:], reward=1.0).notes)[-1:] == [("taught_again", "info")]


def test_a_bank_without_lessons_says_so_as_information() -> None:
    with lessonbank.connect(":memory:", scope="s", embedder="lexical") as bank:
        assert told(bank.retrieve("Publish release 2.0").notes) == [("empty", "info")]


def test_a_recall_of_another_task_is_a_warning() -> None:
    with lessonbank.connect(":memory:", scope="s", embedder="lexical") as bank:
        run = lessonbank.Trajectory(task="Publish release 1.4", answer="done")
        recall = bank.retrieve("Bake a cake")
        assert ("another_task", "warning") in told(bank.learn(run, recall=recall, reward=1.0).notes)


def test_a_memory_that_fails_is_an_error_in_the_block() -> None:
    def fails(event: object) -> None:
        raise OSError("the disk is full")

    with lessonbank.connect(":memory:", scope="s", embedder="lexical", parts=Parts(hooks=[fails])) as bank:
        with bank.attempt("Publish release 2.0") as attempt:
            attempt.finish(RUN, outcome="sucess")  # type: ignore[arg-type]
        codes = dict(told(attempt.notes))
    assert codes["hook_failed"] == "warning"
    assert codes["not_learned"] == "error"


def test_a_note_keeps_its_level_through_json_and_in_a_file(tmp_path: Path) -> None:
    learned = Learned(notes=notes_of("another task: …"))
    assert told(Learned.model_validate_json(learned.model_dump_json()).notes) == [("another_task", "warning")]
    with lessonbank.connect(tmp_path / "bank.db", scope="s", embedder="lexical") as bank:
        recall = bank.retrieve("Publish release 2.0")
        assert told(bank.recalls.get(recall.id).notes) == [("empty", "info")]
    assert '"notes":["no past' not in Recall(scope="s", task="t").model_dump_json()


def test_lessons_that_were_left_out_by_chance_are_withheld_whichever_draw_it_was() -> None:
    """A draw for memory as a whole, and one for the single lesson."""
    for draws in (Holdout(0.9999, 0.0, seed="one"), Holdout(0.0, 0.9999, seed="all")):
        with lessonbank.connect(":memory:", scope="s", embedder="lexical", evidence=Evidence(holdout=draws)) as bank:
            bank.lessons.add(title="Log first", content="Run make changelog.", task="Publish release 1.4", by="Ana")
            recall = bank.retrieve("Publish release 2.0")
            assert (recall.text, told(recall.notes)) == ("", [("withheld", "info")])


def test_what_a_run_says_of_the_bank_and_its_upkeep_has_a_code() -> None:
    with lessonbank.connect(":memory:", scope="s", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        with bank.attempt("Publish release 2.0") as attempt:
            for number in range(4):
                attempt.note(f"The {number}th door is locked.")
            attempt.finish(RUN, reward=0.5)
            attempt.finish(RUN, reward=0.5)
        assert {("graded", "info"), ("misused", "warning")} <= set(told(attempt.notes))
        assert "other" not in dict(told(attempt.notes))


@pytest.mark.parametrize("said", ["", "what a part of yours says", "x" * 100_000])
def test_what_nobody_knows_is_to_be_looked_at(said: str) -> None:
    assert (Note(said).code, Note(said).level) == ("other", "warning")
