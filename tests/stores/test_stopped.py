"""A process that stands still costs the others one clear error, not the bank; and when it is gone they go on."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest
from _trouble import TOUCHES, Companion, Fill, companion, looks, opened, sentence

from lessonbank.errors import StoreUnavailable
from lessonbank.testing.store_samples import MINE, added, collected, experience

BATCH = 400

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system cannot stop a process"),
    pytest.mark.full,
]


def locked(path: Path) -> bool:
    """Whether somebody is in a write transaction."""
    raw = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return True
    finally:
        raw.close()
    return False


def stop_while_writing(other: Companion, path: Path) -> None:
    """Tell it to write until it was stopped in the middle of one."""
    for _ in range(20):
        other.tell("add", BATCH)
        while not locked(path) and not other.answered():
            pass
        other.process.send_signal(signal.SIGSTOP)
        os.waitpid(other.process.pid, os.WUNTRACED)
        if locked(path):
            return
        other.process.send_signal(signal.SIGCONT)
        other.heard()
    raise AssertionError("it is never seen writing")


@pytest.mark.parametrize("ending", ["SIGCONT", "SIGKILL"], ids=["continued", "killed"])
async def test_a_process_that_stops_while_writing_costs_the_others_one_clear_error(
    path: Path, filled: Fill, ending: str
) -> None:
    await (await filled(path)).close()
    async with opened(path, busy_timeout=0.3) as store:
        with companion(path) as other:
            stop_while_writing(other, path)
            before = await looks(store)
            for touch in ("apply", "keep", "record"):
                with pytest.raises(StoreUnavailable, match=r"locked|busy|turn") as caught:
                    await TOUCHES[touch](store)
                sentence(caught)
            assert await looks(store) == before, "readers go on meanwhile"
            other.process.send_signal(signal.Signals[ending])
            theirs = set(other.heard()) if ending == "SIGCONT" else set[str]()
            new = experience()
            await added(store, new)
            known = {e.id for e in before["scan"]} | theirs | {new.id}
            kept = {e.id for e in await collected(store.scan(scope=MINE))}
            assert known <= kept
            assert len(kept - known) in ({0} if theirs else {0, BATCH}), "a batch is whole or absent"
        assert (await store.verify()).problems == []


@pytest.mark.parametrize("ending", ["SIGCONT", "SIGKILL"], ids=["continued", "killed"])
async def test_a_process_that_stops_while_it_waits_for_its_turn_keeps_no_one_out_for_good(
    path: Path, filled: Fill, ending: str
) -> None:
    await (await filled(path)).close()
    async with opened(path, busy_timeout=0.3) as store:
        before = await looks(store)
        with closing(sqlite3.connect(path, isolation_level=None)) as raw, companion(path) as other:
            raw.execute("BEGIN IMMEDIATE")
            other.tell("add")
            with pytest.raises(StoreUnavailable, match=r"locked|busy|turn") as caught:
                await added(store, experience())  # by now the other one waits, too
            sentence(caught)
            other.process.send_signal(signal.SIGSTOP)
            os.waitpid(other.process.pid, os.WUNTRACED)
            raw.execute("ROLLBACK")
            with suppress(StoreUnavailable):  # it may be the turn of the one that does not take it
                await TOUCHES["record"](store)
            assert (await looks(store))["scan"] == before["scan"]
            other.process.send_signal(signal.Signals[ending])
            theirs = other.heard() if ending == "SIGCONT" else []
            new = experience()
            await added(store, new)
            kept = {e.id for e in await collected(store.scan(scope=MINE))}
            assert kept == {e.id for e in before["scan"]} | {*theirs, new.id}
        assert (await store.verify()).problems == []
