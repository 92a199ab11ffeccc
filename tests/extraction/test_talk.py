"""Lessons that rules draw where customers ask in words of their own: the deed names them, and one fact is one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import lessonbank
from lessonbank import Action, Evidence, Observation, ReasoningBank, Step, ToolCall, Trajectory
from lessonbank.contracts.records import Json

ASKINGS = (
    "I want my money back for order {}, the shoes do not fit.",
    "Please refund order {}.",
    "Hi, order {} arrived broken. Can I get a refund?",
    "The jacket in {} is too small, refund it please",
    "Could you refund {}? It never worked.",
    "My name is Ada Berg, e-mail ada@example.org. Refund order {}.",
    "refund for {} please, wrong colour",
    "I'd like to return order {} and be refunded",
    "Give me back what I paid for {}.",
    "Order {}: I changed my mind, please pay it back",
)
Made = tuple[str, dict[str, Json], str]


def bank_of() -> ReasoningBank:
    return lessonbank.connect(":memory:", scope="s", embedder="lexical", evidence=Evidence(holdout=None))


def talk(task: str, made: Sequence[Made]) -> Trajectory:
    steps = [
        Step(action=Action(calls=(ToolCall(name=n, arguments=a),)), observations=(Observation(text=t, source="tool"),))
        for n, a, t in made
    ]
    return Trajectory(task=task, steps=tuple(steps), answer="Done.")


def refunded(asking: str, order: str, reason: str, *, looks_up: bool) -> Trajectory:
    found: Made = ("find_customer", {"email": "ada@example.org"}, '{"name": "Ada Berg", "orders": 3}')
    return talk(
        asking.format(order),
        [
            *([found] if looks_up else []),
            ("refund", {"order_id": order}, "error: no open return for this order"),
            ("open_return", {"order_id": order, "reason": reason}, "return opened"),
            ("refund", {"order_id": order}, "refunded"),
        ],
    )


def test_ten_askings_of_one_refund_teach_one_fix_whose_title_names_the_deed_and_nothing_a_customer_said() -> None:
    with bank_of() as bank:
        for n, asking in enumerate(ASKINGS):
            reason = asking[:20] if n % 3 == 0 else "broken"
            bank.learn(refunded(asking, f"#W{3000 + n}", reason, looks_up=n % 2 == 0), outcome="success")
        lessons = bank.lessons.list()
        (fix,) = [lesson for lesson in lessons if "got past" in lesson.title]
        assert fix.title == "Error and what got past it: refund, then open_return"
        assert fix.description == "`refund` fails"
        titles = {lesson.title.partition(": ")[2] for lesson in lessons}
        assert titles == {"refund, then open_return", "open_return, refund"}
        for asking in ASKINGS:
            shown = [lesson.title for lesson in bank.retrieve(asking.format("#W9999")).lessons]
            assert shown and len(shown) == len(set(shown)), "one fact is told once, however it is asked for"


def test_the_topic_of_talk_is_the_deed() -> None:
    with bank_of() as bank:
        bank.learn(refunded(ASKINGS[0], "#W3000", "broken", looks_up=True), outcome="success")
        steps: list[Made] = [
            ("get_order", {"id": "#W1"}, '{"tracking": "T1"}'),
            ("track_parcel", {"tracking": "T1"}, "on its way"),
        ]
        bank.learn(talk("Where is the thing that I bought?", steps), outcome="success")
        assert sorted(bank.lessons.topics().values()) == ["refund", "track parcel"]


def test_a_deed_that_is_asked_for_without_a_common_word_is_the_same_topic() -> None:
    with bank_of() as bank:
        bank.learn(refunded("Please refund order {}.", "#W3001", "broken", looks_up=False), outcome="success")
        late: list[Made] = [("refund", {"order_id": "#W3002"}, "error: bought too long ago")]
        bank.learn(talk("Give me my money back!", late), outcome="failure")
        assert list(bank.lessons.topics().values()) == ["refund"]


def test_two_errors_of_one_run_of_talk_are_two_lessons() -> None:
    made: list[Made] = [
        ("open_return", {"order_id": "#W1234"}, "error: no reason given"),
        ("open_return", {"order_id": "#W1234", "reason": "broken"}, "return opened"),
        ("refund", {"order_id": "#W1234"}, "error: not confirmed"),
        ("confirm", {"order_id": "#W1234"}, "confirmed"),
    ]
    with bank_of() as bank:
        bank.learn(talk("Refund order #W1234", made), outcome="success")
        errors = [lesson.content for lesson in bank.lessons.list() if "got past" in lesson.title]
    assert len(errors) == 2 and all(content.count(" failed ") == 1 for content in errors)


def test_a_cure_that_only_takes_a_value_from_elsewhere_says_from_where() -> None:
    made: list[Made] = [
        ("find_orders", {"email": "ada@example.org"}, '{"order_id": "#W7777"}'),
        ("refund", {"order_id": "#W1234"}, "error: no such order"),
        ("refund", {"order_id": "#W7777"}, "refunded"),
    ]
    with bank_of() as bank:
        bank.learn(talk("Refund #W1234 of ada@example.org", made), outcome="success")
        (fix,) = [lesson for lesson in bank.lessons.list() if "got past" in lesson.title]
    assert "then `refund(order_id=<order id from find_orders's result>)` went through" in fix.content


@pytest.mark.parametrize(
    "ids",
    [
        tuple("123456"),
        ("12", "34", "56", "78", "91", "23"),
        ("#W101", "#W202", "#W303", "#W404", "#W505", "#W606"),
        ("alpha", "bravo", "carol", "delta", "echo", "fox"),
    ],
)
def test_ids_of_one_digit_and_of_one_word_are_slots(ids: Sequence[str]) -> None:
    lines = "Refund order {0}|refund {0}|error: no open return|open_return {0}|return opened|refund {0}|refunded"
    with bank_of() as bank:
        for id in ids:
            told = lines.format(id).split("|")
            messages = [{"role": ("user", "assistant")[n % 2], "content": line} for n, line in enumerate(told)]
            bank.learn(messages, outcome="success")
        lessons = bank.lessons.list()
    assert {lesson.title for lesson in lessons} == {
        "What worked: Refund order <order>",
        "Error and what got past it: refund <order>, then open_return <order>",
    }
    assert len(lessons) == 2


@pytest.mark.parametrize("id", ["5", "alpha"])
def test_a_short_id_is_a_slot_also_in_the_middle_of_a_line(id: str) -> None:
    lines = ("Cancel order {0}", "cancel {0}", "error: give a reason", "cancel {0} reason=mistake", "cancelled")
    told = [{"role": ("user", "assistant")[n % 2], "content": line.format(id)} for n, line in enumerate(lines)]
    with bank_of() as bank:
        (lesson,) = bank.learn(told, outcome="success").lessons
    assert lesson.title == "Error and what got past it: cancel <order>, then cancel <order> reason=mistake"


def test_a_short_number_that_a_field_names_is_a_slot_in_the_request() -> None:
    made: list[Made] = [("verify", {"order": "5"}, "verified"), ("change", {"order": "5"}, "changed")]
    with bank_of() as bank:
        (lesson,) = bank.learn(talk("Wrong name on 5, put it right", made), outcome="success").lessons
    assert lesson.description == "For a task like: Wrong name on <order>, put it right"


def test_a_number_that_two_deeds_are_about_is_a_slot() -> None:
    steps = tuple([Step(action=f"{deed} 6", observation=f"{deed} went through") for deed in ("verify", "move")])
    with bank_of() as bank:
        (lesson,) = bank.learn(Trajectory(task="I moved, send 6 there", steps=steps), outcome="success").lessons
    assert lesson.title == "What worked: I moved, send <number> there"


def test_an_ordinary_word_behind_a_thing_is_no_id() -> None:
    steps = (Step(action="open history", observation="Opened."), Step(action="press Export", observation="Saved."))
    with bank_of() as bank:
        bank.learn(Trajectory(task="Export the order history", steps=steps), outcome="success")
        (lesson,) = bank.lessons.list()
    assert lesson.title == "What worked: Export the order history"
    assert "`open history`" in lesson.content


def test_a_small_number_that_counts_is_no_id() -> None:
    steps = (Step(action="buy --count 2 pens", observation="Bought."), Step(action="send 2", observation="Sent."))
    with bank_of() as bank:
        bank.learn(Trajectory(task="Buy item 2 twice", steps=steps), outcome="success")
        (lesson,) = bank.lessons.list()
    assert lesson.title == "What worked: Buy item 2 twice"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("unlock_order must be called first", "unlock_order must be called first"),
        ("call check_shipment before this", "call check_shipment before this"),
        ("call fetchInvoice before this", "call fetchInvoice before this"),
        ("first use grobnik.release() here", "first use grobnik.release() here"),
        ("no rights for user maryYoung here", "no rights for user <…> here"),
        ("no rights for user mary_young here", "no rights for user <…> here"),
        ("account of jqzt_mvrk is closed", "account of <…> is closed"),
    ],
)
def test_the_name_of_a_tool_in_an_error_is_told_whole_and_a_persons_is_not(said: str, told: str) -> None:
    refused: Made = ("change_address", {"order_id": "#W10"}, f"Error: {said}")
    with bank_of() as bank:
        (lesson,) = bank.learn(talk("Change the address of order #W10", [refused]), outcome="failure").lessons
    assert told in lesson.content
