"""What a model does when a task is scaled, by rule: it chooses, draws lessons, looks again; it never sees the truth.

All three look at the form of a run: whether something stopped it, and which observations report no progress. A run
that ends without an objection looks like a success to them, whatever the verifier says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Safety
from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.records import Extraction, Run, Trajectory, Verdict

_IN_VAIN = re.compile(
    r"\bnothing\b|\bno (?:effect|record|change)\b|\breject|\berror\b|\bfail|\bnot found\b|\bdenied\b"
    r"|<returncode>\s*-?[1-9]",
    re.IGNORECASE,
)
_CODE = re.compile(r'"check": "([0-9a-f]{8})"')
_STEP = re.compile(r"^\[step \d+.*\]$", re.MULTILINE)
_SEEN = re.compile(r"^environment:\n((?:\|.*\n?)*)", re.MULTILINE)
_LOOKED_AT = 400
"""Characters of an observation that are read, from its end: a page is content, its last words are the message."""


def in_vain(observed: str, /) -> bool:
    """Whether an observation reports no progress."""
    return bool(_IN_VAIN.search(observed[-_LOOKED_AT:]))


def verdict_by_form(run: Trajectory, /) -> Verdict:
    """How a run seems to have ended, to somebody who sees the run and nothing else."""
    seen = [observation.text for step in run.steps for observation in step.observations]
    failed = bool(run.error) or (bool(seen) and in_vain(seen[-1]))
    return Verdict(outcome="failure" if failed else "success", confidence=0.5, reason="by its form")


def selector(prompt: str) -> str:
    """The best run by form, of those a prompt for best-of-n shows: done in the end, little in vain, few steps."""
    code = _CODE.findall(prompt)[-1]
    runs = re.findall(rf"^<<<run (\d+) {code}>>>\n(.*?)^<<<end run \1 {code}>>>", prompt, re.MULTILINE | re.DOTALL)
    best = min(runs, key=lambda run: (*_poor(run[1]), int(run[0])))
    return json.dumps({"check": code, "analysis": "done in the end, least in vain, shortest", "index": [int(best[0])]})


def _poor(run: str) -> tuple[bool, int, int]:
    seen = _SEEN.findall(run)
    return bool(seen) and in_vain(seen[-1]), sum(map(in_vain, seen)), len(_STEP.findall(run))


class FormExtractor:
    """The bank's own way to draw lessons without a model, told how runs ended or not.

    Args:
        labels: whether the contrast of several runs is told how each ended. If not, it goes by their form. One run
            alone is drawn from by its verdict, as ever.
    """

    def __init__(self, *, labels: bool = True) -> None:
        self._labels = labels
        self._bank = _bank()

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        """Lessons of one run by its verdict, of several by their contrast."""
        if len(attempts) > 1 and not self._labels:
            attempts = [_unlabelled(attempt) for attempt in attempts]
        return await self._bank.extract(attempts)

    def close(self) -> None:
        """Gives back what it holds; closing twice is fine."""
        run_sync(self._bank.close())


def looked_at_again(run: Trajectory, /) -> str:
    """What somebody notes who looks at a run again without knowing how it was judged; empty where there is nothing."""
    bank = _bank()
    try:
        drawn = run_sync(bank.extract([Run(trajectory=run, verdict=verdict_by_form(run))]))
    finally:
        run_sync(bank.close())
    return "\n\n".join(f"{lesson.title}\n{lesson.description}\n{lesson.content}" for lesson in drawn.lessons)


def _unlabelled(attempt: Run) -> Run:
    return Run(trajectory=attempt.trajectory, verdict=verdict_by_form(attempt.trajectory))


def _bank() -> AsyncReasoningBank:
    """A bank that nothing is kept in: its way of drawing lessons is all that is wanted."""
    return run_sync(
        lessonbank.connect_async(
            ":memory:",
            scope="scripted",
            embedder="lexical",
            evidence=Evidence(holdout=None),
            safety=Safety(redact=None, admission=None),
        )
    )
