"""What a person wants to see of two runs through one world: the difference, some lessons, one block as it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lessonbank.contracts.records import Lesson

from .runner import Episode
from .statistics import Interval, paired_bootstrap


@dataclass
class Story:
    """The same stream of tasks without and with memory, as it unfolds."""

    without: list[Episode] = field(default_factory=list[Episode])
    remembering: list[Episode] = field(default_factory=list[Episode])

    @property
    def difference(self) -> Interval:
        """In success rate, paired by task."""
        return paired_bootstrap(won(self.remembering), won(self.without))

    @property
    def lessons(self) -> list[Lesson]:
        """Every lesson written, in order."""
        return [lesson for e in self.remembering if e.learned for lesson in e.learned.lessons]

    @property
    def notes(self) -> list[str]:
        """What went otherwise than planned while learning, each said once."""
        notes = (note for e in self.remembering if e.learned for note in e.learned.notes)
        return list(dict.fromkeys(note for note in notes if note.level != "info"))

    def picked_lessons(self, most: int = 3) -> list[Lesson]:
        """The first lesson of each kind and heading, those from failure first."""
        first = {(lesson.kind, lesson.title.split(":")[0]): lesson for lesson in reversed(self.lessons)}
        chosen = sorted(first.values(), key=lambda lesson: (lesson.kind != "guardrail", lesson.created_at))
        guards, others = [i for i in chosen if i.kind == "guardrail"], [i for i in chosen if i.kind != "guardrail"]
        return [*guards[: most - bool(others)], *others][:most]

    def example(self) -> Episode | None:
        """A task done with memory text: the most direct that came out well and showed a lesson from a failure."""
        shown = [e for e in self.remembering if e.memory]
        well = [e for e in shown if e.success]
        from_failures = [lesson.content for lesson in self.lessons if lesson.kind == "guardrail"]
        taught = [e for e in well if any(content in e.memory for content in from_failures)]
        return min(taught or well or shown, key=lambda e: (e.presses, len(e.memory)), default=None)


def won(episodes: Sequence[Episode], /) -> list[float]:
    """1.0 for every task done, else 0.0."""
    return [float(e.success) for e in episodes]


def rate(episodes: Sequence[Episode], /, *, last: int | None = None) -> float:
    """The share of tasks done, over all or over the `last` ones."""
    results = won(episodes[-last:] if last else episodes)
    return sum(results) / len(results) if results else 0.0
