"""What a model does when a task is done several times, by rule: it chooses and looks again; it never sees the truth.

Both look at the form of a run: whether something stopped it, and which observations report no progress. A run that
ends without an objection looks like a success, whatever the verifier says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pydantic import BaseModel

import lessonbank
from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.ports import Completion, Message
from lessonbank.contracts.records import Run, Trajectory, Verdict

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


class RuleChooser:
    """Answers the prompt for best-of-n as a model would: the run done in the end, with little in vain, in few steps."""

    name = "rule"

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        """The number of the best run by form."""
        prompt = messages[-1].content
        code = _CODE.findall(prompt)[-1]
        runs = re.findall(rf"^<<<run (\d+) {code}>>>\n(.*?)^<<<end run \1 {code}>>>", prompt, re.MULTILINE | re.DOTALL)
        best = min(runs, key=lambda run: (*_poor(run[1]), int(run[0])))
        said = {"check": code, "analysis": "done in the end, least in vain, shortest", "index": [int(best[0])]}
        return Completion(text=json.dumps(said))


def _poor(run: str) -> tuple[bool, int, int]:
    seen = _SEEN.findall(run)
    return bool(seen) and in_vain(seen[-1]), sum(map(in_vain, seen)), len(_STEP.findall(run))


def looked_at_again(run: Trajectory, verdict: Verdict | None = None, /) -> str:
    """What somebody notes who looks at a run again, by its form where no verdict is told; empty if there is nothing."""
    bank = run_sync(
        lessonbank.connect_async(
            ":memory:",
            scope="scripted",
            embedder="lexical",
            evidence=lessonbank.Evidence(holdout=None),
            safety=lessonbank.Safety(redact=None, admission=None),
        )
    )
    try:
        drawn = run_sync(bank.extract([Run(trajectory=run, verdict=verdict or verdict_by_form(run))]))
    finally:
        run_sync(bank.close())
    return "\n\n".join(f"{lesson.title}\n{lesson.description}\n{lesson.content}" for lesson in drawn.lessons)
