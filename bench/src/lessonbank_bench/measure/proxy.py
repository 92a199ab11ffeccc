"""What `lessonbank proxy` adds to a request: against the same upstream asked directly, with a bank of 1,000 lessons.

    python -m lessonbank_bench.measure.proxy [200]

So many conversations of two requests, or as many as it is told. Client, proxy, its memory and the upstream are four
processes on loopback. Each request is sent directly and then through the proxy, on connections that stay open. The
library promises a median of at most 10 ms.

On Linux it also tells the processor time of the proxy and its memory for a request: what it would add on a machine that
does nothing else, but for the wait for the disk. It counts what a plain proxy would take, too: the row of another path.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import lessonbank

LESSONS = 1000
BOUND = 10.0
"""Milliseconds that the median request may take longer."""
_SCOPE = "bench/proxy"
_PLACES = ("harbour", "library", "station", "market", "hospital", "museum", "airport", "school", "bakery", "garden")
_THINGS = ("invoice", "order", "booking", "permit", "parcel", "refund", "ticket", "contract", "meter", "lease")


def task(number: int, /) -> str:
    """One of many tasks that are alike."""
    return f"Correct the {_THINGS[number % 10]} number {number} of the {_PLACES[number // 10 % 10]} office"


def fill(path: Path, /) -> None:
    """A bank with as many lessons as tasks."""
    with lessonbank.connect(path, scope=_SCOPE, embedder="lexical") as bank:
        for number in range(LESSONS):
            content = f"Open form {number} before the amount is changed, because the old amount is deleted."
            bank.lessons.add(title=f"Open form {number} first", content=content, task=task(number), by="bench")


async def serve() -> None:
    """An upstream that answers everything at once. Its port is the first line of its output."""
    calls = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [calls]}
    numbers = iter(range(10**9))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readline() and await reader.readuntil(b"\r\n\r\n")).lower():
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r")[0]))
            calls["id"] = f"call_{next(numbers)}"
            body = json.dumps({"id": "c", "choices": [{"index": 0, "message": message}]}).encode()
            lines = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            writer.write(lines + body)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def ask(to: HTTPConnection, body: bytes, path: str = "/v1/chat/completions") -> tuple[float, dict[str, Any]]:
    """Milliseconds of one request, and its answer."""
    began = perf_counter()
    to.request("POST", path, body, {"content-type": "application/json"})
    told = to.getresponse().read()
    return (perf_counter() - began) * 1000, json.loads(told)


def request(*messages: dict[str, Any]) -> bytes:
    """A request of a usual size: instructions and a tool."""
    tool = {"name": "look", "description": "Looks at a page. " * 40, "parameters": {"type": "object"}}
    rules = {"role": "system", "content": "You correct the papers of a town. " * 100}
    body = {"model": "m", "messages": [rules, *messages], "tools": [{"type": "function", "function": tool}]}
    return json.dumps(body).encode()


def busy(process: int, /) -> float:
    """Milliseconds for which a process and its children were on a processor so far; 0 where the system does not say."""
    try:
        threads = [*Path(f"/proc/{process}/task").iterdir()]
        own = sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6
        children = " ".join((thread / "children").read_text() for thread in threads).split()
    except OSError:
        return 0.0
    return own + sum(busy(int(child)) for child in children)


def measure(
    direct: HTTPConnection, through: HTTPConnection, times: int, /, *, proxy: int
) -> dict[str, list[tuple[float, float, float]]]:
    """Milliseconds directly and through the proxy, and of the processor, for each kind of request."""
    found: dict[str, list[tuple[float, float, float]]] = {"first of a conversation": [], "later": [], "other path": []}

    def both(body: bytes, path: str = "/v1/chat/completions") -> tuple[tuple[float, float, float], dict[str, Any]]:
        plain, _ = ask(direct, body, path)
        before = busy(proxy)
        proxied, told = ask(through, body, path)
        return (plain, proxied, busy(proxy) - before), told

    for number in range(times + 10):
        asked = {"role": "user", "content": task(number * 7 % LESSONS) + f" again, time {number}"}
        first = request(asked)
        begun, told = both(first)
        said = told["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "A page of text. " * 300}
        kinds = begun, both(request(asked, said, result))[0], both(first, "/v1/embeddings")[0]
        if number >= 10:  # the first ones open connections and load what is loaded once
            for kind, told_of in zip(found, kinds, strict=True):
                found[kind].append(told_of)
    return found


def added(requests: list[tuple[float, float, float]], /) -> float:
    """Milliseconds that the median request takes longer."""
    return median(proxied for _, proxied, _ in requests) - median(plain for plain, _, _ in requests)


def processor(requests: list[tuple[float, float, float]], /) -> float:
    """Milliseconds of a processor that the median request takes in the proxy and its memory."""
    return median(used for _, _, used in requests)


@contextmanager
def started(*command: str, output: str) -> Generator[tuple[int, str]]:
    """A program of this Python that runs, by its number, and the first line it writes."""
    pipes: dict[str, Any] = {output: subprocess.PIPE}
    with subprocess.Popen([sys.executable, *command], text=True, **pipes) as process:
        try:
            yield process.pid, getattr(process, output).readline()
        finally:
            process.terminate()


def main() -> int:
    """Print what is added; the exit code says whether the promise holds."""
    if sys.argv[1:] == ["upstream"]:
        asyncio.run(serve())
    times = int(sys.argv[1]) if sys.argv[1:] else 200
    with tempfile.TemporaryDirectory() as folder:
        bank = Path(folder) / "bank.db"
        fill(bank)
        with started("-m", __spec__.name, "upstream", output="stdout") as (_, port):
            url = f"http://127.0.0.1:{port.strip()}"
            command = ["-m", "lessonbank.cli", "proxy", "--upstream", url, "--bank", str(bank), "--scope", _SCOPE]
            with started(*command, "--port", "0", "--embedder", "lexical", output="stderr") as (proxy, line):
                place = next(word for word in line.split() if word.startswith("http://127.0.0.1:"))
                direct, through = (HTTPConnection(at.removeprefix("http://")) for at in (url, place))
                found = measure(direct, through, times, proxy=proxy)
    print(f"{LESSONS} lessons, {times} conversations, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; added:")
    for kind, requests in found.items():
        high = (
            quantiles([proxied for _, proxied, _ in requests], n=20)[-1]
            - quantiles([p for p, _, _ in requests], n=20)[-1]
        )
        print(f"  {kind}: p50 {added(requests):.1f} ms, p95 {high:.1f} ms, {processor(requests):.1f} ms of a processor")
    own = [request for kind in list(found)[:2] for request in found[kind]]
    late = added(own)
    print(f"  both requests of each conversation: p50 {late:.1f} ms; bound {BOUND:.0f} ms")
    return 0 if late <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
