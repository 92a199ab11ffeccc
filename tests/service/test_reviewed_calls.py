"""A server of a bank with reviewers refuses what is on the list, whatever role a key of the server has."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2

from lessonbank.errors import NotAllowed
from lessonbank.guard.reviewed import CALLS
from lessonbank.http.client.operations import OPERATIONS, Operation, call_of
from lessonbank.http.service.keys import Keys
from lessonbank.http.service.serving import Running

pytestmark = pytest.mark.full
WORDS: dict[str, Any] = {"title": "Oil it", "content": "Oil it first.", "task": "Open it", "by": "Ana"}
LISTED = [one for one in OPERATIONS.values() if one.name in CALLS]
TOLD: dict[str, Any] = {
    **{"by": "Ana", "reason": "r", "days": 1e-9, "all": True, "to": 1, "name": "Bob"},
    **{"outcome": "success", "title": "t", "content": "c", "task": "t", "experience_id": "e"},
}


def _sent(http: httpx2.Client, operation: Operation, lesson: str, headers: dict[str, str]) -> httpx2.Response:
    """The operation with whatever arguments it needs, about `lesson`."""
    ids = {"ids": [lesson, lesson], "id": lesson}
    given = {name: value for name, value in (TOLD | ids).items() if name in call_of(operation).model_fields}
    given["to"] = "valve" if operation.name == "lessons.narrow" else 1
    given = {name: value for name, value in given.items() if name in call_of(operation).model_fields}
    address = f"/v1{operation.path.format(id=lesson, name='u-17')}"
    if operation.file:
        return http.request(operation.method, address, content=b"{}", headers=headers)
    if operation.method == "DELETE":
        return http.request(operation.method, address, headers=headers)
    return http.request(operation.method, address, json=given, headers=headers)


def test_an_admins_key_alone_is_refused_where_a_reviewer_is_registered(http: httpx2.Client, server: Running) -> None:
    call, bank = server.portal.call, server.bank.scoped("acme")
    lesson = call(partial(bank.lessons.add, **WORDS)).id
    admins = {whole: server.key("Ana", scope="" if whole else "acme", role="admin") for whole in (True, False)}
    call(server.bank.admin.add_writer, "u-17")
    key = call(server.bank.admin.add_reviewer, "Ana")
    headers = {one.name: {"Authorization": f"Bearer {admins[one.whole_bank]}"} for one in LISTED}
    for one in LISTED:
        for more in ({}, {"Lessonbank-Writer": "Ana", "Lessonbank-Writer-Key": "x" * 43}):
            refused = _sent(http, one, lesson, headers[one.name] | more)
            assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed"), (one.name, refused.text)
            assert "needs the key of a reviewer" in refused.text
    gated = {"Lessonbank-Writer": "Ana", "Lessonbank-Writer-Key": key}
    for one in sorted(LISTED, key=lambda one: one.name == "admin.remove_reviewer"):  # it ends the key
        assert _sent(http, one, lesson, headers[one.name] | gated).status_code != 403, one.name


def test_keys_of_the_server_are_handed_out_renewed_and_ended_with_a_reviewers_key_only(server: Running) -> None:
    keys, call = Keys(server.bank), server.portal.call
    id = call(partial(keys.add, "one", scope="acme")).split("_")[1]
    key = call(server.bank.admin.add_reviewer, "Ana")
    for doing in (partial(keys.add, "two", scope="acme"), partial(keys.rotate, id), partial(keys.remove, id)):
        for wrong in ({}, {"by": "Ana"}, {"by": "Ana", "key": "x"}, {"by": "Bob", "key": key}):
            with pytest.raises(NotAllowed, match="needs the key of a reviewer"):
                call(partial(doing, **wrong))
    assert [one.name for one, _ in call(keys.list)] == ["one"]
    call(partial(keys.add, "two", scope="acme", by="Ana", key=key))
    call(partial(keys.rotate, id, by="Ana", key=key))
    call(partial(keys.remove, id, by="Ana", key=key))
    assert [one.name for one, _ in call(keys.list)] == ["two"]
