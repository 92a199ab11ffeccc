"""No call of a bank, a view or a store writes into another scope, or into a name that is none, whatever it is given."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from doors import Ids
from sharing import OURS, PORTS, STORES, THEIRS, furnished, methods, opened, state, views
from tenants import collected

from lessonbank import AsyncReasoningBank
from lessonbank.bank.attempt import AsyncAttempt
from lessonbank.contracts.ports import Imported, LessonFilter, RecallFilter, RunFilter, Store
from lessonbank.contracts.records import (
    Add,
    Experience,
    Lesson,
    Merge,
    Recall,
    Replace,
    Run,
    Settlement,
    Trajectory,
    Verdict,
)
from lessonbank.contracts.store_calls import every_recall, get_recall, list_scopes
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.testing.store_samples import towards

pytestmark = pytest.mark.anyio

BAD_SCOPES = (
    "",
    " ",
    ".",
    "..",
    "../x",
    "acme/../x",
    "/acme",
    "acme/",
    "acme\x00",
    "acme\n",
    "ac\u200bme",
    "\ud800",
    "x" * 201,
)
_LESSON = Lesson(id="carried", title="Ask first", content="Ask the customer before the order is cancelled.")
_RUN = Trajectory(id="carried-run", task="a task", answer="a")
_WRITES_FILES = {"export", "backup"}


def carried(ids: Ids) -> list[Any]:
    """Records and ids of another scope, and of scopes that are none."""
    recall = Recall(id=ids.recall, scope=THEIRS, task="Cancel it", text="the text")
    records: list[Any] = [recall, recall.model_copy(update={"id": "carried-recall"})]
    for scope in (THEIRS, "", "../x"):
        told = Experience(id="carried", scope=scope, task="a task", lessons=(_LESSON,))
        receipt = Recall(id="carried-recall", scope=scope, task="a task")
        outcome = Settlement(recall_id=ids.recall, scope=scope, outcome="failure")
        records += [told, receipt, outcome]
    foreign = [ids.experience, ids.lesson, ids.run, ids.recall, THEIRS, f"{THEIRS}/../{OURS}"]
    run = Run(trajectory=_RUN.model_copy(update={"id": ids.run}), verdict=Verdict(outcome="success"))
    single = [*records, *foreign, "../x", "\x00", run.trajectory, {"recall_id": ids.recall}]
    return [*single, *([one] for one in (records[0], records[2], ids.recall, run, run.trajectory))]


_FITTING: dict[str, Any] = {
    "task": "Cancel it",
    "source": _RUN,
    "by": "Ana",
    "reason": "r",
    "title": "t",
    "content": "c",
    "outcome": "success",
    "limit": 3,
    "agent": lambda task, memory: "done",
    "verify": lambda run: True,
    "to": 0,
    "at": 1,
    "a": 0,
    "b": 1,
    "days": 1.0,
    "text": "order",
}


def calls(method: Callable[..., Any], poison: Any) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """A call for each parameter, which gets `poison`; the others get what fits."""
    parameters = list(inspect.signature(method).parameters.values())
    for poisoned in parameters:
        args, named = list[Any](), dict[str, Any]()
        for each in parameters:
            if each is not poisoned and each.default is not each.empty and each.name not in ("by", "reason"):
                continue
            value = poison if each is poisoned else _FITTING.get(each.name, "own-lesson")
            if each.kind is each.KEYWORD_ONLY:
                named[each.name] = value
            else:
                args.append(value)
        yield args, named


async def knocked(method: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> None:
    """Make the call; whatever it raises is its business, what it writes is ours."""
    with suppress(Exception):
        answer = method(*args, **named)
        if inspect.isawaitable(answer):
            await answer
        elif isinstance(answer, AsyncAttempt):
            async with answer as attempt:
                await attempt.finish([{"role": "assistant", "content": "done"}], outcome="success")


def every_method(bank: AsyncReasoningBank) -> Iterator[Callable[..., Any]]:
    for of in (bank, *(getattr(bank, name) for name in views())):
        yield from (getattr(of, name) for name in methods(type(of)) if name not in {"close", *_WRITES_FILES})


@pytest.mark.parametrize(
    "kind", [pytest.param("memory", marks=pytest.mark.full), pytest.param("sqlite", marks=pytest.mark.release)]
)
async def test_whatever_any_method_is_given_it_writes_into_its_own_scope_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(kind, tmp_path) as bank:
        await furnished(bank.store, OURS)
        foreign = await furnished(bank.store, THEIRS, "foreign-")
        theirs, made = await state(bank.store, THEIRS), 0
        for method in every_method(bank.scoped(OURS)):
            for poison in carried(foreign):
                for args, named in calls(method, poison):
                    await knocked(method, args, named)
                    made += 1
            assert await list_scopes(bank.store) in ([THEIRS], [THEIRS, OURS]), method
            assert await state(bank.store, THEIRS) == theirs, method
        assert {one.scope for one in await collected(bank.store.scan(scope=OURS))} <= {OURS}
        assert {one.scope for one in await collected(every_recall(bank.store, scope=OURS))} <= {OURS}
        assert made > 1500


async def test_no_method_takes_a_record_of_another_scope(tmp_path: Path) -> None:
    async with opened("memory", tmp_path) as bank:
        await furnished(bank.store, OURS)
        foreign = await furnished(bank.store, THEIRS, "foreign-")
        ours, theirs = [await state(bank.store, scope) for scope in (OURS, THEIRS)]
        handle = bank.scoped(OURS)
        receipt = await get_recall(bank.store, foreign.recall, scope=THEIRS)
        agent: Any = lambda task, memory: "done"  # noqa: E731
        verify: Any = lambda run: True  # noqa: E731
        doors: list[Callable[[], Any]] = [
            lambda: handle.learn(_RUN, recall=receipt, outcome="success"),
            lambda: handle.learn(_RUN, recall=foreign.recall, outcome="success"),
            lambda: handle.submit(_RUN, recall=receipt, outcome="success"),
            lambda: handle.trial(["Pay"], agent, verify=verify, without="own-lesson"),
            lambda: handle.recalls.explain(receipt),
            lambda: handle.consolidate(Experience(scope=THEIRS, task="t", lessons=(_LESSON,))),
            lambda: handle.runs.correct(foreign.run, outcome="failure", by="Ana"),
            lambda: handle.lessons.approve(foreign.lesson, by="Ana"),
            lambda: handle.history.rollback(to=foreign.last, reason="r"),
        ]
        for door in doors:
            with pytest.raises(LessonbankError):
                await door()
        assert [await state(bank.store, scope) for scope in (OURS, THEIRS)] == [ours, theirs]


_STORE_TAKES: dict[str, Any] = {
    "trajectories": [_RUN],
    "trajectory_ids": ["r"],
    "changes": [],
    "settlement": None,
    "vectors": {"e": towards(0)},
    "vector": towards(0),
    "space": "sample:8",
    "limit": 3,
    "writer": "w",
    "reason": "r",
    "portions": lambda: [Imported()],
    "what": [("lesson", "l")],
    "by": "id",
    "values": ["e"],
    "query": "order",
}


_FILTERS = {"runs": RunFilter(), "lessons": LessonFilter(), "recalls": RecallFilter()}


def _store_call(store: Store, name: str, scope: str) -> Any:
    method = getattr(store, name)
    parameters = inspect.signature(method).parameters.values()
    takes = {**_STORE_TAKES, "wanted": _FILTERS.get(name), "scope": scope}
    wanted = [one for one in parameters if one.default is one.empty or one.name == "scope"]
    args = [takes.get(one.name, "id") for one in wanted if one.kind is one.POSITIONAL_ONLY]
    return method(*args, **{one.name: takes.get(one.name, "id") for one in wanted if one.kind is one.KEYWORD_ONLY})


@pytest.mark.parametrize("kind", STORES)
async def test_every_call_of_a_store_refuses_a_name_that_is_no_scope(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as bank:
        store = bank.store
        every = {name: getattr(port, name) for port in PORTS for name in methods(port)}
        names = [name for name, call in every.items() if "scope" in inspect.signature(call).parameters]
        assert len(names) > 16
        for scope in BAD_SCOPES:
            for name in names:
                with pytest.raises(UsageError, match="cannot be a scope"):
                    answer = _store_call(store, name, scope)
                    await (collected(answer) if isinstance(answer, AsyncIterator) else answer)
            with pytest.raises(UsageError, match="cannot be a scope"):
                await store.save_recall(Recall(scope=scope, task="t"))
        assert await list_scopes(store) == []


@pytest.mark.parametrize("kind", STORES)
async def test_a_store_refuses_a_record_of_another_scope_than_it_is_asked_to_write(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as bank:
        store = bank.store
        await furnished(store, OURS)
        before = await state(store, OURS)
        theirs = Experience(id="own", scope=THEIRS, task="t", lessons=(_LESSON,))
        receipt, outcome = (
            Recall(id="q", scope=THEIRS, task="t"),
            Settlement(recall_id="q", scope=THEIRS, outcome="success"),
        )
        changes = [
            Add(experience=theirs.model_copy(update={"id": "new"})),
            Replace(experience=theirs),
            Merge(experience=theirs.model_copy(update={"id": "new"}), source_lesson_ids=("own-lesson",), reason="r"),
        ]
        for change in changes:
            with pytest.raises(UsageError, match="scope"):
                await store.apply([change], scope=OURS, writer="w")
        with pytest.raises(UsageError, match="scope"):
            await store.apply([], scope=OURS, writer="w", settlement=outcome)
        for portion in (Imported(recalls=[receipt]), Imported(experiences=[theirs]), Imported(settlements=[outcome])):
            with pytest.raises(UsageError, match="scope"):
                await store.import_records(lambda portion=portion: [portion], scope=OURS, writer="w")
        assert await state(store, OURS) == before
        assert await list_scopes(store) == [OURS]
