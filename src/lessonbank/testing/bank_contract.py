"""What every bank does, wherever its records lie: the loop and each view, through the public methods alone.

Subclass `BankContract`, say how a bank is made, and run it with pytest.
"""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Experience, Lesson, Recall, Step, Trajectory
from lessonbank.contracts.settings import Evidence
from lessonbank.errors import Conflict, FormatError, NotFound, UsageError

SCOPE: Final = "acme/support"
SETTINGS: Final[dict[str, Any]] = {"embedder": "lexical", "evidence": Evidence(holdout=None)}
"""How the bank is connected, or the one that a server serves."""
_TASK: Final = "Ship parcel 7"


class BankContract:
    """Every bank passes these tests."""

    @abstractmethod
    def make(self, folder: Path, /) -> ReasoningBank:
        """A bank without records, in `SCOPE` and connected with `SETTINGS`; files may lie in `folder`."""

    @pytest.fixture
    def bank(self, tmp_path: Path) -> Generator[ReasoningBank]:
        with self.make(tmp_path) as bank:
            yield bank

    # -- the loop -----------------------------------------------------------------------------------------------------

    def test_what_a_run_taught_is_shown_for_the_next_task(self, bank: ReasoningBank) -> None:
        lesson = _taught(bank)
        recall = bank.retrieve(_TASK, metadata={"user": "u-17"})
        assert recall.shown == (lesson,)
        assert lesson.content in recall.text
        assert recall.kept
        learned = bank.learn(_run("run-8"), recall=recall, outcome="success", metadata={"user": "u-17"})
        assert learned.verdicts[0].source == "ground_truth"
        assert bank.runs.get("run-8").recall_id == recall.id
        assert [receipt.id for receipt in bank.recalls.list(settled=True, metadata={"user": "u-17"})] == [recall.id]

    def test_messages_are_read_and_a_recall_can_be_named_by_its_id(self, bank: ReasoningBank) -> None:
        recall = bank.retrieve(_TASK)
        bank.learn([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "done"}], recall=recall.id)
        assert [run.trajectory.task for run in bank.runs.list()] == [_TASK]
        with pytest.raises(FormatError):
            bank.learn([object()])
        with pytest.raises(NotFound):
            bank.learn(_run(), recall="nobody")

    def test_several_runs_of_a_task_have_truths_of_their_own(self, bank: ReasoningBank) -> None:
        learned = bank.learn([_run("run-1"), _run("run-2")], outcome=["success", "failure"])
        assert [verdict.outcome for verdict in learned.verdicts] == ["success", "failure"]
        assert bank.learn(_run("run-1"), outcome="success").known == ("run-1",)

    def test_what_is_submitted_is_learned_in_the_background(self, bank: ReasoningBank) -> None:
        ids = bank.submit(_run(), outcome="success", metadata={"user": "u-17"})
        bank.drain()
        assert ids == ("run-7",)
        assert bank.runs.get("run-7").status == "learned"
        assert bank.runs.get("run-7").metadata == bank.runs.list(metadata={"user": "u-17"})[0].metadata

    def test_an_attempt_recalls_on_entry_and_learns_on_exit(self, bank: ReasoningBank) -> None:
        lesson = _taught(bank)
        with bank.attempt(_TASK) as attempt:
            assert attempt.lessons == (lesson,)
            attempt.step("print label 7", "printed")
            attempt.finish(answer="shipped", outcome="success")
        assert attempt.learned is not None
        assert attempt.learned.verdicts[0].outcome == "success"
        with pytest.raises(ZeroDivisionError):
            _crash(bank)
        assert bank.runs.list()[0].verdict.source == "framework_error"
        with bank.attempt(_TASK) as left:
            left.step("print label 7")
        assert bank.runs.list(status="unfinished")

    def test_steps_can_be_taken_one_by_one(self, bank: ReasoningBank) -> None:
        assert bank.judge(_run(), outcome="failure").outcome == "failure"
        bank.learn(_run(), outcome="success")
        assert bank.extract(bank.runs.list()).lessons
        own = Experience(scope=SCOPE, task="Weigh a parcel", lessons=(_lesson("Weigh it twice"),))
        assert bank.consolidate(own, dry_run=True)
        assert not bank.lessons.search("Weigh")
        assert bank.consolidate(own)[0].kind == "add"
        assert bank.lessons.search("weigh twice")

    def test_a_task_is_scaled(self, bank: ReasoningBank) -> None:
        scaled = bank.scale(_TASK, _agent, k=2, verify=lambda run: True)
        assert [run.verdict.outcome for run in scaled.attempts] == ["success", "success"]
        assert len(bank.runs.list()) == 2

    def test_the_evidence_counts_settled_recalls(self, bank: ReasoningBank) -> None:
        _taught(bank)
        bank.learn(_run("run-8"), recall=bank.retrieve(_TASK), outcome="success")
        assert bank.lift(level=0.9).model_dump_json()
        assert "Does memory help?" in str(bank.lift())
        with pytest.raises(UsageError):
            bank.lift(level=2)

    # -- lessons ------------------------------------------------------------------------------------------------------

    def test_a_person_writes_edits_narrows_and_hides_lessons(self, bank: ReasoningBank) -> None:
        lesson = bank.lessons.add(
            title="Weigh", content="Weigh it first.", task=_TASK, by="Ana", metadata={"user": "u"}
        )
        other = bank.lessons.add(title="Ask", content="Ask for the form.", task=_TASK, by="Ana", metadata={"user": "u"})
        assert lesson.state == "active"
        assert bank.lessons.get(lesson.id) == lesson
        assert bank.lessons.experience(lesson.id).task == _TASK
        edited = bank.lessons.edit(lesson.id, by="Ana", content="Weigh it twice.", reason="clearer")
        assert edited.content == "Weigh it twice."
        assert edited.id == lesson.id
        assert bank.lessons.narrow(lesson.id, to=["ship parcel"], by="Ana").only_for_tasks
        assert bank.lessons.quarantine(lesson.id, reason="odd", by="Ana")[0].writer == "Ana"
        assert [shown.id for shown in bank.lessons.list(state="quarantined", metadata={"user": "u"})] == [lesson.id]
        bank.lessons.approve(lesson.id, by="Ana")
        bank.lessons.retire(lesson.id, reason="old", by="Ana")
        assert bank.lessons.list() == (other,)
        assert {shown.id for shown in bank.lessons.list(retired=True) if shown.retired} == {lesson.id}
        bank.lessons.restore(lesson.id, reason="new", by="Ana")
        assert not bank.lessons.get(lesson.id).retired
        with pytest.raises(Conflict):
            bank.lessons.restore(lesson.id, reason="again", by="Ana")
        kinds = [entry.entry.kind for entry in bank.history.list(lesson=lesson.id)]
        assert kinds == ["add", "trust", "edit", "trust", "edit", "trust", "trust", "retire", "restore"]

    def test_what_an_agent_notes_is_shown_to_nobody_before_a_person_approves_it(self, bank: ReasoningBank) -> None:
        noted = bank.lessons.note("Weigh it twice.", task=_TASK, run="run-1", metadata={"user": "u"})
        assert (noted.state, noted.provenance.trajectory_ids) == ("quarantined", ("run-1",))
        assert bank.lessons.list(state="quarantined", metadata={"user": "u"}) == (noted,)
        assert bank.retrieve(_TASK).text == ""
        bank.lessons.approve(noted.id, by="Ana")
        assert "Weigh it twice." in bank.retrieve(_TASK).text
        with pytest.raises(Conflict):
            bank.lessons.note("Weigh it twice.", task=_TASK)

    def test_a_second_look_in_a_run_shows_only_what_is_new_and_is_settled_with_the_run(
        self, bank: ReasoningBank
    ) -> None:
        first = bank.lessons.add(title="Weigh", content="Weigh it first.", task=_TASK, by="Ana")
        other = bank.lessons.add(title="Ask", content="Ask for the form.", task="customs form missing", by="Ana")
        with bank.attempt(_TASK, limit=1, metadata={"user": "u"}) as attempt:
            assert attempt.lessons == (first,)
            attempt.step("ship it", "error: the customs form is missing")
            again = attempt.recall_again()
            assert again.shown == (other,)
            assert (again.kept, again.step) == (True, 1)
            assert attempt.recall_again(reason="stuck").text == ""
            attempt.finish(outcome="success")
        settled = bank.recalls.list(settled=True, metadata={"user": "u"})
        assert {receipt.id for receipt in settled} == {attempt.recall.id, again.id}

    def test_two_lessons_are_merged_and_unmerged(self, bank: ReasoningBank) -> None:
        first = bank.lessons.add(title="Weigh", content="Weigh it first.", task=_TASK, by="Ana")
        other = bank.lessons.add(title="Weigh it", content="Weigh it once.", task=_TASK, by="Ana")
        merged = bank.lessons.merge(first.id, other.id, title="Weigh", content="Weigh it once, first.", by="Ana")
        assert bank.lessons.list() == (merged,)
        assert set(bank.history.lineage(merged.id).sources) == {first.id, other.id}
        with pytest.raises(UsageError):
            bank.lessons.merge(merged.id, title="Weigh", content="Weigh it.", by="Ana")
        assert bank.lessons.unmerge(merged.id, reason="they differ", by="Ana") == (first, other)
        assert sorted(shown.id for shown in bank.lessons.list()) == sorted((first.id, other.id))

    def test_topics_proposals_and_repeats_are_told(self, bank: ReasoningBank) -> None:
        lesson = _taught(bank)
        assert bank.lessons.proposals() == ()
        assert isinstance(bank.lessons.topics(), dict)
        bank.learn(_run("run-9"), outcome="success")
        repeats = bank.lessons.repeats(lesson.id)
        assert [run.trajectory_id for repeat in repeats for run in repeat.runs] == ["run-9"]
        with pytest.raises(UsageError):
            bank.lessons.split(lesson.id, repeats[0].experience_id, reason="not the same", by="Ana")

    def test_ids_of_any_form_are_found(self, bank: ReasoningBank) -> None:
        for id in ("a/b", "..", "a?b#c", "50%", "%2F", "ß é", "search"):
            bank.learn(_run(id), outcome="failure")
            assert bank.runs.get(id).trajectory.id == id
        assert bank.runs.correct("a/b", outcome="success", by="Ana", reason="it was").known == ("a/b",)

    # -- runs, recalls, history ---------------------------------------------------------------------------------------

    def test_runs_wait_are_corrected_and_tried_again(self, bank: ReasoningBank) -> None:
        bank.learn(_run())
        assert [run.id for run in bank.runs.pending()] == ["run-7"]
        assert bank.runs.retry(limit=5)[0].verdicts[0].outcome == "unknown"
        learned = bank.runs.correct("run-7", outcome="failure", by="Ana", reason="it never left")
        assert learned.verdicts[0].reason == "Ana: it never left"
        assert bank.runs.list(outcome="failure", text="label") == bank.runs.search("label")
        assert bank.runs.unlabelled() == bank.runs.audit(3) == ()

    def test_a_person_tries_a_task_with_other_settings_and_no_receipt_is_kept(self, bank: ReasoningBank) -> None:
        lesson = _taught(bank)
        count = len(bank.recalls.list())
        preview = bank.recalls.preview(_TASK, limit=1, by="lexical", budget=400, floor=0, preface="Hints of old.")
        assert preview.shown == (lesson,)
        assert "Hints of old." in preview.text
        assert not bank.recalls.preview(_TASK, trust="reviewed").shown
        with pytest.raises(UsageError, match="budget="):
            bank.recalls.preview(_TASK, budget=1)
        assert len(bank.recalls.list()) == count

    def test_a_recall_is_explained(self, bank: ReasoningBank) -> None:
        lesson = _taught(bank)
        recall = bank.retrieve(_TASK)
        assert bank.recalls.get(recall.id).candidates == recall.candidates
        assert lesson.title in str(bank.recalls.explain(recall.id))
        assert bank.recalls.explain(recall) == bank.recalls.explain(recall.id)
        assert bank.recalls.search("parcel") == bank.recalls.list(lesson=lesson.id)

    def test_an_earlier_moment_is_seen_compared_and_brought_back(self, bank: ReasoningBank) -> None:
        lesson = _taught(bank)
        before = bank.history.list()[-1]
        bank.lessons.retire(lesson.id, reason="wrong", by="Ana")
        assert bank.history.state(before.at).lessons()
        assert bank.history.state(before.sequence).lessons()
        assert bank.history.diff(before.sequence, before.sequence + 1).model_dump_json()
        assert bank.history.retrieve(_TASK, at=before.at).matches
        assert bank.history.lineage(lesson.id).model_dump_json()
        entry = bank.history.rollback(to=before.sequence, reason="a mistake", by="Ana")
        assert entry.writer == "Ana"
        assert not bank.lessons.get(lesson.id).retired
        with pytest.raises(NotFound):
            bank.history.state(99)

    # -- admin --------------------------------------------------------------------------------------------------------

    def test_a_scope_is_exported_purged_and_imported(self, bank: ReasoningBank, tmp_path: Path) -> None:
        lesson = _taught(bank)
        assert bank.admin.export(tmp_path / "bank.jsonl") == 2
        assert bank.admin.purge(run="run-7", reason="asked", preview=True).lessons == (lesson.id,)
        several = bank.admin.purge(run=("run-7",), lesson=[lesson.id], reason="asked", preview=True)
        assert (several.runs, several.lessons) == (("run-7",), (lesson.id,))
        with pytest.raises(NotFound):
            bank.admin.purge(run=["run-7", "run-8"], reason="asked", by="Ana")
        assert bank.runs.get("run-7")
        assert bank.admin.purge(all=True, reason="asked", by="Ana").whole_scope
        assert bank.admin.counts().lessons == 0
        assert bank.history.list()
        assert bank.admin.import_(tmp_path / "bank.jsonl") > 0
        assert bank.admin.import_(tmp_path / "bank.jsonl") == 0
        assert bank.admin.counts().lessons == 1
        with pytest.raises(UsageError):
            bank.admin.import_(tmp_path / "nothing.jsonl")

    def test_the_owner_looks_after_the_bank(self, bank: ReasoningBank) -> None:
        _taught(bank)
        done = list[int]()
        assert bank.admin.reindex(progress=done.append) >= 0
        assert bank.admin.unembedded() == ()
        assert bank.admin.scopes() == (SCOPE,)
        assert bank.admin.verify() == ()
        assert bank.admin.storage()
        bank.admin.rebuild()
        assert bank.admin.forget(days=1).before
        key = bank.admin.add_writer("u-17")
        assert key
        assert bank.admin.writers() == ("u-17",)
        bank.scoped(writer="u-17", key=key).learn(_run("run-8"), outcome="success")
        bank.admin.remove_writer("u-17")
        with pytest.raises(UsageError, match="not the key"):
            bank.scoped(writer="u-17", key=key).learn(_run("run-9"), outcome="success")

    def test_a_reviewer_decides_from_the_first_one_on(self, bank: ReasoningBank) -> None:
        lesson, key = _taught(bank), bank.admin.add_reviewer("Ana")
        with pytest.raises(UsageError, match="reviewer"):
            bank.lessons.approve(lesson.id, by="Ana")
        bank.scoped(writer="Ana", key=key).lessons.approve(lesson.id, by="Ana")
        assert bank.lessons.get(lesson.id).approved
        assert bank.admin.reviewers() == ("ana",)
        bank.scoped(writer="Ana", key=key).admin.remove_reviewer("Ana")
        assert bank.admin.reviewers() == ()

    # -- handles ------------------------------------------------------------------------------------------------------

    def test_a_handle_acts_in_its_scope_under_its_name(self, bank: ReasoningBank) -> None:
        lesson = _taught(bank)
        other = bank.scoped(f"{SCOPE}/team", writer="u-18")
        assert (other.scope, other.writer) == (f"{SCOPE}/team", "u-18")
        assert other.retrieve(_TASK).shown == ()
        with pytest.raises(NotFound):
            other.lessons.get(lesson.id)
        other.learn(_run(), outcome="success")
        assert {entry.writer for entry in other.history.list()} == {"u-18"}
        assert bank.settings["scope"] == SCOPE
        for scope in ("", "../x", "a//b"):
            with pytest.raises(UsageError):
                bank.scoped(scope)

    def test_the_bank_is_used_from_threads_and_loops(self, bank: ReasoningBank) -> None:
        _taught(bank)
        recalls = list[Recall]()
        threads = [threading.Thread(target=lambda: recalls.append(bank.retrieve(_TASK))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({recall.id for recall in recalls}) == 4
        assert asyncio.run(bank.aio.retrieve(_TASK)).shown == recalls[0].shown

    def test_wrong_arguments_are_refused_in_one_sentence(self, bank: ReasoningBank) -> None:
        any_bank: Any = bank
        wrong = [
            lambda: any_bank.retrieve(" "),
            lambda: any_bank.retrieve(_TASK, limit=0),
            lambda: any_bank.retrieve(_TASK, metadata={"x": object()}),
            lambda: any_bank.learn(_run(), outcome="sucess"),
            lambda: any_bank.learn(_run(), reward="1"),
            lambda: any_bank.lessons.list(limit="5"),
            lambda: any_bank.lessons.get(""),
            lambda: any_bank.lessons.approve(by="Ana"),
            lambda: any_bank.admin.purge(reason="why"),
            lambda: any_bank.history.state(-1),
        ]
        for call in wrong:
            with pytest.raises(UsageError) as caught:
                call()
            assert "\n" not in str(caught.value)
            assert len(str(caught.value)) <= 500
        with pytest.raises(TypeError):
            any_bank.retrieve()


def _run(id: str = "run-7") -> Trajectory:
    step = Step(action="print label 7", observation="the customs field is empty: fill it in before you print")
    return Trajectory(id=id, task=_TASK, steps=(step, Step(action="fill the customs field", observation="ok")))


def _crash(bank: ReasoningBank) -> None:
    with bank.attempt(_TASK) as attempt:
        attempt.step("divide", "boom")
        raise ZeroDivisionError


def _agent(task: str, memory: str) -> str:
    return f"{task}: done, with {len(memory)} characters of memory"


def _lesson(title: str) -> Lesson:
    return Lesson(title=title, content="A scale that moved shows another weight, so weigh a parcel twice.")


def _taught(bank: ReasoningBank) -> Lesson:
    """Teach a bank, and return its only lesson."""
    bank.learn(_run(), outcome="success")
    (lesson,) = bank.lessons.list()
    return lesson
