"""Pure steps of `learn`: what was handed in, what is kept of it, and how a receipt is closed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

from lessonbank._version import VERSION
from lessonbank.errors import ExtractionError, ModelError, UsageError
from lessonbank.guard.gate import MOST_REJECTED
from lessonbank.guard.quote import quoted
from lessonbank.messages import trajectory_from
from lessonbank.retrieving import TEMPLATE
from lessonbank.types import (
    RECALL,
    SECONDS,
    Add,
    Change,
    Experience,
    Extraction,
    Json,
    Kind,
    Learned,
    Lesson,
    Merge,
    Outcome,
    Recall,
    Rejudge,
    Replace,
    Run,
    RunRef,
    Settlement,
    Trajectory,
    Usage,
    Verdict,
    numbers_cited,
)

from .judging import graded_notes, truth_verdict
from .prior_runs import Standing, Verdicts

_OF_KIND: dict[Kind, Outcome] = {"strategy": "success", "guardrail": "failure"}


def checked_question(task: object, limit: object, /) -> str:
    """`task`, if something can be retrieved for it; it often comes straight from somebody's data.

    Raises:
        UsageError: no text, blank, or a limit below 1.
    """
    if not isinstance(task, str):
        raise UsageError(f"retrieve needs the task as text, not as {type(task).__name__}")
    if not task.strip() or not isinstance(limit, int) or limit < 1:
        raise UsageError("retrieve needs a task that is not blank and a limit of at least 1")
    return task


def runs_from(source: object, /, *, task: str | None, asked: str | None = None) -> list[Trajectory]:
    """`source` as trajectories of one task: one trajectory or message list, or a list of those.

    `task` renames every run; `asked` (a receipt's task) is only for messages, which do not say theirs.

    Raises:
        UsageError: an empty list, or runs of different tasks.
        FormatError: messages in no known shape.
    """
    several = _several(source)
    runs = [
        trajectory_from(one, task=task or (None if isinstance(one, Trajectory) else asked))
        for one in (several if several is not None else [source])
    ]
    tasks = {run.task for run in runs}
    if len(tasks) != 1:
        raise UsageError(f"learn takes runs of one task at a time, and at least one run; got {len(tasks)} tasks")
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("the same trajectory was handed in twice: give every run its own id")
    return runs


def _several(source: object) -> list[object] | None:
    if not isinstance(source, list | tuple) or not source:
        return None
    entries = cast("Sequence[object]", source)
    if all(isinstance(entry, Trajectory | list | tuple) for entry in entries):
        return list(entries)
    return None


def truths_of(
    runs: Sequence[Trajectory],
    /,
    *,
    outcome: Outcome | Sequence[Outcome] | None,
    reward: float | Sequence[float] | None,
    success_at: float,
) -> tuple[dict[str, Verdict | None], tuple[str, ...]]:
    """Ground truth by trajectory id, where the caller gave any, and a note on graded rewards that decided alone.

    Raises:
        UsageError: not as many values as runs, no outcome of this package, or a reward that contradicts it.
    """
    outcomes, rewards = _each(outcome, len(runs), "outcome"), _each(reward, len(runs), "reward")
    truths = [truth_verdict(outcome=o, reward=r, success_at=success_at) for o, r in zip(outcomes, rewards, strict=True)]
    alone = [t.reward for t, o in zip(truths, outcomes, strict=True) if t and t.reward is not None and _unstated(o)]
    return dict(zip((run.id for run in runs), truths, strict=True)), graded_notes(alone, success_at=success_at)


def _unstated(outcome: object) -> bool:
    return outcome is None or outcome == "unknown"


def nothing_drawn(error: ExtractionError | ModelError, /) -> Extraction:
    """The place of an extraction that failed: no lessons, what it cost, and why."""
    usage = (error.usage if isinstance(error, ExtractionError) else None) or Usage()
    why = quoted(str(error), limit=500)
    return Extraction(usage=usage, notes=(f"no lesson was drawn, the run is kept for another try: {why}",))


def changed(changes: Sequence[Change], /) -> list[Experience]:
    """The experiences that changes bring in."""
    return [c.experience for c in changes if isinstance(c, Add | Replace | Merge)]


def as_kept(experience: Experience, changes: Sequence[Change], /) -> Experience:
    """`experience` as `changes` let it in."""
    return next((kept for kept in changed(changes) if kept.id == experience.id), experience)


def new_lessons(changes: Sequence[Change], extraction: Extraction, /) -> tuple[Lesson, ...]:
    """What of `extraction` the consolidator let in, and what it wrote itself."""
    earlier = {lesson.id for c in changes if isinstance(c, Replace) for lesson in c.experience.lessons}
    earlier -= {lesson.id for lesson in extraction.lessons}
    return tuple(i for e in changed(changes) for i in e.lessons if i.id not in earlier)


def _each(value: object, count: int, name: str, /) -> list[Any]:
    """One value per run: a single one stands for all, a sequence must have as many as there are runs."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value] * count
    several = list(cast("Iterable[Any]", value))
    if len(several) != count:
        raise UsageError(f"{name} has {len(several)} values for {count} runs: give one, or one for each run")
    return several


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one call of `learn` has found out, and what becomes of it in a bank that others change meanwhile."""

    before: Standing
    truths: Verdicts
    receipt: Recall | None
    attempts: Sequence[Run]
    extraction: Extraction
    _: KW_ONLY
    scope: str
    failed: ExtractionError | ModelError | None
    """Why the extraction failed: it is to be tried again."""
    usage: Usage
    """What judging and extracting cost."""
    graded: tuple[str, ...] = ()
    """What graded rewards were taken for."""

    @property
    def ids(self) -> list[str]:
        """The runs it was drawn from."""
        return [attempt.trajectory.id for attempt in self.attempts]

    def too_late(self, known: Iterable[str], /, *, cost: Usage) -> Learned:
        """The answer when somebody else has learned these runs: they add nothing."""
        note = "learned by another call or process meanwhile"
        return Learned(known=tuple(known), usage=self.usage + cost, notes=(note, *self.graded))

    def experience(self, earlier: Experience | None, /, *, writer: str) -> Experience:
        """What is to be consolidated."""
        return experience_of(
            self.attempts,
            self.extraction,
            scope=self.scope,
            writer=writer,
            pending=self.failed is not None,
            earlier=earlier,
            recall=self.receipt,
        )

    @property
    def _errors(self) -> tuple[str, ...]:
        """The codes of what went wrong, each once."""
        codes = [attempt.verdict.error for attempt in self.attempts]
        return tuple(dict.fromkeys(code for code in (*codes, self.failed and self.failed.code) if code))

    def settlement(self, experience_id: str, others: Sequence[Run], /) -> Settlement | None:
        """How its receipt is closed, where there is one; `others` are the runs that count besides."""
        return settlement_of(self.receipt, experience_id, [*others, *self.attempts]) if self.receipt else None

    def learned(
        self, experience: Experience, changes: Sequence[Change], /, *, cost: Usage, notes: Sequence[str]
    ) -> Learned:
        """The answer when `changes` were made; deciding on them took `cost`."""
        return Learned(
            experience=as_kept(experience, changes),
            verdicts=tuple(a.verdict for a in self.attempts if a.trajectory.id in self.truths),
            lessons=new_lessons(changes, self.extraction),
            changes=tuple(changes),
            usage=self.usage + cost,
            known=self.before.known,
            notes=(*self.graded, *self.extraction.notes, *self.before.contradictions(self.truths), *notes),
            errors=self._errors,
        )


def experience_of(
    attempts: Sequence[Run],
    extraction: Extraction,
    /,
    *,
    scope: str,
    writer: str,
    pending: bool,
    earlier: Experience | None,
    recall: Recall | None,
) -> Experience:
    """The experience these attempts make, with its new lessons; under its earlier id when they were tried before."""
    refs = tuple(
        RunRef(trajectory_id=a.trajectory.id, verdict=a.verdict, n_steps=len(a.trajectory.steps)) for a in attempts
    )
    new = Experience(
        scope=scope,
        task=attempts[0].trajectory.task,
        lessons=tuple(signed(lesson, attempts, writer=writer) for lesson in extraction.lessons),
        attempts=refs,
        rejected=extraction.rejected,
        metadata=_metadata(attempts[0].trajectory, recall, pending=pending),
    )
    if earlier is None:
        return new
    again = {ref.trajectory_id for ref in refs}
    others = tuple(ref for ref in earlier.attempts if ref.trajectory_id not in again)
    return new.model_copy(
        update={
            "id": earlier.id,
            "created_at": earlier.created_at,
            "attempts": (*others, *refs),
            "rejected": (*earlier.rejected, *new.rejected)[-MOST_REJECTED:],
            "metadata": {k: v for k, v in earlier.metadata.items() if k != "pending"} | new.metadata,
        }
    )


def _metadata(run: Trajectory, recall: Recall | None, *, pending: bool) -> dict[str, Json]:
    """What later steps ask of an experience: its task's template, its receipt, whether it is to be tried again."""
    kept: dict[str, Json] = {TEMPLATE: run.metadata[TEMPLATE]} if TEMPLATE in run.metadata else {}
    return {**kept, **({RECALL: recall.id} if recall else {}), **({"pending": True} if pending else {})}


def signed(lesson: Lesson, attempts: Sequence[Run], /, *, writer: str) -> Lesson:
    """`lesson` with everything in its provenance that its extractor left open."""
    source = lesson.provenance
    runs = [a for a in attempts if a.trajectory.id in source.trajectory_ids]
    told: dict[str, Any] = {}
    if not source.trajectory_ids:
        runs = [a for a in attempts if a.verdict.outcome != "unknown"]
        outcomes = {a.verdict.outcome for a in runs}
        told["trajectory_ids"] = tuple(a.trajectory.id for a in runs)
        told["verdict"] = outcomes.pop() if len(outcomes) == 1 else _OF_KIND[lesson.kind]
        told["verdict_source"] = runs[0].verdict.source
    told["prompts"] = tuple(dict.fromkeys((*source.prompts, *(a.verdict.prompt for a in runs if a.verdict.prompt))))
    told |= {"writer": writer, "package_version": source.package_version or VERSION}
    return lesson.model_copy(update={"provenance": source.model_copy(update=told)})


def replacing(earlier: Experience | None, changes: Sequence[Change], /) -> tuple[Change, ...]:
    """`changes` with what they add under an earlier id put in its place: the same as before is no change."""
    if earlier is None:
        return tuple(changes)
    told = [_in_place_of(earlier, change) for change in changes]
    return tuple(change for change in told if change)


def _in_place_of(earlier: Experience, change: Change) -> Change | None:
    if not isinstance(change, Add) or change.experience.id != earlier.id:
        return change
    later = change.experience.model_copy(update={"lessons": (*earlier.lessons, *change.experience.lessons)})
    if _state(earlier) == _state(later):
        return None
    return Replace(experience=later, reason="judged or extracted again")


def _state(experience: Experience) -> object:
    """What another try can change."""
    said = {ref.trajectory_id: (ref.verdict.outcome, ref.verdict.source) for ref in experience.attempts}
    return said, experience.lessons, experience.rejected, experience.metadata


def settlement_of(recall: Recall, experience_id: str, attempts: Sequence[Run], /) -> Settlement:
    """How the task of `recall` ended. Of several runs under one recall: the share that succeeded, by majority."""
    decided = [a for a in attempts if a.verdict.outcome != "unknown"]
    share = sum(a.verdict.outcome == "success" for a in decided) / len(decided) if decided else None
    outcome: Outcome = "unknown" if share is None else "success" if share > 0.5 else "failure"
    told = [a.verdict for a in decided or attempts]
    first = next((verdict for verdict in told if verdict.source == "judge"), told[0])
    return Settlement(
        recall_id=recall.id,
        scope=recall.scope,
        experience_id=experience_id,
        trajectory_ids=tuple(a.trajectory.id for a in attempts),
        runs=len(attempts),
        outcome=outcome,
        reward=first.reward if len(attempts) == 1 else share,
        confidence=min((a.verdict.confidence for a in decided), default=0.0),
        source=first.source,
        judge=_judge(first),
        steps=sum(len(a.trajectory.steps) for a in attempts),
        usage=sum((a.trajectory.usage for a in attempts), Usage()),
        seconds=_seconds(attempts),
        cited=cited(recall, [a.trajectory for a in attempts]),
        template=next((t for a in attempts if isinstance(t := a.trajectory.metadata.get(TEMPLATE), str)), None),
    )


def _judge(verdict: Verdict) -> str:
    """Which judge a verdict is of: its model and the version of its prompt."""
    if verdict.source != "judge":
        return ""
    prompt = f"{verdict.prompt.id} {verdict.prompt.version}" if verdict.prompt else ""
    return ", ".join(part for part in (verdict.model or "", prompt) if part) or "judge"


def _seconds(attempts: Sequence[Run]) -> float | None:
    told = [a.trajectory.metadata.get(SECONDS) for a in attempts]
    known = [float(t) for t in told if isinstance(t, int | float) and not isinstance(t, bool) and t >= 0]
    return sum(known) / len(known) * len(attempts) if known else None


def cited(recall: Recall, runs: Iterable[Trajectory], /) -> tuple[str, ...]:
    """Lessons that runs name by number, as `[2]`, in what the agent thought or said: never in what it was told."""
    shown = [c.lesson_id for c in sorted(recall.candidates, key=lambda c: c.rank) if c.shown]
    if not shown:
        return ()
    said = (text for run in runs for s in run.steps for text in (s.thought, s.action.text))
    answers = (run.answer or "" for run in runs)
    numbers = {number for text in (*said, *answers) for number in numbers_cited(text)}
    return tuple(id for number, id in enumerate(shown, 1) if number in numbers)


def settled_anew(
    earlier: Settlement | None, recall: Recall | None, experience: Experience | None, attempts: Sequence[Run], /
) -> Settlement | None:
    """The settlement of a receipt, if it says anything that the earlier one does not."""
    if recall is None or experience is None or not attempts:
        return None
    later = settlement_of(recall, experience.id, attempts)
    return None if earlier and later == earlier.model_copy(update={"at": later.at}) else later


def corrected(experience: Experience | None, truths: Mapping[str, Verdict | None], /) -> list[Change]:
    """What a truth told later changes in an experience: its verdicts. Its lessons stay until somebody retires them."""
    return [
        Rejudge(experience_id=experience.id, trajectory_id=id, verdict=truth, reason="its outcome became known")
        for id, truth in truths.items()
        if experience and truth and any(_differs(ref, id, truth) for ref in experience.attempts)
    ]


def _differs(ref: RunRef, id: str, truth: Verdict) -> bool:
    said = (ref.verdict.outcome, ref.verdict.reward)
    return ref.trajectory_id == id and said != (truth.outcome, truth.reward)
