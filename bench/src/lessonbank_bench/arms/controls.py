"""Controls: text of the same size without the sense, or without the choice, that the bank's text has."""

from __future__ import annotations

import random

from lessonbank.contracts.lesson_block import words_at
from lessonbank.contracts.records import Learned, Lesson, Trajectory
from lessonbank.demo import NoMemory
from lessonbank.errors import UsageError
from lessonbank.text.rendering import width

from ._interface import Setting, lesson_code
from .bank import BankMemory
from .options import Options

_PROSE = (
    "Salt water lifts bread dough only slowly, so a baker lets it rest overnight under linen.",
    "Tides follow the moon, and shallow bays feel them hours later than deep ones.",
    "Rye keeps longer than wheat because its crumb holds more moisture.",
    "An oboe gives the pitch to an orchestra, since its tone drifts least.",
    "Limestone dissolves in rain, drop by drop, until caves grow under quiet meadows.",
    "Swallows gather on wires in autumn and leave within a few warm evenings.",
    "Glaze cracks where clay shrinks faster than glass during cooling.",
    "Snow is bright because countless edges of ice scatter every colour alike.",
)
_BY_LENGTH = ("", "a", "by", "owl", "moss", "amber", "willow", "lantern", "hedgehog", "snowflake", "waterfalls")


class ShuffledMemory(BankMemory):
    """The bank's text with its words in random order: the same tokens, no sense."""

    def __init__(self, setting: Setting, options: Options | None = None, /) -> None:
        super().__init__(setting, options)
        self._draw = random.Random(f"shuffled {setting.seed}")

    def recall(self, goal: str, /) -> str:
        words = super().recall(goal).split()
        self._draw.shuffle(words)
        return " ".join(words)

    @property
    def shown(self) -> tuple[str, ...]:
        """None: what is shown is no lesson."""
        return ()


class RandomMemory(BankMemory):
    """As many experiences as the bank would show, drawn at random from those it holds; each in a frame of its own."""

    def __init__(self, setting: Setting, options: Options | None = None, /) -> None:
        super().__init__(setting, options)
        self._draw = random.Random(f"random {setting.seed}")
        self._tasks: list[str] = []
        self._drawn: tuple[Lesson, ...] = ()

    def recall(self, goal: str, /) -> str:
        drawn = self._draw.sample(self._tasks, min(self.limit, len(self._tasks)))
        found = [self.bank.retrieve(task, limit=1) for task in drawn]
        self._drawn = tuple(lesson for recall in found for lesson in recall.shown)
        return "\n\n".join(recall.text for recall in found)

    @property
    def shown(self) -> tuple[str, ...]:
        """Of all that were drawn."""
        return tuple(lesson_code(lesson.title, lesson.content) for lesson in self._drawn)

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        self._tasks.append(run.task)
        return super().learn(run, success=success)


class PlaceboMemory(BankMemory):
    """The frame, the lines and the tokens of what the bank would show now, with sentences about something else.

    The bank behind it learns from this arm's own runs as any bank does, so its text is as long, as often and at the
    same moments as memory would be for this agent; only what it says is of no use.
    """

    def __init__(self, setting: Setting, options: Options | None = None, /) -> None:
        super().__init__(setting, options)
        self._draw = random.Random(f"placebo {setting.seed}")

    def recall(self, goal: str, /) -> str:
        return irrelevant(super().recall(goal), self._draw)

    @property
    def shown(self) -> tuple[str, ...]:
        """None: what is shown is no lesson."""
        return ()


class MirrorMemory(NoMemory):
    """What the arm `lessonbank` shows for the same task, with sentences about something else: as long, line by line.

    It keeps no bank, so a model that writes lessons is asked for one arm only.

    Raises:
        UsageError: there is no arm `lessonbank` before it.
    """

    def __init__(self, setting: Setting, /) -> None:
        if setting.beside is None:
            raise UsageError("the arm 'mirror' shows as much as the arm 'lessonbank': name that one before it")
        self._beside = setting.beside
        self._draw = random.Random(f"mirror {setting.seed}")

    def recall(self, goal: str, /) -> str:
        return irrelevant(self._beside(goal), self._draw)


def irrelevant(text: str, draw: random.Random, /) -> str:
    """`text` with what its lessons say replaced by prose of the same width; frame, numbers and labels stay."""
    return "\n".join(_replaced(line, draw) for line in text.split("\n"))


def _replaced(line: str, draw: random.Random) -> str:
    at = words_at(line)
    return line if at is None else line[:at] + _prose(width(line[at:]), draw)


def _prose(size: int, draw: random.Random) -> str:
    """Sentences of exactly `size` bytes, so that tokens are matched whatever counts them by length."""
    told = ""
    while len(told) < size:
        for word in draw.choice(_PROSE).split():
            if len(told) + len(word) + 1 > size - 1:
                return told + _last(size - len(told))
            told += word + " "
    return told


def _last(size: int) -> str:
    return _BY_LENGTH[size] if size < len(_BY_LENGTH) else (_BY_LENGTH[-1] * (size // 10 + 1))[:size]
