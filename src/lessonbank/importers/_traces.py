"""Makes runs of what tracing services keep: calls of models, in any order, each with the trace it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from lessonbank.contracts.records import Json, Usage
from lessonbank.errors import FormatError
from lessonbank.text.bounded_json import parse

from ._conversation import Conversation
from ._files import Skipped, Source
from ._reading import Data, Entry, Format, Run, at, attempt, listing, mapping, words


class Record(Protocol):
    """What says to which trace it belongs."""

    @property
    def trace(self) -> str:
        """The id of the trace."""
        ...


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Step:
    """One record of a trace."""

    trace: str
    start: str
    """A time that sorts as text."""
    is_call: bool
    """Whether it is a call of a model."""
    is_root: bool
    sent: Json = None
    back: Json = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    error: str = ""


def traces(
    name: str,
    description: str,
    matches: Callable[[Json, str], bool],
    steps_of: Callable[[Json], Iterable[Step]],
    /,
) -> Format:
    """A format of which each trace in a file is a run; `steps_of` reads the records in a value."""

    def read(source: Source) -> Iterator[Entry]:
        found = yield from by_trace(source, steps_of, nothing=f"it holds no record of {name}")
        for trace, (line, steps) in found.items():
            yield attempt(source, line, name, lambda t=trace, s=steps: _run(t, s, name))

    return Format(name, description, matches, read)


def by_trace(
    source: Source, records: Callable[[Json], Iterable[R]], /, *, nothing: str
) -> Generator[Entry, None, dict[str, tuple[int, list[R]]]]:
    """The records of each trace, which may stand anywhere in the file, with a line of the first one.

    Gives out the lines that cannot be read, and with the reason `nothing` those that hold no record.
    """
    found: dict[str, tuple[int, list[R]]] = {}
    for row in source.rows():
        told = [] if isinstance(row, Skipped) else list(records(row.value))
        if isinstance(row, Skipped):
            yield row
        elif not told:
            yield Skipped(source.path, row.line, nothing)
        for one in told:
            found.setdefault(one.trace, (row.line, []))[1].append(one)
    return found


def _run(trace: str, steps: Sequence[Step], name: str) -> Run:
    calls = sorted((step for step in steps if step.is_call), key=lambda step: step.start)
    root = next((step for step in steps if step.is_root), None)
    talk = Conversation()
    for call in calls or ([root] if root else []):
        talk.add_request(messages_in(call.sent, "user"), messages_in(call.back, "assistant"))
    if not talk.messages:
        raise FormatError("the trace holds no messages: was the recording of inputs and outputs switched off?")
    return Run(
        messages=talk.messages,
        source=name,
        run_id=trace,
        model=next((call.model for call in calls if call.model), None),
        error=(root.error if root else "") or None,
        usage=sum((call.usage for call in calls), Usage()),
    )


def messages_in(value: Json, role: str, /) -> list[Json]:
    """The messages in what was sent or came back, however it was wrapped; a bare text is one message of `role`."""
    value = decoded(value)
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    if isinstance(value, list):
        inner = value[0] if len(value) == 1 and isinstance(value[0], list) else value
        return [one for one in inner if isinstance(one, dict)]
    return _unwrapped(mapping(value), role)


def _unwrapped(row: Data, role: str) -> list[Json]:
    if "role" in row or "kwargs" in row:
        return [row]
    if choices := listing(row.get("choices")):
        return [at(one, "message") for one in choices if at(one, "message")][:1]
    if batches := listing(row.get("generations")):
        first = batches[0][0] if isinstance(batches[0], list) and batches[0] else batches[0]
        return messages_in(at(first, "message") or at(first, "text"), role)
    for name in ("messages", "message", "input", "output", "text", "content"):
        if row.get(name):
            return messages_in(row[name], role)
    return []


def decoded(value: Json, /) -> Json:
    """Some exports write JSON as text."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return parse(value)
    except ValueError:
        return value


def first_of(row: Data, /, *names: str) -> Json:
    """The first of some fields that is there."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def name_in(row: Data, /, *names: str) -> str:
    """The same, as a text."""
    return words(first_of(row, *names))
