"""Large transcripts are read in bounded memory, whatever lines a later version of the host writes."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lessonbank import importers
from lessonbank.importers import Imported

pytestmark = pytest.mark.full

MB = 2**20
BASE = {"cwd": "/w", "version": "2.1.330", "isSidechain": False}
UNKNOWN = ("api-request", "api-request-shape", "api-request-blob", "atis-latch", "tools-used", "cost-state", "newer")


def session(name: str, *, turns: int, size: int = 4000) -> list[dict[str, Any]]:
    """The lines of a session whose tools print `size` characters a turn."""
    draw, base = random.Random(name), {**BASE, "sessionId": name}
    told: list[dict[str, Any]] = [
        {**base, "type": "user", "uuid": f"{name}-u", "message": {"role": "user", "content": f"Mend {name}"}}
    ]
    for turn in range(turns):
        use = {"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {"command": f"pytest -q part_{turn}"}}
        seen = " ".join(f"case_{draw.randrange(10**6)} passed" for _ in range(size // 20))
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": seen, "is_error": turn == 0}
        reply = {"id": f"m{turn}", "role": "assistant", "content": [use]}
        told.append({**base, "type": "assistant", "uuid": f"{name}-{turn}a", "message": reply})
        told.append(
            {
                **base,
                "type": "user",
                "uuid": f"{name}-{turn}r",
                "message": {"role": "user", "content": [result]},
                "toolUseResult": {"stdout": seen},
            }
        )
    return told


def claude_lines(*, turns: int, size: int) -> list[dict[str, Any]]:
    """A session with all that the program writes beside what was said, but its second copy of each result."""
    usage = {
        "input_tokens": 4,
        "cache_creation_input_tokens": 120,
        "cache_read_input_tokens": 30_000,
        "output_tokens": 90,
        "service_tier": "standard",
    }
    beside = {"parentUuid": "a" * 36, "userType": "external", "gitBranch": "main", "timestamp": "2026-11-01T10:00:00Z"}
    told = list[dict[str, Any]]()
    for number, line in enumerate(session("s", turns=turns, size=size)):
        if line["type"] == "assistant":  # what it says before a call is a line of its own
            said = [{"type": "text", "text": f"I look at part {number} next."}]
            words: dict[str, Any] = {
                **line["message"],
                "type": "message",
                "model": "model-1",
                "content": said,
                "usage": usage,
            }
            told.append({**line, **beside, "uuid": f"{number:0>36}", "requestId": "r" * 28, "message": words})
        message = {"type": "message", "model": "model-1", "stop_reason": None, "usage": usage, **line["message"]}
        kept = {key: value for key, value in line.items() if key != "toolUseResult"}
        told.append({**kept, **beside, "uuid": f"{line['uuid']:0>36}", "requestId": "r" * 28, "message": message})
    return told


def qwen_lines(*, turns: int, size: int) -> list[dict[str, Any]]:
    """The same as Qwen Code writes it."""
    base = {"sessionId": "s", "cwd": "/w/shop", "version": "0.4.1", "timestamp": "2026-11-01T10:00:00Z"}
    asked = {"role": "user", "parts": [{"text": "Mend the parser"}]}
    told: list[dict[str, Any]] = [{**base, "uuid": "u", "type": "user", "message": asked}]
    for turn in range(turns):
        call: dict[str, Any] = {
            "id": f"c{turn}",
            "name": "run_shell_command",
            "args": {"command": f"pytest -q part_{turn}"},
        }
        seen = {"id": f"c{turn}", "name": call["name"], "response": {"output": f"case {turn} " * (size // 10)}}
        reply = {"role": "model", "parts": [{"functionCall": call}]}
        back = {"role": "user", "parts": [{"functionResponse": seen}]}
        told.append({**base, "uuid": f"a{turn:0>35}", "type": "assistant", "model": "model-1", "message": reply})
        told.append({**base, "uuid": f"r{turn:0>35}", "type": "tool_result", "message": back})
    return told


def noise(lines: list[dict[str, Any]], *, size: int) -> list[dict[str, Any]]:
    """The same with lines between that repeat what was asked and seen, as the host keeps its requests."""
    found: list[dict[str, Any]] = []
    for number, line in enumerate(lines):
        kind = UNKNOWN[number % len(UNKNOWN)]
        blob = {"type": kind, "sessionId": "s", "uuid": f"n{number}", "content": json.dumps(line["message"])}
        found += [
            {**blob, "copy": "x" * size},
            line,
            {**blob, "message": line["message"]},
            {"type": kind, "blob": [line]},
        ]
    return found


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def peak(act: Callable[[], object]) -> int:
    """The most memory that Python's objects take while `act` runs, over what they take before."""
    act()  # what is loaded or compiled once does not count
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_lines_that_repeat_a_conversation_are_read_once(tmp_path: Path) -> None:
    plain = write(tmp_path / "a" / "s.jsonl", session("s", turns=6))
    noisy = write(tmp_path / "b" / "s.jsonl", noise(session("s", turns=6), size=10))
    [one], [other] = (list(importers.read(path)) for path in (plain, noisy))
    assert isinstance(one, Imported)
    assert isinstance(other, Imported)
    assert one.trajectory == other.trajectory
    assert sum(len(step.action.calls) for step in one.trajectory.steps) == 6


def test_memory_does_not_grow_with_what_is_passed_over(tmp_path: Path) -> None:
    small = write(tmp_path / "small" / "s.jsonl", noise(session("s", turns=8), size=10))
    large = write(tmp_path / "large" / "s.jsonl", noise(session("s", turns=8), size=200_000))
    assert large.stat().st_size > 3 * MB
    first, second = (peak(lambda path=path: list(importers.read(path))) for path in (small, large))
    assert second < first + 2 * MB


@pytest.mark.parametrize(("agent", "size"), [("claude_code", 160), ("qwen_code", 4_000)])
def test_a_session_of_turns_as_long_as_people_have_is_read_in_less_than_twice_its_size(
    tmp_path: Path, agent: str, size: int
) -> None:
    told = {"claude_code": claude_lines, "qwen_code": qwen_lines}[agent](turns=200_000 // (size + 1_500), size=size)
    file = write(tmp_path / "s.jsonl", told)
    [run] = importers.read(file, format=agent)
    assert isinstance(run, Imported)
    del run
    assert peak(lambda: [None for _ in importers.read(file, format=agent)]) < 2 * file.stat().st_size


def test_a_folder_of_transcripts_is_read_in_the_memory_of_its_largest(tmp_path: Path) -> None:
    for count in (2, 8):
        for number in range(count):
            write(tmp_path / str(count) / f"s{number}.jsonl", session(f"s{number}", turns=8))
    few, many = (peak(lambda count=count: [None for _ in importers.read(tmp_path / str(count))]) for count in (2, 8))
    assert many < 1.5 * few


def test_thousands_of_broken_lines_are_read_or_skipped_and_never_crash(tmp_path: Path) -> None:
    draw = random.Random(11)
    whole = [json.dumps(line) for line in noise(session("s", turns=10, size=200), size=30)]
    values = ["null", "[]", "{}", '"x"', "1e400", "-1", "true", '"\\ud83d"', "[[[[]]]]", '{"role": []}']

    def broken() -> str:
        line = draw.choice(whole)
        for _ in range(draw.choice((1, 1, 2, 5))):
            at = draw.randrange(len(line) + 1)
            if draw.random() < 0.5:
                start = line.find(":", at)
                end = min((i for i in (line.find(sign, start + 1) for sign in ",}") if i > 0), default=len(line))
                line = f"{line[: start + 1]} {draw.choice(values)}{line[end:]}"
            else:
                line = line[:at] + draw.choice(("", "\x00", "\\", '"', "}", "é")) + line[at + draw.randrange(4) :]
        return line.replace("\n", " ")

    lines = [broken() for _ in range(4_000)]
    read = 0
    for start in range(0, len(lines), 500):
        place = tmp_path / f"{start}.jsonl"
        place.write_text("\n".join([whole[1], *lines[start : start + 500]]), encoding="utf-8", errors="replace")
        read += sum(isinstance(entry, Imported) for entry in importers.read(place, format="claude_code"))
    assert read > 7
