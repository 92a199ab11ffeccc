"""Measures how long it takes to learn a folder of large transcripts without a model, and how much memory that needs.

`python -m lessonbank_bench.measure.transcripts --megabytes 150` makes such a folder, learns it twice with the command
line in processes of their own, and prints seconds, megabytes a second, the largest memory, and what the second time
added. Most of every transcript is what tools printed: logs, test runs, listings, diffs, JSON and encoded files. As in
the host's own files each result stands there twice (`content`, `toolUseResult`), and some a third time in a request.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_WORDS: Final = re.findall(
    r"\w+",
    "order invoice parcel queue worker ledger shard cursor token render widget parser schema index bucket replica "
    "retry timeout commit branch merge patch build cache hash stream batch filter router handler mount probe metric",
)


def write_folder(folder: Path, /, *, megabytes: float, seed: int = 7, large: float = 0.2) -> int:
    """Write transcripts of about `megabytes` into `folder`; the bytes written. One file holds the share `large`."""
    draw, total, number = random.Random(seed), int(megabytes * 2**20), 0
    left = total - write_transcript(folder / "session-large.jsonl", draw, size=int(total * large))
    while left > 0:
        number += 1
        size = min(left, int(draw.lognormvariate(0, 1) * 600_000) + 20_000)
        left -= write_transcript(folder / f"project-{number % 7}" / f"session-{number}.jsonl", draw, size=size)
    return total - left


def write_transcript(path: Path, draw: random.Random, /, *, size: int) -> int:
    """Write one session of about `size` bytes; the bytes written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for line in _lines(path.stem, draw, size):
            written += file.write(json.dumps(line) + "\n")
    return written


def _lines(session: str, draw: random.Random, size: int) -> Iterator[dict[str, Any]]:
    base = {"sessionId": session, "cwd": "/w/shop", "version": "2.1.330", "userType": "external", "isSidechain": False}
    task = f"Make the {draw.choice(_WORDS)} {draw.choice(_WORDS)} of {session} pass its tests"
    yield {"type": "last-prompt", "sessionId": session, "prompt": task}
    yield {**base, "type": "user", "uuid": f"{session}-u", "message": {"role": "user", "content": task}}
    turn = spent = 0
    while spent < size:
        turn += 1
        told = _tool_output(draw)
        call, id = f"toolu_{turn}", f"{session}-{turn}"
        said = [{"type": "text", "text": f"I look at the {draw.choice(_WORDS)} next."}]
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": _command(draw)}}
        usage = {"input_tokens": 9, "output_tokens": 40}
        for number, block in enumerate((*said, use)):
            reply = {"id": f"msg_{id}", "role": "assistant", "model": "model-1", "content": [block], "usage": usage}
            yield {**base, "type": "assistant", "uuid": f"{id}-a{number}", "message": reply}
        failed = draw.random() < 0.15
        result = {"type": "tool_result", "tool_use_id": call, "content": told, "is_error": failed}
        yield {
            **base,
            "type": "user",
            "uuid": f"{id}-r",
            "message": {"role": "user", "content": [result]},
            "toolUseResult": {"stdout": told, "stderr": "", "interrupted": False},
        }
        spent += 2 * len(told) + 1200
        if turn % 20 == 0:  # what a host keeps of its requests repeats prompts and results
            blob = json.dumps({"messages": [{"role": "user", "content": told}]})
            yield {"type": "api-request-blob", "sessionId": session, "hash": f"{turn:08x}", "blob": blob}
            yield {"type": f"of-a-later-version-{turn % 3}", "sessionId": session, "content": told[:2000]}
            spent += len(told) + 2000
    done = {
        "id": f"msg_{session}",
        "role": "assistant",
        "model": "model-1",
        "content": [{"type": "text", "text": "Done."}],
    }
    yield {**base, "type": "assistant", "uuid": f"{session}-e", "message": done}


def _command(draw: random.Random) -> str:
    return draw.choice(("pytest -q {}", "rg -n {} src", "cat src/{}.py", "git diff {}", "ls -la {}")).format(
        f"{draw.choice(_WORDS)}_{draw.choice(_WORDS)}"
    )


def _tool_output(draw: random.Random) -> str:
    """What a tool printed: 1 to 60 KB, of the kinds that coding agents see."""
    lines = int(draw.lognormvariate(4.6, 0.9)) + 5
    kind = draw.choice((*(_log, _listing, _code, _code, _diff, _json, _tests) * 4, _encoded))
    return "\n".join(kind(draw, number) for number in range(min(lines, 700)))


def _name(draw: random.Random) -> str:
    return f"{draw.choice(_WORDS)}_{draw.choice(_WORDS)}"


def _log(draw: random.Random, number: int) -> str:
    at = f"2026-05-0{1 + number % 9}T10:{number % 60:02}:{draw.randrange(60):02}.{draw.randrange(1000):03}Z"
    source = f"{draw.choice(('INFO', 'WARN', 'ERROR'))} {_name(draw)}[{draw.randrange(9999)}]"
    return f"{at} {source}: {_name(draw)} took {draw.randrange(900)} ms for id={draw.getrandbits(64):016x}"


def _listing(draw: random.Random, number: int) -> str:
    day = f"May {1 + number % 28:>2} 10:{number % 60:02}"
    return f"-rw-r--r-- 1 dev dev {draw.randrange(10**6):>8} {day} src/{_name(draw)}/{_name(draw)}.py"


def _code(draw: random.Random, number: int) -> str:
    pad = "    " * (number % 4)
    return draw.choice(
        (
            f"{number:>5}\t{pad}def {_name(draw)}(self, {draw.choice(_WORDS)}: int) -> dict[str, Any]:",
            f"{number:>5}\t{pad}return self.{_name(draw)}.get({draw.choice(_WORDS)!r}, default={draw.randrange(99)})",
            f"{number:>5}\t{pad}# the {draw.choice(_WORDS)} is read before the {draw.choice(_WORDS)} is written",
            f"{number:>5}\t{pad}if not {_name(draw)}: raise ValueError(f'{{{draw.choice(_WORDS)}}} is missing')",
        )
    )


def _diff(draw: random.Random, number: int) -> str:
    return f"{draw.choice((' ', '+', '-'))}{_code(draw, number)[6:]}"


def _json(draw: random.Random, number: int) -> str:
    url = f"https://shop.test/{_name(draw)}?page={number}"
    return json.dumps({"id": draw.randrange(10**6), "name": _name(draw), "url": url, "ok": True})


def _tests(draw: random.Random, number: int) -> str:
    outcome = draw.choice(("PASSED", "PASSED", "PASSED", "FAILED"))
    return f"tests/test_{_name(draw)}.py::test_{_name(draw)}_{number} {outcome} [{number % 100:>3}%]"


def _encoded(draw: random.Random, number: int) -> str:
    return base64.b64encode(draw.randbytes(57)).decode()


def learned(folder: Path, bank: Path, /) -> tuple[float, float, float, dict[str, Any]]:
    """Learn `folder` with the command line; seconds, those of them on a processor, MB of memory, and what it says."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "lessonbank.cli", "learn", str(folder), "--bank", str(bank), "--scope", "bench"]
    options = ["--embedder", "lexical", "--outcome", "failure", "--json"]
    said = subprocess.run([*command, *options], stdout=subprocess.PIPE, check=False).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, busy, after.ru_maxrss / 1024, json.loads(said)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=150)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, bank = Path(place, "transcripts"), Path(place, "bank.db")
        size = write_folder(folder, megabytes=asked.megabytes, seed=asked.seed) / 2**20
        files = sum(1 for _ in folder.rglob("*.jsonl"))
        print(f"{files} transcripts, {size:.0f} MB, load {os.getloadavg()[0]:.1f}", flush=True)
        for time_round in ("first", "again"):
            seconds, busy, peak, told = learned(folder, bank)
            lessons = sum(file["lessons"] for file in told["files"])
            spent = f"{seconds:.1f} s ({busy:.1f} s on a processor), {size / seconds:.1f} MB/s"
            new = told["runs"] - told["known"]
            print(f"{time_round}: {spent}, {peak:.0f} MB of memory, {new} new runs, {lessons} lessons", flush=True)
        print(f"the bank has {bank.stat().st_size / 2**20:.0f} MB")


if __name__ == "__main__":
    main()
