"""The five views of a bank: the same calls on both banks and both stores."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

import lessonbank
from lessonbank import Evidence, Extraction, Lesson, Parts, ReasoningBank, Server, Step, Trajectory
from lessonbank.bank.views import AsyncAdmin, AsyncHistory, AsyncLessons, AsyncRecalls, AsyncRuns
from lessonbank.contracts.records import Run
from lessonbank.errors import NotFound, UsageError

pytestmark = pytest.mark.full

VIEWS = (AsyncLessons, AsyncRuns, AsyncRecalls, AsyncHistory, AsyncAdmin)


class Awaited:
    """An async bank, or a view of one, whose calls are awaited in another thread."""

    def __init__(self, of: Any, portal: BlockingPortal) -> None:
        self._of, self._portal = of, portal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if name == "scoped":
            return lambda *args, **named: Awaited(found(*args, **named), self._portal)
        if isinstance(found, VIEWS):
            return Awaited(found, self._portal)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *args, **named: self._portal.call(lambda: found(*args, **named))


async def teaching(attempts: Any) -> Extraction:
    """One lesson for each run, of its own."""
    run: Trajectory = attempts[0].trajectory
    kind = "strategy" if attempts[0].verdict.outcome == "success" else "guardrail"
    text = f"Fill customs field {run.metadata['n']} before the parcel label is printed."
    return Extraction(lessons=(Lesson(title=f"Customs field {run.metadata['n']}", content=text, kind=kind),))


@contextmanager
def served(open_bank: Any, *, scope: str) -> Iterator[ReasoningBank]:
    """A bank over HTTP, whose server listens on this machine."""
    pytest.importorskip("fastapi", reason="needs the extra server")
    from lessonbank.http.service.serving import running

    with running(open_bank) as server:
        key = server.key("learn", scope="", role="admin")
        with lessonbank.connect(Server(server.url, api_key=key), scope=scope) as bank:
            yield bank


@contextmanager
def opened(kind: str, where: str) -> Iterator[Any]:
    told: dict[str, Any] = {
        "scope": "acme/a",
        "embedder": "lexical",
        "evidence": Evidence(holdout=None),
        "parts": Parts(extractor=teaching),
    }
    if kind == "waiting":
        with lessonbank.connect(where, **told) as bank:
            yield bank
        return
    if kind == "served":
        with served(partial(lessonbank.connect_async, where, **told), scope="acme/a") as bank:
            yield bank
        return
    with start_blocking_portal() as portal:
        bank = portal.call(lambda: lessonbank.connect_async(where, **told))
        yield Awaited(bank, portal)
        portal.call(bank.close)


@pytest.fixture(
    params=[
        "waiting, in memory",
        "async, in a file",
        pytest.param("waiting, in a file", marks=pytest.mark.full),
        pytest.param("async, in memory", marks=pytest.mark.full),
        pytest.param("served, in a file", marks=pytest.mark.full),
    ]
)
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    kind, place = request.param.split(", in ")
    with opened(kind, ":memory:" if place == "memory" else str(tmp_path / "bank.db")) as bank:
        yield bank


def run(n: int, *, task: str = "") -> Trajectory:
    task = task or f"Ship parcel {n}"
    return Trajectory(id=f"run-{n}", task=task, steps=(Step(action=f"print label {n}"),), metadata={"n": n})


def learn(bank: Any, n: int, *, outcome: str | None = "success", **told: Any) -> Any:
    recall = bank.retrieve(f"Ship parcel {n}", metadata=told.get("metadata"))
    return bank.learn(run(n), recall=recall, outcome=outcome, **told)


@pytest.fixture
def five(bank: Any) -> Any:
    """A bank of five runs, of which the odd ones failed."""
    for n in range(5):
        learn(bank, n, outcome="failure" if n % 2 else "success", metadata={"user": f"u-{n % 2}"})
    return bank


def ids(records: Any) -> list[str]:
    return [(one.trajectory if isinstance(one, Run) else one).id for one in records]


# -- lists -------------------------------------------------------------------------------------------------------------


def test_a_list_is_newest_first_and_its_pages_join_without_gap_or_overlap(five: Any) -> None:
    for view in (five.lessons, five.runs, five.recalls):
        whole = ids(view.list())
        assert len(whole) == len(set(whole)) == 5
        pages, after = list[str](), None
        while page := ids(view.list(limit=2, after=after)):
            assert len(page) <= 2
            pages += page
            after = page[-1]
        assert pages == whole
        assert whole == sorted(whole, reverse=True)


def test_a_list_of_fewer_than_one_and_what_nobody_knows_are_refused(bank: Any) -> None:
    learn(bank, 1)
    for view in (bank.lessons, bank.runs, bank.recalls):
        for limit in (0, -1):
            with pytest.raises(UsageError, match="limit"):
                view.list(limit=limit)
        with pytest.raises(NotFound):
            view.list(after="nobody")
        with pytest.raises(NotFound):
            view.get("nobody")


def test_lessons_are_filtered_by_kind_writer_state_and_words(five: Any) -> None:
    by_ana = five.scoped(writer="Ana")
    learn(by_ana, 7)
    assert [lesson.title for lesson in five.lessons.list(writer="Ana")] == ["Customs field 7"]
    assert [lesson.title for lesson in five.lessons.list(kind="guardrail")] == ["Customs field 3", "Customs field 1"]
    assert [lesson.title for lesson in five.lessons.search("CUSTOMS 3 label")] == ["Customs field 3"]
    assert five.lessons.search("customs submarine") == ()
    assert len(five.lessons.list(state="probation")) == 6
    assert five.lessons.list(state="active") == ()


def test_what_is_quarantined_and_what_is_retired_can_be_listed(five: Any) -> None:
    first, second, third, *_ = ids(five.lessons.list())
    five.lessons.quarantine(first, reason="odd", by="Ana")
    five.lessons.retire(second, reason="wrong", by="Ana")
    five.lessons.approve(third, by="Ana")
    assert ids(five.lessons.list(state="quarantined")) == [first]
    assert ids(five.lessons.list(state="retired")) == [second]
    assert ids(five.lessons.list(state="active")) == [third]
    assert second not in ids(five.lessons.list())
    assert second in ids(five.lessons.list(retired=True))
    assert ids(five.lessons.list(state="quarantined", limit=1, after=first)) == []


def test_runs_are_filtered_by_outcome_status_words_and_metadata(five: Any) -> None:
    five.learn(run(8))  # without a truth and without a judge it waits
    assert ids(five.runs.list(outcome="failure")) == ["run-3", "run-1"]
    assert ids(five.runs.list(status="pending")) == ["run-8"]
    assert ids(five.runs.pending()) == ["run-8"]
    assert ids(five.runs.search("label 4")) == ["run-4"]
    assert ids(five.runs.search(metadata={"user": "u-1"})) == ["run-3", "run-1"]
    assert ids(five.runs.list(text="label", outcome="success", metadata={"user": "u-0"}, limit=2)) == ["run-4", "run-2"]
    found = five.runs.get("run-3")
    assert (found.verdict.outcome, found.status, found.metadata["user"]) == ("failure", "learned", "u-1")


def test_pending_runs_come_oldest_first_in_pages(bank: Any) -> None:
    for n in range(3):
        bank.learn(run(n))
    assert ids(bank.runs.pending(limit=2)) == ["run-0", "run-1"]
    assert ids(bank.runs.pending(limit=2, after="run-1")) == ["run-2"]


def test_recalls_are_filtered_by_words_metadata_lesson_and_whether_their_outcome_is_known(five: Any) -> None:
    (lesson,) = five.lessons.search("field 4")
    last = five.retrieve("Ship parcel 4", metadata={"user": "u-9"})
    assert lesson in last.shown
    assert ids(five.recalls.list(settled=False)) == [last.id]
    assert len(five.recalls.list(settled=True)) == 5
    assert ids(five.recalls.list(lesson=lesson.id)) == [last.id]
    assert ids(five.recalls.search(metadata={"user": "u-9"})) == [last.id]
    assert last.id in ids(five.recalls.search("parcel 4"))
    assert five.recalls.search("submarine") == ()
    assert five.recalls.get(last.id).metadata == {"user": "u-9"}
    assert lesson.title in str(five.recalls.explain(last.id))


def test_history_is_oldest_first_and_comes_in_pages(five: Any) -> None:
    whole = [entry.sequence for entry in five.history.list()]
    assert whole == list(range(1, len(whole) + 1))
    assert [entry.sequence for entry in five.history.list(limit=3)] == [1, 2, 3]
    assert [entry.sequence for entry in five.history.list(after=3, limit=2)] == [4, 5]
    with pytest.raises(UsageError, match="limit"):
        five.history.list(limit=0)


def test_history_of_a_lesson_is_what_was_done_with_it(five: Any) -> None:
    (lesson,) = five.lessons.search("field 2")
    five.lessons.retire(lesson.id, reason="wrong", by="Ana")
    five.lessons.restore(lesson.id, reason="right after all", by="Ben")
    told = five.history.list(lesson=lesson.id)
    assert [entry.entry.kind for entry in told] == ["add", "retire", "restore"]
    assert [entry.writer for entry in told] == ["learn", "Ana", "Ben"]
    assert five.history.lineage(lesson.id)


def test_an_earlier_moment_can_be_seen_compared_and_brought_back(five: Any) -> None:
    before = five.history.list()[-1].sequence
    (lesson,) = five.lessons.search("field 2")
    five.lessons.retire(lesson.id, reason="wrong", by="Ana")
    assert lesson.id in ids(five.history.state(before).lessons())
    assert lesson.id not in ids(five.history.state(before + 1).lessons())
    assert five.history.retrieve("Ship parcel 2", at=before).matches
    five.history.rollback(to=before, reason="a mistake", by="Ana")
    assert not five.lessons.get(lesson.id).retired
    assert five.history.list()[-1].writer == "Ana"


# -- scopes and writers ------------------------------------------------------------------------------------------------


def test_views_act_in_the_scope_of_their_handle(five: Any) -> None:
    other = five.scoped("acme/b")
    for view in (other.lessons, other.runs, other.recalls, other.history):
        assert view.list() == ()
    learn(other, 6)
    assert [lesson.title for lesson in other.lessons.list()] == ["Customs field 6"]
    assert ids(other.runs.list()) == ["run-6"]
    assert "run-6" not in ids(five.runs.list())
    assert (other.admin.counts().experiences, five.admin.counts().experiences) == (1, 5)
    (lesson,) = five.lessons.search("field 2")
    with pytest.raises(NotFound):
        other.lessons.get(lesson.id)
    with pytest.raises(NotFound):
        other.lessons.retire(lesson.id, reason="not mine")
    with pytest.raises(NotFound):
        other.admin.purge(run="run-2", reason="not mine")
    other.admin.purge(all=True, reason="the tenant left")
    assert five.admin.counts().experiences == 5


def test_calls_on_the_whole_file_are_refused_on_a_handle_of_a_tenant(bank: Any, tmp_path: Path) -> None:
    calls: dict[str, list[str]] = {"scopes": [], "verify": [], "rebuild": [], "backup": [str(tmp_path / "copy.db")]}
    for handle in (bank.scoped("acme/b"), bank.scoped(writer="u-17"), bank.scoped("acme/a")):
        for call, arguments in calls.items():
            with pytest.raises(UsageError, match=f"{call} acts on the whole file"):
                getattr(handle.admin, call)(*arguments)
    assert not (tmp_path / "copy.db").exists()


def test_calls_on_the_whole_file_are_answered_by_the_bank_itself(five: Any) -> None:
    learn(five.scoped("acme/b"), 6)
    assert five.admin.scopes() == ("acme/a", "acme/b")
    assert five.admin.verify() == ()
    five.admin.rebuild()
    assert len(five.lessons.list()) == 5


def test_a_handle_of_another_writer_keeps_the_scope_and_signs_what_it_does(five: Any) -> None:
    handle = five.scoped(writer="u-17")
    assert (handle.scope, handle.writer) == ("acme/a", "u-17")
    learned = learn(handle, 6)
    assert learned.lessons[0].provenance.writer == "u-17"
    assert {entry.writer for entry in five.history.list()} == {"learn", "u-17"}
    both = five.scoped("acme/b", writer="u-18")
    assert (both.scope, both.writer) == ("acme/b", "u-18")
    assert both.settings["scope"] == "acme/b"
    assert five.settings["scope"] == "acme/a"


def test_a_handle_of_an_impossible_scope_is_refused(bank: Any) -> None:
    for scope in ("", "../x", " ", "a//b"):
        with pytest.raises(UsageError):
            bank.scoped(scope)


def test_both_banks_and_all_views_have_the_same_public_methods_and_parameters() -> None:
    from lessonbank import AsyncReasoningBank
    from lessonbank.bank.sync import Admin, History, Lessons, Recalls, Runs

    pairs = ((AsyncReasoningBank, ReasoningBank), *zip(VIEWS, (Lessons, Runs, Recalls, History, Admin), strict=True))
    for awaited, waiting in pairs:
        for name, method in inspect.getmembers(awaited, inspect.iscoroutinefunction):
            if not name.startswith("_") and name not in ("correct", "keep_unfinished"):
                assert inspect.signature(getattr(waiting, name)) == inspect.signature(method), (awaited, name)


def test_no_method_of_a_view_takes_a_scope() -> None:
    for view in VIEWS:
        for name, method in inspect.getmembers(view, inspect.isfunction):
            assert name.startswith("_") or "scope" not in inspect.signature(method).parameters


# -- a person's word on runs -------------------------------------------------------------------------------------------


async def says_failure(_: Any) -> lessonbank.Verdict:
    return lessonbank.Verdict(outcome="failure", confidence=0.9, reason="the label is missing")


def judged_bank() -> ReasoningBank:
    return lessonbank.connect(
        ":memory:",
        scope="acme/a",
        embedder="lexical",
        evidence=Evidence(holdout=None),
        parts=Parts(extractor=teaching, judge=says_failure),
    )


def test_a_person_corrects_a_verdict_and_the_receipt_is_settled_again() -> None:
    with judged_bank() as bank:
        learn(bank, 1, outcome=None)
        assert bank.runs.get("run-1").verdict.source == "judge"
        corrected = bank.runs.correct("run-1", outcome="success", by="Ana", reason="the label was on the box")
        assert corrected.known == ("run-1",)
        verdict = bank.runs.get("run-1").verdict
        assert (verdict.outcome, verdict.source) == ("success", "human")
        assert verdict.reason == "Ana: the label was on the box"
        assert len(bank.recalls.list(settled=True)) == 1
        with pytest.raises(UsageError):
            bank.runs.correct("run-1", outcome="success", by="  ")
        with pytest.raises(NotFound):
            bank.runs.correct("nobody", outcome="success", by="Ana")


def test_a_pending_run_that_a_person_decides_is_learned_as_the_persons_word() -> None:
    with lessonbank.connect(":memory:", scope="acme/a", embedder="lexical", parts=Parts(extractor=teaching)) as bank:
        learn(bank, 1, outcome=None)
        assert len(bank.runs.pending()) == 1
        learned = bank.runs.correct("run-1", outcome="failure", by="Ana", reason="it never left")
        assert learned.lessons
        verdict = bank.runs.get("run-1").verdict
        assert (verdict.outcome, verdict.source, verdict.reason) == ("failure", "human", "Ana: it never left")
        assert learned.lessons[0].provenance.verdict_source == "human"
        assert bank.history.list()[0].writer == "learn"


def test_an_audit_of_fewer_than_one_run_is_refused() -> None:
    with judged_bank() as bank, pytest.raises(UsageError, match="count"):
        bank.runs.audit(0)
