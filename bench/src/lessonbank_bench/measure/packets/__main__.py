"""Would what retrieval shows have helped runs that failed? Packets for blind readers, and the table of their answers.

    python -m lessonbank_bench.measure.packets --data FOLDER --out FOLDER [--seed 39]
    python -m lessonbank_bench.measure.packets --out FOLDER --answers FOLDER

Lessons are drawn by rule, as a bank does by default, from recorded runs of public agents. Tasks are in three parts: the
bank of two teaches the third. The first command writes a text for each failed run into the four folders
`packets/readerN` (12 runs are in two of them), and the key of letters to arms outside of `packets`. Readers answer with
one line of JSON a packet, in `readerN.jsonl`. The second prints the share of runs with a lesson that helps or misleads
(Wilson, 95 %), the exact test of each arm against the default on the same runs, and how far two readers agree.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lessonbank.contracts.records import Lesson
from lessonbank.learning.agent_prefix import agent_prefix
from lessonbank.text.rendering import render
from lessonbank_bench.measure.checkout import SHARED
from lessonbank_bench.measure.judging.labelled import read_labelled
from lessonbank_bench.measure.retrieval.labels import read

from .arms import FILES, Sheet, sheets
from .table import agreement, by_kind, table

_READERS: Final = 4
_TWICE: Final = 12
_RUN: Final = 2_000
"""Tokens; at most 6,000 characters."""
_AGENT: Final = 3_000
"""Two fifths of it are for what the agent was told."""
_README: Final = Path(__file__).with_name("README.md")
_LETTERS: Final = [*string.ascii_uppercase, *(f"A{letter}" for letter in string.ascii_uppercase)]


def make(data: Path, out: Path, seed: int, /) -> int:
    """Write packets and key; how many packets there are."""
    runs = {name: read_labelled([str(data / f"{name}.jsonl.gz")], domain="general") for name in FILES}
    wanted = {_named(row): _wanted(row) for name in FILES for row in read(data, name)}
    with tempfile.TemporaryDirectory() as folder:
        found = list(sheets(runs, seed, Path(folder)))
    chance = random.Random(seed)
    chance.shuffle(found)
    names = [f"{number:03}" for number in range(1, len(found) + 1)]
    key = [_row(name, sheet) for name, sheet in zip(names, found, strict=True)]
    texts = {
        row["packet"]: _text(row, x, wanted[_named(x.failed.run.metadata)]) for row, x in zip(key, found, strict=True)
    }
    for reader, given in _given(key).items():
        folder = out / "packets" / reader
        folder.mkdir(parents=True, exist_ok=True)
        for name in given:
            (folder / f"{name}.txt").write_text(texts[name], encoding="utf-8")
    (out / "packets" / "README.md").write_text(_README.read_text(encoding="utf-8"), encoding="utf-8")
    (out / "key.jsonl").write_text("".join(json.dumps(row) + "\n" for row in key), encoding="utf-8")
    return len(found)


def _named(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(name)) for name in ("source", "run_id", "task_id"))


def _wanted(row: Mapping[str, Any]) -> str:
    """What the benchmark wanted, where its runs say it."""
    meta: Mapping[str, Any] = row["meta"]
    checks = (meta.get("reward_info") or {}).get("env_assertions") or []
    unmet = [one["env_assertion"] for one in checks if not one["met"]]
    found = meta.get("ground_truth_actions") or unmet
    return json.dumps(found)[:1_200] if found else ""


def _row(name: str, sheet: Sheet) -> dict[str, Any]:
    """A line of the key: which letters each arm shows."""
    every = {_told(lesson): lesson for lessons in sheet.shown.values() for lesson in lessons}
    order = sorted(every)
    random.Random(f"{sheet.failed.run.id} letters").shuffle(order)
    letters = dict(zip(order, _LETTERS, strict=False))
    return {
        "packet": name,
        "source": sheet.failed.source,
        "run": sheet.failed.run.id,
        "titles": {letters[text]: every[text].title for text in order},
        "lessons": {letters[text]: text for text in order},
        "arms": {arm: [letters[_told(lesson)] for lesson in lessons] for arm, lessons in sheet.shown.items()},
    }


def _told(lesson: Lesson) -> str:
    return "\n   ".join(filter(None, (lesson.title, lesson.description, lesson.content)))


def _text(row: Mapping[str, Any], sheet: Sheet, wanted: str) -> str:
    run = sheet.failed.hidden
    told = [
        f"PACKET {row['packet']}. The run failed; the benchmark measured that.",
        "== What the agent was told, shortened\n" + agent_prefix(run, budget=_AGENT),
        "== What it did, shortened\n" + render(run, budget=_RUN, instructions=False),
        f"== What the benchmark wanted; the agent did not see it\n{wanted}" if wanted else "",
        "== Lessons\n" + "\n".join(f"{letter}. {text}" for letter, text in row["lessons"].items()),
    ]
    return "\n\n".join(filter(None, told)) + "\n"


def _given(key: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Which packets each reader has: those with lessons in turn, then some of those of the reader before."""
    turns = _turns(key)
    twice = [name for each in turns.values() for name in each[: _TWICE // _READERS]]
    before = [*list(turns)[1:], *list(turns)[:1]]
    again = {reader: twice[n * _TWICE // _READERS :][: _TWICE // _READERS] for n, reader in enumerate(before)}
    return {reader: [*each, *again[reader]] for reader, each in turns.items()}


def _turns(key: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    full = [row["packet"] for row in key if row["lessons"]]
    return {f"reader{n + 1}": full[n::_READERS] for n in range(_READERS)}


def told(out: Path, answers: Path, /) -> str:
    """The tables. Where two readers had a packet, the one whose turn it was counts."""
    key = [json.loads(line) for line in (out / "key.jsonl").read_text(encoding="utf-8").splitlines()]
    first, second = dict[str, dict[str, str]](), dict[str, dict[str, str]]()
    for reader, own in _turns(key).items():
        for name, each in _answers((answers / f"{reader}.jsonl").read_text(encoding="utf-8").splitlines()).items():
            (first if name in own else second)[name] = each
    first |= {row["packet"]: {} for row in key if not row["lessons"]}
    missing = [f"{row['packet']} {x}" for row in key for x in row["lessons"] if x not in first.get(row["packet"], {})]
    lost = [f"not answered: {', '.join(missing)}"] if missing else []
    return "\n\n".join((table(key, first), agreement(first, second), by_kind(key, first), *lost))


def _answers(lines: Iterable[str]) -> dict[str, dict[str, str]]:
    rows = (json.loads(line) for line in lines if line.strip())
    return {str(row["packet"]): {letter: _word(told) for letter, told in row["lessons"].items()} for row in rows}


def _word(told: Any) -> str:
    """`["helps", "why"]`, `{"effect": "helps", …}` or the word alone."""
    if isinstance(told, dict):
        told = told.get("effect", "")
    return str(told[0] if isinstance(told, list) else told).strip().lower()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the packets, or print the tables of the answers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder of recorded runs")
    parser.add_argument("--out", type=Path, required=True, help="the folder of packets and key")
    parser.add_argument("--answers", type=Path, help="the folder of the readers' answers")
    parser.add_argument("--seed", type=int, default=39)
    asked = parser.parse_args(arguments)
    if asked.answers:
        print(told(asked.out, asked.answers))
    else:
        print(f"{make(asked.data, asked.out, asked.seed)} failed runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
