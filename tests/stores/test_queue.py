"""The queue of writers costs fairness when something is wrong with it, and nothing else."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _trouble import opened

from lessonbank.stores.sqlite import _queue as queue_module
from lessonbank.stores.sqlite._queue import SUFFIX, Queue
from lessonbank.testing._store_samples import MINE, added, experience

pytestmark = pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="there is no queue without such locks")


@pytest.fixture
def queues(path: Path) -> Generator[list[Queue]]:
    made = [Queue(path) for _ in range(4)]
    yield made
    for queue in made:
        queue.close()


def file_of(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)


def test_turns_come_in_the_order_of_asking(queues: list[Queue], path: Path) -> None:
    order: list[int] = []

    def take(number: int) -> None:
        with queues[number].turn(30):
            order.append(number)

    threads = [threading.Thread(target=take, args=(n,)) for n in (1, 2, 3)]
    with queues[0].turn(30):
        for drawn, thread in enumerate(threads, 3):
            thread.start()
            while struct.unpack("<QQ", file_of(path).read_bytes())[0] < drawn:
                time.sleep(0.001)
    for thread in threads:
        thread.join(30)
    assert order == [1, 2, 3]


def test_nobody_waits_for_longer_than_the_patience(queues: list[Queue]) -> None:
    with queues[0].turn(), queues[1].turn(0.05), queues[2].turn(0.05):
        pass
    with queues[3].turn(5):
        pass


def test_the_place_of_a_process_that_died_is_free(queues: list[Queue], path: Path) -> None:
    script = "import sys; from pathlib import Path; from lessonbank.stores.sqlite._queue import Queue\n"
    script += "with Queue(Path(sys.argv[1])).turn():\n    print('in', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "in\n"
        other.kill()
        other.wait()
    began = time.monotonic()
    with queues[0].turn(20):
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"\x00" * 16,
        b"\xff" * 16,
        b"\xff" * 7,
        struct.pack("<QQ", 2**63 - 1, 0),
        struct.pack("<QQ", 2**63 - (1 << 20), 5),
        struct.pack("<QQ", 5, 2**64 - 1),
        b"nonsense" * 1000,
    ],
)
def test_whatever_the_file_holds_everybody_gets_a_turn(queues: list[Queue], path: Path, content: bytes) -> None:
    with queues[0].turn():
        file_of(path).write_bytes(content)
    for queue in queues * 2:
        with queue.turn(1):
            pass
    with queues[0].turn():
        file_of(path).write_bytes(content)
        with queues[1].turn(0.05):
            pass


def test_the_file_may_be_deleted_while_it_is_used(queues: list[Queue], path: Path) -> None:
    with queues[0].turn():
        file_of(path).unlink()
        with queues[1].turn(1):
            pass
    with queues[0].turn(1), queues[2].turn(1):
        pass


def test_where_no_file_can_be_made_there_is_no_queue(queues: list[Queue], path: Path) -> None:
    file_of(path).mkdir()
    with ExitStack() as all_at_once:
        for queue in queues:
            all_at_once.enter_context(queue.turn(30))


@pytest.mark.parametrize("why", [errno.ENOLCK, errno.EINVAL, errno.ENOSYS, errno.EIO])
def test_a_file_system_without_locks_has_no_queue(
    queues: list[Queue], monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(why, os.strerror(why))

    names = {name: getattr(fcntl, name) for name in ("F_OFD_SETLK", "F_WRLCK", "F_UNLCK")}
    monkeypatch.setattr(queue_module, "_locks", SimpleNamespace(fcntl=refuse, **names))
    with ExitStack() as all_at_once:
        for queue in queues:
            all_at_once.enter_context(queue.turn(30))


def test_a_full_disk_leaves_no_byte_locked_for_ever(queues: list[Queue], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        for queue in queues:
            with queue.turn(0.05):
                pass
    for queue in queues * 3:
        with queue.turn(0.05):
            pass


@pytest.mark.anyio
async def test_a_damaged_queue_stops_no_write(path: Path) -> None:
    async with opened(path) as store, opened(path) as other:
        for content in (b"\xff" * 16, b"", b"x" * 99):
            file_of(path).write_bytes(content)
            await added(store, experience())
            await added(other, experience())
        file_of(path).unlink()
        await added(store, experience())
        assert (await other.counts(scope=MINE)).experiences == 7


# --- without a number -------------------------------------------------------------------------------------------------
