"""What the gate is held to on lessons that were written before its rules were read."""

from __future__ import annotations

from collections import Counter

import pytest

from lessonbank.errors import ModelError
from lessonbank_bench.measure.gate import cases, perfect, sampled, seen, table

pytestmark = [pytest.mark.anyio, pytest.mark.full]


def test_the_sets_are_large_enough_and_no_half_is_chosen() -> None:
    labels = Counter(case.label for case in cases())
    assert labels["honest"] >= 300
    assert labels["harmful"] >= 150
    assert {case.language for case in cases()} == {"en", "de", "fr", "es", "zh"}
    assert 0.4 < Counter(case.half for case in cases())["tuning"] / len(cases()) < 0.6
    assert len({case.lesson.title for case in cases()}) == len(cases())


@pytest.mark.parametrize("which", ["gate", "fresh", "second"])
async def test_without_a_model_one_honest_lesson_in_a_hundred_is_lost_and_all_others_are_unchecked(which: str) -> None:
    for told in table(await seen(cases(which), a_call=12)):
        if told.name == "honest lessons that no agent sees":
            assert told.count <= 0.01 * told.of, told
        if told.name == "harmful lessons shown as if checked":
            assert told.count == 0, told


async def test_what_a_model_calls_harmful_no_agent_sees_and_what_it_keeps_carries_no_mark() -> None:
    for told in table(await seen(cases()[::5], model=perfect(cases()), a_call=12)):
        assert told.count == (told.of if told.name == "harmful lessons that no agent sees" else 0), told


def test_a_sample_is_of_the_held_out_half_alone_with_its_share_of_honest_and_harmful() -> None:
    held_out = [case for case in cases("fresh") if case.half == "held-out"]
    drawn = sampled(cases("fresh"), 120, seed=1)
    assert {case.half for case in drawn} == {"held-out"}
    assert len({case.lesson.title for case in drawn}) == 120
    labels, every = (Counter(case.label for case in some) for some in (drawn, held_out))
    assert abs(labels["honest"] / 120 - every["honest"] / len(held_out)) < 0.01
    assert drawn != sampled(cases("fresh"), 120, seed=2)
    with pytest.raises(ValueError, match=f"has {len(held_out)} lessons"):
        sampled(cases("fresh"), len(held_out) + 1)


async def test_a_reader_is_asked_about_twelve_lessons_at_once_and_shown_no_label() -> None:
    asked: list[str] = []
    answers = perfect(cases("fresh"))

    def reader(prompt: str) -> str:
        asked.append(prompt)
        return answers(prompt)

    drawn = sampled(cases("fresh"), 40)
    found = await seen(drawn, model=reader, a_call=12)
    assert len(asked) == 4
    assert [prompt.count("<<<lesson ") for prompt in asked] == [12, 12, 12, 4]
    assert not any(sign in prompt for prompt in asked for sign in ('"label"', "honest", "held-out"))
    assert all(one.shown == (one.case.label == "honest") and not one.marked for one in found)
    assert {one.case.lesson.title for one in found} == {case.lesson.title for case in drawn}


async def test_twelve_at_once_are_decided_as_three_of_a_run_are() -> None:
    drawn = sampled(cases(), 36)
    few, many = [await seen(drawn, a_call=count) for count in (3, 12)]
    assert [(one.shown, one.marked) for one in few] == [(one.shown, one.marked) for one in many]


@pytest.mark.parametrize("a_call", [3, 12])
async def test_a_reader_that_gives_no_answer_ends_the_measurement(a_call: int) -> None:
    def reader(prompt: str) -> str:
        raise ModelError("nobody sits at the desk")

    with pytest.raises(ModelError, match="nobody checked"):
        await seen(sampled(cases(), 12), model=reader, a_call=a_call)
