"""The settings that each scope has for itself: all are declared here, so that a purge finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ScopeSetting:
    """A setting that each scope has for itself, under a key that ends with the scope's name."""

    prefix: str
    is_derived: bool = False
    """Whether it is made again from the records. Then it goes with every purge in the scope: it may name what went."""

    def of(self, scope: str, /) -> str:
        """The key of a scope."""
        return self.prefix + scope


REVIEW: Final = ScopeSetting("ledger/", is_derived=True)
"""What the last review of the evidence found."""
REFUSED: Final = ScopeSetting("refused_texts ", is_derived=True)
"""The texts that an embedder refuses."""
CONTESTS: Final = ScopeSetting("contests/")
"""Which older lessons the newer ones competed with, in banks of before: nobody reads it, and a purge finds it."""
COPIED: Final = ScopeSetting("copy.done ")
"""How far a copy of the scope from another store is."""
LOOKED_OVER: Final = "file.looked_over"
"""Which file was looked over for damage, and on which day. It belongs to no scope, and no copy takes it along."""
LOOKED_AT: Final = "file.looked_at"
"""Which file a process looks over, and since when; likewise."""
FILE_CLOCK: Final = "file.clock"
"""By how much the clock of a file differs from the one that counts since its machine started; likewise."""
ZEROED: Final = "file.zeroed"
"""That all who wrote to a file overwrote what they deleted, since it was made or written again; likewise."""
SCOPE_SETTINGS: Final = (REVIEW, REFUSED, CONTESTS, COPIED)


def keys_of(scope: str, /, *, derived: bool = False) -> list[str]:
    """The keys of all settings that name a scope; `derived`: only of those that are made again from its records."""
    return [setting.of(scope) for setting in SCOPE_SETTINGS if setting.is_derived or not derived]
