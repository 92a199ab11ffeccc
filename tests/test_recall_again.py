"""In the middle of a run an agent looks again, by where it stands: little, new, and measured apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Learning, Lesson, Parts, ReasoningBank, Safety, Step, Trajectory
from lessonbank.contracts.events import Settled
from lessonbank.contracts.records import RECALLS_AGAIN, Experience
from lessonbank.errors import NotFound, StoreUnavailable, UsageError
from lessonbank.evidence.ledger import Acted, Ledger
from lessonbank.importers import failure_of
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.text.rendering import estimate_tokens

TASK = "Ship parcel 7"
FAILED = "error: the customs form is missing"


def opened(where: Any = ":memory:", **settings: Any) -> ReasoningBank:
    settings.setdefault("evidence", Evidence(holdout=None))
    return lessonbank.connect(where, scope="acme", embedder="lexical", **settings)


def written(bank: ReasoningBank, title: str, task: str, content: str = "") -> Lesson:
    return bank.lessons.add(title=title, content=content or f"{title}, then go on.", task=task, by="Ana")


def failing(bank: ReasoningBank, **told: Any) -> str:
    """A run that fails at customs, looks again, and ends well where it was helped; the text."""
    with bank.attempt(TASK) as attempt:
        attempt.step("ship it", FAILED)
        text = attempt.recall_again(**told).text
        attempt.finish(outcome="success" if text else "failure")
    return text


def test_what_is_shown_fits_the_state_is_new_and_is_short() -> None:
    with opened() as bank:
        weigh = written(bank, "Weigh it", TASK)
        forms = [
            written(bank, f"Form {n}", f"customs form {n} is missing", "Fill in the customs form. " * 20)
            for n in range(9)
        ]
        with bank.attempt(TASK, limit=1) as attempt:
            assert attempt.lessons == (weigh,)
            seen = set[str]()
            for _ in range(3):
                again = attempt.recall_again(observation=FAILED, reason="stuck")
                assert 0 < estimate_tokens(again.text) <= 400
                shown = {lesson.id for lesson in again.shown}
                assert shown <= {form.id for form in forms}
                assert not shown & seen
                seen |= shown
            attempt.finish(outcome="success")


@pytest.mark.full
def test_each_reason_is_a_group_of_its_own_in_lift_and_takes_nothing_from_the_rest() -> None:
    with opened(evidence=Evidence(holdout=0.3), parts=Parts(extractor=no_lessons)) as bank:
        written(bank, "Weigh it", TASK)
        written(bank, "Fill in the form", "customs form is missing")
        for n in range(40):
            failing(bank, reason="error" if n % 2 else "stuck")
        lift = bank.lift()
        groups = {one.group: one for one in lift.groups if one.group.startswith("again/")}
        assert set(groups) == {"again/error", "again/stuck"}
        assert all(one.shown + one.withheld > 0 for one in groups.values())
        assert sum(one.shown + one.withheld for one in groups.values()) <= 40
        assert lift.recalls == lift.settled == 40
        assert {lesson.title for lesson in lift.lessons} == {"Weigh it"}
        assert "shown in the middle of a run: error" in str(lift)


async def no_lessons(attempts: Any, /) -> Any:
    from lessonbank import Extraction

    return Extraction()


no_lessons.asks_model = False  # type: ignore[attr-defined]


def test_an_outcome_that_is_told_later_settles_the_later_recalls_too() -> None:
    with opened() as bank:
        written(bank, "Weigh it", TASK)
        written(bank, "Fill in the form", "customs form is missing")
        with bank.attempt(TASK) as attempt:
            attempt.step("ship it", FAILED)
            again = attempt.recall_again()
            attempt.finish(wait=False)
        bank.drain()
        bank.tell(attempt.run_id, outcome="success")
        outcomes = {one.id: bank.recalls.explain(one.id).outcome for one in bank.recalls.list(settled=True)}
        assert outcomes[again.id] == outcomes[attempt.recall.id] == "success"


def test_a_run_settles_no_recalls_of_another_run() -> None:
    with opened() as bank:
        written(bank, "Weigh it", TASK)
        written(bank, "Fill in the form", "customs form is missing")
        with bank.attempt(TASK) as victim:
            again = victim.recall_again(observation=FAILED)
            run = Trajectory(task=TASK, steps=(Step(action="x"),), metadata={RECALLS_AGAIN: [again.id, 7, "nobody"]})
            bank.learn(run, recall=bank.retrieve(TASK), outcome="failure")
            assert again.id not in {one.id for one in bank.recalls.list(settled=True)}
            victim.finish(outcome="success")
        assert again.id in {one.id for one in bank.recalls.list(settled=True)}


def test_a_command_that_failed_before_gets_its_cure_and_with_cured_nothing_else() -> None:
    printed = "make: error: module billing is missing"
    with opened() as bank:
        written(bank, "Read the error", "module billing is missing")
        with bank.attempt("Fix it", limit=1) as attempt:
            attempt.step("make test", printed)
            assert not attempt.recall_again(cured=True).candidates
            known = failure_of("make test", printed)
            assert known
            lesson = replace(known, cure="make proto").lesson("run-1")
            cures = bank.scoped("acme/@cures")
            cures.consolidate(Experience(scope=cures.scope, task=known.key, lessons=(lesson,)))
            assert "`make proto` went through" in (told := attempt.recall_again(cured=True)).text
            assert not attempt.recall_again(cured=True).candidates
            attempt.finish(outcome="success")
        assert [one.id for one in cures.recalls.list(settled=True)] == [told.id]
        assert cures.lift().settled == 1


def test_metadata_of_the_callers_own_that_name_the_first_recall_are_left_out_with_a_note() -> None:
    with opened() as bank:
        written(bank, "Fill in the form", "customs form is missing")
        with bank.attempt(TASK, metadata={"after": "lunch", "user": "u-17"}) as attempt:
            attempt.step("ship", "error: customs form is missing")
            again = attempt.recall_again()
            assert attempt.recall.metadata == {"after": "lunch", "user": "u-17"}
            assert again.metadata == {"after": attempt.recall.id, "user": "u-17"}
            assert any("'after' is left out" in note for note in again.notes)


def cured(bank: ReasoningBank, command: str, run: str) -> str:
    """The task of a cure that an adapter drew from a run."""
    known = failure_of(command, "make: error: module billing is missing")
    assert known
    scope, lesson = "acme/@cures", replace(known, cure="make proto").lesson(run)
    bank.scoped(scope).consolidate(Experience(scope=scope, task=known.key, lessons=(lesson,)))
    return lesson.id


def told(bank: ReasoningBank, command: str, id: str, **metadata: Any) -> str:
    """A run that was shown a cure; the recall's id."""
    with bank.attempt("Fix it", limit=1, metadata=metadata) as attempt:
        attempt.step(command, "make: error: module billing is missing")
        again = attempt.recall_again(cured=True)
        run = Trajectory(id=id, task="Fix it", metadata={RECALLS_AGAIN: [again.id]})
        attempt.finish(run, outcome="success")
    return again.id


@pytest.mark.parametrize("named", [{"run": "run-1"}, {"metadata": {"user": "u-17"}}])
def test_a_run_goes_with_its_cures_and_what_was_told_of_cures_in_it(named: dict[str, Any]) -> None:
    with opened() as bank:
        cures = bank.scoped("acme/@cures")
        first, other = cured(bank, "make test", "run-1"), cured(bank, "make lint", "run-2")
        recall = told(bank, "make lint", "run-1", user="u-17")
        assert [one.id for one in cures.recalls.list()] == [recall]
        preview = bank.admin.purge(**named, reason="asked for", preview=True)
        assert preview.cures
        assert (preview.cures.lessons, preview.cures.recalls) == ((first,), (recall,))
        assert len(cures.lessons.list()) == 2
        bank.admin.purge(**named, reason="asked for", by="Ana")
        assert [one.id for one in cures.lessons.list()] == [other]
        assert cures.recalls.list() == ()
        bank.admin.purge(all=True, reason="asked for", by="Ana")
        assert cures.lessons.list() == ()
        assert bank.admin.verify() == ()


class LostOnce(SqliteStore):
    """A store that is lost at the second of its purges, once."""

    purges = 0

    async def purge(self, *args: Any, **options: Any) -> Any:
        self.purges += 1
        if self.purges == 2:
            raise StoreUnavailable("the disk is away")
        return await super().purge(*args, **options)


@pytest.mark.parametrize("named", [{"run": "run-1"}, {"metadata": {"user": "u-17"}}, {"all": True}])
def test_a_purge_that_breaks_off_can_be_called_again_and_leaves_no_cure(named: dict[str, Any]) -> None:
    with opened(LostOnce.in_memory()) as bank:
        cures, first = bank.scoped("acme/@cures"), cured(bank, "make test", "run-1")
        cured(bank, "make lint", "run-2")
        told(bank, "make lint", "run-1", user="u-17")
        with pytest.raises(StoreUnavailable):
            bank.admin.purge(**named, reason="asked for", by="Ana")
        bank.admin.purge(**named, reason="asked for", by="Ana")
        assert first not in [lesson.id for lesson in cures.lessons.list()]
        assert cures.recalls.list() == ()
        assert "run-1" not in [run.trajectory.id for run in bank.runs.list()]


def test_a_purge_with_an_unknown_id_erases_no_cure() -> None:
    with opened() as bank:
        cures, first = bank.scoped("acme/@cures"), cured(bank, "make test", "run-1")
        cured(bank, "make lint", "run-2")
        told(bank, "make lint", "run-1")
        with pytest.raises(NotFound):
            bank.admin.purge(run=["run-1", "nobody"], reason="asked for", by="Ana")
        assert first in [lesson.id for lesson in cures.lessons.list()]
        assert "run-1" in [run.trajectory.id for run in bank.runs.list()]


def test_old_recalls_of_cures_are_forgotten_with_those_of_their_scope() -> None:
    with opened() as bank:
        cured(bank, "make lint", "run-2")
        told(bank, "make lint", "run-1")
        (kept,) = bank.scoped("acme/@cures").recalls.list()
        assert kept.text
        bank.admin.forget(days=1e-9, by="Ana")
        (left,) = bank.scoped("acme/@cures").recalls.list()
        assert (left.text, left.metadata) == ("", {})


def test_a_second_look_never_breaks_the_agent(tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db") as bank, bank.attempt(TASK) as attempt:
        written(bank, "Fill in the form", "customs form is missing")

        async def broken(*_: Any, **__: Any) -> Any:
            raise StoreUnavailable("the disk is gone")

        attempt._attempt._bank.recall_again = broken  # type: ignore[attr-defined]
        again = attempt.recall_again(observation=FAILED)
        assert (again.text, again.kept) == ("", False)
        assert "the agent goes on without a second look" in attempt.notes[-1]
        attempt.finish(outcome="success")


def test_odd_calls_say_what_to_write_and_a_bank_that_is_off_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as bank:
        with pytest.raises(UsageError, match="one word in small letters"):
            bank.recall_again(FAILED, reason="Why not?")
        with pytest.raises(UsageError, match="step="):
            bank.recall_again(FAILED, step=-1)
        assert not bank.recall_again("").kept
    monkeypatch.setenv("LESSONBANK_OFF", "1")
    with opened() as bank:
        assert "off" in str(bank.recall_again(FAILED).notes)


@pytest.mark.parametrize("trust", ["open", "corroborated", "reviewed"])
def test_what_an_agent_notes_waits_for_a_person_under_every_policy(trust: Any, tmp_path: Path) -> None:
    with opened(tmp_path / "bank.db", safety=Safety(trust=trust), learning=Learning()) as bank:
        with bank.attempt(TASK) as attempt:
            attempt.step("ship it", FAILED)
            for n in range(5):
                attempt.note(f"The customs form is in drawer {n}.")
            attempt.finish(outcome="failure")
        noted = bank.lessons.list(state="quarantined")
        assert len(noted) == 3
        assert {lesson.provenance.trajectory_ids for lesson in noted} == {(attempt.run_id,)}
        assert "a run takes 3 notes" in attempt.notes[-1]
        bank.learn(Trajectory(task=TASK, steps=(Step(action="The customs form is in drawer 0."),)), outcome="success")
        for own in (False, True):
            assert "drawer" not in bank.retrieve(TASK, own=own, limit=9).text
            assert "drawer" not in bank.recall_again(FAILED, own=own, limit=9).text
        bank.admin.export(tmp_path / "CLAUDE.md", format="claude-md", all=True)
        assert "drawer" not in (tmp_path / "CLAUDE.md").read_text()
        bank.lessons.approve(noted[0].id, by="Ana")
        assert noted[0].content in bank.retrieve(TASK, limit=9).text
        bank.admin.purge(run=attempt.run_id, by="Ana", reason="asked")
        assert not [one for one in bank.lessons.list(limit=50) if "drawer" in one.content]


def test_a_note_holds_no_secret_and_no_token_and_the_inbox_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank.bank.views.lessons._MOST_WAITING", 2)
    with opened() as bank:
        key = "ghp" + "_" + "A1b2C3d4E5f6G7h8I9j0" * 2
        noted = bank.lessons.note(f"Log in with {key} <|im_end|>", task=TASK)
        assert key not in noted.text
        assert "<|im_end|>" not in noted.text
        bank.lessons.note("Another", task=TASK)
        with pytest.raises(UsageError, match="2 lessons wait"):
            bank.lessons.note("A third", task=TASK)


def test_a_run_that_looks_again_more_often_than_a_page_is_long_is_shown_nothing_twice_and_settles_every_look() -> None:
    with opened() as bank:
        forms = {written(bank, f"Form {n}", f"customs form {n} is missing").id for n in range(54)}
        first = bank.retrieve("Bake a cake")
        looks = [bank.recall_again(FAILED, recall=first, limit=1) for _ in range(55)]
        shown = [lesson.id for look in looks for lesson in look.shown]
        assert len(shown) == len(set(shown))
        assert set(shown) <= forms
        assert len(shown) > 51
        loose = bank.recall_again(FAILED)
        run = Trajectory(task=TASK, metadata={RECALLS_AGAIN: [one.id for one in (*looks, loose) if one.kept]})
        learned = bank.learn(run, recall=first, outcome="success")
        kept = {one.id for one in looks if one.kept}
        assert {one.id for one in bank.recalls.list(settled=True, limit=100)} - {first.id} == kept
        assert any(note.startswith("1 recall in the middle of the run") for note in learned.notes)


def test_what_came_next_is_searched_as_the_recall_was() -> None:
    with opened() as bank:
        tried = {written(bank, "Weigh it", TASK).id, written(bank, "Label it", "Ship parcel 8").id}
        written(bank, "Fill in the form", "customs form is missing")
        steps = (Step(action="print it", observation="error: no paper"), Step(action="fill it", observation="filled"))
        worked = (*steps, Step(action="print it", observation="printed"))
        learned = bank.learn(Trajectory(task=TASK, answer="sent", steps=worked), outcome="success")
        assert {lesson.state for lesson in learned.lessons} == {"probation"}
        first = bank.retrieve(TASK, trusted=True, limit=1)
        (shown,) = first.shown
        explained = bank.recalls.explain(first)
        assert {one.lesson_id for one in explained.losers} == tried - {shown.id}
        assert explained.notes == first.notes
        again = bank.recall_again(FAILED, recall=first, limit=1)
        assert again.shown
        assert shown.id not in {one.lesson_id for one in bank.recalls.explain(again).losers}


class BrokenOnce(SqliteStore):
    """A store whose next write fails, once, after that of an outcome."""

    is_armed = False

    async def apply(self, changes: Any, /, **told: Any) -> Any:
        if self.is_armed and not changes:
            self.is_armed = False
            raise StoreUnavailable("the disk is away")
        return await super().apply(changes, **told)


def test_a_run_is_learned_where_its_later_recalls_cannot_be_settled_and_told_again_they_are() -> None:
    store = BrokenOnce.in_memory()
    with opened(store) as bank:
        written(bank, "Fill in the form", "customs form is missing")
        first = bank.retrieve(TASK)
        again = bank.recall_again(FAILED, recall=first)
        run = Trajectory(task=TASK, steps=(Step(action="x"),), metadata={RECALLS_AGAIN: [again.id]})
        store.is_armed = True
        learned = bank.learn(run, recall=first, outcome="failure")
        assert learned.experience
        assert any("recalls in the middle of the run are not settled" in note for note in learned.notes)
        assert [one.id for one in bank.recalls.list(settled=True)] == [first.id]
        bank.learn(run, recall=first, outcome="failure")
        assert {one.id for one in bank.recalls.list(settled=True)} == {first.id, again.id}
        changes = bank.admin.counts().changes
        assert bank.learn(run, recall=first, outcome="failure").notes == ()
        assert bank.admin.counts().changes == changes


def test_hooks_hear_of_every_recall_that_a_run_settles_and_the_ledger_of_the_cures_looks() -> None:
    events, asked = list[Any](), list[str]()

    class Listening(Ledger):
        async def on_outcome(self, *, scope: str) -> Acted:
            asked.append(scope)
            return Acted()

    with opened(parts=Parts(hooks=[events.append])) as bank:
        bank.aio.parts = replace(bank.aio.parts, ledger=Listening())
        written(bank, "Fill in the form", "module billing is missing")
        cured(bank, "make test", "run-1")
        with bank.attempt(TASK) as attempt:
            attempt.step("make test", "make: error: module billing is missing")
            cure, again = attempt.recall_again(), attempt.recall_again(reason="stuck")
            attempt.finish(outcome="failure")
        settled = [event.settlement.recall_id for event in events if isinstance(event, Settled)]
        assert settled == [attempt.recall.id, again.id, cure.id]
        assert asked == ["acme", "acme", "acme/@cures"]
