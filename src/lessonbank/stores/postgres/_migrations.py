"""How a database comes to have today's tables: numbered steps in one transaction, forward and one back.

A step is made while others work. So it adds columns without reading rows, and never rewrites a table; a new index of a
large table is made for each partition with CREATE INDEX CONCURRENTLY, outside these steps. Step 2 alone is made while
nobody else works, and has no step back: see `_readable_records`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import resources
from secrets import token_hex
from time import sleep
from typing import Final, TypeAlias

import psycopg

from lessonbank.contracts.ports import RECEIPT_SECRET
from lessonbank.errors import StoreUnavailable, VersionMismatch

from ._database import Connection, do, finished, row, rows, translated
from ._readable_records import unpack_records
from ._write import set_setting

log: Final = logging.getLogger("lessonbank")

Step: TypeAlias = str | Callable[[Connection], None]
STEPS: Final[Mapping[int, Step]] = {1: "0001_first.sql", 2: unpack_records}
"""Number to the file, in `migrations/`, or the function that leads to it. `NNNN_name.back.sql` leads back."""
NEWEST: Final = max(STEPS)
OLDEST_READER: Final = 2
"""A release that knows this step, and none of the later ones, still works on what this release writes."""
PARTITIONS: Final = 16
_PATIENCE: Final = "SET LOCAL lock_timeout = '500ms'"
"""Whoever comes after a step that waits for a table waits too, so it waits for half a second and tries again."""
_PAUSES: Final = (0.0, *(0.5,) * 19)
"""Seconds before each try."""
_TURN: Final = "SELECT pg_advisory_xact_lock(hashtextextended('lessonbank migrations', 0))"


_LATEST: Final = (("scopes", "numbers"), ("lessons", "seen"), ("postings", "places"))
"""What came to step 1 last. There were databases at step 1 before it."""
_SINCE: Final = (
    "SELECT c.relname::text, a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
    " JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'lessonbank' AND c.relname = ANY(%s::text[]) AND NOT a.attisdropped"
)


def version(connection: Connection, /) -> int:
    """The number of the last step this database has seen; 0 for none."""
    if row(connection, "SELECT to_regclass('lessonbank.migrations')::text") == (None,):
        return 0
    answer = row(connection, "SELECT coalesce(max(number), 0) FROM lessonbank.migrations")
    return answer[0] if answer else 0


def migrate(connection: Connection, /, *, to: int = NEWEST, partitions: int = PARTITIONS) -> int:
    """Bring the tables to step `to`, which may be one back; the step they were at.

    Raises:
        VersionMismatch: a newer release wrote it, and this one cannot work on it; nothing was changed.
        StoreUnavailable: pgvector is missing, the role may not make tables, or a long transaction uses them.
    """
    with translated():
        for pause in _PAUSES:
            sleep(pause)
            with suppress(psycopg.errors.LockNotAvailable):
                return _migrate(connection, to=to, partitions=partitions)
    raise StoreUnavailable(
        "a transaction that stays open uses the tables, which have to be upgraded: end it (`lessonbank doctor` names "
        "long ones) and connect again; nothing was changed"
    )


def _migrate(connection: Connection, *, to: int, partitions: int) -> int:
    with finished(connection):
        do(connection, _TURN)
        began = at = version(connection)
        check(connection, at)
        if at:
            do(connection, _PATIENCE)
        else:
            _begin(connection)
        while at < to:
            at += 1
            _make(connection, STEPS[at], partitions=partitions)
            sql = "INSERT INTO lessonbank.migrations (number, oldest_reader) VALUES (%s, %s)"
            do(connection, sql, at, OLDEST_READER)
        while at > max(to, 0) and at in STEPS:
            _take_back(connection, STEPS[at], partitions=partitions)
            do(connection, "DELETE FROM lessonbank.migrations WHERE number = %s", at)
            at -= 1
        if not began:
            set_setting(connection, RECEIPT_SECRET, token_hex(32))
    if 0 < began < at:
        log.warning("the bank was upgraded from step %d to %d: the release before cannot open it any more", began, at)
    return began


def _make(connection: Connection, step: Step, *, partitions: int) -> None:
    if callable(step):
        step(connection)
    else:
        _run(connection, step, partitions=partitions)


def _take_back(connection: Connection, step: Step, *, partitions: int) -> None:
    if callable(step):
        raise StoreUnavailable("this step of the tables has no way back: restore a dump from before it")
    _run(connection, step.replace(".sql", ".back.sql"), partitions=partitions)


def check(connection: Connection, at: int, /) -> None:
    """Refuse tables of a development version, and those that a newer release has changed so much that this one cannot
    use them. Raises VersionMismatch."""
    there = {(table, column) for table, column in rows(connection, _SINCE, [table for table, _ in _LATEST])}
    if at and (missing := [f"{table}.{column}" for table, column in _LATEST if (table, column) not in there]):
        raise VersionMismatch(
            f"a development version made the tables of this database, without {' and '.join(missing)}: export each "
            "scope with that version, and import it into a new database; nothing was changed"
        )
    if at <= NEWEST:
        return
    answer = row(connection, "SELECT oldest_reader FROM lessonbank.migrations WHERE number = %s", at)
    if answer and answer[0] > NEWEST:
        raise VersionMismatch(
            f"a newer release wrote this bank (step {at}, this one knows {NEWEST}): upgrade lessonbank; "
            "nothing was changed"
        )


def _begin(connection: Connection) -> None:
    if row(connection, "SHOW server_encoding") != ("UTF8",):
        raise StoreUnavailable("the database does not keep text as UTF-8: make one with ENCODING 'UTF8'")
    try:
        do(connection, "CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.Error as error:
        raise StoreUnavailable(
            "the database has no pgvector, or this role may not switch it on: install pgvector, and let an"
            " administrator execute CREATE EXTENSION vector"
        ) from error
    do(connection, "CREATE SCHEMA IF NOT EXISTS lessonbank")
    do(
        connection,
        "CREATE TABLE lessonbank.migrations (number integer PRIMARY KEY, oldest_reader integer NOT NULL,"
        " at timestamptz NOT NULL DEFAULT now())",
    )


def _run(connection: Connection, name: str, *, partitions: int) -> None:
    text = (resources.files("lessonbank.stores.postgres") / "migrations" / name).read_text(encoding="utf-8")
    with psycopg.ClientCursor(connection) as cursor:  # takes several statements at once
        cursor.execute(text.replace("{partitions}", str(partitions)).encode())
