"""Begin without risk (observe), stop at once (LESSONBANK_OFF), and forget runs after some days (keep_runs)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence, Learning, LessonbankError, Parts, ReasoningBank, Retrieval, Step, Trajectory
from lessonbank.errors import UsageError

TASK = "open the valve"
OFF = "memory is switched off (LESSONBANK_OFF)"


def run(n: int = 0) -> Trajectory:
    return Trajectory(id=f"run-{n}", task=TASK, steps=(Step(action="turn", observation="error: stuck"),))


# -- observe -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def observer() -> Iterator[ReasoningBank]:
    evidence = Evidence(holdout=0.5, observe=True)
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", evidence=evidence) as bank:
        yield bank


def test_a_bank_that_observes_learns_and_records_and_shows_nothing(observer: ReasoningBank) -> None:
    learned = observer.learn(run(), recall=observer.retrieve(TASK), outcome="failure")
    assert learned.lessons
    recall = observer.retrieve(TASK)
    assert (recall.text, recall.shown, recall.withheld) == ("", (), ())
    assert [candidate.lesson_id for candidate in recall.candidates] == [lesson.id for lesson in learned.lessons]
    assert any("only observes" in note for note in recall.notes)
    assert recall.kept
    assert observer.recalls.get(recall.id).text == ""
    assert observer.recalls.list(lesson=learned.lessons[0].id) == ()
    assert observer.settings["observe"] is True


@pytest.mark.full
def test_what_was_only_observed_is_no_draw_of_the_experiment(observer: ReasoningBank) -> None:
    observer.learn(run(), outcome="failure")
    for n in range(1, 13):
        observer.learn(run(n), recall=observer.retrieve(TASK), outcome="success" if n % 2 else "failure")
    lift = observer.lift()
    assert observer.admin.counts().recalls_with_a_run == 12
    assert lift.controls == 0
    assert (lift.success.value, lift.standing) == (None, "no evidence yet")
    assert all((lesson.shown, lesson.withheld) == (0, 0) for lesson in lift.lessons)
    assert not any(recall.control or recall.withheld for recall in observer.recalls.list())
    assert not any(c.probability for recall in observer.recalls.list() for c in recall.candidates)


def test_what_was_learned_under_observation_is_shown_once_the_bank_no_longer_observes(tmp_path: Path) -> None:
    for observe in (True, False):
        evidence = Evidence(holdout=None, observe=observe)
        with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical", evidence=evidence) as bank:
            learned = bank.learn(run(), outcome="failure") if observe else learned  # noqa: F821
            assert bool(bank.retrieve(TASK).text) is not observe
    assert learned.lessons


# -- off ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReasoningBank]:
    """A bank whose memory is switched off; its parts may not be asked."""

    async def never(*_: Any) -> Any:
        raise AssertionError("a part was asked although memory is switched off")

    monkeypatch.setenv("LESSONBANK_OFF", "1")
    parts = Parts(judge=never, extractor=never, consolidator=never, retriever=Never(), hooks=[told])
    with lessonbank.connect(tmp_path / "bank.db", scope="t", model="openai:gpt-5-mini", parts=parts) as bank:
        yield bank
    assert list(tmp_path.iterdir()) == []


class Never:
    """A retriever that may not be asked."""

    name, space = "never", None

    async def __call__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the retriever was asked although memory is switched off")

    async def index(self, *_: Any, **__: Any) -> Any:
        return {}

    async def catch_up(self, **_: Any) -> int:
        return 0


def told(event: Any) -> None:
    raise AssertionError("a hook was called although memory is switched off")


@pytest.mark.parametrize(
    "settings",
    [
        {"retrieval": "dense", "embedder": "hashing"},
        {"retrieval": "hybrid", "embedder": "hashing"},
        {"retrieval": Retrieval(level="lesson"), "embedder": "hashing"},
        {"retrieval": Retrieval(fit="select"), "model": str},
        {"learning": Learning(topics="model"), "model": str},
    ],
)
def test_where_memory_is_off_no_setting_asks_for_a_model_or_an_embedder(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONBANK_OFF", "1")
    with lessonbank.connect(":memory:", scope="t", **settings) as bank:
        assert OFF in bank.retrieve(TASK).notes[0]


def test_where_memory_is_off_retrieve_learn_and_submit_do_nothing_and_say_so(off: ReasoningBank) -> None:
    recall = off.retrieve(TASK)
    assert (recall.text, recall.kept) == ("", False)
    assert OFF in recall.notes[0]
    learned = off.learn(run(), recall=recall, outcome="failure")
    assert (learned.lessons, learned.experience) == ((), None)
    assert OFF in learned.notes[0]
    assert off.submit(run(), recall=recall, outcome="failure") == ()
    assert off.admin.counts().trajectories == 0


def test_where_memory_is_off_messages_that_cannot_be_read_break_nothing(off: ReasoningBank) -> None:
    assert OFF in off.learn(object(), outcome="failure").notes[0]
    assert off.submit(object()) == ()
    assert OFF in off.learn([{"odd": 1}], recall="unknown").notes[0]


def test_where_memory_is_off_an_attempt_runs_the_agent_and_keeps_nothing(off: ReasoningBank) -> None:
    for wait in (True, False):
        with off.attempt(TASK) as attempt:
            assert attempt.text == ""
            attempt.step("turn", "open")
            learned = attempt.finish([{"role": "assistant", "content": "done"}], outcome="success", wait=wait)
        assert any(OFF in note for note in attempt.notes)
        assert any(OFF in note for note in learned.notes)
    with pytest.raises(ZeroDivisionError), off.attempt(TASK):
        1 / 0  # noqa: B018
    with off.attempt(TASK):
        pass
    assert off.admin.counts().trajectories == 0


def test_where_memory_is_off_scale_runs_the_agent_and_learns_nothing(off: ReasoningBank) -> None:
    seen = list[str]()

    def agent(task: str, memory: str) -> Trajectory:
        seen.append(memory)
        return Trajectory(task=task, answer="done")

    scaled = off.scale(TASK, agent, k=2, verify=lambda _: True, choose="verdicts")
    assert seen == ["", ""]
    assert any(OFF in note for note in scaled.notes)


def test_where_memory_is_off_judging_extracting_and_consolidating_ask_nobody(off: ReasoningBank) -> None:
    verdict = off.judge(run())
    assert (verdict.outcome, OFF in verdict.reason) == ("unknown", True)
    assert off.judge(run(), outcome="success").outcome == "success"
    assert OFF in off.extract([lessonbank.Run(trajectory=run(), verdict=verdict)]).notes[0]
    assert off.consolidate(lessonbank.Experience(scope="t", task=TASK)) == ()
    assert OFF in off.lift().notes[-1]


def test_where_memory_is_off_what_a_person_writes_is_not_kept_and_the_log_says_so(
    off: ReasoningBank, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lessonbank"):
        lesson = off.lessons.add(title="Ask", content="Ask for the number.", task=TASK, by="Ana")
    assert any(OFF in record.getMessage() for record in caplog.records)
    assert lesson.title == "Ask"
    assert off.lessons.list() == off.runs.list() == off.recalls.list() == off.history.list() == ()
    for change in (off.lessons.retire, off.lessons.restore, off.lessons.quarantine):
        assert change(lesson.id, reason="no", by="Ana") == ()
    assert off.lessons.approve(lesson.id, by="Ana") == ()
    assert off.runs.retry() == ()
    assert off.scoped("other", writer="u-1").lessons.list() == ()


@pytest.mark.parametrize(
    "call",
    [
        lambda bank: bank.lessons.get("x"),
        lambda bank: bank.lessons.edit("x", title="y", by="Ana"),
        lambda bank: bank.runs.get("x"),
        lambda bank: bank.runs.correct("x", outcome="success", by="Ana"),
        lambda bank: bank.recalls.get("x"),
        lambda bank: bank.recalls.explain("x"),
        lambda bank: bank.history.rollback(to=0, reason="no", by="Ana"),
    ],
)
def test_where_memory_is_off_what_cannot_be_answered_says_why(
    off: ReasoningBank, call: Callable[[ReasoningBank], object]
) -> None:
    with pytest.raises(LessonbankError) as raised:
        call(off)
    assert OFF in str(raised.value)


def test_where_memory_is_off_an_export_does_not_overwrite_a_good_one(off: ReasoningBank, tmp_path: Path) -> None:
    good = tmp_path / "export.jsonl"
    good.write_text("what was exported yesterday")
    assert off.admin.export(good) == 0
    off.admin.backup(good)
    assert off.admin.import_(good) == 0
    assert off.admin.purge(all=True, reason="no").empty
    assert good.read_text() == "what was exported yesterday"
    good.unlink()


def test_where_memory_is_off_the_log_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LESSONBANK_OFF", "1")
    with caplog.at_level(logging.WARNING, "lessonbank"):
        bank = lessonbank.connect(tmp_path / "no" / "such" / "folder" / "bank.db", scope="t", model="openai:x")
    assert OFF in caplog.records[0].getMessage()
    assert OFF in str(bank.settings["off"])
    bank.close()


@pytest.mark.parametrize("value", ["", "0", "false", "no", " No "])
def test_a_switch_that_says_no_leaves_memory_on(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("LESSONBANK_OFF", value)
    with lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank:
        assert bank.learn(run(), outcome="failure").lessons


# -- keep_runs ---------------------------------------------------------------------------------------------------------

AT_ONCE = 1e-9
"""Days: less than a millisecond, so that whatever is there is old."""


def test_old_runs_and_recalls_are_erased_and_lessons_counts_and_evidence_stay() -> None:
    evidence = Evidence(holdout=None)
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", evidence=evidence) as bank:
        learned = bank.learn(run(), outcome="failure")
        for n in range(1, 5):
            bank.learn(run(n), recall=bank.retrieve(TASK, metadata={"user": "u-1"}), outcome="success")
        unsettled = bank.retrieve(TASK)
        before = [(one.lesson_id, one.shown, one.withheld) for one in bank.lift().lessons]
        assert any(shown for _, shown, _ in before)
        forgotten = bank.admin.forget(days=AT_ONCE)
        assert (forgotten.runs, forgotten.recalls) == (5, 5)
        assert bank.runs.list() == ()
        assert bank.runs.search(metadata={"user": "u-1"}) == ()
        assert bank.recalls.search(metadata={"user": "u-1"}) == ()
        assert unsettled.id not in [recall.id for recall in bank.recalls.list()]
        assert all(TASK not in recall.task and recall.text == "" for recall in bank.recalls.list())
        assert learned.lessons[0] in bank.lessons.list(limit=500)
        assert bank.admin.counts().experiences == 5
        assert [(one.lesson_id, one.shown, one.withheld) for one in bank.lift().lessons] == before
        assert bank.retrieve(TASK).shown
        assert bank.admin.verify() == ()


def test_a_bank_that_keeps_runs_for_some_days_erases_older_ones_after_a_lesson(tmp_path: Path) -> None:
    where, learning = tmp_path / "bank.db", Learning(keep_runs=AT_ONCE)
    with lessonbank.connect(where, scope="t", embedder="lexical") as bank:
        bank.learn(run(), outcome="failure")
        bank.learn(run(9))
    with lessonbank.connect(where, scope="t", embedder="lexical", learning=learning) as bank:
        assert len(bank.runs.list()) == 2
        learned = bank.learn(run(1), outcome="failure")
        assert all(note.startswith("taught again") for note in learned.notes)  # nothing is said of what is forgotten
        assert bank.runs.list() == ()
        assert bank.runs.pending() == ()
        assert bank.admin.counts().experiences == 2 + 1
        assert bank.history.list()[-1].entry.kind == "forgotten"


def test_runs_that_are_young_enough_are_kept() -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", learning=Learning(keep_runs=30)) as bank:
        bank.learn(run(), recall=bank.retrieve(TASK), outcome="failure")
        assert len(bank.runs.list()) == 1
        assert len(bank.recalls.list()) == 1


@pytest.mark.parametrize("days", [0, -1, True, "30", float("nan")])
def test_a_number_of_days_that_cannot_be_is_refused(days: Any) -> None:
    with pytest.raises(UsageError, match="keep_runs"):
        Learning(keep_runs=days)
    bank = lessonbank.connect(":memory:", scope="t", embedder="lexical")
    with bank, pytest.raises(UsageError, match="days"):
        bank.admin.forget(days=days)
