"""Makes runs of what tracing services keep: calls of models, in any order, each with the trace it belongs to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeAlias, TypeVar

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Json, Usage
from lessonbank.errors import FormatError
from lessonbank.text.messages import first_request, trajectory_from

from ._account import unread
from ._conversation import Conversation, mark_errors
from ._files import Skipped, Source
from ._payloads import Payloads, Waiting, decoded, is_nothing, labelled, result_text
from ._reading import Entry, Format, Run, at, attempt, mapping, tool_result, words


class Record(Protocol):
    """What says to which trace it belongs."""

    @property
    def trace(self) -> str:
        """The id of the trace."""
        ...


R = TypeVar("R", bound=Record)
Exchange: TypeAlias = tuple[list[Json], list[Json]]
"""What a request was sent and what came back."""


def instant(text: str, /) -> str:
    """A time so that it sorts as text, whatever its zone and the digits of its second; any other text as it is."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (OverflowError, ValueError):
        return text
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f} {text}"


@dataclass(frozen=True, slots=True)
class Step:
    """One record of a trace."""

    trace: str
    start: str
    """A time that sorts as text."""
    is_call: bool
    """Whether it is a call of a model."""
    is_root: bool
    is_tool: bool = False
    is_trace: bool = False
    """Whether it is what the trace as a whole was asked and gave."""
    id: str = ""
    parent: str = ""
    name: str = ""
    call_id: str = ""
    """The id of the call that a tool's record is of, where it says so."""
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
        groups = yield from by_trace(source, steps_of, nothing=f"it holds no record of {name}")
        for trace, (line, steps) in groups.items():
            yield attempt(source, line, name, lambda t=trace, s=steps: _run(t, s, name))

    return Format(name, description, matches, read)


def by_trace(
    source: Source, records: Callable[[Json], Iterable[R]], /, *, nothing: str
) -> Generator[Entry, None, dict[str, tuple[int, list[R]]]]:
    """The records of each trace, which may stand anywhere in the file, with a line of the first one.

    Gives out the lines that cannot be read, and with the reason `nothing` those that hold no record.
    """
    groups: dict[str, tuple[int, list[R]]] = {}
    for row in source.rows():
        batch = [] if isinstance(row, Skipped) else list(records(row.value))
        if isinstance(row, Skipped):
            yield row
        elif not batch:
            yield Skipped(source.path, row.line, nothing)
        for record in batch:
            groups.setdefault(record.trace, (row.line, []))[1].append(record)
    return groups


def _run(trace: str, steps: Sequence[Step], name: str) -> Run:
    root = next((step for step in steps if step.is_root), None)
    payloads, talk = Payloads(), Conversation()
    calls = _told_once(sorted((step for step in steps if step.is_call), key=lambda step: step.start), payloads)
    for sent, back in calls or ([_messages_of(root, payloads)] if root else []):
        talk.add_request(sent, back)
    if not talk.messages:
        raise FormatError(_nothing(steps, payloads))
    asked = [message for step in steps if step.is_trace for message in _asked(step)]
    mark_errors(talk.messages, {step.call_id for step in steps if step.is_tool and step.error} - {""})
    left = _add_results(talk.messages, sorted((s for s in steps if s.is_tool), key=lambda step: step.start))
    return Run(
        messages=_with_ends(talk.messages, asked, root),
        source=name,
        run_id=trace,
        task=first_request(words(at(message, "content")) for message in asked if _by_user(message)),
        tools=list({json.dumps(tool, sort_keys=True): tool for tool in payloads.tools}.values()),
        model=next((step.model for step in steps if step.is_call and step.model), None),
        error=(root.error if root else "") or None,
        usage=sum((step.usage for step in steps if step.is_call), Usage()),
        speakers="places" if payloads.guessed else "roles",
        left=left,
    )


def _asked(whole: Step) -> list[Json]:
    """What a trace was asked. The arguments of a function that was traced are no words of a user."""
    return [] if "args" in mapping(decoded(whole.sent)) else Payloads().messages(whole.sent, "user")


def _by_user(message: Json) -> bool:
    return (at(message, "role") or at(message, "type")) in ("user", "human")


def _messages_of(step: Step, payloads: Payloads) -> Exchange:
    return payloads.messages(step.sent, "user"), payloads.messages(step.back, "assistant")


def _told_once(calls: Sequence[Step], payloads: Payloads) -> list[Exchange]:
    """The requests, each once: a call inside a call is the same request, told by two instrumentations."""
    by_id = {call.id: call for call in calls if call.id}
    inner: dict[str, list[Step]] = {}
    for call in calls:
        if call.parent in by_id and call.parent != call.id:
            inner.setdefault(call.parent, []).append(call)
    exchanges: list[Exchange] = []
    for call in calls:
        below = inner.get(call.id, [])
        if len(below) > 1 or len(inner.get(call.parent, [])) == 1:
            continue
        exchanges.append(_better(_messages_of(call, payloads), *(_messages_of(step, payloads) for step in below)))
    return exchanges


def _better(*ways: Exchange) -> Exchange:
    """Of several records of a request the fullest: the most messages, and a reply with calls before one of words."""
    sent = max((sent for sent, _ in ways), key=len)
    return sent, max((back for _, back in ways), key=lambda back: (any(at(m, "tool_calls") for m in back), bool(back)))


def _nothing(steps: Sequence[Step], payloads: Payloads) -> str:
    if all(is_nothing(step.sent) and is_nothing(step.back) for step in steps):
        return "the trace holds no messages: was the recording of inputs and outputs switched off?"
    notes = unread(payloads.unread)
    return f"no messages were found in the inputs and outputs of the trace{': ' + notes[0] if notes else ''}"


def _add_results(messages: list[Json], tools: Sequence[Step]) -> tuple[str, ...]:
    """Put what tools returned behind their calls, where no request shows it; say how many belong to no call."""
    if not tools:
        return ()
    waiting, made = _waiting(messages)
    added: dict[int, list[Json]] = {}
    for tool in tools:
        name = tool.name.rpartition(" ")[2]
        made.subtract([name])
        given = decoded(tool.sent)
        labels = [labelled(name, value) for value in (given, at(given, "input"), at(given, "arguments"))]
        if match := waiting.take(tool.call_id, *labels, name):
            place, call = match
            result = tool_result(call.id, result_text(tool.back) or tool.error, failed=bool(tool.error))
            added.setdefault(place, []).append({**result, "tool_call_id": call.id, "name": call.name})
    messages[:] = [entry for place, message in enumerate(messages) for entry in (message, *added.get(place, []))]
    lost = -sum(count for count in made.values() if count < 0)
    labels = plural(lost, "result of a tool belongs", "results of tools belong")
    return (f"{labels} to no call and was left out",) if lost else ()


def _waiting(messages: Sequence[Json]) -> tuple[Waiting, Counter[str]]:
    """The calls that no message answers, each with the place of its message, and how often each tool was called."""
    waiting, made = Waiting(), Counter[str]()
    for place, message in enumerate(messages):
        try:
            steps = trajectory_from([message], task="what is in it?").steps
        except FormatError:
            continue  # it is named when the run is read
        for call in (call for step in steps for call in step.action.calls):
            waiting.add(place, call)
            made[call.name] += 1
        for seen in (seen for step in steps for seen in step.observations if seen.source == "tool"):
            waiting.take(seen.call_id or seen.name or "")
    return waiting, made


def _with_ends(messages: list[Json], asked: list[Json], root: Step | None) -> list[Json]:
    """The messages with the instructions and the last words, where only the trace itself has them."""
    system = [message for message in asked if at(message, "role") == "system"]
    before = [] if any(at(message, "role") in ("system", "developer") for message in messages) else system
    spoken = any(at(messages[-1], "role") == role for role in ("assistant", "model", "ai"))
    last = decoded(root.back) if root and not spoken and "type" not in mapping(messages[-1]) else None
    after: list[Json] = [{"role": "assistant", "content": last}] if isinstance(last, str) and last.strip() else []
    return [*before, *messages, *after]
