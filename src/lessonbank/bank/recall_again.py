"""Recalls in the middle of a run: a small second look at what the bank knows, by the state that the run is in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lessonbank import importers
from lessonbank._base.aio import get_or_none
from lessonbank._base.iterate import every_record
from lessonbank.contracts.ports import RecallFilter, Records
from lessonbank.contracts.records import Found, Json, Recall, notes_of
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.contracts.store_calls import get_recall, list_recalls, list_scopes
from lessonbank.errors import UsageError
from lessonbank.evidence.groups import AGAIN

from .retrieval import Recaller
from .scoped_bank import ScopedBank

_CURES: Final = "/@cures"
AFTER: Final = "after"
"""The metadata of a recall in the middle of a run that names the first recall of the run."""
_BUDGET: Final = 400
"""Tokens that the text may take."""
_THE_SAME: Final = 0.9999
"""The score of the very same failure."""
_STATE: Final = 600
"""Characters of an observation by which lessons are looked for."""
_WORD: Final = re.compile(r"[a-z][a-z-]{0,29}")


def cures_of(scope: str, /) -> str:
    """The scope of the cures of a scope, below its own."""
    return f"{scope}{_CURES}"


def is_of_cures(scope: str, /) -> bool:
    """Whether a scope is one of cures."""
    return scope.endswith(_CURES)


async def kept_cures(store: Records, scope: str, /) -> str | None:
    """The scope of the cures of a scope; `None` where there are none, or it is one of cures itself."""
    below = cures_of(scope)
    return below if not is_of_cures(scope) and below in await list_scopes(store) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Where a run stands."""

    observation: str
    """What came back last."""
    doing: str = ""
    """The command or call that it came back from."""
    reason: str = "error"
    """Why the agent looks again, as one word; each has its own group in `lift`."""
    step: int = 0
    """How many steps the run has."""

    def __post_init__(self) -> None:
        if not _WORD.fullmatch(self.reason):
            raise UsageError(f"reason= is one word in small letters, such as 'error' or 'stuck'; got {self.reason!r}")

    @property
    def failure(self) -> importers.Failure | None:
        """The failure of a command, by whose key its cure is kept; `None` where it is none."""
        return importers.failure_of(self.doing, self.observation) if self.reason == "error" and self.doing else None

    @property
    def text(self) -> str:
        """What lessons are compared with."""
        excerpt = importers.error_in(self.observation) if self.reason == "error" else self.observation[-_STATE:]
        return "\n".join(filter(None, (self.doing[:_STATE], excerpt)))


async def recall_again(
    bank: ScopedBank, situation: Situation, first: Recall | None, asked: RetrieveOptions, /, *, cured: bool
) -> tuple[Recall, Found] | None:
    """A receipt that nobody kept yet: of the cure of this very failure, else by the state.

    Nothing that the run was shown before is in it. With `cured` the first only. `None`: nothing is known.
    """
    metadata = {**(asked.metadata or {}), **({AFTER: first.id} if first else {})}
    lost = first and asked.metadata and asked.metadata.get(AFTER, first.id) != first.id
    pair = await _cure_of(bank, failure, first, asked, metadata=metadata) if (failure := situation.failure) else None
    pair = pair or (None if cured else await _by_situation(bank, situation, first, asked, metadata=metadata))
    if pair is None:
        return None
    why = (f"of metadata= the {AFTER!r} is left out: the bank keeps there which recall came first",) if lost else ()
    return pair[0].model_copy(update={"notes": (*pair[0].notes, *notes_of(*why))}), pair[1]


async def _by_situation(
    bank: ScopedBank,
    situation: Situation,
    first: Recall | None,
    asked: RetrieveOptions,
    /,
    *,
    metadata: dict[str, Json],
) -> tuple[Recall, Found] | None:
    """What lessons say of the state that the run is in."""
    task = await bank.parts.intake.task("\n".join(filter(None, (situation.text, first.task if first else ""))))
    if not task.strip():
        return None
    shown = await _shown_since(bank, first) | _shown_in(first)
    words = replace(bank.parts.injector, budget=min(bank.parts.injector.budget, _BUDGET))
    small = Recaller(replace(bank, parts=replace(bank.parts, injector=words)))
    asked = replace(asked, metadata=metadata)
    recall, retrieval = await small.recall(task, asked, draw=True, exclude=shown, as_one=f"{AGAIN}{situation.reason}")
    placed = any(candidate.placed for candidate in recall.candidates)
    return (recall.model_copy(update={"step": situation.step}), retrieval) if placed else None


async def _cure_of(
    bank: ScopedBank,
    failure: importers.Failure,
    first: Recall | None,
    asked: RetrieveOptions,
    /,
    *,
    metadata: dict[str, Json],
) -> tuple[Recall, Found] | None:
    """The cure of this failure; else of another sub-command with the same words, or the program used instead.

    Its receipt has no `step`: in the scope of cures it is the first of its episode, and measured lesson by lesson.
    """
    below = replace(bank, scope=cures_of(bank.scope))
    shown = await _shown_since(below, first)
    options = replace(asked, limit=1, own=not asked.trusted, metadata=metadata)
    keys = [failure.key]
    for key in keys:
        recall, retrieval = await Recaller(below).recall(key, options, draw=True, exclude=shown)
        if any(c.placed and c.score >= _THE_SAME for c in recall.candidates):
            return recall, retrieval
        if key == failure.key:
            near = [match.experience.task for match in retrieval.matches]
            keys += [*filter(failure.is_like, near), failure.replaced_key]
    return None


async def _shown_since(bank: ScopedBank, first: Recall | None) -> frozenset[str]:
    """The lessons that later recalls of the run showed."""
    return frozenset() if first is None else await _shown_after(bank, first.id)


async def shown_before(bank: ScopedBank, recall: Recall, /) -> frozenset[str]:
    """The lessons that a run was shown before it looked again with this recall."""
    if not isinstance(first := recall.metadata.get(AFTER), str):
        return frozenset()
    shown = _shown_in(await get_or_none(get_recall(bank.store, first, scope=bank.scope)))
    return shown | await _shown_after(bank, first, before=recall.created_at)


async def _shown_after(bank: ScopedBank, first: str, *, before: datetime | None = None) -> frozenset[str]:
    async def page(limit: int, after: str | None) -> Sequence[Recall]:
        wanted = RecallFilter(metadata={AFTER: first}, before=before, limit=limit, after=after)
        return await list_recalls(bank.store, wanted, scope=bank.scope)

    return frozenset[str]().union(
        *[_shown_in(receipt) async for receipt in every_record(page, lambda recall: recall.id)]
    )


def _shown_in(recall: Recall | None) -> frozenset[str]:
    return frozenset([c.lesson_id for c in (recall.candidates if recall else ()) if c.shown])
