"""Reads damaged copies of recorded files, and measures how time and memory grow with the size of sound ones.

`python -m lessonbank_bench.measure.mutated_files FOLDER --files 100000` takes files of `readers_files.tsv` that lie in
`FOLDER`, damages each copy in up to three places, reads it, and prints how many gave runs, reasons, or an error that no
reader may raise. `--growth` writes files of 4 to 32 MB instead, and prints seconds and memory for each size.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

from lessonbank import importers
from lessonbank.errors import LessonbankError

from .readers import present

_SMALL: Final = 60_000
"""Bytes of a file whose copies are damaged: small ones are read often."""
_EACH: Final = 6
"""Files of a form."""
_PIECES: Final = (b"", b"null", b"[]", b"{}", b'"x"', b"{", b"}", b"0", b"-1e999", b"\xff", b"\\ud800", b"\n", b"true")
_LINE: Final = 2_000


def samples(folder: Path, /) -> dict[str, list[Path]]:
    """Small files of each form."""
    found = defaultdict[str, list[Path]](list)
    for one in present(folder):
        place = one.place(folder)
        if place.stat().st_size > _SMALL:
            continue
        try:
            form = importers.detect(place)
        except LessonbankError:
            form = "unknown"
        if len(found[form]) < _EACH:
            found[form].append(place)
    return dict(found)


def damaged(raw: bytes, chance: random.Random, /) -> bytes:
    """The bytes with pieces left out, told twice, exchanged or cut off."""
    for _ in range(chance.randint(1, 3)):
        at, length = chance.randrange(len(raw) + 1), chance.randrange(1, 60)
        piece = raw[at : at + length]
        kind = chance.random()
        if kind < 0.1:
            raw = raw[:at]
        elif kind < 0.25:
            raw = raw[:at] + piece * chance.randint(2, 4) + raw[at + length :]
        else:
            raw = raw[:at] + chance.choice(_PIECES) + raw[at + length :]
    return raw or b" "


def read_damaged(found: dict[str, list[Path]], /, *, files: int, seed: int) -> dict[str, Counter[str]]:
    """How the damaged copies of each form were read."""
    chance, told = random.Random(seed), {form: Counter[str]() for form in found}
    forms = sorted(found)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for number in range(files):
            form = forms[number % len(forms)]
            source = chance.choice(found[form])
            copy = Path(folder) / source.name
            copy.write_bytes(damaged(source.read_bytes(), chance))
            told[form][_reading(copy)] += 1
            copy.unlink()
    return told


def _reading(path: Path) -> str:
    try:
        entries = list(importers.read(path))
        broken = [
            e.reason for e in entries if isinstance(e, importers.Skipped) and e.reason.startswith("the reader fail")
        ]
        accounts = [entry.account for entry in entries if isinstance(entry, importers.Imported)]
    except LessonbankError:
        return "refused"
    except Exception as error:  # noqa: BLE001 - what no reader may raise is what is looked for
        return f"CRASH {type(error).__name__}: {error}"[:200]
    return f"UNEXPECTED {broken[0]}"[:200] if broken else "read" if accounts else "only reasons"


def _rows(form: str, number: int) -> list[dict[str, Any]]:
    """Lines of one run: what was said and seen is as long as in real files."""
    seen = f"line {number} of a log\n" * (_LINE // 20)
    call = {"id": f"c{number}", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    if form == "neutral":
        messages = [
            {"role": "user", "content": f"Fix parser {number}"},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": seen},
            {"role": "assistant", "content": "Done."},
        ]
        return [{"task": f"Fix parser {number}", "messages": messages, "success": True}]
    step = {"tool_call_id": call["id"], "function_name": "bash", "arguments": {"command": "ls"}}
    result = {"results": [{"source_call_id": call["id"], "content": seen}]}
    if form == "atif":
        steps = [
            {"step_id": 1, "source": "user", "message": f"Fix parser {number}"},
            {"step_id": 2, "source": "agent", "message": "I look.", "tool_calls": [step], "observation": result},
        ]
        agent = {"name": "a", "version": "1"}
        return [{"schema_version": "ATIF-v1.7", "session_id": str(number), "agent": agent, "steps": steps}]
    base: dict[str, Any] = {"sessionId": "s", "isSidechain": False, "cwd": "/w/shop", "version": "2.1.330"}
    use = {"type": "tool_use", "id": call["id"], "name": "Bash", "input": {"command": "ls"}}
    back = {"type": "tool_result", "tool_use_id": call["id"], "content": seen}
    return [
        {**base, "type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": f"Step {number}"}},
        {**base, "type": "assistant", "uuid": f"a{number}", "message": {"role": "assistant", "content": [use]}},
        # As in the program's own files, a result stands there twice.
        {
            **base,
            "type": "user",
            "uuid": f"r{number}",
            "message": {"role": "user", "content": [back]},
            "toolUseResult": {"stdout": seen, "stderr": "", "interrupted": False},
        },
    ]


def measured(form: str, megabytes: int, /) -> tuple[float, float]:
    """Seconds of the processor, and how many times the file's size the largest memory grew while it was read."""
    with tempfile.TemporaryDirectory() as folder:
        path, written, number = Path(folder) / "runs.jsonl", 0, 0
        with path.open("w", encoding="utf-8") as file:
            while written < megabytes * 2**20:
                number += 1
                written += sum(file.write(json.dumps(row) + "\n") for row in _rows(form, number))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.process_time()
        count = sum(isinstance(entry, importers.Imported) for entry in importers.read(path))
        seconds = time.process_time() - began
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert count
        return seconds, grown * 1024 / written


def _growth() -> None:
    print(f"{'form':<14}{'MB':>4}{'seconds':>9}{'memory / file':>15}")
    for form in ("neutral", "atif", "claude_code"):
        for megabytes in (4, 8, 16, 32):
            told = subprocess.run(
                [sys.executable, "-m", __spec__.name, "--one", form, str(megabytes)],
                capture_output=True,
                text=True,
                check=True,
            )
            seconds, times = map(float, told.stdout.split())
            print(f"{form:<14}{megabytes:>4}{seconds:>9.2f}{times:>15.2f}")


def main() -> int:
    """Print the figures; 1 where a reader raised what no reader may raise."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("folder", type=Path, nargs="?")
    command.add_argument("--files", type=int, default=100_000)
    command.add_argument("--seed", type=int, default=1)
    command.add_argument("--growth", action="store_true")
    command.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = command.parse_args()
    if asked.one:
        print(*measured(asked.one[0], int(asked.one[1])))
        return 0
    if asked.growth or asked.folder is None:
        _growth()
        return 0
    told = read_damaged(samples(asked.folder), files=asked.files, seed=asked.seed)
    bad = {form: {why: n for why, n in counts.items() if why[:2] in ("CR", "UN")} for form, counts in told.items()}
    for form, counts in sorted(told.items()):
        good = ", ".join(f"{why} {n:,}" for why, n in sorted(counts.items()) if why[:2] not in ("CR", "UN"))
        print(f"{form:<16}{counts.total():>8,}  {good}")
    wrong = sum(n for counts in bad.values() for n in counts.values())
    print(f"{sum(counts.total() for counts in told.values()):,} damaged files, {wrong} crashes")
    for form, counts in bad.items():
        for why, n in counts.items():
            print(f"  {form}: {why} ({n})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
