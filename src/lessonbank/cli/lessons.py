"""`lessons`: find lessons, write and correct them, vouch for them and take them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Kind, Lesson, LessonState, Proposal
from lessonbank.errors import UsageError

from . import _options as options
from ._bank import opened, topics_of, warn_where_empty
from ._editor import Draft, written
from ._ids import lesson_id, lesson_ids, short
from ._output import console, say, show_json, show_table, warn_of_more
from ._reviewing import KeyFile, reviewing

if TYPE_CHECKING:
    from lessonbank import ReasoningBank

app = typer.Typer(help="Find, write, correct and take back lessons.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="A lesson's id; 4 characters of its beginning or end will do.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="Lessons' ids; 4 characters each will do.")]
Title = Annotated[str | None, typer.Option("--title", help="One line that says what to do.", show_default=False)]
Content = Annotated[str | None, typer.Option("--content", help="What to do, in full.", show_default=False)]
When = Annotated[str | None, typer.Option("--when", help="When to use it, and when not.", show_default=False)]


@app.command("list")
def list_(
    context: typer.Context,
    bank: options.Bank,
    scope: options.Scope,
    state: Annotated[LessonState | None, typer.Option("--state", help="Only lessons of this state.")] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only lessons of this kind.")] = None,
    writer: Annotated[str | None, typer.Option("--writer", help="Only what this writer wrote.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Only lessons of this topic: its name or id.")] = None,
    text: options.Text = None,
    metadata: options.Metadata = None,
    retired: Annotated[bool, typer.Option("--retired", help="List retired lessons too.")] = False,
    proposals: Annotated[bool, typer.Option("--proposals", help="Only what waits for your decision, and why.")] = False,
    limit: options.Limit = 50,
    after: options.After = None,
    as_json: options.Json = False,
) -> None:
    """List the lessons of a scope, newest first. `explain` shows one of them.

    With --proposals: a lesson that the evidence shows to harm: `retire` it, or `approve` it again. What somebody wrote
    into a file: `approve` does what it proposes, `retire` drops it. Two lessons that say nearly the same: `merge`
    them, or `approve` the newer one to keep both. Two that contradict each other: `approve` or `retire` one.
    """
    filters: dict[str, Any] = {"state": state, "kind": kind, "writer": writer, "topic": topic, "text": text}
    limited = "limit" in options.on_the_line(context)
    if proposals and (metadata or retired or limited or after or any(filters.values())):
        raise typer.BadParameter("it lists every proposal: leave out filters and --limit", param_hint="--proposals")
    with opened(bank, scope) as memory:
        if proposals:
            _show_proposals(memory, as_json=as_json)
            return
        filters |= {"metadata": options.pairs(metadata), "after": lesson_id(memory, after) if after else None}
        lessons = memory.lessons.list(**filters, retired=retired, limit=limit)
        _show_list(memory, lessons, limit, as_json=as_json)


@app.command()
def add(
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    title: Title = None,
    content: Content = None,
    task: Annotated[
        str | None, typer.Option("--task", help="An example of a task that it is for.", show_default=False)
    ] = None,
    when: When = None,
    kind: Annotated[Kind, typer.Option("--kind", help="strategy: do this. guardrail: avoid this.")] = "strategy",
    metadata: options.Metadata = None,
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Write a lesson by hand. It is approved and shown at once.

    Without --title, --content and --task your editor opens ($VISUAL or $EDITOR).
    """
    draft = Draft(title=title or "", when=when or "", content=content or "", task=task or "", kind=kind)
    needed = (title, content, task)
    if None in needed:
        draft = written(draft, missing="--title, --content and --task")
    with draft.kept_on_error(), opened(bank, scope, make=True) as memory:
        lesson = reviewing(memory, by, key_file).lessons.add(
            title=draft.title,
            content=draft.content,
            task=draft.task or "",
            when=draft.when,
            kind=draft.kind_of,
            by=by,
            metadata=options.pairs(metadata),
        )
    _tell(lesson, f"added lesson {lesson.id}", as_json=as_json)


@app.command()
def edit(
    id: Id,
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    title: Title = None,
    content: Content = None,
    when: When = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Keep it for tasks with all these words; several times for several kinds."),
    ] = None,
    any_task: Annotated[bool, typer.Option("--any-task", help="Undo --only: keep it for every task.")] = False,
    reason: options.Reason = "",
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Change what a lesson says, or for which tasks it is kept. Its evidence starts again from nothing.

    Without an option that says the change your editor opens ($VISUAL or $EDITOR) with the lesson in it.
    """
    given = {"title": title, "content": content, "when": when}
    for words in only or ():
        options.needs_words({"--only": words})
    if only or any_task:
        if (only and any_task) or any(text is not None for text in given.values()):
            raise typer.BadParameter("change the tasks in a command of its own", param_hint="--only")
        with opened(bank, scope) as memory:
            lessons, whole = reviewing(memory, by, key_file).lessons, lesson_id(memory, id)
            lesson = lessons.narrow(whole, to=only or (), by=by, reason=reason)
        tasks = " or ".join(lesson.only_for_tasks) or "every task"
        _tell(lesson, f"lesson {short(lesson.id)} is kept for {tasks}; its evidence starts again", as_json=as_json)
        return
    with opened(bank, scope) as memory:
        old = memory.lessons.get(lesson_id(memory, id))
    draft = Draft(title=old.title, when=old.description, content=old.content)
    if any(text is not None for text in given.values()):
        new = draft.changed({name: text for name, text in given.items() if text is not None})
    else:
        new = written(draft, missing="--title, --content or --when")
    if new.words == draft.words:
        raise UsageError("nothing was changed")
    with new.kept_on_error(), opened(bank, scope) as memory:
        lessons = reviewing(memory, by, key_file).lessons
        lesson = lessons.edit(old.id, title=new.title, content=new.content, when=new.when, by=by, reason=reason)
    _tell(lesson, f"lesson {short(lesson.id)} is changed; its evidence starts again", as_json=as_json)


@app.command()
def merge(
    ids: Ids,
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    title: Title = None,
    content: Content = None,
    when: When = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Show again those that the lesson ID stands for; give --reason, too.")
    ] = False,
    experience: Annotated[
        str | None,
        typer.Option("--experience", help="With --undo: only what this one taught, as `explain` names it."),
    ] = None,
    reason: options.Reason = "",
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Keep one lesson for several that say nearly the same. These are retired; --undo shows them again.

    Without --title and --content your editor opens ($VISUAL or $EDITOR) with the first lesson in it. With --undo and
    --experience: what came again in other words becomes a lesson of its own.
    """
    if experience and not undo:
        raise typer.BadParameter("it says what --undo takes apart: give --undo, too", param_hint="--experience")
    if undo and (title or content or when):
        raise typer.BadParameter(
            "the lessons come back in their own words: leave out the new ones", param_hint="--undo"
        )
    if undo and not reason.strip():
        raise typer.BadParameter("say why the lessons come back; the journal keeps it", param_hint="--reason")
    with opened(bank, scope) as memory:
        whole = lesson_ids(memory, ids)
        if undo:
            apart = _undo_merge(memory, reviewing(memory, by, key_file), whole, experience, by=by, reason=reason)
            done = "split off" if experience else "shown again"
            _tell(apart, f"{done}: {', '.join(short(lesson.id) for lesson in apart)}", as_json=as_json)
            return
        first = memory.lessons.get(whole[0])
    draft = Draft(title=title or first.title, when=first.description if when is None else when, content=content or "")
    if title is None or content is None:
        draft = written(replace(draft, content=content or first.content), missing="--title and --content")
    with draft.kept_on_error(), opened(bank, scope) as memory:
        lessons = reviewing(memory, by, key_file).lessons
        lesson = lessons.merge(*whole, title=draft.title, content=draft.content, when=draft.when, by=by, reason=reason)
    _tell(lesson, f"lesson {lesson.id} stands for {len(set(whole))}; its evidence starts anew", as_json=as_json)


def _undo_merge(
    memory: ReasoningBank, owner: ReasoningBank, ids: list[str], experience: str | None, *, by: str, reason: str
) -> Sequence[Lesson]:
    """Take apart what a person, the bank or a recognition joined."""
    if len(ids) != 1:
        raise typer.BadParameter("give the one lesson that stands for the others", param_hint="--undo")
    if experience is None:
        return owner.lessons.unmerge(ids[0], by=by, reason=reason)
    known = [repeat.experience_id for repeat in memory.lessons.repeats(ids[0])]
    fitting = {id for id in known if id.startswith(experience) or id.endswith(experience)}
    again = fitting.pop() if len(fitting) == 1 else experience
    return owner.lessons.split(ids[0], again, by=by, reason=reason)


@app.command()
def approve(
    ids: Ids,
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    reason: options.Reason = "",
    key_file: KeyFile = None,
) -> None:
    """Vouch for lessons, as a person: they are trusted from now on, quarantined ones too."""
    with opened(bank, scope) as memory:
        whole = lesson_ids(memory, ids)
        reviewing(memory, by, key_file).lessons.approve(*whole, by=by, reason=reason)
    console.print(f"approved: {len(ids)}", markup=False)


@app.command()
def retire(
    ids: Ids,
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    reason: options.Reason,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Until a person approves them, in place of until `--undo`.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Show retired lessons again.")] = False,
    key_file: KeyFile = None,
) -> None:
    """Stop showing lessons. They stay, and --undo shows them again."""
    if quarantine and undo:
        raise typer.BadParameter("a person ends a quarantine: `lessons approve ID`", param_hint="--undo")
    with opened(bank, scope) as memory:
        whole = lesson_ids(memory, ids)
        if undo:
            reviewing(memory, by, key_file).lessons.restore(*whole, by=by, reason=reason)
        else:
            lessons = _hiding(memory, whole, by, key_file).lessons
            (lessons.quarantine if quarantine else lessons.retire)(*whole, by=by, reason=reason)
    done = "restored" if undo else "quarantined" if quarantine else "retired"
    console.print(f"{done}: {len(ids)}", markup=False)


def _hiding(memory: ReasoningBank, ids: Sequence[str], by: str, key_file: Path | None) -> ReasoningBank:
    """Hiding asks for a key only where a person vouched for one of the lessons."""
    vouched = any(memory.lessons.get(id).approved for id in ids)
    return reviewing(memory, by, key_file) if vouched else memory


def _show_proposals(memory: ReasoningBank, *, as_json: bool) -> None:
    proposals = memory.lessons.proposals()
    if as_json:
        show_json(proposals)
        return
    rows = [
        (short(proposal.lesson.id), _does(proposal), proposal.reason, proposal.lesson.title) for proposal in proposals
    ]
    title = f"{plural(len(proposals), 'proposal')} in {memory.scope}"
    show_table(title, ("id", "to accept it", "because", "title"), rows)
    if {lesson.id for lesson in memory.lessons.list(state="quarantined")} - {row.lesson.id for row in proposals}:
        say("lessons in quarantine wait for your approval, too: `lessonbank lessons list --state quarantined`")


def _show_list(memory: ReasoningBank, lessons: Sequence[Lesson], limit: int, *, as_json: bool) -> None:
    if as_json:
        show_json(lessons)
        return
    if not lessons:
        warn_where_empty(memory)
    proposed = {proposal.lesson.id: _PROPOSED[proposal.change] for proposal in memory.lessons.proposals()}
    topics = topics_of(memory, lessons)
    rows = [
        (short(row.id), row.kind, _state(row, proposed), topics.get(row.topic.id, "") if row.topic else "", row.title)
        for row in lessons
    ]
    show_table(f"{plural(len(lessons), 'lesson')} in {memory.scope}", ("id", "kind", "state", "topic", "title"), rows)
    warn_of_more([lesson.id for lesson in lessons], limit)


_PROPOSED = {
    "add": "proposed",
    "edit": "edit proposed",
    "retire": "retirement proposed",
    "merge": "merge proposed",
    "approve": "approval proposed",
    "choose": "to be chosen",
}


def _does(proposal: Proposal) -> str:
    if proposal.change == "merge":
        return f"merge with {short(proposal.of or '')}"
    if proposal.change == "choose":
        return f"approve it or {short(proposal.of or '')}"
    if proposal.origin == "evidence":
        return proposal.change
    return f"approve: {proposal.change}{f' {short(proposal.of)}' if proposal.of else ''}"


def _state(lesson: Lesson, proposed: Mapping[str, str]) -> str:
    if lesson.id in proposed:
        return f"{lesson.state}, {proposed[lesson.id]}"
    return "retired" if lesson.retired else lesson.state


def _tell(changed: Lesson | Sequence[Lesson], sentence: str, *, as_json: bool) -> None:
    if as_json:
        show_json(changed)
    else:
        say(sentence)
