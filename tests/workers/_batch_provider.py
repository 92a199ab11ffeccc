"""A stand-in for the batch APIs of OpenAI and Anthropic on loopback: batches end when a test says so."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final

MADE: Final = 1_700_000_000
Answer = Callable[[str], "str | int"]
"""From the text of a request to the model's reply, or to the HTTP status with which it is refused."""


class BatchProvider:
    """What it was sent lies in `batches` (texts of requests, by batch), and every path that was asked in `calls`."""

    def __init__(self, answer: Answer, /) -> None:
        self.answer, self.batches, self.calls = answer, dict[str, dict[str, str]](), list[str]()
        self.is_done, self.polled = threading.Event(), threading.Event()
        self._files = dict[str, str]()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner.handle(self, b"")

            def do_POST(self) -> None:
                owner.handle(self, self.rfile.read(int(self.headers.get("content-length") or 0)))

            def do_DELETE(self) -> None:
                owner.handle(self, b"")

            def log_message(self, format: str, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> BatchProvider:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def requests(self) -> list[str]:
        """The texts of all requests, in the order they came."""
        return [text for batch in self.batches.values() for text in batch.values()]

    def forget(self) -> None:
        """Lose every batch, as a provider does after a month."""
        self.batches.clear()

    def handle(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        self.calls.append(f"{request.command} {request.path}")
        found = self._answered(request.command, request.path.partition("?")[0].removeprefix("/v1/"), body)
        status, sent = (404, {"error": {"message": "there is no such thing"}}) if found is None else (200, found)
        data = sent.encode() if isinstance(sent, str) else json.dumps(sent).encode()
        request.send_response(status)
        request.send_header("content-type", "application/x-jsonl" if isinstance(sent, str) else "application/json")
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _answered(self, method: str, path: str, body: bytes) -> Any:
        if method == "POST" and path == "files":
            return self._file(re.findall(r'^\{"custom_id".*$', body.decode(), re.M))
        if method == "POST" and path == "batches":
            lines = map(json.loads, self._files[json.loads(body)["input_file_id"]].splitlines())
            return self._openai(self._begin({line["custom_id"]: json.dumps(line["body"]) for line in lines}))
        if method == "POST" and path == "messages/batches":
            told = json.loads(body)["requests"]
            return self._anthropic(self._begin({one["custom_id"]: json.dumps(one["params"]) for one in told}))
        kind, _, rest = path.rpartition("batches/")
        if rest.removesuffix("/results") in self.batches:
            return self._looked(rest, is_anthropic=kind == "messages/")
        name = path.removeprefix("files/").removesuffix("/content")
        return {"id": name, "object": "file", "deleted": True} if method == "DELETE" else self._files.get(name)

    def _looked(self, rest: str, *, is_anthropic: bool) -> Any:
        self.polled.set()
        if rest.endswith("/results"):
            id = rest.removesuffix("/results")
            return "\n".join(json.dumps(_line_of_anthropic(n, self.answer(t))) for n, t in self.batches[id].items())
        return self._anthropic(rest) if is_anthropic else self._openai(rest)

    def _begin(self, requests: dict[str, str]) -> str:
        id = f"batch_{len(self.calls)}"
        self.batches[id] = requests
        return id

    def _file(self, lines: list[str]) -> dict[str, Any]:
        id = f"file-{len(self.calls)}"
        self._files[id] = "\n".join(lines)
        return {
            "id": id,
            "object": "file",
            "bytes": 1,
            "created_at": MADE,
            "filename": "batch.jsonl",
            "purpose": "batch",
            "status": "processed",
        }

    def _openai(self, id: str) -> dict[str, Any]:
        told = {"id": id, "object": "batch", "endpoint": "/v1/responses", "input_file_id": "file-0"}
        told |= {"completion_window": "24h", "created_at": MADE, "status": "in_progress"}
        if self.is_done.is_set():
            lines = [json.dumps(_line_of_openai(name, self.answer(t))) for name, t in self.batches[id].items()]
            self._files[f"out-{id}"] = "\n".join(lines)
            told |= {"status": "completed", "output_file_id": f"out-{id}"}
        return told

    def _anthropic(self, id: str) -> dict[str, Any]:
        ended = self.is_done.is_set()
        counts = {"processing": 1, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        return {
            "id": id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z",
            "ended_at": "2026-01-01T01:00:00Z" if ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.url}/v1/messages/batches/{id}/results" if ended else None,
        }


def _line_of_openai(name: str, reply: str | int) -> dict[str, Any]:
    if isinstance(reply, int):
        response = {"status_code": reply, "body": {"error": {"message": "refused", "code": "no", "type": "no"}}}
        return {"id": name, "custom_id": name, "response": response, "error": None}
    content = [{"type": "output_text", "text": reply, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    body = {"id": "r", "object": "response", "created_at": MADE, "model": "gpt-4o", "status": "completed"}
    body |= {"output": [message], "usage": usage, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    return {"id": name, "custom_id": name, "response": {"status_code": 200, "body": body}, "error": None}


def _line_of_anthropic(name: str, reply: str | int) -> dict[str, Any]:
    if isinstance(reply, int):
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": "refused"}, "request_id": "q"}
        return {"custom_id": name, "result": {"type": "errored", "error": error}}
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "stop_reason": "end_turn",
    }
    message |= {"stop_sequence": None, "content": [{"type": "text", "text": reply}]}
    message |= {"usage": {"input_tokens": 1000, "output_tokens": 100}}
    return {"custom_id": name, "result": {"type": "succeeded", "message": message}}
