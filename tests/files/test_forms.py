"""The words of a lesson in a file: whatever they are, they stay the words of that lesson."""

from __future__ import annotations

import re
from typing import Final

import pytest
from any_text import any_text
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lessonbank import Lesson
from lessonbank.errors import FormatError
from lessonbank.files.block import INTRODUCTION, Entry, parts, written
from lessonbank.files.foreign import lessons_of_text
from lessonbank.files.formats import folder, head
from lessonbank.files.inert import inert_line, inert_lines

pytestmark = pytest.mark.full

PIECES: Final = (
    *("`", "``", "```", "~~~", "\\", "<", "!--", "-->", "<!-- lessonbank:end -->", "<!-- lessonbank:begin -->"),
    *("<a", "href='x'", ">", "<script>", "<img src=x onerror=y>", "@notes.md", "!", "!`id`", "- ", "* ", "1. ", "# "),
    *("https://x.y/z", "[a](https://x.y)", "![a](b)", "[a]: https://x.y", "\n", "\r\n", "\n\n", "---", "===", "|a|b|"),
    *(
        "When:",
        " ",
        "    ",
        "\t",
        "www.a.b",
        "**",
        "`0123abcd`",
        "title: x",
        "\u200b",
        "\u2028",
        "\x1b[2J",
        ":::",
        "> ",
    ),
)
TEXTS: Final = st.lists(st.sampled_from(PIECES) | any_text(max_size=3), min_size=1, max_size=14).map("".join)
PROSE: Final = st.text("abc de.", min_size=3, max_size=30).filter(lambda text: text.strip(" ."))


def lesson(title: str, when: str, content: str) -> Lesson:
    """A hostile one, as a bank without any gate could hold it."""
    return Lesson(title=title.strip() or "-", description=when, content=content.strip() or "-")


LESSONS: Final = st.builds(lesson, TEXTS, TEXTS, TEXTS)


@given(TEXTS)
@settings(max_examples=settings().max_examples * 2, deadline=None)
def test_the_form_of_a_text_is_a_form_that_stays(text: str) -> None:
    assert inert_line(inert_line(text)) == inert_line(text)
    assert inert_lines(inert_lines(text)) == inert_lines(text)


@given(st.lists(LESSONS, max_size=4))
@settings(max_examples=settings().max_examples * 2, deadline=None)
def test_what_is_written_is_read_again_word_for_word(lessons: list[Lesson]) -> None:
    entries = [Entry.of(one, id=one.id[-8:], topic="A topic") for one in lessons]
    file = parts(b"# Mine\n").with_block(written(entries))
    block = parts(file).read()
    assert block.entries == tuple(Entry(e.title, e.when, e.content, e.id, e.topic) for e in entries)
    assert (block.edited, block.removed) == ((), ())


def seen(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in (token, *seen(token.children or []))]


@given(LESSONS, LESSONS)
@settings(max_examples=settings().max_examples * 2, deadline=None)
def test_a_lesson_is_a_line_of_a_list_and_nothing_else_to_a_reader_of_markdown(one: Lesson, other: Lesson) -> None:
    entries = [Entry.of(lesson, id=lesson.id[-8:]) for lesson in (one, other)]
    text = written(entries)
    inside = text.split(INTRODUCTION)[1].rpartition("<!-- lessonbank:end")[0]
    tokens = seen(MarkdownIt("commonmark").enable("table").parse(inside))
    active = {"heading_open", "fence", "code_block", "html_block", "hr", "image", "table_open", "blockquote_open"}
    assert not active & {token.type for token in tokens}
    outside = "".join(token.content for token in tokens if token.type in ("text", "html_inline"))
    assert "<!--" not in outside
    assert not re.search(r"(?i)<(script|img|iframe|style|object)\b|https?://", outside)
    assert not [t for t in tokens if t.type == "link_open" and ":" in str(t.attrGet("href"))]
    assert len([t for t in tokens if t.type == "list_item_open" and t.level == 1]) == 2
    assert all(line.startswith(("- **", "  ")) for line in inside.splitlines() if line)
    assert "!`" not in inside
    assert len(list(re.finditer(r"^<!--", text, re.MULTILINE))) == 2


def test_no_tag_of_html_spans_two_lines() -> None:
    entry = Entry.of(Lesson(title="Use <a", description="At <a", content="Say <a\nhref='x'> and <b\n>."), id="0123abcd")
    tokens = seen(MarkdownIt("commonmark").parse(entry.text))
    assert "html_inline" not in {token.type for token in tokens}
    assert inert_line("Fill in <customer name>.") == "Fill in <customer name>."


@pytest.mark.parametrize("word", ["@notes.md", "@~/.ssh/id", "see (@./a)"])
def test_a_lesson_includes_no_other_file(word: str) -> None:
    assert "@ " in inert_line(word)
    assert inert_line(f"`{word}`") == f"`{word}`"  # a decorator; nobody includes what is code
    assert inert_line("ana@example.org") == "ana@example.org"


BEGIN, END = b"<!-- lessonbank:begin -->\n", b"<!-- lessonbank:end -->\n"


@pytest.mark.parametrize(
    "broken",
    [
        BEGIN,
        END,
        END + BEGIN,
        BEGIN + END + BEGIN,
        BEGIN + BEGIN + END,
        BEGIN + END + BEGIN + END,
        b"x" + BEGIN + END,
        BEGIN + b"- x " + END,
    ],
)
def test_markers_that_are_no_pair_are_refused(broken: bytes) -> None:
    with pytest.raises(FormatError, match="not one begin and one end"):
        parts(b"# Mine\n" + broken)


@given(st.binary(max_size=60), st.binary(max_size=60), st.sampled_from([b"\n", b"\r\n"]))
@settings(max_examples=settings().max_examples * 2, deadline=None)
def test_the_rest_of_a_file_stays_byte_for_byte(before: bytes, after: bytes, ending: bytes) -> None:
    block = written([Entry("A", "", "B", "0123abcd")]).encode().replace(b"\n", ending)
    found = parts(before + ending + block + ending + after)
    assert (found.before, found.block, found.after) == (before + ending, block, ending + after)
    assert parts(found.with_block(written([]))).before == before + ending
    assert found.with_block(written([Entry("A", "", "B", "0123abcd")])) == before + ending + block + ending + after


def test_every_piece_that_somebody_writes_is_an_entry() -> None:
    mine = written([Entry("Look first", "", "Look at the order first.", "0123abcd", "Orders")])
    body, _, end = mine.rpartition("<!--")
    text = (
        body + "* my own\n  thought\n\nA paragraph.\n\n1. one\n2. two\n\n```\ncode\n```\n\n> a word\n\n" + f"<!--{end}"
    )
    block = parts(text.encode()).read()
    assert [(e.title, e.content) for e in block.edited] == [
        ("my own thought", "my own\nthought"),
        ("A paragraph.", "A paragraph."),
        ("one", "1. one\n2. two"),
        ("code", "```\ncode\n```"),
        ("a word", "> a word"),
    ]


def test_a_copy_of_a_lesson_is_an_addition_and_a_lesson_that_is_gone_was_removed() -> None:
    one, two = (Entry(title, "", "Do it.", id) for title, id in (("One", "0123abcd"), ("Two", "89abcdef")))
    text = written([one, two])
    twice = text.replace(two.text, one.text)
    block = parts(twice.encode()).read()
    assert [(e.id, e.title) for e in block.edited] == [("", "One")]
    assert block.removed == ("89abcdef",)


def test_the_lines_of_a_file_that_somebody_saved_elsewhere_may_end_otherwise() -> None:
    text = written([Entry("One", "At night.", "Do it.\n- so", "0123abcd")]).replace("\n", "\r\n")
    assert (parts(text.encode()).read().edited, parts(text.encode()).read().removed) == ((), ())


def test_a_file_without_markers_gets_them_behind_everything() -> None:
    for rest, gap in ((b"", b""), (b"# Mine", b"\n\n"), (b"# Mine\n", b"\n"), (b"a\r\nb", b"\r\n\r\n")):
        file = parts(rest).with_block("X")
        assert file.startswith(rest + gap + b"X")
    assert parts(b"a\r\n").with_block("X\nY") == b"a\r\n\r\nX\r\nY\r\n"


def test_what_people_wrote_elsewhere_is_taken_bullet_by_bullet_and_section_by_section() -> None:
    found = lessons_of_text(
        '---\nname: ship-parcels\ndescription: "Shipping abroad"\n---\n# Shop\n\nSpeak the customer\'s language.\n\n'
        "## Parcels\n\n- **Weigh first**: the label needs the weight.\n  Use the small scale.\n- ok\n\n"
        "Before you ship:\n\n1. Fill the form.\n2. Print the label.\n\n```sh\nprint\n```\n\n@other.md\n\n<div>x</div>\n"
    )
    assert [(e.topic, e.title, e.when, e.content) for e in found.entries] == [
        ("ship parcels / Shop", "Shop", "Shipping abroad", "Speak the customer's language."),
        (
            "ship parcels / Shop / Parcels",
            "Weigh first",
            "Shipping abroad",
            "**Weigh first**: the label needs the weight.\nUse the small scale.",
        ),
        ("ship parcels / Shop / Parcels", "Parcels", "Shipping abroad", "1. Fill the form.\n2. Print the label."),
    ]
    assert [note.partition(":")[2].strip()[:20] for note in found.skipped] == [
        "text of fewer than t",
        "code without words",
        "a name of another fi",
        "HTML",
    ]


@given(TEXTS)
@settings(max_examples=settings().max_examples * 2, deadline=None)
def test_whatever_a_file_says_it_can_be_taken(text: str) -> None:
    assert all(entry.title and entry.content for entry in lessons_of_text(text).entries)


@pytest.mark.parametrize(
    "text", ["> " * 20_000, "- " * 20_000, "[" * 60_000, "*" * 60_000, "`" * 60_000, "<!--" * 20_000]
)
def test_a_nasty_file_takes_no_long_time(text: str) -> None:
    lessons_of_text(text)
    parts(BEGIN + text.encode() + b"\n" + END).read()


def test_a_skill_has_a_name_and_a_description_that_its_readers_take() -> None:
    name = folder('Refund: "orders"\n---\nname: x', "0123abcd")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= 64
    lines = head("skill", topic='a "b"\n---\nname: x', name=name).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["---", "name", "description", "---"]
    assert folder("退款", "0123abcd") == "lessons-0123abcd"
