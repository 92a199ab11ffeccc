"""`lessons`: find lessons, read them, write and correct them, vouch for them and take them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessonbank._base.plural import counted
from lessonbank.contracts.records import UNCHECKED, Kind, Lesson, LessonState, Proposal, Repeat
from lessonbank.errors import UsageError

from . import _options as options
from ._bank import opened, warn_where_empty
from ._editor import Draft, written
from ._ids import lesson_id, lesson_ids, short
from ._output import console, say, show_json, show_table, show_text, warn_of_more
from ._reviewing import KeyFile, reviewing

if TYPE_CHECKING:
    from lessonbank import ReasoningBank

app = typer.Typer(help="Find, read, write, correct and take back lessons.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="A lesson's id; 4 characters of its beginning or end will do.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID…", help="Lessons' ids; 4 characters each will do.")]
State = Annotated[LessonState | None, typer.Option("--state", help="Only lessons of this state.")]
KindOf = Annotated[Kind | None, typer.Option("--kind", help="Only lessons of this kind.")]
Writer = Annotated[str | None, typer.Option("--writer", help="Only what this writer wrote.")]
OfTopic = Annotated[str | None, typer.Option("--topic", help="Only lessons of this topic: its name or id.")]
Title = Annotated[str | None, typer.Option("--title", help="One line that says what to do.", show_default=False)]
Content = Annotated[str | None, typer.Option("--content", help="What to do, in full.", show_default=False)]
When = Annotated[str | None, typer.Option("--when", help="When to use it, and when not.", show_default=False)]


@app.command("list")
def list_(
    bank: options.Bank,
    scope: options.Scope,
    state: State = None,
    kind: KindOf = None,
    writer: Writer = None,
    topic: OfTopic = None,
    metadata: options.Metadata = None,
    retired: Annotated[bool, typer.Option("--retired", help="List retired lessons too.")] = False,
    limit: options.Limit = 50,
    after: options.After = None,
    as_json: options.Json = False,
) -> None:
    """List the lessons of a scope, newest first."""
    with opened(bank, scope) as memory:
        found = memory.lessons.list(
            state=state,
            kind=kind,
            writer=writer,
            topic=topic,
            metadata=options.pairs(metadata),
            retired=retired,
            limit=limit,
            after=lesson_id(memory, after) if after else None,
        )
        _show_list(memory, found, limit, as_json=as_json)


@app.command()
def search(
    text: Annotated[str, typer.Argument(help="Words that all stand in the lesson.")],
    bank: options.Bank,
    scope: options.Scope,
    state: State = None,
    kind: KindOf = None,
    writer: Writer = None,
    metadata: options.Metadata = None,
    limit: options.Limit = 50,
    after: options.After = None,
    as_json: options.Json = False,
) -> None:
    """List the lessons that contain all these words, newest first."""
    with opened(bank, scope) as memory:
        found = memory.lessons.search(
            text,
            state=state,
            kind=kind,
            writer=writer,
            metadata=options.pairs(metadata),
            limit=limit,
            after=lesson_id(memory, after) if after else None,
        )
        _show_list(memory, found, limit, as_json=as_json)


@app.command()
def proposals(bank: options.Bank, scope: options.Scope, as_json: options.Json = False) -> None:
    """List what waits for your decision.

    A lesson that the evidence shows to harm: `retire` it, or `approve` it again. What somebody wrote into a file:
    `approve` does what it proposes, `retire` rejects it. Two lessons that say nearly the same: `merge` them, or
    `approve` the newer one to keep both.
    """
    with opened(bank, scope) as memory:
        found = memory.lessons.proposals()
    if as_json:
        show_json(found)
    else:
        rows = [(short(one.lesson.id), _does(one), one.reason, one.lesson.title) for one in found]
        show_table(f"{counted(len(found), 'proposal')} in {scope}", ("id", "to accept it", "because", "title"), rows)


@app.command()
def show(id: Id, bank: options.Bank, scope: options.Scope, as_json: options.Json = False) -> None:
    """Show one lesson whole, with where it comes from and which runs taught it again."""
    with opened(bank, scope) as memory:
        lesson = memory.lessons.get(lesson_id(memory, id))
        again = memory.lessons.repeats(lesson.id)
    if as_json:
        show_json(lesson.model_dump(mode="json") | {"repeats": again})
    else:
        _show_whole(lesson)
        _show_repeats(again)


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
    reason: options.Reason = "",
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Change what a lesson says. Its evidence starts again from nothing.

    Without --title, --content or --when your editor opens ($VISUAL or $EDITOR) with the lesson in it.
    """
    with opened(bank, scope) as memory:
        old = memory.lessons.get(lesson_id(memory, id))
    draft = Draft(title=old.title, when=old.description, content=old.content)
    given = {"title": title, "content": content, "when": when}
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
    reason: options.Reason = "",
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Keep one lesson for several that say nearly the same. These are retired; `unmerge` undoes it.

    Without --title and --content your editor opens ($VISUAL or $EDITOR) with the first lesson in it.
    """
    with opened(bank, scope) as memory:
        whole = lesson_ids(memory, ids)
        first = memory.lessons.get(whole[0])
    draft = Draft(title=title or first.title, when=first.description if when is None else when, content=content or "")
    if title is None or content is None:
        draft = written(replace(draft, content=content or first.content), missing="--title and --content")
    with draft.kept_on_error(), opened(bank, scope) as memory:
        lessons = reviewing(memory, by, key_file).lessons
        lesson = lessons.merge(*whole, title=draft.title, content=draft.content, when=draft.when, by=by, reason=reason)
    _tell(lesson, f"lesson {lesson.id} stands for {len(set(whole))}; its evidence starts anew", as_json=as_json)


@app.command()
def unmerge(
    id: Id,
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    reason: options.Reason,
    key_file: KeyFile = None,
) -> None:
    """Undo a merge: the lesson is retired, and those that it stands for are shown again."""
    with opened(bank, scope) as memory:
        lessons = reviewing(memory, by, key_file).lessons.unmerge(lesson_id(memory, id), by=by, reason=reason)
    console.print(f"shown again: {', '.join(short(lesson.id) for lesson in lessons)}", markup=False)


@app.command()
def narrow(
    id: Id,
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    to: Annotated[
        list[str] | None, typer.Option("--to", help="Words of the tasks it helps; several times for several kinds.")
    ] = None,
    reason: options.Reason = "",
    key_file: KeyFile = None,
    as_json: options.Json = False,
) -> None:
    """Keep a lesson for the tasks it helps: those that hold all words of one --to. Without --to: for every task."""
    with opened(bank, scope) as memory:
        whole = lesson_id(memory, id)
        lesson = reviewing(memory, by, key_file).lessons.narrow(whole, to=to or (), by=by, reason=reason)
    kept = " or ".join(lesson.only) or "every task"
    _tell(lesson, f"lesson {short(lesson.id)} is kept for {kept}; its evidence starts again", as_json=as_json)


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


def _add_decision(name: str, done: str, what: str, /, *, hides: bool = False) -> None:
    """Add the command of a decision about lessons that needs a reason. `done`: what it says in the end."""

    def decide(
        ids: Ids,
        bank: options.Bank,
        scope: options.Scope,
        by: options.By,
        reason: options.Reason,
        key_file: KeyFile = None,
    ) -> None:
        with opened(bank, scope) as memory:
            whole = lesson_ids(memory, ids)
            owner = _hiding(memory, whole, by, key_file) if hides else reviewing(memory, by, key_file)
            getattr(owner.lessons, name)(*whole, by=by, reason=reason)
        console.print(f"{done}: {len(ids)}", markup=False)

    app.command(name, help=what)(decide)


_add_decision("quarantine", "quarantined", "Show lessons to nobody until a person approves them.", hides=True)
_add_decision("retire", "retired", "Stop showing lessons. They stay, and `restore` brings them back.", hides=True)
_add_decision("restore", "restored", "Show retired lessons again.")


@app.command()
def split(
    id: Id,
    experience: Annotated[str, typer.Argument(help="The experience that taught it again, as `show` names it.")],
    bank: options.Bank,
    scope: options.Scope,
    by: options.By,
    reason: options.Reason,
    key_file: KeyFile = None,
) -> None:
    """Undo a recognition: what came again in other words becomes a lesson of its own."""
    with opened(bank, scope) as memory:
        whole = lesson_id(memory, id)
        known = [repeat.experience_id for repeat in memory.lessons.repeats(whole)]
        named = {one for one in known if one.startswith(experience) or one.endswith(experience)}
        again = named.pop() if len(named) == 1 else experience
        lessons = reviewing(memory, by, key_file).lessons.split(whole, again, by=by, reason=reason)
    console.print(f"split off: {', '.join(short(lesson.id) for lesson in lessons)}", markup=False)


def _hiding(memory: ReasoningBank, ids: Sequence[str], by: str, key_file: Path | None) -> ReasoningBank:
    """Hiding asks for a key only where a person vouched for one of the lessons."""
    vouched = any(memory.lessons.get(id).approved for id in ids)
    return reviewing(memory, by, key_file) if vouched else memory


def _show_repeats(again: Sequence[Repeat]) -> None:
    rows = [
        (
            short(one.experience_id),
            one.at.date().isoformat(),
            ", ".join(run.verdict.outcome for run in one.runs),
            one.lesson.content if one.lesson else "the same",
            one.task,
        )
        for one in again
    ]
    if rows:
        times = "once" if len(rows) == 1 else f"{len(rows)} times"
        show_table(f"It came again {times}", ("experience", "on", "runs ended", "words", "task"), rows)


def _show_list(memory: ReasoningBank, found: Sequence[Lesson], limit: int, *, as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    if not found:
        warn_where_empty(memory)
    proposed = {one.lesson.id: _PROPOSED[one.change] for one in memory.lessons.proposals()}
    rows = [(short(one.id), one.kind, _state(one, proposed), str(one.topic or ""), one.title) for one in found]
    show_table(f"{counted(len(found), 'lesson')} in {memory.scope}", ("id", "kind", "state", "topic", "title"), rows)
    warn_of_more([one.id for one in found], limit)


_PROPOSED = {
    "add": "proposed",
    "edit": "edit proposed",
    "retire": "retirement proposed",
    "merge": "merge proposed",
    "approve": "approval proposed",
}


def _does(proposal: Proposal) -> str:
    if proposal.change == "merge":
        return f"merge with {short(proposal.of or '')}"
    if proposal.origin == "evidence":
        return proposal.change
    return f"approve: {proposal.change}{f' {short(proposal.of)}' if proposal.of else ''}"


def _state(lesson: Lesson, proposed: Mapping[str, str]) -> str:
    if lesson.id in proposed:
        return f"{lesson.state}, {proposed[lesson.id]}"
    return "retired" if lesson.retired else lesson.state


def _tell(lesson: Lesson, sentence: str, *, as_json: bool) -> None:
    if as_json:
        show_json(lesson)
    else:
        say(sentence)


def _show_whole(lesson: Lesson) -> None:
    show_text(f"{lesson.kind}: {lesson.title}\n\nwhen: {lesson.description}\n\n{lesson.content}\n")
    source = lesson.provenance
    state = (
        "retired" if lesson.retired else lesson.state + (f": {lesson.risk or UNCHECKED}" if lesson.is_unchecked else "")
    )
    rows = (
        ("id", lesson.id),
        ("state", state),
        ("topic", f"{lesson.topic} ({lesson.topic.id})" if lesson.topic else "none"),
        ("written by", f"{source.writer}, {source.method}, lessonbank {source.package_version}"),
        ("version", lesson.version),
        ("model", source.model or "none"),
        ("prompts", ", ".join(f"{p.id} v{p.version} ({p.digest[:12]})" for p in source.prompts) or "none"),
        ("runs", ", ".join(source.trajectory_ids) or "none"),
        ("verdict", f"{source.verdict} ({source.verdict_source})"),
        ("evidence", "; ".join(source.evidence) or "none named"),
        ("rests on", lesson.rests_on or "nothing named"),
        ("created", lesson.created_at.isoformat(timespec="seconds")),
    )
    show_table("Where it comes from", ("field", "value"), rows)
