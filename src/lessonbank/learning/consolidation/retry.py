"""Decides again when others changed the bank between a decision and its commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from lessonbank.contracts.ports import Consolidator, Decision
from lessonbank.contracts.records import Change, Edit, Experience, Trust, Usage
from lessonbank.contracts.records.usage import NO_USAGE
from lessonbank.errors import Conflict, NotFound, UsageError
from lessonbank.guard.quote import quoted

TRIES: Final = 3
"""How often a policy decides about one experience."""

T = TypeVar("T")


async def retry_on_conflict(
    commit: Callable[[Consolidator], Awaitable[T]], policy: Consolidator, /, *, last: Callable[[], Consolidator]
) -> tuple[T, tuple[str, ...]]:
    """Call `commit` with the policy until the store accepts what it decided, and say what came in its way.

    Between a decision and its commit another process may retire, change or remove what the decision refers to. The
    store then refuses it, and the policy decides again about the bank as it is now. After `TRIES` refusals what
    `last` gives decides, as often: it appends the experience, which refers to nothing but what it taught again.

    Raises:
        NotFound, Conflict: the store refused even the appended experience.
    """
    notes: tuple[str, ...] = ()
    for number in range(1, 2 * TRIES):
        try:
            return await commit(policy), notes
        except (Conflict, NotFound) as error:
            if number == TRIES:
                why = quoted(error, limit=200)
                reason = f"the bank changed during each of {TRIES} decisions: {why}"
                policy, notes = last(), (f"appended without consolidation, because {reason}",)
    return await commit(policy), notes


async def decide(policy: Consolidator, new: Experience, /) -> Sequence[Change]:
    """What the policy decides about `new`.

    Raises:
        UsageError: it speaks for a person, or for the ledger.
    """
    decided = await policy(new)
    if [c for c in decided if isinstance(c, Edit) or (isinstance(c, Trust) and c.by != "corroboration")]:
        raise UsageError("a consolidator cannot speak for a person or the ledger: approving and editing are theirs")
    return decided


def spent(decided: Sequence[Change], /) -> Usage:
    """What the model that decided took, where the consolidator says so."""
    return decided.usage if isinstance(decided, Decision) else NO_USAGE
