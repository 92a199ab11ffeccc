"""Reads lessonbank's neutral format: what to write when an agent's own format is none of the others.

One JSON object a line (gzip is fine):

| field | what | needed |
|---|---|---|
| `messages` | the run, `[{role, content, tool_calls?, tool_call_id?, name?}]`, in the shape of any SDK | yes |
| `task` | what the agent was asked, as text | yes |
| `source`, `run_id`, `task_id` | who ran it, which run, which task: together they name the run | no |
| `success` | `true`, `false`, or `null` for unknown: ground truth, never shown to a judge; nothing else | no |
| `reward` | a number; without `success`, 1 or more (`success_at`) is a success | no |
| `label_source` | who says so, in words | no |
| `model` | the model that acted | no |
| `error` | what stopped the run, if something did | no |

Other fields are ignored. In `meta`, `env_error` and an `exit_status` other than `Submitted` count as `error`.
"""

from __future__ import annotations

from dataclasses import replace

from lessonbank.contracts.records import Json

from ._files import Source
from ._reading import Run, at, entries, mapping, run_of, words

NAME = "neutral"


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return isinstance(row.get("messages"), list) and isinstance(row.get("task"), str)


def _build(entry: Json, source: Source, line: int) -> Run:
    row = mapping(entry)
    return replace(run_of(row, source, line, NAME), reason=row.get("label_source"), error=_error(row))


def _error(row: dict[str, Json]) -> str | None:
    stopped = words(row.get("error")) or words(at(row, "meta", "env_error"))
    status = words(at(row, "meta", "exit_status"))
    return stopped or (status if status.lower() != "submitted" else "") or None


FORMAT = entries(NAME, "one run per line: messages, task, and optionally success or reward", _matches, _build)
