"""Lets a caller hand over the messages they already have, in the shape their SDK gave them, and get them back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from lessonbank._base.checks import is_instance, kind, safe_getattr, short_repr
from lessonbank.contracts.records import Json, Trajectory, Usage
from lessonbank.contracts.records.tools import signatures
from lessonbank.errors import FormatError, printable

from ._assembly import assemble
from ._dialects import turns_of, usage_of
from ._plain import plain, same
from ._rebuild import rebuild
from ._requests import first_request, only_greets
from ._turns import Turn, text_of

__all__ = ["first_request", "only_greets", "retitle", "run_of_messages", "task_of", "to_messages", "trajectory_from"]

_SAID = 160
"""Characters of somebody else's error that ours repeats."""
_SHAPES = "a Trajectory, the answer as text, or a list of messages"


def trajectory_from(source: object, /, *, task: str | None = None) -> Trajectory:
    """The run that `source` records.

    `source` is a `Trajectory` (returned as it is), the agent's answer as text (needs `task`), a list of messages, or a
    mapping with the list under `messages`, the agent's instructions under `system` and its tools under `tools` (their
    signatures are kept with the run), or an object that has its list as `messages`, such as CrewAI's `TaskOutput`.
    Messages may be mappings or SDK objects of OpenAI (chat and Responses), Anthropic, LangChain or pydantic-ai, or
    plain `{"role", "content"}`; shapes may be mixed, and no SDK is imported. System and developer messages become
    `instructions`; what came before the agent's first turn becomes one step with an empty action; each turn of the
    agent is a step, and what followed it its observations. A role nobody knows is an observation of the environment
    under that name; an image is `[image]`.

    Args:
        source: The run, in any of the shapes above.
        task: What the agent was asked. Without it, the `task` of the mapping, or the first turn of the user that asks
            for something: a turn that only greets, thanks or agrees is passed over, if another one follows.

    Returns:
        A trajectory with a fresh id. `answer` is the last thing the agent said, unless that turn made calls. Code
        points that are no text (lone surrogates) are replaced, because no store could keep them.

    Raises:
        FormatError: the messages have no known shape, or cannot be read (the sentence names the index and what is
            there), or no task can be found.
    """
    if is_instance(source, Trajectory):
        return retitle(source, task)
    if is_instance(source, str):
        return Trajectory(task=_check_task(task, "the answer alone does not say it"), answer=_text(str.__str__(source)))
    if is_instance(source, Mapping):
        return _from_mapping(cast("Mapping[str, object]", source), task)
    if is_instance(held := safe_getattr(source, "messages"), list):
        return _from_object(source, cast("list[object]", held), task)
    if not is_instance(source, (bytes, bytearray)) and is_instance(source, Iterable):
        return _build(_list_turns(cast("Iterable[object]", source)), system="", task=task)
    raise FormatError(f"cannot read a run from {_kind(source)}: pass {_SHAPES}")


def run_of_messages(messages: Iterable[object], /, *, task: str, system: str = "", tools: object = None) -> Trajectory:
    """The run of messages that are read once, and that the run does not keep: the caller may give them up one by one.

    Raises:
        FormatError: a message cannot be read, or `task` is blank.
    """
    before = [Turn("instructions", text)] if (text := _text(system)) else []
    story = assemble(chain(before, chain.from_iterable(turns for _, turns in _read(messages))))
    return Trajectory(
        task=_check_task(task, "it is blank"),
        instructions=story.instructions,
        steps=story.steps,
        answer=story.answer,
        tools=_tools({"tools": tools}),
    )


def task_of(messages: Iterable[object], /, *, task: str | None = None) -> str:
    """What the agent was asked: `task`, or what `trajectory_from` finds in the messages.

    Raises:
        FormatError: nothing says it, or a message cannot be read.
    """
    if task is None:
        turns = chain.from_iterable(turns for _, turns in _read(messages))
        task = first_request(turn.text for turn in turns if turn.role == "user" and not turn.call_id)
    return _check_task(task, "no user message says it")


def to_messages(trajectory: Trajectory, /) -> list[dict[str, Json]]:
    """The run as OpenAI chat messages, or the very messages it was made from.

    A trajectory made from messages gives those messages back exactly, in their own shape. Where they came with a
    separate system prompt (Anthropic), that is `trajectory.instructions`.
    """
    if trajectory.original:
        return [cast("dict[str, Json]", plain(message)) for message in trajectory.original]
    return rebuild(trajectory)


def _from_mapping(source: Mapping[str, object], task: str | None) -> Trajectory:
    messages, named = _field(source, "messages"), _field(source, "task")
    if is_instance(messages, (str, bytes, Mapping)) or not is_instance(messages, Iterable):
        if is_instance(_field(source, "role"), str):
            raise FormatError("this is one message, not a run: pass a list of messages")
        content = "no 'messages'" if messages is None else f"{_kind(cast('object', messages))} under 'messages'"
        raise FormatError(f"a mapping needs its list of messages under 'messages', and has {content}: pass {_SHAPES}")
    try:
        system = text_of(plain(_field(source, "system")))
    except FormatError as error:
        raise FormatError(f"'system' {error}") from None
    except Exception as error:
        raise FormatError(f"'system' could not be read: {_words_of(error)}") from error
    if task is None and is_instance(named, str) and str.__str__(named).strip():
        task = named
    run = _build(_list_turns(cast("Iterable[object]", messages)), system=system, task=task)
    tools = _tools(source)
    return run.model_copy(update={"tools": tools}) if tools else run


def _from_object(source: object, messages: list[object], task: str | None) -> Trajectory:
    """The run of an object with messages; `description` is the task, and `tool_failures` flag results, in CrewAI."""
    failures = safe_getattr(source, "tool_failures")
    flags = cast("list[object]", failures) if is_instance(failures, list) else []
    rows: list[object] = [_flag(message, flags) if flags else message for message in messages]
    return _from_mapping({"messages": rows, "task": safe_getattr(source, "description")}, task)


def _flag(message: object, failures: list[object]) -> object:
    if not is_instance(message, Mapping):
        return message
    row = cast("Mapping[str, object]", message)
    content = str(_field(row, "content"))
    failed = any(
        safe_getattr(failure, "tool_name") == _field(row, "name") and str(safe_getattr(failure, "message")) in content
        for failure in failures
    )
    return {**row, "is_error": True} if failed and _field(row, "role") == "tool" else row


def _tools(source: Mapping[str, object]) -> tuple[str, ...]:
    """The signatures of the tools beside the messages; none where they cannot be read: the run counts."""
    try:
        return signatures(plain(_field(source, "tools")))
    except FormatError:
        return ()


def _field(source: Mapping[str, object], key: str) -> object:
    try:
        return source.get(key)
    except Exception as error:
        raise FormatError(f"{_kind(source)} could not be read at {key!r}: {_words_of(error)}") from error


def _list_turns(messages: Iterable[object]) -> list[object]:
    entries: list[object] = []
    try:
        entries.extend(messages)  # what came before an error stays, so that its length says where it was
    except Exception as error:
        raise FormatError(f"messages[{len(entries)}] could not be read: {_words_of(error)}") from error
    return entries


def _build(messages: list[object], *, system: str, task: str | None) -> Trajectory:
    if not messages:
        raise FormatError(f"the list of messages is empty: pass {_SHAPES}")
    data, turns = list[Json](), [Turn("instructions", system)] if system else []
    for message, batch in _read(messages):
        data.append(message)
        turns.extend(batch)
    story = assemble(turns)
    trajectory = Trajectory(
        task=_check_task(story.request if task is None else task, "no user message says it"),
        instructions=story.instructions,
        steps=story.steps,
        answer=story.answer,
        usage=_usage(data),
    )
    if same(rebuild(trajectory), data):
        return trajectory
    return trajectory.model_copy(update={"original": tuple(data)})


def _read(messages: Iterable[object]) -> Iterator[tuple[Json, Sequence[Turn]]]:
    """Each message as data, with its turns."""
    for index, message in enumerate(messages):
        try:
            data = plain(message)
            turns = list(turns_of(data))
        except FormatError as error:
            raise FormatError(f"messages[{index}] {error}") from None
        except Exception as error:
            raise FormatError(
                f"messages[{index}] is {_kind(message)} that cannot be read: {_words_of(error)}"
            ) from error
        yield data, turns


def _usage(messages: list[Json]) -> Usage:
    """What the agent's turns cost, where messages say so."""
    counts = [count for message in messages if (count := usage_of(message))]
    return Usage(requests=len(counts), input_tokens=sum(i for i, _ in counts), output_tokens=sum(o for _, o in counts))


def retitle(trajectory: Trajectory, task: str | None, /) -> Trajectory:
    """`trajectory` under the name `task`, if there is one. Raises FormatError: it was made without checks."""
    names = {"id": str, "task": str, "steps": tuple, "metadata": dict}
    fields = [(cast("object", getattr(trajectory, name)), kind) for name, kind in names.items()]
    if wrong := [value for value, kind in fields if not issubclass(type(value), kind)]:
        raise FormatError(
            f"this Trajectory was made without checks and holds {short_repr(wrong[0])}: make it with its class"
        )
    asked = trajectory.task if task is None else _check_task(task, "it is blank")
    return trajectory if asked == trajectory.task else trajectory.model_copy(update={"task": asked})


def _check_task(task: object, why: str) -> str:
    """`task`, stripped, or the one sentence that says it is missing."""
    if task is not None and not is_instance(task, str):
        raise FormatError(f"the task is text, not {_kind(task)}: pass task= as text")
    text = _text("" if task is None else str.__str__(task)).strip()
    if not text:
        raise FormatError(f"what was the task? {why}: pass task=")
    return text


def _text(value: str) -> str:
    return cast("str", plain(value))


def _words_of(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - then its type has to do
        text = ""
    return f"{kind(error)}: {printable(text[:_SAID])}".rstrip(": ")


def _kind(value: object) -> str:
    name = kind(value)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
