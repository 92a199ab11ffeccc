"""Puts a conversation together from requests to a model, each of which repeats what was said before it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lessonbank.contracts.records import Json

from ._reading import at, listing, mapping, words

_ROLES = {"ai": "assistant", "model": "assistant", "human": "user", "developer": "system"}
_SAID = ("function_call", "tool_call_id")
"""What makes two messages the same. A reply loses its finish reason, its cost and its id when it becomes history."""


@dataclass(slots=True)
class Conversation:
    """The messages of one agent, each as often as a single request or the replies have it."""

    messages: list[Json] = field(default_factory=list[Json])
    _known: Counter[str] = field(default_factory=Counter[str])

    def add_request(self, sent: Sequence[Json], back: Sequence[Json], /) -> list[Json]:
        """Append what a request and its reply have that is new, or there more often than before; what that is."""
        present, new = Counter[str](), list[Json]()
        for message in sent:
            key = _key(message)
            present[key] += 1
            if present[key] > self._known[key]:
                new.append(message)
        new = list[Json](filter(mapping, (*new, *back)))
        for message in new:
            self._known[_key(message)] += 1
        self.messages += new
        return new


def _key(message: Json) -> str:
    row = mapping(message)
    inner = mapping(row.get("kwargs")) or mapping(row.get("data")) or row
    path = row.get("id")
    kind = words(inner.get("role")) or words(row.get("type") if "data" in row else inner.get("type"))
    if not kind and isinstance(path, list) and path:
        kind = words(path[-1])
    role = kind.lower().removesuffix("chunk").removesuffix("message")
    fields: Json = {name: inner[name] for name in _SAID if inner.get(name)}
    if calls := listing(inner.get("tool_calls")):
        fields = [_call(call) for call in calls]
    content = [_content(inner[name]) for name in ("content", "parts") if inner.get(name)]
    return json.dumps([_ROLES.get(role, role), fields, content], sort_keys=True)


def _call(call: Json) -> Json:
    """A call without arguments is written with an empty text, an empty object or nothing."""
    inner = mapping(at(call, "function")) or mapping(call)
    return {**mapping(call), "function": {**inner, "arguments": inner.get("arguments") or "{}"}}


def mark_errors(messages: list[Json], ids: set[str], /) -> None:
    """Say of the results of some calls that they are errors, because the records of the tools do."""
    for message in messages:
        if isinstance(message, dict) and words(message.get("tool_call_id")) in ids and message.get("role") == "tool":
            message["is_error"] = True


def _content(value: Json) -> Json:
    """Words are the same whether they stand alone or in a part."""
    parts = listing(value)
    texts = [at(part, "text") for part in parts if mapping(part).keys() <= {"text", "type"}]
    return "\n".join(map(words, texts)) if parts and len(texts) == len(parts) else value
