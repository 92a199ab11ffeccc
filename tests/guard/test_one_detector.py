"""What redaction takes out of a run is what a slot stands for in a lesson: one detector finds it for both."""

from __future__ import annotations

import pytest

from lessonbank.contracts.records import Action, Step, ToolCall, Trajectory
from lessonbank.guard.gate.run_values import RunValues
from lessonbank.guard.redact import redact

KNOWN = (
    ("e-mail", "jane.roe@example.com"),
    ("phone", "+49 30 901820"),
    ("phone", "+1 (415) 555-0132"),
    ("card", "4111 1111 1111 1111"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
)
NOBODYS = ("- @pytest.mark.skipif in line 12", "ssh git@example.com first", "scp report deploy@build.example.org:dist")


@pytest.mark.parametrize(("kind", "value"), KNOWN)
def test_a_lesson_has_a_slot_where_a_run_has_a_placeholder(kind: str, value: str) -> None:
    assert redact(f"Ask {value} first") == f"Ask [{kind} 1] first"
    assert RunValues().mask(f"Ask {value} first") == f"Ask <{kind}> first"


@pytest.mark.parametrize("text", NOBODYS)
def test_what_redaction_leaves_is_no_address_in_a_lesson_either(text: str) -> None:
    assert redact(text) == text
    assert "<e-mail>" not in RunValues().mask(text)


def test_a_value_that_calls_give_again_and_again_has_the_slot_of_the_first_result_that_brought_it() -> None:
    def step(tool: str, given: str, seen: str) -> Step:
        call = ToolCall(name=tool, arguments={"order_id": given})
        return Step(action=Action(calls=(call,)), observations=(seen,))

    steps = (
        step("try", "W-77120", "no"),
        step("find", "W-77120", '{"order_id": "W-77120"}'),
        step("a", "W-77120", "ok"),
    )
    values = RunValues.of([Trajectory(task="Refund it", steps=steps)])
    assert values.slot("order_id", "W-77120", step=3) == "<order id from find's result>"
