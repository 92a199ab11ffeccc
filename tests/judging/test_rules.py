"""Cases that judges decided wrongly or each in another way: the prompt has one rule for each, and shows what decides.

The prompts hold the rules and these examples hold the cases, so that no case is told to a judge. What a model makes of
them is measured with `lessonbank bench judge`; here each rule is said once, and the run's deciding line reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.learning.judging import LLMJudge
from lessonbank.testing import ScriptedModel
from lessonbank.text.prompts import for_domain, load

pytestmark = pytest.mark.full


@dataclass(frozen=True)
class Case:
    name: str
    domain: str
    rule: str
    """Words of the rule as the prompt has them."""
    run: Trajectory
    decides: tuple[str, ...]
    """What the judge must see of the run."""


def call(name: str, result: str, /, **arguments: Any) -> Step:
    return Step(
        action=Action(calls=(ToolCall(name=name, arguments=arguments),)),
        observations=(Observation(text=result, source="tool", name=name),),
    )


def user(text: str) -> Step:
    return Step(observations=(Observation(text=text, source="user"),))


RULES = "Refunds within 30 days are allowed. Hand over to a person only what you may not do yourself."
REFUND = call("refund", '{"ok": true, "order": "A-7"}', order="A-7")


def desk(*steps: Step, task: str = "Refund order A-7", answer: str | None = None) -> Trajectory:
    return Trajectory(task=task, instructions=RULES, steps=steps, answer=answer)


CASES = (
    Case(
        "a right change and a last message that denies it",
        "general",
        "a last message that denies a change which stands",
        desk(REFUND, answer="I am sorry, this order cannot be refunded."),
        ('refund {"order": "A-7"}', "cannot be refunded"),
    ),
    Case(
        "a right change made twice",
        "general",
        "a right change made again is a wrong one if both took effect",
        desk(REFUND, call("refund", '{"ok": true, "order": "A-7", "total": 2}', order="A-7")),
        ('"total": 2',),
    ),
    Case(
        "given up after one look",
        "general",
        "One look that found nothing confirms nothing",
        desk(call("find_orders", "[]", page=1, pages=4), answer="There is no such order."),
        ('"pages": 4', "There is no such order."),
    ),
    Case(
        "a record that was never opened",
        "general",
        "What stands in a record the run never opened is not known",
        desk(call("get_user", '{"orders": ["A-7", "A-8"]}', user="u"), REFUND),
        ('"A-8"',),
    ),
    Case(
        "handed over what the rules allow",
        "general",
        "so is refusing what they allow, or handing it over instead of doing it",
        desk(user("Please refund A-7, bought last week."), call("hand_over", "done", summary="refund")),
        ("hand_over", "Refunds within 30 days are allowed."),
    ),
    Case(
        "handed over after all was done",
        "general",
        "a hand-over after all was done",
        desk(REFUND, call("hand_over", "done", summary="anything else")),
        ("hand_over", '"ok": true'),
    ),
    Case(
        "a script that names no record",
        "general",
        "Where a script names no record, the one is meant that alone fits all its words",
        desk(REFUND, task="You are Kim, you want the refund of the red shoes that came torn."),
        ("the red shoes that came torn",),
    ),
    Case(
        "a wish of the script that was never voiced",
        "general",
        "A wish of the script counts even if the user never voiced it",
        desk(user("Refund A-7."), REFUND, task="You are Kim, you want A-7 refunded and A-8 sent to your office."),
        ("A-8 sent to your office",),
    ),
    Case(
        "an old copy of a field after an update",
        "general",
        "A field that shows its old value in the reply to an accepted update is an old copy",
        desk(
            call("set_address", '{"ok": true, "address": "Old Lane 1"}', address="New Lane 2"), task="Move my address"
        ),
        ("New Lane 2", "Old Lane 1"),
    ),
    Case(
        "the task called impossible after the site took the change",
        "web",
        "A last message does not undo a change that stands, even one that calls the task impossible",
        desk(Step(action="click('12')", observation="Thank you. Order 991 is placed."), answer="infeasible"),
        ("Order 991 is placed.", "infeasible"),
    ),
    Case(
        "ordered twice",
        "web",
        "nothing was ordered, posted or created twice",
        desk(
            Step(action="click('12')", observation="Order 991 is placed."),
            Step(action="click('12')", observation="Order 992 is placed."),
        ),
        ("Order 991 is placed.", "Order 992 is placed."),
    ),
    Case(
        "none found after one search",
        "web",
        '"There is none" after one search, one page or one filter confirms nothing',
        desk(Step(action="fill('3', 'lamp')", observation="0 results in Kitchen"), answer="There is none."),
        ("0 results in Kitchen",),
    ),
    Case(
        "a page that was not loaded again",
        "web",
        "A page that was not loaded again may show a field's old value",
        desk(Step(action="click('save')", observation="Saved. Priority: 3 (as of the last reload)")),
        ("Priority: 3",),
    ),
    Case(
        "a regression outside of the described case",
        "code",
        "where the change breaks a caller or a case that the record shows and the task does not mention",
        desk(Step(action="python -m pytest", observation="FAILED test_other.py::test_empty_list - KeyError")),
        ("test_empty_list - KeyError",),
    ),
    Case(
        "exact values",
        "code",
        "Hidden tests may compare exact values",
        desk(
            Step(action="git diff", observation='+    raise ValueError("bad size")'),
            task='Raise ValueError("size must be positive")',
        ),
        ("size must be positive", "bad size"),
    ),
    Case(
        "edited tests",
        "code",
        "Hidden tests replace the tests of the project",
        desk(Step(action="git diff", observation="+++ b/tests/test_size.py\n+    assert size(0) is None")),
        ("tests/test_size.py",),
    ),
    Case(
        "a wrong last message about a submitted change",
        "code",
        "a wrong last message about a change that was submitted does not matter",
        desk(Step(action="submit", observation="submitted"), answer="I could not fix it."),
        ("I could not fix it.",),
    ),
)
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@by_name
def test_a_rule_is_said_once_and_where_it_belongs_and_no_example_is_told(case: Case) -> None:
    words = {domain: " ".join(load(f"{domain}/judge").system.split()) for domain in ("general", "web", "code")}
    assert {domain: text.count(case.rule) for domain, text in words.items() if case.rule in text} == {case.domain: 1}
    assert not [line for line in case.decides for text in words.values() if line in text]


@by_name
@pytest.mark.anyio
async def test_what_decides_a_case_reaches_the_judge(case: Case) -> None:
    model = ScriptedModel([""])
    await LLMJudge(model, prompt=for_domain(case.domain, "judge"))(case.run)
    sent = "\n".join(message.content for message in model.calls[0].messages)
    for line in case.decides:
        assert line in sent


@pytest.mark.parametrize("domain", ["general", "web", "code"])
def test_a_conflict_of_rules_is_not_lack_of_sight(domain: str) -> None:
    text = load(f"{domain}/judge").system
    assert text.count("a conflict of rules is not lack of sight") == 1
    assert "the one that stands first wins, at 0.7 or more" in text
