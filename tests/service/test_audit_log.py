"""Whatever somebody does to administer a bank leaves an entry in the journal, without secrets and contents."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.store_calls import queue_of

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2
from a_server import served

import lessonbank
from lessonbank.contracts.records import Administer
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.http.client.operations import OPERATIONS
from lessonbank.http.service.keys import Keys
from lessonbank.http.service.serving import Running

pytestmark = pytest.mark.full

LOOKS_ONLY = frozenset(
    f"admin.{name}" for name in ("unembedded", "scopes", "storage", "verify", "counts", "writers", "reviewers")
)
"""What an admin only reads. All else has to stand in the journal."""
SECRET = "the vault opens at seven"
Entry = dict[str, Any]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """A server for one act after the other."""
    with served(tmp_path_factory.mktemp("bank")) as server:
        yield server


NUMBERS = itertools.count()


class Office:
    """A server with something to administer, and the admin's key."""

    def __init__(self, server: Running, http: httpx2.Client) -> None:
        self.server, self.http = server, http
        key = server.key("Ana", scope="", role="admin")
        self.headers = {"Authorization": f"Bearer {key}", "Lessonbank-Scope": "acme"}

    def ask(self, name: str, /, **told: Any) -> httpx2.Response:
        one = OPERATIONS[name]
        path = "/".join(told.pop(part[1:-1]) if part.startswith("{") else part for part in one.path.split("/"))
        content = told.pop("content_", None)
        sent: Any = {"params": told} if one.method in ("GET", "DELETE") else {"json": told}
        sent = sent if content is None else {"content": content}
        answer = self.http.request(one.method, f"/v1{path}", headers=self.headers, **sent)
        assert answer.is_success, (name, answer.text)
        return answer

    def journal(self) -> list[Entry]:
        """Of the tenant, and of the bank itself."""
        of_bank = {**self.headers, "Lessonbank-Scope": "default"}
        return [*self.ask("history.list").json(), *self.http.get("/v1/history", headers=of_bank).json()]

    def lesson(self, content: str = SECRET) -> str:
        title = f"Vault {next(NUMBERS)}"
        told = {"title": title, "content": f"{content} {title}", "task": f"Open {title}", "by": "Ana"}
        return self.ask("lessons.add", **told).json()["id"]

    def retired(self) -> str:
        id = self.lesson()
        self.ask("lessons.retire", ids=[id], reason="old")
        return id

    def merged(self) -> str:
        ids = [self.lesson(), self.lesson("Knock.")]
        told = {"ids": ids, "title": "A", "content": f"B {next(NUMBERS)}", "by": "Ana"}
        return self.ask("lessons.merge", **told).json()["id"]

    def run(self) -> str:
        source = {"task": f"Ship parcel {next(NUMBERS)}", "id": f"run-{next(NUMBERS)}"}
        self.ask("learn", source=source, outcome="success")
        return source["id"]

    def given_up(self) -> str:
        """A run that workers tried too often."""
        id, store, call = f"run-{next(NUMBERS)}", self.server.bank.store, self.server.portal.call
        call(partial(store.save_runs, [lessonbank.Trajectory(id=id, task=SECRET)], scope="acme"))
        call(partial(queue_of(store).claim, worker="w", limit=99, seconds=IN_HAND, scope="acme", include_given_up=True))
        call(partial(queue_of(store).release, id, scope="acme", worker="w", error="no model", wait=None))
        return id

    def export(self) -> bytes:
        self.lesson("Another one.")
        there = self.ask("admin.export").content
        self.ask("admin.purge", all=True, reason="moved")
        return there

    def named(self, call: str) -> str:
        key = self.ask(call, name="Ben").json()
        if call == "admin.add_reviewer":  # from now on the bank asks for it
            self.headers |= {"Lessonbank-Writer": "Ben", "Lessonbank-Writer-Key": key}
        return "Ben"


def arguments(office: Office, name: str) -> dict[str, Any]:
    """What an admin or a reviewer tells with each call that is not for reading. A new one has to be named here."""
    by, id = {"by": "Ana"}, "ids"
    made: dict[str, Any] = {
        "lessons.add": lambda: {"title": "A", "content": SECRET, "task": "Open", **by},
        "lessons.approve": lambda: {id: [office.lesson()], **by},
        "lessons.quarantine": lambda: {id: [office.lesson()], "reason": "odd", **by},
        "lessons.retire": lambda: {id: [office.lesson()], "reason": "old", **by},
        "lessons.restore": lambda: {id: [office.retired()], "reason": "new", **by},
        "lessons.edit": lambda: {"id": office.lesson(), "content": "Knock.", **by},
        "lessons.merge": lambda: {id: [office.lesson(), office.lesson("Knock.")], "title": "A", "content": "B", **by},
        "lessons.unmerge": lambda: {"id": office.merged(), "reason": "two", **by},
        "lessons.narrow": lambda: {"id": office.lesson(), "to": ["at night"], **by},
        "runs.retry": lambda: {id: [office.given_up()]},
        "runs.correct": lambda: {"id": office.run(), "outcome": "failure", **by},
        "history.rollback": lambda: {"to": 0, "reason": "a mistake", **by} if office.lesson() else {},
        "admin.reindex": dict,
        "admin.purge": lambda: {"lesson": office.lesson(), "reason": "asked to"},
        "admin.forget": lambda: {"days": 1e-9} if office.run() else {},
        "admin.export": dict,
        "admin.import_": lambda: {"content_": office.export()},
        "admin.backup": dict,
        "admin.rebuild": dict,
        "admin.add_writer": lambda: {"name": "Ben"},
        "admin.remove_writer": lambda: {"name": office.named("admin.add_writer")},
        "admin.add_reviewer": lambda: {"name": "Ben"},
        "admin.remove_reviewer": lambda: {"name": office.named("admin.add_reviewer")},
    }
    return made[name]()


ACTS = sorted(
    (name for name, one in OPERATIONS.items() if one.roles <= {"reviewer", "admin"} and name not in LOOKS_ONLY),
    key=lambda name: (name == "admin.add_reviewer", name),
)
"""The last one is that after which the bank asks for a reviewer."""
ELSEWHERE = {
    "reflect": "it changes nothing where no topic has several lessons: tests/consolidation",
    "consolidate": "it is learning, which adds an experience: tests/service/test_bank_contract.py",
    "lessons.split": "it needs a merge: tests/consolidation",
    "runs.audit": "it draws from judged runs, and leaves an `audit`: tests/test_audits.py",
}
"""Calls that change something only in a bank that a judge has filled; what they change stands in the journal there."""


@pytest.mark.parametrize("name", [name for name in ACTS if name not in ELSEWHERE])
def test_each_act_of_an_admin_or_a_reviewer_stands_in_the_journal(shared: Running, name: str) -> None:
    with httpx2.Client(base_url=shared.url, timeout=60) as http:
        office = Office(shared, http)
        told = arguments(office, name)
        before = [entry for entry in office.journal() if entry["entry"]["kind"] != "erased"]
        office.ask(name, **told)
        new = [entry for entry in office.journal() if entry not in before]
    assert new, f"{name} leaves no entry"
    acts = [entry["entry"] for entry in new if entry["entry"]["kind"] == "admin"]
    assert all(act["by"].startswith(("key:ana/", "key:ben")) for act in acts)
    assert SECRET not in str(acts)
    if name.startswith("admin.") and not acts:
        assert {entry["entry"]["kind"] for entry in new} <= {"purge", "erased", "forgotten"}


def test_the_makers_of_keys_stand_in_the_journal_of_the_keys_tenant_without_the_key(server: Running) -> None:
    keys, call = Keys(server.bank), server.portal.call
    key = call(partial(keys.add, "Ben", scope="acme", role="reviewer"))
    id = key.split("_")[1]
    second = call(keys.rotate, id)
    call(keys.remove, id)
    entries = call(server.bank.scoped("acme").history.list)
    acts = [entry.entry for entry in entries if isinstance(entry.entry, Administer)]
    assert [(act.act, act.subject) for act in acts] == [
        (f"keys.{what}", f"{id}, reviewer, Ben") for what in ("add", "rotate", "remove")
    ]
    assert all(act.by.startswith("process:") for act in acts)
    assert not any(part in str(acts) for part in (key, second, key.split("_", 2)[2]))
    call(partial(keys.add, "Operator", scope="", role="admin"))
    assert len(call(server.bank.scoped("acme").history.list)) == len(entries)
    assert "Operator" in str(call(server.bank.history.list)), "the bank's own scope tells of keys for every scope"


def test_another_embedder_of_a_bank_stands_in_the_journal(tmp_path: Path) -> None:
    for embedder in ("lexical", "hashing", "hashing"):
        with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder=embedder) as bank:
            acts = [entry.entry for entry in bank.history.list()]
    assert [(act.act, act.subject) for act in acts if isinstance(act, Administer)] == [
        ("settings", "embedder hashing in the place of lexical")
    ]


def test_the_audit_log_outlives_the_scope_that_it_tells_of(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
        lesson = bank.lessons.add(title="Vault", content=SECRET, task=SECRET, by="Ana")
        bank.admin.export(tmp_path / "bank.jsonl")
        bank.admin.purge(lesson=lesson.id, reason=f"they asked to forget: {SECRET}")
        bank.admin.purge(all=True, reason="the customer left")
        told = [(entry.entry.kind, getattr(entry.entry, "reason", "")) for entry in bank.history.list()]
    assert [one for one in told if one[0] != "erased"] == [
        ("admin", ""),
        ("purge", "purged"),
        ("purge", "the customer left"),
    ]


def test_an_export_of_a_bank_that_takes_no_writes_is_told_to_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "bank.db"
    lessonbank.connect(path, scope="acme", embedder="lexical").close()
    with (
        lessonbank.connect(lessonbank.File(path, read_only=True), scope="acme") as bank,
        caplog.at_level(logging.WARNING),
    ):
        assert bank.admin.export(tmp_path / "bank.jsonl") == 0
    assert "the journal has no entry of admin.export" in caplog.text


def test_a_reviewer_who_makes_a_new_key_of_its_own_stands_in_the_journal(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
        key = bank.admin.add_reviewer("Ana")
        key = bank.scoped(writer="Ana", key=key).admin.add_reviewer("Ana")
        bank.scoped(writer="Ana", key=key).admin.remove_reviewer("Ana")
        acts = [entry.entry for entry in bank.history.list()]
    assert [act.act for act in acts if isinstance(act, Administer)] == [
        "admin.add_reviewer",
        "admin.add_reviewer",
        "admin.remove_reviewer",
    ]
