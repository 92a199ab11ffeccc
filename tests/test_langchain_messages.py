"""Messages of the real `langchain-core` are read: as recorded from it, and as objects where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank.contracts.records import Trajectory
from lessonbank.text.messages import to_messages, trajectory_from

FORMS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "fixtures" / "messages" / "langchain.json").read_text(encoding="utf-8")
)
"""The same conversation as `model_dump`, `dumpd` and `messages_to_dict` of langchain-core 1.7 write it."""


def check(run: Trajectory) -> None:
    assert run.instructions == "Be kind."
    assert run.task.startswith("Cancel order W1")
    assert run.answer == "There is no order W1."
    asked, looked, thought, said = run.steps
    assert [(seen.source, seen.name) for seen in asked.observations] == [("user", "ana")]
    assert looked.action.text == "Let me look."
    assert [(c.name, c.id) for c in looked.action.calls] == [
        ("get_order", "call_1"),
        ("get_user", "call_2"),
        ("broken", "call_3"),
    ]
    assert looked.action.calls[0].arguments == {"id": "W1"}
    assert [(seen.name, seen.text, seen.is_error) for seen in looked.observations] == [
        ("get_order", "no such order", True),
        ("get_user", "user 7", False),
    ]
    assert (thought.thought, thought.action.text) == ("I think.", "It does not exist.")
    assert [call.name for call in thought.action.calls] == ["done"]
    assert said.action.text == "There is no order W1."
    assert (run.usage.requests, run.usage.input_tokens, run.usage.output_tokens) == (2, 32, 12)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_that_langchain_writes_is_the_same_run(form: str) -> None:
    run = trajectory_from(FORMS[form])
    check(run)
    assert to_messages(run) == FORMS[form]


def test_what_a_model_reasons_beside_its_message_is_its_thought() -> None:
    said = {"type": "ai", "content": "Yes.", "additional_kwargs": {"reasoning_content": "Two are left."}}
    run = trajectory_from([{"type": "human", "content": "Is rye bread left?"}, said])
    assert run.steps[-1].thought == "Two are left."


def test_a_bank_learns_from_langchain_messages() -> None:
    with lessonbank.connect(":memory:", scope="a", embedder="lexical") as bank:
        assert bank.learn(FORMS["model_dump"], outcome="success").verdicts
        assert bank.runs.list()[0].trajectory.usage.output_tokens == 12


@pytest.mark.parametrize("tokens", [-1, 10**400, "7", None, 1.5, [3]])
def test_token_counts_that_cannot_be_are_passed_over(tokens: Any) -> None:
    said = {"type": "ai", "content": "x", "usage_metadata": {"input_tokens": tokens, "output_tokens": 1}}
    run = trajectory_from([{"type": "human", "content": "Do it"}, said])
    assert run.usage.requests == 0


@pytest.mark.full
def test_objects_of_the_installed_package_are_read() -> None:
    messages = pytest.importorskip("langchain_core.messages", reason="langchain-core is not installed")
    check(trajectory_from(messages.messages_from_dict(FORMS["to_dict"])))
