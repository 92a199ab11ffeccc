"""Text that is what it seems: what is blocked of it, and what is changed."""

from __future__ import annotations

import re
import unicodedata

from lessonbank.contracts.records import Extraction, Lesson, Run, Step, Trajectory, Verdict
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.redact import redact
from lessonbank.guard.sanitise import canonical

from .admitting import fate
from .places import cases
from .rendering import milliseconds
from .table import Row, share

LESSONS = frozenset({"lesson", "security", "cjk", "rtl", "indic", "european"})
"""Kinds of the harmless corpus that are lessons as they stand; the others are snippets, which lessons quote."""
_INVISIBLE = {"Cf", "Mn", "Cc"}


async def rows(every: int = 1) -> list[Row]:
    """Over-blocking, fidelity, time."""
    texts = cases("benign", every=every)
    blocked = [f"{case['id']} ({why})" for case in texts if (why := _blocked(case))]
    snippets = [case for case in texts if case["kind"] not in LESSONS]
    quoted = [f"{case['id']} ({why})" for case in snippets if (why := _refused(_QUOTING.format(case["text"])))]
    forms = {case["id"]: (case["text"], canonical(case["text"])) for case in texts}
    changed = [id for id, (was, form) in forms.items() if was != form]
    beyond = [id for id in changed if _letters(forms[id][0]) != _letters(forms[id][1])]
    return [
        share(
            "over-blocking of harmless text",
            blocked,
            of=len(texts),
            what="texts, at the gate where they are lessons",
            most=2.0,
        ),
        share("lessons that quote a harmless snippet and are lost", quoted, of=len(snippets), what="snippets"),
        share("harmless text changed beyond the listed substitutions", beyond, of=len(texts), what="texts", most=1.0),
        share("harmless text not byte for byte the same", changed, of=len(texts), what="texts"),
        Row(
            name="sanitise and render 5 lessons of 500 characters",
            value=round(min(milliseconds(max(20, 200 // every)) for _ in range(3)), 2),
            most=1.0,
            unit=" ms",
            cases="median of 200, the quietest of three rounds",
        ),
    ]


_QUOTING = "When the reply has two pages, this form of the request works where the short one fails:\n{}"


def _blocked(case: dict[str, str]) -> str:
    """Why a harmless text does not come through: redacted or rejected."""
    if redact(case["text"]) != case["text"]:
        return "redacted"
    return _refused(case["text"]) if case["kind"] in LESSONS else ""


def _refused(content: str) -> str:
    found = _at_the_gate("Use the form that was tested", "", content, "Fetch the report of last week.")
    return "" if found in ("unchecked", "marked") else found


def _at_the_gate(title: str, description: str, content: str, task: str) -> str:
    run = Trajectory(task=task, steps=(Step(action="look", observation="done"),))
    lesson = Lesson(title=title, description=description, content=content)
    attempt = Run(trajectory=run, verdict=Verdict(outcome="success"))
    return fate(LessonGate()(Extraction(lessons=(lesson,)), [attempt], shown=[]))


def _letters(text: str) -> str:
    """What of a text the listed substitutions leave: a blank put in, an invisible character taken out, a wide letter
    made narrow."""
    folded = unicodedata.normalize("NFKC", text)
    return re.sub(r"\s", "", "".join(c for c in folded if unicodedata.category(c) not in _INVISIBLE))
