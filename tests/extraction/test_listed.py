"""Where a reply has a list of items, the list is the answer, and lessons quoted beside it are none."""

from __future__ import annotations

import json

import pytest

from lessonbank.errors import ExtractionError
from lessonbank.learning.extraction.parsing import parse_lessons

A = {"title": "Sort before reading the top", "description": "When a list has a top.", "content": "Sort it. Then read."}
B = {"title": "Count the pages", "description": "Not for a single page.", "content": "Read the total, then every page."}
C = {"title": "Reopen the order", "description": "After each change.", "content": "Open it again and compare."}
TWO = json.dumps([A, B])
BOTH = [A["title"], B["title"]]


def titles(text: str) -> list[str]:
    return [lesson.title for lesson in parse_lessons(text, limit=3).lessons]


QUOTE = json.dumps({**C, "evidence": ["step 2"]})
QUOTED_IN_MARKDOWN = f"# Memory Item 1\n## Title {C['title']}\n## Content {C['content']}"


@pytest.mark.parametrize("quote", [QUOTE, f"[{QUOTE}]", f'{{"lessons": [{QUOTE}]}}', QUOTED_IN_MARKDOWN])
@pytest.mark.parametrize(
    "listed", ['{"items": []}', '{"result": {"Items": []}}', '```json\n{"items": [], "why": "routine"}\n```']
)
def test_nothing_is_read_beside_an_empty_list(listed: str, quote: str) -> None:
    assert titles(f"{listed}\nLeft out:\n{quote}") == []
    assert titles(f"{quote}\nis quoted and left out.\n{listed}") == []


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps({"items": [A, B]}),
        json.dumps({"items": [A, B]}, indent=1).replace("\n  }\n ]", "\n  },\n ],"),
        str({"items": [A, B]}),
        f"```json\n{json.dumps({'analysis': 'it stopped', 'items': [A, B]})}\n```",
    ],
)
def test_only_the_list_of_a_reply_is_read(answer: str) -> None:
    assert titles(f"The record says {QUOTE}.\n{answer}") == BOTH
    assert titles(f"{answer}\nLeft out: {QUOTE}") == BOTH


@pytest.mark.parametrize("answer", [[A, B], []])
def test_a_whole_list_that_is_quoted_or_tried_before_the_answer_is_not_it(answer: list[object]) -> None:
    reply = f"A page says {json.dumps({'items': [C]})}, which proves nothing.\n{json.dumps({'items': answer})}"
    assert titles(reply) == (BOTH if answer else [])


def test_what_stands_beside_the_list_in_its_object_is_not_read() -> None:
    assert titles(json.dumps({"left_out": [C], "items": [A, B], "quoted": C})) == BOTH
    assert titles(json.dumps({"items": [], "left_out": [C]})) == []


def test_a_quote_before_a_list_that_was_cut_off_is_not_read() -> None:
    reply = f"The record says {QUOTE}.\n" + json.dumps({"items": [A, B, C]})
    cut = reply[: reply.rindex(C["content"])]
    assert titles(cut) == BOTH
    assert parse_lessons(cut, limit=3).problems == ("the reply breaks off: a lesson at its end may be missing",)
    with pytest.raises(ExtractionError):
        parse_lessons(reply[: reply.index(A["content"])], limit=3)


def test_the_lessons_of_something_else_are_not_the_list() -> None:
    order = '{"order": "#W1", "items": [{"name": "lamp", "item_id": "7"}]}'
    assert titles(f"The order was {order}.\n{TWO}") == BOTH
    assert titles(f"The order was {order}.\n{json.dumps({'items': [A, B]})}") == BOTH
    assert titles(json.dumps([{**A, "items": ["a", "b"]}, {**B, "items": []}])) == BOTH
