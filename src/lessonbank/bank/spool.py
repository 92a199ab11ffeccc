"""What a bank could not take in time waits in a private file of this user, and is handed in when the bank answers."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Collection, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from time import time
from typing import Final, Literal

from lessonbank.contracts.records import Json, Outcome, Recall, Record, Trajectory
from lessonbank.contracts.records.ids import digest

MOST_BYTES: Final = 9_500_000
"""Of texts; with its pages the file stays below 10 MB."""
MOST_SECONDS: Final = 7 * 86_400.0
_WHERE: Final = ("XDG_STATE_HOME", "LOCALAPPDATA", "HOME", "USERPROFILE")
"""What says where this user's state is."""
_CLAIMED: Final = 60.0
"""Seconds for which one process hands in, until it claims again."""
_TABLES: Final = (
    "PRAGMA auto_vacuum = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA synchronous = EXTRA",  # with less, a journal that a power cut brings back undoes what was kept
    "CREATE TABLE IF NOT EXISTS runs (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL, scope TEXT, entry TEXT)",
    "CREATE TABLE IF NOT EXISTS told (name TEXT PRIMARY KEY, value REAL)",
    "INSERT OR IGNORE INTO told VALUES ('dropped', 0), ('claimed', 0)",
)


_COUNTED: Final = (
    "SELECT coalesce(sum(CASE WHEN json_valid(entry) THEN coalesce(json_array_length(entry, '$.runs'), 1) ELSE 1 END),"
    " 0), coalesce(sum(length(entry)), 0) FROM runs"
)
"""The runs of all calls, and their size. What cannot be read counts as one."""


class Spooled(Record):
    """Clean runs of one call, with what is known of them."""

    call: Literal["submit", "keep_unfinished"]
    scope: str
    writer: str | None
    runs: tuple[Trajectory, ...]
    recall: Recall | str | None
    """What the runs were shown; its id where the bank keeps it."""
    outcome: Outcome | None = None
    reward: float | None = None
    ended_at: datetime
    inbox: tuple[str, ...] = ()
    """What the agent noted for a person."""
    about: Mapping[str, Json] = {}
    """The metadata of these notes."""

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its runs and of its recall."""
        recall = self.recall.id if isinstance(self.recall, Recall) else self.recall
        return frozenset([*(run.id for run in self.runs), *filter(None, [recall])])

    def without(self, ids: Collection[str], metadata: Mapping[str, Json]) -> Spooled:
        """What stays after an erasure of these ids, or of what has this metadata. Its notes go with its first run."""
        recall = self.ids - {run.id for run in self.runs}
        runs = [run for run in self.runs if run.id not in ids and recall.isdisjoint(ids)]
        runs = [run for run in runs if not (metadata and metadata.items() <= run.metadata.items())]
        inbox = self.inbox if runs[:1] == [*self.runs[:1]] else ()
        return self.model_copy(update={"runs": tuple(runs), "inbox": inbox})


@dataclass(frozen=True, slots=True)
class Spool:
    """The file of one bank's address and one key. Every call blocks, and raises OSError or sqlite3.Error."""

    path: Path

    @classmethod
    def of(cls, address: str, key: str | None, /) -> Spool | None:
        """The file of this address and key, which need not be there yet; `None` where LESSONBANK_SPOOL is 0."""
        if os.environ.get("LESSONBANK_SPOOL", "1").strip().lower() in ("0", "off", "false", "no"):
            return None
        return cls(_file(address, key or "", *map(os.environ.get, _WHERE)))

    def put(self, entry: Spooled, /) -> bool:
        """Keep it. Whether there was room."""
        text = entry.model_dump_json()
        with self._open(make=True) as file:
            (held,) = file.execute("SELECT coalesce(sum(length(CAST(entry AS BLOB))), 0) FROM runs").fetchone()
            is_room = held + len(text.encode()) <= MOST_BYTES
            if is_room:
                at = entry.ended_at.timestamp(), entry.scope, text
                file.execute("INSERT INTO runs (at, scope, entry) VALUES (?, ?, ?)", at)
            else:
                _drop(file, 1)
        return is_room

    def is_waiting(self) -> bool:
        """Whether anything waits: a look that writes nothing, and waits for nobody. The file stays when it is empty."""
        if not self.path.exists():
            return False
        with closing(sqlite3.connect(self.path, timeout=0.0)) as file:
            return bool(file.execute("SELECT EXISTS (SELECT 1 FROM runs)").fetchone()[0])

    def claim(self, held: float = 0.0, /) -> float:
        """Begin to hand in, or go on where the claim is the one `held`. The claim: until when; 0 where others do it."""
        until = time() + _CLAIMED
        with self._open() as file:
            claim = "UPDATE told SET value = ? WHERE name = 'claimed' AND (value < ? OR value = ?)"
            return until if file.execute(claim, (until, time(), held)).rowcount else 0.0

    def next(self, after: int, /) -> tuple[int, Spooled | None] | None:
        """The oldest after that number, with its own; `None` for what cannot be read. What is too old is dropped."""
        with self._open() as file:
            old = file.execute("DELETE FROM runs WHERE at < ?", (time() - MOST_SECONDS,)).rowcount
            _drop(file, old)
            row = file.execute("SELECT number, entry FROM runs WHERE number > ? ORDER BY number", (after,)).fetchone()
        return row and (row[0], _read(row[1]))

    def done(self, number: int, /, *, dropped: bool = False) -> None:
        """Take it out."""
        with self._open() as file:
            file.execute("DELETE FROM runs WHERE number = ?", (number,))
            _drop(file, int(dropped))

    def release(self, claim: float, /) -> None:
        """Another process may hand in, unless one has taken over already."""
        with self._open() as file:
            file.execute("UPDATE told SET value = 0 WHERE name = 'claimed' AND value = ?", (claim,))

    def erase(
        self,
        scope: str,
        /,
        *,
        ids: Collection[str] = (),
        metadata: Mapping[str, Json] | None = None,
        before: datetime | None = None,
        all: bool = False,
        preview: bool = False,
    ) -> list[frozenset[str]]:
        """Erase what waits for a scope and is meant: of each entry the `ids` that go, none where it cannot be read.

        What cannot be read is meant by its age and with `all`, and may be meant by ids and metadata.
        """
        if not self.path.exists():
            return []
        with self._open() as file:
            rows = file.execute("SELECT number, at, entry FROM runs WHERE scope = ?", (scope,)).fetchall()
            id_sets = list[frozenset[str]]()
            for number, at, text in rows:
                whole = bool(all or (before and at < before.timestamp()))
                rest = entry.without(ids, metadata or {}) if (entry := _read(text)) and not whole else None
                if (entry and rest == entry) or not (entry or whole or ids or metadata):
                    continue
                ids_of = entry.ids if entry else frozenset[str]()
                id_sets.append(ids_of - rest.ids if rest and rest.runs else ids_of)
                if not preview:
                    _replace(file, number, rest)
        return id_sets

    def describe(self) -> str:
        """What waits, for people."""
        if not self.path.exists():
            return "nothing waits on this machine"
        with self._open() as file:
            count, size = file.execute(_COUNTED).fetchone()
            (dropped,) = file.execute("SELECT value FROM told WHERE name = 'dropped'").fetchone()
        return f"{count} runs wait on this machine ({size / 1000:.0f} kB), {dropped:.0f} were dropped: {self.path}"

    @contextmanager
    def _open(self, *, make: bool = False) -> Generator[sqlite3.Connection]:
        """A transaction on the file."""
        if make:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600))
        with closing(sqlite3.connect(self.path, timeout=1.0, isolation_level=None)) as file:
            for statement in _TABLES:
                file.execute(statement)
            file.execute("BEGIN IMMEDIATE")
            yield file
            file.execute("COMMIT")


def _replace(file: sqlite3.Connection, number: int, rest: Spooled | None) -> None:
    if rest and rest.runs:
        file.execute("UPDATE runs SET entry = ? WHERE number = ?", (rest.model_dump_json(), number))
    else:
        file.execute("DELETE FROM runs WHERE number = ?", (number,))


def _drop(file: sqlite3.Connection, count: int) -> None:
    if count > 0:
        file.execute("UPDATE told SET value = value + ? WHERE name = 'dropped'", (count,))


def _read(text: str) -> Spooled | None:
    try:
        return Spooled.model_validate(json.loads(text))
    except ValueError:  # another release wrote it
        return None


@lru_cache(maxsize=64)
def _file(address: str, key: str, *_environment: str | None) -> Path:
    """Every recall asks for it."""
    return _folder() / f"runs-{digest(chr(0).join((address, key)))[:32]}.spool"


def _folder() -> Path:
    """Where programs of this user keep their state."""
    if given := os.environ.get("XDG_STATE_HOME"):
        return Path(given) / "lessonbank"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "lessonbank"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lessonbank"
    return Path.home() / ".local" / "state" / "lessonbank"
