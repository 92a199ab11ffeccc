"""What becomes of a bank whose file is damaged, changed behind its back or put in the place of another one?

    python -m lessonbank_bench.measure.damage [--lessons 300] [--pages 6] [--pairs 60] [--crashes 12] [--seed 0]
    python -m lessonbank_bench.measure.damage --pages 0     every page of the file: four times as long

It makes a bank in a folder of its own, damages copies of it, and prints the table of docs/store.md, each row as soon
as it is known. Of each table and of each index at most `--pages` are damaged, drawn at random; the table says of how
many. `--json` prints everything at the end. Exit code 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import lessonbank
from lessonbank import Evidence, Extraction, Lesson, Parts, ReasoningBank, Safety, Step, Trajectory
from lessonbank.errors import LessonbankError

PAGE: Final = 4096
SCOPES: Final = ("acme/support", "acme/sales")
Say = Callable[[str], None]
"""How far it is, for whoever waits."""
_WORDS: Final = ("order", "refund", "parcel", "label", "address", "invoice", "customer", "carrier", "window", "form")


@dataclass
class Promise:
    """One row of the table."""

    what: str
    tried: int = 0
    broken: list[str] = field(default_factory=list[str])
    figure: str = ""

    def holds(self, kept: object, case: str, /) -> None:
        """Count one case."""
        self.tried += 1
        if not kept:
            self.broken.append(case)


# --- a bank, and what is in it ----------------------------------------------------------------------------------------


def connect(path: Path, *, scope: str = SCOPES[0]) -> ReasoningBank:
    """The bank, with vectors of a local embedder; nothing is withheld, so that all of it can be compared."""
    return lessonbank.connect(
        path,
        scope=scope,
        embedder="hashing",
        evidence=Evidence(holdout=None),
        parts=Parts(extractor=drawn),
        safety=Safety(admission=None),
    )


async def drawn(attempts: Any, /) -> Extraction:
    """One lesson of a run, in words of its own."""
    task = attempts[0].trajectory.task
    words = task.split(": ", 1)[1].split()
    content = f"Before the {words[0]} is changed, open the {words[1]} of the {words[2]}: the {words[3]} is only there."
    return Extraction(lessons=(Lesson(title=f"Open the {words[1]} first ({task.split(':')[0]})", content=content),))


def run(n: int, chance: random.Random) -> Trajectory:
    """A run from which one lesson can be drawn."""
    said = [" ".join(chance.choices(_WORDS, k=12)) for _ in range(3)]
    steps = tuple(Step(action=f"open {word}", observation=f"error: {word} {n}") for word in said)
    return Trajectory(task=f"Case {n}: {' '.join(chance.choices(_WORDS, k=6))}", steps=steps, metadata={"case": n})


def fill(path: Path, *, lessons: int, seed: int) -> None:
    """A bank of two scopes with every kind of change in its journals."""
    chance = random.Random(seed)
    with connect(path) as every:
        for scope in SCOPES:
            bank = every.scoped(scope)
            for n in range(lessons // len(SCOPES)):
                learned = run(n, chance)
                bank.learn(learned, recall=bank.retrieve(learned.task), outcome="failure" if n % 7 else "success")
            known = bank.lessons.list(limit=lessons)
            bank.lessons.retire(*(lesson.id for lesson in known[::11]), reason="misleads")
            bank.lessons.approve(known[1].id, known[2].id, by="Ana")
            bank.lessons.edit(known[3].id, content="Before a refund, read the fare rules.", by="Ana")
            bank.history.rollback(to=len(bank.history.list()) - 9, reason="a bad day")
            bank.lessons.retire(bank.lessons.list()[0].id, reason="misleads")
            bank.learn(run(lessons, chance))


def contents(path: Path) -> dict[str, Lesson]:
    """Every lesson by id."""
    with connect(path) as bank:
        return lessons_of(bank)


def lessons_of(bank: ReasoningBank) -> dict[str, Lesson]:
    """Every lesson of an open bank by id."""
    return {i.id: i for scope in SCOPES for i in bank.scoped(scope).lessons.list(limit=100_000, retired=True)}


# --- pages ------------------------------------------------------------------------------------------------------------


def salvaged(data: bytes, folder: Path) -> tuple[dict[str, Lesson], set[str], str]:
    """The lessons that salvage brings back, the ids it says are lost, and what is wrong with the new bank."""
    path, new = folder / "damaged.db", folder / "new.db"
    for file in folder.glob("*.db*"):
        file.unlink()
    path.write_bytes(data)
    found = lessonbank.salvage(path, new)
    with connect(new) as bank:
        wrong, held = "; ".join(bank.admin.verify()), lessons_of(bank)
    return held, {id for lost in found.lost for id in lost.lessons}, wrong


@dataclass
class Pages:
    """What was seen of damaged pages."""

    whole: Promise = field(default_factory=lambda: Promise("one damaged page: no lesson is lost that the journal has"))
    said: Promise = field(default_factory=lambda: Promise("what salvage cannot bring back is listed by its id"))
    true: Promise = field(default_factory=lambda: Promise("no salvaged lesson differs from what was written"))
    sound: Promise = field(default_factory=lambda: Promise("the salvaged bank passes `verify`"))
    pairs: Promise = field(default_factory=lambda: Promise("two damaged pages: at least 95 % of the lessons come back"))
    noticed: Promise = field(default_factory=lambda: Promise("one damaged page is noticed by opening or `verify`"))
    written: Promise = field(default_factory=lambda: Promise("what is learned on a damaged file is not lost later"))

    @property
    def failures(self) -> int:
        """Cases so far that broke something."""
        return sum(len(promise.broken) for promise in vars(self).values())

    def compare(self, data: bytes, before: Mapping[str, Lesson], folder: Path, case: str) -> set[str]:
        """Salvage one damaged file; the ids that are lost."""
        try:
            after, lost, wrong = salvaged(data, folder)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            self.whole.holds(False, f"{case}: {error!r}")
            return set(before)
        gone = before.keys() - after.keys()
        self.said.holds(gone <= lost, f"{case}: {len(gone - lost)} of {len(gone)} not listed")
        same = all(after[id] == before[id] for id in after.keys() & before.keys())
        # What a lost rollback had taken out may come back, but retired.
        self.true.holds(same and all(after[id].retired for id in after.keys() - before.keys()), case)
        self.sound.holds(not wrong, f"{case}: {wrong}")
        return set(gone)


def damage_copy(bank: Path, folder: Path, *, seed: int) -> dict[str, Any]:
    """Back up a bank while others write to it, damage two pages of the copy, salvage it; what was found wrong."""
    copy, new, chance = folder / "copy.db", folder / "salvaged.db", random.Random(seed)
    with lessonbank.connect(bank, scope=SCOPES[0], evidence=Evidence(holdout=None)) as source:
        source.admin.backup(copy)
    before, data = every_lesson(copy), copy.read_bytes()
    numbers = chance.sample(range(1, len(data) // PAGE), 2)
    copy.write_bytes(lost_pages(data, numbers, chance))
    found = lessonbank.salvage(copy, new)
    after, named = every_lesson(new), {id for lost in found.lost for id in lost.lessons}
    gone = before - after
    problems = (
        [f"pages {numbers}: {len(gone - named)} of {len(gone)} lost lessons are not named"] if gone - named else []
    )
    if len(gone) > 0.05 * len(before):
        problems.append(f"pages {numbers}: {len(gone)} of {len(before)} lessons are lost")
    with lessonbank.connect(new, scope=SCOPES[0], evidence=Evidence(holdout=None)) as made:
        problems += [f"pages {numbers}: {problem}" for problem in made.admin.verify()]
    return {"lessons": len(before), "lost": len(gone), "problems": problems}


def every_lesson(path: Path) -> set[str]:
    """The ids of the lessons of all scopes."""
    with lessonbank.connect(path, scope=SCOPES[0], evidence=Evidence(holdout=None)) as bank:
        scoped = [bank.scoped(scope).lessons for scope in bank.admin.scopes()]
        return {lesson.id for lessons in scoped for lesson in lessons.list(limit=1_000_000, retired=True)}


def lost_pages(sound: bytes, numbers: Sequence[int], chance: random.Random) -> bytes:
    """The file with these pages overwritten by chance, by nothing or by ones."""
    data = bytearray(sound)
    for number in numbers:
        data[number * PAGE : (number + 1) * PAGE] = chance.choice(
            (b"\0" * PAGE, b"\xff" * PAGE, chance.randbytes(PAGE))
        )
    return bytes(data)


def pages_of(bank: Path) -> dict[str, list[int]]:
    """The pages of each table and of each index; those that are in none are listed as free."""
    held: dict[str, list[int]] = {}
    with closing(sqlite3.connect(bank)) as raw:
        for name, number in raw.execute("SELECT name, pageno FROM dbstat ORDER BY pageno"):
            held.setdefault(name, []).append(number - 1)
    known = {number for numbers in held.values() for number in numbers}
    others = [number for number in range(bank.stat().st_size // PAGE) if number not in known]
    return {**held, "free": others} if others else held


def some_pages(held: Mapping[str, Sequence[int]], most: int, chance: random.Random) -> list[int]:
    """At most so many of each, drawn at random; of 0 all."""
    drawn = [chance.sample(numbers, min(most or len(numbers), len(numbers))) for numbers in held.values()]
    return sorted(number for numbers in drawn for number in numbers)


def damage_pages(
    bank: Path, folder: Path, *, pairs: int, chance: random.Random, most: int = 0, say: Say = lambda _: None
) -> Pages:
    """Some pages of each table and index, or every page that holds something, alone; and some pairs."""
    found, held = Pages(), pages_of(bank)
    held.pop("free", None)  # nobody reads a page that holds nothing, so that nobody can notice what becomes of it
    numbers = some_pages(held, most, chance)
    damage_one_by_one(bank, folder, found, numbers, chance, say)
    found.whole.figure = f"{len(numbers)} of the {sum(map(len, held.values()))} pages of {len(held)} tables and indexes"
    damage_pairs(bank, folder, found, pairs, chance, say)
    return found


def damage_one_by_one(
    bank: Path, folder: Path, found: Pages, numbers: Sequence[int], chance: random.Random, say: Say
) -> None:
    """One page at a time: salvage what is left, and learn on the damaged file."""
    sound, before, holders = bank.read_bytes(), contents(bank), entries_of(bank)
    acknowledged = 0
    for done, number in enumerate(numbers, 1):
        data = lost_pages(sound, [number], chance)
        gone = found.compare(data, before, folder, f"page {number}")
        kept = {id for id in gone if any(blob in data for blob in holders[id])}
        found.whole.holds(not kept, f"page {number}: {len(kept)} lessons")
        acknowledged += write_on(data, folder, found, number)
        say(f"{done} of {len(numbers)} pages, {found.failures} failures")
    found.written.figure = f"{acknowledged} of {len(numbers)} learns were acknowledged after the file was looked over"


def damage_pairs(bank: Path, folder: Path, found: Pages, pairs: int, chance: random.Random, say: Say) -> None:
    """Two pages at a time, from the whole file."""
    sound, before, shares = bank.read_bytes(), contents(bank), list[float]()
    for done in range(pairs):
        numbers = chance.sample(range(len(sound) // PAGE), 2)
        gone = found.compare(lost_pages(sound, numbers, chance), before, folder, f"pages {numbers}")
        shares.append(1 - len(gone) / len(before))
        found.pairs.holds(shares[-1] >= 0.95, f"pages {numbers}: {shares[-1]:.1%}")
        say(f"{done + 1} of {pairs} pairs, {found.failures} failures")
    if shares:
        found.pairs.figure = f"worst {min(shares):.1%}, mean {sum(shares) / len(shares):.2%} of {len(before)} lessons"


def entries_of(bank: Path) -> dict[str, list[bytes]]:
    """Lesson id to the bytes of what holds it whole: journal entries, or an experience's own record."""
    found: dict[str, list[bytes]] = {}
    with closing(sqlite3.connect(bank)) as raw:
        for id, blob in raw.execute(
            "SELECT i.id, CAST(j.entry AS BLOB) FROM lessons i JOIN json_each(j.whole) w ON w.value = i.experience"
            " JOIN journal j UNION ALL SELECT i.id, CAST(e.record AS BLOB) FROM lessons i"
            " JOIN experiences e ON e.number = i.experience WHERE e.record IS NOT NULL"
        ):
            found.setdefault(id, []).append(blob)
    return found


def write_on(data: bytes, folder: Path, found: Pages, number: int) -> bool:
    """Learn on a damaged file, if it lets one; then look whether salvage still has what was learned. Whether it did."""
    path = folder / "written.db"
    for file in folder.glob("written.db*"):
        file.unlink()
    path.write_bytes(data)
    wrong, ids = "", set[str]()
    try:
        with connect(path) as bank:
            for thread in threading.enumerate():
                if thread.name == "lessonbank-check":  # it looks the file over in the background
                    thread.join()
            ids = {i.id for i in bank.learn(run(9_999, random.Random(number)), outcome="failure").lessons}
            wrong = "; ".join(bank.admin.verify())
    except LessonbankError as error:
        wrong = wrong or str(error)
    found.noticed.holds(wrong, f"page {number}")
    kept = not ids or ids <= salvaged(path.read_bytes(), folder)[0].keys()
    found.written.holds(kept, f"page {number}")
    return bool(ids)


# --- values -----------------------------------------------------------------------------------------------------------


def changed(value: Any) -> Iterator[Any]:
    """Other values of the same kind."""
    if isinstance(value, int):
        yield from (value + 1, -value - 1, 1 << 62)
    elif isinstance(value, str):
        yield from (f"{value}x", value[:-1] if len(value) > 1 else "y", "", "é" + value[1:])
    elif isinstance(value, bytes):
        middle = len(value) // 2
        yield value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
        yield from (value[:-1], b"")
    else:
        yield from (0, "x", b"x")


COUNTERS: Final = {
    *(("spaces", "epoch"), ("spaces", "revision"), ("fresh", "revision")),
    *(("recalls", "number"), ("trajectories", "number")),
}
"""Say only how much of a matrix in memory is to be read again, or number a row that no other row need name."""


QUEUE: Final = {("trajectories", column) for column in ("due", "worker", "tries", "error", "leader")}
"""Who learns from a run, and when: written anew with every try. The run itself is covered."""


def change_values(bank: Path, folder: Path, *, chance: random.Random, rows: int = 3) -> Promise:
    """Change one value of one row after the other, in every column of every table, and ask `verify`."""
    promise = Promise(
        "a changed value in any column of any table (but the counters and the queue, see below) is noticed by `verify`,"
        " or by opening"
    )
    with closing(sqlite3.connect(bank)) as raw:
        names = [
            name
            for (name,) in raw.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'")
        ]
        tables = [name for name in names if not name.startswith(("sqlite_", "word_"))]
    for table in tables:
        for column, key, old in some_values(bank, table, chance, rows):
            for new in changed(old):
                if new != old:
                    ask(bank, folder, promise, table, column, key, new)
    return promise


def some_values(bank: Path, table: str, chance: random.Random, rows: int) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Column, what tells its row, value."""
    with closing(sqlite3.connect(bank)) as raw:
        cursor = raw.execute(f"SELECT * FROM {table}")
        columns = [column for column, *_ in cursor.description]
        every = cursor.fetchall()
    for row in chance.sample(every, min(rows, len(every))):
        key = dict(zip(columns, row, strict=True))
        yield from ((column, key, key[column]) for column in columns if (table, column) not in COUNTERS | QUEUE)


def ask(bank: Path, folder: Path, promise: Promise, table: str, column: str, key: dict[str, Any], new: Any) -> None:
    """Change one value in a copy, and see whether anybody says so."""
    path = folder / "changed.db"
    shutil.copyfile(bank, path)
    where = " AND ".join(f"{name} IS ?" for name in key)
    case = f"{table}.{column} {key[column]!r:.40} -> {new!r:.40}"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        try:
            raw.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (new, *key.values()))
        except (sqlite3.IntegrityError, OverflowError):
            return  # the table itself refuses it
    try:
        with connect(path) as memory:
            promise.holds(memory.admin.verify(), case)
    except LessonbankError:
        promise.holds(True, case)
    except Exception as error:  # noqa: BLE001 - an error that is none of the package's is the finding
        promise.holds(False, f"{case}: {error!r}")


# --- files in the place of others -------------------------------------------------------------------------------------


def crash(path: Path, backup: Path, *, before: int, after: int, seed: int) -> None:
    """A bank that is backed up, written to, and whose process is killed: its log stays behind."""
    pid = os.fork()
    if pid == 0:
        chance = random.Random(seed)
        bank = connect(path)
        for n in range(before):
            bank.learn(run(n, chance), outcome="failure")
        bank.admin.backup(backup)
        for n in range(after):
            bank.learn(run(before + n, chance), outcome="failure")
        os._exit(9)
    os.waitpid(pid, 0)


def put_in_place(folder: Path, *, crashes: int) -> list[Promise]:
    """Backups copied by hand over crashed banks, and restored; a file copied over an open one."""
    refused = Promise("a backup copied by hand over a bank with a log is refused, and nothing is written")
    restored = Promise("`restore` brings back the backup, and keeps the earlier bank whole")
    followed = Promise("a bank with its own log opens after a crash, with everything acknowledged")
    replaced = Promise("a file copied over an open bank is neither read nor written to")
    for n in range(crashes):
        path, backup = folder / f"crashed-{n}.db", folder / f"backup-{n}.db"
        before, after = 20 + n, 1 + 7 * n
        crash(path, backup, before=before, after=after, seed=n)
        log = path.with_name(f"{path.name}-wal")
        twin = folder / f"twin-{n}.db"
        shutil.copyfile(path, twin)
        shutil.copyfile(log, twin.with_name(f"{twin.name}-wal"))
        with connect(twin) as bank:
            followed.holds(
                len(bank.lessons.list(limit=1000)) == before + after and not bank.admin.verify(), f"crash {n}"
            )
        shutil.copyfile(backup, path)
        bytes_before = path.read_bytes(), log.read_bytes()
        refused.holds(
            said(lambda path=path: connect(path).close()) and (path.read_bytes(), log.read_bytes()) == bytes_before,
            f"crash {n}",
        )
        told = lessonbank.restore(backup, path)
        with connect(path) as bank:
            held = len(bank.lessons.list(limit=1000)), bank.admin.verify()
        restored.holds(held == (before, ()) and told.kept and Path(told.kept).is_file(), f"crash {n}: {held}")
        replaced.holds(*copied_over(backup, twin, n))
    return [refused, restored, followed, replaced]


def copied_over(backup: Path, path: Path, n: int) -> tuple[bool, str]:
    """Copy a backup over a bank that is open, and use it on."""
    with connect(path) as bank:
        bank.lessons.list()
        if n % 2:
            bank.learn(run(n, random.Random(n)), outcome="failure")
        shutil.copyfile(backup, path)
        data = path.read_bytes()
        read, wrote = said(bank.lessons.list), said(lambda: bank.learn(run(n, random.Random(n)), outcome="failure"))
    return bool(read and wrote), f"copy {n}: reading said {read!r}, writing said {wrote!r}, {len(data)} bytes"


def said(call: Callable[[], object]) -> str:
    """What an error of the package said; empty where there was none."""
    try:
        call()
    except LessonbankError as error:
        return str(error)
    return ""


# --- the table --------------------------------------------------------------------------------------------------------


def measured(
    *, lessons: int, pages: int, pairs: int, crashes: int, seed: int, say: Say = lambda _: None
) -> Iterator[Promise]:
    """Everything, in a folder of its own; each promise as soon as it was tried."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder, chance = Path(name), random.Random(seed)
        bank = folder / "sound.sqlite"
        say(f"filling a bank with {lessons} runs")
        fill(bank, lessons=lessons, seed=seed)
        yield from vars(damage_pages(bank, folder, pairs=pairs, chance=chance, most=pages, say=say)).values()
        small = folder / "small.sqlite"
        fill(small, lessons=24, seed=seed)
        say("changing values")
        yield change_values(small, folder, chance=chance)
        say("putting files in the place of others")
        yield from put_in_place(folder, crashes=crashes)


HEAD: Final = "| promise | cases | failures | |\n|---|---|---|---|"


def row(promise: Promise) -> str:
    """One line of the table."""
    return f"| {promise.what} | {promise.tried:,} | {len(promise.broken)} | {promise.figure} |"


def table(promises: Sequence[Promise]) -> str:
    """As docs/store.md has it."""
    return "\n".join((HEAD, *map(row, promises)))


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lessons", type=int, default=300)
    parser.add_argument("--pages", type=int, default=6, help="most of each table and index; 0: every page")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--crashes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--copy", type=Path, metavar="BANK", help="only damage and salvage a backup of this bank")
    return parser.parse_args()


def main() -> int:
    """Print the table; 1 when a promise is broken."""
    wanted = arguments()
    if wanted.copy:
        with tempfile.TemporaryDirectory() as folder:
            report = damage_copy(wanted.copy, Path(folder), seed=wanted.seed)
        print(json.dumps(report))
        return int(bool(report["problems"]))
    found = list[Promise]()
    if not wanted.json:
        print(HEAD, flush=True)
    for promise in measured(
        lessons=wanted.lessons,
        pages=wanted.pages,
        pairs=wanted.pairs,
        crashes=wanted.crashes,
        seed=wanted.seed,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    ):
        found.append(promise)
        if not wanted.json:
            print(row(promise), flush=True)
        for case in promise.broken[:20]:
            print(f"broken: {promise.what}: {case}", file=sys.stderr, flush=True)
    if wanted.json:
        print(json.dumps([asdict(promise) for promise in found], indent=2))
    return int(any(promise.broken for promise in found))


if __name__ == "__main__":
    sys.exit(main())
