"""How the database is that holds a bank: versions, rights, indexes, dead rows and standbys, for whoever runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from typing import Final

from lessonbank._base.plural import plural

from ._database import Connection, row, rows
from ._migrations import NEWEST, STEPS, version
from ._vectors import index_statements

_MANY: Final = 1000
"""Dead rows of a table that are worth a word, where they are a fifth of all."""
_LONG: Final = 600
"""Seconds that a transaction may be open."""


def storage(connection: Connection, /) -> dict[str, str]:
    """Names and short texts; one that asks for something says what."""
    return dict(_read_facts(connection))


def _read_facts(connection: Connection) -> Iterator[tuple[str, str]]:
    asked = row(connection, "SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension"
                            " WHERE extname = 'vector')")  # fmt: skip
    server, vector = asked or ("", "")
    yield "PostgreSQL", str(server)
    yield "pgvector", str(vector)
    yield "tables", f"step {version(connection)} of {NEWEST}"
    yield "role", _role(connection)
    lacking = [*missing_indexes(connection), *invalid_indexes(connection)]
    lacking += [f"{sql};" for sql in index_statements(connection)]
    yield "indexes", " · ".join(lacking) or "all are there"
    yield "dead rows", " · ".join(_dead_rows(connection)) or "few"
    yield "long transactions", _long(connection)
    yield "standbys", _standbys(connection)


def _role(connection: Connection) -> str:
    role = row(
        connection,
        "SELECT rolname, rolsuper OR rolbypassrls, pg_has_role(oid, (SELECT nspowner FROM pg_namespace"
        " WHERE nspname = 'lessonbank'), 'USAGE') FROM pg_roles WHERE rolname = session_user",
    )
    name, free, owns = role or ("", False, False)
    if free:
        return f"{name}: row-level security does not bind it; connect as a role that is no superuser"
    return f"{name}: {'owner' if owns else 'admitted'}; row-level security binds it"


def missing_indexes(connection: Connection, /) -> list[str]:
    """The indexes that the tables should have and do not have, one sentence each."""
    wanted: set[str] = set()
    for step in range(1, version(connection) + 1):
        if isinstance(name := STEPS.get(step), str):
            file = resources.files("lessonbank.stores.postgres") / "migrations" / name
            wanted.update(re.findall(r"^CREATE INDEX (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE))
    there = {name for (name,) in rows(connection, "SELECT indexname FROM pg_indexes WHERE schemaname = 'lessonbank'")}
    return [f"the index {name} is missing: make it again, see migrations/" for name in sorted(wanted - there)]


def invalid_indexes(connection: Connection, /) -> list[str]:
    """Indexes that were not made to the end."""
    indexes = rows(
        connection,
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n"
        " ON n.oid = c.relnamespace WHERE n.nspname = 'lessonbank' AND NOT i.indisvalid ORDER BY 1",
    )
    return [f"REINDEX INDEX lessonbank.{name};" for (name,) in indexes]


def _dead_rows(connection: Connection) -> list[str]:
    tables = rows(
        connection,
        "SELECT relname, n_dead_tup * 100 / (n_live_tup + n_dead_tup) FROM pg_stat_user_tables"
        " WHERE schemaname = 'lessonbank' AND n_dead_tup > %s AND n_dead_tup > n_live_tup / 4 ORDER BY 2 DESC LIMIT 5",
        _MANY,
    )
    return [f"{share} % of {name}: VACUUM lessonbank.{name};" for name, share in tables]


def _long(connection: Connection) -> str:
    answer = row(
        connection,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND xact_start < now() - make_interval(secs => %s)",
        _LONG,
    )
    count = answer[0] if answer else 0
    open_ = plural(count, "is", "are")
    return f"{open_} open for over {_LONG // 60} minutes: erased rows stay until then" if count else "none"


def _standbys(connection: Connection) -> str:
    if row(connection, "SELECT pg_is_in_recovery()") == (True,):
        return "none: this is a standby itself"
    sql = (
        "SELECT application_name, coalesce(extract(epoch FROM replay_lag), 0)::float8,"
        " pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint / 1000 FROM pg_stat_replication"
        " WHERE replay_lsn IS NOT NULL ORDER BY 1"
    )
    lines = [f"{name} is {lag:.1f} s and {kilobytes} kB behind" for name, lag, kilobytes in rows(connection, sql)]
    return " · ".join(lines) or "none, or this role may not see them: GRANT pg_monitor TO it"
