"""Whoever shares a bank with others can name nothing that is theirs: neither by a scope nor by an id."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks import Case, cases, spelled
from doors import DOORS, Ids
from sharing import NOBODYS, OURS, STORES, THEIRS, folder, furnished, methods, opened, state
from tenants import collected, plain, refusal

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.guard import check_scope
from lessonbank.protocols import Store
from lessonbank.stores.memory import MemoryStore
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.types import Recall, Trajectory


@pytest.fixture
def quick() -> Iterator[Path]:
    with folder() as where:
        yield where


# --- names of scopes -------------------------------------------------------------------------------------------------


def test_a_name_that_cannot_be_a_scope_opens_no_bank() -> None:
    wrong: list[str] = []
    for case in cases("tenancy", "bad_scope"):
        try:
            lessonbank.connect(":memory:", scope=spelled(case["scope"])).close()
            wrong.append(case["id"])
        except UsageError as error:
            if not ("scope" in str(error) and "letters" in str(error) and len(str(error)) < 600):
                wrong.append(f"{case['id']}: {str(error)[:300]}")
    assert wrong == []


async def attempted(bank: AsyncReasoningBank, scope: Any) -> None:
    async with bank.scoped(scope).attempt("a task"):
        pass


_RUN = Trajectory(id="r", task="a task", answer="a")
_OTHER_ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "retrieve": (("a task",), {}),
    "learn": ((_RUN,), {"outcome": "failure"}),
    "attempt": (("a task",), {}),
    "explain": (("own-recall",), {}),
    "scale": (("a task", str), {"outcome": bool}),
    "replay": ((["own-recall"], str), {"outcome": bool, "without": "own-lesson"}),
    "get": (("own-lesson",), {}),
    "experience": (("own",), {}),
    "trajectory": (("own-run",), {}),
    "retire": (("own-lesson",), {"reason": "r"}),
    "restore": (("own-lesson",), {"reason": "r"}),
    "approve": (("own-lesson",), {"by": "ana"}),
    "quarantine": (("own-lesson",), {"reason": "r"}),
    "as_of": ((0,), {}),
    "diff": ((0, 0), {}),
    "retrieve_as_of": (("a task",), {"when": 0}),
    "rollback": ((), {"to": 0, "reason": "r"}),
    "purge": ((), {"scope_wide": True, "reason": "r"}),
    "lineage": (("own-lesson",), {}),
    "export": (("/dev/null/nowhere",), {}),
    "import_": (("/dev/null/nowhere",), {}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_every_call_of_a_bank_refuses_a_name_that_cannot_be_a_scope(kind: str, quick: Path) -> None:
    scoped = [
        n
        for n in methods(AsyncReasoningBank)
        if "scope" in inspect.signature(getattr(AsyncReasoningBank, n)).parameters
    ]
    bad = [spelled(case["scope"]) for case in cases("tenancy", "bad_scope") if case["scope"] is not None]
    wrong: list[str] = []
    async with opened(kind, quick) as bank:
        await furnished(bank.store, bank.scope)
        before = await state(bank.store, bank.scope)
        for name in scoped:
            given, named = _OTHER_ARGUMENTS.get(name, ((), {}))
            for scope in bad:
                try:
                    if name == "attempt":
                        await attempted(bank, scope)
                    else:
                        await getattr(bank, name)(*given, **named, scope=scope)
                    wrong.append(f"{name}: {str(scope)[:80]!r}")
                except UsageError as error:
                    wrong += [] if "cannot be a scope" in str(error) else [f"{name}: {error}"]
        assert await bank.admin.scopes() == (bank.scope,)
        assert await state(bank.store, bank.scope) == before
    assert wrong == []


async def glance(store: Store, scope: str) -> Any:
    return await collected(store.scan(scope=scope)), await store.counts(scope=scope)


@pytest.mark.full
@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_scopes_that_look_alike_are_two_scopes(kind: str, quick: Path) -> None:
    pairs = {
        case["id"]: [spelled(scope) for scope in case["scopes"]] for case in cases("tenancy", "twin", "store_twin")
    }
    every, wrong = list(dict.fromkeys(scope for pair in pairs.values() for scope in pair)), list[str]()
    store: Store = MemoryStore() if kind == "memory" else await SqliteStore.open(quick / "bank.db")
    for scope in every:
        await furnished(store, scope)
    first = await state(store, every[0])
    for id, pair in pairs.items():
        for scope in pair if kind == "memory" else pair[1:]:  # the first ones are mostly the same
            seen = await state(store, scope)
            alike = [
                len(seen[name]) == len(first[name]) == 1
                for name in ("scan", "receipts", "pending", "search", "nearest")
            ]
            named = {experience.scope for experience in seen["scan"]} | {entry["scope"] for entry in seen["journal"]}
            if not all(alike) or seen["counts"] != first["counts"] or named != {scope}:
                wrong.append(f"{id}: {seen['counts']}")
    assert wrong == []
    assert await store.scopes() == sorted(every)
    before = {scope: await glance(store, scope) for scope in every}
    for id, (scope, _) in list(pairs.items())[::20]:
        await store.purge("scope", "", scope=scope, writer="w", reason="r")
        if any([await glance(store, other) != was for other, was in before.items() if other != scope]):
            wrong.append(f"{id}: a purge reached another scope")
        await furnished(store, scope)
        before[scope] = await glance(store, scope)
    assert wrong == []
    assert await store.verify() == []
    await store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_a_scope_that_looks_like_another_holds_nothing_of_it(kind: str) -> None:
    pairs = {
        case["id"]: [spelled(scope) for scope in case["scopes"]] for case in cases("tenancy", "twin", "store_twin")
    }
    with folder() as where:
        store: Store = MemoryStore() if kind == "memory" else await SqliteStore.open(where / "bank.db")
        full = list(dict.fromkeys(a for a, _ in pairs.values()))
        for scope in full:
            await furnished(store, scope)
        nothing = await state(MemoryStore(), "nothing")
        wrong = [id for id, (_, b) in pairs.items() if b not in full and await state(store, b) != nothing]
        await store.close()
    assert wrong == []


@pytest.mark.parametrize("case", cases("tenancy", "twin"), ids=lambda case: case["id"])
def test_a_scope_is_taken_as_it_is_written(case: Case) -> None:
    assert [check_scope(scope) for scope in case["scopes"]] == case["scopes"]


# --- ids and numbers of others ---------------------------------------------------------------------------------------


async def knocked(bank: AsyncReasoningBank, case: Case, ids: Ids) -> Any:
    """The whole answer, with the id that was asked for taken out of its words."""
    door = DOORS[case["door"]]
    try:
        answer = repr(plain(await door.knock(bank, OURS, ids)))
    except LessonbankError as error:
        answer = repr(refusal(error))
    return answer.replace(str(door.takes and ids.of(door.takes)), "(the id)")


@pytest.mark.full
@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_what_is_somebody_elses_is_answered_exactly_as_what_does_not_exist(kind: str) -> None:
    wrong: list[str] = []
    with folder() as where:
        async with opened(kind, where) as bank:
            await furnished(bank.store, OURS)
            foreign = await furnished(bank.store, THEIRS, "foreign-")
            theirs, ours = await glance(bank.store, THEIRS), await bank.store.counts(scope=OURS)
            for case in cases("tenancy", "door"):
                answers = [await knocked(bank, case, ids) for ids in (foreign, NOBODYS)]
                if answers[0] != answers[1]:
                    wrong.append(f"{case['id']}: {answers}")
                if await glance(bank.store, THEIRS) != theirs or await bank.store.counts(scope=OURS) != ours:
                    wrong.append(f"{case['id']}: something was changed")
            assert await bank.admin.verify() == ()
    assert wrong == []
    assert {case["door"] for case in cases("tenancy", "door")} == DOORS.keys()


@pytest.mark.anyio
async def test_a_receipt_of_another_scope_is_refused_before_anything_is_looked_up() -> None:
    said: list[str] = []
    for known in (True, False):
        async with opened("memory", Path()) as bank:
            receipt = Recall(id="q", scope=THEIRS, task="t")
            if known:
                await bank.store.record(receipt)
            with pytest.raises(UsageError) as caught:
                await bank.scoped(OURS).learn(_RUN, recall=receipt, outcome="failure")
            said.append(repr(refusal(caught.value)))
            assert (await bank.scoped(OURS).admin.counts()).trajectories == 0
    assert said[0] == said[1]


_NOT_ABOUT_ONE_ID = {
    "store.unlearned",
    "store.unchanged",
    "store.search_without",
    "store.nearest_without",
}


@pytest.mark.full
@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_an_id_is_a_name_and_nothing_else_whatever_stands_in_it(kind: str) -> None:
    wrong: list[str] = []
    with folder() as where:
        async with opened(kind, where) as bank:
            await furnished(bank.store, OURS)
            await furnished(bank.store, THEIRS)
            before = [await state(bank.store, scope) for scope in (OURS, THEIRS)]
            for case in cases("tenancy", "strange_id"):
                id = spelled(case["value"])
                for name, door in DOORS.items():
                    if door.takes == "last" or name in _NOT_ABOUT_ONE_ID or not name.startswith("store."):
                        continue
                    answer = await knocked(bank, {"door": name}, Ids(id, id, id, id, 0))
                    if any(held in answer for held in ("own-run", "the text")):
                        wrong.append(f"{case['id']} at {name}: {answer[:300]}")
            assert [await state(bank.store, scope) for scope in (OURS, THEIRS)] == before
            assert await bank.admin.verify() == ()
    assert wrong == []
