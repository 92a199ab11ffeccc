"""Recorded runs whose outcome is known, and a draw of them in which nothing tells the outcome."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lessonbank import Trajectory, importers
from lessonbank.errors import UsageError
from lessonbank.guard import one_line

DOMAINS: Final = ("general", "web", "code")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A run beside the truth about it."""

    run: Trajectory
    success: bool
    source: str
    """The file's name, without its endings."""
    domain: str
    """Which prompts fit it."""

    @property
    def hidden(self) -> Trajectory:
        """The run without what could tell how it ended: what stopped it, and what its file says beside the steps."""
        return self.run.model_copy(update={"error": None, "metadata": {}, "original": ()})


def read_labelled(named: Sequence[str], /, *, domain: str) -> list[Labelled]:
    """Every labelled run of the files; `web=FILE` says which prompts fit a file, else `domain` does.

    Raises:
        UsageError: no such domain, or no labelled run in a file.
    """
    found: list[Labelled] = []
    for name in named:
        own, path = _split(name, domain)
        labelled = list(_of_file(path, own))
        if not labelled:
            raise UsageError(f"{one_line(str(path))} holds no run with a known outcome: give runs with `success`")
        found += labelled
    return found


def _split(name: str, domain: str) -> tuple[str, Path]:
    prefix, sign, rest = name.partition("=")
    own, path = (prefix, rest) if sign and prefix in DOMAINS else (domain, name)
    if own not in DOMAINS:
        raise UsageError(f"there is no domain {one_line(own, limit=40)!r}: choose one of {', '.join(DOMAINS)}")
    return own, Path(path)


def _of_file(path: Path, domain: str) -> list[Labelled]:
    return [
        Labelled(entry.trajectory, entry.verdict.outcome == "success", path.name.partition(".")[0], domain)
        for entry in importers.read(path)
        if isinstance(entry, importers.Imported) and entry.verdict and entry.verdict.source == "ground_truth"
    ]


def drawn(labelled: Sequence[Labelled], /, *, size: int | None, seed: int) -> list[Labelled]:
    """At most `size` runs of each source, half of them successes, one for a task while there are enough tasks.

    They come in a random order: whoever reads them one after the other learns nothing by it. `None`: all of them.
    """
    chance = random.Random(seed)
    mixed = sorted(labelled, key=lambda one: one.run.id)
    chance.shuffle(mixed)
    chosen = [one for source in sorted({one.source for one in mixed}) for one in _half(mixed, source, size)]
    chance.shuffle(chosen)
    return chosen


def _half(mixed: Sequence[Labelled], source: str, size: int | None) -> list[Labelled]:
    own = [one for one in mixed if one.source == source]
    if size is None:
        return own
    seen: set[str] = set()
    first = [one for one in own if one.run.task not in seen and not seen.add(one.run.task)]
    taken = {one.run.id for one in first}
    ordered = first + [one for one in own if one.run.id not in taken]
    successes = [one for one in ordered if one.success][: size // 2]
    failures = [one for one in ordered if not one.success][: size - size // 2]
    return successes + failures
