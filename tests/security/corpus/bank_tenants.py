"""The same tenant at the front door: a call of every public method of a bank, in a scope of its own."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from tenants import plain, refusal

from lessonbank import AsyncReasoningBank
from lessonbank.contracts.records import (
    Experience,
    Extraction,
    Lesson,
    Observation,
    Run,
    RunRef,
    Step,
    Trajectory,
    Verdict,
)
from lessonbank.errors import LessonbankError, UsageError

_TASKS = ("cancel the order", "exchange the boots", "book oslo", "cancel the flight to oslo")
_TRIED: Sequence[dict[str, Any]] = ({}, {"limit": 2, "by": "lexical", "floor": 0}, {"trust": "open", "budget": 200})
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?|datetime\.datetime\([^)]*\)")
_SECONDS = re.compile(r"(['\"]?seconds['\"]?[:=] ?)\d[\d.e-]*")
_DRAWN = re.compile(r"(?<![0-9a-f])[0-9a-f]{8,64}(?![0-9a-f])")


async def extract(attempts: Sequence[Run], /) -> Extraction:
    """One lesson for each run, in words that say whose run it was."""
    drawn = [
        Lesson(
            title=f"Release the catch of {_mark(a.trajectory)}",
            description="When a handle sticks.",
            content=f"Before a handle of {_mark(a.trajectory)} is turned, release the catch beneath it, because a "
            "spring holds it shut.",
        )
        for a in attempts
    ]
    return Extraction(lessons=tuple(drawn))


def _mark(run: Trajectory) -> str:
    """Whose run it is, as its answer or its steps say."""
    return "theirs" if "theirs" in run.model_dump_json() else "ours"


class BankTenant:
    """One of those who share a bank.

    Attributes:
        told: every call it made and all that it was answered; what a bank draws or dates has its number there, in
            the order in which the tenant came to see it.
    """

    def __init__(self, bank: AsyncReasoningBank, scopes: Sequence[str], folder: Path, /, *, mark: str) -> None:
        self.bank, self.scopes, self.folder, self.mark = bank, scopes, folder, mark
        self.scope = scopes[0]
        self.told: list[Any] = []
        self._seen: dict[str, str] = {}

    async def act(self, method: str, number: int) -> None:
        """One call, its details drawn from `number`."""
        chance = random.Random(number)
        self.scope = chance.choice(self.scopes)
        try:
            answer = plain(await CALLS[method](self, chance))
        except LessonbankError as error:
            answer = refusal(error)
        self.told.append((method, self.scope, self.numbered(repr(answer))))

    def numbered(self, text: str) -> str:
        text = _MOMENT.sub("(a moment)", text.replace(str(self.folder), "(a folder)"))
        text = _SECONDS.sub(r"\1(some)", text)
        return _DRAWN.sub(lambda m: self._seen.setdefault(m.group(), f"#{len(self._seen)}"), text)

    def run(self, chance: random.Random) -> Trajectory:
        step = Step(action="look", observation=Observation(text="it is locked"))
        id = f"r{chance.randrange(5)}"
        return Trajectory(id=id, task=_TASKS[int(id[1]) % 4], steps=(step,), answer=f"as {self.mark} did")

    @property
    def handle(self) -> AsyncReasoningBank:
        """The bank in the scope of this call."""
        return self.bank.scoped(self.scope, writer=self.mark)

    async def lesson(self, chance: random.Random, *, retired: bool = False) -> str:
        known = (await self.handle.lessons.list(retired=True, limit=10_000))[::-1]
        fit = [i.id for i in known if i.retired is retired]
        return chance.choice(fit) if fit and chance.random() < 0.9 else "nothing"

    async def of(self, chance: random.Random) -> str:
        entries = await self.handle.history.list()
        ids = [e.entry.experience.id for e in entries if e.entry.kind in ("add", "replace")]  # type: ignore[union-attr]
        return chance.choice(ids) if ids else "nothing"

    async def receipt(self, chance: random.Random) -> str:
        known = (await self.handle.recalls.list(limit=10_000))[::-1]
        return chance.choice(known).id if known and chance.random() < 0.9 else "nothing"

    def page(self, chance: random.Random) -> dict[str, Any]:
        text = chance.choice((None, "order", "boots", "catch"))
        return {"text": text, "limit": chance.choice((1, 9))}


async def _learn(t: BankTenant, chance: random.Random) -> Any:
    recall = None
    if chance.random() < 0.3:
        recall = await t.handle.retrieve(chance.choice(_TASKS))
    outcome = chance.choice(("success", "failure", None))
    return await t.handle.learn(t.run(chance), outcome=outcome, recall=recall)  # type: ignore[arg-type]


async def _tell(t: BankTenant, chance: random.Random) -> Any:
    of = chance.choice((t.run(chance).id, await t.receipt(chance)))
    return await t.handle.tell(of, outcome=chance.choice(("success", "failure")))  # type: ignore[arg-type]


async def _consolidate(t: BankTenant, chance: random.Random) -> Any:
    run = t.run(chance)
    ref = RunRef(trajectory_id=run.id, verdict=Verdict(outcome="success"))
    new = Experience(scope=t.scope, task=run.task, lessons=(Lesson(title="By hand", content=t.mark),), attempts=(ref,))
    return await t.handle.consolidate(new, dry_run=chance.random() < 0.3)


async def _attempt(t: BankTenant, chance: random.Random) -> Any:
    async with t.handle.attempt(chance.choice(_TASKS)) as attempt:
        attempt.step("look", f"as {t.mark} saw it")
        if chance.random() < 0.8:
            await attempt.finish(outcome=chance.choice(("success", "failure")))
    return attempt.text, attempt.learned


async def _purge(t: BankTenant, chance: random.Random) -> Any:
    what = chance.randrange(5)
    if what == 0:
        return await t.handle.admin.purge(all=True, reason=t.mark)
    if what < 3:
        return await t.handle.admin.purge(run=t.run(chance).id, reason=t.mark)
    return await t.handle.admin.purge(lesson=await t.lesson(chance), reason=t.mark)


async def _history(t: BankTenant, chance: random.Random) -> Any:
    what = chance.choice(("lesson", "experience", ""))
    named = (
        {"lesson": await t.lesson(chance)} if what == "lesson" else {"experience": await t.of(chance)} if what else {}
    )
    return await t.handle.history.list(after=chance.choice((0, 2)), **named)


async def _export(t: BankTenant, chance: random.Random) -> Any:
    path = t.folder / f"{t.mark}.jsonl"
    written = await t.handle.admin.export(path)
    return written, path.read_text("utf-8").splitlines()[1:-1]


async def _import(t: BankTenant, chance: random.Random) -> Any:
    return await t.handle.admin.import_(t.folder / f"{t.mark}.jsonl")


async def _sync(t: BankTenant, chance: random.Random) -> Any:
    (told,) = await t.handle.admin.sync(t.folder / f"{t.mark}.md")
    return told.lessons


async def _backup(t: BankTenant, chance: random.Random) -> Any:
    return await t.bank.admin.backup(t.folder / f"{t.mark}.backup")


async def _submit(t: BankTenant, chance: random.Random) -> Any:
    """What a submitted run teaches is there once another call of the bank has waited for it."""
    ids = await t.handle.submit(t.run(chance), outcome="success")
    await t.handle.drain()
    return ids


async def _add(t: BankTenant, chance: random.Random) -> Any:
    return await t.handle.lessons.add(
        title="By hand", content=f"What {t.mark} know.", task=chance.choice(_TASKS), by=t.mark
    )


async def _merge(t: BankTenant, chance: random.Random) -> Any:
    ids = [await t.lesson(chance), await t.lesson(chance)]
    return await t.handle.lessons.merge(*ids, title="Merged", content=f"What {t.mark} know.", by=t.mark)


async def _close(t: BankTenant, chance: random.Random) -> Any:
    await t.bank.close()
    return await t.handle.admin.counts()


async def _scopes(t: BankTenant, chance: random.Random) -> Any:
    return t.scope in await t.bank.admin.scopes()


async def _reflect(t: BankTenant, chance: random.Random) -> Any:
    """Without a model it refuses, whoever asks."""
    try:
        return await t.handle.reflect(runs=chance.randrange(4, 9))
    except UsageError as error:
        return str(error)


async def _trial(t: BankTenant, chance: random.Random) -> Any:
    lesson = await t.lesson(chance)
    return await t.handle.trial(
        ["Where is the order?"],
        lambda task, memory: Trajectory(id="again", task=task, instructions=memory, answer=f"as {t.mark} did"),
        verify=lambda run: bool(run.answer),
        without=lesson,
        max_runs=4,
    )


async def _scale(t: BankTenant, chance: random.Random) -> Any:
    runs = iter(range(9))
    start = chance.randrange(100)

    def agent(task: str, memory: str) -> Trajectory:
        step = Step(action="look", observation=Observation(text="it is locked"))
        return Trajectory(id=f"s{start + next(runs)}", task=task, steps=(step,), answer=f"as {t.mark} did")

    told = await t.handle.scale(
        chance.choice(_TASKS), agent, k=2, verify=lambda run: bool(run.answer), choose="verdicts", concurrency=1
    )
    return told.pass_at_k, told.recall_id, told.learned


def _at(chance: random.Random) -> int:
    return chance.randrange(6)


async def _in_background(t: BankTenant, chance: random.Random) -> Any:
    run = t.run(chance)
    t.handle.in_background(lambda: t.handle.learn(run, outcome="success"), lost="it was not learned")
    await t.handle.drain()


async def _add_writer(t: BankTenant, chance: random.Random) -> Any:
    """The key itself is drawn anew each time."""
    return bool(await t.bank.admin.add_writer(f"worker {t.mark}"))


async def _remove_writer(t: BankTenant, chance: random.Random) -> Any:
    await t.bank.admin.add_writer(f"worker {t.mark}")
    return await t.bank.admin.remove_writer(f"worker {t.mark}")


CALLS: dict[str, Callable[[BankTenant, random.Random], Awaitable[Any]]] = {
    "retrieve": lambda t, c: t.handle.retrieve(c.choice(_TASKS), limit=c.choice((1, 3))),
    "recall_again": lambda t, c: t.handle.recall_again(f"error: {c.choice(_TASKS)}", doing="make test"),
    "learn": _learn,
    "submit": _submit,
    "tell": _tell,
    "keep_unfinished": lambda t, c: t.handle.keep_unfinished(t.run(c)),
    "in_background": _in_background,
    "drain": lambda t, c: t.handle.drain(),
    "judge": lambda t, c: t.handle.judge(t.run(c)),
    "extract": lambda t, c: t.handle.extract([Run(trajectory=t.run(c), verdict=Verdict(outcome="success"))]),
    "consolidate": _consolidate,
    "attempt": _attempt,
    "lift": lambda t, c: t.handle.lift(),
    "reflect": _reflect,
    "trial": _trial,
    "scale": _scale,
    "scoped": lambda t, c: t.bank.scoped(writer=t.mark).scoped(t.scope).learn(t.run(c), outcome="success"),
    "close": _close,
    "lessons.list": lambda t, c: t.handle.lessons.list(retired=c.random() < 0.5, **t.page(c)),
    "lessons.search": lambda t, c: t.handle.lessons.search(c.choice(("catch", "spring")), limit=c.choice((1, 9))),
    "lessons.get": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.get(id)),
    "lessons.experience": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.experience(id)),
    "lessons.add": _add,
    "lessons.note": lambda t, c: t.handle.lessons.note(f"As {t.mark} noted {c.random()}", task=c.choice(_TASKS)),
    "lessons.edit": lambda t, c: _with(
        t.lesson(c), lambda id: t.handle.lessons.edit(id, title=f"As {t.mark} say", by=t.mark)
    ),
    "lessons.repeats": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.repeats(id)),
    "lessons.split": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.split(id, id, reason=t.mark)),
    "lessons.merge": _merge,
    "lessons.unmerge": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.unmerge(id, reason=t.mark)),
    "lessons.topics": lambda t, c: t.handle.lessons.topics(),
    "lessons.narrow": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.narrow(id, to=t.mark, by=t.mark)),
    "lessons.retire": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.retire(id, reason=t.mark)),
    "lessons.restore": lambda t, c: _with(
        t.lesson(c, retired=True), lambda id: t.handle.lessons.restore(id, reason=t.mark)
    ),
    "lessons.approve": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.approve(id, by=t.mark)),
    "lessons.quarantine": lambda t, c: _with(t.lesson(c), lambda id: t.handle.lessons.quarantine(id, reason=t.mark)),
    "runs.list": lambda t, c: t.handle.runs.list(status=c.choice((None, "learned", "pending")), **t.page(c)),
    "runs.search": lambda t, c: t.handle.runs.search("order", limit=c.choice((1, 9))),
    "runs.get": lambda t, c: t.handle.runs.get(t.run(c).id),
    "runs.pending": lambda t, c: t.handle.runs.pending(limit=c.choice((1, 9))),
    "runs.queue": lambda t, c: t.handle.runs.queue(),
    "runs.spending": lambda t, c: t.handle.runs.spending(),
    "runs.retry": lambda t, c: t.handle.runs.retry(limit=c.choice((1, 9))),
    "runs.correct": lambda t, c: t.handle.runs.correct(t.run(c).id, outcome="failure", by=t.mark),
    "runs.audit": lambda t, c: t.handle.runs.audit(2),
    "runs.unlabelled": lambda t, c: t.handle.runs.unlabelled(),
    "recalls.list": lambda t, c: t.handle.recalls.list(settled=c.choice((None, True)), **t.page(c)),
    "recalls.search": lambda t, c: t.handle.recalls.search("order", limit=c.choice((1, 9))),
    "recalls.get": lambda t, c: _with(t.receipt(c), lambda id: t.handle.recalls.get(id)),
    "recalls.preview": lambda t, c: t.handle.recalls.preview(c.choice(_TASKS), **c.choice(_TRIED)),
    "recalls.explain": lambda t, c: _with(t.receipt(c), lambda id: t.handle.recalls.explain(id)),
    "history.list": _history,
    "history.state": lambda t, c: t.handle.history.state(_at(c)),
    "history.diff": lambda t, c: t.handle.history.diff(_at(c), _at(c)),
    "history.retrieve": lambda t, c: t.handle.history.retrieve(c.choice(_TASKS), at=_at(c), limit=3),
    "history.lineage": lambda t, c: _with(t.lesson(c), lambda id: t.handle.history.lineage(id)),
    "history.rollback": lambda t, c: t.handle.history.rollback(to=_at(c), reason=t.mark),
    "admin.counts": lambda t, c: t.handle.admin.counts(),
    "admin.export": _export,
    "admin.import_": _import,
    "admin.sync": _sync,
    "admin.reindex": lambda t, c: t.handle.admin.reindex(),
    "admin.purge": _purge,
    "admin.forget": lambda t, c: t.handle.admin.forget(days=c.choice((1e-10, 1.0))),
    "admin.unembedded": lambda t, c: t.handle.admin.unembedded(),
    "lessons.proposals": lambda t, c: t.handle.lessons.proposals(),
    # What acts on the whole file is its owner's: a tenant's own handle refuses it.
    "admin.scopes": _scopes,
    "admin.storage": lambda t, c: t.bank.admin.storage(),
    "admin.verify": lambda t, c: t.bank.admin.verify(),
    "admin.rebuild": lambda t, c: t.bank.admin.rebuild(),
    "admin.backup": _backup,
    "admin.add_writer": _add_writer,
    "admin.remove_writer": _remove_writer,
    "admin.writers": lambda t, c: t.handle.admin.writers(),
    "admin.add_reviewer": lambda t, c: t.handle.admin.add_reviewer(f"reviewer {t.mark}"),
    "admin.remove_reviewer": lambda t, c: t.handle.admin.remove_reviewer(f"reviewer {t.mark}"),
    "admin.reviewers": lambda t, c: t.handle.admin.reviewers(),
}
"""A call of every public method of a bank and of its views."""

MOVES = (*("learn",) * 14, *("attempt",) * 3, *("retrieve",) * 3, *(name for name in CALLS if name != "close"))
LOOKS = (
    "lessons.list",
    "runs.list",
    "recalls.list",
    "history.list",
    "admin.counts",
    "runs.pending",
    "admin.export",
    "admin.storage",
    "admin.verify",
    "admin.scopes",
)


async def _with(found: Awaitable[str], call: Callable[[str], Awaitable[Any]]) -> Any:
    return await call(await found)
