"""The store of a bank whose memory is switched off: it is empty, and says why it has no record."""

from __future__ import annotations

from typing import NoReturn

from lessonbank.contracts.settings import OFF
from lessonbank.errors import NotFound

from . import SqliteStore


class SwitchedOffStore(SqliteStore):
    """Holds nothing. See `Store` for what its calls promise."""

    async def get(self, id: str, /, *, scope: str) -> NoReturn:
        """Raise NotFound."""
        raise NotFound(OFF)

    async def owner(self, lesson_id: str, /, *, scope: str) -> NoReturn:
        """Raise NotFound."""
        raise NotFound(OFF)

    async def trajectory(self, id: str, /, *, scope: str) -> NoReturn:
        """Raise NotFound."""
        raise NotFound(OFF)

    async def recall(self, id: str, /, *, scope: str) -> NoReturn:
        """Raise NotFound."""
        raise NotFound(OFF)

    async def get_run(self, id: str, /, *, scope: str) -> NoReturn:
        """Raise NotFound."""
        raise NotFound(OFF)
