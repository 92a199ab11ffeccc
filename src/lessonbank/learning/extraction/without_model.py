"""The extractor of a bank without a model; what it does is in `extractive`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from anyio import to_thread

from lessonbank.contracts.records import Extraction, Run
from lessonbank.contracts.records.runs import is_brief


class ExtractiveExtractor:
    """Draws lessons from the form of a run alone: pure, fast, linear in its length, ignorant of any particular world.

    Success gives the order that worked; failure gives what had no effect where, the last choice before a silent bad
    end, and what was repeated in vain; both give errors with what fixed them. Several attempts are contrasted where
    they part ways. It names fields and where their values came from, and never a value: whatever belongs to one
    customer or case is a slot such as `<order id from find_customer's result>`. It may return nothing.

    Args:
        max_lessons: lessons from one attempt at most.
        max_contrast_lessons: lessons from several attempts at most.
    """

    asks_model = False

    def __init__(self, *, max_lessons: int = 3, max_contrast_lessons: int = 5) -> None:
        self._limits = {"max_lessons": max_lessons, "max_contrast_lessons": max_contrast_lessons}

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        from .extractive import extract  # noqa: PLC0415 - few of the banks without a model learn

        draw = partial(extract, **self._limits)
        is_quick = all(map(is_brief, [attempt.trajectory for attempt in attempts]))
        return draw(attempts) if is_quick else await to_thread.run_sync(draw, attempts)
