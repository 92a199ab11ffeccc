"""What every importer shares: values that may be anything, and runs with stable ids."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

from lessonbank._base.surrogates import encodable
from lessonbank.contracts.records import Json, Outcome, Trajectory, Usage, Verdict
from lessonbank.errors import FormatError
from lessonbank.guard.quote import quoted
from lessonbank.learning.judging import SUCCESS_AT, outcome_of
from lessonbank.text.messages import run_of_messages, task_of, trajectory_from

from ._account import Account, asked_by_user, counts, ends_in, unused_ends
from ._files import Skipped, Source

Data: TypeAlias = dict[str, Json]
Read = TypeVar("Read")
_SHELL_TRAILER = re.compile(
    r"(?:\n(?:Error: \(none\)|Exit Code: 0|Signal: \(none\)|Background PIDs: \(none\)|"
    r"Process Group PGID: [^\n]*))+\s*\Z"
)
"""What the shell of Gemini CLI, and of Qwen Code, which was made of it, writes below an output when all went well."""
_LONGEST_TRAILER = 1000
_PROMPTS = ("{}.task.txt", "task.txt")
_ISSUES = (
    ("<pr_description>", "</pr_description>"),
    ("<issue_description>", "</issue_description>"),
    ("<uploaded_issue>", "</uploaded_issue>"),
    ("ISSUE:\n", "\nINSTRUCTIONS:"),
    ("\nTask Description:\n", "\n\nCurrent terminal state:"),
    ("Please solve this issue: ", "\n\nYou can execute bash commands"),
)
_LEAD = "Consider the following PR description:"
_MEMORY = re.compile(r"(?:<|&lt;)lessonbank(?:>|&gt;)"), re.compile(r"(?:<|&lt;)/lessonbank(?:>|&gt;)")
TOO_DEEP = "the run is nested too deep"
FAILED = "the reader failed"
"""How the reason begins where a reader met an entry that it did not expect."""
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,5}|\(none\))\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Imported:
    """One run out of a file."""

    trajectory: Trajectory
    verdict: Verdict | None = None
    """What the file itself says of the outcome; `None` where it does not."""
    path: Path = Path()
    line: int = 1
    """The line, or the number of the entry in a file that is one JSON value; from 1."""
    exit_codes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The exit codes of a coding agent's commands by the ids of the calls, as far as the file has them."""
    format: str = ""
    """The name of the format it was read in."""
    speakers: Literal["roles", "places"] = "roles"
    """Whether the file says who spoke, or only where the words stand does."""
    left: tuple[str, ...] = ()
    """What the file has and the run lacks, a sentence each."""
    ends: tuple[str, ...] = ()
    """The fields of the file that may say how the run ended."""

    @property
    def account(self) -> Account:
        """What reading the run came to, and what its task, its outcome and its speakers rest on."""
        run, verdict = self.trajectory, self.verdict
        basis = "none" if verdict is None else "judge" if verdict.source == "judge" else "file"
        return Account(
            len(run.steps),
            *counts(run),
            task="user" if asked_by_user(run) else "field",
            outcome="checks" if verdict and "outcome_by" in run.metadata else basis,
            speakers=self.speakers,
            left=self.left if verdict else (*self.left, *unused_ends(self.ends)),
        )


Entry: TypeAlias = Imported | Skipped


@dataclass(frozen=True, slots=True)
class Run:
    """What a format's importer found: the messages, and what the file says about the run."""

    messages: list[Json]
    source: str
    run_id: str
    task_id: str = ""
    task: str | None = None
    system: str = ""
    tools: Json = None
    model: str | None = None
    success: Json = None
    reward: Json = None
    reason: Json = None
    """What the file says of the outcome, as `truth` reads it."""
    verdict: Verdict | None = None
    """The outcome where `truth` does not say it."""
    error: str | None = None
    answer: str | None = None
    usage: Usage = field(default_factory=Usage)
    verbatim: bool = False
    """The messages are the file's own, so that the very same can be rebuilt."""
    exit_codes: Mapping[str, int] = field(default_factory=dict[str, int])
    """The exit codes of commands by the ids of their calls, where the file has them."""
    speakers: Literal["roles", "places"] = "roles"
    """Whether the file says who spoke, or only where the words stand does."""
    left: tuple[str, ...] = ()
    """What the file has and the run lacks, a sentence each."""
    prompts: Mapping[int, str] = field(default_factory=dict[int, str])
    """Where the user speaks among the messages, with the name that the file gives the prompt: one that asks for
    something new begins a run of its own."""
    origin: str = ""
    """The name of its prompt, if the file has one: the run is the same where another session repeats it."""
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    """More that the run's metadata say of it."""


@dataclass(frozen=True, slots=True)
class Format:
    """A trajectory format: how it is told from others, and how it is read."""

    name: str
    description: str
    matches: Callable[[Json, str], bool]
    """Whether a value of the file (and the file's name) show this format."""
    read: Callable[[Source], Iterator[Entry]]


class Digest(Protocol):
    """What a hash of `hashlib` offers here."""

    def update(self, data: bytes, /) -> None:
        """Take more in."""
        ...


class Session(Protocol):
    """A run that is put together from the lines of a file."""

    def add(self, line: Data, /) -> None:
        """Take a line in."""
        ...


def entries(
    name: str,
    description: str,
    matches: Callable[[Json, str], bool],
    build: Callable[[Json, Source, int], Run],
    /,
    *,
    split: Callable[[Json], Iterable[Json]] = lambda value: [value],
) -> Format:
    """A format of which each value of a file is an entry, or holds those that `split` finds; `build` reads one."""
    return Format(name, description, matches, lambda source: each(source, format=name, split=split, build=build))


def streamed(
    source: Source, format: str, add: Callable[[Data], None], runs: Callable[[], Iterable[Callable[[], Run]]], /
) -> Iterator[Entry]:
    """The runs that the lines of a file come to: `add` takes each line in, and `runs` gives what builds each run."""
    yield from take_lines(source, add)
    for number, build in enumerate(runs(), 1):
        yield from attempts(source, number, format, lambda build=build: [build()])


def take_lines(source: Source, add: Callable[[Data], None], /) -> Iterator[Skipped]:
    """Have `add` take in the lines of a file; those that cannot be read come back."""
    for row in source.rows():
        if isinstance(row, Skipped):
            yield row
        else:
            add(mapping(row.value))


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
            yield attempt(source, number, format, lambda e=entry, n=number: build(e, source, n), ends=ends_in(entry))


def spent_on(
    pieces: Sequence[Data],
    sent: str | tuple[str, ...],
    back: str | tuple[str, ...],
    /,
    *,
    requests: Json = None,
    cost: Json = None,
) -> Usage:
    """What was spent, told in one or several pieces that have the tokens of each direction under one or several names.

    `requests`: how many there were; `None`: one for each piece.
    """
    sums = [
        sum(count(piece.get(name)) for piece in pieces for name in ((names,) if isinstance(names, str) else names))
        for names in (sent, back)
    ]
    made = len(pieces) if requests is None else count(requests)
    return Usage(requests=made, input_tokens=sums[0], output_tokens=sums[1], cost=number(cost))


def tool_call(id: Json, name: Json, arguments: Json, /) -> Data:
    """A call as messages of a conversation write it; `arguments` is an object, or the text of one."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": words(id), "type": "function", "function": {"name": words(name), "arguments": text}}


def tool_result(id: Json, content: str, /, *, failed: bool, stated: bool = False) -> Data:
    """What came back from a call, as messages of a conversation write it.

    `stated`: the program says itself whether it failed, by a flag or an exit code, so that words do not decide.
    """
    message: Data = {"role": "tool", "tool_call_id": words(id), "content": content, "is_error": failed}
    return {**message, "is_success": True} if stated and not failed else message


def without_memory(text: str, /) -> str:
    """What a command gave, without what memory told after it: some programs keep both as one text."""
    return without_blocks(text, *_MEMORY, blanks="\n")


def without_blocks(text: str, opening: re.Pattern[str], closing: re.Pattern[str], /, *, blanks: str | None) -> str:
    """A text without what stands from each opening to the next closing, and without the `blanks` before it."""
    parts, place = list[str](), 0
    while (begin := opening.search(text, place)) and (end := closing.search(text, begin.end())):
        parts.append(text[place : begin.start()].rstrip(blanks))
        place = end.end()
    return "".join((*parts, text[place:]))


def without_trailer(text: str, /) -> str:
    """What a command gave, without what the shell of Gemini CLI or Qwen Code writes below it."""
    return text[:-_LONGEST_TRAILER] + _SHELL_TRAILER.sub("", text[-_LONGEST_TRAILER:])


def shell_exit_code(text: str, /) -> int | None:
    """The exit code in what the shell of Gemini CLI or Qwen Code gave, which may leave out a 0."""
    codes = _EXIT_CODE.findall(text[-500:])
    if codes:
        return None if codes[-1] == "(none)" else int(codes[-1])
    return 0 if text.startswith("Output: ") else None


def attempt(source: Source, line: int, format: str, build: Callable[[], Run], /, *, ends: Iterable[str] = ()) -> Entry:
    """The run that `build` makes, or the reason why there is none.

    `ends`: the fields of the file that say how it ended. They are named where the run has no outcome.
    """
    return next(_entries(source, line, format, lambda: [build()], ends, iter))


def attempts(
    source: Source, line: int, format: str, build: Callable[[], Iterable[Run]], /, *, ends: Iterable[str] = ()
) -> Iterator[Entry]:
    """The attempts of a session: those before the first that cannot be read, and the reason.

    Their lists of messages are emptied on the way: a session in both forms takes twice its room.
    """
    return _entries(source, line, format, build, ends, _given_up)


def _given_up(messages: list[Json]) -> Iterator[Json]:
    for place, message in enumerate(messages):
        messages[place] = None
        yield message
        del message


def _entries(
    source: Source,
    line: int,
    format: str,
    build: Callable[[], Iterable[Run]],
    ends: Iterable[str],
    given: Callable[[list[Json]], Iterable[Json]],
) -> Iterator[Entry]:
    try:
        for run in build():
            verdict = run.verdict or truth(run.success, run.reward, reason=run.reason, success_at=source.success_at)
            trajectory = _trajectory(run, format, given)
            uses = Counter(call.id or "" for step in trajectory.steps for call in step.action.calls)
            yield Imported(
                trajectory,
                verdict,
                source.path,
                line,
                {id: code for id, code in run.exit_codes.items() if uses[id] == 1},  # an id may come again
                format=format,
                speakers=run.speakers,
                left=run.left,
                ends=tuple(ends),
            )
    except FormatError as error:
        yield Skipped(source.path, line, str(error))
    except RecursionError:
        yield Skipped(source.path, line, TOO_DEEP)
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # a reader that somebody else wrote
        yield Skipped(source.path, line, f"{FAILED}: {type(error).__name__}: {quoted(error, limit=120)}")


def _trajectory(run: Run, format: str, given: Callable[[list[Json]], Iterable[Json]]) -> Trajectory:
    """The run with an id that the same run of the same file always gets."""
    if not run.messages:
        raise FormatError("the run has no messages")
    task = _blame_task(lambda: task_of(run.messages, task=run.task))
    identity = [format, run.source, run.origin or run.run_id, run.task_id, task, run.system]
    digest = hashlib.sha256(json.dumps(identity).encode()[:-1] + b", [")
    made = _blame_task(lambda: _made(run, task, _digested(given(run.messages), digest)))
    digest.update(b"]]")
    named = {"source": run.source, "run_id": run.run_id, "task_id": run.task_id, "model": run.model}
    known = {key: encodable(value) for key, value in (*named.items(), *run.about.items()) if value} | made.metadata
    update = {
        "id": digest.hexdigest()[:32],
        "answer": made.answer if run.answer is None else encodable(run.answer),
        "error": None if run.error is None else encodable(run.error),
        "usage": run.usage,
        "metadata": known,
    }
    return made.model_copy(update=update)


def _digested(messages: Iterable[Json], digest: Digest) -> Iterator[Json]:
    """The messages, of each of which the digest takes its JSON in."""
    for number, message in enumerate(messages):
        yield message
        digest.update((b", " if number else b"") + json.dumps(message, sort_keys=True).encode())
        del message


def _made(run: Run, task: str, messages: Iterable[Json]) -> Trajectory:
    if run.verbatim:
        return trajectory_from({"system": run.system, "tools": run.tools, "messages": list(messages)}, task=task)
    return run_of_messages(messages, task=task, system=run.system, tools=run.tools)


def _blame_task(read: Callable[[], Read]) -> Read:
    """What was read; an error that names no message is about the task."""
    try:
        return read()
    except FormatError as error:
        if str(error).startswith("messages["):
            raise
        raise FormatError("the run does not say what its task was") from None


def truth(success: Json, reward: Json, /, *, reason: Json, success_at: float = SUCCESS_AT) -> Verdict | None:
    """The verdict a file states: `success` where it says so (also as 1 or 0), else a reward of `success_at` or more.

    A reward that contradicts `success` is left out: the bank would refuse the two together.

    Raises:
        FormatError: `success` or `reward` is a value of another type.
    """
    claim, points = stated(success), _reward(reward)
    if claim is None and points is None:
        return None
    measured = None if points is None else outcome_of(points, success_at=success_at)
    outcome = claim or measured or "failure"
    why = encodable(words(reason))
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


def first_of(row: Data, /, *names: str) -> Json:
    """The first of some fields that is there."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def name_in(row: Data, /, *names: str) -> str:
    """The name, as a text."""
    return words(first_of(row, *names))


def each_with(key: str, value: Json, /) -> list[Json]:
    """The entries in a list of objects that have a list under `key`; anything else is one entry."""
    several = listing(value)
    return several if several and isinstance(at(several[0], key), list) else [value]


def messages_of(value: Json, /) -> list[Json]:
    """The `messages` of an entry.

    Raises:
        FormatError: it has none.
    """
    messages = mapping(value).get("messages")
    if not isinstance(messages, list):
        raise FormatError("the entry has no list of messages")
    return messages


def run_of(row: Data, source: Source, line: int, name: str, /) -> Run:
    """The run of an object with `messages` and the fields that the neutral format names.

    OpenHands logs calls as text for models without them, and the messages as they were under `raw_messages`.
    """
    return Run(
        messages=[*(listing(row.get("raw_messages")) or messages_of(row)), *reply_beside(row)],
        source=words(row.get("source")) or name,
        run_id=words(row.get("run_id")) or f"{source.name}/{line}",
        task_id=words(row.get("task_id")),
        task=words(row.get("task")).strip() or None,
        model=words(row.get("model")) or None,
        success=row.get("success"),
        reward=row.get("reward"),
        verbatim=True,
    )


def reply_beside(row: Data, /) -> list[Json]:
    """The reply beside the request in a log of requests (LiteLLM, OpenHands)."""
    choices = listing(at(row, "response", "choices"))
    reply = at(choices[0], "message") if choices else None
    return [reply] if mapping(reply).get("role") == "assistant" else []


def without(message: Json, /, *keys: str) -> Json:
    """A message without bookkeeping fields and those that are null."""
    if not isinstance(message, dict):
        return message
    return {key: value for key, value in message.items() if value is not None and key not in keys}


def environment_after_agent(messages: list[Json], /) -> list[Json]:
    """The messages, with what stands in the user's role after the agent's first turn said by the environment.

    Text-mode agents get their observations in the user's role; nobody spoke.
    """
    acted = False
    conversation: list[Json] = []
    for message in messages:
        role = mapping(message).get("role")
        acted = acted or role == "assistant"
        conversation.append({**mapping(message), "role": "environment"} if acted and role == "user" else message)
    return conversation


def prompt_beside(source: Source, /) -> str:
    """What the user asked, out of a text beside a stream that does not repeat it.

    Raises:
        FormatError: there is none.
    """
    for name in _PROMPTS:
        path = source.path.with_name(name.format(source.stem))
        try:
            prompt = source.beside(path).read_all().decode("utf-8", "replace").strip() if path.is_file() else ""
        except OSError:
            continue
        if prompt:
            return prompt
    raise FormatError(f"the stream does not hold its prompt: write it to {source.stem}.task.txt beside it")


def issue_in(text: str, /) -> str:
    """The issue a coding agent was given, out of the prompt that surrounds it; all of the prompt if unmarked."""
    for opening, closing in _ISSUES:
        start = text.find(opening)
        end = text.find(closing, start + len(opening))
        if start >= 0 and end > start:
            return text[start + len(opening) : end].strip().removeprefix(_LEAD).strip() or text
    return text
