"""Two tenants against each other, and callers that are slow, huge, half gone or many: the rest go on."""

from __future__ import annotations

import json
import random
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2

import lessonbank
from lessonbank import Server
from lessonbank.http.client.operations import OPERATIONS, Operation, arguments_of
from lessonbank.http.service.serving import Running

pytestmark = pytest.mark.full

SECRET = {"acme": "the vault of acme opens at seven", "other": "the vault of other opens at nine"}
ATTACKS = 200


def filled(server: Running, tenant: str) -> dict[str, Any]:
    """A tenant with a lesson, a run and a recall, all of which hold its secret; their ids, and its admin's key."""
    key = server.key(f"Ana of {tenant}", scope=tenant, role="admin")
    with lessonbank.connect(Server(server.url, api_key=key), scope=tenant) as bank:
        lesson = bank.lessons.add(title="Vault", content=SECRET[tenant], task=SECRET[tenant], by="Ana")
        bank.lessons.retire(lesson.id, reason="old", by="Ana")
        recall = bank.retrieve(SECRET[tenant])
        bank.learn({"messages": [{"role": "user", "content": SECRET[tenant]}]}, recall=recall, outcome="success")
        run = bank.runs.list()[0].trajectory.id
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=server.url, headers=headers) as http:
        tag = http.get(f"/v1/lessons/{lesson.id}").headers["etag"]
        export = http.get("/v1/admin/export").content
        kept = http.post("/v1/recalls", json={"task": SECRET[tenant]}, headers={"Idempotency-Key": f"of {tenant}"})
    ids = (lesson.id, recall.id, run, lesson.id, kept.json()["id"])
    return {"key": key, "ids": ids, "tag": tag, "export": export, "name": f"of {tenant}"}


def attacks(mine: dict[str, Any], theirs: dict[str, Any], tenant: str, seed: int) -> Iterator[dict[str, Any]]:
    """Requests with a good key that ask for what belongs to another tenant."""
    dice, operations = random.Random(seed), [*OPERATIONS.values()]
    names = [tenant, f"{tenant}/x", f"./{tenant}", f"{tenant}%2Fx", f"{tenant}/..", tenant.upper(), f"%20{tenant}"]
    names += ["*", ""]
    for number in range(ATTACKS):
        one = operations[number % len(operations)]
        id = dice.choice(theirs["ids"])
        beside = [f"../{tenant}", f"{dice.choice(list(SECRET))}/../{tenant}"]
        scope = dice.choice([None, tenant, tenant, tenant, *names, *beside])
        headers = {"Authorization": f"Bearer {mine['key']}"}
        if scope is not None:
            headers["Lessonbank-Scope"] = scope
        smuggled = {"scope": tenant} if dice.random() < 0.1 else {}
        if dice.random() < 0.5:
            headers |= {"Idempotency-Key": theirs["name"], "If-Match": theirs["tag"], "If-None-Match": theirs["tag"]}
            headers["Last-Event-ID"] = "1"
        yield {"method": one.method, "url": address(one, id), "headers": headers, **arguments(one, id, smuggled)}


def address(one: Operation, id: str) -> str:
    parts = [id if part.startswith("{") else part for part in one.path.split("/")]
    return f"/v1{'/'.join(parts)}"


def arguments(one: Operation, id: str, smuggled: dict[str, str]) -> dict[str, Any]:
    told = {"ids": [id], "by": "Ana", "reason": "mine", "recall": id, "run": id, "task": "vault", "outcome": "failure"}
    told |= {"content": "stolen", "source": {"id": id, "task": "vault"}, "to": 1, "at": 1, "a": 0, "b": 1}
    told |= {"lesson": id, "after": id, "text": "vault", "level": 0.9, "experience_id": id, "days": 0.001, "limit": 50}
    names = {each.name for each in arguments_of(one) if each.place != "path"}
    mine = {name: value for name, value in told.items() if name in names}
    if one.name == "admin.purge":
        mine = {"lesson": id, "reason": "mine"}
    return {"params": mine} if one.method == "GET" else {"json": {**mine, **smuggled}}


def test_of_two_tenants_neither_reaches_the_other_by_200_hostile_requests_each(
    server: Running, http: httpx2.Client
) -> None:
    tenants = {tenant: filled(server, tenant) for tenant in SECRET}
    before = {tenant: state(http, one["key"]) for tenant, one in tenants.items()}
    crossed, answered = list[Any](), 0
    for tenant, mine in tenants.items():
        victim = next(name for name in tenants if name != tenant)
        for request in attacks(mine, tenants[victim], victim, seed=len(tenant)):
            answer = http.request(**request)
            answered += answer.status_code < 500
            if SECRET[victim] in answer.text:
                crossed.append((tenant, request, answer.text))
    assert crossed == []
    assert answered == 2 * ATTACKS
    for tenant, one in tenants.items():
        assert state(http, one["key"])[: len(before[tenant])] == before[tenant]
    for tenant, one in tenants.items():
        other = next(name for name in tenants if name != tenant)
        assert SECRET[other] not in str(state(http, one["key"]))


ODD = (
    *('"\\ud800 parcel"', '"\\u0000"', '"\\u202e\\u001b[2J"', '""', "NaN", "1e400", "9" * 400, "9" * 5000, "-1"),
    *("null", "[" * 50_000 + "]" * 50_000, '{"a":' * 20_000 + "1" + "}" * 20_000),
    *('{"id": "\\udfff", "task": "\\ud800"}', "[null]"),
    *('"9999-12-31T23:59:59.9-12:00"', '"0001-01-01T00:00:00+14:00"', "253402300800", f'"{"x" * 50_000}"'),
)
"""Values that some reader of JSON takes, in the words of JSON."""


def sent(one: Operation, name: str, value: str) -> dict[str, Any]:
    """A request in which one argument is odd, and the others are what they should be."""
    told = arguments(one, "abc", {})
    if one.method == "GET":
        return {"params": {**told["params"], name: value[:3000]}}
    fields = [f"{json.dumps(key)}: {json.dumps(each)}" for key, each in told["json"].items() if key != name]
    headers = {"Content-Type": "application/json"}
    return {"content": f"{{{', '.join([*fields, f'{json.dumps(name)}: {value}'])}}}", "headers": headers}


def test_no_argument_makes_the_server_fail(server: Running, http: httpx2.Client) -> None:
    http.headers["Authorization"] = f"Bearer {server.key('Ana', scope='acme', role='admin', rate=10**6)}"
    failed: list[tuple[str, str, str]] = []
    places = [
        (one, each.name)
        for one in OPERATIONS.values()
        if not one.file
        for each in arguments_of(one)
        if each.place != "path"
    ]
    for number, (one, name) in enumerate(places):
        for value in ODD[number % 4 :: 4]:
            answer = http.request(one.method, address(one, "abc"), **sent(one, name, value))
            if answer.status_code >= 500 or (answer.status_code >= 400 and len(answer.text) > 2000):
                failed.append((one.name, name, value[:30]))
    assert not failed
    assert http.get("/v1/runs").status_code == 200


def test_an_export_of_another_tenant_that_is_imported_says_nothing_of_what_that_tenant_has_and_changes_nothing_there(
    server: Running, http: httpx2.Client
) -> None:
    tenants = {tenant: filled(server, tenant) for tenant in SECRET}
    mine, theirs = tenants["acme"], tenants["other"]
    before = state(http, theirs["key"])
    headers = {"Authorization": f"Bearer {mine['key']}"}
    for content in (theirs["export"], mine["export"].replace(mine["ids"][0].encode(), theirs["ids"][0].encode())):
        for scope in ("other", "other/below", "acme/../other"):
            refused = http.post("/v1/admin/import", content=content, headers={**headers, "Lessonbank-Scope": scope})
            assert refused.status_code in (403, 422)
        http.post("/v1/admin/import", content=content, headers=headers)  # a file that one has may be kept in one's own
    assert state(http, theirs["key"]) == before


def state(http: httpx2.Client, key: str) -> list[Any]:
    """The journal of a tenant as far as the other one could have changed it: all that is about its lesson."""
    told = http.get("/v1/history", headers={"Authorization": f"Bearer {key}"}).json()
    return [entry for entry in told if SECRET["acme"] in str(entry) or SECRET["other"] in str(entry)]


def test_a_thousand_idle_connections_and_half_closed_ones_stop_nobody(server: Running, http: httpx2.Client) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 4096), hard), hard))
    at = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    key = {"Authorization": f"Bearer {server.key('agent', scope='acme')}"}
    with ExitStack() as crowd:
        for number in range(1000):
            one = crowd.enter_context(closing(socket.create_connection(at)))
            if number % 3 == 0:
                one.sendall(b"POST /v1/recalls HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
                one.shutdown(socket.SHUT_WR)
            elif number % 3 == 1:
                one.sendall(b"GET /v1 HT")
        for _ in range(20):
            assert http.post("/v1/recalls", json={"task": "Ship"}, headers=key).status_code == 200


def test_a_client_that_sends_a_byte_now_and_then_is_sent_away(server: Running, http: httpx2.Client) -> None:
    key = server.key("agent", scope="acme")
    at = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    head = f"POST /v1/recalls HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 100\r\n\r\n{{"
    with closing(socket.create_connection(at)) as slow:
        slow.settimeout(20)
        slow.sendall(head.encode())
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")
    assert http.get("/healthz").status_code == 200


def test_headers_without_end_are_refused(server: Running, http: httpx2.Client) -> None:
    at = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    with closing(socket.create_connection(at)) as endless:
        endless.settimeout(20)
        endless.sendall(b"GET /v1 HTTP/1.1\r\n" + b"x: " + b"y" * 200_000)
        assert endless.recv(4096).startswith(b"HTTP/1.1 4")
    assert http.get("/healthz").status_code == 200
