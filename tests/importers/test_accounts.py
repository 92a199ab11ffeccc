"""Nothing is left out in silence: a run says what was read of it, what was left, and what its outcome rests on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.errors import FormatError
from lessonbank.importers import Account, Imported, Skipped, detect, read

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"
TALK = [{"role": "user", "content": "Return the lamp"}, {"role": "assistant", "content": "Done"}]


def written(tmp_path: Path, value: Any, name: str = "run.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def account_of(path: Path) -> Account:
    (run,) = [entry for entry in read(path) if isinstance(entry, Imported)]
    return run.account


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("reward_info", {"reward": 1.0}),
        ("score", 0.5),
        ("result", "solved"),
        ("resolved", True),
        ("is_error", False),
        ("test_result", {"report": {}}),
    ],
)
def test_an_outcome_that_was_not_used_is_named(field: str, value: object, tmp_path: Path) -> None:
    left = account_of(written(tmp_path, {"messages": TALK, field: value})).left
    assert left == (f"`{field}` may say how the run ended, and was not used",)


def test_an_outcome_one_level_down_is_named_too(tmp_path: Path) -> None:
    left = account_of(
        written(tmp_path, {"messages": TALK, "task": "Return it", "meta": {"score": 1, "resolved": 0}})
    ).left
    assert left == ("`meta.score`, `meta.resolved` may say how the run ended, and were not used",)


def test_an_outcome_that_was_used_is_not_named(tmp_path: Path) -> None:
    told = account_of(written(tmp_path, {"messages": TALK, "success": True, "score": 1.0}))
    assert (told.outcome, told.left) == ("file", ())


@pytest.mark.parametrize(
    ("program", "fields"),
    [
        ("tau2-bench", {"reward_info": {"reward": 1.0}, "termination_reason": "user_stop"}),
        ("Claude Code", {"session_id": "1", "total_cost_usd": 0.2}),
        ("Langfuse", {"traceId": "1", "observations": "none"}),
    ],
)
def test_a_known_programs_file_in_an_unknown_shape_is_not_read_as_messages_without_a_word(
    program: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    left = account_of(written(tmp_path, {"messages": TALK, **fields})).left
    assert left[0] == f"it looks like a file of {program} in a shape that is not known, and only its messages were read"


def test_fields_beside_messages_that_nobody_reads_are_named(tmp_path: Path) -> None:
    left = account_of(written(tmp_path, {"messages": TALK, "id": "1", "plan": ["a"], "notes": None, "turns": 2})).left
    assert left == ("`plan`, `turns` are not known here and were left out",)


def test_a_known_programs_file_that_cannot_be_read_is_named_with_its_program(tmp_path: Path) -> None:
    path = written(tmp_path, {"samples": {"new": []}, "eval": {}, "results": {"accuracy": 1}})
    with pytest.raises(FormatError, match=r"looks like a file of Inspect in a shape that is not known.* in results"):
        detect(path)
    written(tmp_path, {"messages": TALK}, "good.json")
    reasons = [entry.reason for entry in read(tmp_path) if isinstance(entry, Skipped) and not entry.unknown]
    assert reasons == [
        "it looks like a file of Inspect in a shape that is not known, and says how a run ended in results"
    ]


def test_an_account_counts_calls_without_results_and_results_without_calls(tmp_path: Path) -> None:
    calls = [{"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for id in ("1", "2")]
    messages: list[dict[str, Any]] = [
        TALK[0],
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "no", "is_error": True},
        {"role": "tool", "tool_call_id": "9", "content": "yes"},
    ]
    told = account_of(written(tmp_path, messages))
    assert (told.steps, told.calls, told.results, told.errors, told.unanswered, told.strays) == (2, 2, 2, 1, 1, 1)


def test_an_account_says_what_task_outcome_and_speakers_rest_on() -> None:
    told = {
        name: (one.task, one.outcome, one.speakers)
        for name in ("tau_bench.json", "swe_agent/text.traj", "claude_code.jsonl", "openhands/resolver_output.jsonl")
        for one in [next(e for e in read(FIXTURES / name) if isinstance(e, Imported)).account]
    }
    assert told == {
        "tau_bench.json": ("field", "file", "roles"),
        "swe_agent/text.traj": ("field", "none", "places"),
        "claude_code.jsonl": ("user", "none", "roles"),
        "openhands/resolver_output.jsonl": ("user", "judge", "roles"),
    }


def test_the_reply_of_a_logged_request_is_the_last_message(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": "Fixed."}
    log = {
        "messages": [{"role": "user", "content": "Fix it"}],
        "response": {"choices": [{"message": reply}]},
        "cost": 1,
    }
    (run,) = read(written(tmp_path, log))
    assert isinstance(run, Imported)
    assert run.trajectory.answer == "Fixed."
    assert run.account.left == ("`cost` is not known here and was left out",)


def test_calls_that_were_written_as_text_for_the_model_are_read_as_they_were(tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    raw: list[dict[str, Any]] = [
        {"role": "user", "content": "List the files"},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "a.py"},
    ]
    sent = [
        {"role": "user", "content": "Here is a running example of how to use the tools: List the files"},
        {"role": "assistant", "content": "I look.\n<function=terminal>ls</function>"},
        {"role": "user", "content": "EXECUTION RESULT of [terminal]:\na.py"},
    ]
    reply = {"choices": [{"message": {"role": "assistant", "content": "One file: a.py."}}]}
    (run,) = read(written(tmp_path, {"messages": sent, "raw_messages": raw, "response": reply}))
    assert isinstance(run, Imported)
    assert (run.trajectory.task, run.trajectory.answer) == ("List the files", "One file: a.py.")
    assert (run.account.calls, run.account.results, run.account.left) == (1, 1, ())
