"""Does a bank keep its word under faults? Writers and readers of one file, and SIGKILL at random moments.

    python -m lessonbank_bench.measure.soak --kills 1000 --minutes 20 [--writers 8] [--readers 4] [--seed 0]
    python -m lessonbank_bench.measure.soak --only-kills   without the other faults
    python -m lessonbank_bench.measure.soak --fair 10000   how long each of 8 writers waits for its turn, nobody killed
    python -m lessonbank_bench.measure.soak --check DIR    look again at what an earlier run left in DIR

It runs for `--minutes` and spreads the kills over them; where the machine is too slow for so many, the minutes decide
and the report says how many were made. Of the writers' calls 3 % are cancelled and 3 % find the disk full. Twenty times
a backup is made of the bank while it is used, two pages of the copy are damaged, and it is salvaged. Everybody is
killed at the end. Then the file is opened, and everything that the store acknowledged must be there. Exit code 1 when
anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lessonbank.errors import LessonbankError
from lessonbank_bench.measure.checkout import TESTS

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(TESTS / "stores"))

from _crowd import Log, stand_in_line, start, write
from _onlookers import read
from _promises import Line, compare, read_logs

BANK = "bank.db"
COPIES = 20
"""How many damaged copies are made, as far as each is done before the next is due."""
LARGEST_COPY = 64_000_000
"""Bytes of the largest bank that is still copied."""


# --- who is alive, and who dies ---------------------------------------------------------------------------------------


@dataclass
class Member:
    """One process of the crowd."""

    role: str
    slot: int
    pid: int
    ready: int


@dataclass
class Crowd:
    """The processes of a run, started from this one, which has imported everything already."""

    path: Path
    chance: random.Random
    faults: bool = True
    copies: list[subprocess.Popen[str]] = field(default_factory=list)
    """Those that damage and salvage a copy of the bank."""
    alive: list[Member] = field(default_factory=list)
    started: int = 0
    kills: int = 0
    log_bytes: int = 0
    """The largest write-ahead log that was seen."""
    accidents: list[str] = field(default_factory=list)

    def start(self, role: str, slot: int, /) -> Member:
        """One more writer or reader."""
        self.started += 1
        name, seed = f"{role}-{slot}-{self.started}", self.chance.getrandbits(32)
        work = partial(write, faults=self.faults) if role == "writer" else read
        member = Member(role, slot, *start(work, self.path, name, slot, seed))
        self.alive.append(member)
        return member

    def copy(self) -> None:
        """Damage and salvage a copy of the bank, in a process of its own, unless an earlier one is at it still."""
        busy = any(copy.poll() is None for copy in self.copies)
        if not busy and self.path.exists() and self.path.stat().st_size < LARGEST_COPY:
            command = [sys.executable, "-m", "lessonbank_bench.measure.damage", "--copy", str(self.path)]
            seed = str(self.chance.getrandbits(32))
            self.copies.append(subprocess.Popen([*command, "--seed", seed], stdout=subprocess.PIPE, text=True))

    def copied(self) -> dict[str, int]:
        """What became of the copies: how many there were, their lessons, and how many of these were lost."""
        reports = [_said(copy) for copy in self.copies]
        self.accidents += [f"a damaged copy: {problem}" for report in reports for problem in report["problems"]]
        return {
            "copies": len(reports),
            "copied_lessons": sum(report["lessons"] for report in reports),
            "lost_with_two_pages": sum(report["lost"] for report in reports),
        }

    def kill(self, members: Sequence[Member], /) -> None:
        """End these at once, with no chance to do anything about it."""
        for member in members:
            os.kill(member.pid, signal.SIGKILL)
        for member in members:
            os.waitpid(member.pid, 0)
            self._forget(member)
        self.kills += len(members)

    def replace(self, members: Sequence[Member], /) -> list[Member]:
        """Kill these, and start others in their place."""
        self.kill(members)
        return [self.start(member.role, member.slot) for member in members]

    def watch(self, until: float, /) -> None:
        """Wait, and start another for whoever ended unasked, which nobody should."""
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
            for member in tuple(self.alive):
                if os.waitpid(member.pid, os.WNOHANG)[0]:
                    self.accidents.append(f"{member.role} {member.slot} ended by itself")
                    self._forget(member)
                    self.start(member.role, member.slot)
            self._measure()

    def strike(self) -> None:
        """Kill someone: a writer, one in a transaction, several, everybody, a reader, one that has just begun."""
        writers, readers = self._of("writer"), self._of("reader")
        pick = self.chance.random()
        if pick < 0.25 or not readers:
            self.replace(self.chance.sample(writers, 1))
        elif pick < 0.55:
            self.replace(self._holding() or self.chance.sample(writers, 1))
        elif pick < 0.65:
            self.replace(self.chance.sample(readers, 1))
        elif pick < 0.75:
            self.replace(self.chance.sample(writers, min(len(writers), self.chance.randint(2, 4))))
        elif pick < 0.79:
            self.replace(tuple(self.alive))
        else:
            self._strike_newborn(self.replace(self.chance.sample(writers, 1)), opening=pick > 0.9)

    def _strike_newborn(self, members: list[Member], *, opening: bool) -> None:
        """While it opens the bank, or at its first write."""
        if opening:
            time.sleep(self.chance.uniform(0, 0.015))
        else:
            select.select([members[0].ready], [], [], 60)
            time.sleep(self.chance.uniform(0, 0.004))
        self.replace(members)

    def _holding(self) -> list[Member]:
        """The writer that is seen in a transaction first."""
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            pid = holder(self.path)
            if found := [member for member in self.alive if member.pid == pid]:
                return found
        return []

    def _of(self, role: str) -> list[Member]:
        return [member for member in self.alive if member.role == role]

    def _forget(self, member: Member) -> None:
        self.alive.remove(member)
        os.close(member.ready)

    def _measure(self) -> None:
        log = self.path.with_name(f"{self.path.name}-wal")
        self.log_bytes = max(self.log_bytes, log.stat().st_size if log.exists() else 0)


def _said(copy: subprocess.Popen[str], /) -> dict[str, Any]:
    """The report of one copy."""
    said, _ = copy.communicate(timeout=600)
    if copy.returncode not in (0, 1) or not said:
        return {"lessons": 0, "lost": 0, "problems": [f"it ended with {copy.returncode}"]}
    report: dict[str, Any] = json.loads(said)
    return report


def holder(path: Path, /) -> int | None:
    """The process that holds SQLite's write lock on this file now, where the system tells."""
    try:
        inode = path.with_name(f"{path.name}-shm").stat().st_ino
        held = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
    except OSError:
        return None
    # The write lock is byte 120 of the shared index of the log (https://sqlite.org/walformat.html, "WAL Locks").
    writing = [p for p in held if p[3] == "WRITE" and p[5].endswith(f":{inode}") and p[6:] == ["120", "120"]]
    return int(writing[0][4]) if writing else None


def run(crowd: Crowd, *, writers: int, readers: int, kills: int, seconds: float) -> float:
    """Let the crowd use the bank; how long it did."""
    began = time.monotonic()
    for slot in range(writers):
        crowd.start("writer", slot)
    for slot in range(readers):
        crowd.start("reader", slot)
    gap, copies = seconds / max(kills, 1), iter(began + seconds * (n + 0.5) / COPIES for n in range(COPIES))
    next_copy = next(copies)
    while crowd.kills < kills:
        if crowd.faults and time.monotonic() > next_copy:
            crowd.copy()
            next_copy = next(copies, float("inf"))
        due = began + (crowd.kills + crowd.chance.random()) * gap
        crowd.watch(min(due, began + seconds))
        if time.monotonic() >= began + seconds:
            break
        crowd.strike()
    crowd.watch(began + seconds)
    made = crowd.kills
    crowd.kill(tuple(crowd.alive))
    crowd.kills = made
    return time.monotonic() - began


def doctor(path: Path, /) -> list[str]:
    """What the command line says of the file."""
    command = [sys.executable, "-m", "lessonbank.cli", "doctor", "--bank", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    return [] if done.returncode == 0 else [f"doctor: {done.stdout[-300:]} {done.stderr[-300:]}"]


# --- figures ----------------------------------------------------------------------------------------------------------


def waits(values: Sequence[float], /) -> dict[str, float]:
    """Milliseconds: median, 99th of a hundred, longest."""
    ordered = sorted(values) or [0.0]
    at = {"p50": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "max": -1}
    return {"count": len(values), **{name: round(ordered[place], 2) for name, place in at.items()}}


def figures(logs: Sequence[Sequence[Line]], /) -> dict[str, Any]:
    """How long writers and readers waited for each call."""
    all_lines = [line for log in logs for line in log]
    return {
        "write_ms": waits([line["ms"] for line in all_lines if "done" in line or "failed" in line]),
        "read_ms": waits([line["ms"] for line in all_lines if "look" in line]),
    }


def faults(logs: Sequence[Sequence[Line]], /) -> dict[str, int]:
    """How many calls were cancelled before they ended, and how many the full disk refused."""
    all_lines = [line for log in logs for line in log]
    return {name: sum(name in line for line in all_lines) for name in ("cancelled", "refused")}


def fair(path: Path, /, *, writers: int, count: int, seed: int) -> dict[str, Any]:
    """Every writer adds `count` experiences, all beginning together."""
    hear, go = os.pipe()
    members = [start(stand_in_line, path, f"writer-{n}", n, seed + n, count, hear) for n in range(writers)]
    for _, ready in members:
        os.read(ready, 1)
    began = time.monotonic()
    os.write(go, b"." * writers)
    for pid, _ in members:
        os.waitpid(pid, 0)
    taken = time.monotonic() - began
    turns = [[line["at"] for line in log if "at" in line] for log in read_logs(path.parent)]
    first = min((times[-1] for times in turns if times), default=0.0)
    by_then = [sum(at <= first for at in times) for times in turns] or [0]
    return {
        "writes": sum(map(len, turns)),
        "expected": writers * count,
        "writes_per_s": round(sum(map(len, turns)) / taken, 1),
        "luckiest_share": round(max(by_then) / max(sum(by_then), 1), 3),
        "unluckiest_share": round(min(by_then) / max(sum(by_then), 1), 3),
    }


def report(path: Path, more: dict[str, Any], /) -> dict[str, Any]:
    """All of it."""
    logs = read_logs(path.parent)
    try:
        compared = asyncio.run(compare(path, logs))
        compared["problems"] += doctor(path)
    except LessonbankError as error:
        compared = {"problems": [f"the bank cannot be read: {error}"], "lost": [], "half_written": []}
    return {**more, **compared, **faults(logs), **figures(logs)}


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="an empty or new folder; what is left in it is for --check")
    parser.add_argument("--fair", type=int, metavar="WRITES", help="writes of each writer, nobody killed")
    parser.add_argument("--check", type=Path, metavar="DIR", help="only compare what a run left")
    parser.add_argument("--only-kills", action="store_true", help="no cancelled calls, full disks or damaged copies")
    parser.add_argument("--json", action="store_true", help="print the whole report as JSON")
    return parser.parse_args()


def soak(options: argparse.Namespace, folder: Path, /) -> dict[str, Any]:
    """One run in this folder."""
    path = folder / BANK
    if options.fair:
        return report(path, fair(path, writers=options.writers, count=options.fair, seed=options.seed))
    crowd = Crowd(path, random.Random(options.seed), faults=not options.only_kills)
    taken = run(
        crowd, writers=options.writers, readers=options.readers, kills=options.kills, seconds=options.minutes * 60
    )
    made = {"kills": crowd.kills, "processes": crowd.started, "seconds": round(taken, 1), **crowd.copied()}
    for accident in crowd.accidents:
        Log(folder / "accidents.log").line(problem=accident)
    return report(path, {**made, "largest_log_mb": round(crowd.log_bytes / 1e6, 1)})


def main() -> int:
    """Run, print, and say by the exit code whether all is well."""
    options = arguments()
    if options.check:
        found = report(options.check / BANK, {})
    elif options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        found = soak(options, options.folder)
    else:
        with tempfile.TemporaryDirectory(prefix="lessonbank-soak-") as folder:
            found = soak(options, Path(folder))
    wrong = {key: found[key] for key in ("lost", "half_written", "problems")}
    if options.json:
        print(json.dumps(found))
    else:
        for key, value in {**found, **{key: len(value) for key, value in wrong.items()}}.items():
            print(f"{key:>18}  {value}")
        for key, value in wrong.items():
            print(*(f"{key}: {text}" for text in value[:20]), sep="\n", end="\n" if value else "")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
