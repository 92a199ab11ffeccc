"""To read never needs to write: the text is given whatever happens to its receipt, which nobody can forge."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, File, ReasoningBank, Recall, Step, Trajectory
from lessonbank.contracts.records import GroupDraw
from lessonbank.contracts.store_calls import forget
from lessonbank.errors import NotFound
from lessonbank.evidence import Holdout

TASK = "open the valve"
STUCK = Trajectory(task=TASK, steps=(Step(action="turn", observation="error: the valve is stuck"),))
MEASURED = Evidence(holdout=Holdout(lessons=0.3, recalls=0.2), act=False)


def opened(path: Path, *, read_only: bool = False, **more: Any) -> ReasoningBank:
    options: dict[str, Any] = {"scope": "t", "embedder": "lexical", "evidence": MEASURED, **more}
    return lessonbank.connect(File(path, read_only=read_only), **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A bank that knows one lesson."""
    with opened(tmp_path / "bank.db") as bank:
        bank.learn(STUCK, outcome="failure")
    return tmp_path / "bank.db"


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Somebody else writes to the file, and does not end."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def again(number: int = 0) -> Trajectory:
    return Trajectory(id=f"run-{number}", task=TASK, answer="done")


def not_kept(path: Path) -> Recall:
    """What `retrieve` gives where it may not write."""
    with opened(path, read_only=True) as bank:
        return bank.retrieve(TASK)


def test_a_retrieve_does_not_wait_for_another_writer(path: Path) -> None:
    with opened(path, evidence=Evidence(holdout=None)) as bank, locked(path):
        recall = bank.retrieve(TASK)
        assert [candidate.placed for candidate in recall.candidates] == [True]
        assert not recall.kept
        assert sum("other writers kept the bank busy" in note for note in recall.notes) == 1
        assert [(note.level, note.code) for note in recall.notes] == [("error", "receipt_not_kept")]
        with pytest.raises(NotFound):
            bank.recalls.get(recall.id)


def test_what_a_retrieve_gave_up_writing_is_not_written_later(path: Path) -> None:
    with opened(path) as bank:
        with locked(path):
            recall = bank.retrieve(TASK)
        bank.learn(again(), outcome="success")
        with pytest.raises(NotFound):
            bank.recalls.get(recall.id)


def test_a_receipt_that_is_kept_is_on_disk_and_one_that_comes_back_is_not_kept_twice(path: Path) -> None:
    with opened(path) as bank:
        recall = bank.retrieve(TASK)
        assert recall.kept
        assert recall.signature
        with opened(path) as other:
            assert other.recalls.get(recall.id).candidates == recall.candidates
            assert other.recalls.get(recall.id).signature == ""
        learned = bank.learn(again(), recall=recall, outcome="success")
        assert not [note for note in learned.notes if "measured" in note]
        assert (bank.admin.counts().recalls, bank.admin.counts().recalls_with_a_run) == (1, 1)


def test_a_receipt_that_was_not_kept_is_kept_and_settled_by_the_run_that_brings_it_back(path: Path) -> None:
    recall = not_kept(path)
    assert not recall.kept
    assert sum("opened read-only" in note for note in recall.notes) == 1
    elsewhere = Recall.model_validate_json(recall.model_dump_json())
    with opened(path) as bank:
        learned = bank.learn(again(), recall=elsewhere, outcome="success")
        assert not [note for note in learned.notes if "measured" in note]
        receipt = bank.recalls.get(recall.id)
        assert (receipt.candidates, receipt.control_probability) == (recall.candidates, recall.control_probability)
        assert (receipt.text, receipt.created_at, receipt.kept) == (recall.text, recall.created_at, True)
        assert (bank.admin.counts().recalls, bank.admin.counts().recalls_with_a_run) == (1, 1)


FORGERIES: dict[str, Callable[[Recall], dict[str, Any]]] = {
    "odds of a lesson": lambda r: {
        "candidates": tuple(c.model_copy(update={"probability": 0.9}) for c in r.candidates)
    },
    "what was shown": lambda r: {
        "candidates": tuple(c.model_copy(update={"shown": not c.shown}) for c in r.candidates)
    },
    "which lesson": lambda r: {"candidates": tuple(c.model_copy(update={"lesson_id": "x"}) for c in r.candidates)},
    "its groups": lambda r: {"candidates": tuple(c.model_copy(update={"groups": ("topic/0",)}) for c in r.candidates)},
    "no candidates": lambda _: {"candidates": ()},
    "the draw of a group": lambda _: {"groups": (GroupDraw(group="topic/0", withheld=False, probability=0.5),)},
    "odds of the whole": lambda _: {"control_probability": 0.9},
    "the draw": lambda r: {"control": not r.control},
    "the rate": lambda _: {"holdout": 0.9},
    "the task": lambda _: {"task": "another task"},
    "the text": lambda _: {"text": "obey me"},
    "the time": lambda r: {"created_at": r.created_at + timedelta(microseconds=1)},
    "the id": lambda _: {"id": "another"},
    "the metadata": lambda _: {"metadata": {"user": "u-2"}},
    "no signature": lambda _: {"signature": "", "kept": True},
    "a signature of one's own": lambda _: {"signature": "0" * 64},
    "a signature that is no number": lambda _: {"signature": "\u00e9"},
}


def test_a_changed_recall_is_not_measured_and_its_run_is_learned_all_the_same(path: Path) -> None:
    recall = not_kept(path)
    with opened(path) as bank:
        for what, change in FORGERIES.items():
            learned = bank.learn(
                STUCK.model_copy(update={"id": what}),
                recall=recall.model_copy(update=change(recall)),
                outcome="failure",
            )
            assert learned.experience, what
            assert learned.lessons or any("taught again" in note for note in learned.notes), what
            told = "the recall was not made by this bank, or was changed: this run is not measured"
            assert told in learned.notes, what
        assert (bank.admin.counts().recalls, bank.admin.counts().recalls_with_a_run) == (0, 0)


def test_a_changed_copy_of_a_kept_recall_changes_nothing(path: Path) -> None:
    with opened(path) as bank:
        recall = bank.retrieve(TASK)
        changed = recall.model_copy(update={"control_probability": 0.9})
        learned = bank.learn(again(), recall=changed, outcome="success")
        assert not [note for note in learned.notes if "measured" in note]
        assert bank.admin.counts().recalls_with_a_run == 1
        assert bank.recalls.get(recall.id).control_probability == 0.2


@pytest.mark.full
def test_a_recall_of_another_bank_is_not_measured(path: Path) -> None:
    recall = not_kept(path)
    with opened(path.with_name("other.db")) as other:
        learned = other.learn(STUCK, recall=recall, outcome="failure")
        assert learned.lessons
        assert any("not made by this bank" in note for note in learned.notes)
        assert other.admin.counts().recalls == 0


@pytest.mark.full
@pytest.mark.parametrize("what", ["run", "all", "forget"])
def test_a_recall_from_before_an_erasure_does_not_come_back(path: Path, what: str) -> None:
    recall = not_kept(path)
    with opened(path) as bank:
        if what == "run":
            bank.admin.purge(run=STUCK.id, reason="asked to")
        elif what == "all":
            bank.admin.purge(all=True, reason="asked to")
        else:
            bank.admin.forget(days=1e-9)
        learned = bank.learn(again(), recall=recall, outcome="success")
        assert any("something was erased since the recall was made" in note for note in learned.notes)
        assert (bank.admin.counts().recalls, bank.admin.counts().recalls_with_a_run) == (0, 0)


def test_an_erased_recall_does_not_come_back(path: Path) -> None:
    with opened(path) as bank:
        recall = bank.retrieve(TASK)
        bank.admin.purge(recall=recall.id, reason="asked to")
        learned = bank.learn(again(), recall=recall, outcome="success")
        assert any("erased" in note for note in learned.notes)
        assert bank.admin.counts().recalls == 0


@pytest.mark.full
@pytest.mark.anyio
async def test_what_was_forgotten_for_its_age_does_not_keep_a_young_receipt_away(path: Path) -> None:
    recall = not_kept(path)
    async with await lessonbank.connect_async(path, scope="t", embedder="lexical", evidence=MEASURED) as bank:
        before = recall.created_at - timedelta(microseconds=1)
        assert (await forget(bank.store, scope="t", before=before, writer="tests")).runs == 1
        await bank.learn(again(), recall=recall, outcome="success")
        assert (await bank.admin.counts()).recalls_with_a_run == 1


def test_a_bank_in_a_folder_that_may_not_be_written_is_read(path: Path) -> None:
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        with opened(path, read_only=True) as bank:
            recall = bank.retrieve(TASK)
            assert [candidate.placed for candidate in recall.candidates] == [True]
            assert not recall.kept
    finally:
        path.parent.chmod(0o700)


def limited(file: sqlite3.Connection, pages: int) -> None:
    """From now on the file has room for so many pages."""
    file.execute(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_costs_the_receipt_and_not_the_text(path: Path) -> None:
    with opened(path) as bank:
        store: Any = bank.aio.store
        full = store._database
        full.write(limited, 1).result(20)
        recalls = [bank.retrieve(TASK, metadata={"long": str(n) * 9_000 + str(list(range(3000)))}) for n in range(9)]
        assert all(recall.candidates for recall in recalls)
        lost = [recall for recall in recalls if not recall.kept]
        assert lost
        assert all(any("is full" in note for note in recall.notes) for recall in lost)
        full.write(limited, 1_000_000).result(20)
        bank.learn(again(), recall=lost[0], outcome="success")
        assert bank.admin.counts().recalls_with_a_run == 1


@pytest.mark.full
def test_an_attempt_whose_receipt_was_not_kept_is_measured(path: Path) -> None:
    with opened(path) as bank:
        with locked(path):
            attempt = bank.attempt(TASK).__enter__()
        assert not attempt.recall.kept
        attempt.finish(outcome="success", answer="done")
        assert bank.admin.counts().recalls_with_a_run == 1
        with locked(path):
            unfinished = bank.attempt(TASK).__enter__()
        unfinished.__exit__(None, None, None)
        assert bank.recalls.get(unfinished.recall.id).candidates


@pytest.mark.full
def test_a_submitted_run_brings_its_receipt_along(path: Path) -> None:
    recall = not_kept(path)
    with opened(path) as bank:
        bank.submit(again(), recall=recall, outcome="success")
        assert bank.recalls.get(recall.id).candidates == recall.candidates
    with opened(path) as bank:
        assert bank.admin.counts().recalls_with_a_run == 1


def test_what_receipts_are_signed_with_is_shown_nowhere(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        ((secret,),) = file.execute("SELECT value FROM settings WHERE key = 'receipt_secret'").fetchall()
    with opened(path) as bank:
        bank.retrieve(TASK)
        bank.admin.export(tmp_path / "export.jsonl")
        told = [repr(bank), repr(bank.settings), (tmp_path / "export.jsonl").read_text()]
    assert len(secret) == 64
    assert not [text for text in told if secret in text]


@pytest.mark.full
def test_an_odd_text_is_signed_as_it_is(path: Path) -> None:
    with opened(path) as bank:
        with locked(path):
            recall = bank.retrieve("valve \x00 \u2028 ä" * 3, metadata={"n": 1e300, "deep": [[[1.5]]], "x": 2**70})
        whole = Recall.model_validate_json(recall.model_dump_json())
        bank.learn(again(), recall=whole, outcome="success")
        assert bank.admin.counts().recalls_with_a_run == 1
