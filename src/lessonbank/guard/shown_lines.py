"""Takes out of runs what memory had shown to them: lessons, which stand in a run as if they were its own words."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.lesson_block import codes_in, erase_lines

_ERASED: Final = "[erased]"


@dataclass(frozen=True, slots=True)
class ShownBlocks:
    """What some receipts showed."""

    codes: Collection[str] = ()
    """The codes with which the lines of their blocks begin."""
    texts: Collection[str] = ()
    """The whole text of those that have no code, as JSON has it."""

    @classmethod
    def of(cls, texts: Iterable[str], /) -> ShownBlocks:
        """From the texts of receipts."""
        by_code = {text: codes_in([text]).most_common(1) for text in texts if text.strip()}
        plain = [json.dumps(text, ensure_ascii=False)[1:-1] for text, codes in by_code.items() if not codes]
        plain.sort(key=len, reverse=True)  # one may stand in another
        return cls({codes[0][0] for codes in by_code.values() if codes}, plain)

    def __bool__(self) -> bool:
        return bool(self.codes or self.texts)

    def without(self, run: str, /) -> str:
        """The JSON of a run without it."""
        if self.codes:
            run = erase_lines(run, self.codes, instead=_ERASED)
        for text in self.texts:
            run = run.replace(text, _ERASED)
        return run
