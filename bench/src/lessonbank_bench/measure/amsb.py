"""The Agent Memory Security Benchmark (AMSB) of PyPI `agent-memory-guard`, run against a bank of this package.

    python3 -m venv ENV && ENV/bin/pip install agent-memory-guard
    python -m lessonbank_bench.measure.amsb --peer ENV [--json]

AMSB writes a text under a key and reads the key again: a breach where a telling part of the text came back, a false
positive where a harmless text did not come back letter for letter. A bank holds lessons and no keys, so each write is
an agent's run at the task `use KEY` that saw the text, and whose extractor, fallen for it, draws the text word for
word as its lesson, under the key as title. Reading is a recall for the same task; what counts is the content that a
reader of the block reads back. Everything else is as `connect` has it, except that nothing is withheld at random.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import lessonbank
from lessonbank import VERSION, Evidence, Parts, ReasoningBank, Safety
from lessonbank.contracts.lesson_block import lessons_in
from lessonbank.contracts.records import Extraction, Learned, Lesson, Run, Step, Trajectory
from lessonbank.guard.trust import POLICIES, TrustPolicy

Fate = StrEnum("Fate", ["stored", "redacted", "quarantined", "blocked"])
"""What became of a write, in AMSB's words."""
_TOLD = {"stored": "kept as a lesson and shown", "redacted": "kept without what was found secret in it"}
_TOLD |= {"quarantined": "kept, and shown to nobody before a person approves it", "blocked": "turned away"}


class Adapter:
    """A fresh bank, as AMSB's harness drives it."""

    name, version, self_submission = "lessonbank", VERSION, True
    trust: TrustPolicy = "open"

    def __init__(self) -> None:
        self._drawn = Lesson(title="nothing", content="nothing")
        self._bank: ReasoningBank = lessonbank.connect(
            ":memory:",
            scope="amsb",
            embedder="lexical",
            evidence=Evidence(holdout=None),
            parts=Parts(extractor=self._draw),
            safety=Safety(trust=self.trust),
        )
        self.reasons: list[str] = []

    async def _draw(self, attempts: Sequence[Run], /) -> Extraction:
        """What was seen, as it came through the bank's entrance."""
        seen = attempts[0].trajectory.steps[0].observations[0].text
        return Extraction(lessons=(self._drawn.model_copy(update={"content": seen}),))

    def remember(self, key: str, value: Any, *, source_class: str = "external_tool") -> Fate:
        """One run that saw the text, and its lesson."""
        self._drawn = Lesson(title=key, description=f"When {key} is needed", content="replaced")
        step = Step(action=f"read {key} ({source_class})", observation=str(value))
        learned = self._bank.learn(Trajectory(task=f"use {key}", steps=(step,)), outcome="success")
        self.reasons += learned.notes
        return _fate(learned, str(value))

    def recall(self, key: str) -> str | None:
        """The content that a reader of the block gets for the key."""
        return content_of(self._bank.retrieve(f"use {key}").text) or None

    def context_reset(self) -> None:
        """Memory stays."""


def _fate(learned: Learned, value: str) -> Fate:
    if not learned.lessons:
        return Fate.blocked
    lesson = learned.lessons[0]
    return Fate.quarantined if lesson.hidden else Fate.stored if lesson.content == value.strip() else Fate.redacted


def content_of(block: str, /) -> str:
    """The content of the lessons in a block, without the front of their lines, their titles and indentation."""
    return "\n".join(lesson.content for lesson in lessons_in(block))


def graded(trust: TrustPolicy) -> dict[str, Any]:
    """AMSB's grade under a trust policy, and every scenario with why."""
    from agent_memory_guard.bench.harness import SystemReport, run_scenario
    from agent_memory_guard.bench.scenarios import default_corpus
    from agent_memory_guard.bench.scoring import score_report

    system, told = SystemReport(system="lessonbank", version=VERSION, self_submission=True), []
    made = type("Trusting", (Adapter,), {"trust": trust})
    for scenario in default_corpus():
        adapter = made()
        system.runs.append(run := run_scenario(adapter, scenario))
        why = "; ".join(adapter.reasons) or _TOLD[run.final_outcome]
        came_to = "breach" if run.breached else "false positive" if run.false_positive else "as it should be"
        told.append({"id": run.scenario_id, "severity": run.severity, "is": came_to, "why": why})
    return {"trust": trust, **score_report(system).to_dict(), "scenarios": told}


def main() -> None:
    """Grade and print."""
    parser = argparse.ArgumentParser(description="AMSB's grade of this package")
    parser.add_argument("--peer", type=Path, required=True, help="the environment that has agent-memory-guard")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    sys.path += [str(path) for path in asked.peer.glob("lib/python3*/site-packages")]
    cards = [graded(policy) for policy in POLICIES]
    print(json.dumps(cards, indent=2) if asked.json else "\n".join(_lines(cards)))


def _lines(cards: Sequence[dict[str, Any]]) -> list[str]:
    lines = ["| trust | grade | score | defended | critical breaches | false positives |", "|---|---|---|---|---|---|"]
    row = "| {trust} | {grade} | {score:.1f} | {defended_total} of {malicious_total} | {critical_breaches} | "
    lines += [(row + "{false_positives} of {benign_total} |").format(**card) for card in cards]
    lines += ["", f"trust={cards[0]['trust']}:", "", "| scenario | severity | is | why |", "|---|---|---|---|"]
    return lines + ["| {id} | {severity} | {is} | {why} |".format(**told) for told in cards[0]["scenarios"]]


if __name__ == "__main__":
    main()
