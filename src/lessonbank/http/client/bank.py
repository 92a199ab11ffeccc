"""`AsyncReasoningBank` over HTTP: each method of the bank and its views sends its arguments, and reads the answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NoReturn, Self, cast
from urllib.parse import quote

import anyio
import httpx2
from anyio import to_thread
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from lessonbank._base.atomic_write import replacing
from lessonbank._base.background import Background
from lessonbank._base.checks import a_call, a_path, a_text, an_id, argument_error, is_instance, maybe_ids, short_path
from lessonbank._base.safe_read import open_regular
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.bank.outbox import Outbox, describe_waiting, erase_spooled
from lessonbank.bank.parts import BankOptions, BankParts
from lessonbank.bank.spool import Spool
from lessonbank.bank.views import AsyncAdmin, AsyncHistory, AsyncLessons, AsyncRecalls, AsyncRuns, Erasing
from lessonbank.contracts.ports import Care, Index, Queue, Records, Store
from lessonbank.contracts.records import Recall, Record, Trajectory
from lessonbank.contracts.records.record import reason_of
from lessonbank.contracts.retrieve_options import PATIENCE, some_patience
from lessonbank.contracts.settings import Server
from lessonbank.contracts.store_calls import calls_of
from lessonbank.errors import NotFound, UsageError, printable
from lessonbank.guard import check_scope
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.names import checked_name
from lessonbank.guard.quote import quoted
from lessonbank.guard.redact import redact
from lessonbank.matts.scaler import Scaler
from lessonbank.text.messages.runs import runs_from

from .connection import Connection, in_path, query_of, unreadable
from .operations import OPERATIONS, VIEWS, Operation, arguments_of, call_of, is_query, method_of, result_of

_RESULT: Final = "Lessonbank-Result"
_BLOCK: Final = 65_536
_BOUNDED: Final = ("retrieve", "recall_again", "submit", "keep_unfinished")
"""Calls that end, or fail, within `patience`. `learn` keeps the run in that time, and goes on."""
_NOTHING: Final[Mapping[str, Any]] = {"lesson": None, "run": None, "recall": None, "metadata": None, "all": False}
"""What a purge names that names nothing."""


class _Caller:
    """One scope of a server, as its bank and its views call it."""

    def __init__(
        self,
        connection: Connection,
        scope: str,
        writer: str | None = None,
        key: str | None = None,
        *,
        is_scoped: bool = False,
    ) -> None:
        self.connection, self.scope, self.writer, self.key = connection, scope, writer, key
        self.is_scoped = is_scoped

    @property
    def headers(self) -> dict[str, str]:
        """What every request says beside its arguments. They are not part of the address, which proxies log."""
        named = {"Lessonbank-Scope": self.scope, "Lessonbank-Writer": self.writer, "Lessonbank-Writer-Key": self.key}
        return {name: quote(value, safe="") for name, value in named.items() if value is not None}

    async def __call__(self, operation: Operation, given: dict[str, Any], /) -> Any:
        """Do `operation` on the server. Raises what the bank there raises, or StoreUnavailable."""
        if self.is_scoped and not self.key and (operation.whole_bank or operation.name == "admin.scopes"):
            call = operation.name.removeprefix("admin.")
            raise UsageError(f"{call} acts on the whole file: call it on the bank itself, not on a handle of scoped()")
        if operation.file:
            return await self._with_file(operation, given)
        progress = a_call(given.get("progress"), "progress=")
        try:
            result = await self._with_spool(operation.name, given, await self._ask(operation, given))
        except NotFound:
            if operation.name != "admin.purge" or not (spooled := await self._purged(given)):
                raise
            return await self._purge_others(operation, given, spooled)
        if progress:
            progress(result)
        return result

    async def _ask(self, operation: Operation, given: dict[str, Any]) -> Any:
        path, call = _address(operation, given), _checked(operation, await _in_form(self, given))
        query, body = (query_of(_set(call)), None) if is_query(operation) else ({}, _json(call))
        seconds = given.get("patience") if operation.name in _BOUNDED else None
        send = partial(self.connection.send, operation.method, path, headers=self.headers, query=query)
        answer = await send(body=body, seconds=seconds)
        return _read(operation, answer.content, answer)

    @property
    def spool(self) -> Spool | None:
        """What waits for the server on this machine, of this key."""
        return Spool.of(self.connection.url, f"{self.connection.key or ''} {self.key or ''}")

    async def _with_spool(self, call: str, given: dict[str, Any], result: Any) -> Any:
        """Do the same to the runs that wait on this machine, and add what came of that to `result`."""
        if call == "admin.storage":
            return {**result, "spool": await describe_waiting(self.spool)}
        if call == "admin.purge":
            return result.model_copy(update={"spooled": len(await self._purged(given))})
        if call == "admin.forget":
            await erase_spooled(self.spool, self.scope, before=datetime.now(UTC) - timedelta(days=given["days"]))
        return result

    async def _purge_others(
        self, operation: Operation, given: dict[str, Any], spooled: Sequence[frozenset[str]]
    ) -> Erasing:
        """Erase on the server what a purge names, where some of it only waited here. Raises NotFound: the rest."""
        waiting = frozenset[str]().union(*spooled)
        runs, recalls = maybe_ids(given["run"], "run="), maybe_ids(given["recall"], "recall=")
        rest = {
            "run": [id for id in runs if id not in waiting] or None,
            "recall": [id for id in recalls if id not in waiting] or None,
        }
        is_more = any((*rest.values(), given["lesson"], given["metadata"], given["all"]))
        result = await self._ask(operation, {**given, **rest}) if is_more else Erasing()
        for name, id in [*(("run", id) for id in runs), *(("recall", id) for id in recalls)]:
            if id in waiting:  # the server may have it too: its answer may have been lost
                with suppress(NotFound):
                    await self._ask(operation, {**given, **_NOTHING, name: id})
        erased = {
            "runs": tuple(dict.fromkeys((*result.runs, *runs))),
            "recalls": tuple(dict.fromkeys((*result.recalls, *recalls))),
        }
        return result.model_copy(update={**erased, "spooled": len(spooled)})

    async def _purged(self, given: dict[str, Any]) -> Sequence[frozenset[str]]:
        ids = {*maybe_ids(given["run"], "run="), *maybe_ids(given["recall"], "recall=")}
        more = {name: given[name] for name in ("metadata", "all", "preview")}
        return await erase_spooled(self.spool, self.scope, ids=ids, **more)

    async def _with_file(self, operation: Operation, given: dict[str, Any]) -> Any:
        path, query = a_path(given["path"]), query_of(_set(_checked(operation, given)))
        if given.get("format", "jsonl") != "jsonl":
            raise UsageError(
                "a server exports JSON lines only: export those, import them into a bank on this machine, and write "
                f"format={given['format']!r} from there"
            )
        headers = {**self.headers, "Lessonbank-File": quote(path.name, safe="")}
        sent = _bytes_of(path) if operation.file == "sent" else None
        request = self.connection.stream(operation.method, operation.path, headers=headers, query=query, body=sent)
        async with request as answer:
            if operation.file == "received":
                await _keep(answer.aiter_bytes(), path, what=operation.name.rpartition(".")[2])
                return _read(operation, answer.headers[_RESULT].encode(), answer)
            return _read(operation, await answer.aread(), answer)


def _over_http(operation: Operation, /) -> Callable[..., Any]:
    """The method of the bank, asked of the server: same parameters, same result, same docstring."""
    method = method_of(operation)
    signature = inspect.signature(method)

    @functools.wraps(method)
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        return await given.pop("self").caller(operation, given)

    return call


def _refused(method: Callable[..., Any], why: str, /) -> Callable[..., Any]:
    """A method that is not for HTTP: it says what to do in its place."""

    @functools.wraps(method)
    async def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(f"{method.__name__} {why}, on connect(FILE)")

    return call


def _calls(view: str) -> dict[str, Any]:
    """The methods of a view, or of the bank itself, by name."""
    parts = {name: name.rpartition(".") for name in OPERATIONS}
    return {name: _over_http(OPERATIONS[whole]) for whole, (of, _, name) in parts.items() if of == view}


def _view(name: str, /) -> Any:
    """A view of a remote bank: a class of the same kind, whose methods ask the server."""

    def begin(self: Any, caller: _Caller, /) -> None:
        object.__setattr__(self, "caller", caller)

    of = VIEWS[name]
    namespace = {"__init__": begin, "__doc__": of.__doc__, "__module__": __name__, **_calls(name)}
    return type(f"Remote{of.__name__.removeprefix('Async')}", (of,), namespace)


_VIEWS: Final = {name: _view(name) for name in VIEWS}
_VIEWS["admin"].sync = _refused(AsyncAdmin.sync, "reads files that lie beside the bank: call it where the server runs")


class RemoteBank(AsyncReasoningBank):
    """A bank that a server keeps. Made by `lessonbank.connect("https://…")`.

    What runs your own code runs here: `attempt` and `scale`. The server decides how it judges, extracts and searches.
    """

    caller: _Caller

    def __init__(self, server: Server, /, *, scope: str, key: str | None) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._call(_Caller(Connection(server.url, key=key, timeout=server.timeout), check_scope(scope)))
        self._background, self.options = Background(quoted), BankOptions(place=server.url)
        self.parts = cast("BankParts", _PartsOfScale())
        self.store = cast("Store", _StoreOfServer())

    def _call(self, caller: _Caller) -> None:
        self.caller, self.scope, self.writer = caller, caller.scope, caller.writer or "learn"
        self.settings = {"store": caller.connection.url, "scope": self.scope, "writer": self.writer}

    def scoped(self, scope: str | None = None, /, *, writer: str | None = None, key: str | None = None) -> Self:
        """Return a handle for another scope or writer. Without `key`, a writer is a label, as on every bank."""
        if key is not None and writer is None:
            raise UsageError("key= belongs to a writer: give scoped(writer=name, key=…) with the key of that writer")
        here, bank = self.caller, copy(self)
        scope = here.scope if scope is None else check_scope(scope)
        if writer is None:
            writer, key = here.writer, here.key
        else:
            writer, key = (
                checked_name(writer, what="writer="),
                None if key is None else a_text(key, "key=", blank=False),
            )
        bank._call(_Caller(here.connection, scope, writer, key, is_scoped=True))
        return bank

    @property
    def _outbox(self) -> Outbox:
        """What waits here is redacted as most servers do."""
        return Outbox(self.caller.spool, IntakeFilter(redactor=redact), self.caller.writer, self.caller.key)

    @property
    def lessons(self) -> AsyncLessons:
        """See `AsyncReasoningBank.lessons`."""
        return _VIEWS["lessons"](self.caller)

    @property
    def runs(self) -> AsyncRuns:
        """See `AsyncReasoningBank.runs`."""
        return _VIEWS["runs"](self.caller)

    @property
    def recalls(self) -> AsyncRecalls:
        """See `AsyncReasoningBank.recalls`."""
        return _VIEWS["recalls"](self.caller)

    @property
    def history(self) -> AsyncHistory:
        """See `AsyncReasoningBank.history`."""
        return _VIEWS["history"](self.caller)

    @property
    def admin(self) -> AsyncAdmin:
        """See `AsyncReasoningBank.admin`."""
        return _VIEWS["admin"](self.caller)

    async def _hand_in(self, runs: Sequence[Trajectory], /, **known: object) -> None:
        """Nothing is kept yet: the server gets all runs of a task when it learns from them."""

    async def drain(self) -> None:
        """Wait until what was submitted is learned: on the server, and here."""
        await super().drain()
        while not (await self.caller.connection.send("POST", "/drain", headers=self.caller.headers)).json():
            pass  # the server answers as soon as it is done, or after some seconds

    async def close(self, *, patience: float = PATIENCE) -> None:
        """Wait for work that began here, and close the connections. The server goes on to learn what was submitted."""
        self.caller.connection.hurry(some_patience(patience))
        await self._background.end(patience)
        await self.caller.connection.close()


@dataclass(frozen=True, slots=True)
class _PartsOfScale:
    """The parts that act where the agent runs. The server has all others."""

    scaler: Scaler = field(default_factory=Scaler)
    intake: IntakeFilter = field(default_factory=IntakeFilter)

    def labelled(self, labels: bool, /) -> None:
        """Nobody here draws lessons."""


class _StoreOfServer:
    """What this side has of the store: a sentence for whoever asks it for something."""

    def __getattr__(self, name: str) -> NoReturn:
        if name in _CALLS_OF_A_STORE:
            raise UsageError("only the server reads and writes the store of this bank: do this where it runs")
        raise AttributeError(f"the bank of a server has no {name!r} of a store")


_CALLS_OF_A_STORE: Final = frozenset(chain.from_iterable(map(calls_of, (Records, Index, Queue, Care))))


def _kept_first(learn: Callable[..., Any], /) -> Callable[..., Any]:
    """`learn`, which waits for no more than the answer that the run is kept, where it has `patience` for no longer."""

    @functools.wraps(learn)
    async def call(self: RemoteBank, source: object, /, *, patience: float | None = None, **arguments: Any) -> Any:
        if patience is not None:
            arguments = await _in_form(
                self.caller, {"source": source, **arguments}
            )  # once: messages read twice are two runs
            source = arguments.pop("source")
            await self.submit(source, patience=patience, learn=False, **arguments)
        return await learn(self, source, **arguments)

    return call


for _name, _method in _calls("").items():
    setattr(RemoteBank, _name, _method if _name != "learn" else _kept_first(_method))
RemoteBank.trial = _refused(
    AsyncReasoningBank.trial,
    "compares with and without memory and needs the bank itself: call it where the server runs",
)


async def _in_form(caller: _Caller, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with what the caller has for a run as runs: messages of any SDK are read here."""
    if "source" not in given:
        return dict(given)
    task, recall = given.get("task"), given.get("recall")
    asked = recall.task if is_instance(recall, Recall) else None
    if is_instance(recall, str) and task is None and not _names_its_task(given["source"]):
        asked = (await _VIEWS["recalls"](caller).get(recall)).task
    runs = await runs_from(given["source"], task=task, asked=asked)
    return {**given, "source": runs[0] if len(runs) == 1 else tuple(runs), "task": None}


def _names_its_task(source: object) -> bool:
    several = cast("Sequence[object]", source) if is_instance(source, (list, tuple)) else [source]
    return all(is_instance(run, Trajectory) for run in several)


def _checked(operation: Operation, given: Mapping[str, Any]) -> Record:
    """The arguments that do not stand in the path. Raises UsageError."""
    names = {each.name for each in arguments_of(operation) if each.place != "path"}
    call = call_of(operation)
    try:
        return call.model_validate({name: value for name, value in given.items() if name in names}, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = first["loc"][0] if first["loc"] else "an argument"
        raise argument_error(f"{name}=", f"is wrong ({reason_of(first['msg'])})", given.get(str(name))) from None
    except Exception as error:  # noqa: BLE001 - whatever a value of the caller's own raises when it is read
        raise UsageError(f"{operation.name} got a value that raised {type(error).__name__} when it was read") from None


def _set(call: Record) -> dict[str, Any]:
    """The arguments that are not those by default."""
    values = {name: getattr(call, name) for name in type(call).model_fields}
    return {name: value for name, value in values.items() if value != type(call).model_fields[name].default}


def _json(call: Record) -> bytes:
    try:
        return call.model_dump_json(warnings=False).encode()
    except PydanticSerializationError as error:  # such as half of a surrogate pair
        raise UsageError(f"an argument cannot be sent as JSON: {printable(error, most=200)}") from None


def _address(operation: Operation, given: Mapping[str, Any]) -> str:
    path = operation.path
    for each in arguments_of(operation):
        if each.place == "path":
            value = given[each.name]
            id = an_id(value.id if is_instance(value, Recall) else value, each.name)
            path = path.replace(f"{{{each.name}}}", in_path(id))
    return path


def _read(operation: Operation, body: bytes, answer: httpx2.Response) -> Any:
    try:
        return result_of(operation).validate_json(body)
    except ValidationError as error:
        raise unreadable(error, answer) from None


async def _bytes_of(path: Path) -> AsyncIterator[bytes]:
    try:
        file = await to_thread.run_sync(open_regular, path)
    except OSError as error:
        raise UsageError(f"{short_path(path)} cannot be read: {error.strerror or error}") from None
    with file:
        while block := await to_thread.run_sync(file.read, _BLOCK):
            yield block


async def _keep(blocks: AsyncIterator[bytes], path: Path, *, what: str) -> None:
    """Write what comes to `path`, whole or not at all. Raises UsageError, StoreUnavailable."""
    async with replacing(path, what=what) as part, await anyio.open_file(part, "wb") as out:
        async for block in blocks:
            await out.write(block)
