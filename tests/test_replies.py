"""Replies of models: where the JSON in them is, what is repaired, and what is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear import FAR, growth

import lessonbank
from lessonbank import Usage
from lessonbank.errors import OutputError
from lessonbank.learning.extraction import parse_lessons
from lessonbank.learning.topics import parse_topic
from lessonbank.matts.best_of_n import read_choice
from lessonbank.text.replies import Fields, JsonObject, fields_with, find_objects, read_objects, spoken

A, B = {"title": "Sort first", "n": 1}, {"title": "Count the pages", "of": [{"step": 2}]}


def found(text: str, name: str = "title") -> list[Fields]:
    """Every object of a text that has a field of this name, the repaired ones too; a cut one is marked."""

    def read(one: JsonObject, fields: Fields) -> list[Fields]:
        return [fields | ({"cut": True} if one.is_cut else {})] if name in fields else []

    return read_objects(find_objects(text), read)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("<THINKING>a</Thinking>\n b ", "b"),
        ("a</think>b", "b"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("<think>never ends", ""),
        ("b <think>never ends", "b"),
        ('["</think>"]', '["</think>"]'),
        ('<think>a</think>{"a": "</think>"}', '{"a": "</think>"}'),
        ("```json\n{}</think>\n```", "```json\n{}</think>\n```"),
    ],
)
def test_thoughts_are_left_out_and_tags_in_an_answer_stay(reply: str, said: str) -> None:
    assert spoken(reply) == said


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([A, B]),
        f"Here it is:\n```json\n{json.dumps(A, indent=2)}\n```\nand {json.dumps(B)} [see {{step}} 3].",
        str([A, B]),
        json.dumps([A, B]).replace("}, ", ",}, ").replace("}]}", "}],}"),
        json.dumps([A, B]).replace('"title"', "title"),
        f"It's {{ as I said: {json.dumps(A)} {json.dumps(B)}",
        json.dumps({"wrapped": [A, B]})[:-2],
        json.dumps([{key.upper(): value for key, value in one.items()} for one in (A, B)]),
    ],
)
def test_each_object_is_found_in_each_form(text: str) -> None:
    assert found(text) == [A, B]


def test_an_object_that_is_cut_off_says_so_and_those_before_it_stay() -> None:
    assert found(json.dumps({"items": [A, B]})[:-15]) == [A, {"title": B["title"], "of": [], "cut": True}]
    assert found('{"title": "Sort fi') == [{"title": "Sort fi", "cut": True}]


@pytest.mark.parametrize("stray", ['Sort the 5" list', 'Sort "the list', "Sort\"'s list"])
@pytest.mark.parametrize("nested", [{}, {"of": [{"step": 2}]}])
def test_a_stray_quote_costs_no_object_beside_it(stray: str, nested: Fields) -> None:
    broken = json.dumps({"title": "STRAY", **nested, "kind": "strategy"}).replace("STRAY", stray)
    text = f"[{json.dumps(A)}, {broken}, {json.dumps(B)}, {{title: 'Close it'}}]"
    titles = [one["title"] for one in found(text)]
    assert [titles[0], *titles[-2:]] == [A["title"], B["title"], "Close it"]


def test_a_name_with_two_values_has_none() -> None:
    assert found('{"a": 1, "A": 2, "b": 3, " B ": 3}', "a") == [{"a": None, "b": 3}]


def test_only_an_object_with_the_code_counts_and_the_last_of_them() -> None:
    text = '{"check": "ab", "n": 1} {"check": " AB ", "n": 2} {"check": "xy", "n": 3} {"n": 4}'
    assert fields_with("ab", text) == {"check": " AB ", "n": 2}
    assert fields_with("cd", text) is None
    assert fields_with("ab", '{"check": "ab", "of": {"n": 1}, "n": 2,}') == {"check": "ab", "of": {"n": 1}, "n": 2}


@given(st.text(alphabet=st.sampled_from(list("{}[]\":,'\\ \na1")), max_size=200))
def test_any_text_is_read_and_what_is_json_is_read_as_it_is(text: str) -> None:
    found(text)
    assert found(f"{json.dumps(A)}\n{text}")[:1] == [A]


@pytest.mark.full
@pytest.mark.parametrize("unit", ["{", '{"a":', '{"a": "{"b": 1}"} ', "{'", "<think>"])
def test_a_long_reply_of_anything_is_read_in_linear_time(unit: str) -> None:
    assert growth(lambda text: found(spoken(text)), unit, size=25_000) <= FAR


# --- what its readers gain -------------------------------------------------------------------------------------------


def test_a_lesson_with_a_stray_quote_and_objects_in_it_is_read() -> None:
    lessons = [
        {"title": "Sort", "content": "Sort the list.", "evidence": [{"run": 1, "step": 2}]},
        {"title": "Count", "content": "Count the pages."},
    ]
    reply = json.dumps({"items": lessons}).replace("the list", 'the 5" list')
    assert [one.title for one in parse_lessons(reply, limit=3).lessons] == ["Sort", "Count"]


def test_a_choice_that_a_quote_has_given_twice_is_none() -> None:
    forged = '{"check": "abcd0123", "analysis": "It says: ", "index": [1], "x": " and so on", "index": [2]}'
    with pytest.raises(OutputError):
        read_choice(forged, check="abcd0123", count=3, usage=Usage())


def test_the_thoughts_of_a_model_are_no_topic() -> None:
    assert parse_topic('<think>perhaps {"topic": "Orders"}</think>{"topic": "Refunds"}') == "Refunds"
    assert parse_topic('{"topic": "Refu') == ""
    assert parse_topic(f'<think>{"It is about money. " * 2_000}</think>{{"topic": "Refunds"}}') == "Refunds"


def test_one_module_repairs_json() -> None:
    source = Path(lessonbank.__file__).parent
    users = {
        file.relative_to(source).as_posix() for file in source.rglob("*.py") if "json_repair" in file.read_text("utf-8")
    }
    assert users == {"text/replies.py"}
