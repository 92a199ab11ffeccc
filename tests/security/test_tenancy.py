"""Whoever shares a bank with others can name nothing that is theirs: neither by a scope nor by an id."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from attacks import Case, cases, spelled
from doors import DOORS, Ids
from sharing import NOBODYS, OURS, STORES, THEIRS, folder, furnished, methods, opened, state, views
from tenants import collected, plain, refusal

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Counts, Experience, Lesson, Recall, Trajectory
from lessonbank.contracts.store_calls import count_records, list_scopes, purge_one
from lessonbank.errors import Conflict, LessonbankError, NotFound, UsageError
from lessonbank.guard import check_scope
from lessonbank.stores.sqlite import SqliteStore

pytestmark = pytest.mark.full

_RUN = Trajectory(id="r", task="a task", answer="a")


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


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_no_handle_is_given_for_a_name_that_cannot_be_a_scope(kind: str, quick: Path) -> None:
    bad = [spelled(case["scope"]) for case in cases("tenancy", "bad_scope") if case["scope"] is not None]
    wrong: list[str] = []
    async with opened(kind, quick) as bank:
        await furnished(bank.store, bank.scope)
        before = await state(bank.store, bank.scope)
        for scope in bad:
            try:
                bank.scoped(scope)
                wrong.append(f"{str(scope)[:80]!r}")
            except UsageError as error:
                wrong += [] if "cannot be a scope" in str(error) else [str(error)]
        assert await bank.admin.scopes() == (bank.scope,)
        assert await state(bank.store, bank.scope) == before
    assert wrong == []


_TELLS_ITS_SCOPE = {"scoped"}


def test_a_handle_is_the_only_way_to_name_a_scope() -> None:
    calls = [(of, name) for of in (AsyncReasoningBank, *views().values()) for name in methods(of)]
    takes = {name for of, name in calls if "scope" in inspect.signature(getattr(of, name)).parameters}
    assert takes == _TELLS_ITS_SCOPE


@pytest.mark.anyio
async def test_a_tenants_handle_does_not_act_on_the_whole_file(quick: Path) -> None:
    async with opened("sqlite", quick) as bank:
        await furnished(bank.store, THEIRS)
        for handle in (bank.scoped(OURS), bank.scoped(bank.scope), bank.scoped(writer="u-17"), bank.scoped().scoped()):
            admin = handle.admin
            for call in (admin.scopes, admin.verify, admin.rebuild, lambda a=admin: a.backup(quick / "copy.db")):
                with pytest.raises(UsageError, match="whole file"):
                    await call()
    assert not (quick / "copy.db").exists()


@pytest.mark.anyio
async def test_a_handle_tells_its_own_scope_and_writer_and_no_other() -> None:
    async with opened("memory", Path()) as bank:
        handle = bank.scoped(OURS, writer="u-17")
        assert (handle.scope, handle.writer, handle.settings["scope"]) == (OURS, "u-17", OURS)
        assert bank.scope not in repr(handle.settings)
        assert (bank.scope, bank.settings["scope"]) == ("nobody/else", "nobody/else")
        assert (handle.scoped(THEIRS).scope, handle.scoped(THEIRS).writer) == (THEIRS, "u-17")


@pytest.mark.anyio
@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_handle_consolidates_no_experience_of_another_scope(dry_run: bool) -> None:
    lesson = Lesson(title="Ask first", content="Ask the customer before the order is cancelled.")
    async with opened("memory", Path()) as bank:
        with pytest.raises(UsageError, match="scope"):
            await bank.scoped(OURS).consolidate(
                Experience(scope=THEIRS, task="a task", lessons=(lesson,)), dry_run=dry_run
            )
        assert await bank.admin.scopes() == ()


async def glance(store: Store, scope: str) -> Any:
    return await collected(store.scan(scope=scope)), await count_records(store, scope=scope)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_scopes_that_look_alike_are_two_scopes(kind: str, quick: Path) -> None:
    pairs = {case["id"]: case["scopes"] for case in cases("tenancy", "twin")}
    every, wrong = list(dict.fromkeys(scope for pair in pairs.values() for scope in pair)), list[str]()
    store: Store = SqliteStore.in_memory() if kind == "memory" else await SqliteStore.open(quick / "bank.db")
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
    assert await list_scopes(store) == sorted(every)
    before = {scope: await glance(store, scope) for scope in every}
    for id, (scope, _) in list(pairs.items())[::20]:
        await purge_one(store, "scope", "", scope=scope, writer="w", reason="r")
        if any([await glance(store, other) != was for other, was in before.items() if other != scope]):
            wrong.append(f"{id}: a purge reached another scope")
        await furnished(store, scope)
        before[scope] = await glance(store, scope)
    assert wrong == []
    assert (await store.verify()).problems == []
    await store.close()


@pytest.mark.anyio
async def test_a_store_keeps_nothing_under_a_name_that_cannot_be_a_scope(quick: Path) -> None:
    async with opened("sqlite", quick) as bank:
        for case in cases("tenancy", "store_twin"):
            with pytest.raises(UsageError, match="cannot be a scope"):
                await bank.store.save_runs([_RUN], scope=spelled(case["scopes"][1]))
        assert await list_scopes(bank.store) == []


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


async def held(bank: AsyncReasoningBank) -> Counts:
    """What our scope holds; the journal may tell of acts of administration."""
    return (await count_records(bank.store, scope=OURS)).model_copy(update={"changes": 0})


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_what_is_somebody_elses_is_answered_exactly_as_what_does_not_exist(kind: str) -> None:
    wrong: list[str] = []
    with folder() as where:
        async with opened(kind, where) as bank:
            await furnished(bank.store, OURS)
            foreign = await furnished(bank.store, THEIRS, "foreign-")
            theirs, ours = await glance(bank.store, THEIRS), await held(bank)
            for case in cases("tenancy", "door"):
                answers = [await knocked(bank, case, ids) for ids in (foreign, NOBODYS)]
                if answers[0] != answers[1]:
                    wrong.append(f"{case['id']}: {answers}")
                if await glance(bank.store, THEIRS) != theirs or await held(bank) != ours:
                    wrong.append(f"{case['id']}: something was changed")
            assert await bank.admin.verify() == ()
    assert wrong == []
    assert {case["door"] for case in cases("tenancy", "door")} == DOORS.keys()


_ANSWERED_WITHOUT_ERROR = {
    # What asks for many, or for what follows from an id, has an empty answer.
    "store.settlement",
    "store.holding",
    "store.learned",
    "store.if_unlearned",
    "store.list_recalls_of",
    "store.journal_since",
    "store.journal_of_kinds",
    "recalls.list_of",
    "history.list_lesson",
    "history.list_experience",
    "history.lineage",
    # An id that somebody else uses is free here.
    "bank.learn_known_run",
}
_OTHER_REFUSALS = {"store.if_unchanged": Conflict, "bank.trial_lesson": UsageError, "bank.trial_with": UsageError}


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_every_call_with_an_id_of_another_tenant_says_there_is_none(kind: str) -> None:
    wrong: list[str] = []
    with folder() as where:
        async with opened(kind, where) as bank:
            await furnished(bank.store, OURS)
            foreign = await furnished(bank.store, THEIRS, "foreign-")
            theirs = await glance(bank.store, THEIRS)
            for name in DOORS.keys() - _ANSWERED_WITHOUT_ERROR:
                expected = _OTHER_REFUSALS.get(name, NotFound)
                try:
                    wrong.append(f"{name} answered {await DOORS[name].knock(bank, OURS, foreign)!r}"[:300])
                except LessonbankError as error:
                    wrong += [] if type(error) is expected else [f"{name}: {type(error).__name__}: {error}"]
            assert await glance(bank.store, THEIRS) == theirs
    assert wrong == []


@pytest.mark.anyio
async def test_a_receipt_of_another_scope_is_refused_before_anything_is_looked_up() -> None:
    said: list[str] = []
    for known in (True, False):
        async with opened("memory", Path()) as bank:
            receipt = Recall(id="q", scope=THEIRS, task="t")
            if known:
                await bank.store.save_recall(receipt)
            with pytest.raises(UsageError) as caught:
                await bank.scoped(OURS).learn(_RUN, recall=receipt, outcome="failure")
            said.append(repr(refusal(caught.value)))
            assert (await bank.scoped(OURS).admin.counts()).trajectories == 0
    assert said[0] == said[1]


_NOT_ABOUT_ONE_ID = {
    "store.if_unlearned",
    "store.if_unchanged",
}


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
