"""The closed world: the same for everyone, closed, and silent where it should be."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from lessonbank.demo.desk import BUDGET, CHOICES, OPERATIONS, SUBMIT, VENDORS, Desk, View, stream, world

SEED = 7


def test_a_seed_gives_one_world_and_one_stream() -> None:
    assert world(SEED) == world(SEED)
    assert world(SEED) != world(SEED + 1)
    assert stream(SEED, 40) == stream(SEED, 40)
    assert stream(SEED, 40)[:10] == stream(SEED, 10)


def test_a_world_once_made_stays_as_it_is() -> None:
    form = world(0).form(stream(0, 1)[0])
    assert stream(0, 1)[0].goal == "On the Larkfield site Fleet Service Map, extend a lease for record E-769."
    assert (form.order, form.choice) == (("Validate", "Requeue"), "Standard")


@given(st.integers(0, 500))
def test_every_convention_transfers_as_far_as_it_is_said_to(seed: int) -> None:
    forms = world(seed).forms
    assert len(forms) == sum(len(sites) for sites in VENDORS.values()) * len(OPERATIONS)
    for sites in VENDORS.values():
        assert len({forms[site, op].order[0] for site in sites for op in OPERATIONS}) == 1
        for site in sites:
            assert len({forms[site, op].choice for op in OPERATIONS}) == 1
            assert all(set(forms[site, op].order) < set(forms[site, op].labels) for op in OPERATIONS)
            assert len({forms[site, op].order[1] for op in OPERATIONS}) > 1


def test_the_form_says_saved_whatever_is_chosen_and_only_the_verifier_knows() -> None:
    place, task = world(SEED), stream(SEED, 1)[0]
    form = place.form(task)
    seen: dict[str, float] = {}
    for choice in CHOICES:
        desk = Desk(place, task)
        desk.reset()
        for control in (f"Open {task.record}", *form.order, choice):
            assert desk.step(control)[1:] == (0.0, False)
        view, reward, over = desk.step(SUBMIT)
        assert view.message == "Saved."
        assert over
        seen[choice] = reward
    assert seen == {choice: float(choice == form.choice) for choice in CHOICES}


def test_a_press_out_of_order_does_nothing_and_says_so() -> None:
    place, task = world(SEED), stream(SEED, 1)[0]
    first, second = place.form(task).order
    desk = Desk(place, task)
    assert desk.step(first)[0].message == "No record is open."
    desk.step(f"Open {task.record}")
    assert desk.step(second)[0].message == "Nothing happened."
    assert desk.step("no such control")[0].message == "Nothing happened."


def test_submitting_too_early_is_refused_and_ends_the_task() -> None:
    place, task = world(SEED), stream(SEED, 1)[0]
    desk = Desk(place, task)
    desk.step(f"Open {task.record}")
    view, reward, over = desk.step(SUBMIT)
    assert (view.message, reward, over) == ("Rejected: the form is not ready.", 0.0, True)


def test_the_budget_ends_a_task_without_success() -> None:
    place, task = world(SEED), stream(SEED, 1)[0]
    desk = Desk(place, task)
    ends = [desk.step("no such control")[2] for _ in range(BUDGET)]
    assert ends == [False] * (BUDGET - 1) + [True]


def test_a_view_holds_the_goal_the_message_and_the_controls_and_no_more() -> None:
    assert [field.name for field in dataclasses.fields(View)] == ["goal", "message", "controls"]
    place, task = world(SEED), stream(SEED, 1)[0]
    view = Desk(place, task).reset()
    assert view == View(task.goal, "Page loaded.", (f"Open {task.record}", *place.form(task).labels, SUBMIT))


def test_the_choices_are_offered_only_once_the_form_is_ready() -> None:
    place, task = world(SEED), stream(SEED, 1)[0]
    desk = Desk(place, task)
    first, second = place.form(task).order
    assert not set(CHOICES) & set(desk.step(f"Open {task.record}")[0].controls)
    assert not set(CHOICES) & set(desk.step(first)[0].controls)
    assert set(CHOICES) <= set(desk.step(second)[0].controls)
