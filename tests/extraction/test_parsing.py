"""Reading lessons out of replies, shape by shape and by property."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress

import pytest
from any_text import any_text
from hypothesis import given, settings
from hypothesis import strategies as st
from linear import FAR, growth, growth_of

from lessonbank.errors import ExtractionError, UsageError
from lessonbank.guard import clean
from lessonbank.learning.extraction.parsing import Draft, parse_lessons

A = {"title": "Sort before reading the top", "description": "When a list has a top.", "content": "Sort it. Then read."}
B = {"title": "Count the pages", "description": "Not for a single page.", "content": "Read the total, then every page."}
C = {"title": "Reopen the order", "description": "After each change.", "content": "Open it again and compare."}
TWO = json.dumps([A, B])

MARKDOWN = """# Memory Item 1
## Title Sort before reading the top
## Description When a list has a top.
## Content Sort it. Then read.

# Memory Item 2
## Title Count the pages
## Description Not for a single page.
## Content Read the total, then every page."""


def titles(text: str, limit: int = 3) -> list[str]:
    return [lesson.title for lesson in parse_lessons(text, limit=limit).lessons]


BOTH = [A["title"], B["title"]]

SHAPES = {
    "plain array": TWO,
    "fenced": f"```json\n{TWO}\n```",
    "prose before": f"Here are the lessons I would keep:\n\n{TWO}",
    "prose after": f"{TWO}\n\nThese should transfer to other tasks.",
    "prose and fence": f"The run failed early [see step 3].\n```\n{TWO}\n```\nLet me know.",
    "think block": f"<think>Maybe [{json.dumps(C)}]? No.</think>\n{TWO}",
    "think block whose start is in the prompt": f"Maybe {json.dumps(C)}? No.\n</think>\n{TWO}",
    "trailing commas": TWO.replace('"}', '",}').replace("}]", "},]"),
    "single quotes": str([A, B]),
    "wrapped as memories": json.dumps({"memories": [A, B]}),
    "wrapped as items": json.dumps({"items": [A, B]}),
    "wrapped as lessons, with more around": json.dumps({"analysis": "it stopped", "lessons": [A, B], "n": 2}),
    "wrapped twice": json.dumps({"result": {"memory_items": {"1": A, "2": B}}}),
    "capital keys": json.dumps([{k.title(): v for k, v in x.items()} for x in (A, B)]),
    "one object after another": f"{json.dumps(A)}\n{json.dumps(B)}",
    "numbered objects": f"1. {json.dumps(A)}\n2. {json.dumps(B, indent=2)}",
    "json in a json string": json.dumps(TWO),
    "truncated after complete items": json.dumps({"items": [A, B, C]})[:-30],
    "truncated array": TWO[:-1],
    "comments": TWO.replace("}, {", "}, // the second\n {"),
    "byte order mark": "\ufeff" + TWO,
    "unquoted keys": TWO.replace('"title"', "title").replace('"content"', "content"),
    "stray brace before": f"Use {{slot}} or {{ as it's said: {TWO}",
    "draft object around that is broken": '{"items": [' + TWO[1:-1] + '], "note": "says "hi" to"',
    "markdown": MARKDOWN,
    "markdown with preamble": f"The run succeeded because it sorted first.\n\n{MARKDOWN}",
    "markdown in a fence": f"```markdown\n{MARKDOWN}\n```",
    "markdown with colons": MARKDOWN.replace("Title ", "Title: ").replace("Content ", "Content: "),
    "markdown with values below": MARKDOWN.replace("Title ", "Title\n").replace("Content ", "Content\n\n"),
    "markdown in bold": MARKDOWN.replace("## Title", "**Title:**").replace("## Content", "**Content**:"),
    "markdown, bold lines": MARKDOWN.replace("# Memory Item 1", "**Memory Item 1**")
    .replace("## Title Sort before reading the top", "**Title: Sort before reading the top**")
    .replace("## Content Sort it. Then read.", "- **Content**: Sort it. Then read."),
    "markdown without item headings": "\n".join(x for x in MARKDOWN.split("\n") if "Memory Item" not in x),
    "markdown with the title in the item heading": MARKDOWN.replace("\n## Title ", ": "),
    "markdown after thoughts": f"<think>\n# Memory Item 1\n## Title No\n## Content No.\n</think>\n{MARKDOWN}",
    "markdown with the paper's letter for a number": MARKDOWN.replace("Item 1", "Item i").replace("Item 2", "Item ii"),
    "markdown with Windows line ends": MARKDOWN.replace("\n", "\r\n"),
    "numbered fields in bold": "\n".join(
        f"{n}. **Title**: {one['title']}\n   **Description**: {one['description']}\n   **Content**: {one['content']}"
        for n, one in enumerate((A, B), 1)
    ),
    "plain field lines": MARKDOWN.replace("# Memory", "Memory")
    .replace("## Title", "Title:")
    .replace("## Description", "Description:")
    .replace("## Content", "Content:"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_both_lessons_are_read_from_each_shape(shape: str) -> None:
    parsed = parse_lessons(SHAPES[shape], limit=3)
    assert [lesson.title for lesson in parsed.lessons] == BOTH, parsed
    assert [lesson.content for lesson in parsed.lessons] == [A["content"], B["content"]]


def test_a_single_object_is_one_lesson() -> None:
    assert parse_lessons(json.dumps(A), limit=3).lessons == (Draft(**A),)


def test_a_raw_line_break_inside_a_string_is_read() -> None:
    reply = '[{"title": "Sort first", "description": "d", "content": "Sort it.\nThen read."}]'
    assert parse_lessons(reply, limit=3).lessons[0].content == "Sort it.\nThen read."


def test_unescaped_quotes_inside_a_string_do_not_lose_the_other_lessons() -> None:
    broken = '{"title": "Use the 5" disk", "description": "d", "content": "Take the disk."}'
    found = titles(f"[{json.dumps(A)}, {broken}, {json.dumps(B)}]", limit=9)
    assert found[0] == A["title"]
    assert B["title"] in found


def test_a_lesson_in_markdown_that_ends_in_the_middle_of_a_sentence_is_dropped_and_noted() -> None:
    told = "# Memory Item 1\n## Title Sort\n## Content Sort it.\n# Memory Item 2\n## Title Count\n## Content Count the"
    parsed = parse_lessons(told, limit=3)
    assert [lesson.title for lesson in parsed.lessons] == ["Sort"]
    assert parsed.problems == ("lesson 2 was dropped: it ends in the middle of a sentence",)


def test_remarks_after_markdown_lessons_are_not_part_of_them() -> None:
    parsed = parse_lessons(f"{MARKDOWN}\n\nI hope these help you.", limit=3)
    assert parsed.lessons[1].content == B["content"]


def test_a_list_in_markdown_content_belongs_to_it() -> None:
    reply = "# Memory Item 1\n## Title Steps\n## Content Do this:\n\n- sort it\n- read it"
    assert parse_lessons(reply, limit=3).lessons[0].content == "Do this:\n- sort it\n- read it"


def test_null_list_dict_and_number_never_become_text() -> None:
    bad = [{**A, "title": None}, {**A, "content": {"x": "y"}}, {**A, "content": 7}, {**A, "title": ["x"]}, B]
    parsed = parse_lessons(json.dumps(bad), limit=3)
    assert [lesson.title for lesson in parsed.lessons] == [B["title"]]
    assert len(parsed.problems) >= 3
    assert not any(word in repr(parsed.lessons) for word in ("None'", "{'x'", "['x'"))


def test_a_null_description_is_an_empty_one() -> None:
    assert parse_lessons(json.dumps({**A, "description": None}), limit=1).lessons[0].description == ""


def test_a_list_of_sentences_is_joined_for_the_content() -> None:
    assert parse_lessons(json.dumps({**A, "content": ["Sort it.", "Read it."]}), limit=1).lessons[0].content == (
        "Sort it. Read it."
    )


def test_the_cap_counts_valid_lessons() -> None:
    bad = {"title": "", "content": "x"}
    parsed = parse_lessons(json.dumps([bad, A, bad, B, C, {**C, "title": "Fourth"}]), limit=3)
    assert [lesson.title for lesson in parsed.lessons] == [*BOTH, C["title"]]
    assert any("beyond the limit of 3" in problem for problem in parsed.problems)


@pytest.mark.parametrize("junk", ["...", "…", "N/A", "title here", "<title>", "[Title]", "Title", "none", "{{title}}"])
def test_placeholders_are_dropped(junk: str) -> None:
    parsed = parse_lessons(json.dumps([{**A, "title": junk}, {**A, "content": junk}, B]), limit=3)
    assert [lesson.title for lesson in parsed.lessons] == [B["title"]]


def test_an_echoed_schema_is_no_lesson() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "content": {"type": "string"}}}
    with pytest.raises(ExtractionError):
        parse_lessons(json.dumps(schema), limit=3)


def test_a_repeated_lesson_counts_once() -> None:
    assert titles(f"Draft: {json.dumps(A)}\nFinal: {TWO}") == BOTH


@pytest.mark.parametrize(
    "reply",
    [
        "[]",
        "```json\n[]\n```",
        '{"items": []}',
        'Nothing stands out.\n{"items": [], "why": "routine"}',
        "<think>routine run</think>[ ]",
        "No lessons.",
        "There are no reusable lessons in this run.",
        "There are no reusable memory items here.",
        "None.",
        "Answer: []",
    ],
)
def test_an_explicit_nothing_is_a_valid_answer(reply: str) -> None:
    parsed = parse_lessons(reply, limit=3)
    assert (parsed.lessons, parsed.problems) == ((), ())


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "null",
        "{}",
        "42",
        "I cannot help with that.",
        '[{"evidence": [], "title": "Sort',
        '{"items": [',
        '[{"title": "no lessons',
        '["Always sort", "Never guess"]',
        '{"items": null}',
        '{"error": "overloaded", "details": []}',
        "<think>first I look at [] and",
        '{"title": "...", "content": "..."}',
        "# Memory Item 1\n## Title Check the order first",
        "# Memory Item 1\n## Title <title>\n## Content <1 to 3 sentences>",
        "No lesson could be more important than this one: look at the order before you cancel it.",
        "The agent found no items in the cart and stopped, so the task failed.",
    ],
)
def test_a_reply_with_nothing_usable_is_an_error(reply: str) -> None:
    with pytest.raises(ExtractionError):
        parse_lessons(reply, limit=3)


def test_an_error_says_what_was_wrong_and_does_not_repeat_the_reply() -> None:
    with pytest.raises(ExtractionError, match="lesson 1 was dropped: it has no content") as caught:
        parse_lessons('[{"title": "secret-token", "content": null}]', limit=3)
    assert "secret-token" not in str(caught.value)


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        parse_lessons(TWO, limit=0)


def test_long_fields_are_cut_at_a_sentence_end() -> None:
    sentence = "Open the report and read the total before you answer. "
    draft = parse_lessons(
        json.dumps({"title": "Long " * 100, "description": sentence * 20, "content": sentence * 99}), limit=1
    )
    lesson = draft.lessons[0]
    assert len(lesson.title) <= 200
    assert "\n" not in lesson.title
    assert len(lesson.description) <= 500
    assert lesson.description.endswith("answer.")
    assert 1_900 < len(lesson.content) <= 2_000
    assert lesson.content.endswith("answer.")


def test_control_and_direction_characters_are_taken_out() -> None:
    lesson = parse_lessons(
        json.dumps({"title": "Sort\u202e\nfirst\x1b[2J", "content": "Do\ud83d it.\x00"}), limit=1
    ).lessons[0]
    assert lesson.title == "Sort first"
    assert lesson.content == "Do it."


def test_kind_and_evidence_are_read_where_they_are() -> None:
    reply = [{**A, "kind": "Guardrail", "evidence": ["step 7", 9, {"run": 2, "step": 3}, None]}, {**B, "kind": 1}]
    first, second = parse_lessons(json.dumps(reply), limit=3).lessons
    assert (first.kind, first.evidence) == ("guardrail", ("step 7", "step 9", "run 2, step 3"))
    assert (second.kind, second.evidence) == (None, ())


def test_a_thought_tag_inside_an_answer_does_not_hide_it() -> None:
    lessons = [{**A, "content": "Close it with </think> always."}, B]
    assert titles(json.dumps(lessons)[:-1]) == BOTH


SIZE = 1_000_000 if "LESSONBANK_SOAK" in os.environ else 6_000
RUBBISH = {
    "opening braces": ("", "{"),
    "pairs": ("", "{}"),
    "objects that open": ("", '{"a":'),
    "quotes": ("", '"'),
    "escaped quotes": ('{"', '\\"'),
    "small broken objects": ('{"title": "x", "content": "y"', '{"title": x "content": y"}'),
    "brackets": ("", "["),
    "headings": ("", "# Title\n"),
    "markdown items": ("", "# Memory Item 1\n## Title\n"),
    "thoughts": ("", "<think>"),
    "blanks": ("{", " "),
    "prose": ("", "no lesson was there "),
    "lists that open": ("", '{"items": ['),
    "lists of nothing": ("", '{"items": [{"a": 1}]} '),
    "broken lists": ("", '{"items": [{"a": b}]} '),
    "names without lists": ("", '{"items"'),
}


@pytest.mark.full
@pytest.mark.parametrize("kind", RUBBISH)
def test_four_times_the_rubbish_is_dealt_with_in_about_four_times_the_time(kind: str) -> None:
    beginning, piece = RUBBISH[kind]

    def parse(text: str) -> None:
        with suppress(ExtractionError):
            parse_lessons(beginning + text, limit=3)

    assert growth(parse, piece, size=SIZE) <= FAR


def test_nested_objects_that_are_closed_are_dealt_with_in_linear_time() -> None:
    def nested(size: int) -> Callable[[], None]:
        text = '{"a":' * (size // 6) + "}" * (size // 6)

        def parse() -> None:
            with suppress(ExtractionError):
                parse_lessons(text, limit=3)

        return parse

    assert growth_of(nested, size=SIZE) <= FAR


# --- a list of items is the answer, and lessons quoted beside it are none -------------------------------------------


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


# --- properties -------------------------------------------------------------------------------------------------------


words = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Co", "Cn", "Zs", "Zl", "Zp"]), min_size=3, max_size=40
)
nasty = st.sampled_from(
    ['say "x"} now', "use {a} or }]} b", "it's {'q'} 'z'", 'a\\"}', "[]", "```", "{{{", "no lessons", "a </think> b"]
)
# What the guard takes out of any text is not to be expected back.
phrases = (
    st.lists(words | nasty, min_size=1, max_size=4)
    .map(lambda parts: " ".join(["do", *parts]))
    .filter(lambda text: clean(text) == text)
)
lessons_st = st.lists(
    st.fixed_dictionaries({"title": phrases, "description": phrases, "content": phrases}),
    min_size=1,
    max_size=4,
    unique_by=(lambda d: d["title"].casefold(), lambda d: d["content"].casefold()),
)


def shown(lessons: list[dict[str, str]]) -> list[tuple[str, str]]:
    whole = parse_lessons(json.dumps(lessons), limit=9)
    return [(lesson.title, lesson.content) for lesson in whole.lessons]


@given(
    any_text()
    | st.lists(
        st.sampled_from(
            [
                '{"title":',
                '"a"',
                "}",
                "[",
                "]",
                ",",
                "'",
                "\\",
                "# Title x\n",
                "Content: y\n",
                "<think>",
                "</think>",
                '{"title": "a", "content": "b"}',
                "null",
            ]
        ),
        max_size=30,
    ).map("".join)
)
def test_any_text_gives_lessons_or_an_extraction_error(text: str) -> None:
    try:
        parsed = parse_lessons(text, limit=3)
    except ExtractionError:
        return
    assert all(lesson.title and lesson.content for lesson in parsed.lessons)


@pytest.mark.full
@given(lessons_st, st.sampled_from([None, 2]), st.booleans())
def test_valid_json_round_trips(lessons: list[dict[str, str]], indent: int | None, ascii_only: bool) -> None:
    parsed = parse_lessons(json.dumps(lessons, indent=indent, ensure_ascii=ascii_only), limit=9)
    assert [lesson.content for lesson in parsed.lessons] == [lesson["content"] for lesson in lessons]


@pytest.mark.full
@settings(max_examples=settings().max_examples * 4)
@given(
    lessons_st, st.data(), st.sampled_from(["{}", '{{"items": {}}}', "```json\n{}\n```", "<think>hm {{</think>\n{}"])
)
def test_a_truncated_reply_never_yields_a_partial_lesson(
    lessons: list[dict[str, str]], data: st.DataObject, form: str
) -> None:
    whole = shown(lessons)
    reply = form.format(json.dumps(lessons))
    cut = reply[: data.draw(st.integers(0, len(reply)))]
    try:
        kept = parse_lessons(cut, limit=9).lessons
    except ExtractionError:
        return
    assert [(lesson.title, lesson.content) for lesson in kept] == whole[: len(kept)]
