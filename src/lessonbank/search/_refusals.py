"""What an embedder failed at, and when it is asked again: texts it refuses, and a time in which it answers nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final, NamedTuple, cast

from lessonbank.contracts.records.ids import digest
from lessonbank.errors import ModelError

_REASON: Final = 200
"""Characters of a reason that are kept."""


class Refusal(NamedTuple):
    """A text that the embedder failed at, while it answered others."""

    text: str
    """Its digest: another text of the same lesson is asked for at once."""
    tries: int
    again: float
    """When it is asked for again, in seconds since 1970."""
    reason: str


@dataclass(frozen=True, slots=True)
class Refusals:
    """By id of an experience or a lesson: the texts of one scope and space that wait."""

    by_id: Mapping[str, Refusal] = field(default_factory=dict[str, Refusal])

    @classmethod
    def read(cls, setting: str | None, space: str, /) -> Refusals:
        """Read the refused texts of a space, from the setting that holds all spaces of a scope."""
        return cls({id: Refusal(*fields) for id, fields in _spaces(setting).get(space, {}).items()})

    def written(self, setting: str | None, space: str, /) -> str:
        """The setting, with these in the place of the space's."""
        return json.dumps({**_spaces(setting), space: self.by_id})

    def waits(self, id: str, text: str, /, *, now: float) -> bool:
        """Whether the embedder is not to be asked for it yet."""
        known = self.by_id.get(id)
        return known is not None and known.text == digest(text) and known.again > now

    def after(self, refused: Mapping[str, tuple[str, str]], /, *, tried: Collection[str], now: float) -> Refusals:
        """What waits once these were tried; `refused` has the text and the reason of each that failed, by id."""
        refusals = {id: known for id, known in self.by_id.items() if id not in tried}
        for id, (text, reason) in refused.items():
            known = self.by_id.get(id)
            tries = known.tries + 1 if known and known.text == digest(text) else 1
            refusals[id] = Refusal(digest(text), tries, now + text_pause(tries), reason[:_REASON])
        return Refusals(refusals)


def _spaces(setting: str | None) -> dict[str, dict[str, list[Any]]]:
    try:
        return cast("dict[str, dict[str, list[Any]]]", json.loads(setting or "{}"))
    except ValueError:
        return {}  # edited by hand or damaged: every text is tried again


def text_pause(tries: int, /) -> float:
    """Seconds until a refused text is asked for again: a minute, then four times as long each time, at most a day."""
    return min(60.0 * 4.0 ** min(tries - 1, 9), 86_400.0)


def outage_pause(failures: int, /) -> float:
    """Seconds for which an embedder that failed so often in a row is left alone: none at first, at most 10 minutes."""
    return 0.0 if failures < 2 else min(2.0 * 4.0 ** min(failures - 2, 9), 600.0)


@dataclass(slots=True)
class Outages:
    """How often in a row an embedder failed for a scope in this process."""

    _failures: dict[str, tuple[int, float, str, str]] = field(default_factory=dict[str, tuple[int, float, str, str]])

    def check(self, scope: str, /) -> None:
        """Raise ModelError while the embedder is left alone."""
        _, until, _, reason = self._failures.get(scope, (0, 0.0, "", ""))
        if (left := until - monotonic()) > 0:
            raise ModelError(f"{reason}; it is asked again in {left:.0f} s")

    def failed(self, scope: str, what: str, error: ModelError, /) -> None:
        """Note that the embedder failed once more. The same question again and again says nothing about others."""
        failures, _, last, _ = self._failures.get(scope, (0, 0.0, "", ""))
        failures += what != last
        self._failures[scope] = failures, monotonic() + outage_pause(failures), what, str(error)

    def over(self, scope: str, /) -> None:
        """Note that the embedder answered."""
        self._failures.pop(scope, None)
