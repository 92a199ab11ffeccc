"""The API as a program in any language sees it: keys and roles, problems, pages, repeats, limits, streams."""

from __future__ import annotations

import gzip
import json
import logging
import re
import socket
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Relation
from lessonbank.contracts.store_calls import get_setting, settlement_of

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2

from lessonbank.contracts.records.ids import new_id
from lessonbank.http.client.operations import OPERATIONS
from lessonbank.http.service.keys import Keys as ServerKeys
from lessonbank.http.service.serving import Running

pytestmark = pytest.mark.full

RUN = {
    "task": "Ship parcel 7",
    "steps": [
        {"action": "print label 7", "observation": "the customs field is empty: fill it in before you print"},
        {"action": "fill the customs field", "observation": "ok"},
    ],
}
LESSON = {"title": "Weigh", "content": "Weigh it first.", "task": "Ship a parcel", "by": "Ana"}
Keys = dict[str, dict[str, str]]


def code(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    assert told["detail"]
    return answer.status_code, told["code"]


def added(http: httpx2.Client, keys: Keys) -> dict[str, Any]:
    return http.post("/v1/lessons", json=LESSON, headers=keys["admin"]).json()


def test_messages_are_learned_and_recalled_by_plain_requests(http: httpx2.Client, keys: Keys) -> None:
    learned = http.post("/v1/runs/learn", json={"source": RUN, "outcome": "success"}, headers=keys["agent"])
    assert learned.status_code == 200
    recall = http.post("/v1/recalls", json={"task": "Ship parcel 7"}, headers=keys["agent"]).json()
    assert learned.json()["lessons"][0]["content"] in recall["text"]
    messages = [{"role": "user", "content": "Ship parcel 8"}, {"role": "assistant", "content": "shipped"}]
    for source in (messages, {"messages": messages, "system": "You ship."}, [RUN]):
        told = http.post("/v1/runs", json={"source": source, "outcome": "success"}, headers=keys["agent"])
        assert told.status_code == 200, told.text
    assert http.post("/v1/drain", headers=keys["agent"]).json() is True
    assert len(http.get("/v1/runs", headers=keys["reader"]).json()) == 4


def test_a_call_without_a_key_that_opens_is_unauthenticated(http: httpx2.Client, keys: Keys, server: Running) -> None:
    good = keys["agent"]["Authorization"].removeprefix("Bearer ")
    id = good.split("_")[1]
    wrong = [f"Bearer lb_{id}_{'x' * 43}", "Bearer", "Basic abc", f"Bearer {good}x", "Bearer lb_a/b_c", "Bearer ünï"]
    for header in wrong:
        answer = http.get("/v1/admin/counts", headers={"Authorization": header.encode()})
        assert code(answer) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert code(http.get("/v1/admin/counts")) == (401, "unauthenticated")
    old = server.key("old", scope="acme", days=1e-9)
    assert code(http.get("/v1", headers={"Authorization": f"Bearer {old}"})) == (401, "unauthenticated")


def test_each_role_may_do_what_the_table_says_and_nothing_else(http: httpx2.Client, keys: Keys) -> None:
    for role in ("agent", "reader", "reviewer", "admin"):
        for one in OPERATIONS.values():
            path = one.path.replace("{", "").replace("}", "")
            answer = http.request(one.method, f"/v1{path}", headers=keys[role], json={})
            refused = answer.status_code == 403
            may = one.allows(role) and not one.whole_bank  # type: ignore[arg-type]
            if answer.status_code != 422:  # what has no arguments that it needs was refused for that
                assert refused is not may, (role, one.name, answer.text)


def test_an_agent_never_approves_edits_imports_or_purges() -> None:
    names = ("approve", "edit", "narrow", "add", "quarantine", "retire", "restore", "split", "merge", "unmerge")
    never = {*(f"lessons.{name}" for name in names), "runs.correct", "consolidate", "history.rollback"}
    never |= {name for name in OPERATIONS if name.startswith("admin.") and name != "admin.counts"}
    assert never <= OPERATIONS.keys()
    assert {name for name in never if OPERATIONS[name].allows("agent")} == set()


def test_an_agents_key_reads_what_has_an_id_that_it_was_shown_and_nothing_else(http: httpx2.Client, keys: Keys) -> None:
    paths = {name: one.path.translate(dict.fromkeys(map(ord, "{}"))) for name, one in OPERATIONS.items()}
    reads = [name for name, one in OPERATIONS.items() if one.method == "GET"]
    answers = {name: http.get(f"/v1{paths[name]}", headers=keys["agent"]).status_code for name in reads}
    open_to = {"lessons.get", "recalls.get", "recalls.explain", "admin.counts"}
    assert {name for name, status in answers.items() if status != 403} == open_to
    assert len(answers) > 25


def test_a_reviewers_key_speaks_for_its_holder_and_for_nobody_else(http: httpx2.Client, keys: Keys) -> None:
    lesson = added(http, keys)
    url = f"/v1/lessons/{lesson['id']}"
    as_ben = http.patch(url, json={"content": "Twice.", "by": "Ben"}, headers=keys["reviewer"])
    assert code(as_ben) == (403, "not_allowed")
    assert http.patch(url, json={"content": "Twice.", "by": "ana"}, headers=keys["reviewer"]).status_code == 200
    journal = http.get("/v1/history", headers=keys["reader"]).json()
    assert [entry["writer"] for entry in journal if entry["entry"]["kind"] != "admin"] == ["Ana", "Ana", "ana", "ana"]


def test_only_the_bank_s_own_key_of_a_person_lets_a_reviewer_speak_for_that_person(
    http: httpx2.Client, keys: Keys, server: Running
) -> None:
    key = server.portal.call(server.bank.admin.add_writer, "Ben")
    for writer, given, by, status in (
        ("Ben", "x" * 43, "Ben", 403),
        ("Ben", key, "Cid", 403),
        ("Cid", key, "Cid", 403),
        ("Ben", key, "Ben", 200),
    ):
        headers = {**keys["reviewer"], "Lessonbank-Writer": writer, "Lessonbank-Writer-Key": given}
        assert http.post("/v1/lessons", json={**LESSON, "by": by}, headers=headers).status_code == status


def test_a_key_counts_as_one_writer_whatever_names_it_gives(http: httpx2.Client, keys: Keys, server: Running) -> None:
    recalls = [http.post("/v1/recalls", json={"task": "Ship"}, headers=keys["agent"]).json()["id"] for _ in range(2)]
    for name, recall in zip(("u-1", "u-2"), recalls, strict=True):
        told = {"source": {**RUN, "id": name}, "outcome": "success", "recall": recall}
        headers = {**keys["agent"], "Lessonbank-Writer": name}
        assert http.post("/v1/runs/learn", json=told, headers=headers).status_code == 200
    store = server.bank.store
    told_by = {server.portal.call(lambda id=id: settlement_of(store, id, scope="acme")).identity for id in recalls}  # type: ignore[union-attr,misc]
    assert len(told_by) == 1
    assert told_by.pop().startswith("key:ana/")


def test_a_rotated_key_opens_until_its_overlap_ends(server: Running) -> None:
    keys, call = ServerKeys(server.bank), server.portal.call
    first = server.key("agent-1", scope="acme")
    id = first.split("_")[1]
    second = call(partial(keys.rotate, id, days=1))
    assert call(keys.find, first) == call(keys.find, second) is not None
    third = call(keys.rotate, id)
    assert call(keys.find, first) is call(keys.find, second) is None
    assert call(keys.find, third) is not None
    call(keys.remove, id)
    assert call(keys.find, third) is None
    kept = call(server.bank.store.settings, "server_key/")
    assert not any(part in text for text in kept.values() for part in (first, second, third))


def test_a_server_notes_the_use_of_a_key_once_in_a_while_and_asks_nobody_in_between(
    http: httpx2.Client, server: Running
) -> None:
    shown = server.key("agent-2", scope="acme")
    header, used = {"Authorization": f"Bearer {shown}"}, f"server_key_used/{shown.split('_')[1]}"
    assert http.get("/v1", headers=header).status_code == 200
    assert server.portal.call(get_setting, server.bank.store, used)
    server.portal.call(server.bank.store.put_setting, used, None)
    assert http.get("/v1", headers=header).status_code == 200
    assert server.portal.call(get_setting, server.bank.store, used) is None


def test_too_many_calls_wait_and_say_how_long(http: httpx2.Client, server: Running) -> None:
    slow = {"Authorization": f"Bearer {server.key('slow', scope='acme', rate=6)}"}
    assert http.get("/v1", headers=slow).status_code == 200
    answer = http.get("/v1", headers=slow)
    assert code(answer) == (429, "rate_limited")
    assert 1 <= int(answer.headers["retry-after"]) <= 10


def test_problems_have_the_codes_of_the_package(http: httpx2.Client, keys: Keys) -> None:
    admin = keys["admin"]
    lesson = added(http, keys)
    assert code(http.get("/v1/lessons/nobody", headers=admin)) == (404, "not_found")
    assert code(http.post("/v1/lessons", json=LESSON, headers=admin)) == (409, "conflict")
    assert code(http.post("/v1/recalls", json={"task": ""}, headers=admin)) == (422, "usage")
    assert code(http.post("/v1/recalls", json={"tusk": "x"}, headers=admin)) == (422, "usage")
    assert code(http.post("/v1/recalls", content=b"{", headers=admin)) == (422, "usage")
    assert code(http.get("/v1/nothing", headers=admin)) == (404, "no_such_path")
    wrong = http.put("/v1/lessons", headers=admin)
    assert code(wrong) == (405, "wrong_method")
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "POST"}
    assert code(http.get("/v1", headers={**admin, "Lessonbank-Api": "99"})) == (400, "version_mismatch")
    outside = {**admin, "Lessonbank-Scope": "acmeother"}
    assert code(http.get(f"/v1/lessons/{lesson['id']}", headers=outside)) == (403, "not_allowed")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_whoever_watches_a_server_may_ask_for_the_head_alone(path: str, http: httpx2.Client) -> None:
    answer, head = http.get(path), http.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == answer.headers["content-type"]


def test_a_write_that_is_sent_again_is_done_once(http: httpx2.Client, keys: Keys) -> None:
    named = {**keys["admin"], "Idempotency-Key": "one"}
    first, again = (http.post("/v1/lessons", json=LESSON, headers=named) for _ in range(2))
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert len(http.get("/v1/lessons", headers=keys["reader"]).json()) == 1
    other = http.post("/v1/lessons", json={**LESSON, "title": "Other"}, headers=named)
    assert code(other) == (422, "idempotency")
    of_another_key = {**keys["reviewer"], "Idempotency-Key": "one"}
    assert code(http.post("/v1/lessons", json=LESSON, headers=of_another_key)) == (409, "conflict")


def test_a_large_answer_is_repeated_as_it_was_whether_it_was_packed_or_not(http: httpx2.Client, keys: Keys) -> None:
    large = {**LESSON, "content": "Weigh it first, then write its weight on the label. " * 50}
    for n, packing in enumerate((("gzip", "identity"), ("identity", "gzip"), ("gzip", "gzip"))):
        named = {**keys["admin"], "Idempotency-Key": f"large-{n}"}
        told = {**large, "title": f"Weigh {n}", "content": f"{n}. {large['content']}"}
        answers = [
            http.post("/v1/lessons", json=told, headers={**named, "Accept-Encoding": one}).raise_for_status()
            for one in packing
        ]
        assert [answer.headers.get("content-encoding", "identity") for answer in answers] == [*packing]
        assert answers[0].json() == answers[1].json()


def test_an_edit_of_a_lesson_that_changed_meanwhile_is_refused(http: httpx2.Client, keys: Keys) -> None:
    url = f"/v1/lessons/{added(http, keys)['id']}"
    tag = http.get(url, headers=keys["reader"]).headers["etag"]
    assert http.get(url, headers={**keys["reader"], "If-None-Match": tag}).status_code == 304
    for named in (f"W/{tag}", f'"another", {tag}', "*"):
        assert http.get(url, headers={**keys["reader"], "If-None-Match": named}).status_code == 304
    assert http.get(url, headers={**keys["reader"], "If-None-Match": '"another"'}).status_code == 200
    seen = {**keys["reviewer"], "If-Match": f"W/{tag}"}
    edited = http.patch(url, json={"content": "Twice.", "by": "Ana"}, headers=seen)
    assert edited.status_code == 200
    assert edited.headers["etag"] != tag
    assert code(http.patch(url, json={"content": "Thrice.", "by": "Ana"}, headers=seen)) == (412, "changed")


def test_pages_are_linked_to_the_next(http: httpx2.Client, keys: Keys) -> None:
    for n in range(5):
        http.post(
            "/v1/runs/learn", json={"source": {**RUN, "id": f"r-{n}"}, "outcome": "success"}, headers=keys["agent"]
        )
    url, found = "/v1/runs?limit=2", list[str]()
    while url:
        assert url.startswith("/v1/runs?")  # behind a proxy the server knows neither its name nor that there is TLS
        answer = http.get(url, headers=keys["reader"])
        found += [run["trajectory"]["id"] for run in answer.json()]
        url = answer.links["next"]["url"] if "next" in answer.links else ""
    assert found == [f"r-{n}" for n in reversed(range(5))]


def test_bodies_are_bounded_also_when_they_are_packed(http: httpx2.Client, keys: Keys) -> None:
    large = json.dumps({"source": {**RUN, "answer": "x" * 300_000}}).encode()
    agent = {**keys["agent"], "Content-Type": "application/json"}
    assert code(http.post("/v1/runs/learn", content=large, headers=agent)) == (413, "too_large")
    assert code(http.post("/v1/runs/learn", content=iter([large]), headers=agent)) == (413, "too_large")
    packed = {**agent, "Content-Encoding": "gzip"}
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 60_000
    assert code(http.post("/v1/runs/learn", content=bomb, headers=packed)) == (413, "too_large")


def test_changes_are_streamed_and_a_reader_goes_on_where_it_was(http: httpx2.Client, keys: Keys) -> None:
    lesson = added(http, keys)
    last = len(http.get("/v1/history", headers=keys["reader"]).json())
    with http.stream("GET", "/v1/events", headers={**keys["reader"], "Last-Event-ID": str(last - 1)}) as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        told = list[str]()
        for line in events.iter_lines():
            told.append(line)
            if line == f"id: {last}":
                http.post("/v1/lessons/retire", json={"ids": [lesson["id"]], "reason": "old"}, headers=keys["admin"])
            if line == "event: retire":
                break
    assert [line for line in told if line.startswith("id")] == [f"id: {last}", f"id: {last + 1}"]


def test_health_and_metrics_tell_no_contents_and_no_scopes(http: httpx2.Client, keys: Keys) -> None:
    scope = {**keys["agent"], "Lessonbank-Scope": "acme/secret-team"}
    http.post("/v1/recalls", json={"task": "Ship the submarine"}, headers=scope)
    http.get("/v1/lessons/some-id", headers=keys["agent"])
    http.request("BREW", "/v1/lessons/some-id")
    assert http.get("/healthz").status_code == http.get("/readyz").status_code == 200
    told = http.get("/metrics").text
    assert 'lessonbank_requests_total{method="POST",route="/v1/recalls",status="200"} 1' in told
    assert 'route="/v1/lessons/{id}"' in told
    assert 'lessonbank_runs{state="waiting"} 0' in told
    for secret in ("secret-team", "submarine", "some-id", "acme", "Ana", "BREW"):
        assert secret not in told


def test_logs_tell_no_contents_and_no_scopes(http: httpx2.Client, keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lessonbank.server"):
        headers = {**keys["agent"], "Lessonbank-Scope": "acme/secret-team"}
        answer = http.post("/v1/recalls", json={"task": "Ship the submarine"}, headers=headers)
        http.get("/healthz")  # the line of a request is written before the next one of its connection is read
    told = [json.loads(line.message) for line in caplog.records if line.name == "lessonbank.server"]
    expected = ("/v1/recalls", 200, answer.headers["lessonbank-request"])
    assert (told[0]["route"], told[0]["status"], told[0]["request"]) == expected
    for secret in ("secret-team", "submarine", keys["agent"]["Authorization"][-20:]):
        assert secret not in caplog.text


def test_a_failure_that_nobody_thought_of_is_in_the_log_and_the_metrics_and_its_words_are_not(
    http: httpx2.Client, keys: Keys, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the submarine sank")

    monkeypatch.setattr(lessonbank.AsyncReasoningBank, "retrieve", broken)
    with caplog.at_level(logging.INFO):
        answer = http.post("/v1/recalls", json={"task": "Ship"}, headers=keys["agent"])
        assert code(answer) == (500, "internal")
        assert 'route="/v1/recalls",status="500"} 1' in http.get("/metrics").text
    assert f'"request": "{answer.headers["lessonbank-request"]}"' in caplog.text
    assert "RuntimeError at test_api.py" in caplog.text
    assert "submarine" not in caplog.text


def test_a_client_that_goes_away_while_it_sends_is_no_failure_of_the_server(
    http: httpx2.Client, keys: Keys, server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    head = f"POST /v1/recalls HTTP/1.1\r\nHost: x\r\nAuthorization: {keys['agent']['Authorization']}\r\n"
    with caplog.at_level(logging.INFO, logger="lessonbank.server"):
        with closing(socket.create_connection(("127.0.0.1", httpx2.URL(server.url).port or 0))) as client:
            client.sendall(head.encode() + b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
        while '"route": "/v1/recalls"' not in caplog.text:
            assert http.get("/healthz").status_code == 200
    assert {record.levelname for record in caplog.records} == {"INFO"}


def test_traces_of_opentelemetry_become_runs_when_they_are_whole(http: httpx2.Client, keys: Keys) -> None:
    def span(id: str, parent: str, **attributes: str) -> dict[str, Any]:
        told = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
        return {"traceId": "a" * 32, "spanId": id * 16, "parentSpanId": parent, "attributes": told}

    sent = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Ship parcel 7"}]}])
    back = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "shipped"}]}])
    chat = span(
        "b", "c" * 16, gen_ai__operation__name="chat", gen_ai__input__messages=sent, gen_ai__output__messages=back
    )
    for one, runs in ((chat, 0), (span("c", "", gen_ai__operation__name="invoke_agent"), 1)):
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}
        assert http.post("/v1/traces", json=body, headers=keys["agent"]).json() == {}
        assert len(http.get("/v1/runs", headers=keys["reader"]).json()) == runs
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    both = {"resourceSpans": [{"scopeSpans": [{"spans": [chat, span("c", "")]}]}]}
    message = ParseDict(json.loads(json.dumps(both).replace("a" * 32, "b" * 32)), ExportTraceServiceRequest())
    told = {**keys["agent"], "Content-Type": "application/x-protobuf"}
    answer = http.post("/v1/traces", content=message.SerializeToString(), headers=told)
    assert (answer.status_code, answer.content) == (200, b"")
    assert len(http.get("/v1/runs", headers=keys["reader"]).json()) == 2
    assert code(http.post("/v1/traces", content=b"\xff\xff", headers=told)) == (422, "format")


def test_an_import_that_fails_names_the_callers_file_and_no_place_of_the_server(
    http: httpx2.Client, keys: Keys
) -> None:
    for name, content in (("mine.jsonl", b"no export"), ("CLAUDE.md", b"\0"), ("x" * 99, b'{"format": "x"}')):
        headers = {**keys["admin"], "Lessonbank-File": "%E6%96%87" * 200 * (name == "CLAUDE.md") + name}
        answer = http.post("/v1/admin/import", content=content, headers=headers)
        detail = answer.json()["detail"]
        assert answer.status_code == 422
        assert f"{name}'" in detail
        assert "/" not in detail.replace("'/", "")


def test_a_file_is_exported_and_imported_by_plain_requests(http: httpx2.Client, keys: Keys) -> None:
    added(http, keys)
    export = http.get("/v1/admin/export", headers=keys["admin"])
    assert export.headers["lessonbank-result"] == "1"
    told = http.post("/v1/admin/import", content=export.content, headers=keys["other admin"])
    assert (told.status_code, told.json()) == (200, 1)
    assert code(http.get("/v1/admin/backup", headers=keys["admin"])) == (403, "not_allowed")
    assert http.get("/v1/admin/backup", headers=keys["operator"]).content.startswith(b"SQLite format 3")
    assert http.get("/v1/admin/scopes", headers=keys["admin"]).json() == ["acme"]
    assert http.get("/v1/admin/scopes", headers=keys["operator"]).json() == ["acme", "default", "other"]


def test_the_description_is_openapi_with_examples_and_every_operation(http: httpx2.Client) -> None:
    told = http.get("/v1/openapi.json").json()
    assert told["openapi"].startswith("3.1")
    described = {(method.upper(), path) for path, one in told["paths"].items() for method in one}
    assert {(one.method, f"/v1{one.path}") for one in OPERATIONS.values()} <= described
    assert "example" in told["paths"]["/v1/recalls"]["post"]["requestBody"]["content"]["application/json"]["examples"]


def test_the_example_shares_a_bank_between_two_agents() -> None:
    from examples_of import load

    assert "make changelog" in load("bank_server").main()


def test_each_link_of_the_description_leads_to_a_call_that_is_answered(http: httpx2.Client, keys: Keys) -> None:
    told = http.get("/v1/openapi.json").json()["paths"]
    every = {one["operationId"]: (way.upper(), path, one) for path, ways in told.items() for way, one in ways.items()}
    sources = ("lessons_add", "lessons_get", "lessons_edit", "retrieve", "submit", "learn", "runs_get")
    links = [(source, every[source][2]["responses"]["200"]["links"]) for source in sources]
    assert all(of for _, of in links)
    for source, link in [(source, link) for source, of in links for link in of.values()]:
        answer = given_by(source, http, keys)
        method, path, _ = every[link["operationId"]]
        for name, expression in link["parameters"].items():
            path = path.replace(f"{{{name}}}", resolved(expression, answer))
        body = json.dumps(link.get("requestBody"))
        for expression in re.findall(r'"(\$response[^"]+)"', body):
            body = body.replace(expression, resolved(expression, answer))
        done = http.request(method, path, json=json.loads(body), headers=keys["admin"])
        assert done.status_code == 200, (link, done.text)


def given_by(source: str, http: httpx2.Client, keys: Keys) -> Any:
    """The answer of an operation that went well, in a scope where nothing of the kind is yet."""
    text = new_id()
    lesson = {**LESSON, "title": f"Weigh {text}", "content": f"Weigh {text} first.", "task": f"Ship {text}"}
    run = {
        "source": {**RUN, "task": f"Ship {text}", "steps": [{"action": f"print {text}", "observation": "error: no"}]}
    }
    ways: dict[str, tuple[str, Any]] = {
        "lessons_add": ("/v1/lessons", lesson),
        "retrieve": ("/v1/recalls", {"task": text}),
        "submit": ("/v1/runs", {**run, "outcome": "success"}),
        "learn": ("/v1/runs/learn", {**run, "outcome": "failure"}),
    }
    if source in ways:
        url, body = ways[source]
        return http.post(url, json=body, headers=keys["admin"]).raise_for_status().json()
    if source == "runs_get":
        (id,) = given_by("submit", http, keys)
        assert http.post("/v1/drain", headers=keys["admin"]).json() is True
        return http.get(f"/v1/runs/{id}", headers=keys["admin"]).raise_for_status().json()
    id = given_by("lessons_add", http, keys)["id"]
    if source == "lessons_get":
        return http.get(f"/v1/lessons/{id}", headers=keys["admin"]).raise_for_status().json()
    edit = {"content": f"Weigh {text} twice.", "by": "Ana"}
    return http.patch(f"/v1/lessons/{id}", json=edit, headers=keys["admin"]).raise_for_status().json()


def resolved(expression: str, answer: Any) -> str:
    """What a runtime expression of OpenAPI stands for."""
    for part in expression.removeprefix("$response.body#/").split("/"):
        answer = answer[int(part) if isinstance(answer, list) else part]
    return str(answer)


def test_a_contradiction_is_proposed_over_http_with_the_id_of_the_other_lesson(
    http: httpx2.Client, keys: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    old = Lesson(title="Turn it left", content="It opens to the left.")
    against = Relation(lesson_ids=(old.id,), kind="contradicts")
    new = Lesson(title="Turn it right", content="It opens to the right.", relation=against)
    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
        for lesson in (old, new):
            bank.consolidate(Experience(scope="acme", task=lesson.title, lessons=(lesson,)))
    told = http.get("/v1/lessons/proposals", headers=keys["reader"]).json()
    found = told if isinstance(told, list) else next(iter(told.values()))
    assert {(one["lesson"]["id"], one["of"], one["change"]) for one in found} == {
        (old.id, new.id, "choose"),
        (new.id, old.id, "choose"),
    }
    assert {one["lesson"]["id"]: one["lesson"]["against"] for one in found}[new.id]["stand"] == "contradicts"


def test_a_bank_whose_file_was_replaced_asks_for_a_restart_in_each_answer_and_once_in_the_log(
    http: httpx2.Client, keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lessonbank.connect(tmp_path / "other.db", scope="t", embedder="lexical").close()
    (tmp_path / "other.db").replace(tmp_path / "bank.db")
    for answer in (http.get("/readyz"), http.get("/v1", headers=keys["agent"])):
        assert answer.status_code == 503
        assert "replaced: restart the server" in answer.json()["detail"]
        assert str(tmp_path) not in answer.text
    told = [line.getMessage() for line in caplog.records if line.levelname == "ERROR"]
    assert len(told) == 1
    assert str(tmp_path / "bank.db") in told[0]
