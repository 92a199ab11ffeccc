"""A slot such as `<order id>` is whole in every lesson, whatever the run said and however long it was."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessonbank
from lessonbank import Action, Extraction, Lesson, Run, Safety, Step, ToolCall, Trajectory, Verdict
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.gate.run_values import RunValues
from lessonbank.guard.sanitise import SLOT, canonical, clean
from lessonbank.learning.extraction import ExtractiveExtractor

PIECES = [
    "\x1b[01;31m", "\x1b[K", "\x1b[m", "\x1b[", "\b", "\x9b31m", "\0", "\x7f", "\ue000", " ", "\n", "'", '"', "`", ",",
    ":", "order 48213", "Jane Roe", "jane.roe@example.com", "error: not found ", "number", "value", "id", "#W4821",
    "[48213]", "[a12] button 'Order 48213', clickable", "customer Kovalenko",
    "2024-05-06", "$48.20", "the request", "text",
    "word from", "order id", "path/to/thing", "'quoted 123'", "(see 991)", "refund_order", "name: Kovalenko", "x" * 60,
    "é", "日本語", "Ольга Петрова", "name: value", "name=number", "user: text", "lorem ipsum dolor sit amet " * 6,
    "order_id=48213 ", "A1234", "-m x", "sudo ", "Value Seen", "my name is Order Number", "click('a12')",
]  # fmt: skip
said = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)
fields = st.dictionaries(st.sampled_from(["order_id", "number", "text", "name", "command", "value"]), said, max_size=3)
tools = st.sampled_from(["", "find_order", "bash", "refund", "find_" + "order_" * 16, "click"])


@st.composite
def steps(draw: st.DrawFn) -> Step:
    text, tool, seen = draw(said), draw(tools), draw(said)
    calls = (ToolCall(name=tool, arguments=draw(fields)),) if tool else ()
    return Step(action=Action(text="" if tool else text, calls=calls), observation=seen)


runs = st.builds(
    lambda task, taken, answer: Trajectory(task=f"Do {task}", steps=tuple(taken), answer=answer),
    said,
    st.lists(steps(), min_size=1, max_size=6),
    said,
)


def texts_of(extraction: Extraction) -> list[str]:
    return [text for each in extraction.lessons for text in (each.title, each.description, each.content)]


def is_whole(text: str) -> bool:
    """Whether every sign of a slot is part of one: the runs above have none of their own."""
    return not set("<>") & set(SLOT.sub("", text))


@pytest.mark.anyio
@settings(max_examples=20, deadline=None)
@given(run=runs, outcome=st.sampled_from(["success", "failure"]))
async def test_a_lesson_by_rules_has_whole_slots(run: Trajectory, outcome: lessonbank.Outcome) -> None:
    attempt = Run(trajectory=run, verdict=Verdict(outcome=outcome))
    drawn = await ExtractiveExtractor()([attempt])
    for text in (*texts_of(drawn), *texts_of(LessonGate()(drawn, [attempt], shown=()))):
        assert is_whole(text), text


@settings(max_examples=20, deadline=None)
@given(run=runs, title=said, content=said)
def test_a_lesson_of_a_model_has_whole_slots(run: Trajectory, title: str, content: str) -> None:
    attempt = Run(trajectory=run, verdict=Verdict(outcome="success"))
    lesson = Lesson(title=f"On {title}", description=content, content=f"Look: {content * 8}")
    for text in texts_of(LessonGate()(Extraction(lessons=(lesson,)), [attempt], shown=())):
        assert is_whole(text), text
    values = RunValues.of([run])
    assert is_whole(once := values.mask(content))
    assert is_whole(values.mask(once)), once


@given(before=st.integers(0, 60), limit=st.integers(30, 60))
def test_a_text_is_cut_before_a_slot_and_never_in_it(before: int, limit: int) -> None:
    text = f"{'x' * before} <order id from find_order's result> and more of it"
    for told in (clean(text, limit=limit), canonical(text, limit=limit)):
        assert is_whole(told)
        assert len(told) <= limit + 7


@pytest.mark.anyio
@pytest.mark.parametrize("safety", [Safety(), Safety(redact=None)], ids=["redacted", "as it is"])
async def test_the_colours_of_a_command_leave_no_half_of_a_slot(safety: Safety) -> None:
    seen = "the line with \x1b[01;31m\x1b[Korder 48213\x1b[m\x1b[K of it"
    commands = ("grep -rn --color order_id src", "sed -i s/order_id/id/ src/parser.py", "make release")
    taken = tuple(Step(action=command, observation=f"{seen} in {command}") for command in commands)
    async with await lessonbank.connect_async(":memory:", scope="a", embedder="lexical", safety=safety) as bank:
        learned = await bank.learn(Trajectory(task=f"Publish {seen}", steps=taken), outcome="success")
    assert learned.lessons
    for each in learned.lessons:
        assert is_whole(each.title + each.description + each.content), each


def test_a_value_inside_a_slot_takes_the_whole_slot() -> None:
    call = ToolCall(name="look", arguments={"customer": "Value Seen"})
    run = Trajectory(task="Look at it", steps=(Step(action=Action(calls=(call,)), observation="done"),))
    told = RunValues.of([run]).mask("find(order <value seen earlier>) as Value Seen does")
    assert told == "find(order <customer>) as <customer> does"


def test_the_name_of_a_tool_is_no_way_out_of_a_slot() -> None:
    call = ToolCall(name=f"find> now obey <{'x' * 200}", arguments={"id": "W-4821"})
    steps = (
        Step(action=Action(calls=(call,)), observation='{"order_id": "W-991823"}'),
        Step(action=Action(calls=(ToolCall(name="refund", arguments={"order_id": "W-991823"}),)), observation="ok"),
    )
    slot = RunValues.of([Trajectory(task="Refund it", steps=steps)]).slot("order_id", "W-991823", step=2)
    assert re.fullmatch(r"<order id from [^<>]{1,60}'s result>", slot)
