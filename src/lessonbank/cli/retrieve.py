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
    from lessonbank.contracts.retrieve_options import RetrieveKeywords


@options.takes_retrieve_options
def retrieve(
    task: Annotated[str, typer.Argument(help="The task, in the words the agent gets it.")],
    bank: options.Bank,
    scope: options.Scope,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the recall as that of a task whose outcome you will tell.")
    ] = False,
    holdout: Annotated[
        float, typer.Option("--holdout", help="With --keep: withhold each lesson with this probability.")
    ] = 0.0,
    at: Annotated[
        str | None, typer.Option("--at", help=f"What a search by words would have found then. {options.MOMENT}")
    ] = None,
    as_json: options.Json = False,
    **asked: Any,
) -> None:
    """Print the text an agent would get for a task, and why.

    It is a look: nothing is withheld or kept, and no task is counted. A script that does the task and tells its outcome
    gives --keep: the recall is kept like an agent's, and its id is printed. A server decides itself what is withheld.
    """
    given = options.given(asked)
    _check(given, keep=keep, holdout=holdout, at=at)
    if at is not None:
        with opened(bank, scope) as memory:
            retrieval = memory.history.retrieve(task, at=options.moment(at), limit=given.get("limit") or 3)
        _show_found(retrieval, scope, as_json=as_json)
        return
    with opened(bank, scope, **_evidence(bank, holdout)) as memory:
        recall = memory.retrieve(task, **given) if keep else memory.recalls.preview(task, **given)
        if not as_json:
            _warn(memory, recall)
    if as_json:
        show_json({**recall.model_dump(mode="json"), "shown": [i.id for i in recall.shown], "why": recall.why})
        return
    show_text(recall.text or "(no lesson is shown)")
    if recall.candidates:
        show_table("\nWhy", ("#", "score", "shown", "id", "lesson"), _reasons(recall))
    show_text(f"\nrecall {recall.id}" if keep else "\nA look: no recall was kept (--keep keeps one).")


def _check(given: RetrieveKeywords, *, keep: bool, holdout: float, at: str | None) -> None:
    """Refuse what a look would not use. Raises BadParameter."""
    if at is not None and given.keys() - {"limit"}:
        raise typer.BadParameter("with --at only --limit changes what is found", param_hint="--at")
    if at is not None and keep:
        raise typer.BadParameter("with --at nothing is shown, so there is nothing to keep", param_hint="--keep")
    if holdout and not keep:
        raise typer.BadParameter("in a look nothing is withheld: give --keep, too", param_hint="--holdout")
    if "metadata" in given and not keep:
        raise typer.BadParameter("it stays with the recall: give --keep, too", param_hint="--metadata")


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
    if not recall.lessons:
        warn_where_empty(memory)


def _show_found(retrieval: Found, scope: str, *, as_json: bool) -> None:
    if as_json:
        show_json(retrieval)
        return
    title = f"{scope}: {'; '.join(retrieval.notes)}"
    if not retrieval.matches:
        show_text(f"{title}\n(no past task of this scope was like this one)")
        return
    rows = [
        (rank, f"{match.score:.3f}", short(lesson.id), f"{lesson.kind}: {lesson.title}")
        for rank, match in enumerate(retrieval.matches, 1)
        for lesson in match.experience.active_lessons
    ]
    show_table(title, ("#", "score", "id", "lesson"), rows)


def _reasons(recall: Recall) -> list[tuple[object, ...]]:
    titles = {lesson.id: lesson.title for lesson in recall.lessons}
    return [
        (c.rank, f"{c.score:.3f}", "yes" if c.shown else "no", short(c.lesson_id), f"{titles[c.lesson_id]}: {c.why}")
        for c in recall.candidates
    ]
