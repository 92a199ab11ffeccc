"""A database that does not answer holds nobody longer than that: a lock, a frozen server, a frozen client."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from _silence import SilentLine
from psycopg.conninfo import conninfo_to_dict

import lessonbank
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.postgres import _database  # pyright: ignore[reportPrivateUsage]

pytestmark = pytest.mark.full

SCOPE, TASK = "acme", "Ship a parcel to Rome"
LONG = 20.0
"""Seconds that nothing here takes, however busy the machine is."""


@contextmanager
def locked(address: str, statement: str) -> Generator[None]:
    """Another session, which holds what `statement` locks."""
    with psycopg.connect(address) as other:
        other.execute(statement.encode())
        yield
        other.rollback()


def test_a_locked_table_holds_no_agent(postgres_bank: Callable[..., str]) -> None:
    address, shown = postgres_bank(2), lessonbank.Evidence(holdout=None)
    with lessonbank.connect(address, scope=SCOPE, embedder="lexical", evidence=shown) as bank:
        bank.lessons.add(title="Weigh it", content="Weigh it.", task=TASK, by="Ana")
        with locked(address, "LOCK TABLE lessonbank.experiences, lessonbank.trajectories IN ACCESS EXCLUSIVE MODE"):
            began = time.monotonic()
            with bank.attempt(TASK, patience=0.5) as attempt:
                assert not attempt.text
                attempt.finish(answer="shipped", outcome="success")
            # The server's own limit and ours are nearly equal, and each says so in a sentence of its own.
            with pytest.raises(StoreUnavailable, match=r"no recall within 0\.2 seconds|longer than may be waited for"):
                bank.retrieve(TASK, patience=0.2)
            assert time.monotonic() - began < LONG
        assert bank.retrieve(TASK, patience=LONG).text


@pytest.mark.parametrize(("own", "expected"), [("1500ms", "1500ms"), ("3h", "10min"), ("0", "10min")])
def test_a_shorter_limit_that_a_role_has_of_its_own_stands(
    postgres_bank: Callable[..., str], own: str, expected: str
) -> None:
    address = postgres_bank(2)
    with psycopg.connect(address, autocommit=True) as other:
        role = other.execute("SELECT quote_ident(current_user), quote_ident(current_database())").fetchone()
        assert role
        change = f"ALTER ROLE {role[0]} IN DATABASE {role[1]} SET statement_timeout = '{own}'"
        other.execute(change.encode())
    with lessonbank.connect(address, scope=SCOPE, embedder="lexical") as bank:
        database = cast("Any", bank.aio.store)._database
        asked = "SELECT current_setting('statement_timeout') AS told"
        told = [call(lambda c: _database.rows(c, asked), scope=SCOPE) for call in (database.read, database.write)]
        assert [one.result() for one in told] == [[(expected,)]] * 2


def test_a_lock_that_others_keep_is_a_clear_error_outside_a_block(
    postgres_bank: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_database, "_PATIENCE", 0.2)
    address, frozen = postgres_bank(2), "SELECT pg_advisory_xact_lock(hashtextextended('lessonbank acme', 0))"
    with (
        lessonbank.connect(address, scope=SCOPE, embedder="lexical") as bank,
        locked(address, frozen),
        pytest.raises(StoreUnavailable, match="locked: find out who, try again"),
    ):
        bank.lessons.add(title="Weigh it", content="Weigh it.", task=TASK, by="Ana")


def test_a_client_that_is_frozen_in_a_transaction_loses_its_locks(
    postgres_bank: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_database, "_ABSENT", 0.1)
    database = _database.Database(postgres_bank(2))
    gone = psycopg.errors.IdleInTransactionSessionTimeout, psycopg.OperationalError, StoreUnavailable

    def freeze(connection: _database.Connection) -> None:
        with pytest.raises(gone):
            while True:  # the server ends the session in the middle of one of these pauses
                time.sleep(0.3)
                connection.execute("SELECT 1")

    try:
        with pytest.raises(gone):
            database.write(freeze, scope=SCOPE).result(LONG)
        assert database.write(lambda connection: 1, scope=SCOPE).result(LONG) == 1
    finally:
        database.close()


def test_a_frozen_server_holds_neither_an_agent_nor_the_end_of_its_program(
    postgres_bank: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_database, "_SILENT", 0.2)
    address = postgres_bank(2)
    with psycopg.connect(address) as asking, lessonbank.connect(address, scope=SCOPE, embedder="lexical") as bank:
        bank.retrieve(TASK, patience=LONG)
        sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        backends = [pid for (pid,) in asking.execute(sql).fetchall()]
        for pid in backends:
            os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with bank.attempt(TASK, patience=0.5) as attempt:
                attempt.finish(answer="shipped", outcome="success")
            bank.close()
            assert time.monotonic() - began < LONG
            assert "within 0.5 seconds" in " ".join(attempt.notes)
        finally:
            for pid in backends:
                os.kill(pid, signal.SIGCONT)


def test_a_silent_network_holds_an_agent_for_one_patience_and_no_more(
    postgres_bank: Callable[..., str], postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_database, "_SILENT", 0.2)
    server = Path(str(conninfo_to_dict(postgres_server)["host"])) / ".s.PGSQL.5432"
    with closing(SilentLine(str(server))) as line:
        address = f"{postgres_bank(2).partition('?')[0]}?host={line.folder}"
        with lessonbank.connect(address, scope=SCOPE, embedder="lexical") as bank:
            bank.retrieve(TASK, patience=LONG)
            line.silent.set()
            began = time.monotonic()
            with bank.attempt(TASK, patience=0.8) as attempt:
                attempt.step("weigh the parcel", "2 kg")
                attempt.recall_again(observation="error: no customs form")
                attempt.note("Parcels to Rome need a customs form.")
                attempt.finish(answer="shipped", outcome="success")
            bank.close()
            assert time.monotonic() - began < LONG
    said = " ".join(attempt.notes)
    assert "there was no recall within 0.8 seconds" in said
    assert re.search(r"waits on this machine until the bank answers: .* 0\.(?:0\d|10?) sec", said)
    assert "inbox" not in said  # what the agent noted waits with its run


def test_a_pool_whose_every_connection_waits_holds_no_agent(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank(2)
    with lessonbank.connect(address, scope=SCOPE, embedder="lexical") as bank, ThreadPoolExecutor(24) as others:
        with locked(address, "LOCK TABLE lessonbank.experiences IN ACCESS EXCLUSIVE MODE"):
            waiting = [others.submit(bank.retrieve, TASK, patience=2 * LONG) for _ in range(24)]
            with psycopg.connect(address, autocommit=True) as asking:
                sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while (asking.execute(sql).fetchone() or (0,))[0] < 16:
                    pass
            began = time.monotonic()
            with bank.attempt(TASK, patience=0.5) as attempt:
                attempt.finish(answer="shipped", outcome="success")
            assert time.monotonic() - began < LONG
            assert "within 0.5 seconds" in " ".join(attempt.notes)
        assert all(each.result().id for each in waiting)
