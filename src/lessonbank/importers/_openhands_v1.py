"""Reads the events of OpenHands since version 1 (SDK 1.43), of which each says its `kind`, as messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lessonbank.contracts.records import Json

from ._payloads import decoded
from ._reading import Data, at, listing, mapping, tool_call, tool_result, words

_SILENT: Final = {
    *("Condensation", "CondensationRequest", "CondensationSummaryEvent", "ConversationStateUpdateEvent"),
    *("TokenEvent", "LLMCompletionLogEvent", "StreamingDeltaEvent", "HookExecutionEvent", "PauseEvent"),
    *("ResumeTranscriptEvent", "InterruptEvent"),
}
"""Kinds that say nothing the agent saw or did."""
_ADDED: Final = ("kind", "security_risk", "summary")
"""Arguments that the program asks of a model for itself."""
_RUNNING: Final = -1
"""The exit code of a command that goes on."""


def is_event(value: Json, /) -> bool:
    """Whether a value is an event of version 1."""
    kind = words(at(value, "kind"))
    return (kind in _READERS or kind in _SILENT) and "source" in mapping(value)


@dataclass(slots=True)
class Talk:
    """What events come to."""

    messages: list[Json] = field(default_factory=list[Json])
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])
    unknown: dict[str, None] = field(default_factory=dict[str, None])
    error: str = ""
    requests: set[str] = field(default_factory=set[str])
    acp: dict[str, tuple[Data, Data]] = field(default_factory=dict[str, tuple[Data, Data]])
    """Calls of an agent behind the Agent Client Protocol, which are told again as they go on."""


def talk_of(events: Iterable[Json], /) -> Talk:
    """The messages of a conversation, its exit codes, and the kinds of events that are not known."""
    talk = Talk()
    for value in events:
        event = mapping(value)
        kind = words(event.get("kind"))
        if reader := _READERS.get(kind):
            reader(talk, event)
        elif kind not in _SILENT:
            talk.unknown[kind or "an event without a kind"] = None
    return talk


def _system(talk: Talk, event: Data) -> None:
    texts = (words(at(event, name, "text")) for name in ("system_prompt", "dynamic_context"))
    talk.messages.append({"role": "system", "content": "\n\n".join(filter(None, texts))})


def _message(talk: Talk, event: Data) -> None:
    llm_message = mapping(event.get("llm_message"))
    role = "assistant" if event.get("source") == "agent" else "user"
    message: Data = {"role": role, "content": llm_message.get("content")}
    if llm_message.get("reasoning_content"):
        message["reasoning_content"] = llm_message["reasoning_content"]
    talk.messages.append(message)
    _note_request(talk, event)
    _add_context(talk, event)


def _action(talk: Talk, event: Data) -> None:
    """A call. The text before it is what the agent thought, except where it ends with words to the user."""
    _note_request(talk, event)
    thought = [_text(event.get("thought")), words(event.get("reasoning_content"))]
    message: Data = {"role": "assistant", "content": None, "reasoning_content": "\n".join(filter(None, thought))}
    if at(event, "action", "kind") == "FinishAction":
        talk.messages.append({**message, "content": words(at(event, "action", "message"))})
        return
    call = mapping(event.get("tool_call"))
    inner = mapping(call.get("function")) or call
    written = inner.get("arguments")
    arguments = decoded(written) if written is not None else event.get("action")
    if isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if name not in _ADDED}
    name = inner.get("name") or event.get("tool_name")
    talk.messages.append({**message, "tool_calls": [tool_call(event.get("tool_call_id"), name, arguments)]})


def _observation(talk: Talk, event: Data) -> None:
    seen = mapping(event.get("observation"))
    if seen.get("kind") == "FinishObservation":
        return
    exit_code = seen.get("exit_code")
    code = exit_code if isinstance(exit_code, int) else at(seen, "metadata", "exit_code")
    failed = seen.get("is_error") is True
    if isinstance(code, int) and not isinstance(code, bool) and code != _RUNNING:
        talk.exit_codes[words(event.get("tool_call_id"))] = code
        failed = failed or code != 0
    text = _text(seen.get("content")) or words(seen.get("output")) or words(seen.get("error"))
    talk.messages.append(tool_result(event.get("tool_call_id"), text, failed=failed, stated=True))
    _add_context(talk, event)


def _agent_error(talk: Talk, event: Data) -> None:
    talk.messages.append(tool_result(event.get("tool_call_id"), words(event.get("error")), failed=True))


def _rejection(talk: Talk, event: Data) -> None:
    """A person, or a hook of theirs, said no: the call was not made, so nothing failed."""
    reason = words(event.get("rejection_reason"))
    talk.messages.append(tool_result(event.get("tool_call_id"), f"Action rejected: {reason}", failed=False))
    if event.get("rejection_source", "user") == "user" and reason:
        talk.messages.append({"role": "user", "content": reason})


def _acp_call(talk: Talk, event: Data) -> None:
    id = words(event.get("tool_call_id"))
    failed = event.get("is_error") is True or event.get("status") == "failed"
    made = tool_call(id, event.get("tool_kind") or event.get("title"), event.get("raw_input") or {})
    output = event.get("raw_output")
    text = output if isinstance(output, str) else _text(output) or _text(event.get("content"))
    if id not in talk.acp:
        talk.acp[id] = ({"role": "assistant", "content": None}, tool_result(id, "", failed=False))
        talk.messages += talk.acp[id]
    talk.acp[id][0].update({"tool_calls": [made]})
    talk.acp[id][1].update(tool_result(id, text, failed=failed, stated=True))


def _conversation_error(talk: Talk, event: Data) -> None:
    talk.error = f"{words(event.get('code'))}: {words(event.get('detail'))}".strip(": ")


def _note_request(talk: Talk, event: Data) -> None:
    if event.get("source", "agent") == "agent":
        talk.requests.add(words(event.get("llm_response_id")) or words(event.get("id")))


def _add_context(talk: Talk, event: Data) -> None:
    """What the program added to a message: rules of a folder, skills. Nobody said it."""
    if text := _text(event.get("extended_content")):
        talk.messages.append({"role": "environment", "name": "openhands", "content": text})


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = (words(at(part, "text")) or words(at(part, "content", "text")) for part in listing(content))
    return "\n".join(filter(None, parts))


_READERS: Final[Mapping[str, Callable[[Talk, Data], None]]] = {
    "SystemPromptEvent": _system,
    "MessageEvent": _message,
    "ActionEvent": _action,
    "ObservationEvent": _observation,
    "AgentErrorEvent": _agent_error,
    "UserRejectObservation": _rejection,
    "ACPToolCallEvent": _acp_call,
    "ConversationErrorEvent": _conversation_error,
}
