"""What a person decides: approve, take back, edit, narrow, correct a verdict; and the way back from the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast, get_args

from starlette.responses import Response

from lessonbank.contracts.records import FILE, JournalEntry, Lesson, Outcome, Rejudge, target_of
from lessonbank.errors import Conflict, UsageError
from lessonbank.text.verdicts import who_said

from .sessions import Back, Done
from .signing import local
from .visit import Visit, number_of

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_MOST: Final = 200
"""Lessons that are decided on at once."""
_REMEMBERED: Final = 50
"""Decisions of a session that can be undone."""
UNDO: Final = "undone on the page"
_DONE: Final = {"approve": "Approved", "retire": "Retired", "quarantine": "Quarantined", "restore": "Restored"}


_ENDED: Final[Mapping[Outcome, str]] = {
    "success": "a success",
    "failure": "a failure",
    "unknown": "one of which nobody knows how it ended",
}
_STATES: Final = {"active": "active", "quarantined": "in quarantine", "probation": "on probation"}


async def decide(visit: Visit) -> Response:
    """Approve, retire, quarantine or restore lessons, in the words that the person saw."""
    fields = await visit.form()
    do, reason = first(fields, "do"), first(fields, "reason")
    if do not in _DONE:
        raise UsageError(f"there is no decision {do[:40]!r}")
    seen = [choice.partition(":") for choice in fields.get("lesson", [])[:_MOST]]
    if not seen:
        raise UsageError("choose at least one lesson")
    lessons = [await as_seen(visit, id, version=version) for version, _, id in seen]
    open_ = [lesson for lesson in lessons if not _is_done(do, lesson)]
    if open_:
        back = await _way_back(visit, do, open_)
        entries = await _decide(visit, do, [lesson.id for lesson in open_], reason)
        named = f"“{open_[0].title}”" if len(open_) == 1 else f"{len(open_)} lessons"
        remember(visit, f"{_DONE[do]}: {named}", entries, back, lesson=open_[0].id, count=len(open_))
    return back_to(visit, fields)


async def edit(visit: Visit) -> Response:
    """Put a person's words into the place of a lesson's, if nobody else did since."""
    fields = await visit.form()
    lesson = await as_seen(visit, visit.id, version=first(fields, "version"))
    words = {"title": first(fields, "title"), "content": first(fields, "content"), "when": first(fields, "when")}
    before = _words(lesson)

    async def back(bank: AsyncReasoningBank) -> object:
        _check_unchanged(_words(edited), _words(await bank.lessons.get(lesson.id)))
        if approves:
            await bank.lessons.quarantine(lesson.id, by=by, reason=UNDO)
        return await bank.lessons.edit(lesson.id, by=by, reason=UNDO, **before)

    by, reason = visit.session.name, first(fields, "reason")
    waits = lesson.state == "quarantined" and not lesson.retired
    approves = waits and first(fields, "then") == "approve"
    edited = await visit.bank.lessons.edit(lesson.id, by=by, reason=reason, **words)
    if approves:
        await visit.bank.lessons.approve(lesson.id, by=by, reason=reason)
    again = f"“{lesson.title}” says what it said before" + (", and is in quarantine again" if approves else "")
    done = "Edited and approved" if approves else "Edited"
    remember(visit, f"{done}: “{lesson.title}”", (), back, again=again, lesson=lesson.id)
    if approves:
        return back_to(visit, {**fields, "back": fields.get("onward", fields.get("back", []))})
    still = ". It is still in quarantine: approve or retire it" if waits else ""
    return back_to(visit, {**fields, "told": [f"{done}: “{lesson.title}”{still}"]})


async def narrow(visit: Visit) -> Response:
    """Keep a lesson for some tasks; without a word, for all."""
    fields = await visit.form()
    lesson = await as_seen(visit, visit.id, version=first(fields, "version"))
    only = [line for line in first(fields, "only").splitlines() if line.strip()]

    async def back(bank: AsyncReasoningBank) -> object:
        _check_unchanged(narrowed.only_for_tasks, (await bank.lessons.get(lesson.id)).only_for_tasks)
        return await bank.lessons.narrow(lesson.id, to=lesson.only_for_tasks, by=visit.session.name, reason=UNDO)

    narrowed = await visit.bank.lessons.narrow(
        lesson.id, to=only, by=visit.session.name, reason=first(fields, "reason")
    )
    again = f"“{lesson.title}” is kept for the tasks it was kept for before"
    remember(visit, f"Narrowed: “{lesson.title}”", (), back, again=again, lesson=lesson.id)
    return back_to(visit, fields)


async def correct(visit: Visit) -> Response:
    """Put a person's word into the place of a run's verdict."""
    fields = await visit.form()
    outcome, reason = first(fields, "outcome"), first(fields, "reason")
    if outcome not in get_args(Outcome):
        raise UsageError("say how the run ended: success, failure or unknown")
    run = await visit.bank.runs.get(visit.id)
    by, before = visit.session.name, run.verdict

    new_outcome, taught = cast("Outcome", outcome), False

    async def back(bank: AsyncReasoningBank) -> object:
        # A verdict from which the run was learned has none before it that could count again.
        old = before.outcome if taught else None
        verdict = (await bank.runs.get(run.trajectory.id)).verdict
        _check_unchanged(("human", new_outcome), (verdict.source, verdict.outcome))
        return await bank.runs.correct(run.trajectory.id, outcome=old, by=by, reason=UNDO)

    if (before.source, before.outcome) != ("human", new_outcome):
        learned = await visit.bank.runs.correct(run.trajectory.id, outcome=new_outcome, by=by, reason=reason)
        taught = not any(isinstance(change, Rejudge) for change in learned.changes)
        remember(visit, f"The run is {_ENDED[new_outcome]}", (), back, run=run.trajectory.id)
    return back_to(visit, fields)


async def undo(visit: Visit) -> Response:
    """Take back the last decision of this session that was made in this scope, and show what it was about."""
    what, done = first(await visit.form(), "what"), visit.last
    if done is None:
        raise Conflict("there is nothing to undo: what was decided before is on the page History")
    if what not in ("", done.id):
        raise Conflict("it was taken back already, or you decided something else since: reload the page to see what")
    visit.session.done.remove(done)  # before anything is waited for: of a form that is sent twice, one counts
    try:
        await _take_back(visit, done)
    except Conflict:  # for good: a way back that is closed must not stand before the others
        raise
    except BaseException:
        visit.session.done.insert(0, done)
        raise
    again, where = await _again(visit, done)
    visit.session.message = f"Taken back: {again}"
    return visit.go(where)


async def _take_back(visit: Visit, done: Done) -> None:
    if done.back is not None:
        await done.back(visit.bank)
    elif await visit.bank.history.list(after=done.sequence, limit=1):
        raise Conflict("other changes came after this decision: the page History shows them and the way back")
    else:
        await visit.bank.history.rollback(to=done.sequence - 1, reason=UNDO, by=visit.session.name)


def _words(lesson: Lesson) -> dict[str, str]:
    return {"title": lesson.title, "content": lesson.content, "when": lesson.description}


def _check_unchanged(decided: object, present: object) -> None:
    """Raises Conflict: to take a decision back would take away what somebody else decided after it."""
    if present != decided:
        raise Conflict("it was changed again since: the page History shows by whom and how")


async def _again(visit: Visit, done: Done) -> tuple[str, str]:
    """What is so again after a decision was taken back, and the page that shows it."""
    if done.run:
        verdict = (await visit.bank.runs.get(done.run)).verdict
        sentence = f"the run is {_ENDED[verdict.outcome]} again, {who_said(verdict)}"
        return sentence, visit.link("runs", done.run)
    if not done.lesson:
        return done.again, visit.link("history")
    lesson = await visit.bank.lessons.get(done.lesson)
    waits = lesson.state == "quarantined" and not lesson.retired and lesson.provenance.writer != FILE
    where = visit.link("inbox", state="quarantined", at=lesson.id) if waits else visit.link("lessons", lesson.id)
    state = "retired" if lesson.retired else _STATES[lesson.state]
    sentence = f"“{lesson.title}” is {state} again"
    return done.again or (sentence if done.count == 1 else f"{done.count} lessons are {state} again"), where


def remember(
    visit: Visit,
    sentence: str,
    entries: Sequence[JournalEntry],
    back: Back | None,
    /,
    *,
    again: str = "",
    lesson: str = "",
    run: str = "",
    count: int = 1,
) -> None:
    """Keep a decision, so that it can be undone and the next page says what was done."""
    sequence = entries[-1].sequence if entries else 0
    done = Done(sentence, visit.scope, sequence, back, again=again, lesson=lesson, run=run, count=count)
    visit.session.done.insert(0, done)
    del visit.session.done[_REMEMBERED:]


async def as_seen(visit: Visit, id: str, /, *, version: str) -> Lesson:
    """The lesson in the words that the person saw, which have the `version` of the form. Raises Conflict."""
    lesson = await visit.bank.lessons.get(id)
    if lesson.version != number_of(version):
        raise Conflict(f"somebody edited the lesson {lesson.title[:80]!r} meanwhile: read it again, then decide")
    return lesson


def _is_done(do: str, lesson: Lesson) -> bool:
    """Whether the decision was made before, as after a double click."""
    return {
        "approve": lesson.approved and not lesson.hidden,
        "retire": lesson.retired,
        "quarantine": lesson.state == "quarantined",
        "restore": not lesson.retired,
    }[do]


async def _decide(visit: Visit, do: str, ids: Sequence[str], reason: str) -> Sequence[JournalEntry]:
    lessons, by = visit.bank.lessons, visit.session.name
    if do == "approve":
        return await lessons.approve(*ids, by=by, reason=reason)
    if do == "retire":
        return await lessons.retire(*ids, by=by, reason=reason or f"retired by {by}")
    if do == "quarantine":
        return await lessons.quarantine(*ids, by=by, reason=reason or f"quarantined by {by}")
    return await lessons.restore(*ids, by=by, reason=reason or f"restored by {by}")


async def _way_back(visit: Visit, do: str, lessons: Sequence[Lesson]) -> Back | None:
    """The call that is exactly the opposite, where there is one."""
    ids, by = [lesson.id for lesson in lessons], visit.session.name
    if do == "retire":
        return lambda bank: bank.lessons.restore(*ids, reason=UNDO, by=by)
    if do == "restore":
        return lambda bank: bank.lessons.retire(*ids, reason=UNDO, by=by)
    plain = [target_of(await visit.bank.lessons.experience(id)) is None for id in ids]
    if do == "approve" and all(plain) and all(lesson.state == "quarantined" for lesson in lessons):
        return lambda bank: bank.lessons.quarantine(*ids, reason=UNDO, by=by)
    if do == "quarantine" and all(lesson.approved for lesson in lessons):
        return lambda bank: bank.lessons.approve(*ids, reason=UNDO, by=by)
    return None


def back_to(visit: Visit, fields: Mapping[str, Sequence[str]], /) -> Response:
    """The page that a form came from, which says what was done."""
    where = local(first(fields, "back")) or visit.link("inbox")
    visit.session.message = next(iter(fields.get("told", ())), None) or (
        visit.session.done[0].message if visit.session.done else None
    )
    return visit.go(where)


def first(fields: Mapping[str, Sequence[str]], name: str, /) -> str:
    """The value of a field; empty where it is missing."""
    return next(iter(fields.get(name, ())), "").strip().replace("\r\n", "\n")
