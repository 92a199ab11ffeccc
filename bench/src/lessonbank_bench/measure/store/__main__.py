"""What the embedded store costs, each figure beside the raw operation under it, in one run on one machine.

    python -m lessonbank_bench.measure.store [--lessons N ...] [--parts PART ...] [--folder DIR] [--peers DIR]
        [--calls N] [--json]

By default 10,000 and 100,000 lessons; `--lessons 1000000` measures a bank of a million with a scope of 50,000 besides.
Vectors have 384 dimensions and lie around 500 centres; every experience has a task of 200 characters and one lesson of
300, in English that compresses as real tasks do; one scope, five nearest, embedding excluded, one thread for BLAS.

Figures are medians of wall (and CPU) time over `--calls` calls, taken by turns with the raw operation, after a few
that are not counted; no question is asked twice. Ratios can be compared between machines, milliseconds cannot. Parts:

    retrieve     the bank's retrieve, payload and receipt included, beside one float32 pass of numpy; recall@5
    write        a durable change beside a commit of the same bytes; 1 to 8 tasks, 4 and 8 processes at once
    bulk         batches of 1,000 with vectors; export and import
    open         a fresh process to its first answer, file in the page cache; memory it then holds
    size         the file, text excluded
    loop         how late a task comes that wants to run every millisecond, while the store works: the longest gap of a
                 window, median of three windows; `?` where an idle loop misses the target too. Where the system allows
                 it (root on Linux), the loop goes before other programs, so that only the store holds it up
    care         `verify`, quick and whole, with its memory; the purge of one run; the lessons are in 20 scopes
    retrievers   what each way to search costs over the same store
    peers        the same work done by reasoning-bank, Chroma and LanceDB: needs --peers

`--peers DIR` holds their environments, made there at first use with /usr/bin/python3 and pip. `--folder DIR` keeps the
banks for the next run, as long as neither the rows nor the code of the store change (`--reuse`: even if the code did).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from . import big, bulk, care, freezing, opening, peers, retrievers, retrieving, size, writing
from .banks import Built, Part, built, copied
from .figures import Figure, Missing, table
from .workload import SCOPE, Queries, rows

PARTS = ("retrieve", "write", "bulk", "open", "size", "loop", "care", "retrievers", "peers")
MILLION = 1_000_000
_SECONDS = 3.0
"""How long processes write at once."""


@dataclass(slots=True)
class Run:
    """What was asked for, and what was found so far."""

    lessons: list[int]
    parts: list[str]
    folder: Path
    work: Path
    peers: Path | None
    calls: int
    peer_seconds: float
    reuse: bool
    figures: list[Figure] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    queries: Queries = field(default_factory=Queries)

    def wants(self, part: str) -> bool:
        """Whether `part` is to be measured; if so, says that it is."""
        if part in self.parts:
            print(f"{time.strftime('%H:%M:%S')} {part}", file=sys.stderr)
        return part in self.parts

    @contextmanager
    def going_on(self, part: str, lessons: int) -> Iterator[None]:
        """What goes wrong in one part is told at the end, and costs no other part its figures."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a benchmark of an hour ends with a table, whatever a part raised
            self.missing.append((f"{part} ({lessons:,})", f"{type(error).__name__}: {error}"))


async def one_scope(run: Run, lessons: int) -> None:
    """Everything about a bank of one scope."""
    print(f"{lessons:,} lessons", file=sys.stderr)
    bank = await built(run.folder / f"bank-{lessons}.db", [Part(lessons)], reuse=run.reuse)
    measures = {
        "retrieve": _retrieve,
        "write": _write,
        "bulk": _bulk,
        "open": _open,
        "size": _size,
        "loop": _loop,
        "care": _care,
        "retrievers": _retrievers,
    }
    for part, measure in measures.items():
        if run.wants(part):
            with run.going_on(part, lessons), copied(bank, run.work) as path:
                run.figures += await measure(run, bank, path)


async def _retrieve(run: Run, bank: Built, path: Path) -> list[Figure]:
    return await retrieving.retrieving(path, rows(0, bank.lessons), run.queries, calls=run.calls)


async def _write(run: Run, bank: Built, path: Path) -> list[Figure]:
    seconds = min(_SECONDS, run.calls / 20)
    return await writing.writing(path, bank.lessons, run.work, calls=run.calls, seconds=seconds)


async def _bulk(run: Run, bank: Built, path: Path) -> list[Figure]:
    carried = await bulk.carrying(path, bank.lessons, run.work) if bulk.carried(bank) else []
    return [bulk.importing(bank, run.work), *carried]


async def _open(run: Run, bank: Built, path: Path) -> list[Figure]:
    return opening.opening(path, bank.lessons, run.work)


async def _size(run: Run, bank: Built, path: Path) -> list[Figure]:
    learned = await size.learned(run.work, bank.lessons) if bank.lessons == run.lessons[0] else []
    return [*size.size(bank), *learned]


async def _loop(run: Run, bank: Built, path: Path) -> list[Figure]:
    everything = bank.lessons == run.lessons[0]
    return await freezing.freezing(path, bank.lessons, seconds=run.calls / 100, everything=everything)


async def _care(run: Run, bank: Built, path: Path) -> list[Figure]:
    del path
    each = bank.lessons // care.SCOPES
    parts = [Part(each, start=at * each, scope=f"{SCOPE}/{at}" if at else SCOPE) for at in range(care.SCOPES)]
    with copied(await built(run.folder / f"bank-{bank.lessons}-cared-for.db", parts, reuse=run.reuse), run.work) as own:
        return care.caring(own, bank.lessons)


async def _retrievers(run: Run, bank: Built, path: Path) -> list[Figure]:
    found, lost = await retrievers.retrievers(path, rows(0, bank.lessons), run.queries, calls=run.calls)
    run.missing += lost
    return found


async def a_million(run: Run, lessons: int) -> None:
    """What is asked of a bank of a million."""
    print(f"{lessons:,} lessons", file=sys.stderr)
    banks = await big.million(run.folder, lessons, reuse=run.reuse)
    if run.wants("retrieve"):
        with run.going_on("retrieve", lessons):
            run.figures += await big.searching(banks, run.work, calls=run.calls)
    if run.wants("bulk"):
        with run.going_on("bulk", lessons):
            run.figures.append(bulk.importing(banks.whole, run.work))
    if run.wants("open"):
        with run.going_on("open", lessons):
            run.figures += big.starting(banks, run.work)
    if run.wants("size"):
        run.figures += size.size(banks.whole)


def others(run: Run) -> None:
    """The other engines, as many lessons as ours; only beside our own figures of the same run."""
    if not run.wants("peers"):
        return
    ours = {f.lessons: f.value for f in run.figures if f.name == retrieving.NAME and f.lessons < MILLION}
    if run.peers is None:
        run.missing += [(peer.name, "needs --peers DIR for its environment") for peer in peers.PEERS]
    elif not ours:
        run.missing.append(("peers", "are compared with our own retrieve: add the part `retrieve`"))
    else:
        found, lost = peers.compare(run.peers, run.work, ours, calls=run.calls, seconds=run.peer_seconds)
        run.figures += found
        run.missing += lost


def machine() -> dict[str, object]:
    """Where this ran."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = [line for line in lines if line.startswith("model name")]
    return {
        "cpu": model[0].partition(":")[2].strip() if model else platform.processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "numpy": version("numpy"),
    }


def options(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    about, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lessons", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--folder", type=Path, help="where banks are kept (a disk, not a memory file system)")
    parser.add_argument("--reuse", action="store_true", help="kept banks may be of other code of the store")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="environments of other engines")
    parser.add_argument("--peer-seconds", type=float, default=300, help="the most for filling, and for asking")
    parser.add_argument("--calls", type=int, default=100, help="how many calls a median is of")
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")
    return parser.parse_args(given)


def measured(asked: argparse.Namespace, work: Path) -> Run:
    """Everything that was asked for; `work` is a folder to write in."""
    kept = asked.folder or work / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    run = Run(
        lessons=sorted(asked.lessons),
        parts=asked.parts,
        folder=kept,
        work=work,
        peers=asked.peers and asked.peers.resolve(),
        calls=asked.calls,
        peer_seconds=asked.peer_seconds,
        reuse=asked.reuse,
    )
    for lessons in run.lessons:
        asyncio.run((a_million if lessons >= MILLION else one_scope)(run, lessons))
    with run.going_on("peers", run.lessons[-1]):
        others(run)
    return run


def main() -> None:
    """Measure and print."""
    asked, before = options(), machine()
    if asked.folder:
        asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=asked.folder) as work:
        run = measured(asked, Path(work))
    if asked.json:
        print(json.dumps({"machine": before, "figures": [f.as_json() for f in run.figures], "missing": run.missing}))
        return
    print(", ".join(f"{name} {value}" for name, value in before.items()) + "\n")
    print(table(run.figures, run.missing))


if __name__ == "__main__":
    main()
