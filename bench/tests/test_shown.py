"""How many lessons are worth showing, on a command line: failed runs, lessons of others, and a reader."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from running import lessonbank_cli

from lessonbank.testing import ModelServer
from lessonbank_bench.measure.judging.shown import SETTINGS, Reading, effects, figures

pytestmark = pytest.mark.full
_CODE = re.compile(r'"check": "([0-9a-f]{8})"')
_LISTED = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
_GOODS = ("parcels", "letters", "crates", "barrels", "baskets", "bottles")


def _rows(verb: str, *, success: bool) -> list[dict[str, Any]]:
    return [
        {
            "source": "shop",
            "run_id": f"{verb} {goods}",
            "task": f"{verb} the {goods} of the old shop in the harbour for whoever asks first",
            "messages": [
                {
                    "role": "user",
                    "content": f"{verb} the {goods} of the old shop in the harbour for whoever asks first",
                },
                {"role": "assistant", "content": f"I cannot {verb} the {goods}."},
            ],
            "success": success,
        }
        for goods in _GOODS
    ]


def _file(path: Path, rows: list[dict[str, Any]]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def _teaches(body: dict[str, Any]) -> str:
    """A lesson about the goods that the run was about."""
    goods = next(goods for goods in _GOODS if goods in body["messages"][-1]["content"])
    told = {
        "evidence": ["step 1"],
        "cause": f"the {goods} were sold",
        "title": f"Weigh the {goods} first",
        "description": f"When {goods} are offered.",
        "content": f"Weigh the {goods} before the counter closes, and read the receipt.",
    }
    return json.dumps({"items": [told]})


def _reads(body: dict[str, Any]) -> str:
    """A reader whom only a lesson about the goods of the task helps, and whom bottles mislead."""
    asked = body["messages"][-1]["content"]
    code = _CODE.search(asked)
    assert code is not None
    goods = next(goods for goods in _GOODS if f"store the {goods}" in asked)
    told = [
        "helps" if goods in title else "misleads" if "bottles" in title else "nothing"
        for title in _LISTED.findall(asked.split("<<<lessons")[1])
    ]
    return json.dumps({"check": code[1], "reason": "it gave up", "effects": told})


def _drawn(tmp_path: Path) -> tuple[str, ...]:
    """The command's words once the lessons of six sales are drawn."""
    taught = _file(tmp_path / "taught" / "shop.jsonl", _rows("sell", success=True))
    with ModelServer(default=_teaches) as server:
        words = ("--model", "openai-chat:writer", "--base-url", server.base_url, "--out", "lessons.jsonl")
        done = lessonbank_cli("bench", "lessons", taught, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    failed = _file(tmp_path / "failed" / "shop.jsonl", _rows("store", success=False))
    return ("bench", "shown", failed, "--taught", taught, "--lessons", "lessons.jsonl", "--out", "shown.jsonl")


def test_a_reader_says_of_every_lesson_what_it_would_have_done_and_each_setting_gets_its_figures(
    tmp_path: Path,
) -> None:
    words = _drawn(tmp_path)
    with ModelServer(default=_reads) as server:
        asks = ("--reader", "openai-chat:reader", "--base-url", server.base_url)
        done = lessonbank_cli(*words, *asks, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        sent = [request.body["messages"][-1]["content"] for request in server.requests]
        lessonbank_cli(*words, *asks, cwd=tmp_path)
        assert len(server.requests) == 6, "what was read is not asked again"
    assert not any(name in text for text in sent for name in SETTINGS), "a reader is told no setting"
    told = json.loads(done.stdout)
    assert told["readings"] == 6
    found = {row["setting"]: row for row in told["settings"]}
    assert found["1 experience"]["lessons"] == 1
    assert found["1 experience"]["helped"] == {"count": 6, "of": 6}, "the nearest task is that of the same goods"
    assert [found[f"{n} experiences"]["lessons"] for n in (2, 3, 4, 5)] == [2, 3, 4, 5]
    assert found["3 lessons"]["lessons"] == 3
    assert found["5 experiences"]["tokens"] > found["1 experience"]["tokens"]
    assert found["1 experience"]["misled"] == {"count": 0, "of": 6}
    again = lessonbank_cli("bench", "shown", "--out", "shown.jsonl", cwd=tmp_path)
    assert "| 1 experience | 1.0 |" in again.stdout


def test_a_task_that_was_taught_is_not_read(tmp_path: Path) -> None:
    words = _drawn(tmp_path)
    failed = _file(tmp_path / "failed" / "shop.jsonl", _rows("sell", success=False))
    with ModelServer(default=_reads) as server:
        asks = ("--reader", "openai-chat:reader", "--base-url", server.base_url)
        done = lessonbank_cli("bench", "shown", failed, *words[3:], *asks, cwd=tmp_path)
        assert done.returncode == 2
        assert "6 tasks are in both sets" in done.stderr
        assert not server.requests


@pytest.mark.parametrize(
    "reply",
    [
        '{"check": "0000aaaa", "effects": ["helps", "nothing"]}',
        '{"check": "1234abcd", "effects": ["helps"]}',
        '{"check": "1234abcd", "effects": ["helps", "perhaps"]}',
        "no reply at all",
    ],
)
def test_a_reply_without_the_code_or_a_known_word_for_each_lesson_is_not_believed(reply: str) -> None:
    assert effects(reply, 2, "1234abcd") is None


def test_a_reply_in_another_case_is_read() -> None:
    told = effects('{"check": "1234abcd", "reason": "it stopped", "effects": ["Helps", "nothing"]}', 2, "1234abcd")
    assert told == ("it stopped", ("helps", "nothing"))


def test_a_run_for_which_nothing_is_found_counts_as_neither_helped_nor_misled() -> None:
    none = Reading.model_validate(
        {
            "run": "r",
            "source": "s",
            "lessons": (),
            "shown": [{"setting": name, "lessons": (), "tokens": 0} for name in SETTINGS],
        }
    )
    assert {(row.helped.count, row.misled.count, row.helped.of) for row in figures([none])} == {(0, 0, 1)}
