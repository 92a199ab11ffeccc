"""Reads OpenHands runs, before and since version 1: output with a `history`, event lists, conversation folders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lessonbank._base.surrogates import encodable
from lessonbank.contracts.records import Json, Usage, Verdict
from lessonbank.errors import FormatError

from ._account import unread
from ._files import Skipped, Source
from ._openhands_v1 import is_event, talk_of
from ._reading import (
    Data,
    Entry,
    Format,
    Run,
    at,
    attempt,
    each,
    each_with,
    issue_in,
    listing,
    mapping,
    spent_on,
    stated,
    truth,
    words,
)

NAME = "openhands"
STATE, EVENTS = "base_state.json", "events"
_SILENT = {"change_agent_state", "agent_state_changed", "null", "recall", "condensation", "condensation_request"}
_SPOKEN = {"message", "finish", "reject"}
_INTERNAL = {
    "thought",
    "impl_source",
    "translated_ipython_code",
    "kernel_init_code",
    "security_risk",
    "is_confirmed",
    "confirmation_state",
    "action_risk",
    "keep_prompt",
    "hidden",
    "blocking",
    "wait_for_response",
}
_ENVELOPE = {"id", "timestamp", "source", "message", "action", "observation", "cause", "timeout", "tool_call_metadata"}


def _matches(value: Json, name: str) -> bool:
    events = _events(value)
    if is_event(value) or any(map(is_event, events[:3])):
        return True
    return bool(events) and any("action" in e or "observation" in e for e in events[:3]) and "role" not in events[0]


def _events(value: Json) -> list[Data]:
    """The events of a history; early versions kept pairs of action and observation."""
    history = listing(value) or listing(at(value, "history"))
    return [mapping(event) for entry in history for event in (entry if isinstance(entry, list) else [entry])]


def _build(entry: Json, source: Source, line: int) -> Run:
    row = mapping(entry)
    events = _events(entry)
    if not events:
        raise FormatError("the entry has no history of events")
    talk = talk_of(events) if any(map(is_event, events[:3])) else None
    return Run(
        messages=_messages(events) if talk is None else talk.messages,
        source=NAME,
        run_id=(words(row.get("id")) if talk else "") or f"{source.name}/{line}",
        task_id=_task_id(row),
        task=issue_in(words(row.get("instruction"))).strip() or None,
        model=words(at(row, "metadata", "llm_config", "model") or at(row, "metadata", "llm", "model")) or None,
        verdict=_verdict(row),
        error=words(row.get("error")) or (talk and talk.error) or None,
        usage=_usage(row, sum(map(_acts, events)) if talk is None else len(talk.requests)),
        exit_codes=talk.exit_codes if talk else {},
        left=unread(talk.unknown) if talk else (),
    )


def _task_id(row: Data) -> str:
    issue = mapping(row.get("issue"))
    numbered = f"{words(issue.get('owner'))}/{words(issue.get('repo'))}#{words(issue.get('number'))}"
    return words(row.get("instance_id")) or (numbered if issue else "")


def _verdict(row: Data) -> Verdict | None:
    """Tests say so in an evaluation; in the resolver, a model that looked at the run does."""
    for resolved in (at(row, "test_result", "report", "resolved"), at(row, "report", "resolved"), row.get("resolved")):
        if resolved is not None:
            return truth(resolved, None, reason="OpenHands evaluation report")
    outcome = stated(row.get("success"))
    if outcome is None:
        return None
    reason = encodable(words(row.get("result_explanation")))
    return Verdict(outcome=outcome, source="judge", reason=reason)


def _usage(row: Data, requests: int) -> Usage:
    spent = mapping(at(row, "metrics", "accumulated_token_usage"))
    cost = at(row, "metrics", "accumulated_cost")
    return spent_on([spent], "prompt_tokens", "completion_tokens", requests=requests, cost=cost)


def _messages(events: list[Data]) -> list[Json]:
    """Events that carry nothing but the program's own state are left out."""
    messages: list[Json] = []
    for event in events:
        kind = words(event.get("action")) or words(event.get("observation"))
        if kind in _SILENT and not (kind == "recall" and event.get("content")):
            continue
        if "observation" in event:
            messages.append(_observation(event))
        elif kind == "system":
            messages.append({"role": "system", "content": words(_arguments(event).get("content"))})
        elif kind == "message" and _by_user(event, first=not messages):
            messages.append({"role": "user", "content": _text_of(event)})
        else:
            messages.append(_action(event, kind))
    return messages


def _by_user(event: Data, *, first: bool) -> bool:
    """Early versions do not say who speaks; there the first message is the task."""
    speaker = event.get("source")
    return speaker != "agent" if isinstance(speaker, str) else first


def _acts(event: Data) -> bool:
    return "action" in event and event.get("source", "agent") == "agent"


def _arguments(event: Data) -> Data:
    """Newer events keep their arguments apart, older ones among the event's own fields."""
    args = event.get("args")
    return args if isinstance(args, dict) else {key: value for key, value in event.items() if key not in _ENVELOPE}


def _text_of(event: Data) -> str:
    args = _arguments(event)
    return words(args.get("content")) or words(args.get("final_thought")) or words(event.get("message"))


def _action(event: Data, kind: str) -> Json:
    args = _arguments(event)
    thought = words(args.get("thought"))
    if kind in _SPOKEN:
        return {"role": "assistant", "content": _text_of(event) or thought}
    name, call_id, written = _call(event)
    arguments: Data = {key: value for key, value in args.items() if key not in _INTERNAL and value is not None}
    call: Json = {"id": call_id, "name": name or kind, "arguments": written if written is not None else arguments}
    return {"role": "assistant", "content": None, "reasoning_content": thought, "tool_calls": [call]}


def _call(event: Data) -> tuple[str, str | None, Json]:
    """Name, id and arguments of the call as the model wrote it, where the event keeps the reply."""
    meta = mapping(event.get("tool_call_metadata"))
    call_id = words(meta.get("tool_call_id")) or None
    choices = listing(at(meta, "model_response", "choices"))
    made = listing(at(choices[0], "message", "tool_calls")) if choices else []
    written = next((at(c, "function", "arguments") for c in made if call_id and at(c, "id") == call_id), None)
    return words(meta.get("function_name")), call_id or words(event.get("id")) or None, written


def _observation(event: Data) -> Json:
    kind = words(event.get("observation"))
    meta = mapping(event.get("tool_call_metadata"))
    content = event.get("content")
    text = words(content) or ("" if content is None else json.dumps(content, ensure_ascii=False))
    code = event.get("exit_code", at(event, "extras", "metadata", "exit_code"))
    if isinstance(code, int) and code not in (0, -1) and "exit code" not in text:
        text = f"{text}\n[exit code {code}]"
    name = words(meta.get("function_name")) or kind
    call_id = words(meta.get("tool_call_id")) or words(event.get("cause")) or None
    failed = kind == "error" or (isinstance(code, int) and code not in (0, -1))
    message: Data = {"role": "tool", "content": text, "name": name, "tool_call_id": call_id, "is_error": failed}
    return {**message, "is_success": True} if code == 0 and not failed else message


def is_run(folder: Path, /) -> bool:
    """Whether a folder is one conversation."""
    return (folder / STATE).is_file() and (folder / EVENTS).is_dir()


def _read(source: Source) -> Iterator[Entry]:
    """`source` may be a conversation's folder, its state, a file with one event a line, or one of several runs."""
    if source.path.is_dir() or source.name == STATE:
        return _conversation(source, source.path if source.path.is_dir() else source.path.parent)
    if is_event(source.first()):
        return _one_run(source, source, row={})
    return each(source, format=NAME, split=lambda value: each_with("history", value), build=_build)


def _conversation(source: Source, folder: Path) -> Iterator[Entry]:
    known = mapping(source.beside(folder / STATE).first())
    files = [source.beside(path) for path in sorted((folder / EVENTS).glob("event-*.json"))]
    row: Data = {"id": words(known.get("id")) or folder.name, "metadata": {"llm": at(known, "agent", "llm")}}
    return _one_run(source.beside(folder / STATE), *files, row=row)


def _one_run(source: Source, *files: Source, row: Data) -> Iterator[Entry]:
    """One conversation out of the events in one file or several."""
    events: list[Json] = []
    for file in files:
        for value in file.rows():
            if isinstance(value, Skipped):
                yield value
            else:
                events.append(value.value)
    yield attempt(source, 1, NAME, lambda: _build({**row, "history": events}, source, 1))


FORMAT = Format(
    NAME,
    "OpenHands `output.jsonl`, `resolver_output.jsonl`, events, or a conversation's folder (`events/`)",
    _matches,
    _read,
)
