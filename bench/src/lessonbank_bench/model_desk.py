"""A model server whose replies somebody writes at a desk, so that a study needs no provider and can be replayed.

It speaks the chat completions of the OpenAI wire format. A request that was answered before gets the same reply, out of
the cassette. Any other is laid on the desk as a file, until its reply is there.

```sh
python -m lessonbank_bench.model_desk serve DESK --port 8765      # the server
python -m lessonbank_bench.model_desk take DESK --role agent      # waits for a request, and prints it
python -m lessonbank_bench.model_desk answer DESK ID < reply      # replies; prints what the same run asks next
```
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

from lessonbank.contracts.records.ids import digest

_ASKED = ("messages", "tools", "response_format")
_LOOK = 0.1
_CODE = re.compile(r"(?<![0-9a-zA-Z])([0-9a-f]{8})>>>")
"""The code of a marker line, which is drawn for each request."""
_PLACES = re.compile(r"/[\w./-]*?-[a-z0-9_]{8}/")
"""A folder with a name that was drawn: no two runs see the same."""
AGENT, MEMORY = "agent", "memory"


def key(body: Mapping[str, Any], /) -> str:
    """Names what decides a reply: equal for equal requests of two runs, whatever codes and folders were drawn."""
    asked = json.dumps({name: body[name] for name in _ASKED if body.get(name)}, sort_keys=True)
    for code in set(_CODE.findall(asked)):
        asked = asked.replace(code, "--------")
    return digest(_PLACES.sub("/folder/", asked))[:20]


def role(body: Mapping[str, Any], /) -> str:
    """Who is asked: whoever acts, or whoever judges and writes lessons."""
    said = "".join(str(message.get("content")) for message in body.get("messages", [])[:1])
    return AGENT if "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" in said and "bash" in said[:60] else MEMORY


class Desk:
    """Requests that wait, replies that were written, and the cassette of both.

    Args:
        folder: where they are kept.
    """

    def __init__(self, folder: Path, /) -> None:
        self._folder, self._cassette = folder, folder / "cassette.jsonl"
        self._lock = threading.Lock()
        for name in ("waiting", "taken", "replies"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._known = read_cassette(self._cassette)

    def reply(self, body: Mapping[str, Any], /, *, patience: float) -> str | None:
        """The reply to a request, once it is there; `None` where nobody wrote one in time."""
        name = key(body)
        if (known := self._known.get(name)) is not None:
            return known
        self._lay(name, body)
        until, path = time.monotonic() + patience, self._folder / "replies" / f"{name}.json"
        while time.monotonic() < until:
            if path.exists():
                return self._keep(name, json.loads(path.read_text(encoding="utf-8")))
            time.sleep(_LOOK)
        return None

    def take(self, wanted: str, /, *, patience: float) -> tuple[str, dict[str, Any]] | None:
        """The oldest request of a role that nobody has taken."""
        until = time.monotonic() + patience
        while True:
            for path in sorted((self._folder / "waiting").glob(f"{wanted}-*.json")):
                with suppress(FileNotFoundError):  # somebody else was faster
                    taken = path.rename(self._folder / "taken" / path.name.split("-")[2])
                    return taken.stem, json.loads(taken.read_text(encoding="utf-8"))
            if time.monotonic() > until:
                return None
            time.sleep(_LOOK)

    def answer(self, name: str, text: str, /) -> dict[str, Any]:
        """Keep a reply, and return the request it is for."""
        body = json.loads((self._folder / "taken" / f"{name}.json").read_text(encoding="utf-8"))
        _write(self._folder / "replies" / f"{name}.json", json.dumps(text))
        return body

    def follow_up(self, body: Mapping[str, Any], /, *, patience: float) -> tuple[str, dict[str, Any]] | None:
        """What the same run asks next."""
        until, length = time.monotonic() + patience, len(body["messages"])
        while time.monotonic() < until:
            for path in sorted((self._folder / "waiting").glob(f"{AGENT}-*.json")):
                with suppress(FileNotFoundError, json.JSONDecodeError):
                    asked = json.loads(path.read_text(encoding="utf-8"))
                    if asked["messages"][:length] == body["messages"]:
                        taken = path.rename(self._folder / "taken" / path.name.split("-")[2])
                        return taken.stem, asked
            time.sleep(_LOOK)
        return None

    def _lay(self, name: str, body: Mapping[str, Any]) -> None:
        with self._lock:
            if any((self._folder / "waiting").glob(f"*-{name}.json")):
                return
            if not (self._folder / "taken" / f"{name}.json").exists():
                at = f"{role(body)}-{time.time_ns()}-{name}.json"
                _write(self._folder / "waiting" / at, json.dumps(body))

    def _keep(self, name: str, text: str) -> str:
        with self._lock:
            if name not in self._known:
                self._known[name] = text
                with self._cassette.open("a", encoding="utf-8") as out:
                    out.write(json.dumps({"key": name, "reply": text}) + "\n")
        return text


def read_cassette(*paths: Path) -> dict[str, str]:
    """Replies by the key of their request."""
    lines = [line for path in paths if path.exists() for line in path.read_text(encoding="utf-8").splitlines()]
    entries = [cast("dict[str, str]", json.loads(line)) for line in lines]
    return {entry["key"]: entry["reply"] for entry in entries}


def completion(body: Mapping[str, Any], text: str, /) -> dict[str, Any]:
    """A reply on the wire. Tokens are counted as a quarter of the characters."""
    sent = sum(len(str(message.get("content") or "")) for message in body["messages"]) // 4
    back = max(1, len(text) // 4)
    return {
        "id": f"chatcmpl-{key(body)}",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "desk"),
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": sent, "completion_tokens": back, "total_tokens": sent + back},
    }


def server(desk: Desk, port: int, /, *, patience: float) -> ThreadingHTTPServer:
    """The server on loopback; port 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = desk.reply(body, patience=patience)
            if text is None:
                self._send(504, {"error": {"message": f"nobody wrote a reply to request {key(body)}"}})
            else:
                self._send(200, completion(body, text))

        def _send(self, status: int, payload: dict[str, Any]) -> None:
            data = json.dumps(payload).encode()
            with suppress(ConnectionError):  # a client that waits no longer asks again
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent: what is asked stands on the desk."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def shown(name: str, body: Mapping[str, Any], /) -> str:
    """A request as somebody reads it."""
    parts = [f"##### REQUEST {name}"]
    parts += [f"--- {message['role']}\n{message.get('content') or ''}" for message in body["messages"]]
    if body.get("response_format"):
        parts.append(f"--- the reply has this form\n{json.dumps(body['response_format'])}")
    return "\n".join(parts)


def main(arguments: list[str] | None = None, /) -> int:
    """One of the three commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("serve", "take", "answer"))
    parser.add_argument("desk", type=Path)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--role", choices=(AGENT, MEMORY), default=AGENT)
    parser.add_argument("--patience", type=float, default=580.0, help="seconds")
    asked = parser.parse_args(arguments)
    desk = Desk(asked.desk)
    if asked.what == "serve":
        server(desk, asked.port, patience=asked.patience).serve_forever()
    if asked.what == "take":
        found = desk.take(asked.role, patience=asked.patience)
    else:
        body = desk.answer(asked.name, sys.stdin.read().strip())
        found = desk.follow_up(body, patience=min(asked.patience, 15.0)) if role(body) == AGENT else None
    print(shown(*found) if found else "Nothing more waits.")
    return 0


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}")
    scratch.write_text(text, encoding="utf-8")
    scratch.rename(path)


if __name__ == "__main__":
    raise SystemExit(main())
