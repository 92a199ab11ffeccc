"""The routes of the API, one for each operation of the client's table: made from its data and the bank's signatures."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Annotated, Any, Final, TypeAlias, cast, get_origin
from urllib.parse import unquote

import anyio
from anyio import to_thread
from fastapi import APIRouter, Body, FastAPI, Query, Request
from fastapi.routing import APIRoute
from pydantic import Json as JsonText
from pydantic import JsonValue, create_model
from starlette.responses import Response

from lessonbank.contracts.records import Record, Run, Trajectory
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import UsageError
from lessonbank.guard.identity import acting_as
from lessonbank.http.client.operations import (
    OPERATIONS,
    Conversation,
    Operation,
    arguments_of,
    call_of,
    is_query,
    method_of,
    result_of,
    result_type,
)

from .admission import Admission, Caller
from .bodies import call_of_body
from .examples import EXAMPLES
from .files import receive, send
from .links import links_of
from .once import Once
from .problems import problem
from .wire import Limits

_Answer: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
_ETAGGED: Final = ("lessons.get", "lessons.edit", "lessons.narrow")
_CONDITIONAL: Final = ("lessons.edit", "lessons.narrow")
_LARGEST_PAGE: Final = 10_000
_HEADERS: Final = (
    ("Lessonbank-Scope", "Whose memory, percent-encoded. Without: the scope of the key."),
    ("Lessonbank-Writer", "The name of a writer or reviewer of the bank, percent-encoded; with its key."),
    ("Lessonbank-Writer-Key", "The key that the bank gave that writer or reviewer."),
)


@dataclass(frozen=True, slots=True)
class Routes:
    """All operations over one bank."""

    admission: Admission
    limits: Limits
    once: Once = field(default_factory=Once)
    edits: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while a conditional edit compares and writes."""

    def add_to(self, app: FastAPI, /) -> None:
        """Let `app` answer every operation."""
        app.state.routes = self
        app.router.routes.extend(_router().routes)

    async def admitted(self, operation: Operation, by_fastapi: _Answer, request: Request) -> Response:
        """The answer to a request: its key first, for FastAPI reads a body before it calls a function of ours."""
        request.state.caller = await self.admission.admit(request, operation)
        if not _has_body(operation):
            return await by_fastapi(request)
        call = await call_of_body(request, call_of(operation), self.limits)
        return await self.answer(operation, request, {"call": call, **request.path_params})

    async def answer(self, operation: Operation, request: Request, arguments: dict[str, Any]) -> Response:
        """The answer to a call that was read: the same one where it is sent again under its name."""
        caller: Caller = request.state.caller
        given = _given(operation, arguments)
        await caller.check_person(given)
        do = partial(self._done, operation, caller, given, request)
        name = request.headers.get("idempotency-key")
        if not name or operation.method == "GET" or operation.file:
            return await do()
        asked = await to_thread.run_sync(hashlib.sha256, await request.body())
        whole_name = (caller.key.id, caller.bank.scope, request.url.path, request.url.query, name)
        _name_runs(given, whole_name)
        return await self.once(whole_name, asked.digest(), do)

    async def _done(self, operation: Operation, caller: Caller, given: dict[str, Any], request: Request) -> Response:
        if operation.name == "admin.scopes":
            return _json(operation, await self.admission.scopes(caller.key))
        if operation.file:
            carry = send if operation.file == "received" else receive
            return await carry(request, operation, partial(_call, operation, caller, given))
        wanted = request.headers.get("if-match")
        if wanted and operation.name in _CONDITIONAL:
            return await self._if_same(operation, caller, given, wanted)
        result = await _call(operation, caller, given)
        answer = _json(operation, result)
        if operation.name in _ETAGGED:
            answer.headers["ETag"] = tag = _etag(answer.body)
            if _names(request.headers.get("if-none-match", ""), tag):
                return Response(status_code=304, headers={"ETag": tag})
        if operation.pages:
            _link_next(answer, request, result, given)
        return answer

    async def _if_same(self, operation: Operation, caller: Caller, given: dict[str, Any], wanted: str) -> Response:
        """Edit a lesson that is as the caller saw it. Two servers may still both compare, then write."""
        async with self.edits:
            seen = _json(OPERATIONS["lessons.get"], await caller.bank.lessons.get(given["id"]))
            if not _names(wanted, _etag(seen.body)):
                return problem("changed", "the lesson is another one now: get it again, then edit")
            answer = _json(operation, await _call(operation, caller, given))
            answer.headers["ETag"] = _etag(answer.body)
            return answer


@cache
def _router() -> APIRouter:
    """A route for each operation, made once a process: an application says over which bank."""
    router = APIRouter()
    for operation in OPERATIONS.values():
        router.add_api_route(
            f"/v1{operation.path}",
            _endpoint(operation),
            methods=[operation.method],
            operation_id=operation.operation_id,
            summary=_summary(operation),
            description=_rest(operation),
            tags=[operation.path.split("/")[1]],
            response_model=None if operation.file == "received" else result_type(operation),
            responses=_responses(operation),
            openapi_extra=_extra(operation),
            route_class_override=_key_first(operation),
        )
    return router


def _key_first(operation: Operation) -> type[APIRoute]:
    class KeyFirst(APIRoute):
        def get_route_handler(self) -> _Answer:
            by_fastapi = super().get_route_handler()

            async def answer(request: Request) -> Response:
                return await _routes_of(request).admitted(operation, by_fastapi, request)

            return answer

    return KeyFirst


def _endpoint(operation: Operation) -> Callable[..., Awaitable[Response]]:
    async def endpoint(request: Request, **arguments: Any) -> Response:
        return await _routes_of(request).answer(operation, request, arguments)

    setattr(endpoint, "__signature__", _signature(operation))  # noqa: B010 - a function has no such attribute by its type
    return endpoint


def _routes_of(request: Request) -> Routes:
    return cast("Routes", request.app.state.routes)


def _has_body(operation: Operation) -> bool:
    return bool(call_of(operation).model_fields) and not is_query(operation)


def _signature(operation: Operation) -> inspect.Signature:
    """The parameters of an endpoint, as FastAPI reads them."""
    names: list[tuple[str, Any]] = [("request", Request)]
    names += [(each.name, str) for each in arguments_of(operation) if each.place == "path"]
    call = call_of(operation)
    if call.model_fields:
        examples = EXAMPLES.get(operation.name)
        body = Body(openapi_examples={"example": {"value": examples}}) if examples else Body()
        names.append(("call", Annotated[_query(operation), Query()] if is_query(operation) else Annotated[call, body]))
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([inspect.Parameter(name, keyword, annotation=kind) for name, kind in names])


@cache
def _query(operation: Operation) -> type[Record]:
    """The arguments of a call as they stand in an address: mappings as JSON."""
    fields = {each.name: (_flat(each.kind), each.default) for each in arguments_of(operation) if each.place == "query"}
    return create_model(f"{call_of(operation).__name__}Query", __base__=Record, **cast("Any", fields))


def _flat(kind: Any) -> Any:
    is_mapping = any(get_origin(annotation) is Mapping for annotation in getattr(kind, "__args__", ()))
    return JsonText[dict[str, JsonValue]] | None if is_mapping else kind


def _given(operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the bank's method. Raises UsageError."""
    call: Record | None = arguments.pop("call", None)
    given: dict[str, Any] = {name: unquote(value, errors="replace") for name, value in arguments.items()}
    if call is not None:
        given |= {name: getattr(call, name) for name in type(call).model_fields}
    if operation.pages and given["limit"] > _LARGEST_PAGE:
        raise UsageError(f"limit= is at most {_LARGEST_PAGE:,} over HTTP: go on with after=")
    source = given.get("source")
    if isinstance(source, Conversation):
        given["source"] = source.model_dump()
    elif isinstance(source, tuple):
        given["source"] = list(cast("tuple[Any, ...]", source))
    return given


def _name_runs(given: dict[str, Any], name: tuple[str, ...]) -> None:
    """Let the name of a request be that of its runs, where they have none: this holds also in another process."""
    source, several = given.get("source"), isinstance(given.get("source"), list)
    runs = [
        run.model_copy(update={"id": digest(repr((name, number)))[:32]})
        if isinstance(run, Trajectory) and "id" not in run.model_fields_set
        else run
        for number, run in enumerate(cast("list[Any]", source) if several else [source])
    ]
    given |= {"source": runs if several else runs[0]} if "source" in given else {}


async def _call(operation: Operation, caller: Caller, given: Mapping[str, Any], /, *first: Any) -> Any:
    """Call the bank's method as a Python program would."""
    view, _, name = operation.name.rpartition(".")
    method = getattr(getattr(caller.bank, view) if view else caller.bank, name)
    args, kwargs = list(first), dict[str, Any]()
    for parameter in inspect.signature(method_of(operation)).parameters.values():
        if parameter.name not in given:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            args.extend(given[parameter.name])
        elif parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = given[parameter.name]
        else:
            args.append(given[parameter.name])
    with acting_as(caller.identity):
        return await method(*args, **kwargs)


def _json(operation: Operation, result: Any) -> Response:
    return Response(result_of(operation).dump_json(result), media_type="application/json")


def _etag(body: bytes | memoryview) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _names(header: str, tag: str) -> bool:
    """Whether one of the tags in a header is this one. A proxy that packs an answer on its way calls it a weak one."""
    return not {"*", tag}.isdisjoint(listed.strip().removeprefix("W/") for listed in header.split(","))


def _link_next(answer: Response, request: Request, result: Any, given: Mapping[str, Any]) -> None:
    """Say where the next page is, if there may be one."""
    if len(result) == given["limit"]:
        last = result[-1].trajectory.id if isinstance(result[-1], Run) else result[-1].id
        to = request.url.include_query_params(after=last)  # without the host: whether there is TLS, a proxy knows
        answer.headers["Link"] = f'<{to.path}?{to.query}>; rel="next"'


def _summary(operation: Operation) -> str:
    return (inspect.getdoc(method_of(operation)) or "").split("\n\n")[0].split(". ")[0].replace("\n", " ").rstrip(".")


def _rest(operation: Operation) -> str:
    roles = ", ".join(
        sorted({*operation.roles, "reviewer", "admin"} if "reviewer" not in operation.roles else operation.roles)
    )
    description = inspect.getdoc(method_of(operation)) or ""
    return f"{description}\n\nFor keys of these roles: {roles}. In Python: `bank.{operation.name}`."


def _responses(operation: Operation) -> dict[int | str, dict[str, Any]]:
    responses = {**REFUSALS}
    if operation.name == "lessons.get":
        responses[304] = {"description": "The lesson is the one of `If-None-Match`."}
    if links := links_of(operation.name):
        responses[200] = {"links": links}
    if operation.file == "received":
        responses[200] = {"description": "The file.", "content": {"application/octet-stream": {}}}
    return responses


_PROBLEM: Final = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"description": "It was refused: `code` says why, `detail` what to do.", "content": _PROBLEM},
    "5XX": {"description": "The bank, its model or the server failed.", "content": _PROBLEM},
}
"""How every request may be refused."""


def _extra(operation: Operation) -> dict[str, Any]:
    """What every request may say in its headers, and the file that one sends."""
    named = [*_HEADERS]
    if operation.method != "GET" and not operation.file:
        named.append(("Idempotency-Key", "A process does a request of this name once in ten minutes."))
    if operation.name in _CONDITIONAL:
        named.append(
            ("If-Match", "The ETag of the lesson as you saw it: if it is another one now, nothing is changed.")
        )
    parameters = [
        {"name": name, "in": "header", "required": False, "description": description, "schema": {"type": "string"}}
        for name, description in named
    ]
    extra: dict[str, Any] = {"parameters": parameters, "security": [{"key": []}]}
    if operation.file == "sent":
        binary = {"schema": {"type": "string", "format": "binary"}}
        extra["requestBody"] = {"required": True, "content": {"application/octet-stream": binary}}
    return extra
