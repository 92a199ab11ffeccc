"""Every call of a bank as data, so that the server's routes and the client's methods cannot drift apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, get_type_hints

from pydantic import Field, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator, create_model

from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.bank.views import AsyncAdmin, AsyncHistory, AsyncLessons, AsyncRecalls, AsyncRuns, Moment
from lessonbank.contracts.records import Json, Outcome, Record, Trajectory
from lessonbank.guard.identity import ServerRole

API: Final = 1
"""The number of this table. A client and a server with different numbers refuse each other."""
VIEWS: Final[Mapping[str, type]] = {
    "lessons": AsyncLessons,
    "runs": AsyncRuns,
    "recalls": AsyncRecalls,
    "history": AsyncHistory,
    "admin": AsyncAdmin,
}
_MAY: Final[Mapping[ServerRole, frozenset[ServerRole]]] = {
    "agent": frozenset({"agent"}),
    "reader": frozenset({"reader"}),
    "reviewer": frozenset({"agent", "reader", "reviewer"}),
    "admin": frozenset({"agent", "reader", "reviewer", "admin"}),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the bank, and how it is asked for over HTTP."""

    name: str
    """Its name in Python, such as `lessons.approve`."""
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    """Below `/v1`. A part in braces is the argument of that name."""
    roles: frozenset[ServerRole]
    """Whose keys are for it. The keys of an admin are for everything."""
    whole_bank: bool = False
    """Whether it acts on every scope, so that only a key without a scope may call it."""
    pages: bool = False
    """Whether it lists records that have an `id`, page by page."""
    file: Literal["", "sent", "received"] = ""
    """Whether the argument `path` is a file of the caller that goes over the wire."""

    @property
    def operation_id(self) -> str:
        """The operation's name in the OpenAPI document."""
        return self.name.replace(".", "_").strip("_")

    def allows(self, role: ServerRole, /) -> bool:
        """Whether a key of this role may call it."""
        return bool(self.roles & _MAY[role])


def _operation(name: str, method: Any, path: str, *roles: ServerRole, **more: Any) -> Operation:
    return Operation(name, method, path, frozenset(roles), **more)


_OF_BOTH: Final = ("agent", "reader")
OPERATIONS: Final[Mapping[str, Operation]] = {
    each.name: each
    for each in (
        _operation("retrieve", "POST", "/recalls", "agent"),
        _operation("recall_again", "POST", "/recalls/again", "agent"),
        _operation("submit", "POST", "/runs", "agent"),
        _operation("learn", "POST", "/runs/learn", "agent"),
        _operation("tell", "POST", "/runs/tell", "agent"),
        _operation("keep_unfinished", "POST", "/runs/unfinished", "agent"),
        _operation("judge", "POST", "/runs/judge", "agent"),
        _operation("extract", "POST", "/runs/extract", "agent"),
        _operation("consolidate", "POST", "/experiences", "reviewer"),
        _operation("reflect", "POST", "/lessons/reflect", "reviewer"),
        _operation("lift", "GET", "/evidence/lift", "reader"),
        _operation("lessons.list", "GET", "/lessons", "reader", pages=True),
        _operation("lessons.search", "GET", "/lessons/search", "reader", pages=True),
        _operation("lessons.topics", "GET", "/lessons/topics", "reader"),
        _operation("lessons.proposals", "GET", "/lessons/proposals", "reader"),
        _operation("lessons.add", "POST", "/lessons", "reviewer"),
        _operation("lessons.note", "POST", "/lessons/note", "agent"),
        _operation("lessons.approve", "POST", "/lessons/approve", "reviewer"),
        _operation("lessons.quarantine", "POST", "/lessons/quarantine", "reviewer"),
        _operation("lessons.retire", "POST", "/lessons/retire", "reviewer"),
        _operation("lessons.restore", "POST", "/lessons/restore", "reviewer"),
        _operation("lessons.merge", "POST", "/lessons/merge", "reviewer"),
        _operation("lessons.get", "GET", "/lessons/{id}", *_OF_BOTH),
        _operation("lessons.edit", "PATCH", "/lessons/{id}", "reviewer"),
        _operation("lessons.experience", "GET", "/lessons/{lesson_id}/experience", "reader"),
        _operation("lessons.repeats", "GET", "/lessons/{id}/repeats", "reader"),
        _operation("lessons.narrow", "POST", "/lessons/{id}/narrow", "reviewer"),
        _operation("lessons.split", "POST", "/lessons/{id}/split", "reviewer"),
        _operation("lessons.unmerge", "POST", "/lessons/{id}/unmerge", "reviewer"),
        _operation("history.lineage", "GET", "/lessons/{lesson_id}/lineage", "reader"),
        _operation("runs.list", "GET", "/runs", "reader", pages=True),
        _operation("runs.search", "GET", "/runs/search", "reader", pages=True),
        _operation("runs.pending", "GET", "/runs/pending", "reader", pages=True),
        _operation("runs.queue", "GET", "/runs/queue", "reader"),
        _operation("runs.spending", "GET", "/runs/spending", "reader"),
        _operation("runs.unlabelled", "GET", "/runs/unlabelled", "reader"),
        _operation("runs.retry", "POST", "/runs/retry", "reviewer"),
        _operation("runs.audit", "POST", "/runs/audit", "reviewer"),
        _operation("runs.get", "GET", "/runs/{id}", "reader"),
        _operation("runs.correct", "POST", "/runs/{id}/correct", "reviewer"),
        _operation("recalls.list", "GET", "/recalls", "reader", pages=True),
        _operation("recalls.search", "GET", "/recalls/search", "reader", pages=True),
        _operation("recalls.preview", "GET", "/recalls/preview", "reader"),
        _operation("recalls.get", "GET", "/recalls/{id}", *_OF_BOTH),
        _operation("recalls.explain", "GET", "/recalls/{recall}/explain", *_OF_BOTH),
        _operation("history.list", "GET", "/history", "reader"),
        _operation("history.state", "GET", "/history/state", "reader"),
        _operation("history.diff", "GET", "/history/diff", "reader"),
        _operation("history.retrieve", "GET", "/history/retrieve", "reader"),
        _operation("history.rollback", "POST", "/history/rollback", "admin"),
        _operation("admin.counts", "GET", "/admin/counts", *_OF_BOTH),
        _operation("admin.unembedded", "GET", "/admin/unembedded", "admin"),
        _operation("admin.reindex", "POST", "/admin/reindex", "admin"),
        _operation("admin.purge", "POST", "/admin/purge", "admin"),
        _operation("admin.forget", "POST", "/admin/forget", "admin"),
        _operation("admin.export", "GET", "/admin/export", "admin", file="received"),
        _operation("admin.import_", "POST", "/admin/import", "admin", file="sent"),
        _operation("admin.scopes", "GET", "/admin/scopes", "admin"),
        _operation("admin.backup", "GET", "/admin/backup", "admin", file="received", whole_bank=True),
        _operation("admin.storage", "GET", "/admin/storage", "admin", whole_bank=True),
        _operation("admin.verify", "GET", "/admin/verify", "admin", whole_bank=True),
        _operation("admin.rebuild", "POST", "/admin/rebuild", "admin", whole_bank=True),
        _operation("admin.writers", "GET", "/admin/writers", "admin", whole_bank=True),
        _operation("admin.add_writer", "POST", "/admin/writers", "admin", whole_bank=True),
        _operation("admin.remove_writer", "DELETE", "/admin/writers/{name}", "admin", whole_bank=True),
        _operation("admin.reviewers", "GET", "/admin/reviewers", "admin", whole_bank=True),
        _operation("admin.add_reviewer", "POST", "/admin/reviewers", "admin", whole_bank=True),
        _operation("admin.remove_reviewer", "DELETE", "/admin/reviewers/{name}", "admin", whole_bank=True),
    )
}


class Conversation(Record):
    """A run as messages, with the agent's instructions beside them."""

    messages: tuple[dict[str, Json], ...] = Field(min_length=1)
    system: str = ""
    task: str | None = None


def _by_its_shape(value: Any, anything: ValidatorFunctionWrapHandler) -> Any:
    """Read as what it looks like: to try each kind would take five times as long, and say five things of a mistake."""
    kind = _kind_of(value)
    return anything(value) if kind is None else kind.validate_python(value)


def _kind_of(value: Any) -> TypeAdapter[Any] | None:
    if isinstance(value, dict):
        return _CONVERSATION if "messages" in value else _RUN
    first = cast("list[Any]", value)[0] if isinstance(value, list) and value else None
    if not isinstance(first, dict):
        return None
    return _RUNS if "task" in first and "role" not in first else _MESSAGES


_RUN: Final = TypeAdapter(Trajectory)
_RUNS: Final = TypeAdapter(tuple[Trajectory, ...])
_MESSAGES: Final = TypeAdapter(tuple[dict[str, Json], ...])
_CONVERSATION: Final = TypeAdapter(Conversation)
Source: TypeAlias = Annotated[
    Trajectory | Conversation | tuple[Trajectory, ...] | tuple[dict[str, Json], ...] | str, WrapValidator(_by_its_shape)
]
"""What `source` is on the wire: a run, runs of one task, messages, or the agent's answer."""
_ON_THE_WIRE: Final[Mapping[tuple[str, str], Any]] = {
    ("learn", "outcome"): Outcome | Sequence[Outcome | None] | None,
    ("learn", "reward"): float | Sequence[float | None] | None,
}
"""Of several runs, some may have no truth: JSON has a word for that."""
_KEPT_HERE: Final = frozenset({"self", "progress", "path", "return"})
"""What never goes over the wire: functions and paths of the caller."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, as it goes over the wire."""

    name: str
    kind: Any
    default: Any
    """`...` where the caller must give it."""
    place: Literal["path", "query", "body"]
    is_list: bool
    """Whether it is `*ids`."""


def method_of(operation: Operation, /) -> Callable[..., Any]:
    """The bank's own method."""
    view, _, name = operation.name.rpartition(".")
    return getattr(VIEWS[view] if view else AsyncReasoningBank, name)


@cache
def _hints(operation: Operation) -> dict[str, Any]:
    return get_type_hints(method_of(operation), localns={"Path": Path}, include_extras=True)


@cache
def result_of(operation: Operation, /) -> TypeAdapter[Any]:
    """Writes and reads what the call returns."""
    return TypeAdapter(_hints(operation)["return"])


def result_type(operation: Operation, /) -> Any:
    """What the call returns."""
    return _hints(operation)["return"]


@cache
def arguments_of(operation: Operation, /) -> Sequence[Argument]:
    """The arguments that go over the wire."""
    return tuple(
        _argument(operation, parameter)
        for parameter in inspect.signature(method_of(operation)).parameters.values()
        if parameter.name not in _KEPT_HERE
    )


def _argument(operation: Operation, parameter: inspect.Parameter) -> Argument:
    kind = _ON_THE_WIRE.get((operation.name, parameter.name)) or _hints(operation)[parameter.name]
    kind = Source if parameter.name == "source" else kind
    if kind == Moment:  # "9" is the number of a change, and no second of 1970
        kind = Annotated[int | datetime, Field(union_mode="left_to_right")]
    is_list = parameter.kind is parameter.VAR_POSITIONAL
    default = ... if parameter.default is parameter.empty else parameter.default
    in_path = f"{{{parameter.name}}}" in operation.path
    rest = "query" if is_query(operation) else "body"
    return Argument(
        name=parameter.name,
        kind=str if in_path else tuple[kind, ...] if is_list else kind,
        default=default,
        place="path" if in_path else rest,
        is_list=is_list,
    )


@cache
def call_of(operation: Operation, /) -> type[Record]:
    """A record of the arguments that do not stand in the path: the JSON body of the call, or its query."""
    arguments = [each for each in arguments_of(operation) if each.place != "path"]
    fields: dict[str, Any] = {each.name: (each.kind, each.default) for each in arguments}
    words = operation.name.replace(".", "_").strip("_").split("_")
    return create_model(f"{''.join(map(str.capitalize, words))}Call", __base__=Record, **fields)


def is_query(operation: Operation, /) -> bool:
    """Whether its arguments stand in the query of the address."""
    return operation.method in ("GET", "DELETE") or bool(operation.file)
