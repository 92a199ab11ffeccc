"""`purge`: erase what a person asks to have erased, after showing what would go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessonbank._base.plural import plural
from lessonbank.errors import UsageError

from . import _options as options
from ._bank import opened
from ._ids import lesson_id, recall_id, run_id, short
from ._output import progress_console, say, show_json, show_table, warn
from ._reviewing import KeyFile, reviewing

if TYPE_CHECKING:
    from lessonbank import ReasoningBank
    from lessonbank.bank.views import Erasing
    from lessonbank.contracts.records import Counts

_LISTED = 12
"""Records of a kind that a preview names; it counts the others."""
_BACKUPS = "Backups and exports made earlier still hold it: remove those, too"


def purge(
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    reason: options.Reason,
    lesson: Annotated[list[str] | None, typer.Option("--lesson", help="Erase the lesson of this id.")] = None,
    run: Annotated[list[str] | None, typer.Option("--run", help="Erase the run of this id and its lessons.")] = None,
    recall: Annotated[list[str] | None, typer.Option("--recall", help="Erase the recall of this id.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", help="Erase runs and recalls with this KEY=TEXT (or KEY:=JSON), as in user=u-17."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Erase everything the scope holds.")] = False,
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would be erased.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Erase for good, with everything derived from it. It shows what would go and asks first.

    Nothing brings it back; only counts and the reason remain. Backups and exports made earlier still hold it.
    --lesson, --run and --recall can be given together and repeatedly: all of it goes, or nothing.
    """
    if bool(lesson or run or recall) + bool(metadata) + all != 1:
        raise UsageError("say what to erase: ids (--lesson, --run, --recall), or --metadata, or --all")
    with opened(bank, scope) as memory:
        named = _ids_to_erase(memory, lesson=lesson, run=run, recall=recall, metadata=metadata, all=all)
        wanted = memory.admin.purge(**named, reason=reason, by=by, preview=True)
        if wanted.empty:
            _tell_nothing(metadata or [], as_json=as_json)
            return
        if not (as_json and (yes or preview)):
            _show_preview(memory, wanted, named.get("lesson", ()))
        if preview:
            if as_json:
                show_json(wanted)
            return
        _confirm(yes=yes)
        owner, before = reviewing(memory, by, key_file), memory.admin.counts()
        with progress_console.status("erasing"):
            erased = owner.admin.purge(**named, reason=reason, by=by)
        losses = _losses(memory, before)
    if as_json:
        show_json({"erased": erased, "gone": losses})
    else:
        summary = (
            ", ".join(plural(count, what.removesuffix("s")) for what, count in losses.items())
            or "nothing that is counted"
        )
        say(f"erased from {scope}: {summary}. {_lives_on(erased)}{_BACKUPS}")


def _lives_on(erased: Erasing) -> str:
    count = len(erased.successors)
    return f"{plural(count, 'lesson lives', 'lessons live')} on in the words of other runs. " if count else ""


def _ids_to_erase(
    memory: ReasoningBank,
    *,
    lesson: list[str] | None,
    run: list[str] | None,
    recall: list[str] | None,
    metadata: list[str] | None,
    all: bool,
) -> dict[str, Any]:
    """What to erase, with whole ids."""
    if all or metadata:
        return {"all": True} if all else {"metadata": options.pairs(metadata)}
    selection = {
        "lesson": [lesson_id(memory, id) for id in lesson or ()],
        "run": [run_id(memory, id) for id in run or ()],
        "recall": [recall_id(memory, id) for id in recall or ()],
    }
    return {name: ids for name, ids in selection.items() if ids}


def _confirm(*, yes: bool) -> None:
    """Ask, unless the answer was given. Raises UsageError where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("a purge cannot be undone and there is no terminal to ask at: confirm it with --yes")
    if not typer.confirm("Erase this for good?", err=True):
        warn("nothing was erased")
        raise typer.Exit(1)


def _tell_nothing(metadata: list[str], *, as_json: bool) -> None:
    if as_json:
        show_json({"erased": None, "gone": {}})
        return
    named = " and ".join(metadata)
    numbers = "" if ":=" in named else f"; for a number write {metadata[0].replace('=', ':=', 1)}"
    warn(f"no run and no recall has {named}, so nothing is erased{numbers}")


def _show_preview(memory: ReasoningBank, wanted: Erasing, lessons: Collection[str]) -> None:
    """On stderr: it is part of the question."""
    if wanted.whole_scope:
        held = memory.admin.counts()
        runs = plural(held.trajectories, "run")
        rows: list[tuple[str, str, str]] = [
            ("everything", "", f"{runs}, {plural(held.recalls, 'recall')}, {plural(held.lessons, 'lesson')}")
        ]
    else:
        rows = list(_rows(memory, wanted, lessons))
    show_table(f"This would be erased from {memory.scope}", ("what", "id", "text"), rows, to=progress_console)


def _rows(memory: ReasoningBank, wanted: Erasing, lessons: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """`lessons`: those that were named; the others go with what was named."""

    def title(id: str) -> str:
        return memory.lessons.get(id).title

    def task(id: str) -> str:
        return memory.runs.get(id).trajectory.task

    derived = [id for id in wanted.lessons if id not in lessons]
    groups: Sequence[tuple[str, Sequence[str], Callable[[str], str]]] = (
        ("lesson", [id for id in wanted.lessons if id in lessons], title),
        ("run", wanted.runs, task),
        ("its lesson" if wanted.runs else "with it", derived, title),
        ("recall", wanted.recalls, lambda id: memory.recalls.get(id).task),
    )
    for what, ids, text in groups:
        yield from ((what, short(id), text(id)) for id in ids[:_LISTED])
        if len(ids) > _LISTED:
            yield what, "", f"and {len(ids) - _LISTED} more"
    for successor in wanted.successors[:_LISTED]:
        words = f"{successor.title} (in the words of" if successor.title else "(to be drawn again from"
        yield "lives on", short(successor.of), f"{words} run {', '.join(map(short, successor.runs))})"
    if len(wanted.successors) > _LISTED:
        yield "lives on", "", f"and {len(wanted.successors) - _LISTED} more"


def _losses(memory: ReasoningBank, before: Counts) -> dict[str, int]:
    """What the journal says was erased: a lesson that lives on is among it, for its words are gone. And recalls."""
    purges = [e.entry for e in memory.history.list(after=before.changes) if e.entry.kind == "purge"]
    losses = {
        "runs": sum(purge.trajectories for purge in purges),
        "experiences": sum(purge.experiences for purge in purges),
        "lessons": sum(purge.lessons for purge in purges),
        "recalls": before.recalls - memory.admin.counts().recalls,  # the journal also counts those that lost text
    }
    return {name: count for name, count in losses.items() if count}
