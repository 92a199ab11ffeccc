"""Every function of the gate takes time in proportion to its text, whatever the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from linear import RATIO, growth, growth_of, repeated, too_slow

from lessonbank.contracts.lesson_block import codes_in
from lessonbank.contracts.records import Extraction, Lesson, Run, Step, Trajectory, Verdict
from lessonbank.guard.gate import LessonGate, doubt, in_form
from lessonbank.guard.gate._echo import ShownMemory
from lessonbank.guard.gate._empty import is_vague, says_nothing
from lessonbank.guard.gate._literals import literal_in, restates
from lessonbank.guard.gate._named_entities import find_entities
from lessonbank.guard.gate._phrases import imitates_a_turn, is_ending, is_form, is_talk
from lessonbank.guard.gate._skeleton import skeleton
from lessonbank.guard.gate.run_values import RunValues, noun_of, parsed
from lessonbank.learning.harm_check import read_answers

pytestmark = pytest.mark.full

GOOD = "Read the status of the order before it is changed: a shipped order can be returned only, not cancelled."
SUCCESS = Verdict(outcome="success")


def a_run(text: str) -> Trajectory:
    step = Step(thought=text, action=text, observation=text)
    return Trajectory(task=f"x{text}", instructions=text, steps=(step,), answer=text)


def at_the_gate(text: str) -> object:
    lessons = (Lesson(title="Status", content=GOOD), Lesson(title=f"x{text}", description=text, content=f"x{text}"))
    return LessonGate()(Extraction(lessons=lessons), [Run(trajectory=a_run(text), verdict=SUCCESS)], shown=[text])


def values_of_a_run(text: str) -> object:
    run = a_run(text)
    values = RunValues.of([run])
    return values.mask(text), values.mask_private(text)


CALLS: dict[str, Callable[[str], object]] = {
    "LessonGate": at_the_gate,
    "RunValues": values_of_a_run,
    "literal_in, of the task": lambda text: literal_in(GOOD, task=text, answer=text),
    "literal_in, in the lesson": lambda text: literal_in(text, task=text, answer="Jane Roe"),
    "restates": lambda text: restates(text, task=text, answer=text),
    "find_entities": lambda text: list(find_entities(text)),
    "imitates_a_turn": imitates_a_turn,
    "read_answers": lambda text: read_answers(text, 3),
    "doubt": lambda text: doubt(Lesson(title="x", content=f"x{text}")),
    "in_form": lambda text: in_form(Lesson(title=f"x{text}", content=f"x{text}")),
    "skeleton": skeleton,
    "says_nothing": lambda text: says_nothing(text, text),
    "is_vague": lambda text: is_vague(text, text, task=text),
    "is_form": lambda text: is_form(text, text),
    "is_talk": lambda text: is_talk(text, text),
    "is_ending": is_ending,
    "ShownMemory.has": lambda text: ShownMemory((text,)).has(text, text),
    "codes_in": lambda text: codes_in([text]),
    "noun_of": noun_of,
    "parsed": parsed,
}


@pytest.mark.release
@pytest.mark.parametrize("name", CALLS)
def test_four_times_the_text_takes_five_times_as_long_at_most(name: str) -> None:
    assert too_slow({name: CALLS[name]}) == {}


QUICK = ("literal_in, of the task", "skeleton", "find_entities")


@pytest.mark.parametrize("piece", ["Alpha Beta Gamma Delta ", "a<"])
def test_time_grows_as_the_text_does(piece: str) -> None:
    assert too_slow({name: CALLS[name] for name in QUICK}, pieces=[piece], size=10_000) == {}


@pytest.mark.parametrize(
    "text",
    [
        lambda size: "\n" * size,
        lambda size: f"submit{' ' * size}x",
        lambda size: 'abc("a"' + '  "a"' * size + "x",
        lambda size: f"submit{' ' * size}{'(' * size}",
    ],
    ids=["empty lines", "blanks behind a command", "arguments without commas", "brackets that stay open"],
)
def test_blanks_that_several_parts_of_a_phrase_may_take_are_read_once(text: Callable[[int], str]) -> None:
    for call in (partial(is_form, "x"), is_ending):
        assert growth_of(lambda size, call=call: partial(call, text(size)), size=1_000) <= RATIO


def test_a_value_that_comes_again_and_again_is_looked_for_once() -> None:
    assert growth(CALLS["RunValues"], "a$1", size=1_000) <= RATIO


def test_the_harness_finds_what_is_quadratic() -> None:
    def quadratic(text: str) -> int:
        return sum(a == b for a in text[::20] for b in text[::20])

    assert too_slow({"quadratic": quadratic, "linear": str.upper}, pieces=["ab"], size=6_000).keys() == {
        ("quadratic", "ab")
    }
    assert repeated("abc", 4) == "abca"
