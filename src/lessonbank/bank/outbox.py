"""Keeps what an agent did, or spools it where the bank does not answer in time, and delivers what was spooled."""

from __future__ import annotations

import contextlib
import logging
import math
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, TypeVar

from anyio import to_thread

from lessonbank._base.aio import TimeIsOver, within
from lessonbank._base.checks import a_mapping, kind
from lessonbank.contracts.records import Recall
from lessonbank.errors import Conflict, NotFound, ReadOnly, StoreDamaged, StoreUnavailable, UsageError
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.quote import quoted
from lessonbank.text.messages.runs import runs_from

from .spool import Spool, Spooled

T = TypeVar("T")
log: Final = logging.getLogger("lessonbank")
_DELIVERY: Final = 5.0
"""Seconds for one run that is delivered."""
_LOOKS_APART: Final = 30.0
"""Seconds between two looks for what other processes left: a look costs a third of a recall."""
_looks: Final[dict[Path, float]] = {}
"""When this process looked into a file last. One into which it has put a run since is not there."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """What a handle on a bank sends later, and how."""

    spool: Spool | None
    """The file of runs that wait on this machine; `None` where none does."""
    intake: IntakeFilter
    """What redacts them."""
    writer: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class InSpool:
    """A run that the bank did not take in time, and that waits for it on this machine."""

    note: str
    """That it does, and why."""


async def keep_or_spool(bank: Any, call: str, source: object, /, *, inbox: Sequence[str] = (), **options: Any) -> Any:
    """What `bank.learn`, `submit` or `keep_unfinished` gives; `InSpool` where the run waits on this machine instead.

    `inbox`: what the agent noted in this run. It waits with it, and is not delivered otherwise.

    Raises what the call raises, where there is no spool, or an answer that waiting does not change.
    """
    try:
        result = await getattr(bank, call)(source, **options)
    except StoreUnavailable as problem:
        outbox = _outbox(bank)
        if outbox is None or isinstance(problem, ReadOnly | StoreDamaged):
            raise
        return InSpool(await _spool_run(bank, outbox, call, source, problem, inbox, **options))
    await deliver_soon(bank)
    return result


async def _spool_run(
    bank: Any,
    outbox: Any,
    call: str,
    source: object,
    problem: StoreUnavailable,
    inbox: Sequence[str],
    /,
    *,
    task: str | None = None,
    recall: Recall | None = None,
    outcome: Any = None,
    reward: float | None = None,
    metadata: Any = None,
    patience: float | None = None,
) -> str:
    runs = await runs_from(source, task=task, asked=recall.task if recall else None)
    clean = await outbox.intake.runs(runs, a_mapping(metadata))
    entry = Spooled(
        call="keep_unfinished" if call == "keep_unfinished" else "submit",
        scope=bank.scope,
        writer=outbox.writer,
        runs=tuple(clean),
        about=a_mapping(metadata),
        inbox=tuple([await outbox.intake.sentence(text) for text in inbox]),
        recall=recall.id if recall and recall.kept else recall and recall.model_copy(update={"lessons": ()}),
        outcome=outcome,
        reward=reward,
        ended_at=datetime.now(UTC),
    )
    try:
        if not await to_thread.run_sync(outbox.spool.put, entry):
            raise problem
        _looks.pop(outbox.spool.path, None)
    except (OSError, sqlite3.Error) as error:
        log.warning("the run could not be spooled: %s", quoted(error))
        raise problem from None
    note = f"nothing was learned from this run yet: it waits on this machine until the bank answers: {quoted(problem)}"
    log.warning("%s", note)
    return note


async def deliver_soon(bank: Any, /) -> None:
    """The bank answers: deliver what waits for it, in the background. A file that cannot be used breaks no call."""
    outbox = _outbox(bank)
    if outbox is None or monotonic() < _looks.get(outbox.spool.path, -math.inf) + _LOOKS_APART:
        return
    _looks[outbox.spool.path] = monotonic()
    with contextlib.suppress(StoreUnavailable):
        if await _in_thread(outbox.spool.is_waiting):
            bank.in_background(partial(_deliver, bank, outbox), lost="what waits on this machine was not handed in")


async def _deliver(bank: Any, outbox: Any, /) -> None:
    """Hand in what was spooled, in its order and once, unless another process does.

    A run that the bank refuses at once waits on, and the next one is tried: it may not need the same right.
    """
    spool, number, claim = outbox.spool, 0, 0.0
    try:
        while claim := await _in_thread(partial(spool.claim, claim)):
            if not (next_entry := await _in_thread(partial(spool.next, number))):
                return
            number, entry = next_entry
            try:
                is_in = entry is not None and await _deliver_run(bank, entry, outbox.key)
            except TimeIsOver:
                return
            except StoreUnavailable:
                continue
            except Exception as error:  # noqa: BLE001 - whatever a store or a redactor raises for this run
                log.warning("a run was not handed in, and waits on: %s: %s", kind(error), quoted(error))
                continue
            await _in_thread(partial(spool.done, number, dropped=not is_in))
            if not is_in:
                log.warning("a run that waited here was dropped: it or its recall was erased, or it cannot be read")
    except StoreUnavailable:
        return  # the file cannot be used now
    finally:
        await _in_thread(partial(spool.release, claim))


async def _deliver_run(bank: Any, entry: Spooled, key: str | None) -> bool:
    """Whether the bank has the runs now; not where they were erased meanwhile."""
    bank_of_run = bank.scoped(entry.scope, writer=entry.writer, key=key if entry.writer else None)
    options: dict[str, Any] = {"recall": entry.recall, "patience": _DELIVERY, "ended_at": entry.ended_at}
    try:
        if entry.call == "keep_unfinished":
            await bank_of_run.keep_unfinished(entry.runs[0], **options)
        else:
            ids = await bank_of_run.submit(list(entry.runs), outcome=entry.outcome, reward=entry.reward, **options)
            if entry.runs[0].id not in ids:  # what was noted goes with it
                return bool(ids)
        await _deliver_notes(bank_of_run, entry)
        return True
    except NotFound:  # its recall was erased
        return False


async def _deliver_notes(bank: Any, entry: Spooled) -> None:
    run = entry.runs[0]
    for text in entry.inbox:
        try:
            with within(_DELIVERY, "it was not kept"):
                await bank.lessons.note(text, task=run.task, run=run.id, metadata=entry.about)
        except (Conflict, UsageError) as error:  # it is known already; or too much waits for a person
            log.warning("a note that waited on this machine is not in the inbox: %s", quoted(error))


def _outbox(bank: Any) -> Any:
    """The outbox of a bank where runs may wait for it; its `spool` is there then."""
    outbox = getattr(bank, "_outbox", None)
    return outbox if outbox is not None and outbox.spool is not None else None


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await to_thread.run_sync(work)
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(f"the file of what waits cannot be used: {quoted(error)}") from error


async def erase_spooled(spool: Spool | None, scope: str, /, **meant: Any) -> Sequence[frozenset[str]]:
    """Erase what waits and is meant: of each entry the ids of its runs and its recall. Raises StoreUnavailable."""
    return () if spool is None else await _in_thread(partial(spool.erase, scope, **meant))


async def describe_waiting(spool: Spool | None, /) -> str:
    """What waits, for people."""
    return "off" if spool is None else await _in_thread(spool.describe)
