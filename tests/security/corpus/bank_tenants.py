"""The same tenant at the front door: a call of every public method of a bank, in a scope of its own."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from tenants import plain, refusal

from lessonbank import AsyncReasoningBank
from lessonbank.errors import LessonbankError
from lessonbank.types import (
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

_TASKS = ("cancel the order", "exchange the boots", "book oslo", "cancel the flight to oslo")
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

    async def lesson(self, chance: random.Random, *, retired: bool = False) -> str:
        known = await self.bank.items(scope=self.scope, retired=True)
        fit = [i.id for i in known if i.retired is retired]
        return chance.choice(fit) if fit and chance.random() < 0.9 else "nothing"

    async def of(self, chance: random.Random) -> str:
        entries = await self.bank.history(scope=self.scope)
        ids = [e.entry.experience.id for e in entries if e.entry.kind in ("add", "replace")]  # type: ignore[union-attr]
        return chance.choice(ids) if ids else "nothing"


async def _learn(t: BankTenant, chance: random.Random) -> Any:
    recall = None
    if chance.random() < 0.3:
        recall = await t.bank.retrieve(chance.choice(_TASKS), scope=t.scope)
    outcome = chance.choice(("success", "failure", None))
    return await t.bank.learn(t.run(chance), outcome=outcome, recall=recall, scope=t.scope)  # type: ignore[arg-type]


async def _consolidate(t: BankTenant, chance: random.Random) -> Any:
    run = t.run(chance)
    ref = RunRef(trajectory_id=run.id, verdict=Verdict(outcome="success"))
    new = Experience(scope=t.scope, task=run.task, lessons=(Lesson(title="By hand", content=t.mark),), attempts=(ref,))
    return await t.bank.consolidate(new, dry_run=chance.random() < 0.3)


async def _attempt(t: BankTenant, chance: random.Random) -> Any:
    async with t.bank.attempt(chance.choice(_TASKS), scope=t.scope) as attempt:
        attempt.step("look", f"as {t.mark} saw it")
        await attempt.finish(outcome=chance.choice(("success", "failure")))
    return attempt.text, attempt.learned


async def _purge(t: BankTenant, chance: random.Random) -> Any:
    what = chance.randrange(5)
    if what == 0:
        return await t.bank.purge(scope_wide=True, reason=t.mark, scope=t.scope)
    if what < 3:
        return await t.bank.purge(trajectory=t.run(chance).id, reason=t.mark, scope=t.scope)
    return await t.bank.purge(lesson=await t.lesson(chance), reason=t.mark, scope=t.scope)


async def _history(t: BankTenant, chance: random.Random) -> Any:
    what = chance.choice(("lesson", "experience", ""))
    named = (
        {"lesson": await t.lesson(chance)} if what == "lesson" else {"experience": await t.of(chance)} if what else {}
    )
    return await t.bank.history(scope=t.scope, since=chance.choice((0, 2)), **named)


async def _export(t: BankTenant, chance: random.Random) -> Any:
    path = t.folder / f"{t.mark}.jsonl"
    written = await t.bank.export(path, scope=t.scope)
    return written, path.read_text("utf-8").splitlines()[1:-1]


async def _import(t: BankTenant, chance: random.Random) -> Any:
    return await t.bank.import_(t.folder / f"{t.mark}.jsonl", scope=t.scope)


async def _backup(t: BankTenant, chance: random.Random) -> Any:
    return await t.bank.backup(t.folder / f"{t.mark}.backup")


async def _close(t: BankTenant, chance: random.Random) -> Any:
    await t.bank.close()
    return await t.bank.counts(scope=t.scope)


async def _scopes(t: BankTenant, chance: random.Random) -> Any:
    return t.scope in await t.bank.scopes()


async def _receipt(t: BankTenant, chance: random.Random) -> str:
    known = [recall.id async for recall in t.bank.store.receipts(scope=t.scope)]
    return chance.choice(known) if known and chance.random() < 0.9 else "nothing"


async def _replay(t: BankTenant, chance: random.Random) -> Any:
    receipt, lesson = await _receipt(t, chance), await t.lesson(chance)
    return await t.bank.replay(
        [receipt],
        lambda task, memory: Trajectory(id="again", task=task, instructions=memory, answer=f"as {t.mark} did"),
        outcome=lambda run: bool(run.answer),
        without=lesson,
        most=2,
        scope=t.scope,
    )


async def _scale(t: BankTenant, chance: random.Random) -> Any:
    runs = iter(range(9))
    start = chance.randrange(100)

    def agent(task: str, memory: str) -> Trajectory:
        step = Step(action="look", observation=Observation(text="it is locked"))
        return Trajectory(id=f"s{start + next(runs)}", task=task, steps=(step,), answer=f"as {t.mark} did")

    told = await t.bank.scale(
        chance.choice(_TASKS),
        agent,
        k=2,
        outcome=lambda run: bool(run.answer),
        choose="verdicts",
        at_once=1,
        scope=t.scope,
    )
    return told.pass_at_k, told.recall_id, told.learned


def _at(chance: random.Random) -> int:
    return chance.randrange(6)


CALLS: dict[str, Callable[[BankTenant, random.Random], Awaitable[Any]]] = {
    "retrieve": lambda t, c: t.bank.retrieve(c.choice(_TASKS), limit=c.choice((1, 3)), scope=t.scope),
    "learn": _learn,
    "judge": lambda t, c: t.bank.judge(t.run(c)),
    "extract": lambda t, c: t.bank.extract([Run(trajectory=t.run(c), verdict=Verdict(outcome="success"))]),
    "consolidate": _consolidate,
    "attempt": _attempt,
    "lift": lambda t, c: t.bank.lift(scope=t.scope),
    "explain": lambda t, c: _with(_receipt(t, c), lambda id: t.bank.explain(id, scope=t.scope)),
    "replay": _replay,
    "scale": _scale,
    "items": lambda t, c: t.bank.items(scope=t.scope, retired=c.random() < 0.5),
    "get": lambda t, c: _with(t.lesson(c), lambda id: t.bank.get(id, scope=t.scope)),
    "experience": lambda t, c: _with(t.of(c), lambda id: t.bank.experience(id, scope=t.scope)),
    "trajectory": lambda t, c: t.bank.trajectory(t.run(c).id, scope=t.scope),
    "pending": lambda t, c: t.bank.pending(scope=t.scope),
    "counts": lambda t, c: t.bank.counts(scope=t.scope),
    "scopes": _scopes,
    "verify": lambda t, c: t.bank.verify(),
    "retire": lambda t, c: _with(t.lesson(c), lambda id: t.bank.retire(id, reason=t.mark, scope=t.scope)),
    "restore": lambda t, c: _with(
        t.lesson(c, retired=True), lambda id: t.bank.restore(id, reason=t.mark, scope=t.scope)
    ),
    "approve": lambda t, c: _with(t.lesson(c), lambda id: t.bank.approve(id, by=t.mark, scope=t.scope)),
    "quarantine": lambda t, c: _with(t.lesson(c), lambda id: t.bank.quarantine(id, reason=t.mark, scope=t.scope)),
    "signed_by": lambda t, c: t.bank.signed_by(t.mark).learn(t.run(c), outcome="success", scope=t.scope),
    "history": _history,
    "as_of": lambda t, c: t.bank.as_of(_at(c), scope=t.scope),
    "diff": lambda t, c: t.bank.diff(_at(c), _at(c), scope=t.scope),
    "retrieve_as_of": lambda t, c: t.bank.retrieve_as_of(c.choice(_TASKS), when=_at(c), limit=3, scope=t.scope),
    "lineage": lambda t, c: _with(t.lesson(c), lambda id: t.bank.lineage(id, scope=t.scope)),
    "rollback": lambda t, c: t.bank.rollback(to=_at(c), reason=t.mark, scope=t.scope),
    "purge": _purge,
    "rebuild": lambda t, c: t.bank.rebuild(),
    "backup": _backup,
    "export": _export,
    "import_": _import,
    "reindex": lambda t, c: t.bank.reindex(scope=t.scope),
    "close": _close,
}
"""A call of every public method of a bank."""

MOVES = (*("learn",) * 14, *("attempt",) * 3, *("retrieve",) * 3, *(name for name in CALLS if name != "close"))
LOOKS = ("items", "history", "counts", "pending", "export", "verify", "scopes")


async def _with(found: Awaitable[str], call: Callable[[str], Awaitable[Any]]) -> Any:
    return await call(await found)
