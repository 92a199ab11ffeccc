"""What a body may be: how many bytes, values and levels, how slow, and packed in which way."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Generator
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2
from a_server import keys_of, served
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.types import Message

from lessonbank._base import serve as _serving
from lessonbank._base.bodies import Body
from lessonbank.errors import TooLarge
from lessonbank.http.service.protobuf_size import check_fields
from lessonbank.http.service.serving import Running
from lessonbank.text.bounded_json import check_shape

pytestmark = pytest.mark.full

Keys = dict[str, dict[str, str]]
RECALL = b'{"task": "Ship a parcel"}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """One for all: what is refused leaves nothing behind."""
    with served(tmp_path_factory.mktemp("bank")) as server:
        yield server


@pytest.fixture(scope="module")
def keys(server: Running) -> Keys:
    return keys_of(server)


def problem(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def address(server: Running) -> tuple[str, int]:
    return "127.0.0.1", int(server.url.rpartition(":")[2])


@pytest.mark.parametrize(
    "headers",
    [
        [("Content-Encoding", "br")],
        [("Content-Encoding", "deflate")],
        [("Content-Encoding", "gzip, gzip")],
        [("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")],
        [("Content-Encoding", "gzip"), ("Content-Encoding", "identity, br")],
    ],
)
def test_an_encoding_that_is_unknown_or_doubled_is_refused(
    http: httpx2.Client, keys: Keys, headers: list[tuple[str, str]]
) -> None:
    for content in (RECALL, gzip.compress(RECALL)):
        all_headers = [*headers, *keys["agent"].items(), ("Content-Type", "application/json")]
        answer = http.post("/v1/recalls", content=content, headers=all_headers)
        assert problem(answer) == (415, "unsupported_encoding")
    assert "gzip" in answer.json()["detail"]


PACKED = gzip.compress(RECALL)


@pytest.mark.parametrize(
    "content",
    [PACKED[:-1], PACKED[:12], RECALL, b"\x1f\x8b" + RECALL, PACKED + b"more", PACKED + PACKED, b""],
    ids=["one byte short", "cut early", "plain", "only its mark", "something behind it", "twice", "nothing"],
)
def test_gzip_that_is_cut_off_or_none_is_refused(http: httpx2.Client, keys: Keys, content: bytes) -> None:
    headers = {**keys["agent"], "Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert problem(http.post("/v1/recalls", content=content, headers=headers)) == (400, "usage")
    assert http.post("/v1/recalls", content=PACKED, headers=headers).status_code == 200


def test_gzip_that_unpacks_to_nothing_has_an_end_as_well(http: httpx2.Client, keys: Keys) -> None:
    head, empty_block = gzip.compress(b"")[:10], b"\x00\x00\x00\xff\xff"
    headers = {**keys["agent"], "Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = http.post("/v1/recalls", content=head + empty_block * 50_000, headers=headers)
    assert problem(answer) == (413, "too_large")


def test_more_values_or_levels_than_there_may_be_are_refused(http: httpx2.Client, keys: Keys) -> None:
    many = {"source": {"task": "x", "original": [1] * 60_000}}
    deep = b'{"source": {"task": "x", "metadata": {"a": ' + b"[" * 300 + b"]" * 300 + b"}}}"
    for content, word in ((json.dumps(many).encode(), "50,000 values"), (deep, "200 levels")):
        headers = {**keys["agent"], "Content-Type": "application/json"}
        answer = http.post("/v1/runs", content=content, headers=headers)
        assert problem(answer) == (413, "too_large")
        assert word in answer.json()["detail"]


def test_text_full_of_brackets_and_commas_counts_as_one_value(http: httpx2.Client, keys: Keys) -> None:
    run = {"task": "Ship", "steps": [{"action": "cat x.json", "observation": '{"a": [1, 2, "\\"]' * 9_000}]}
    assert http.post("/v1/runs", json={"source": run, "outcome": "success"}, headers=keys["agent"]).status_code == 200


def test_of_very_many_mistakes_one_sentence_tells_how_many(http: httpx2.Client, keys: Keys) -> None:
    answer = http.post("/v1/runs", json={"source": {"task": "x", "steps": [1] * 20_000}}, headers=keys["agent"])
    assert problem(answer) == (422, "usage")
    assert answer.json()["detail"].startswith("20,000 values of the body are wrong")
    few = http.post("/v1/runs", json={"source": {"task": "x", "steps": [1]}}, headers=keys["agent"])
    assert few.json()["detail"].startswith("source.steps.0 is wrong")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'"' + b"9" * 10, b"9" * 5000, b"null", b"NaN"])
def test_a_body_that_is_no_call_is_refused_in_one_sentence(http: httpx2.Client, keys: Keys, content: bytes) -> None:
    answer = http.post("/v1/recalls", content=content, headers={**keys["agent"], "Content-Type": "application/json"})
    assert problem(answer) == (422, "usage")
    plain = http.post("/v1/recalls", content=RECALL, headers={**keys["agent"], "Content-Type": "text/plain"})
    assert "Content-Type: application/json" in plain.json()["detail"]


def test_an_export_of_too_many_values_or_spans_is_refused(http: httpx2.Client, keys: Keys) -> None:
    pytest.importorskip("opentelemetry.proto")
    for spans in ("{}," * 11_000 + "{}", '{"a":[' + "1," * 101_000 + "1]}"):
        text = gzip.compress(f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}'.encode())
        headers = {**keys["agent"], "Content-Type": "application/json", "Content-Encoding": "gzip"}
        assert http.post("/v1/traces", content=text, headers=headers).status_code == 413


def test_protobuf_is_counted_before_it_is_read() -> None:
    service: Any = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    kind = service.ExportTraceServiceRequest
    export = kind()
    span = export.resource_spans.add().scope_spans.add().spans.add(trace_id=b"t" * 16, name="chat", flags=3)
    for number in range(100):
        span.attributes.add(key=f"k{number}").value.string_value = "v"
    raw = export.SerializeToString()
    fields = 1 + 1 + 1 + 3 + 100 * 4
    check_fields(raw, kind.DESCRIPTOR, most=fields)
    with pytest.raises(TooLarge):
        check_fields(raw, kind.DESCRIPTOR, most=fields - 1)
    for broken in (raw[:-1] + b"\x80", b"\x0b" * 900, b"\xff" * 900):
        with pytest.raises((TooLarge, ValueError)):
            check_fields(broken, kind.DESCRIPTOR, most=100)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text('a\\"[]{},:\n'),
        lambda inner: st.lists(inner) | st.dictionaries(st.text('a\\"[{'), inner),
    )
)
def test_values_and_levels_are_counted_outside_of_text(value: Any) -> None:
    def count(one: Any) -> tuple[int, int]:
        inner = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        below = [count(each) for each in inner]
        is_box = isinstance(one, dict | list)
        commas = max(len(inner) - 1, 0)
        return is_box + commas + sum(v for v, _ in below), is_box + max((d for _, d in below), default=0)

    values, depth = count(value)
    for ascii_only in (True, False):
        raw = json.dumps(value, ensure_ascii=ascii_only).encode()
        check_shape(raw, values=values, depth=depth)
        if values:
            with pytest.raises(TooLarge, match="values"):
                check_shape(raw, values=values - 1, depth=depth)
            with pytest.raises(TooLarge, match="levels"):
                check_shape(raw, values=values, depth=depth - 1)


def test_a_backslash_at_the_end_of_a_piece_hides_no_quotation_mark() -> None:
    for before in range(65_530, 65_540):
        for slashes in range(1, 5):
            text = json.dumps(["x" * before + "\\" * slashes + '"[', 1]).encode()
            check_shape(text, values=2, depth=1)
            with pytest.raises(TooLarge):
                check_shape(text, values=1, depth=1)


@pytest.mark.anyio
async def test_all_pieces_together_have_a_time_limit_also_where_each_comes_at_once() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b"x", "more_body": True}

    body = Body({"headers": []}, receive, most=10**9, pause=10.0, seconds=0.05)
    with pytest.raises(HTTPException, match=r"the body took more than 0\.05 seconds") as refused:
        while True:
            await body()
    assert refused.value.status_code == 408


@pytest.mark.anyio
async def test_mcp_counts_the_values_of_a_body_before_anything_is_made_of_it() -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="needs the extra mcp")
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from lessonbank.mcp.keys import Keys as ScopeKeys
    from lessonbank.mcp.requests import Bounded

    async def echo(request: Request) -> Response:
        return Response(await request.body())

    app = Bounded(Starlette(routes=[Route("/mcp", echo, methods=["POST"])]), ScopeKeys({"k" * 16: "t"}))
    headers = {"Authorization": f"Bearer {'k' * 16}"}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url="http://x", headers=headers
    ) as http:
        statuses = {
            name: (await http.post("/mcp", content=content)).status_code
            for name, content in {
                "small": b'{"a": 1}',
                "many": json.dumps([1] * 30_000).encode(),
                "deep": b"[" * 300,
                "UTF-16": json.dumps([1] * 30_000).encode("utf-16"),
                "large": b" " * 5_000_000,
            }.items()
        }
    assert statuses == {"small": 200, "many": 413, "deep": 413, "UTF-16": 400, "large": 413}


def test_half_a_head_is_closed_in_time_however_its_bytes_come(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_serving, "_HEAD", 0.3)
    halves = [closing(socket.create_connection(address(server), timeout=20)) for _ in range(50)]
    for half in halves:
        with half as caller:
            caller.settimeout(0.05)
            with pytest.raises((ConnectionError, EOFError)):
                for byte in b"GET /v1 HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 1000:
                    caller.sendall(bytes([byte]))
                    try:
                        if not caller.recv(1):
                            raise EOFError
                    except TimeoutError:
                        continue
            break
    for half in halves[1:]:
        with half as caller, pytest.raises((ConnectionError, EOFError)):
            if not caller.recv(1):
                raise EOFError


def test_an_answer_that_nobody_takes_is_given_up(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_serving, "_STALL", 0.3)
    with closing(socket.socket()) as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        caller.settimeout(20)
        caller.connect(address(server))
        with pytest.raises(ConnectionError):
            while True:
                caller.sendall(b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")


def test_a_connection_that_asks_again_and_again_stays_open(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_serving, "_HEAD", 0.5)
    with closing(socket.create_connection(address(server), timeout=20)) as caller:
        caller.settimeout(1.0)
        for _ in range(3):
            caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"\r\n\r\nok"):
                answer += caller.recv(65_536)
            with pytest.raises(TimeoutError):  # a second without a word, which is more than a head may take
                caller.recv(1)
