"""What an answer leads to: the OpenAPI document names the call and where its arguments stand in the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lessonbank.http.client.operations import OPERATIONS

from .examples import EXAMPLES

_ID: Final = "$response.body#/id"
_LESSON: Final[Sequence[tuple[str, Mapping[str, str], Mapping[str, Any] | None]]] = (
    ("lessons.get", {"id": _ID}, None),
    ("lessons.edit", {"id": _ID}, EXAMPLES["lessons.edit"]),
    ("lessons.retire", {}, {**EXAMPLES["lessons.retire"], "ids": [_ID]}),
    ("lessons.quarantine", {}, {**EXAMPLES["lessons.quarantine"], "ids": [_ID]}),
    ("lessons.approve", {}, {**EXAMPLES["lessons.approve"], "ids": [_ID]}),
    ("history.lineage", {"lesson_id": _ID}, None),
)
_LINKS: Final[Mapping[str, Sequence[tuple[str, Mapping[str, str], Mapping[str, Any] | None]]]] = {
    "retrieve": (
        ("recalls.get", {"id": _ID}, None),
        ("recalls.explain", {"recall": _ID}, None),
        ("learn", {}, {**EXAMPLES["learn"], "recall": _ID}),
        ("submit", {}, {**EXAMPLES["submit"], "recall": _ID}),
    ),
    "submit": (("runs.get", {"id": "$response.body#/0"}, None),),
    "learn": (("lessons.get", {"id": "$response.body#/lessons/0/id"}, None),),
    "lessons.add": _LESSON,
    "lessons.get": _LESSON[1:],
    "lessons.edit": _LESSON,
    "runs.get": (("runs.correct", {"id": "$response.body#/trajectory/id"}, EXAMPLES["runs.correct"]),),
}


def links_of(name: str, /) -> dict[str, Any]:
    """The links of an operation's answer, as OpenAPI writes them."""
    return {_id(to): _link(to, parameters, body) for to, parameters, body in _LINKS.get(name, ())}


def _link(to: str, parameters: Mapping[str, str], body: Mapping[str, Any] | None) -> dict[str, Any]:
    link: dict[str, Any] = {"operationId": _id(to), "parameters": dict(parameters)}
    return link if body is None else {**link, "requestBody": dict(body)}


def _id(name: str) -> str:
    return OPERATIONS[name].operation_id
