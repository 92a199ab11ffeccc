"""Labelled ends of coding sessions: what the checks say is never wrong, and words are never ground truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Imported, read

from .test_evidence import Call, shell, transcript

ENDS = [json.loads(line) for line in (Path(__file__).parent / "session_ends.jsonl").read_text("utf-8").splitlines()]
"""Each with the truth as the person means it, who may know more than the transcript says."""


def event_of(written: Any) -> Call | str:
    """What somebody wrote in the set as `transcript` takes it: words of the person, a command, or an edit."""
    if isinstance(written, str) and written.startswith("> "):
        return written[2:]
    command, code, printed = (written, 0, "ok") if isinstance(written, str) else written
    text = f"Exit code {code}\n{printed}" if code else printed
    if command.startswith("$ "):
        return shell(command[2:], text, bool(code))
    return "Edit", {"file_path": command.removeprefix("edit ")}, text, bool(code)


def concluded(folder: Path, events: list[Any]) -> tuple[str, str]:
    """The outcome, and where it comes from; nothing, where nothing was concluded."""
    file = folder / "session.jsonl"
    file.write_text(transcript(*map(event_of, events)), encoding="utf-8")
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


def test_words_without_a_check_are_never_ground_truth(tmp_path: Path) -> None:
    ends = [end["events"] for end in ENDS if all(isinstance(event, str) for event in end["events"])]
    assert len(ends) > 40
    assert [events for events in ends if concluded(tmp_path, events)[1] == "ground_truth"] == []
