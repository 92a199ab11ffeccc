"""Numbers of hundreds of digits and data nested without end are refused in one sentence, or kept and read back."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank.contracts.records import Action, Experience, Json, Lesson, Step, ToolCall, Trajectory
from lessonbank.errors import FormatError, JudgeError, LessonbankError, UsageError
from lessonbank.importers import Imported, Skipped, read
from lessonbank.learning.judging.parsing import parse_verdict
from lessonbank.text.messages import trajectory_from

DIGITS = ["9" * 400, "9" * 5000, "1e999", "-" + "9" * 400, "NaN", "Infinity", '"' + "9" * 5000 + '"']
DEEP = ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "[" * 100_000]


@pytest.mark.parametrize("number", DIGITS, ids=range(len(DIGITS)))
def test_a_confidence_of_any_size_is_read_or_refused(number: str) -> None:
    try:
        reading = parse_verdict('{"outcome": "success", "confidence": ' + number + "}")
    except JudgeError:
        return
    assert reading.confidence is None


@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_a_reply_nested_without_end_holds_no_verdict(text: str) -> None:
    for reply in (text, '{"outcome": "success", "x": ' + text + "}"):
        with pytest.raises(JudgeError):
            parse_verdict(reply)


@pytest.mark.parametrize("value", [10**400, 10**5000, math.nan, math.inf, [[1]] * 3], ids=range(5))
def test_rewards_seconds_and_thresholds_that_cannot_be_are_refused(value: Any) -> None:
    run = Trajectory(task="t", steps=(Step(action="x"),))
    with lessonbank.connect(":memory:", scope="a", embedder="lexical") as bank:
        with pytest.raises(UsageError):
            bank.learn(run, reward=value)
        with pytest.raises(UsageError):
            bank.scale("t", lambda task, memory: "x", k=1, seconds=value)
        with pytest.raises(UsageError):
            bank.admin.forget(days=value)


def nested(levels: int, leaf: Json = "x") -> Json:
    value: Json = leaf
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.full
@pytest.mark.parametrize("redact", [True, False])
@pytest.mark.parametrize("data", [nested(98), nested(101), nested(240), 10**400, 10**5000], ids=range(5))
def test_data_of_a_run_is_refused_or_kept_and_read_back(data: Json, redact: bool, tmp_path: Path) -> None:
    safety = lessonbank.Safety() if redact else lessonbank.Safety(redact=None)
    runs = [
        Trajectory(task="t", metadata={"k": data}),
        Trajectory(task="t", steps=(Step(action=Action(calls=(ToolCall(name="f", arguments={"k": data}),))),)),
    ]
    with lessonbank.connect(tmp_path / "bank.db", scope="a", embedder="lexical", safety=safety) as bank:
        for run in runs:
            try:
                bank.learn(run, outcome="success")
            except UsageError as error:
                assert len(str(error)) <= 500
        kept = bank.runs.list()
        assert bank.runs.search("t", metadata={"k": data}) if kept and data == nested(98) else True
        assert bank.admin.verify() == ()
        bank.admin.export(tmp_path / "export.jsonl")
        with lessonbank.connect(":memory:", scope="a", embedder="lexical") as other:
            assert other.admin.import_(tmp_path / "export.jsonl") >= len(kept)
            assert len(other.runs.list()) == len(kept)


def test_the_metadata_of_an_experience_is_held_to_the_same() -> None:
    new = Experience(scope="a", task="t", lessons=(Lesson(title="a", content="b"),), metadata={"k": nested(150)})
    with lessonbank.connect(":memory:", scope="a", embedder="lexical") as bank, pytest.raises(UsageError):
        bank.consolidate(new)


@pytest.mark.full
@pytest.mark.parametrize("value", [*DIGITS[:6], *DEEP[:2], "[" * 150 + "]" * 150], ids=range(9))
def test_a_crafted_export_is_refused_or_stays_readable(value: str, tmp_path: Path) -> None:
    with lessonbank.connect(":memory:", scope="a", embedder="lexical") as bank:
        bank.learn(Trajectory(task="t", steps=(Step(action="x"),)), outcome="success", metadata={"k": "KK"})
        bank.admin.export(tmp_path / "export.jsonl")
    head, *lines, end = (tmp_path / "export.jsonl").read_text().splitlines(keepends=True)
    body = "".join(lines).replace('"KK"', value)
    last = {**json.loads(end), "sha256": hashlib.sha256(body.encode()).hexdigest()}
    (tmp_path / "forged.jsonl").write_text(head + body + json.dumps(last) + "\n")
    with lessonbank.connect(":memory:", scope="a", embedder="lexical") as other:
        try:
            other.admin.import_(tmp_path / "forged.jsonl")
        except FormatError as error:
            assert len(str(error)) <= 500
        other.runs.list()
        other.admin.export(tmp_path / "again.jsonl")
        assert other.admin.verify() == ()


@pytest.mark.parametrize("value", [*DIGITS, *DEEP[:2]], ids=range(9))
def test_messages_and_files_of_any_number_and_depth_are_read_or_skipped(value: str, tmp_path: Path) -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": value}}
    run = trajectory_from([{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}])
    assert run.steps[-1].action.calls[0].name == "f"
    path = tmp_path / "runs.jsonl"
    path.write_text('{"task": "t", "reward": ' + value + ', "messages": [{"role": "user", "content": "x"}]}\n')
    try:
        assert all(isinstance(entry, Imported | Skipped) for entry in read(path))
    except LessonbankError as error:
        assert len(str(error)) <= 500
