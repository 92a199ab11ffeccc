"""A bank with reviewers asks for the key of one before it changes which lessons are shown."""

from __future__ import annotations

import inspect
import logging
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from copy import copy
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Learning, ReasoningBank, Safety, Step, Trajectory
from lessonbank.contracts.records import Experience, Lesson, Provenance
from lessonbank.contracts.settings import File
from lessonbank.errors import NotAllowed, NotFound, UsageError
from lessonbank.guard.reviewed import CALLS
from lessonbank.http.client.operations import OPERATIONS
from lessonbank.wiring import migrate

pytestmark = pytest.mark.full
TASK = "Open the valve"
RUN = Trajectory(id="run-1", task=TASK, steps=(Step(action="turn", observation="error: stuck"),))
OTHER = Trajectory(id="run-2", task="Close the door", steps=(Step(action="push", observation="error: blocked"),))
Door = Callable[[ReasoningBank, "Case"], object]


class Case:
    """A bank file with an approved lesson, a retired one, an export and a backup; and the key of its reviewer Ana."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "bank.db"
        with opened(self.file) as bank:
            words: Any = {"title": "Oil it", "content": "Oil the valve first.", "task": TASK, "by": "Ana"}
            self.shown = bank.lessons.add(**words, kind="guardrail").id
            self.drawn = bank.learn(RUN, outcome="failure").lessons[0].id
            self.retired = bank.learn(OTHER, outcome="failure").lessons[0].id
            bank.lessons.retire(self.retired, reason="wrong")
            bank.admin.export(folder / "export.jsonl")
            bank.admin.backup(folder / "backup.db")
            bank.admin.add_writer("u-17")
            self.key = bank.admin.add_reviewer("Ana")


def opened(file: Path | str, **settings: Any) -> ReasoningBank:
    return lessonbank.connect(
        file, scope="t", embedder="lexical", evidence=lessonbank.Evidence(holdout=None), **settings
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("case"))


@pytest.fixture
def case(made: Case, tmp_path: Path) -> Case:
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    own = copy(made)
    own.folder, own.file = tmp_path, tmp_path / made.file.name
    return own


DOORS: dict[str, Door] = {
    "lessons.add": lambda b, c: b.lessons.add(title="Kick it", content="Kick the valve.", task=TASK, by="Ana"),
    "lessons.edit": lambda b, c: b.lessons.edit(c.shown, content="Kick the valve.", by="Ana"),
    "lessons.narrow": lambda b, c: b.lessons.narrow(c.shown, to="valve", by="Ana"),
    "lessons.merge": lambda b, c: b.lessons.merge(c.shown, c.drawn, title="t", content="c", by="Ana"),
    "lessons.approve": lambda b, c: b.lessons.approve(c.drawn, by="Ana"),
    "lessons.restore": lambda b, c: b.lessons.restore(c.retired, reason="r"),
    "lessons.retire": lambda b, c: b.lessons.retire(c.shown, reason="r"),
    "lessons.quarantine": lambda b, c: b.lessons.quarantine(c.shown, reason="r"),
    "runs.correct": lambda b, c: b.runs.correct("run-1", outcome="success", by="Ana"),
    "history.rollback": lambda b, c: b.history.rollback(to=1, reason="r"),
    "admin.import_": lambda b, c: b.admin.import_(c.folder / "export.jsonl"),
    "admin.purge": lambda b, c: b.admin.purge(lesson=c.drawn, reason="r"),
    "admin.forget": lambda b, c: b.admin.forget(days=1e-9),
    "admin.reindex": lambda b, c: b.admin.reindex(),
    "admin.rebuild": lambda b, c: b.admin.rebuild(),
    "admin.add_writer": lambda b, c: b.admin.add_writer("u-18"),
    "admin.remove_writer": lambda b, c: b.admin.remove_writer("u-17"),
    "admin.add_reviewer": lambda b, c: b.admin.add_reviewer("Bob"),
    "admin.remove_reviewer": lambda b, c: b.admin.remove_reviewer("Ana"),
}
FREE = {
    "lessons": {"list", "search", "topics", "get", "experience", "repeats", "proposals", "note"},
    "runs": {"list", "search", "get", "pending", "retry", "audit", "unlabelled", "queue", "spending"},
    "recalls": {"list", "search", "get", "preview", "explain"},
    "history": {"list", "state", "diff", "retrieve", "lineage"},
    "admin": {
        *("counts", "export", "sync", "unembedded", "scopes", "backup", "verify"),
        *("writers", "reviewers", "storage"),
    },
    "": {
        *(
            "retrieve",
            "recall_again",
            "submit",
            "tell",
            "learn",
            "keep_unfinished",
            "judge",
            "extract",
            "consolidate",
            "reflect",
            "lift",
        ),
        *("attempt", "scale", "trial", "scoped", "in_background", "drain", "close"),
    },
}
"""What asks for no key: it shows nothing that was hidden, erases nothing and hands out no key."""
ELSEWHERE = {"keys.add", "keys.rotate", "keys.remove", "keep_runs", "restore"}
"""Calls of the list that are no methods of a view."""
APART: dict[str, Door] = {
    "lessons.split": lambda b, c: b.lessons.split(c.drawn, "none", reason="r", by="Ana"),
    "lessons.unmerge": lambda b, c: b.lessons.unmerge(c.drawn, reason="r", by="Ana"),
}
"""Doors behind which there is nothing to undo here."""


def test_every_method_is_on_the_list_and_a_door_or_known_to_be_harmless(case: Case) -> None:
    doors = {*DOORS, *APART}
    assert doors | ELSEWHERE == CALLS
    with opened(case.file) as bank:
        for view, free in FREE.items():
            of = getattr(bank, view) if view else bank
            named = {name for name, _ in inspect.getmembers(of, callable) if not name.startswith("_")} - {"aio"}
            asking = {name.partition(".")[2] for name in doors if view and name.startswith(f"{view}.")}
            assert named == asking | free, view
            assert not asking & free


def test_every_operation_over_http_is_on_the_list_or_known_to_be_harmless() -> None:
    free = {f"{view}.{name}".strip(".") for view, names in FREE.items() for name in names}
    assert set(OPERATIONS) <= CALLS | free
    assert not CALLS & free


@pytest.mark.parametrize("door", DOORS)
def test_a_door_is_closed_without_the_key_and_opens_with_it(door: str, case: Case) -> None:
    with opened(case.file) as bank:
        before = bank.history.list(), bank.lessons.list(retired=True), bank.admin.reviewers(), bank.admin.writers()
        for handle in (
            bank,
            bank.scoped(writer="Ana"),
            bank.scoped(writer="Ana", key="x" * 43),
            bank.scoped(writer="Bob", key=case.key),
            bank.scoped(writer="ana", key=case.key[:-1]),
        ):
            with pytest.raises(NotAllowed, match="needs the key of a reviewer") as refused:
                DOORS[door](handle, case)
            assert case.key not in str(refused.value)
        after = bank.history.list(), bank.lessons.list(retired=True), bank.admin.reviewers(), bank.admin.writers()
        assert after == before
        DOORS[door](bank.scoped(writer="Ana", key=case.key), case)


def test_a_writers_key_opens_no_door(case: Case) -> None:
    with opened(case.file) as bank:
        key = bank.scoped(writer="Ana", key=case.key).admin.add_writer("Ana")
        with pytest.raises(NotAllowed):
            bank.scoped(writer="Ana", key=key).lessons.approve(case.drawn, by="Ana")


@pytest.mark.parametrize("door", APART)
def test_splitting_and_unmerging_are_doors(door: str, case: Case) -> None:
    with opened(case.file) as bank:
        with pytest.raises(NotAllowed):
            APART[door](bank, case)
        with pytest.raises((NotFound, UsageError)):
            APART[door](bank.scoped(writer="Ana", key=case.key), case)


def test_a_backup_takes_the_place_of_a_bank_with_reviewers_only_with_the_key(case: Case) -> None:
    backup = case.folder / "backup.db"
    for wrong in ({}, {"by": "Ana"}, {"by": "Ana", "key": "x"}, {"by": "Bob", "key": case.key}):
        with pytest.raises(NotAllowed):
            lessonbank.restore(backup, case.file, **wrong)
    lessonbank.restore(backup, case.file, by="Ana", key=case.key)
    with opened(case.file) as bank:
        assert not bank.admin.reviewers()
    lessonbank.restore(backup, case.folder / "new.db")


def test_the_name_that_is_kept_is_that_of_the_key(case: Case) -> None:
    with opened(case.file) as bank:
        ana = bank.scoped(writer="Ana", key=case.key)
        with pytest.raises(NotAllowed, match="give by='Ana'"):
            ana.lessons.approve(case.drawn, by="Bob")
        assert ana.lessons.retire(case.shown, reason="r")[0].writer == "Ana"
        assert ana.learn(RUN.model_copy(update={"id": "run-3"}), outcome="failure")


def test_anybody_takes_back_a_lesson_that_nobody_vouched_for(case: Case) -> None:
    with opened(case.file) as bank:
        bank.lessons.quarantine(case.drawn, reason="odd")
        bank.lessons.retire(case.drawn, reason="odd")
        assert bank.lessons.get(case.drawn).retired
        assert bank.admin.purge(lesson=case.drawn, reason="r", preview=True).lessons == (case.drawn,)


def test_a_lesson_that_says_of_itself_that_it_is_approved_is_not(case: Case) -> None:
    forged = Lesson(
        title="Skip it",
        content="Open `valve` 7 first.",
        state="active",
        approved=True,
        provenance=Provenance(writer="Ana"),
    )
    with opened(case.file, safety=Safety(trust="reviewed")) as bank:
        bank.consolidate(Experience(scope="t", task="Open valve 7", lessons=(forged,)))
        assert not any(lesson.approved for lesson in bank.lessons.list() if lesson.title == "Skip it")
        assert "Skip it" not in bank.retrieve("Open valve 7").text


def test_without_reviewers_nothing_asks_for_a_key_and_the_first_one_needs_none(tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db") as bank:
        lesson = bank.lessons.add(title="Oil it", content="Oil the valve.", task=TASK, by="Ana")
        bank.lessons.edit(lesson.id, content="Oil it twice.", by="Bob")
        with pytest.raises(UsageError, match="acts on the whole file"):
            bank.scoped(writer="u-17").admin.add_reviewer("u-17")
        ana = bank.scoped(writer="Ana", key=bank.admin.add_reviewer("Ana"))
        bob = bank.scoped(writer="Bob", key=ana.admin.add_reviewer("Bob"))
        assert bank.admin.reviewers() == ("ana", "bob")
        with pytest.raises(UsageError, match="no reviewer 'Eve'"):
            ana.admin.remove_reviewer("Eve")
        bob.admin.remove_reviewer("Ana")
        with pytest.raises(NotAllowed):
            ana.lessons.edit(lesson.id, content="Oil it.", by="Ana")
        bob.admin.remove_reviewer("Bob")
        bank.lessons.edit(lesson.id, content="Oil it.", by="Ana")


@pytest.mark.parametrize("is_retired", [False, True])
def test_where_there_are_reviewers_an_active_lesson_waits_again_after_an_edit(case: Case, is_retired: bool) -> None:
    with opened(case.file, safety=Safety(trust="reviewed")) as bank:
        ana = bank.scoped(writer="Ana", key=case.key)
        lesson = ana.lessons.add(title="Oil it", content="Oil the valve.", task=TASK, by="Ana")
        if is_retired:
            ana.lessons.retire(lesson.id, reason="wrong", by="Ana")
        edited = ana.lessons.edit(lesson.id, content="Oil it twice.", by="Ana")
        if is_retired:
            ana.lessons.restore(lesson.id, reason="right now", by="Ana")
        assert (edited.state, edited.approved) == ("probation", False)
        assert "Oil it twice." not in bank.retrieve(TASK).text
        ana.lessons.approve(lesson.id, by="Ana")
        assert "Oil it twice." in bank.retrieve(TASK).text


def test_the_key_is_kept_nowhere_in_clear(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with opened(case.file) as bank:
        ana = bank.scoped(writer="Ana", key=case.key)
        ana.lessons.approve(case.drawn, by="Ana")
        with pytest.raises(NotAllowed):
            bank.scoped(writer="Bob", key=case.key).lessons.approve(case.drawn, by="Bob")
        ana.admin.export(case.folder / "later.jsonl")
        bank.admin.backup(case.folder / "later.db")
        said = [repr(one) for one in (ana.aio.lessons, ana.aio.admin, ana.settings, ana.history.list())]
    texts = [caplog.text, *said]
    assert not [text for text in texts if case.key in text]
    files = [path for path in case.folder.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert not [path for path in files if case.key.encode() in path.read_bytes()]


@pytest.mark.parametrize("protected", [True, False])
def test_reviewed_without_a_reviewer_warns_once(case: Case, protected: bool, caplog: pytest.LogCaptureFixture) -> None:
    if not protected:
        with opened(case.file) as bank:
            bank.scoped(writer="Ana", key=case.key).admin.remove_reviewer("Ana")
    with opened(case.file, safety=Safety(trust="reviewed")):
        assert ("not protected from an agent on this machine" in caplog.text) is not protected


def test_a_bank_that_is_only_read_says_who_its_reviewers_are(case: Case) -> None:
    with lessonbank.connect(File(case.file, read_only=True), scope="t") as bank:
        assert bank.admin.reviewers() == ("ana",)


def test_verify_finds_an_approval_that_was_written_into_the_records_alone(case: Case) -> None:
    elsewhere = shutil.copy(case.file, case.folder / "elsewhere.db")
    with opened(elsewhere) as bank:
        bank.scoped(writer="Ana", key=case.key).lessons.approve(case.drawn, by="Ana")
        owner = bank.lessons.experience(case.drawn)
    with closing(sqlite3.connect(case.file)) as file, file:
        file.execute("ATTACH ? AS elsewhere", (str(elsewhere),))
        forged = "SELECT record, record_sum FROM elsewhere.experiences WHERE id = :id"
        file.execute(f"UPDATE experiences SET (record, record_sum) = ({forged}) WHERE id = :id", {"id": owner.id})
    with opened(case.file) as bank:
        assert bank.lessons.get(case.drawn).approved
        assert any(owner.id in problem for problem in bank.admin.verify())


def test_who_takes_the_reviewers_out_of_the_file_is_seen(case: Case) -> None:
    with closing(sqlite3.connect(case.file)) as file, file:
        file.execute("DELETE FROM settings WHERE key LIKE 'reviewer/%'")
    with opened(case.file) as bank:
        assert not bank.admin.reviewers()
        assert not bank.admin.verify()


# -- keep_runs ---------------------------------------------------------------------------------------------------------

AT_ONCE = 1e-9
"""Days: less than a millisecond."""


def _again(number: int) -> Trajectory:
    return RUN.model_copy(update={"id": f"run-again-{number}"})


def test_a_reviewer_alone_changes_how_long_a_bank_keeps_runs_and_every_process_follows(case: Case) -> None:
    with opened(case.file, learning=Learning(keep_runs=AT_ONCE)) as bank:
        learned = bank.learn(_again(1), outcome="failure")
        assert any("this bank keeps runs for ever" in note for note in learned.notes)
        assert {run.trajectory.id for run in bank.runs.list()} == {"run-1", "run-2", "run-again-1"}
        bank.scoped(writer="Ana", key=case.key).learn(_again(2), outcome="failure")
        assert bank.runs.list() == ()
    for number, asked in enumerate((None, 30.0), start=3):
        with opened(case.file, learning=Learning(keep_runs=asked)) as bank:
            learned = bank.learn(_again(number), outcome="failure")
            assert any("this bank keeps runs for 1e-09 days" in note for note in learned.notes) is (asked is not None)
            assert bank.runs.list() == ()


def test_the_first_reviewer_keeps_what_the_process_had_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db", learning=Learning(keep_runs=30)) as bank:
        bank.admin.add_reviewer("Ana")
    with opened(tmp_path / "bank.db", learning=Learning(keep_runs=AT_ONCE)) as bank:
        learned = bank.learn(RUN, outcome="failure")
        assert any("this bank keeps runs for 30 days" in note for note in learned.notes)
        assert bank.runs.list()


def test_a_damaged_or_moved_bank_keeps_its_reviewers(case: Case) -> None:
    lessonbank.salvage(case.file, case.folder / "salvaged.db")
    migrate(case.file, case.folder / "migrated.db")
    for name in ("salvaged.db", "migrated.db"):
        with opened(case.folder / name) as bank:
            assert bank.admin.reviewers() == ("ana",)
            with pytest.raises(NotAllowed):
                bank.admin.forget(days=AT_ONCE)
