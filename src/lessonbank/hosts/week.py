"""Counts what memory did for coding agents in a week: saw, learned, showed, what helped, what waits, what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import takewhile
from operator import attrgetter
from typing import Final, Literal

from lessonbank._base.iterate import each
from lessonbank._base.plural import plural
from lessonbank.bank.recall_again import is_of_cures
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Add, Experience, Json, Lesson, Recall, Retire, Usage
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.errors import NotFound
from lessonbank.guard.identity import of_process
from lessonbank.guard.trust import is_own
from lessonbank.importers import WENT_ON

from .cures import CORRECTION
from .hosts import HOSTS
from .repositories import COMMON

_PAGE: Final = 200
_BYTES_OF_A_TOKEN: Final = 4
_SOURCES: Final = {"ground_truth": "checks", "human": "a person", "judge": "a judge", "framework_error": "an error"}


@dataclass(slots=True)
class Week:
    """What memory did since a moment, in all repositories of a bank."""

    repositories: set[str] = field(default_factory=set[str])
    sessions: set[str] = field(default_factory=set[str])
    tasks: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    """How tasks ended, with who said it; `unknown` where nobody did."""
    lessons: int = 0
    cures: int = 0
    corrections: int = 0
    """Rules that a person said."""
    retired: int = 0
    recalls: int = 0
    shown: int = 0
    """Lessons that were shown, in `recalls` sessions."""
    corrections_shown: int = 0
    kept_back: int = 0
    """Sessions and failures that got nothing, to measure."""
    cures_shown: int = 0
    """Cures that were told after a failure."""
    through: Counter[str] = field(default_factory=Counter[str])
    """Of the failures whose end is known: `told` and `kept back`, and how many of each `went through`."""
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    """Lessons that wait for a person, by scope."""
    tokens_shown: int = 0
    """About how many tokens of lessons stood in prompts."""
    tokens: int = 0
    """Tokens of models that judged or wrote lessons."""
    cost: float = 0.0

    def as_json(self) -> dict[str, Json]:
        """Return the week as numbers and names."""
        values: dict[str, Json] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "repositories": [*sorted(self.repositories)], "sessions": [*sorted(self.sessions)]}

    def lines(self, bank: str, /) -> list[str]:
        """What a person reads: one line each."""
        if not (self.repositories or self.sessions or self.recalls or self.cures or self.waiting):
            return [
                "no coding agent used this bank: `lessonbank install --help` names those that can",
                f"what memory did for another agent: lessonbank lift --bank {bank} --scope SCOPE",
            ]
        ended = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())
        places = plural(len(self.repositories), "repository", "repositories")
        helped = [
            f"{kind}: {self.through[f'{kind} went through']} of {self.through[kind]} went through"
            for kind in ("told", "kept back")
            if self.through[kind]
        ]
        waits = [
            f"{count} in {scope}: lessonbank review {bank} --scope {scope}" for scope, count in self.waiting.items()
        ]
        spent = f" for {self.cost:.2f} USD" if self.cost else ""
        seen = f"{plural(len(self.sessions), 'session')} with {plural(self.tasks, 'task')} in {places}"
        models = f"{self.tokens:,} tokens of models{spent}"
        return [
            f"saw      {seen}: {ended or 'none'}",
            f"learned  {plural(self.lessons, 'lesson')}, {plural(self.cures, 'cure')} and "
            f"{plural(self.corrections, 'correction')}; {self.retired} retired",
            f"showed   {plural(self.shown, 'lesson')} in {plural(self.recalls, 'session')}, "
            f"{plural(self.corrections_shown, 'correction')}, told {plural(self.cures_shown, 'cure')}; "
            f"{self.kept_back} got nothing, to measure",
            f"helped   failed commands, {'; '.join(helped)}" if helped else "helped   no failed command was met again",
            *(f"waits    {line}" for line in waits or ["nothing waits for you"]),
            f"cost     about {self.tokens_shown:,} tokens of lessons in prompts, {models}",
        ]


def week_of(bank: ReasoningBank, since: datetime, /) -> Week:
    """What memory did for coding agents since then. Raises LessonbankError."""
    week, memories = Week(), [memory for memory in map(bank.scoped, bank.admin.scopes()) if _is_of_agents(memory)]
    latest = [recall for memory in memories for recall in memory.recalls.list(limit=1) if not is_of_cures(memory.scope)]
    newest = max(latest, key=attrgetter("created_at"), default=None)
    # The agents ask as they were installed.
    asked = RetrieveOptions(own=True, trusted=newest is not None and newest.retriever.endswith("+corroborated"))
    for memory in memories:
        _count(week, memory, since)
        if waits := waiting(memory, asked, most=_PAGE):
            week.waiting[memory.scope] = waits
    return week


def _is_of_agents(bank: ReasoningBank) -> bool:
    """Whether it is the scope of a repository, or sessions were learned in a scope that a person named."""
    is_named = bank.scope == COMMON or bank.scope.startswith(f"{COMMON}/")
    return is_named or any(bank.runs.list(metadata={"host": host}, limit=1) for host in HOSTS)


def _count(week: Week, bank: ReasoningBank, since: datetime) -> None:
    is_cures = is_of_cures(bank.scope)
    for entry in bank.history.list():
        if entry.at < since:
            continue
        if isinstance(entry.entry, Add) and not entry.entry.experience.imported:
            _count_tasks(week, bank, entry.entry.experience, is_cures=is_cures)
        week.retired += len(entry.entry.lesson_ids) if isinstance(entry.entry, Retire) else 0
    recalls = list(_recalls(bank, since))
    for recall in recalls:
        _count_recall(week, recall, is_cures=is_cures)
    for kinds in _ends(bank, recalls) if is_cures else ():
        week.through.update(kinds)


def _count_tasks(week: Week, bank: ReasoningBank, experience: Experience, *, is_cures: bool) -> None:
    usage = sum((ref.verdict.usage for ref in experience.attempts), Usage())
    week.tokens += usage.input_tokens + usage.output_tokens
    week.cost += usage.cost or 0.0
    if is_cures:
        is_correction = experience.task == CORRECTION
        week.corrections += is_correction * len(experience.lessons)
        week.cures += (not is_correction) * len(experience.lessons)
        return
    week.lessons += sum(bool(lesson.provenance.trajectory_ids) for lesson in experience.lessons)
    week.repositories.add(bank.scope)
    for ref in experience.attempts:
        try:
            run = bank.runs.get(ref.trajectory_id)
        except NotFound:  # it is older than runs are kept
            continue
        week.sessions.add(str(run.metadata.get("run_id", ref.trajectory_id)).partition("/")[0])
        if run.verdict.reason != WENT_ON:
            week.tasks += 1
            by = "" if run.verdict.outcome == "unknown" else f" by {_SOURCES[run.verdict.source]}"
            week.outcomes[run.verdict.outcome + by] += 1


def _count_recall(week: Week, recall: Recall, *, is_cures: bool) -> None:
    week.tokens_shown += _tokens(recall)
    shown = sum(candidate.shown for candidate in recall.candidates)
    week.kept_back += bool(recall.candidates) and not shown
    if recall.task == CORRECTION:
        week.corrections_shown += shown
    elif is_cures:
        week.cures_shown += bool(shown)
    else:
        week.shown += shown
        week.recalls += bool(shown)


def _tokens(recall: Recall) -> int:
    return len(recall.text.encode()) // _BYTES_OF_A_TOKEN


def _recalls(bank: ReasoningBank, since: datetime) -> Iterator[Recall]:
    return takewhile(lambda recall: recall.created_at >= since, each(bank.recalls.list, attrgetter("id")))


def _ends(bank: ReasoningBank, recalls: Sequence[Recall]) -> Iterator[list[str]]:
    """Whether a command went through, after each recall whose end is known."""
    known = {recall.id: recall for recall in recalls}
    for run in bank.runs.list(limit=_PAGE):
        if run.recall_id in known and run.verdict.outcome != "unknown":
            kind = "told" if known[run.recall_id].text else "kept back"
            yield [kind, f"{kind} went through"] if run.verdict.outcome == "success" else [kind]


def exposure(bank: ReasoningBank, lesson: Lesson, /, asked: RetrieveOptions) -> Literal["shown", "waits", "once"]:
    """Whether agents who ask like this are shown a lesson that fits: `once` until a second run has found it out."""
    if lesson.state != "probation" or not (asked.trusted or asked.own or is_of_cures(bank.scope)):
        return "shown" if lesson.state in ("active", "probation") else "waits"
    experience = bank.lessons.experience(lesson.id)
    if not asked.trusted and is_own(lesson, experience, of_process()):
        return "shown"
    is_held = asked.trusted or not is_own(lesson.model_copy(update={"rests_on": ""}), experience, of_process())
    return "waits" if is_held else "shown" if bank.lessons.repeats(lesson.id) else "once"


def waiting(bank: ReasoningBank, /, asked: RetrieveOptions, *, most: int) -> int:
    """How many lessons wait for a person; of those that are new and those in quarantine `most` each, at most."""
    held = bank.lessons.list(state="quarantined", limit=most)
    new = bank.lessons.list(state="probation", limit=most)
    return len(held) + sum(exposure(bank, lesson, asked) == "waits" for lesson in new)


def spent_since(since: datetime, banks: Sequence[ReasoningBank], /) -> str:
    """What lessons in prompts came to since then, in words."""
    recalls = [recall for bank in banks for recall in _recalls(bank, since) if recall.text]
    tokens = sum(map(_tokens, recalls))
    return f"about {tokens:,} tokens of lessons in {plural(len(recalls), 'prompt')}"
