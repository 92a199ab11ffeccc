"""The store of a bank whose memory is switched off: it is empty, and says why it has no record."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lessonbank.contracts.ports import ExperienceKey, RecallFilter, RunFilter, SavedRecall
from lessonbank.contracts.records import Experience, Run
from lessonbank.contracts.settings import OFF
from lessonbank.errors import NotFound

from . import SqliteStore


class NullStore(SqliteStore):
    """Holds nothing. Whoever names one record is told why it is not there."""

    async def experiences(self, by: ExperienceKey, values: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """None. Raises NotFound (one id)."""
        if by in ("id", "lesson") and len(values) == 1:
            raise NotFound(OFF)
        return ()

    async def runs(self, wanted: RunFilter, /, *, scope: str) -> Sequence[Run]:
        """None. Raises NotFound (ids)."""
        if wanted.ids:
            raise NotFound(OFF)
        return ()

    async def recalls(self, wanted: RecallFilter, /, *, scope: str) -> Sequence[SavedRecall]:
        """None. Raises NotFound (ids)."""
        if wanted.ids and not wanted.settlements:
            raise NotFound(OFF)
        return ()
