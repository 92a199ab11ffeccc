"""What one body of a request does to everybody else: without a key, with one, half sent, and after the key ended.

    python -m lessonbank_bench.measure.bodies [--runs 3] [--many 50]

Starts the real server over a new file. A process of its own asks `/healthz` all the time; "others" is the longest that
it waited, the median of the runs. `--many`: how many send a body without a key at the same time. The figures are
wall-clock times: on a busy machine they hold its pauses, too.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any, Final

CLI: Final = (sys.executable, "-m", "lessonbank.cli")
PROBE: Final = """
import http.client, select, sys, time
connection, worst = http.client.HTTPConnection(sys.argv[1], timeout=300), 0.0
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.005)[0]:
    begun = time.perf_counter()
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    worst = max(worst, time.perf_counter() - begun)
print(worst, flush=True)
"""
STEP: Final = {"action": "a", "observation": "o"}


def as_json(value: Any, /) -> bytes:
    return json.dumps(value).encode()


PACKED: Final = gzip.compress(as_json({"source": {"task": "x", "steps": [STEP] * 100_000}}))
WITHOUT_KEY: Final[dict[str, tuple[bytes, str]]] = {
    "100,000 steps, packed": (PACKED, "gzip"),
    "1,000,000 wrong steps": (as_json({"source": {"task": "x", "steps": [1] * 1_000_000}}), ""),
    "300,000 unknown fields": (as_json({f"k{number}": 1 for number in range(300_000)}), ""),
    "one text of 3.7 MB": (as_json({"source": {"task": "x" * 3_700_000}}), ""),
}


def _run(**parts: Any) -> bytes:
    return as_json({"source": {"task": "Ship a parcel", **parts}, "outcome": "success"})


WITH_KEY: Final[dict[str, tuple[str, bytes]]] = {
    "submit 16,000 steps": ("/v1/runs", _run(steps=[STEP] * 16_000)),
    "learn 16,000 steps": ("/v1/runs/learn", _run(steps=[STEP] * 16_000)),
    "submit 16,000 messages": ("/v1/runs", as_json({"source": [{"role": "user", "content": "hello"}] * 16_000})),
    "submit 24,000 originals": ("/v1/runs", _run(original=[{"a": 1}] * 24_000)),
    "submit 500 steps of 15 kB": ("/v1/runs", _run(steps=[{"action": "look", "observation": "word " * 3_000}] * 500)),
    "submit 1 step of 7.5 MB": ("/v1/runs", _run(steps=[{"action": "look", "observation": "word " * 1_500_000}])),
    "learn 500 steps of 15 kB": ("/v1/runs/learn", _run(steps=[{"action": "b", "observation": "word " * 3_000}] * 500)),
    "retrieve by 0.9 MB": ("/v1/recalls", as_json({"task": "a b " * 225_000})),
    "40,000 wrong steps": ("/v1/runs", _run(steps=[1] * 40_000)),
    "40,000 unknown fields": ("/v1/runs", as_json({f"k{number}": 1 for number in range(40_000)})),
    "4,000,000 numbers": ("/v1/runs", b'{"source":{"task":"x","original":[' + b"1," * 3_900_000 + b"1]}}"),
    "traces: 100,000 values": (
        "/v1/traces",
        as_json({"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [{"key": "k"}] * 140}] * 340}]}]}),
    ),
}


@contextmanager
def serving(folder: Path, /) -> Iterator[str]:
    """Host and port of a server that ends with the block."""
    command = [*CLI, "serve", "--bank", "bank.db", "--new", "--port", "0", "--embedder", "lexical"]
    log = folder / "log"
    with log.open("w") as out, subprocess.Popen(command, cwd=folder, stderr=out, stdout=out) as process:
        try:
            while not (found := re.search(r"http://([0-9.:]+)/v1", log.read_text())):
                sleep(0.05)
            yield found[1]
        finally:
            process.terminate()


@contextmanager
def waiting(at: str, waited: list[float], /) -> Iterator[None]:
    """Inside, somebody asks for the server's health; how long the longest answer took is added to `waited`."""
    command = [sys.executable, "-c", PROBE, at]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:
        assert probe.stdin is not None
        assert probe.stdout is not None
        probe.stdout.readline()
        sleep(0.2)
        yield
        sleep(0.2)
        probe.stdin.write("\n")
        probe.stdin.flush()
        waited.append(float(probe.stdout.readline()))


def post(at: str, path: str, body: bytes, /, **headers: str) -> tuple[int, float]:
    """The status of an answer and the seconds that it took."""
    connection = http.client.HTTPConnection(at, timeout=300)
    begun = perf_counter()
    connection.putrequest("POST", path)
    told = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    for name, value in told.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders(body)
    answer = connection.getresponse()
    took = perf_counter() - begun
    answer.read()
    connection.close()
    return answer.status, took


def all_at_once(count: int, call: Callable[[], tuple[int, float]], /) -> tuple[set[int], float]:
    """What so many calls answered, and the longest time that one took."""
    answers = list[tuple[int, float]]()
    threads = [threading.Thread(target=lambda: answers.append(call())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {status for status, _ in answers}, max(took for _, took in answers)


def quiet(at: str, runs: int, /) -> None:
    """What the machine itself lets somebody wait."""
    waited = list[float]()
    for _ in range(runs):
        with waiting(at, waited):
            sleep(1.0)
    _say("nothing", set(), [0.0], waited)


def without_key(at: str, runs: int, many: int, /) -> None:
    for name, (body, encoding) in WITHOUT_KEY.items():
        packed = {"Content_Encoding": encoding} if encoding else {}
        for count in (1, many):
            statuses, took, waited = set[int](), list[float](), list[float]()
            for _ in range(runs):
                with waiting(at, waited):
                    found, longest = all_at_once(count, lambda: post(at, "/v1/runs/learn", body, **packed))  # noqa: B023
                statuses |= found
                took.append(longest)
            _say(f"{count} x {name}", statuses, took, waited)


def with_key(at: str, key: str, runs: int, /) -> None:
    for name, (path, body) in WITH_KEY.items():
        statuses, took, waited = set[int](), list[float](), list[float]()
        for _ in range(runs):
            with waiting(at, waited):
                status, longest = post(at, path, body, Authorization=f"Bearer {key}")
                post(at, "/v1/drain", b"", Authorization=f"Bearer {key}")
            statuses.add(status)
            took.append(longest)
        _say(f"key: {name}", statuses, took, waited)


def _say(name: str, statuses: set[int], took: list[float], waited: list[float]) -> None:
    said = "/".join(map(str, sorted(statuses)))
    print(f"{name:36} {said:>7} {median(took):7.3f} s   others {median(waited) * 1000:7.0f} ms", flush=True)


def half_heads(at: str, /, *, count: int = 300, patience: float = 30.0) -> None:
    """How many connections with half a head are open after so many seconds."""
    host, _, port = at.rpartition(":")
    with ExitStack() as crowd:
        halves = [crowd.enter_context(socket.create_connection((host, int(port)))) for _ in range(count)]
        for half in halves:
            half.sendall(b"GET /v1 HTTP/1.1\r\nHost: x\r\nX-A: ")
        begun, is_open = perf_counter(), set(halves)
        while is_open and perf_counter() - begun < patience:
            is_open -= set(select.select(list(is_open), [], [], 1.0)[0])
        print(f"{count} half heads: {len(is_open)} open after {perf_counter() - begun:.1f} s", flush=True)


def stream_of_a_removed_key(at: str, folder: Path, /, *, patience: float = 20.0) -> None:
    """How long a stream of events goes on after `keys remove`."""
    key = new_key(folder, "reader")
    connection = http.client.HTTPConnection(at, timeout=patience)
    connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    remove = [*CLI, "keys", "remove", key.split("_")[1], "--bank", "bank.db"]
    subprocess.run(remove, cwd=folder, check=True, capture_output=True)
    begun, is_over = perf_counter(), False
    while not is_over and perf_counter() - begun < patience:
        is_over = not answer.readline()
    said = "ended" if is_over else "is open"
    print(f"the stream of a removed key {said} after {perf_counter() - begun:.1f} s", flush=True)


def new_key(folder: Path, role: str, /) -> str:
    add = [*CLI, "keys", "add", "ana", "--scope", "acme", "--role", role, "--bank", "bank.db"]
    told = subprocess.run(add, cwd=folder, check=True, capture_output=True, text=True).stdout
    found = re.search(r"lb_\S+", told)
    assert found is not None
    return found[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--many", type=int, default=50)
    asked = parser.parse_args()
    runs: int = asked.runs
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as at:
        key = new_key(Path(name), "agent")
        post(at, "/v1/runs", _run(steps=[STEP]), Authorization=f"Bearer {key}")
        quiet(at, runs)
        without_key(at, runs, asked.many)
        with_key(at, key, runs)
        half_heads(at)
        stream_of_a_removed_key(at, Path(name))


if __name__ == "__main__":
    main()
