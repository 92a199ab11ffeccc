"""Laws that hold for any two lessons, and the cases that decide what `same` means."""

from __future__ import annotations

import re
from typing import Any

import pytest
from any_text import any_text
from hypothesis import assume, given
from hypothesis import strategies as st
from linear import FAR, growth

from lessonbank import Lesson
from lessonbank.learning.consolidation import compare

WORDS = re.findall(
    r"\S+",
    "check the order before you save it and do not use always need to only first then if when login page 3 10 1,000"
    " 20GB 7% `git -r` \"exact\" can't never Open the Jira board; Close, e-mail. a/b v1.2 -5 make sure to it's — ok",
)
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join),
    any_text(min_size=1, max_size=60),
).filter(lambda text: text.strip() != "")


def lesson(content: str, title: str = "Before saving", **more: Any) -> Lesson:
    return Lesson(title=title, content=content, **more)


def level(a: str, b: str, **more: Any) -> str:
    return compare(lesson(a), lesson(b), **more).level


@pytest.mark.full
@given(texts, texts)
def test_a_lesson_is_the_same_as_itself(title: str, content: str) -> None:
    one = lesson(content, title)
    assert compare(one, lesson(content, title)).level == "same"


@pytest.mark.full
@given(texts, texts)
def test_it_does_not_matter_which_comes_first(a: str, b: str) -> None:
    assert level(a, b) == level(b, a)
    assert level(a, b, similarity=0.9) == level(b, a, similarity=0.9)


@pytest.mark.full
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=14), st.integers(min_value=0), st.booleans())
def test_adding_not_never_gives_the_same(words: list[str], at: int, titled: bool) -> None:
    at %= len(words) + 1
    denied = " ".join([*words[:at], "not", *words[at:]])
    plain = " ".join(words)
    if titled:
        assert compare(lesson("Save it.", plain), lesson("Save it.", denied)).level != "same"
    assert level(plain, denied) != "same"


@pytest.mark.full
@given(texts, st.integers(min_value=0), st.sampled_from("0123456789"))
def test_changing_a_digit_never_gives_the_same(text: str, which: int, digit: str) -> None:
    places = [found.start() for found in re.finditer("[0-9]", text)]
    assume(places)
    at = places[which % len(places)]
    assume(text[at] != digit)
    changed = text[:at] + digit + text[at + 1 :]
    assert level(text, changed) != "same"
    assert compare(lesson("Save it.", text), lesson("Save it.", changed)).level != "same"


@pytest.mark.full
@given(texts, any_text(max_size=80))
def test_any_script_can_be_compared(a: str, b: str) -> None:
    assert compare(lesson(a), lesson(a + b)).level in ("same", "near", "different")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Save before closing.", "Before closing, save."),
        ("If the order is pending, cancel it.", "Cancel it if the order is pending."),
        ("Don't close the tab!", "do not close the tab"),
        ("Run `git push --force` now", "Run git push --force now."),
        ("Wait 10 seconds.", "Wait 10s."),
        ("Read 1,000 rows.", "Read 1000 rows."),
        ("You should always check the organisation's colours.", "Check the organization's colors."),
        ("Open the drop-down menu.", "Open the dropdown menu."),
        ("Chekc nothing: the datbaase recieves evrything.", "Chekc nothing: the datbaase receives evrything."),
        ("先保存，再关闭。", "先保存,再关闭"),
        ("Сначала сохраните файл.", "сначала сохраните файл"),
    ],
)
def test_form_makes_no_difference(a: str, b: str) -> None:
    assert level(a, b) == "same"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Save before closing.", "Close before saving."),
        ("Save, then close.", "Close, then save."),
        (
            "If A is open, use the API; if B is open, use the CLI.",
            "If A is open, use the CLI; if B is open, use the API.",
        ),
        ("Use the API for reads. Use the CLI for writes.", "Use the CLI for reads. Use the API for writes."),
        ("Copy the file from staging to production.", "Copy the file from production to staging."),
        ("Prefer pnpm over npm here.", "Prefer npm over pnpm here."),
        ("You do not need to verify the total.", "Do not verify the total."),
        ("Fill the customs form.", "Fill the custom form."),
        ("Open the news page.", "Open the new page."),
        ("Refund only delivered orders.", "Refund delivered orders."),
        ("Cancel it unless it was paid.", "Cancel it if it was paid."),
        ("Click 👍 at the end.", "Click 👎 at the end."),
        ("Use >= in the filter.", "Use <= in the filter."),
        ("Run chown -r on it.", "Run chown -R on it."),
        ("Ask for the processed orders.", "Ask for the processing orders."),
        ("Look at the contact of the customer.", "Look at the contract of the customer."),
        ("Show the retired agents first.", "Show the retried agents first."),
        ("Choose plan A for them.", "Choose the plan for them."),
        ("Set it to -5 degrees.", "Set it to 5 degrees."),
        ("Wait 40 minutes for it.", "Wait 40 seconds for it."),
        ("请保存文件。", "请不要保存文件。"),
        ("Speichern Sie die Datei.", "Speichern Sie die Datei nicht."),
    ],
)
def test_what_says_something_else_is_not_the_same(a: str, b: str) -> None:
    assert level(a, b) != "same"


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (
            "Save the draft before closing the tab.",
            "Close the tab before saving the draft.",
            "one text with a difference",
        ),
        ("Retry the upload after a timeout.", "Do not retry the upload after a timeout.", "one text with a difference"),
        ("Sort the list by price ascending.", "Sort the list by price descending.", "one text with a difference"),
        ("Wait 30 seconds for the job.", "Wait 90 seconds for the job.", "other numbers or names: 30 against 90"),
        (
            "Ask in Slack for the new build.",
            "Ask in Jira for the new build.",
            "other numbers or names: slack against jira",
        ),
        ("Filter the list by its date.", "Filter the list by its owner.", "one text with a difference"),
    ],
)
def test_the_reason_says_what_kind_of_difference_keeps_two_apart(a: str, b: str, why: str) -> None:
    likeness = compare(lesson(a), lesson(b))
    assert likeness.level == "different"
    assert why in likeness.reason


def test_a_title_may_be_worded_otherwise_when_the_other_lesson_has_its_words() -> None:
    content = "A search that finds nothing may have a stale index. Rebuild the index and search again."
    assert compare(lesson(content, "Rebuild the index"), lesson(content, "Stale index: rebuild")).level == "same"
    assert compare(lesson(content, "Rebuild the index"), lesson(content, "On Amazon: rebuild")).level != "same"
    assert compare(lesson(content, "Rebuild the index"), lesson(content, "Do not rebuild the index")).level != "same"


def test_a_description_counts() -> None:
    a, b = (
        lesson("Check it.", description="For pending orders."),
        lesson("Check it.", description="For delivered orders."),
    )
    assert compare(a, b).level == "different"


def test_a_strategy_and_a_guardrail_are_two() -> None:
    assert compare(lesson("Save."), lesson("Save.", kind="guardrail")).level == "different"


def test_a_cosine_alone_proves_nothing() -> None:
    one, other = lesson("Rebuild the index.", "Stale searches"), lesson("Greet the customer politely.", "Manners")
    assert compare(one, other, similarity=1.0).level == "different"


def test_enormous_lessons_are_compared_in_no_time() -> None:
    assert level("save it now " * 50_000, "save it now " * 50_000 + "not") == "different"
    assert level("a b c d e f g. " * 40, "a b c d e f h. " * 40) != "same"
    assert growth(lambda text: level(text, f"{text}not"), "save it now ", size=20_000) <= FAR
