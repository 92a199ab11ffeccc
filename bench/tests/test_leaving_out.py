"""Guards: a task's own past, and its near copies, are kept out of its memory, and the places they took are filled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear import too_slow
from listed import SCOPE, delegates, experience, listed, tasks

from lessonbank.contracts.records import Experience
from lessonbank.search._wrapper import SLACK, ask_next
from lessonbank_bench.leave_out import LeaveOut, same_task, same_template, without_values

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "other", ["Cancel the order", "cancel  THE\norder ", "\uff23ancel the order", "Cancel\u00a0the order"]
)
def test_the_same_task_is_known_in_other_case_spacing_and_forms_of_characters(other: str) -> None:
    assert same_task("Cancel the order", experience(other))


def test_another_task_is_not_the_same_task() -> None:
    assert not same_task("Cancel the order", experience("Cancel the orders"))


def test_a_template_is_what_is_left_without_quoted_text_and_words_with_digits() -> None:
    first = 'Order 3 "Loaner Laptop" for #W123 by 2024-05-01'
    second = 'order 10 "Sales Laptop" for #X9 by 2023-01-31'
    assert without_values(first) == without_values(second) == "order _ _ for _ by _"


def test_templates_are_told_by_a_function_of_the_callers() -> None:
    rule = same_template({"buy tea": "buy", "buy milk": "buy", "sell tea": "sell"}.get)
    assert rule("buy tea", experience("buy milk"))
    assert not rule("buy tea", experience("sell tea"))


def test_a_task_whose_template_is_not_known_shares_it_with_nothing_but_itself() -> None:
    rule = same_template(lambda task: None)
    assert not rule("buy tea", experience("buy milk"))
    assert rule("buy tea", experience("Buy  tea"))


def test_an_experience_may_name_its_template() -> None:
    rule = same_template({"buy tea": "buy"}.get)
    assert rule("buy tea", experience("get me some milk", template="buy"))
    assert not rule("buy tea", experience("get me some milk", template="sell"))


def test_a_template_of_another_kind_leaves_the_texts_to_decide_and_so_do_metadata() -> None:
    assert same_template()("order 1", experience("order 2", template="shop-17"))
    assert same_template()("order 1", experience("order 2", metadata={"template": 17}))


async def test_the_places_of_what_is_left_out_are_filled() -> None:
    inner = listed(*[("mine", 1.0)] * 500, ("a", 0.5), ("b", 0.4), ("c", 0.3))
    found = await LeaveOut(inner, same_task)("mine", scope=SCOPE, limit=2)
    assert tasks(found) == ["a", "b"]
    assert len(inner.asked) <= 5


async def test_a_note_says_how_many_better_ones_were_passed_over() -> None:
    inner = listed(("mine", 1.0), ("a", 0.5), ("mine", 0.5), ("b", 0.4), ("mine", 0.1))
    guarded = LeaveOut(inner, same_task)
    assert (await guarded("mine", scope=SCOPE, limit=1)).notes == ("left out by same task: 1",)
    assert (await guarded("mine", scope=SCOPE, limit=2)).notes == ("left out by same task: 2",)
    assert (await guarded("mine", scope=SCOPE, limit=9)).notes == ("left out by same task: 3",)
    assert (await guarded("other", scope=SCOPE, limit=2)).notes == ()


async def test_one_question_is_enough_when_little_is_left_out() -> None:
    inner = listed(("mine", 1.0), *[("other", 0.5)] * 50)
    await LeaveOut(inner, same_task)("mine", scope=SCOPE, limit=5)
    assert inner.asked == [5 + SLACK]


@given(st.lists(st.sampled_from(["q", "Q ", "a", "b", "c"]), max_size=80), st.integers(1, 12))
async def test_never_the_excluded_and_never_fewer_than_there_are(found_tasks: list[str], limit: int) -> None:
    inner = listed(*((task, 1.0 - n / 100) for n, task in enumerate(found_tasks)))
    found = await LeaveOut(inner, same_task)("q", scope=SCOPE, limit=limit)
    others = [match for match in inner.matches if match.experience.task in ("a", "b", "c")]
    assert list(found.matches) == others[:limit]


@given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 500), st.integers(1, 50))
def test_asking_ends_when_there_are_enough_or_no_more_and_else_goes_on_with_more(
    asked: int, got: int, kept: int, limit: int
) -> None:
    more = ask_next(asked, got=got, count=kept, limit=limit)
    assert (more is None) == (kept >= limit or got < asked)
    assert more is None or more > asked


@pytest.mark.full
def test_taking_values_out_is_linear_for_hostile_text() -> None:
    assert too_slow({"without_values": without_values}, pieces=['"', "a", '"a', "a1", "`x\n"]) == {}


async def test_a_guard_is_named_by_its_rule() -> None:
    def from_yesterday(task: str, experience: Experience, /) -> bool:
        return False

    assert LeaveOut(listed(), same_task).name == "experience/listed+leave-out(same task)"
    assert LeaveOut(listed(), same_template()).name == "experience/listed+leave-out(same template)"
    assert LeaveOut(listed(), from_yesterday).name == "experience/listed+leave-out(from yesterday)"
    assert LeaveOut(listed(), from_yesterday, what="old ones").name == "experience/listed+leave-out(old ones)"


async def test_a_guard_indexes_as_the_inner_retriever() -> None:
    await delegates(LeaveOut(listed(), same_task))
