"""`retrieve`: what an agent would get for a task, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _options as options
from ._bank import is_server, opened, warn_where_empty
from ._ids import short
from ._output import show_json, show_table, show_text, warn

if TYPE_CHECKING:
    from lessonbank import ReasoningBank
    from lessonbank.contracts.records import Found, Recall


@options.takes_retrieve_options
def retrieve(
    task: Annotated[str, typer.Argument(help="The task, in the words the agent gets it.")],
    bank: options.Bank,
    scope: options.Scope,
    holdout: Annotated[float, typer.Option("--holdout", help="Withhold each lesson with this probability.")] = 0.0,
    at: Annotated[
        str | None, typer.Option("--at", help=f"What a search by words would have found then. {options.MOMENT}")
    ] = None,
    as_json: options.Json = False,
    **asked: Any,
) -> None:
    """Print the text an agent would get for a task, and why.

    Nothing is withheld, unless --holdout says so; a server decides that itself. The recall is kept like any other and
    its id is printed. With --at nothing is kept.
    """
    given = options.given(asked)
    if at is not None:
        if given.keys() - {"limit"}:
            raise typer.BadParameter("with --at only --limit changes what is found", param_hint="--at")
        if holdout:
            raise typer.BadParameter("with --at nothing is shown, so nothing is withheld", param_hint="--holdout")
        with opened(bank, scope) as memory:
            found = memory.history.search(task, at=options.moment(at), limit=given.get("limit") or 3)
        _show_found(found, scope, as_json=as_json)
        return
    with opened(bank, scope, **_evidence(bank, holdout)) as memory:
        recall = memory.retrieve(task, **given)
        if not as_json:
            _warn(memory, recall)
    if as_json:
        show_json({**recall.model_dump(mode="json"), "shown": [i.id for i in recall.shown], "why": recall.why})
        return
    show_text(recall.text or "(no lesson is shown)")
    if recall.candidates:
        show_table("\nWhy", ("#", "score", "shown", "id", "lesson"), _reasons(recall))
    show_text(f"\nrecall {recall.id}")


def _evidence(bank: str, holdout: float) -> dict[str, Any]:
    """What is withheld, as a setting of `connect`. Raises BadParameter: a server decides it."""
    from lessonbank import Evidence
    from lessonbank.evidence import Holdout

    if not is_server(bank):
        return {"evidence": Evidence(holdout=Holdout(holdout, recalls=0.0) if holdout else None)}
    if holdout:
        raise typer.BadParameter("what is withheld is decided where the server runs", param_hint="--holdout")
    return {}


def _warn(memory: ReasoningBank, recall: Recall) -> None:
    for note in recall.notes:
        warn(note)
    if recall.kept and not recall.lessons:
        warn_where_empty(memory)


def _show_found(found: Found, scope: str, *, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    title = f"{scope}: {'; '.join(found.notes)}"
    if not found.matches:
        show_text(f"{title}\n(no past task of this scope was like this one)")
        return
    rows = [
        (rank, f"{match.score:.3f}", short(lesson.id), f"{lesson.kind}: {lesson.title}")
        for rank, match in enumerate(found.matches, 1)
        for lesson in match.experience.active_lessons
    ]
    show_table(title, ("#", "score", "id", "lesson"), rows)


def _reasons(recall: Recall) -> list[tuple[object, ...]]:
    titles = {lesson.id: lesson.title for lesson in recall.lessons}
    return [
        (c.rank, f"{c.score:.3f}", "yes" if c.shown else "no", short(c.lesson_id), f"{titles[c.lesson_id]}: {c.why}")
        for c in recall.candidates
    ]
