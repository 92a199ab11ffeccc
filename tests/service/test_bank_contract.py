"""The same suite over every place a bank may be: memory, a file, PostgreSQL, and a server over each of both."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Server
from lessonbank.testing.bank_contract import SCOPE, SETTINGS, BankContract

pytest.importorskip("fastapi", reason="needs the extra server")

from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.http.client.bank import RemoteBank
from lessonbank.http.client.operations import OPERATIONS, VIEWS
from lessonbank.http.service.serving import running

pytestmark = pytest.mark.full
ON_THIS_SIDE = frozenset({"attempt", "scale", "trial", "scoped", "in_background", "drain", "close", "admin.sync"})
"""Calls that run the caller's own code or read the caller's own files: the client does them, with the operations."""


class TestInMemory(BankContract):
    def make(self, folder: Path, /) -> lessonbank.ReasoningBank:
        return lessonbank.connect(":memory:", scope=SCOPE, **SETTINGS)


class TestFile(BankContract):
    def make(self, folder: Path, /) -> lessonbank.ReasoningBank:
        return lessonbank.connect(folder / "bank.db", scope=SCOPE, **SETTINGS)


class TestPostgres(BankContract):
    @pytest.fixture(autouse=True)
    def _database(self, postgres_bank: Callable[..., str]) -> None:
        self.database = postgres_bank

    def make(self, folder: Path, /) -> lessonbank.ReasoningBank:
        return lessonbank.connect(self.database(), scope=SCOPE, **SETTINGS)


class Served(BankContract):
    """A bank that is asked over HTTP."""

    @pytest.fixture(autouse=True)
    def _servers(self) -> Generator[None]:
        with ExitStack() as self.servers:
            yield

    def place(self, folder: Path, /) -> str:
        return str(folder / "bank.db")

    def make(self, folder: Path, /) -> lessonbank.ReasoningBank:
        opened = partial(lessonbank.connect_async, self.place(folder), scope=SCOPE, **SETTINGS)
        server = self.servers.enter_context(running(opened))
        key = server.key("learn", scope="", role="admin")
        return lessonbank.connect(Server(server.url, api_key=key), scope=SCOPE)


class TestServedFile(Served):
    pass


def _public(of: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(of) if not name.startswith("_")}


def test_a_remote_bank_has_the_public_names_and_signatures_of_a_local_one() -> None:
    local = {"": AsyncReasoningBank, **VIEWS}
    here = RemoteBank(Server("http://127.0.0.1:1"), scope="x", key=None)
    for view, of in local.items():
        theirs = type(getattr(here, view)) if view else RemoteBank
        for name, method in _public(of).items():
            assert name in _public(theirs), (view, name)
            if inspect.isfunction(method):
                assert inspect.signature(getattr(theirs, name)) == inspect.signature(method), (view, name)


def test_every_method_of_a_bank_is_an_operation_or_done_by_the_client() -> None:
    names = {name for name, one in _public(AsyncReasoningBank).items() if inspect.isfunction(one)}
    for view, of in VIEWS.items():
        names |= {f"{view}.{name}" for name, one in _public(of).items() if inspect.isfunction(one)}
    assert names == OPERATIONS.keys() | ON_THIS_SIDE
    assert not OPERATIONS.keys() & ON_THIS_SIDE


def test_no_method_of_a_remote_bank_is_that_of_the_local_one() -> None:
    """A method that was inherited would look for a store beside the client."""
    here = RemoteBank(Server("http://127.0.0.1:1"), scope="x", key=None)
    for name in OPERATIONS:
        view, _, method = name.rpartition(".")
        mine, theirs = (type(getattr(here, view)), VIEWS[view]) if view else (RemoteBank, AsyncReasoningBank)
        assert getattr(mine, method) is not getattr(theirs, method), name
