"""Makes a new bank of what is sound in a damaged one: the journal tells again what the tables no longer have, and what
the tables still have is written to the journal again where it was lost there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Final

from lessonbank._base.atomic_write import WORK, abandon, begin, finish, refuse_odd, refuse_odd_bank
from lessonbank.contracts.records import (
    Add,
    Experience,
    Lost,
    Missing,
    Replace,
    Retire,
    Rollback,
    Salvaged,
    Settle,
)
from lessonbank.contracts.records.timeline import live
from lessonbank.errors import StoreDamaged, StoreUnavailable, UsageError
from lessonbank.stores._records import json_of
from lessonbank.stores._texts import records_with_sums, with_sum
from lessonbank.stores.sqlite._checks import checksum
from lessonbank.stores.sqlite._database import Database
from lessonbank.stores.sqlite._in_use import refuse_if_open
from lessonbank.stores.sqlite._journal import Batch, journal
from lessonbank.stores.sqlite._purge import UNFINISHED
from lessonbank.stores.sqlite._rebuild import rebuild
from lessonbank.stores.sqlite._restore import summed
from lessonbank.stores.sqlite._rollback import change_over
from lessonbank.stores.sqlite._rows import experience_at, find_scope, journal_number, sequence_of
from lessonbank.stores.sqlite._verify import problems
from lessonbank.stores.sqlite._wal_identity import WalIdentity
from lessonbank.stores.sqlite._write import Written, apply, rows_for, set_setting, write

from .pages import Pages
from .wreck import ExperienceRow, Wreck, WrittenEntry

_WRITER: Final = "salvage"
_ENTRY: Final = "INSERT INTO journal (number, at, kind, writer, entry, entry_sum, sum) VALUES (?, ?, ?, ?, ?, ?, ?)"
_REASON: Final = "the change that made it so was lost with a damaged file"


def salvage(bank: Path, new: Path, /) -> Salvaged:
    """Bring what can be read of `bank` into a new file `new`; what is lost, by id.

    Raises:
        UsageError: there is no file `bank`, or `new` is there already.
        StoreUnavailable: somebody has the bank open, or a file cannot be read or written.
        StoreDamaged: nothing of a bank was found.
    """
    bank, new = Path(os.path.realpath(bank)), new.absolute()
    if not bank.is_file():
        raise UsageError(f"there is no file {str(bank)!r}: name the damaged bank")
    refuse_odd_bank(bank)
    refuse_odd(new)
    if new.exists() or not new.parent.is_dir():
        raise UsageError(f"{str(new)!r} is there already, or its folder is not: name a new file")
    refuse_if_open(bank)
    notes: list[str] = []
    log = bank.with_name(f"{bank.name}-wal")
    try:
        WalIdentity(bank).check()
    except StoreUnavailable as error:
        log, notes = None, [f"the log was left aside: {error}"]
    try:
        wreck = Wreck.of(Pages.of(bank, log))
        if not (wreck.journal or wreck.runs or wreck.recalls or wreck.experiences):
            raise StoreDamaged(f"nothing of a bank was found in {bank}")
        return _put(wreck, bank, new, notes)
    except OSError as error:
        raise StoreUnavailable(f"cannot salvage {str(bank)!r}: {error.strerror or error}") from error


def _put(wreck: Wreck, bank: Path, new: Path, notes: list[str]) -> Salvaged:
    part = begin(new, like=bank)
    mode = part.stat().st_mode & 0o777
    work = part.with_name(f"{part.name}{WORK}")  # the part is an empty file, which is not taken for a new bank
    try:
        with closing(Database(work, busy_timeout=5.0)) as database:
            database.open()
            lost = database.write(_filled, wreck).result()
            wrong = database.read(problems).result()
            held = database.read(summed).result()
        work.chmod(mode)
        work.replace(part)
        finish(part, new)
    finally:
        abandon(part)
    notes += [f"the new bank is not quite sound: {what}" for what in wrong]
    return Salvaged(bank=str(bank), new=str(new), counts=held, lost=tuple(lost), notes=tuple(notes))


def _filled(connection: sqlite3.Connection, wreck: Wreck) -> list[Lost]:
    names = _name_scopes(wreck)
    missing = {scope: _put_journal(connection, wreck, scope, name) for scope, name in names.items()}
    _put_receipts(connection, wreck)
    for key, value in wreck.settings.items():
        if key != UNFINISHED:
            set_setting(connection, key, value)
    _put_experiences(connection, wreck)
    rebuild(connection)
    for scope, name in names.items():
        here = find_scope(connection, name)
        jumps = {sequence_of(n): w.entry.to for n, w in _of(wreck, scope) if isinstance(w.entry, Rollback)}
        change_over(connection, here, name, live(jumps, here.sequence))
        _put_right(connection, wreck, scope, name)
    return [lost for scope, name in names.items() if (lost := _lost(connection, wreck, scope, name, missing[scope]))]


def _name_scopes(wreck: Wreck) -> dict[int, str]:
    """Return the names of scopes by number. A lost name is taken from the scope's records, or made up to say so."""
    names = {row["scope"]: recall.scope for row, recall in wreck.recalls.values()}
    names |= {abs(row.scope): row.record.scope for row in wreck.experiences.values() if row.record}
    names |= {
        number >> 32: written.entry.brings.scope
        for number, written in wreck.journal.items()
        if written.entry.brings is not None
    }
    there = chain(names, wreck.scopes, (row["scope"] for row, _ in wreck.runs.values()))
    known = {number: f"salvaged-{number}" for number in sorted(set(there))}
    return known | names | {number: name for number, name in wreck.scopes.items() if number in known}


def _of(wreck: Wreck, scope: int) -> list[tuple[int, WrittenEntry]]:
    return [(number, written) for number, written in sorted(wreck.journal.items()) if number >> 32 == scope]


def _put_journal(connection: sqlite3.Connection, wreck: Wreck, scope: int, name: str) -> list[int]:
    """A scope and its journal, as long as it was; the sequences of the entries that are lost."""
    entries = {sequence_of(number): written for number, written in _of(wreck, scope)}
    known = {recall.id for row, recall in wreck.recalls.values() if row["scope"] == scope}
    last = max(chain(entries, [wreck.sequences.get(scope, 0)], _sequences_told(wreck, scope)))
    connection.execute(
        "INSERT INTO scopes (number, name, sequence, sum) VALUES (?, ?, ?, ?)", (scope, name, last, checksum(name))
    )
    gaps, at, blank = list[int](), 0, with_sum(json_of(Missing()))
    for sequence in range(1, last + 1):
        written, number = entries.get(sequence), journal_number(scope, sequence)
        if written is None or (isinstance(written.entry, Settle) and written.entry.settlement.recall_id not in known):
            gaps.append(sequence)
            row = number, at, Missing().kind, _WRITER, *blank, checksum(number, at, _WRITER)
            wreck.journal.pop(number, None)
        else:
            at = written.at
            row = number, at, written.entry.kind, written.writer, *written.text, checksum(number, at, written.writer)
        connection.execute(_ENTRY, row)
    return gaps


def _sequences_told(wreck: Wreck, scope: int) -> list[int]:
    """What the experiences of a scope say of how long its journal was."""
    sequences = (sequence_of(row.entry) for row in wreck.experiences.values() if row.entry >> 32 == scope)
    return [sequence for sequence in sequences if sequence <= wreck.most]


def _put_receipts(connection: sqlite3.Connection, wreck: Wreck) -> None:
    for table, rows in (("trajectories", wreck.runs), ("recalls", wreck.recalls)):
        for number, (row, _) in sorted(rows.items()):
            values = {**row, "number": number}
            marks = ", ".join("?" * len(values))
            connection.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())
            )


def _put_experiences(connection: sqlite3.Connection, wreck: Wreck) -> None:
    """Every experience that the journal holds, taken out for now, as the last entry has it that holds it whole."""
    keys = {number: (abs(scope), id) for (scope, id), number in wreck.named["experiences"].items() if number > 0}
    numbers = {key: number for number, key in keys.items()}
    free = max(keys, default=0) + 1
    holders = dict[tuple[int, str], int]()
    for number, written in sorted(wreck.journal.items()):
        if (brought := written.entry.brings) is not None:
            holders[number >> 32, brought.id] = number
    for key, entry in holders.items():
        if key not in numbers:
            numbers[key], free = free, free + 1
        connection.execute(
            "INSERT INTO experiences (number, scope, created_at, active, words, entry, id, sum)"
            " VALUES (?, ?, 0, 0, 0, ?, ?, ?)",
            (numbers[key], -key[0], entry, key[1], checksum(numbers[key], entry)),
        )


def _put_right(connection: sqlite3.Connection, wreck: Wreck, scope: int, name: str) -> None:
    """Where changes are lost, what the rows of experiences say counts: it is the later state."""
    shown = dict(connection.execute("SELECT id, number FROM experiences WHERE scope = ?", (scope,)))
    changes = list[Add | Replace]()
    hidden = list[str]()
    for row in wreck.experiences.values():
        if row.scope == scope and (experience := _experience_of(wreck, row)) is not None:
            if row.id not in shown:
                changes.append(Add(experience=experience))
            elif experience_at(connection, shown[row.id]) != experience:
                changes.append(Replace(experience=experience, reason=_REASON))
        elif row.scope == -scope and row.id in shown:
            hidden += [i.id for i in experience_at(connection, shown[row.id]).lessons if not i.retired]
    if changes:
        _write_again(connection, name, changes, shown)
    if hidden:
        retired = Retire(lesson_ids=tuple(hidden), reason=_REASON)
        apply(connection, Batch(name, _WRITER, records_with_sums([retired])))


def _experience_of(wreck: Wreck, row: ExperienceRow) -> Experience | None:
    """What an experience's row says it is, by itself or through the entry that wrote it."""
    if row.record is not None:
        return row.record
    written = wreck.journal.get(row.entry)
    return written.entry.brings if written else None


def _write_again(
    connection: sqlite3.Connection, name: str, changes: Sequence[Add | Replace], shown: Mapping[str, int]
) -> None:
    scope = find_scope(connection, name)
    every = {change.experience.id: change.experience for change in changes}
    added = {id for id in every if id not in shown}
    first = journal_number(scope.number, scope.sequence + 1)
    entries = {id: (first + at, True) for at, id in enumerate(every)}
    rows = rows_for(connection, scope, Written(every, added, entries))
    touched = [{rows.numbers[change.experience.id]: True} for change in changes]
    journal(connection, scope, Batch(name, _WRITER, records_with_sums(changes)), touched=touched, grown=rows.grown)
    write(connection, scope, rows)


def _lost(connection: sqlite3.Connection, wreck: Wreck, scope: int, name: str, changes: Sequence[int]) -> Lost | None:
    """The ids that the wreck speaks of and the new bank does not have."""
    homes = {number: abs(where) for (where, _), number in wreck.named["experiences"].items()}
    lessons = {id for (where, id), home in wreck.named["lessons"].items() if scope in (where, homes.get(home))}
    lost = Lost(
        scope=name,
        experiences=_missing_ids(connection, "experiences", _ids(wreck, "experiences", scope), scope),
        lessons=_missing_ids(connection, "lessons", lessons, scope),
        runs=_missing_ids(connection, "trajectories", _ids(wreck, "trajectories", scope), scope),
        recalls=_missing_ids(connection, "recalls", _ids(wreck, "recalls", scope), scope),
        changes=tuple(changes),
    )
    return None if lost == Lost(scope=name) else lost


def _ids(wreck: Wreck, table: str, scope: int) -> set[str]:
    return {id for where, id in wreck.named[table] if abs(where) == scope}


_THERE: Final = {
    "experiences": "SELECT id FROM experiences WHERE abs(scope) = ?",
    "lessons": "SELECT i.id FROM lessons i JOIN experiences e ON e.number = i.experience WHERE abs(e.scope) = ?",
    "trajectories": "SELECT id FROM trajectories WHERE scope = ?",
    "recalls": "SELECT id FROM recalls WHERE scope = ?",
}


def _missing_ids(connection: sqlite3.Connection, table: str, ids: Iterable[str], scope: int) -> tuple[str, ...]:
    return tuple(sorted(set(ids).difference(id for (id,) in connection.execute(_THERE[table], (scope,)))))
