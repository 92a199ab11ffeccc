"""Labelled ends of coding sessions: what the checks say is never wrong, and words are never ground truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, read

ENDS = [json.loads(line) for line in (Path(__file__).parent / "session_ends.jsonl").read_text("utf-8").splitlines()]
"""Each with the truth as the person means it, who may know more than the transcript says."""


def line(role: str, content: Any) -> str:
    return json.dumps({"type": role, "sessionId": "s", "message": {"role": role, "content": content}}) + "\n"


def transcript(events: list[Any]) -> str:
    """What Claude Code writes of such a session."""
    lines = [line("user", "Fix add")]
    for number, event in enumerate(events):
        id = f"c{number}"
        if isinstance(event, str) and event.startswith("> "):
            lines += [line("assistant", "I am done."), line("user", event[2:])]
            continue
        command, code, printed = (event, 0, "ok") if isinstance(event, str) else event
        name, given = (
            ("Bash", {"command": command[2:]})
            if command.startswith("$ ")
            else ("Edit", {"file_path": command.removeprefix("edit ")})
        )
        lines.append(line("assistant", [{"type": "tool_use", "id": id, "name": name, "input": given}]))
        content = f"Exit code {code}\n{printed}" if code else printed
        result = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": bool(code)}
        lines.append(line("user", [result]))
    return "".join(lines)


def concluded(folder: Path, events: list[Any]) -> tuple[str, str]:
    """The outcome, and where it comes from; nothing, where nothing was concluded."""
    file = folder / "session.jsonl"
    file.write_text(transcript(events), encoding="utf-8")
    found, *_ = read(file, format="claude_code")  # the run of the first prompt
    assert isinstance(found, Imported), found
    verdict = found.verdict
    return (verdict.outcome, verdict.source) if verdict and verdict.outcome != "unknown" else ("", "")


@pytest.mark.full
def test_most_ends_are_concluded_and_none_wrongly(tmp_path: Path) -> None:
    told = [(end["truth"], *concluded(tmp_path, end["events"])) for end in ENDS]
    checked = [one for one in told if one[2] in ("ground_truth", "judge")]
    said = [one for one in told if one[2] == "human"]
    wrong = [one for one in told if one[1] and one[0] != one[1]]
    known = sum(truth != "unknown" for truth, *_ in told)
    print(f"{len(told)} ends, {known} known: {len(checked)} by checks, {len(said)} by words, {len(wrong)} wrong")
    assert len(ENDS) > 100
    assert wrong == []
    assert len(checked) + len(said) >= known * 0.85


@pytest.mark.parametrize("end", [end for end in ENDS if not any(not isinstance(e, str) for e in end["events"])])
def test_words_without_a_check_are_never_ground_truth(tmp_path: Path, end: dict[str, Any]) -> None:
    assert concluded(tmp_path, end["events"])[1] != "ground_truth"
