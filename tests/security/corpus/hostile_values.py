"""Values that no argument is meant to be, or only by accident."""

from __future__ import annotations

import decimal
import fractions
import math
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Never

import numpy as np

from lessonbank.contracts.records import Lesson, Recall, Trajectory

DEEP = 50_000
"""Levels of nesting: far more than the interpreter's stack holds."""


def _raise(self: object, *_: object, **__: object) -> Never:
    raise RuntimeError("no")


_DUNDERS = (
    "str repr format bytes hash bool len iter contains getitem call eq ne lt le gt ge int float index complex round"
    " add radd sub rsub mul rmul neg abs enter exit fspath get set delete await aiter reversed copy deepcopy"
)
Raising = type("Raising", (), {f"__{name}__": _raise for name in _DUNDERS.split()})


class EvilText(str):
    """A text that says nothing of itself."""

    __str__ = __repr__ = __len__ = __iter__ = __format__ = __eq__ = __hash__ = __bool__ = _raise  # type: ignore[assignment]
    strip = split = encode = lower = casefold = startswith = partition = isprintable = _raise  # type: ignore[assignment]


class EvilObject:
    """It raises when it is asked for anything, its class included."""

    __getattribute__ = _raise


class EvilClass:
    """It raises when it is asked for its class, as `isinstance` does."""

    __class__ = property(_raise)  # type: ignore[assignment]


class Liar:
    """It says that it is a text."""

    __class__ = property(lambda self: str)  # type: ignore[assignment]


class EvilFunction:
    """It can be called, and raises when it is asked for anything else."""

    __getattribute__ = _raise

    def __call__(self, *_: object, **__: object) -> None:
        """Do nothing."""


class EvilDict(dict[str, Any]):
    """A dictionary that cannot be read."""

    __iter__ = __len__ = __getitem__ = __contains__ = __eq__ = __bool__ = _raise  # type: ignore[assignment]
    items = keys = values = get = _raise  # type: ignore[assignment]


class EvilNumber(int):
    """A number that cannot be compared or shown."""

    __str__ = __repr__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __index__ = __eq__ = __hash__ = _raise  # type: ignore[assignment]


class EvilList(list[Any]):
    """A list that ends badly."""

    def __iter__(self) -> Iterator[Any]:
        yield {"role": "user", "content": "x"}
        raise RuntimeError("no more")


class EvilMapping(Mapping[str, Any]):
    """A mapping that cannot be read."""

    __getitem__ = __iter__ = __len__ = _raise  # type: ignore[assignment]


class Colour(Enum):
    """An enum."""

    RED = "\x1b[31m"


@dataclass
class Point:
    """A dataclass."""

    x: object = None


_WRAPS: dict[type, Callable[[Any], Any]] = {list: lambda v: [v], dict: lambda v: {"a": v}, tuple: lambda v: (v,)}


@cache  # each takes 30 ms to make, and thousands of calls are tried with it
def _deep(kind: type) -> Any:
    value: Any = "x"
    for _ in range(DEEP):
        value = _WRAPS[kind](value)
    return value


def _circle() -> tuple[Any, Any]:
    one: list[Any] = []
    one.append(one)
    other: dict[str, Any] = {}
    other["self"] = other
    return one, other


def _strange_name() -> object:
    return type("\x1b[31m" + "N" * 2000 + "\n", (), {})()


VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "true": lambda: True,
    "false": lambda: False,
    "zero": lambda: 0,
    "one": lambda: 1,
    "minus": lambda: -1,
    "half": lambda: 0.5,
    "two to 63": lambda: 2**63,
    "400 digits": lambda: 10**400,
    "minus 400 digits": lambda: -(10**400),
    "5000 digits": lambda: 10**5000,
    "nan": lambda: math.nan,
    "infinity": lambda: math.inf,
    "minus infinity": lambda: -math.inf,
    "largest float": lambda: 1.7e308,
    "smallest float": lambda: 5e-324,
    "empty": lambda: "",
    "blank": lambda: " \t\n",
    "letter": lambda: "x",
    "nul": lambda: "a\x00b",
    "surrogate": lambda: "a\ud800b",
    "long": lambda: "x" * 100_000,
    "terminal": lambda: "\x1b[31mred\x1b[0m\r\n\u202eabc\x9b31m",
    "lines": lambda: "a\nb\n" * 300,
    "up": lambda: "../../etc/passwd",
    "bytes": lambda: b"\xff\x00",
    "bytearray": lambda: bytearray(b"x"),
    "memoryview": lambda: memoryview(b"x"),
    "empty list": lambda: [],
    "lists": lambda: [[], []],
    "list of numbers": lambda: [1, 2, 3],
    "list of texts": lambda: ["a", "b\x00"],
    "message": lambda: [{"role": "user", "content": "hello"}],
    "deep list": lambda: _deep(list),
    "deep dict": lambda: _deep(dict),
    "deep tuple": lambda: _deep(tuple),
    "list circle": lambda: _circle()[0],
    "dict circle": lambda: _circle()[1],
    "empty dict": lambda: {},
    "dict of numbers": lambda: {1: 2},
    "dict of nan": lambda: {"a": math.nan},
    "dict of objects": lambda: {"a": object()},
    "dict of deep": lambda: {"a": _deep(list)},
    "dict of 5000 digits": lambda: {"a": 10**5000},
    "dict of control characters": lambda: {"\x1b[31m\x00": "\ud800"},
    "messages of numbers": lambda: {"messages": 5, "system": 7},
    "set": lambda: {1, "a"},
    "object": lambda: object(),
    "strange name": lambda: _strange_name(),
    "raising": lambda: Raising(),
    "evil object": lambda: EvilObject(),
    "evil class": lambda: EvilClass(),
    "liar": lambda: Liar(),
    "evil function": lambda: EvilFunction(),
    "evil dict": lambda: EvilDict(a=1),
    "list of evil": lambda: [EvilObject(), EvilClass(), Liar()],
    "dict of evil": lambda: {"a": EvilObject(), "messages": [EvilObject()], "judge": EvilObject()},
    "evil text": lambda: EvilText("abc"),
    "evil number": lambda: EvilNumber(3),
    "evil list": lambda: EvilList([1]),
    "evil mapping": lambda: EvilMapping(),
    "generator": lambda: (number for number in range(3)),
    "function": lambda: lambda: None,
    "class": lambda: int,
    "module": lambda: types,
    "naive time": lambda: datetime(2020, 1, 1),
    "first time": lambda: datetime.min.replace(tzinfo=UTC),
    "last time": lambda: datetime.max.replace(tzinfo=UTC),
    "day": lambda: date(2020, 1, 1),
    "delta": lambda: timedelta(days=1),
    "decimal": lambda: decimal.Decimal("NaN"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "complex": lambda: 1 + 2j,
    "array": lambda: np.array([1.0, 2.0]),
    "array of objects": lambda: np.array([object(), None], dtype=object),
    "empty array": lambda: np.array([]),
    "numpy float": lambda: np.float64(0.5),
    "numpy whole": lambda: np.int64(3),
    "path of nul": lambda: Path("a\x00b"),
    "root": lambda: Path("/"),
    "long path": lambda: Path("x" * 300),
    "longer path": lambda: Path("y/" * 4000),
    "nobody's home": lambda: "~nobody-of-this-name/x",
    "enum": lambda: Colour.RED,
    "dataclass": lambda: Point(),
    "error": lambda: ValueError("\x1b[31m"),
    "ellipsis": lambda: ...,
    "range": lambda: range(3),
    "uuid": lambda: uuid.UUID(int=1),
    "run": lambda: Trajectory(task="another"),
    "blank run": lambda: Trajectory.model_construct(task=5, steps=7, id=None, metadata=3),
    "recall": lambda: Recall(scope="other", task="x"),
    "blank recall": lambda: Recall.model_construct(id=5, task=None, scope=3),
    "lesson": lambda: Lesson(title="t", content="c"),
}
"""What makes each value, by its name: some are used up by a call, and some are large."""
