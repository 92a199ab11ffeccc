"""A model server whose replies somebody writes at a desk, so that a study needs no provider and can be replayed.

It speaks the chat completions of the OpenAI wire format. A request that was answered before gets the same reply, out of
the cassette. Any other is laid on the desk as a file, until its reply is there.

```sh
python -m lessonbank_bench.model_desk serve DESK --port 8765      # the server
python -m lessonbank_bench.model_desk take DESK READER            # waits for a request, and prints it
python -m lessonbank_bench.model_desk serve DESK --replay         # only what was answered before
python -m lessonbank_bench.model_desk answer DESK READER < reply  # replies; prints what waits next
```

A client whose base URL is `http://127.0.0.1:8765/WORLD/v1` asks in the name of a world. Whoever acts meets each world
in one run only, so that nothing is known of it from another; whoever writes lessons (a reader named `memory…`) may
meet it again.
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
from lessonbank.errors import UsageError

_ASKED = ("messages", "tools", "response_format")
_LOOK = 0.1
_PAUSE = 3.0
"""Seconds in which a run may ask again before its reader is given another."""
_CODE = re.compile(r"(?<![0-9a-zA-Z])([0-9a-f]{8})>>>")
"""The code of a marker line, which is drawn for each request."""
_PLACES = re.compile(r"/[\w./-]*?-[a-z0-9_]{8}/")
"""A folder with a name that was drawn: no two runs see the same."""
_TIMES = re.compile(r"([-dl][-rwxst]{9}\.? +\d+ \w+ +\w+ +\d+) [A-Z][a-z]{2} +\d{1,2} +\d{2}:?\d{2} ")
"""The time of a file as `ls -l` prints it, behind its rights, owner and size: no two runs see the same."""
AGENT, MEMORY = "agent", "memory"


def key(body: Mapping[str, Any], /) -> str:
    """Names what decides a reply: equal for equal requests of two runs, whatever codes, folders and hours they had."""
    asked = json.dumps({name: body[name] for name in _ASKED if body.get(name)}, sort_keys=True)
    for code in set(_CODE.findall(asked)):
        asked = asked.replace(code, "--------")
    return digest(_TIMES.sub(r"\1 then ", _PLACES.sub("/folder/", asked)))[:20]


def role(body: Mapping[str, Any], /) -> str:
    """Who is asked: whoever acts, or whoever judges and writes lessons."""
    said = "".join(str(message.get("content")) for message in body.get("messages", [])[:1])
    works_in_bash = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" in said and "bash" in said[:60]
    return AGENT if works_in_bash or said.startswith("You act in a simulated house") else MEMORY


class Desk:
    """Requests that wait, replies that were written, and the cassette of both.

    Args:
        folder: where they are kept.
        replay: answer from the cassette alone, and write nothing.
    """

    def __init__(self, folder: Path, /, *, replay: bool = False) -> None:
        self._folder, self._cassette, self._replay = folder, folder / "cassette.jsonl", replay
        self._lock = threading.Lock()
        for name in () if replay else ("waiting", "taken", "replies", "readers"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._known = read_cassette(self._cassette)

    def reply(self, body: Mapping[str, Any], /, *, world: str = "", patience: float) -> str | None:
        """The reply to a request, once it is there; `None` where nobody wrote one in time."""
        name = key(body)
        known = self._known.get(name)
        if known is not None or self._replay:
            return known
        self._lay(name, body, world)
        until, path = time.monotonic() + patience, self._folder / "replies" / f"{name}.json"
        while time.monotonic() < until:
            if path.exists():
                return self._keep(name, json.loads(path.read_text(encoding="utf-8")))
            time.sleep(_LOOK)
        return None

    def take(self, reader: str, /, *, patience: float) -> dict[str, Any] | None:
        """The oldest request that this reader may answer: what its own run asks next, before any other."""
        seat = self._folder / "readers" / f"{reader}.json"
        had: dict[str, Any] = json.loads(seat.read_text(encoding="utf-8")) if seat.exists() else {"worlds": []}
        began = time.monotonic()
        while (passed := time.monotonic() - began) <= patience:
            for path in sorted((self._folder / "waiting").glob("*.json")):
                with suppress(FileNotFoundError, json.JSONDecodeError):  # somebody else was faster
                    asked = json.loads(path.read_text(encoding="utf-8"))
                    follows = _follows(asked["body"], had.get("body"))
                    if not follows and (passed < _PAUSE or not _may(reader, asked, had["worlds"])):
                        continue
                    path.rename(self._folder / "taken" / path.name.rpartition("-")[2])
                    _write(seat, json.dumps({**asked, "worlds": [*had["worlds"], asked["world"]]}))
                    return {**asked, "follows": follows}
            time.sleep(_LOOK)
        return None

    def answer(self, reader: str, text: str, /) -> None:
        """Keep the reply to what this reader took last.

        Raises:
            UsageError: it took nothing.
        """
        seat = self._folder / "readers" / f"{reader}.json"
        if not seat.exists():
            raise UsageError(f"reader {reader!r} has taken no request")
        asked = json.loads(seat.read_text(encoding="utf-8"))
        _write(self._folder / "replies" / f"{asked['name']}.json", json.dumps(text))

    def _lay(self, name: str, body: Mapping[str, Any], world: str) -> None:
        with self._lock:
            taken = (self._folder / "taken" / f"{name}.json").exists()
            if not taken and not any((self._folder / "waiting").glob(f"*-{name}.json")):
                asked = {"name": name, "role": role(body), "world": world, "body": body}
                _write(self._folder / "waiting" / f"{time.time_ns()}-{name}.json", json.dumps(asked))

    def _keep(self, name: str, text: str) -> str:
        with self._lock:
            if name not in self._known:
                self._known[name] = text
                with self._cassette.open("a", encoding="utf-8") as out:
                    out.write(json.dumps({"key": name, "reply": text}) + "\n")
        return text


def _may(reader: str, asked: Mapping[str, Any], worlds: list[str]) -> bool:
    if reader.startswith(MEMORY):
        return asked["role"] == MEMORY
    return asked["role"] == AGENT and not (asked["world"] and asked["world"] in worlds)


def _follows(body: Mapping[str, Any], before: Mapping[str, Any] | None) -> bool:
    """Whether the same run asks again."""
    return before is not None and body["messages"][: len(before["messages"])] == before["messages"] != body["messages"]


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
            first = self.path.split("/")[1]
            text = desk.reply(body, world="" if first == "v1" else first, patience=patience)
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


def shown(asked: Mapping[str, Any], /) -> str:
    """A request as somebody reads it; of a run that goes on, what is new."""
    body = asked["body"]
    new = body["messages"][-1:] if asked["follows"] else body["messages"]
    parts = ["##### THE SAME CONVERSATION GOES ON" if asked["follows"] else "##### A NEW CONVERSATION"]
    parts += [f"--- {message['role']}\n{message.get('content') or ''}" for message in new]
    if body.get("response_format"):
        parts.append(f"--- the reply has this form\n{json.dumps(body['response_format'])}")
    return "\n".join(parts)


def main(arguments: list[str] | None = None, /) -> int:
    """One of the three commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("serve", "take", "answer"))
    parser.add_argument("desk", type=Path)
    parser.add_argument("reader", nargs="?", default="")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--replay", action="store_true", help="serve what is in DESK/cassette.jsonl, and nothing else")
    parser.add_argument("--patience", type=float, default=500.0, help="seconds")
    asked = parser.parse_args(arguments)
    desk = Desk(asked.desk, replay=asked.replay)
    if asked.what == "serve":
        server(desk, asked.port, patience=asked.patience).serve_forever()
    if asked.what == "answer":
        desk.answer(asked.reader, sys.stdin.read().strip())
    found = desk.take(asked.reader, patience=asked.patience)
    print(shown(found) if found else "Nothing more waits.")
    return 0


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}")
    scratch.write_text(text, encoding="utf-8")
    scratch.rename(path)


if __name__ == "__main__":
    raise SystemExit(main())
