"""Finds the one JSON object in a model's reply that carries the code it was given."""

from __future__ import annotations

from lessonbank.contracts.records import Usage
from lessonbank.errors import OutputError
from lessonbank.guard.quote import quoted
from lessonbank.text.replies import Fields, fields_with, spoken

_READ = 64_000


def reply_with(code: str, text: str, /, *, usage: Usage) -> Fields:
    """The last object of `text` whose `check` is `code`: an object quoted from a run cannot know it.

    Raises:
        OutputError: there is none; it carries `usage`.
    """
    reply = spoken(text[-_READ:])
    if (fields := fields_with(code, reply)) is None:
        raise OutputError(f"nothing readable with the check code in the reply: {quoted(reply, limit=120)}", usage=usage)
    return fields
