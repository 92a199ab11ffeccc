"""`explain`: everything about one record, whether it is a lesson, a run or a recall."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Action, Lesson, Provenance, Relation, Repeat, Run, Trajectory
from lessonbank.contracts.records.lessons import RelationKind
from lessonbank.errors import NotFound
from lessonbank.guard import one_line
from lessonbank.text.authors import author
from lessonbank.text.verdicts import who_said

from . import _options as options
from ._bank import opened, topics_of
from ._ids import record_id, short
from ._output import show_json, show_table, show_text, warn

if TYPE_CHECKING:
    from lessonbank import ReasoningBank
    from lessonbank.bank.explanation import Explained, Explanation
    from lessonbank.contracts.records import Recall


def explain(
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Of a lesson, a run or a recall; 4 characters of its beginning or end will do."
        ),
    ],
    bank: options.Bank,
    scope: options.Scope,
    as_json: options.Json = False,
) -> None:
    """Show one record whole.

    A lesson: what it says, where it comes from and what taught it again. A run: its steps, answer and verdict. A
    recall: the text that the agent got, what was found, drawn and nearly found, and what the evidence says.
    """
    with opened(bank, scope) as memory:
        what, whole = record_id(memory, id)
        _SHOWN[what](memory, whole, as_json=as_json)


def _lesson(memory: ReasoningBank, id: str, /, *, as_json: bool) -> None:
    lesson, again = memory.lessons.get(id), memory.lessons.repeats(id)
    if as_json:
        show_json({"lesson": lesson, "repeats": again})
        return
    show_text(f"{lesson.kind}: {lesson.title}\n\nwhen: {lesson.description}\n\n{lesson.content}\n")
    show_table(
        "Where it comes from", ("field", "value"), _origin(lesson, _sources(memory, lesson), _topic(memory, lesson))
    )
    if again:
        times = "once" if len(again) == 1 else f"{len(again)} times"
        show_table(
            f"It came again {times}",
            ("experience", "on", "runs ended", "words", "task"),
            [_repeat(repeat, lesson) for repeat in again],
        )


def _topic(memory: ReasoningBank, lesson: Lesson) -> str:
    """The one name of its topic, and the id."""
    if lesson.topic is None:
        return "none"
    id = lesson.topic.id
    name = topics_of(memory, [lesson]).get(id, "")
    return name if id in name else f"{name} ({id})".strip()


def _sources(memory: ReasoningBank, lesson: Lesson) -> Iterator[Lesson]:
    """The lessons that a merged lesson was made from, those that are still in the bank."""
    for id in lesson.provenance.source_lesson_ids:
        with contextlib.suppress(NotFound):
            yield memory.lessons.get(id)


def _origin(lesson: Lesson, sources: Iterator[Lesson], topic: str) -> Sequence[tuple[str, object]]:
    source, made_from = lesson.provenance, tuple(map(_source, sources))
    return (
        ("id", lesson.id),
        ("state", _state(lesson)),
        ("topic", topic),
        ("written by", author(source)),
        ("taught by", f"{source.identity or source.writer}, lessonbank {source.package_version}"),
        *([("stands", _stands(lesson.relation))] if lesson.relation else []),
        ("version", lesson.version),
        *([] if made_from else [("model", source.model or "none")]),
        ("prompts", ", ".join(f"{p.id} v{p.version} ({p.digest[:12]})" for p in source.prompts) or "none"),
        ("runs", ", ".join(source.trajectory_ids) or "none"),
        *([("made from", "; ".join(made_from))] if made_from else []),
        *([("verdict", _verdict(source))] if source.trajectory_ids and not made_from else []),
        ("evidence", "; ".join(source.evidence) or "none named"),
        ("rests on", lesson.rests_on or "nothing named"),
        ("created", lesson.created_at.isoformat(timespec="seconds")),
    )


def _source(lesson: Lesson) -> str:
    """One lesson of those that became one: who wrote it, and what taught it."""
    source = lesson.provenance
    runs = f", runs {', '.join(source.trajectory_ids)}: {_verdict(source)}" if source.trajectory_ids else ""
    return f"{short(lesson.id)} ({source.method}, {source.model or 'no model'}{runs})"


def _verdict(source: Provenance) -> str:
    return f"{source.verdict} ({source.verdict_source})" if source.verdict != "unknown" else "unknown"


def _stands(relation: Relation) -> str:
    return f"{_STANDS[relation.kind]} {', '.join(map(short, relation.lesson_ids))}"


def _state(lesson: Lesson) -> str:
    if lesson.retired:
        return "retired"
    if lesson.is_doubted:
        return f"{lesson.state}: {lesson.risk}"
    return f"{lesson.state} (unchecked)" if lesson.is_unchecked else lesson.state


def _repeat(repeat: Repeat, lesson: Lesson) -> tuple[str, ...]:
    ended = ", ".join(run.verdict.outcome for run in repeat.runs)
    words = repeat.lesson.content if repeat.lesson else _as_it_was(lesson)
    return short(repeat.experience_id), repeat.at.date().isoformat(), ended, words, repeat.task


def _as_it_was(lesson: Lesson) -> str:
    return "the same" if lesson.version == 1 else "as the lesson said then; it was edited"


def _run(memory: ReasoningBank, id: str, /, *, as_json: bool) -> None:
    run = memory.runs.get(id)
    if as_json:
        show_json({"run": run})
        return
    show_text("\n".join(_lines(run.trajectory)))
    show_table("\nWhat is known of it", ("field", "value"), _facts(run))


def _facts(run: Run) -> Sequence[tuple[str, str]]:
    verdict, tried = run.verdict, f", tried {plural(run.tries, 'time')} by workers" if run.tries else ""
    return (
        ("id", run.trajectory.id),
        ("status", f"{run.status}{tried}"),
        *([("problem", run.problem)] if run.problem else []),
        ("verdict", f"{verdict.outcome}, {who_said(verdict)}{': ' if verdict.reason else ''}{verdict.reason}"),
        ("recall", run.recall_id or "none"),
        ("metadata", json.dumps(run.metadata)),
    )


def _lines(run: Trajectory) -> Iterator[str]:
    yield f"task: {run.task}"
    for number, step in enumerate(run.steps, 1):
        yield f"\nstep {number}"
        if step.thought:
            yield f"  thought: {step.thought}"
        if action := _action(step.action):
            yield f"  action: {action}"
        for seen in step.observations:
            yield f"  {seen.name or seen.source}{' (error)' if seen.is_error else ''}: {seen.text}"
    if run.answer:
        yield f"\nanswer: {run.answer}"
    if run.error:
        yield f"\nerror: {run.error}"


def _action(action: Action) -> str:
    calls = (f"{call.name}({json.dumps(call.arguments)})" for call in action.calls)
    return "; ".join(filter(None, (action.text, *calls)))


def _recall(memory: ReasoningBank, id: str, /, *, as_json: bool) -> None:
    recall, why = memory.recalls.get(id), memory.recalls.explain(id)
    if as_json:
        show_json({"recall": recall, "explanation": why})
        return
    for note in why.notes:
        warn(note)
    show_text(f"{_head(why)}\n\n{recall.text or '(no lesson was shown)'}")
    columns = ("#", "score", "shown", "id", "lesson")
    if why.lessons:
        show_table("\nFound", columns, map(_row, why.lessons))
    if why.losers:
        show_table("\nNot found then, nearest now", columns, map(_row, why.losers))
    show_table("\nWhat is known of it", ("field", "value"), _circumstances(recall, why))


def _head(why: Explanation) -> str:
    ended = f"its task ended as a {why.outcome}" if why.outcome else "its outcome is not known"
    whole = "; memory was withheld whole, to compare with" if why.control else ""
    nothing = "" if why.lessons else "\nNothing was found for it."
    return f"recall {one_line(why.recall_id)}: {ended}{whole}\ntask: {one_line(why.task, limit=300)}{nothing}"


def _circumstances(recall: Recall, why: Explanation) -> Sequence[tuple[str, str]]:
    groups = f"as a group: {'; '.join(why.withheld)}" if why.withheld else "none or single lessons, as above"
    return (
        ("when", recall.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("made", "elsewhere: an import brought it, and it is no evidence here" if recall.imported else "here"),
        ("search", recall.retriever),
        ("withheld", "all of it, to compare with" if recall.is_withheld else groups),
        ("metadata", json.dumps(recall.metadata)),
    )


def _row(candidate: Explained) -> tuple[object, ...]:
    from lessonbank.evidence.effects import points, said_of, says_nothing

    evidence = "no evidence yet"
    if candidate.lift is not None:
        effect = "" if says_nothing(candidate.lift) else f", success {points(candidate.lift.success)}"
        evidence = f"{said_of(candidate.lift)}{effect}"
    place = "" if candidate.rank is None else candidate.rank
    title = candidate.title or "(no longer in the bank)"
    sentence = f"{title}: {candidate.why}. Evidence: {evidence}"
    return place, f"{candidate.score:.3f}", "yes" if candidate.shown else "no", short(candidate.lesson_id), sentence


"""How a merge names what it stands for, see `descent`."""
_STANDS: Final[Mapping[RelationKind, str]] = {
    "adds": "adds to",
    "contradicts": "contradicts",
    "general": "covers",
    "sharper": "says more exactly what is said by",
}
_SHOWN = {"lesson": _lesson, "run": _run, "recall": _recall}
