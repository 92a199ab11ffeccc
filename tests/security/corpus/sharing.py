"""A store that several share: how it is opened, furnished and looked at."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import bank_tenants
from doors import Ids
from tenants import collected, plain

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Parts
from lessonbank.contracts.ports import Care, Index, Queue, Records, Store
from lessonbank.contracts.records import Recall, Trajectory
from lessonbank.contracts.store_calls import count_records, every_recall, pending_runs
from lessonbank.testing.store_samples import added, attempt, experience, lesson, settlement, towards

STORES = ("sqlite",)
OURS, THEIRS = "acme/support", "acme/sales"
NOBODYS = Ids("nobodys-own", "nobodys-own-lesson", "nobodys-own-run", "nobodys-own-recall", 1_000_000)


@contextmanager
def folder() -> Generator[Path]:
    """In memory where there is room: a test must not wait for a disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 28
    with tempfile.TemporaryDirectory(dir=memory if roomy else None) as made:
        yield Path(made)


@asynccontextmanager
async def opened(kind: str, where: Path, name: str = "bank.db") -> AsyncGenerator[AsyncReasoningBank]:
    """A bank on a store of one kind, which draws one lesson from each run."""
    place = ":memory:" if kind == "memory" else where / name
    bank = await lessonbank.connect_async(
        place,
        scope="nobody/else",
        embedder="lexical",
        evidence=Evidence(holdout=None),
        parts=Parts(extractor=bank_tenants.extract),
    )
    try:
        yield bank
    finally:
        await bank.close()


async def state(store: Store, scope: str) -> dict[str, Any]:
    """All that a scope holds."""
    return {
        "scan": await collected(store.scan(scope=scope)),
        "journal": plain(await collected(store.journal(scope=scope))),
        "receipts": await collected(every_recall(store, scope=scope)),
        "pending": list(await pending_runs(store, scope=scope)),
        "counts": await count_records(store, scope=scope),
        "search": list(await store.search("cancel the pending order", scope=scope, limit=9)),
        "nearest": list((await store.nearest(towards(0), scope=scope, space="sample:8", limit=9)).matches),
        "unindexed": list(await store.unindexed(scope=scope, space="another", limit=9)),
    }


async def furnished(store: Store, scope: str, mark: str = "") -> Ids:
    """A bit of everything in a scope. A mark makes the ids its own."""
    run, waiting = (Trajectory(id=f"{mark}{name}", task="Cancel it", answer="a") for name in ("own-run", "waiting"))
    await store.save_runs([run, waiting], scope=scope)
    known = experience(
        scope=scope,
        lessons=[lesson().model_copy(update={"id": f"{mark}own-lesson"})],
        attempts=[attempt(run, "success")],
    )
    known = known.model_copy(update={"id": f"{mark}own"})
    await added(store, known, scope=scope, along=[towards(0)])
    receipt = Recall(id=f"{mark}own-recall", scope=scope, task="Cancel it", text="the text")
    await store.save_recall(receipt)
    await store.apply([], scope=scope, writer="tests", settlement=settlement(receipt, scope=scope))
    more = [experience(f"Task {n}", scope=scope) for n in range(60)] if mark else []
    await added(store, *more, scope=scope)
    return Ids(known.id, known.lessons[0].id, run.id, receipt.id, 2 + len(more))


PORTS = (Records, Index, Queue, Care)


def methods(of: type, /) -> list[str]:
    return [name for name, member in inspect.getmembers(of, callable) if not name.startswith("_")]


def views(of: type = AsyncReasoningBank, /) -> dict[str, type]:
    """The views of a bank by name, as its properties promise them."""
    kinds = {
        name: get_type_hints(member.fget)["return"]
        for name, member in inspect.getmembers(of, lambda member: isinstance(member, property))
        if not name.startswith("_")
    }
    return {name: kind for name, kind in kinds.items() if getattr(kind, "__module__", "").startswith("lessonbank.")}


def every_call(of: type = AsyncReasoningBank, /) -> set[str]:
    """The names of all public methods of a bank and of its views, such as `learn` and `lessons.edit`."""
    return {*methods(of), *(f"{name}.{method}" for name, view in views(of).items() for method in methods(view))}
