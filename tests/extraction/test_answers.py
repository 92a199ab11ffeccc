"""A flag or an exit code says whether a call failed; words only where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

import lessonbank
from lessonbank.learning.extraction._moves import (
    _line_done,  # pyright: ignore[reportPrivateUsage]
    failed,
)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"ok": True, "errors": []}, False),
        ({"success": True, "failed": 0, "message": "no error"}, False),
        ({"hasError": False, "items": []}, False),
        ({"is_error": False, "text": "the error page"}, False),
        ({"exit_code": 0, "stderr": "warning: failed once"}, False),
        ({"id": 7, "title": "Payment failed for order W9", "state": "open"}, False),
        ({"error": {"code": 404}}, True),
        ({"errors": ["no such order"]}, True),
        ({"ok": False}, True),
        ({"isError": True, "content": "fine"}, True),
        ({"exitCode": 2, "stdout": "all good"}, True),
        ({"status": "failed", "order": "W1"}, True),
        ({"message": "Order not found"}, None),
        ({"result": "Error: no such order"}, None),
        ({"valid": "from May on", "status": "pending"}, None),
    ],
)
def test_fields_of_an_answer_say_whether_it_failed(answer: dict[str, Any], said: bool | None) -> None:
    assert failed(json.dumps(answer)) is said


@pytest.mark.parametrize("text", ["", "error", "[1, 2]", '{"ok": tr', "{" * 30_000, '{"a":' * 5_000])
def test_what_is_no_object_says_nothing(text: str) -> None:
    assert failed(text) is None


def learned(result: dict[str, Any]) -> str:
    """What is learned of a run whose first call got this result."""
    call = {"id": "1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "W1"}'}}
    ship = {"id": "2", "type": "function", "function": {"name": "ship_order", "arguments": '{"id": "W1"}'}}
    with lessonbank.connect(":memory:", scope="s", embedder="lexical") as bank:
        bank.learn(
            [
                {"role": "user", "content": "Ship order W1"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                result,
                {"role": "assistant", "content": None, "tool_calls": [ship]},
                {"role": "tool", "tool_call_id": "2", "content": "shipped"},
                {"role": "assistant", "content": "Done"},
            ],
            outcome="success",
        )
        return "\n".join(lesson.content for lesson in bank.lessons.list())


def block(text: str, **flags: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": text, **flags}]}


def plain(text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "1", "content": text}


@pytest.mark.parametrize(
    ("result", "is_failure"),
    [
        (block("raise OrderError('failed')", is_error=False), False),
        (block("permission denied", is_error=True), True),
        (block("Error: no such order"), True),
        (plain('{"ok": true, "errors": []}'), False),
        (plain('{"error": "locked"}'), True),
        (plain("Error: no such order"), True),
        ({**plain("an error of before was fixed"), "isError": False}, False),
    ],
)
def test_a_flag_wins_over_words_in_what_is_learned(result: dict[str, Any], is_failure: bool) -> None:
    assert ("failed (" in learned(result)) is is_failure


@pytest.mark.parametrize("said", ["Fehler: Bestellung ist gesperrt", "Erreur : commande bloquée", "错误：订单已锁定"])
def test_an_error_in_another_language_is_one(said: str) -> None:
    assert "What worked" not in learned(plain(said)) or "get_order" not in learned(plain(said)).split("step 2")[0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("edit 3:3\nprint(int(x))\nend_of_edit", "edit 3:3"),
        ("I fix it.\nedit 3:3\nx = 1\n\nend_of_edit\n", "edit 3:3"),
        ("end_of_edit", "end_of_edit"),
        ("create a.py\nend_of_edit", "end_of_edit"),
        ("ls\npwd", "pwd"),
    ],
)
def test_a_command_of_several_lines_is_named_by_the_line_that_opens_it(text: str, line: str) -> None:
    assert _line_done(text) == line
