"""The proxy is its upstream to every client: bytes, statuses and headers pass, as they arrive, to nowhere else."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from itertools import repeat
from pathlib import Path
from typing import Any

import httpx2
import pytest
from running_proxy import PATIENCE, Running, Tenant, running
from scripted_upstream import Call, Got, Reply, Upstream, chat

import lessonbank

pytestmark = pytest.mark.full

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Publish release 1.4"}]}
CHAT = "/v1/chat/completions"


def add_lesson(tenant: Tenant, task: str, content: str) -> None:
    """A lesson that a person wrote for a task."""
    evidence = lessonbank.Evidence(holdout=None)
    with lessonbank.connect(tenant.proxy.bank, scope=tenant.scope, embedder="lexical", evidence=evidence) as bank:
        bank.lessons.add(title="A hint", content=content, task=task, by="Ana")


def raw(proxy: Running, request: bytes) -> bytes:
    """What comes back for bytes on a connection of their own."""
    with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), timeout=PATIENCE) as to:
        to.sendall(request)
        found = b""
        while chunk := to.recv(65536):
            found += chunk
        return found


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS"])
def test_any_other_path_passes_with_its_query_its_status_and_its_headers(
    method: str, tenant: Tenant, upstream: Upstream
) -> None:
    upstream.replies = [Reply(b"\x00\xff{", status=418, headers={"x-request-id": "r-1", "Set-Cookie": "a=1"})]
    url = f"{tenant.proxy.url}/v1/files/a%2Fb%20c?after=%7B1%7D&x="
    with httpx2.Client() as client:
        for _ in range(2):
            reply = client.request(method, url, headers={**tenant.headers, "cookie": ""})
            client.cookies.clear()
    assert (reply.status_code, reply.headers["x-request-id"]) == (418, "r-1")
    assert reply.headers["content-length"] == "3"
    assert reply.content == (b"" if method == "HEAD" else b"\x00\xff{")
    assert {got.path for got in upstream.got} == {"/v1/files/a%2Fb%20c?after=%7B1%7D&x="}
    assert {got.method for got in upstream.got} == {method}
    assert not upstream.got[1].header("cookie"), "the cookies of one client are not another's"
    assert upstream.got[0].header("content-length") in (None, "0")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"messages": [', {}),
        (b"\xff\xfe", {}),
        (b"", {}),
        (b'{"messages": [{"role": "user", "content": "Publish it"}], "messages": []}', {}),
        (b'{"messages": ' + b"[" * 100_000, {}),
        (gzip.compress(json.dumps(ASK).encode(), mtime=0), {"content-encoding": "gzip"}),
        (json.dumps(ASK).encode(), {"origin": "https://page.example"}),
        (json.dumps(ASK).encode(), {"content-type": "text/plain"}),
        (json.dumps({**ASK, "n": 3}).encode(), {}),
    ],
)
def test_what_memory_cannot_read_or_should_not_passes_untouched(
    body: bytes, headers: dict[str, str], tenant: Tenant, upstream: Upstream
) -> None:
    add_lesson(tenant, "Publish release 1.4", "Update the changelog first.")
    upstream.replies = [Reply(b'{"error": "no"}', status=400)]
    reply = tenant.post(CHAT, content=body, headers={"content-type": "application/json", **headers})
    assert (reply.status_code, reply.content) == (400, b'{"error": "no"}')
    assert upstream.got[0].raw == body
    assert upstream.got[0].header("content-encoding") == headers.get("content-encoding")


def test_the_lesson_is_in_a_request_that_comes_in_chunks_and_the_length_is_right(
    tenant: Tenant, upstream: Upstream
) -> None:
    add_lesson(tenant, "Publish release 1.4", "Update the changelog first.")
    upstream.replies = [chat("Done.")]
    body = json.dumps(ASK).encode()
    tenant.post(CHAT, content=iter([body[:20], body[20:]]), headers={"content-type": "application/json"})
    assert "Update the changelog first." in upstream.got[0].body["messages"][0]["content"]
    assert upstream.got[0].header("transfer-encoding") is None
    assert upstream.got[0].header("content-length") == str(len(upstream.got[0].raw))


def test_a_body_that_is_too_large_for_memory_passes_in_one_stream(upstream: Upstream, tmp_path: Path) -> None:
    upstream.got.clear()
    upstream.replies = [chat("Done.")]
    body = json.dumps({**ASK, "padding": "x" * 3_000_000}).encode()
    with running(upstream.url, tmp_path, scope="a/b", most=100_000) as proxy:
        add_lesson(Tenant(proxy, "", "a/b"), "Publish release 1.4", "Update the changelog first.")
        for content in (body, iter([body[:1000], body[1000:]])):
            assert httpx2.post(proxy.url + CHAT, content=content, timeout=PATIENCE).json()["choices"]
    assert [got.raw == body for got in upstream.got] == [True, True]


def test_events_are_forwarded_as_they_arrive(tenant: Tenant, upstream: Upstream) -> None:
    arrived = threading.Event()

    def parts() -> Any:
        yield b"data: {}\n\n"
        assert arrived.wait(PATIENCE)
        yield b"data: [DONE]\n\n"

    upstream.replies = [Reply(parts=parts(), headers={"content-type": "text/event-stream"})]
    with httpx2.stream("POST", tenant.proxy.url + CHAT, json=ASK, headers=tenant.headers, timeout=PATIENCE) as reply:
        chunks = reply.iter_raw()
        assert next(chunks) == b"data: {}\n\n"
        arrived.set()
        assert b"".join(chunks) == b"data: [DONE]\n\n"


def test_a_client_may_go_on_after_the_last_event_before_the_stream_ends(tenant: Tenant, upstream: Upstream) -> None:
    add_lesson(tenant, "Publish release 1.4", "Update the changelog first.")
    ended = threading.Event()
    events = b"".join(chat("", Call("make", "{}", "c1"), stream=True).parts or ())

    def parts() -> Any:
        yield events
        assert ended.wait(PATIENCE)
        yield b"\n"

    upstream.replies = [Reply(parts=parts(), headers={"content-type": "text/event-stream"}), chat("Done.")]
    with httpx2.stream("POST", tenant.proxy.url + CHAT, json=ASK, headers=tenant.headers, timeout=PATIENCE) as reply:
        chunks = reply.iter_raw()
        assert next(chunks) == events
        called = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "make", "arguments": "{}"}}]}
        result = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
        tenant.post(CHAT, json={**ASK, "messages": [*ASK["messages"], called, result]})
        ended.set()
        assert list(chunks) == [b"\n"]
    assert "Update the changelog first." in upstream.got[1].body["messages"][0]["content"]


@pytest.mark.parametrize("path", [CHAT, "/v1/other"])
def test_a_client_that_goes_away_ends_the_request_upstream(path: str, tenant: Tenant, upstream: Upstream) -> None:
    endless = repeat(b"data: {}\n\n")
    upstream.replies = [Reply(parts=endless, headers={"content-type": "text/event-stream"})]
    with httpx2.stream("POST", tenant.proxy.url + path, json=ASK, headers=tenant.headers, timeout=PATIENCE) as reply:
        assert next(reply.iter_raw())
    assert upstream.gone.wait(PATIENCE)


def test_a_client_that_goes_away_before_the_answer_ends_the_request_upstream(
    tenant: Tenant, upstream: Upstream
) -> None:
    asked, left = threading.Event(), threading.Event()

    def late(_: Got) -> Reply:
        asked.set()
        left.wait(PATIENCE)
        return Reply(parts=repeat(b"x" * 1000))

    upstream.replies = [late]
    connection = HTTPConnection("127.0.0.1", int(tenant.proxy.url.rpartition(":")[2]))
    connection.request("POST", CHAT, json.dumps(ASK), {**tenant.headers, "content-type": "application/json"})
    assert asked.wait(PATIENCE)
    connection.close()
    left.set()
    assert upstream.gone.wait(PATIENCE)


def test_an_answer_that_breaks_off_breaks_off_for_the_client(tenant: Tenant, upstream: Upstream) -> None:
    begun = [b"data: {}\n\n"]
    upstream.replies = [Reply(parts=begun, cut=True, headers={"content-type": "text/event-stream"})]
    with pytest.raises(httpx2.RemoteProtocolError):
        tenant.post(CHAT, json=ASK)


def test_a_redirect_is_the_clients_business(tenant: Tenant, upstream: Upstream) -> None:
    upstream.replies = [Reply(status=307, headers={"location": "http://127.0.0.1:9/elsewhere"})]
    reply = tenant.post(CHAT, json=ASK)
    assert (reply.status_code, reply.headers["location"]) == (307, "http://127.0.0.1:9/elsewhere")
    assert len(upstream.got) == 1


def test_a_connection_is_kept_for_the_next_request(tenant: Tenant, upstream: Upstream) -> None:
    upstream.replies = [Reply(b"{}")]
    connection = HTTPConnection("127.0.0.1", int(tenant.proxy.url.rpartition(":")[2]), timeout=PATIENCE)
    connection.connect()
    mine = connection.sock
    for path in ("/v1/models", CHAT, "/v1/models"):
        connection.request("POST", path, b"{}", tenant.headers)
        assert connection.getresponse().read() == b"{}"
        assert connection.sock is mine
    connection.close()


def test_a_small_response_does_not_wait_for_an_acknowledgement(tenant: Tenant, upstream: Upstream) -> None:
    upstream.replies = [Reply(b"{}")]
    connection = HTTPConnection("127.0.0.1", int(tenant.proxy.url.rpartition(":")[2]), timeout=PATIENCE)
    connection.request("POST", "/v1/models", b"{}", tenant.headers)
    connection.getresponse().read()
    assert options_of(connection.sock.getsockname()) == [True]
    connection.close()


def options_of(client: object) -> list[bool]:
    """Whether the socket of this process that speaks to a client sends at once, however little it is."""
    found = list[bool]()
    for number in range(1024):
        with suppress(OSError):  # no file, no socket, or one that speaks to nobody
            end = socket.socket(fileno=number)
            try:
                if end.getpeername() == client:
                    found.append(bool(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            finally:
                end.detach()
    return found


def test_headers_of_one_connection_stay_on_it_and_ours_stay_here(tenant: Tenant, upstream: Upstream) -> None:
    upstream.replies = [Reply(b"{}", headers={"connection": "x-mine, keep-alive", "x-mine": "1", "x-yours": "2"})]
    told = {"connection": "x-hop", "x-hop": "1", "te": "trailers", "proxy-authorization": "Basic x", "upgrade": "h2c"}
    reply = tenant.post("/v1/models", headers={**told, "x-kept": "1", "x-lessonbank-outcome": "success"}, content=b"{}")
    (got,) = upstream.got
    sent = {name.lower() for name, _ in got.headers}
    assert sent.isdisjoint({*told, "x-lessonbank-key", "x-lessonbank-outcome"})
    assert got.header("x-kept") == "1"
    assert "x-mine" not in reply.headers
    assert reply.headers["x-yours"] == "2"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET http://elsewhere.example/v1/models HTTP/1.1", b"404"),
        (b"CONNECT elsewhere.example:443 HTTP/1.1", b"404"),
        (b"GET /v1/../../admin HTTP/1.1", b"400"),
        (b"GET /v1/%2e%2E/admin HTTP/1.1", b"400"),
    ],
)
def test_it_goes_to_its_upstream_and_nowhere_else(
    line: bytes, status: bytes, tenant: Tenant, upstream: Upstream
) -> None:
    key = tenant.key.encode()
    found = raw(
        tenant.proxy, line + b"\r\nhost: localhost\r\nx-lessonbank-key: " + key + b"\r\nconnection: close\r\n\r\n"
    )
    assert found.split()[1] == status
    assert upstream.got == []


def test_a_path_that_looks_like_a_host_is_a_path(tenant: Tenant, upstream: Upstream) -> None:
    upstream.replies = [Reply(b"{}")]
    lines = b"GET //elsewhere.example/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
    assert b"200" in raw(tenant.proxy, lines + b"x-lessonbank-key: " + tenant.key.encode() + b"\r\n\r\n")
    assert upstream.got[0].path.endswith("/elsewhere.example/x")  # the server of the test folds the slashes
    assert upstream.got[0].header("host") == upstream.url.removeprefix("http://")


def test_nobody_gets_in_without_a_key_or_under_the_name_of_a_web_page(tenant: Tenant, upstream: Upstream) -> None:
    assert httpx2.post(tenant.proxy.url + CHAT, json=ASK).status_code == 401
    assert tenant.post(CHAT, json=ASK, headers={"host": "page.example"}).status_code == 421
    assert httpx2.post(f"{tenant.proxy.url}/lessonbank/outcome", json={}).status_code == 401
    assert tenant.post("/lessonbank/other", json={}).status_code == 404
    assert tenant.post("/lessonbank/outcome", content=b"x" * 100_000).status_code == 400
    assert upstream.got == []


def test_the_base_url_may_hold_the_path_of_the_upstream_or_not(upstream: Upstream, tmp_path: Path) -> None:
    upstream.got.clear()
    upstream.replies = [Reply(b"{}")]
    with running(f"{upstream.url}/v1/", tmp_path, scope="a/b") as proxy:
        for base in ("/v1", ""):
            httpx2.get(f"{proxy.url}{base}/models", timeout=PATIENCE)
    assert [got.path for got in upstream.got] == ["/v1/models"] * 2


def test_a_compressed_answer_reaches_the_client_as_it_is_and_is_understood(tenant: Tenant, upstream: Upstream) -> None:
    packed = gzip.compress(chat("Published.", id="packed").sent)
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    upstream.replies = [Reply(packed, headers=headers)]
    options: Any = {"json": ASK, "headers": {**tenant.headers, "accept-encoding": "zstd, gzip;q=0.5, br"}}
    with httpx2.stream("POST", tenant.proxy.url + CHAT, timeout=PATIENCE, **options) as reply:
        assert b"".join(reply.iter_raw()) == packed
    assert upstream.got[0].header("accept-encoding") == "gzip;q=0.5"
    assert tenant.tell(response="packed", outcome="success").json()["learned"] is True


def test_twenty_conversations_at_once_do_not_mix(tenant: Tenant, upstream: Upstream) -> None:
    names = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty"]
    names += ["kiosk", "ledge", "manor", "north", "oasis", "plaza", "quay", "ridge", "shore", "tower"]
    for name in names:
        add_lesson(tenant, f"Water the plants of {name}", f"The tap of {name} is behind the door.")

    def answer(got: Got) -> Reply:
        name = got.body["messages"][0]["content"].split()[4]
        number = len(got.body["messages"]) // 2
        return chat("", Call("water", "{}", f"{name}-{number}")) if number < 4 else chat("Done.", id=name)

    upstream.replies = [answer]
    gate = threading.Barrier(len(names), timeout=PATIENCE)

    def run(name: str) -> None:
        history: list[Any] = [{"role": "user", "content": f"Water the plants of {name}"}]
        gate.wait()
        for number in range(5):
            reply = tenant.post(CHAT, json={"model": "m", "messages": history}).json()
            history.append(reply["choices"][0]["message"])
            history.append({"role": "tool", "tool_call_id": f"{name}-{number}", "content": f"{name} is dry"})

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(run, names))
    for name in names:
        shown = {
            got.body["messages"][0]["content"]
            for got in upstream.got
            if got.body["messages"][0]["content"].startswith(f"Water the plants of {name}")
        }
        assert len(shown) == 1, "every request of a conversation has the same text"
        assert f"The tap of {name} is behind the door." in shown.pop()
        assert tenant.post("/lessonbank/outcome", json={"response": name, "outcome": "success"}).status_code == 200
    assert tenant.tell(response=names[0], outcome="success").json()["learned"] is True
    with lessonbank.connect(tenant.proxy.bank, scope=tenant.scope, embedder="lexical") as bank:
        runs = bank.runs.list(outcome="success", limit=50)
    assert sorted(run.trajectory.task for run in runs) == sorted(f"Water the plants of {name}" for name in names)
    for run in runs:
        others = set(names) - {run.trajectory.task.split()[-1]}
        assert not any(name in run.trajectory.model_dump_json() for name in others)
