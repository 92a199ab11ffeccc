"""A key that code, a list, a table, HTML or Markdown keeps in pieces goes whole; words that stand so stay."""

from __future__ import annotations

import json
from collections.abc import Callable

import everyday_texts
import pytest

from lessonbank.guard.redact import redact

KEYS = (
    "ghp" + "_8fK2mQ9xLw3RtY7vB1nZ5cD4sH6jG0aPqUeX",
    "AK" + "IA4OZRM7WQ2TJX9LBE",
    "sk-" + "proj-8fK2mQ9xLw3RtY7vB1nZ5cD4sH6jG0aPqUeXkM2",
)
HALVES: tuple[Callable[[str, str], str], ...] = (
    lambda a, b: json.dumps([a, b]),
    lambda a, b: json.dumps(json.dumps({"parts": [a, b]})),
    lambda a, b: json.dumps({"parts": [a, b]}, indent=2),
    lambda a, b: f'key = "{a}" + "{b}"',
    lambda a, b: f"key = '{a}' +\n    '{b}'",
    lambda a, b: f'key = "{a}" "{b}"',
    lambda a, b: f'key = f"{a}" f"{b}"',
    lambda a, b: f"$key = '{a}' . '{b}';",
    lambda a, b: f"select '{a}' || '{b}'",
    lambda a, b: f'Key = "{a}" & "{b}"',
    lambda a, b: f'"".join(["{a}", "{b}"])',
    lambda a, b: f"`{a}${{''}}{b}`",
    lambda a, b: f"| {a} | {b} |",
    lambda a, b: f"{a}\t{b}",
    lambda a, b: f'"{a}","{b}"',
    lambda a, b: f"<td>{a}</td><td>{b}</td>",
    lambda a, b: f"<tr>\n<td>{a}</td>\n<td>{b}</td>\n</tr>",
    lambda a, b: f"<code>{a}<wbr>{b}</code>",
    lambda a, b: f"<i>{a}</i><b class=x>{b}</b>",
    lambda a, b: f"**{a}**{b}",
    lambda a, b: f"{a}**{b}**",
    lambda a, b: f"*{a}*{b}",
    lambda a, b: f"{a}~~{b}~~",
    lambda a, b: f"[{a}]({b})",
    lambda a, b: f"`{a}` `{b}`",
    lambda a, b: f"- {a}\n- {b}",
    lambda a, b: f"1. {a}\n2. {b}",
    lambda a, b: f"{a}&shy;{b}",
    lambda a, b: f"{a}&zwnj;{b}",
)
SPELLED: tuple[Callable[[str], str], ...] = (
    lambda key: "".join(f"&#{ord(sign)};" for sign in key),
    lambda key: "".join(f"&#x{ord(sign):X};" for sign in key),
    lambda key: key.replace("_", "&lowbar;").replace("-", "&hyphen;"),
    lambda key: key.replace("_", "\\_").replace("-", "\\-"),
)
WORDS = (
    '["first2second", "alpha-beta-v2"]',
    'path = "src/" + "orders2" + "/table_v3.json"',
    "| order-7712 | batch_0042 | 2026-11-28T10:15:00Z |",
    "- step1: build\n- step2: deploy-v12",
    "<td>build-1122</td><td>3f9c01ab</td>",
    '{"secret_names": ["alpha1beta", "gamma2delta"]}',
    "| 4111 | 1111 | 1111 | 1111 |",
    "**Version**2 and *release*3b of `sk-learn` `0.24.1`",
    "a &lt; b &amp;&amp; c &gt; d &mdash; R&amp;D",
)


@pytest.mark.parametrize("number", range(len(HALVES)))
@pytest.mark.parametrize("key", KEYS)
def test_neither_half_of_a_key_is_left(key: str, number: int) -> None:
    a, b = key[: len(key) // 2], key[len(key) // 2 :]
    told = redact(HALVES[number](a, b))
    assert a[-8:] not in told and b[:8] not in told


@pytest.mark.parametrize("key", KEYS)
def test_of_a_list_of_many_parts_none_is_left(key: str) -> None:
    parts = [key[at : at + 10] for at in range(0, len(key), 10)]
    for text in (json.dumps(parts), json.dumps({"parts": parts}, indent=1), " + ".join(map(repr, parts))):
        told = redact(text)
        assert not [part for part in parts if len(part) > 5 and part in told]
    assert len(json.loads(redact(json.dumps(parts)))) == 1, "what is left is JSON"


@pytest.mark.parametrize("number", range(len(SPELLED)))
@pytest.mark.parametrize("key", KEYS)
def test_a_key_goes_that_is_spelled_with_entities_or_escapes(key: str, number: int) -> None:
    told = redact(f"<p>{SPELLED[number](key)}</p>")
    assert told.startswith("<p>[") and told.endswith(" 1]</p>")


def test_a_password_in_pieces_goes_beside_its_name() -> None:
    told = redact('password = "8fK2mQ9x" + "Lw3RtY7vQ2"')
    assert "8fK2" not in told and "Lw3R" not in told


@pytest.mark.parametrize("text", WORDS)
def test_words_and_ids_side_by_side_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.full
def test_of_two_thousand_everyday_texts_one_in_two_hundred_at_most_is_changed() -> None:
    for seed in range(2):
        texts = everyday_texts.texts(seed)
        assert len(texts) == 2_000
        changed = [text for text in texts if redact(text) != text]
        assert len(changed) <= 10, changed
