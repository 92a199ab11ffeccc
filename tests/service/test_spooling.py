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


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Generator[ReasoningBank]:
    """A client of a server, whose memory is switched on unless the test says `off`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LESSONBANK_OFF", "1" if getattr(request, "param", "on") == "off" else "")
    with running(partial(lessonbank.connect_async, tmp_path / "bank.db", scope="acme", embedder="lexical")) as server:
        monkeypatch.delenv("LESSONBANK_OFF")
        place = Server(server.url, api_key=server.key("Ana", scope="acme", role="admin"))
        with lessonbank.connect(place, scope="acme") as bank:
            yield bank


def spool_of(bank: ReasoningBank) -> Spool:
    """Where runs wait for the address that the client has now."""
    spool = bank.aio._outbox.spool  # pyright: ignore[reportPrivateUsage]
    assert spool
    return spool


@contextmanager
def out_of_reach(bank: ReasoningBank, tmp_path: Path) -> Generator[None]:
    """The server is not there meanwhile. What waits then is for the same server under the address that it has."""
    pool = cast("Any", bank.aio).caller.connection
    url: str = pool.url
    pool.url = "http://127.0.0.1:9/v1"
    yield
    (held,) = (tmp_path / "state" / "lessonbank").iterdir()
    pool.url = url
    held.rename(spool_of(bank).path)


def shipped(bank: ReasoningBank, *, patience: float = 20.0) -> str:
    """The id of a run that ended well, whether the server could take it or not."""
    with bank.attempt(TASK, patience=patience) as attempt:
        attempt.finish(answer="shipped", outcome="success")
    return attempt.run_id


def ids(bank: ReasoningBank) -> set[str]:
    """Of the runs that the server has, when it has done what it was given."""
    bank.drain()
    return {run.trajectory.id for run in bank.runs.list()}


def test_a_run_that_ends_while_the_server_is_away_is_handed_in_later(bank: ReasoningBank, tmp_path: Path) -> None:
    with out_of_reach(bank, tmp_path):
        with bank.attempt(TASK, patience=0.3) as attempt:
            attempt.finish(answer=f"key {KEY}", outcome="success")
        assert "waits on this machine" in " ".join(attempt.notes)
    assert KEY.encode() not in spool_of(bank).path.read_bytes()
    later = shipped(bank)
    assert ids(bank) == {attempt.run_id, later}
    assert bank.runs.get(attempt.run_id).status == "learned"


def test_a_purge_over_http_reaches_what_waits_here_and_what_the_server_has(bank: ReasoningBank, tmp_path: Path) -> None:
    there = shipped(bank)
    with out_of_reach(bank, tmp_path):
        runs = (there, shipped(bank, patience=0.3))
    assert bank.admin.purge(run=runs, reason="asked for", preview=True).runs == runs
    erased = bank.admin.purge(run=runs, reason="asked for")
    assert (erased.runs, erased.spooled) == (runs, 1)
    bank.retrieve(TASK)
    assert ids(bank) == set()


def test_a_run_that_the_key_may_not_hand_in_waits_on_and_holds_up_no_other(bank: ReasoningBank, tmp_path: Path) -> None:
    with out_of_reach(bank, tmp_path):
        shipped(bank.scoped("other"), patience=0.3)
        waiting = shipped(bank, patience=0.3)
    later = shipped(bank)
    assert ids(bank) == {waiting, later}
    assert "1 runs wait" in spool_of(bank).describe()


@pytest.mark.parametrize("bank", ["off"], indirect=True)
def test_what_waits_for_a_server_whose_memory_is_switched_off_waits_on(bank: ReasoningBank, tmp_path: Path) -> None:
    with out_of_reach(bank, tmp_path):
        shipped(bank, patience=0.3)
        with bank.attempt(TASK, patience=0.3):
            pass
    shipped(bank)
    bank.drain()
    assert "2 runs wait" in spool_of(bank).describe()
