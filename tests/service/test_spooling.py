"""What a server could not take waits beside the client, and reaches the server once it answers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import lessonbank
from lessonbank import ReasoningBank, Server
from lessonbank.bank.spool import Spool
from lessonbank.http.service.serving import running

pytestmark = pytest.mark.full
KEY = "AKIA" + "IOSFODNN7EXAMPLE"
TASK = "Ship parcel 7"


def spool_of(bank: ReasoningBank) -> Spool:
    """Where runs wait for the address that the client has now."""
    spool = bank.aio._outbox.spool  # pyright: ignore[reportPrivateUsage]
    assert spool
    return spool


@contextmanager
def out_of_reach(bank: ReasoningBank, state: Path) -> Generator[None]:
    """The server is not there meanwhile. What waits then is for the same server under the address that it has."""
    pool = cast("Any", bank.aio).caller.connection
    url: str = pool.url
    pool.url = "http://127.0.0.1:9/v1"
    yield
    (held,) = (state / "lessonbank").iterdir()
    pool.url = url
    held.rename(spool_of(bank).path)


def test_a_run_that_ends_while_the_server_is_away_is_handed_in_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="acme", embedder="lexical")
    with running(make) as server:
        place = Server(server.url, api_key=server.key("Ana", scope="acme", role="admin"))
        with lessonbank.connect(place, scope="acme") as bank:
            with out_of_reach(bank, tmp_path / "state"):
                with bank.attempt(TASK, patience=0.3) as attempt:
                    attempt.finish(answer=f"key {KEY}", outcome="success")
                assert "waits on this machine" in " ".join(attempt.notes)
            assert KEY.encode() not in spool_of(bank).path.read_bytes()
            with bank.attempt(TASK) as other:
                other.finish(answer="shipped", outcome="success")
            bank.drain()
            assert {run.trajectory.id for run in bank.runs.list()} == {attempt.run_id, other.run_id}
            assert bank.runs.get(attempt.run_id).status == "learned"


def test_a_purge_over_http_reaches_what_waits_here_and_what_the_server_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="acme", embedder="lexical")
    with running(make) as server:
        place = Server(server.url, api_key=server.key("Ana", scope="acme", role="admin"))
        with lessonbank.connect(place, scope="acme") as bank:
            with bank.attempt(TASK) as there:
                there.finish(answer="shipped", outcome="success")
            with out_of_reach(bank, tmp_path / "state"), bank.attempt(TASK, patience=0.3) as waiting:
                waiting.finish(answer="shipped", outcome="success")
            runs = (there.run_id, waiting.run_id)
            assert bank.admin.purge(run=runs, reason="asked for", preview=True).runs == runs
            erased = bank.admin.purge(run=runs, reason="asked for")
            assert (erased.runs, erased.spooled) == (runs, 1)
            bank.retrieve(TASK)
            bank.drain()
            assert bank.runs.list() == ()


def test_a_run_that_the_key_may_not_hand_in_waits_on_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="acme", embedder="lexical")
    with running(make) as server:
        place = Server(server.url, api_key=server.key("Ana", scope="acme", role="admin"))
        with lessonbank.connect(place, scope="acme") as bank:
            with out_of_reach(bank, tmp_path / "state"):
                for one in (bank.scoped("other"), bank):
                    with one.attempt(TASK, patience=0.3) as waiting:
                        waiting.finish(answer="shipped", outcome="success")
            with bank.attempt(TASK) as later:
                later.finish(answer="shipped", outcome="success")
            bank.drain()
            assert {run.trajectory.id for run in bank.runs.list()} == {waiting.run_id, later.run_id}
            assert "1 runs wait" in spool_of(bank).describe()


def test_what_waits_for_a_server_whose_memory_is_switched_off_waits_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LESSONBANK_OFF", "1")
    make = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="acme", embedder="lexical")
    with running(make) as server:
        monkeypatch.delenv("LESSONBANK_OFF")
        place = Server(server.url, api_key=server.key("Ana", scope="acme", role="admin"))
        with lessonbank.connect(place, scope="acme") as bank:
            with out_of_reach(bank, tmp_path / "state"):
                with bank.attempt(TASK, patience=0.3) as waiting:
                    waiting.finish(answer="shipped", outcome="success")
                with bank.attempt(TASK, patience=0.3):
                    pass
            with bank.attempt(TASK) as later:
                later.finish(answer="shipped", outcome="success")
            bank.drain()
            assert "2 runs wait" in spool_of(bank).describe()
