"""The words that count, and how much."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lessonbank.text.bm25 import scores, words

TEXTS = st.text(alphabet="abcde the注文éÉ_1 '\u0301\U0001f642", max_size=30)


def ranked(query: str, tasks: list[str]) -> dict[int, float]:
    held = {number: Counter(words(task)) for number, task in enumerate(tasks)}
    postings = {word: {n: c[word] for n, c in held.items() if word in c} for word in words(query)}
    lengths = {n: c.total() for n, c in held.items()}
    return scores(words(query), postings, lengths, documents=len(tasks), total=sum(lengths.values()))


def test_words_are_folded_and_common_ones_left_out() -> None:
    assert words("Please CANCEL the Straße-order #W123, don't!") == ["cancel", "strasse", "order", "w123", "don"]
    assert words("注文をキャンセル ok") == [*"注文をキャンセル", "ok"]
    assert words("ｆｕｌｌ ﬁne") == ["full", "fine"]
    assert words("cafe\u0301") == ["café"]


def test_a_text_of_common_words_keeps_them() -> None:
    assert words("to be") == ["to", "be"]
    assert words("!?") == []


def test_no_and_not_are_never_common() -> None:
    assert words("do not cancel") == ["do", "not", "cancel"]


def test_a_word_without_end_is_cut() -> None:
    assert words("x" * 1_000_000) == ["x" * 64]


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    found = ranked("cancel boots", ["cancel it", "cancel that", "cancel this", "boots here"])
    assert found[3] > found[0]


def test_words_nobody_has_lower_the_score() -> None:
    tasks = ["cancel order", "book flight"]
    assert ranked("cancel order", tasks)[0] == 1.0
    assert ranked("cancel order zeppelin", tasks)[0] < 1.0


@given(query=TEXTS, others=st.lists(TEXTS, max_size=6))
def test_scores_are_shares_and_a_text_finds_itself_whole(query: str, others: list[str]) -> None:
    found = ranked(query, [query, *others])
    assert all(0.0 < score <= 1.0 for score in found.values())
    assert found.get(0) == (1.0 if words(query) else None)


@given(st.text(alphabet=[chr(code) for code in range(128)], max_size=90))
def test_words_of_ascii_are_its_letters_digits_and_underscores(text: str) -> None:
    every = [word[:64] for word in re.findall(r"\w+", text.casefold())]
    assert words(f"zz {text}") == ["zz", *(word for word in every if words(f"zz {word}") != ["zz"])]
