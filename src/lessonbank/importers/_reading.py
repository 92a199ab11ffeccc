"""What every importer shares: files read line by line, values that may be anything, and runs with stable ids."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from lessonbank._replacing import belongs_to_database
from lessonbank.errors import FormatError
from lessonbank.guard.quote import quoted
from lessonbank.learning.judging import SUCCESS_AT, outcome_of
from lessonbank.messages import trajectory_from
from lessonbank.types import Json, Outcome, Trajectory, Usage, Verdict

LINE_LIMIT = 64 * 2**20
"""Bytes of one line; a longer one is skipped, because it has to fit in memory several times over."""
DOCUMENT_LIMIT = 512 * 2**20
"""Bytes (unpacked) of a file that is one JSON value and has to be read whole."""
NOT_A_BANK = "it is a bank, or a part of one, and no file of runs"
_SAMPLE = 20
_UNREADABLE = "the file cannot be read further"
# UTF-32's little-endian mark begins with UTF-16's, so it comes first.
_MARKS = (
    *((mark, "utf-32") for mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    *((mark, "utf-16") for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
_SUFFIXES = (".gz", ".json", ".jsonl", ".ndjson", ".traj")
Data: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Imported:
    """One run out of a file."""

    trajectory: Trajectory
    verdict: Verdict | None = None
    """What the file itself says of the outcome; `None` where it does not."""
    path: Path = Path()
    line: int = 1
    """The line, or the number of the entry in a file that is one JSON value; from 1."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """One line, entry or file that gives no run, and why."""

    path: Path
    line: int
    reason: str
    unknown: bool = False
    """The whole file can be read, and holds no runs in a known format. Reported only for files found in a folder."""


Entry: TypeAlias = Imported | Skipped


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON value of a file, with the number of its line."""

    line: int
    value: Json


@dataclass(frozen=True, slots=True)
class Run:
    """What a format's importer found: the messages, and what the file says about the run."""

    messages: list[Json]
    source: str
    run_id: str
    task_id: str = ""
    task: str | None = None
    system: str = ""
    model: str | None = None
    verdict: Verdict | None = None
    error: str | None = None
    answer: str | None = None
    usage: Usage = field(default_factory=Usage)
    verbatim: bool = False
    """The messages are the file's own, so that the very same can be rebuilt."""


@dataclass(frozen=True, slots=True)
class Format:
    """A trajectory format: how it is told from others, and how it is read."""

    name: str
    description: str
    matches: Callable[[Json, str], bool]
    """Whether a value of the file (and the file's name) show this format."""
    read: Callable[[Source], Iterator[Entry]]


class Source:
    """A file, plain or gzipped, as a stream of JSON values. A file that is one value is read once and kept."""

    def __init__(self, path: Path, /, *, success_at: float = SUCCESS_AT) -> None:
        self.path = path
        self.success_at = success_at
        """The reward from which a run of this file is a success, where the file does not say so itself."""
        self.name = path.name.removesuffix(".gz")

    @property
    def stem(self) -> str:
        """The file's name without its endings: the same for the file and its gzipped copy."""
        name = self.path.name
        while name.endswith(_SUFFIXES):
            name = name[: name.rindex(".")]
        return name or self.path.name

    @property
    def folder(self) -> Path:
        """Where the file lies, by its full path."""
        return self.path.resolve().parent

    def rows(self) -> Iterator[Row | Skipped]:
        """Every JSON value: one for each line, or the one value the file is."""
        if self._document is not None:
            yield self._document
            return
        for number, line in self.lines():
            yield self._row(number, line)

    def lines(self) -> Iterator[tuple[int, bytes | str]]:
        """Numbered lines that are not blank; text in place of bytes says why a line could not be read."""
        number = 0
        try:
            with self._open() as file:
                while raw := file.readline(LINE_LIMIT + 1):
                    number += 1
                    if len(raw) > LINE_LIMIT:
                        if not raw.endswith(b"\n"):
                            _finish_line(file)
                        yield number, f"the line is longer than {LINE_LIMIT >> 20} MB"
                    elif raw.strip():
                        yield number, raw
        except (EOFError, OSError, zlib.error) as error:
            yield number + 1, f"{_UNREADABLE}: {error}"

    def _row(self, number: int, line: bytes | str) -> Row | Skipped:
        if isinstance(line, str):
            return Skipped(self.path, number, line)
        try:
            return Row(number, parse(line))
        except ValueError as error:
            return Skipped(self.path, number, f"not valid JSON: {_one_line(error)}")

    @cached_property
    def _document(self) -> Row | Skipped | None:
        """The whole file as one value; `None` when its lines are values of their own."""
        first = next(self.lines(), None)
        if first is None or not isinstance(self._row(*first), Skipped):
            return None
        try:
            whole = self._whole()
            if len(whole) > DOCUMENT_LIMIT:
                return Skipped(self.path, 1, f"one JSON value of more than {DOCUMENT_LIMIT >> 20} MB")
            return Row(1, parse(whole))
        except (EOFError, OSError, zlib.error, ValueError) as error:
            if any(self._holds_data(line) for _, line in islice(self.lines(), _SAMPLE)):
                return None
            why = "not valid JSON" if isinstance(error, ValueError) else _UNREADABLE
            return Skipped(self.path, getattr(error, "lineno", 1), f"{why}: {_one_line(error)}")

    def _whole(self) -> bytes:
        with self._open() as file:
            return file.read(DOCUMENT_LIMIT + 1)

    def _holds_data(self, line: bytes | str) -> bool:
        row = self._row(1, line)
        return isinstance(row, Row) and isinstance(row.value, dict | list) and bool(row.value)

    @cached_property
    def _is_bank(self) -> bool:
        return belongs_to_database(self.path)

    def _open(self) -> BinaryIO:
        if self._is_bank:  # whoever else opens and closes it drops the locks that SQLite holds for this process
            raise OSError(NOT_A_BANK)
        with self.path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return _as_utf8(cast("io.BufferedReader", gzip.open(self.path, "rb")) if packed else self.path.open("rb"))


class _Recoded(io.BufferedIOBase):
    """A file of another encoding as UTF-8. Sizes count characters: a piece may have up to four times the bytes."""

    def __init__(self, file: io.BufferedReader, encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n")

    def read(self, size: int | None = -1, /) -> bytes:
        return self._text.read(size).encode()

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._text.readline(-1 if size is None else size).encode()

    def close(self) -> None:
        self._text.close()
        super().close()


def _as_utf8(file: io.BufferedReader) -> BinaryIO:
    """`file`, or where it begins with the mark of another encoding (some shells write UTF-16), the same as UTF-8."""
    first = file.peek(4)
    encoding = next((name for mark, name in _MARKS if first.startswith(mark)), None)
    return cast("BinaryIO", file if encoding is None else _Recoded(file, encoding))


def _finish_line(file: BinaryIO) -> None:
    while (chunk := file.readline(2**20)) and not chunk.endswith(b"\n"):
        pass


def parse(raw: bytes | str, /) -> Json:
    """The JSON value in `raw`; bytes that are no UTF-8 are replaced.

    Raises:
        ValueError: no JSON, nested too deep, or a number of thousands of digits.
    """
    text = raw.decode("utf-8-sig", "replace") if isinstance(raw, bytes) else raw
    try:
        return cast("Json", json.loads(text))
    except RecursionError:
        raise ValueError("nested too deep") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise ValueError("a number of thousands of digits") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def each(
    source: Source,
    /,
    *,
    format: str,
    split: Callable[[Json], Iterable[Json]],
    build: Callable[[Json, Source, int], Run],
) -> Iterator[Entry]:
    """Every run of a file: `split` finds the entries in a value, `build` reads one. Keeps one value at a time."""
    for row in source.rows():
        if isinstance(row, Skipped):
            yield row
            continue
        for number, entry in enumerate(split(row.value), start=row.line):
            yield attempt(source, number, format, lambda e=entry, n=number: build(e, source, n))


def attempt(source: Source, line: int, format: str, build: Callable[[], Run], /) -> Entry:
    """The run that `build` makes, or the reason why there is none."""
    try:
        run = build()
        return Imported(_trajectory(run, format), run.verdict, source.path, line)
    except FormatError as error:
        return Skipped(source.path, line, str(error))


def _trajectory(run: Run, format: str) -> Trajectory:
    """The run with an id that the same run of the same file always gets."""
    made = _made(run)
    named = {"source": run.source, "run_id": run.run_id, "task_id": run.task_id, "model": run.model}
    known = {key: storable(value) for key, value in named.items() if value}
    identity = [format, run.source, run.run_id, run.task_id, made.task, run.system, run.messages]
    update = {
        "id": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32],
        "answer": made.answer if run.answer is None else storable(run.answer),
        "error": None if run.error is None else storable(run.error),
        "usage": run.usage,
        "metadata": known,
        "original": made.original if run.verbatim else (),
    }
    return made.model_copy(update=update)


def _made(run: Run) -> Trajectory:
    if not run.messages:
        raise FormatError("the run has no messages")
    try:
        return trajectory_from({"system": run.system, "messages": run.messages}, task=run.task)
    except FormatError as error:
        if str(error).startswith("messages["):
            raise
        raise FormatError("the run does not say what its task was") from None


def truth(
    *, success: Json = None, reward: Json = None, reason: Json = None, success_at: float = SUCCESS_AT
) -> Verdict | None:
    """The verdict a file states: `success` where it says so (also as 1 or 0), else a reward of `success_at` or more.

    A reward that contradicts `success` is left out: the bank would refuse the two together.

    Raises:
        FormatError: `success` or `reward` is a value of another type.
    """
    said, points = stated(success), _reward(reward)
    if said is None and points is None:
        return None
    measured = None if points is None else outcome_of(points, success_at=success_at)
    outcome = said or measured or "failure"
    why = storable(words(reason))
    return Verdict(outcome=outcome, reward=points if measured == outcome else None, reason=why, source="ground_truth")


def stated(value: Json, /) -> Outcome | None:
    """What a field such as `success` says: true or 1, false or 0, or null (some write NaN) for unknown.

    Raises:
        FormatError: it is anything else.
    """
    if _is_missing(value):
        return None
    if value not in (True, False):
        raise FormatError(f"success is {_value(value)}: write true, false, or null where it is not known")
    return "success" if value else "failure"


def _reward(value: Json) -> float | None:
    points = number(value)
    if points is None and not _is_missing(value):
        raise FormatError(f"reward is {_value(value)}: write a finite number, or null where it is not known")
    return points


def _is_missing(value: Json) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _value(value: Json) -> str:
    """A value as the file writes it, if it is short enough to be one."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return quoted(json.dumps(value[:200] if isinstance(value, str) else value, ensure_ascii=False), limit=60)


def storable(text: str, /) -> str:
    """`text` without lone surrogates, which no store can encode."""
    return text.encode("utf-8", "replace").decode()


def mapping(value: Json, /) -> Data:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Json, /) -> list[Json]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def words(value: Json, /) -> str:
    """`value` if it is a text (or a whole number, as ids sometimes are), else an empty one."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return value if isinstance(value, str) else str(value)


def number(value: Json, /) -> float | None:
    """`value` if it is a finite number, else `None`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count(value: Json, /) -> int:
    """`value` as a number of things: 0 when it is not one."""
    return int(min(max(number(value) or 0, 0), 2**53))


def at(value: Json, /, *keys: str) -> Json:
    """What lies under a path of keys, or `None` where the path ends early."""
    for key in keys:
        value = mapping(value).get(key)
    return value


def messages_of(value: Json, /) -> list[Json]:
    """The `messages` of an entry.

    Raises:
        FormatError: it has none.
    """
    messages = mapping(value).get("messages")
    if not isinstance(messages, list):
        raise FormatError("the entry has no list of messages")
    return messages


def without(message: Json, /, *keys: str) -> Json:
    """A message without bookkeeping fields and those that are null."""
    if not isinstance(message, dict):
        return message
    return {key: value for key, value in message.items() if value is not None and key not in keys}


def environment_after_agent(messages: list[Json], /) -> list[Json]:
    """The same, with what stands in the user's role after the agent's first turn said by the environment.

    Text-mode agents get their observations in the user's role; nobody spoke.
    """
    acted = False
    told: list[Json] = []
    for message in messages:
        role = mapping(message).get("role")
        acted = acted or role == "assistant"
        told.append({**mapping(message), "role": "environment"} if acted and role == "user" else message)
    return told


_ISSUES = (
    ("<pr_description>", "</pr_description>"),
    ("<issue_description>", "</issue_description>"),
    ("<uploaded_issue>", "</uploaded_issue>"),
    ("ISSUE:\n", "\nINSTRUCTIONS:"),
    ("Please solve this issue: ", "\n\nYou can execute bash commands"),
)
_LEAD = "Consider the following PR description:"


def issue_in(text: str, /) -> str:
    """The issue a coding agent was given, out of the prompt that surrounds it; all of the prompt if unmarked."""
    for opening, closing in _ISSUES:
        start = text.find(opening)
        end = text.find(closing, start + len(opening))
        if start >= 0 and end > start:
            return text[start + len(opening) : end].strip().removeprefix(_LEAD).strip() or text
    return text
