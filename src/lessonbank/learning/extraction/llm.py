"""Lets a model draw lessons from attempts, and keeps only those that the attempts bear out."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from anyio import to_thread
from pydantic import BaseModel

from lessonbank._base.aio import read_reply
from lessonbank._base.plural import plural
from lessonbank._version import VERSION
from lessonbank.contracts.ports import CUT, LanguageModel
from lessonbank.contracts.records import (
    Extraction,
    Kind,
    Lesson,
    Outcome,
    Provenance,
    Run,
    Trajectory,
    Verdict,
    VerdictSource,
)
from lessonbank.errors import ExtractionError
from lessonbank.guard import fence, nonce, one_line
from lessonbank.guard.quote import in_one_line
from lessonbank.learning.agent_prefix import agent_prefix
from lessonbank.text.prompts import Prompt
from lessonbank.text.rendering import View, estimate_tokens, render, render_instructions

from ._forms import (
    ContrastLessons,
    ContrastLessonsAdding,
    ContrastLessonsBeside,
    Lessons,
    LessonsAdding,
    LessonsBeside,
)
from ._grounding import grounded, shown_steps
from ._known import Known
from .parsing import Draft, parse_lessons

BUDGET = 8_000
"""Tokens of a run that the extractor reads, the agent's instructions among them."""
CONTRAST_BUDGET = 40_000
"""Tokens of all runs of a contrast together."""
_COMPARED = 100_000
"""Tokens of the agent's instructions that lessons are held against."""
_SPARE = 4  # lessons read for each lesson kept, so that a dropped one does not cost its successor
_LEAST_SHARE = 1_000
_REASON_LIMIT = 1_000
_UNTOLD = "How the runs ended is not told: some may have succeeded and others failed. Find out from their steps."
_HOW_KNOWN: dict[VerdictSource, str] = {
    "ground_truth": "measured, certain",
    "human": "said by a person who checked",
    "framework_error": "the run was stopped by an error",
    "judge": "the opinion of a model that read the run",
}
_LEAST_SURE_FIRST: tuple[VerdictSource, ...] = ("judge", "framework_error", "human", "ground_truth")


@dataclass(frozen=True, slots=True)
class _Run:
    """One attempt as the model will see it."""

    attempt: Run
    text: str

    @property
    def outcome(self) -> Outcome:
        return self.attempt.verdict.outcome


@dataclass(frozen=True, slots=True)
class _Request:
    """What one request shows: the runs, what comes before them, and the code that fences them."""

    runs: Sequence[_Run]
    agent: str
    code: str


class LLMExtractor:
    """One call for one attempt (by its outcome), one call over all of several attempts (self-contrast, section 3.3).

    Attempts without a verdict or without a step are left out. The default is this package's own method: the model sees
    instructions and observations, and a lesson is kept only if a step that was shown is its evidence. The published
    method is the same class with the `paper/` prompts, `view="thoughts"` (web) or `"messages"` (code),
    `show_labels=False`, `grounding=False` and `structured=False`.
    """

    def __init__(
        self,
        model: LanguageModel,
        /,
        *,
        success: Prompt,
        failure: Prompt,
        contrast: Prompt,
        contrast_model: LanguageModel | None = None,
        budget: int = BUDGET,
        contrast_budget: int = CONTRAST_BUDGET,
        max_lessons: int = 3,
        max_contrast_lessons: int = 5,
        temperature: float = 1.0,
        view: View = "full",
        show_labels: bool = True,
        grounding: bool = True,
        structured: bool = True,
        additions: bool = False,
    ) -> None:
        """`budget`: tokens for the run; `contrast_budget`: for all runs of a contrast together.

        `show_labels`: tell the contrast how each run ended. `grounding`: drop lessons without evidence in the run, and
        such as repeat the agent's instructions. `structured`: ask providers that can for JSON of the agreed form.
        `additions`: ask what a lesson that the bank has already says beyond it.
        """
        self._model = model
        self._contrast_model = contrast_model or model
        self._prompts: dict[str, Prompt] = {"success": success, "failure": failure, "contrast": contrast}
        self._budget = budget
        self._contrast_budget = contrast_budget
        self._max_lessons = max_lessons
        self._max_contrast_lessons = max_contrast_lessons
        self._temperature = temperature
        self._view: View = view
        self._show_labels = show_labels
        self._grounding = grounding
        self._structured = structured
        self._known = Known(additions=additions)

    def with_known_lessons(self, lessons: Sequence[Lesson], /) -> Self:
        """The same extractor, which is shown these lessons of the bank and says how its own stand to them.

        Where its prompt has no slot `known`, this changes nothing.
        """
        other = copy(self)
        other._known = replace(self._known, lessons=tuple(lessons))
        return other

    def labelled(self, shown: bool, /) -> Self:
        """The same extractor, whose contrast is told how each run ended (`shown`), or has to find out."""
        other = copy(self)
        other._show_labels = shown
        return other

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        """Items with provenance, most decisive first, the call's usage, and a note for everything left out.

        Raises:
            ExtractionError: the reply held nothing usable.
            ModelError: the model failed.
        """
        usable, notes = _usable(attempts)
        shown = await to_thread.run_sync(self._rendered, usable)
        runs = shown.runs
        if len(runs) < len(usable):
            left_out = len(usable) - len(runs)
            were = "was" if left_out == 1 else "were"
            notes.append(f"{left_out} of {len(usable)} attempts {were} left out: the budget is too small")
        if not runs:
            return Extraction(notes=(*notes, "no attempt to learn from"))
        if len(runs) == 1:
            return await self._ask(self._model, shown, runs[0].outcome, self._max_lessons, notes)
        return await self._ask(self._contrast_model, shown, "contrast", self._max_contrast_lessons, notes)

    async def _ask(self, model: LanguageModel, shown: _Request, role: str, limit: int, notes: list[str]) -> Extraction:
        prompt, runs = self._prompts[role], shown.runs
        known = self._known if "known" in prompt.slots else Known()
        schema = _form(role, known)
        completion = await model.generate(
            await to_thread.run_sync(lambda: prompt.render(**self._slots(prompt, shown, limit))),
            temperature=self._temperature,
            schema=schema if self._structured else None,
        )
        try:
            parsed = await read_reply(partial(parse_lessons, limit=limit * _SPARE), completion.text)
        except ExtractionError as error:
            raise ExtractionError(str(error), usage=completion.usage) from error
        if completion.is_cut:
            notes = [*notes, CUT]
        if not parsed.lessons:
            notes = [*notes, f"the model says that there is no lesson: {in_one_line(completion.text, limit=120)}"]
        drafts, dropped = await to_thread.run_sync(self._held_to, runs, known.with_additions(parsed.lessons))
        result = known.sorted(drafts)
        if (over := len(result.lessons) - limit) > 0:
            dropped.append(f"{plural(over, 'lesson')} beyond the limit of {limit} dropped")
        return Extraction(
            lessons=tuple(_lesson(draft, known, runs, prompt, model.name) for draft in result.lessons[:limit]),
            repeats=result.repeats,
            usage=completion.usage,
            notes=(*notes, *parsed.problems, *dropped),
        )

    def _slots(self, prompt: Prompt, shown: _Request, limit: int) -> dict[str, str]:
        """What the prompt declares, and no more: one without the slot `verdict` never sees a judge's reason."""
        runs, mark = shown.runs, shown.code
        outcomes = [f" ({run.outcome})" if self._show_labels else "" for run in runs]
        labels = ["run"] if len(runs) == 1 else [f"run {number}{outcome}" for number, outcome in enumerate(outcomes, 1)]
        fenced = (fence(run.text, label=label, nonce=mark) for label, run in zip(labels, runs, strict=True))
        ends = [_describe_verdict(label, run.attempt.verdict, mark) for label, run in zip(labels, runs, strict=True)]
        if len(runs) > 1 and not self._show_labels:
            ends = [_UNTOLD]
        slots = {"run": "\n\n".join(fenced), "verdict": "\n".join(ends), "limit": str(limit), "nonce": mark}
        slots |= {"agent": shown.agent, "known": self._known.write_prompt(mark)}
        return {name: slots[name] for name in prompt.slots if name in slots}

    def _held_to(self, runs: Sequence[_Run], drafts: Sequence[Draft]) -> tuple[list[Draft], list[str]]:
        if not self._grounding:
            return list(drafts), []
        texts = {render_instructions(run.attempt.trajectory, budget=_COMPARED) for run in runs}
        instructions = "\n".join(sorted(texts))
        return grounded(drafts, shown=[shown_steps(run.text) for run in runs], instructions=instructions)

    def _rendered(self, attempts: Sequence[Run]) -> _Request:
        """Each attempt under its share: short runs leave what they do not need to the long ones."""
        several, code = len(attempts) > 1, nonce()
        budget = self._contrast_budget if several else self._budget
        chosen = _balanced(attempts, most=max(1, budget // _LEAST_SHARE))
        runs, agent, told_before = [attempt.trajectory for attempt in chosen], "", None
        if chosen and "agent" in self._prompt_of(chosen).slots:
            agent, told_before = agent_prefix(runs[0], budget=self._budget, code=code), runs[0].instructions
            budget -= estimate_tokens(agent)
        shown = runs if agent else _instructed_once(runs)

        def rendered(run: Trajectory, most: int) -> str:
            return render(run, budget=most, view=self._view, instructions=run.instructions != told_before)

        texts = [rendered(run, budget) for run in shown]
        wanted = [estimate_tokens(text) for text in texts]
        level = _level(wanted, budget)
        renderings = [
            _Run(attempt, text if want <= level else rendered(run, level))
            for attempt, run, text, want in zip(chosen, shown, texts, wanted, strict=True)
        ]
        return _Request(renderings, agent, code)

    def _prompt_of(self, attempts: Sequence[Run]) -> Prompt:
        return self._prompts["contrast" if len(attempts) > 1 else attempts[0].verdict.outcome]


def _usable(attempts: Sequence[Run]) -> tuple[list[Run], list[str]]:
    judged = [attempt for attempt in attempts if attempt.verdict.outcome != "unknown"]
    runs = [attempt for attempt in judged if attempt.trajectory.steps]
    notes: list[str] = []
    if unjudged := len(attempts) - len(judged):
        notes.append(f"{plural(unjudged, 'attempt')} left out: the end is not known")
    if empty := len(judged) - len(runs):
        notes.append(f"{plural(empty, 'attempt')} left out for want of steps")
    return runs, notes


def _instructed_once(runs: Sequence[Trajectory]) -> list[Trajectory]:
    """The runs; instructions that the first run has too are not shown again: they are long, and the same k times."""
    return [
        run.model_copy(update={"instructions": "(the same as in run 1)"})
        if index and run.instructions and run.instructions == runs[0].instructions
        else run
        for index, run in enumerate(runs)
    ]


def _balanced(attempts: Sequence[Run], /, *, most: int) -> list[Run]:
    """At most `most` attempts, of both outcomes where there are both, in their own order."""
    if len(attempts) <= most:
        return list(attempts)
    sides: dict[str, list[int]] = {"success": [], "failure": []}
    for index, attempt in enumerate(attempts):
        sides[attempt.verdict.outcome].append(index)
    turns = sorted((turn, index) for side in sides.values() for turn, index in enumerate(side))
    return [attempts[index] for index in sorted(index for _, index in turns[:most])]


def _level(wanted: Sequence[int], budget: int, /) -> int:
    """The largest allowance, the same for all, at which everybody's want or allowance fits the budget."""
    left, level = budget, budget
    for count, want in zip(range(len(wanted), 0, -1), sorted(wanted), strict=True):
        level = left // count
        if want > level:
            return level
        left -= want
    return max(level, *wanted, 1)


def _describe_verdict(label: str, verdict: Verdict, mark: str) -> str:
    """How a run ended and who says so; a reason is somebody's text, so it is fenced."""
    sure = f", confidence {verdict.confidence:.2f}" if verdict.source in ("judge", "framework_error") else ""
    line = f"{label.partition(' (')[0].capitalize()}: {verdict.outcome} ({_HOW_KNOWN[verdict.source]}{sure})."
    if not verdict.reason.strip():
        return line
    reason = fence(one_line(verdict.reason, limit=_REASON_LIMIT), label="reason", nonce=mark)
    return f"{line} The reason given, to be checked against the steps:\n{reason}"


def _form(role: str, known: Known) -> type[BaseModel]:
    is_single = role != "contrast"
    if not known.lessons:
        return Lessons if is_single else ContrastLessons
    if known.additions:
        return LessonsAdding if is_single else ContrastLessonsAdding
    return LessonsBeside if is_single else ContrastLessonsBeside


def _lesson(draft: Draft, known: Known, runs: Sequence[_Run], prompt: Prompt, model: str) -> Lesson:
    verdicts = [run.attempt.verdict for run in runs]
    outcomes = {verdict.outcome for verdict in verdicts}
    kind: Kind = "strategy" if "success" in outcomes else "guardrail"
    # Runs that all ended the same way leave nothing to choose, whatever the model (or a run it read) says.
    if len(outcomes) > 1 and draft.kind:
        kind = draft.kind
    from_kind: Outcome = "success" if kind == "strategy" else "failure"
    sources = {verdict.source for verdict in verdicts}
    judged_with = {verdict.prompt: None for verdict in verdicts if verdict.prompt}
    return Lesson(
        title=draft.title,
        description=draft.description,
        content=draft.content,
        kind=kind,
        applies_to=draft.applies_to,
        choice=draft.choice,
        rests_on=draft.rests_on,
        relation=known.relation_of(draft),
        provenance=Provenance(
            trajectory_ids=tuple(run.attempt.trajectory.id for run in runs),
            verdict=verdicts[0].outcome if len(outcomes) == 1 else from_kind,
            verdict_source=next(source for source in _LEAST_SURE_FIRST if source in sources),
            prompts=(prompt.ref, *judged_with),
            model=model,
            package_version=VERSION,
            evidence=draft.evidence,
        ),
    )
