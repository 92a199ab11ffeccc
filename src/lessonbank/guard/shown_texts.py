"""Finds what memory showed to runs: by its receipts, because any text can look like a lesson that was shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lessonbank.contracts.lesson_block import codes_in, has_code
from lessonbank.contracts.ports import RecallFilter, Store
from lessonbank.contracts.records import Recall, Trajectory
from lessonbank.contracts.store_calls import list_recalls

_LOOKED_UP: Final = 16
"""Codes of one call that are looked up: those that stand before most lines."""


async def texts_shown(
    store: Store, runs: Sequence[Trajectory], receipt: Recall | None, /, *, scope: str
) -> tuple[str, ...]:
    """The text of `receipt`, and of every other receipt of the scope that stands in `runs`, whole or cut off."""
    named = receipt.text if receipt else ""
    codes = [code for code, _ in codes_in(_texts(runs)).most_common() if not has_code(named, code)]
    texts = [await _with_code(store, code, scope=scope) for code in codes[:_LOOKED_UP]]
    return tuple(filter(None, (named, *texts)))


async def receipts_in(store: Store, runs: Sequence[Trajectory], /, *, scope: str) -> tuple[str, ...]:
    """The codes of the receipts of the scope whose text stands in `runs`, whole or cut off."""
    codes = [code for code, _ in codes_in(_texts(runs)).most_common()]
    return tuple([code for code in codes[:_LOOKED_UP] if await _with_code(store, code, scope=scope)])


async def _with_code(store: Store, code: str, /, *, scope: str) -> str:
    """The text of the receipt whose lines begin with `code`, if the bank keeps one."""
    recalls = await list_recalls(store, RecallFilter(text=code, limit=4), scope=scope)
    return next((recall.text for recall in recalls if has_code(recall.text, code)), "")


def _texts(runs: Sequence[Trajectory]) -> list[str]:
    texts: list[str] = []
    for run in runs:
        texts += (run.task, run.instructions)
        for step in run.steps:
            texts += (step.thought, step.action.text)
            texts += [observation.text for observation in step.observations]
    return texts
