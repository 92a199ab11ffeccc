"""`retrieve` and `lessons`: see what a bank would tell an agent, and what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank.types import Found, Lesson, Recall

from . import _options as options
from ._output import show_json, show_table, show_text, warn
from .carry import needs_bank

if TYPE_CHECKING:
    from lessonbank import ReasoningBank


def retrieve(
    task: Annotated[str, typer.Argument(help="The task, in the words the agent gets it.")],
    bank: options.Bank,
    scope: options.Scope,
    limit: Annotated[int, typer.Option("--limit", "-k", help="How many past experiences to draw on.")] = 1,
    holdout: Annotated[float, typer.Option("--holdout", help="Withhold each lesson with this probability.")] = 0.0,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help=f"What a search by words would have found then. {options.MOMENT}")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Print the text an agent would get for a task, and why.

    Looking withholds nothing, so that one sees everything; the receipt is kept like any other. Looking back shows
    nothing to an agent, so it keeps none.
    """
    import lessonbank
    from lessonbank.evidence import Holdout

    needs_bank(bank)
    if as_of is not None:
        if holdout:
            raise typer.BadParameter(
                "nothing is shown when looking back, so nothing is withheld", param_hint="--holdout"
            )
        with lessonbank.connect(bank, scope=scope) as memory:
            found = memory.retrieve_as_of(task, when=options.moment(as_of), limit=limit)
        _show_found(found, scope, as_json=as_json)
        return
    policy = Holdout(holdout, recalls=0.0) if holdout else None
    with lessonbank.connect(bank, scope=scope, holdout=policy) as memory:
        recall = memory.retrieve(task, limit=limit)
        elsewhere = "" if recall.lessons else elsewhere_in(memory)
    if as_json:
        show_json({**recall.model_dump(mode="json"), "shown": [i.id for i in recall.shown], "why": recall.why})
        return
    for note in filter(None, (*recall.notes, elsewhere)):
        warn(note)
    show_text(recall.text or "(no lesson is shown)")
    if recall.candidates:
        show_table("\nWhy", ("#", "score", "shown", "lesson", "reason"), _reasons(recall))
    show_text(f"\nrecall {recall.id}")


def _show_found(found: Found, scope: str, *, as_json: bool) -> None:
    if as_json:
        show_json(found.model_dump(mode="json"))
        return
    title = f"{scope}: {'; '.join(found.notes)}"
    if not found.matches:
        show_text(f"{title}\n(nothing was there: no past task of this scope was like this one)")
        return
    rows = [
        (rank, f"{match.score:.3f}", lesson.id, f"{lesson.kind}: {lesson.title}")
        for rank, match in enumerate(found.matches, 1)
        for lesson in match.experience.active_lessons
    ]
    show_table(title, ("#", "score", "lesson", "lesson"), rows)


def _reasons(recall: Recall) -> list[tuple[object, ...]]:
    titles = {lesson.id: lesson.title for lesson in recall.lessons}
    return [
        (c.rank, f"{c.score:.3f}", "yes" if c.shown else "no", titles[c.lesson_id], c.why) for c in recall.candidates
    ]


def lessons(
    bank: options.Bank,
    scope: options.Scope,
    lesson: Annotated[
        str | None, typer.Argument(help="A lesson's id: show that one whole, with its provenance.")
    ] = None,
    retired: Annotated[bool, typer.Option("--retired", help="List retired lessons too.")] = False,
    as_json: options.Json = False,
) -> None:
    """List the lessons of a scope, or show one whole."""
    import lessonbank

    needs_bank(bank)
    with lessonbank.connect(bank, scope=scope) as memory:
        found = (memory.get(lesson),) if lesson else memory.items(retired=retired)
        elsewhere = "" if found else elsewhere_in(memory)
    if as_json:
        show_json([one.model_dump(mode="json") for one in found])
    elif lesson:
        _show_whole(found[0])
    else:
        if elsewhere:
            warn(elsewhere)
        rows = [(i.id, i.kind, _standing(i), i.provenance.method, i.title) for i in found]
        show_table(f"{len(found)} lessons in {scope}", ("id", "kind", "trust", "by", "title"), rows)


def _standing(lesson: Lesson) -> str:
    return "retired" if lesson.retired else f"{lesson.state}: {lesson.risk}" if lesson.risk else lesson.state


def elsewhere_in(memory: ReasoningBank) -> str:
    """For a scope that holds no run at all, most likely a mistyped one: which scopes do."""
    if memory.counts().trajectories:
        return ""
    full = [scope for scope in memory.scopes() if memory.counts(scope=scope).trajectories]
    return f"there is nothing in scope {memory.scope}; this bank has: {', '.join(full[:8]) or 'nothing yet'}"


def _show_whole(lesson: Lesson) -> None:
    show_text(f"{lesson.kind}: {lesson.title}\n\nwhen: {lesson.description}\n\n{lesson.content}\n")
    source = lesson.provenance
    show_table(
        "Provenance",
        ("field", "value"),
        (
            ("trust", _standing(lesson)),
            ("written by", f"{source.writer}, {source.method}, lessonbank {source.package_version}"),
            ("model", source.model or "none"),
            ("prompts", ", ".join(f"{p.id} v{p.version} ({p.digest[:12]})" for p in source.prompts) or "none"),
            ("runs", ", ".join(source.trajectory_ids)),
            ("verdict", f"{source.verdict} ({source.verdict_source})"),
            ("evidence", "; ".join(source.evidence) or "none named"),
            ("created", lesson.created_at.isoformat()),
        ),
    )
