"""Calls the hooks of a bank: what one of them raises is logged, and changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from lessonbank.contracts.events import Event, FellBack, Hook
from lessonbank.guard.quote import quoted

log = logging.getLogger("lessonbank")


def call_hooks(hooks: Iterable[Hook], event: Event, /, *, notes: Sequence[str] = ()) -> tuple[str, ...]:
    """Call every hook with an event, and with a `FellBack` for each note; one sentence for each hook that failed."""
    events = [event, *(FellBack(what=type(event).__name__, why=note) for note in notes)]
    return tuple(failure for hook in hooks for each in events if (failure := _failure(hook, each)))


def _failure(hook: Hook, event: Event) -> str:
    try:
        hook(event)
    except Exception as error:  # noqa: BLE001 - what a hook raises must not undo or repeat what happened
        failure = f"a hook failed after {type(event).__name__}: {type(error).__name__}: {quoted(error)}"
        log.warning("%s", failure)
        return failure
    return ""
