"""Files that a caller sends or gets: they lie in a folder of their own while the bank reads or writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

import anyio
from anyio import to_thread
from fastapi import Request
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from lessonbank._base.checks import short_path
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.http.client.operations import Operation, result_of

RESULT: Final = "Lessonbank-Result"
_LONGEST_NAME: Final = 100
"""Bytes."""


async def send(request: Request, operation: Operation, call: Callable[..., Awaitable[Any]], /) -> Response:
    """The file that `call` writes, and in a header what it returns."""
    if request.query_params.get("format", "jsonl") != "jsonl":
        raise UsageError("over HTTP an export is JSON lines: leave format= out")
    folder = await to_thread.run_sync(tempfile.TemporaryDirectory)
    try:
        path = Path(folder.name) / "file"
        result = await call(path)
    except BaseException:
        await _removed(folder)
        raise
    headers = {RESULT: result_of(operation).dump_json(result).decode()}
    return FileResponse(
        path, headers=headers, media_type="application/octet-stream", background=BackgroundTask(_removed, folder)
    )


async def receive(request: Request, operation: Operation, call: Callable[..., Awaitable[Any]], /) -> Response:
    """What `call` returns, given the file that comes."""
    folder = await to_thread.run_sync(tempfile.TemporaryDirectory)
    path = Path(folder.name) / _name(request.headers.get("lessonbank-file", ""))
    try:
        async with await anyio.open_file(path, "wb") as out:
            async for block in request.stream():
                await out.write(block)
        return Response(result_of(operation).dump_json(await call(path)), media_type="application/json")
    except LessonbankError as error:
        error.args = (
            str(error).replace(short_path(path), short_path(path.name)),
        )  # the caller knows nothing of a folder here
        raise
    finally:
        await _removed(folder)


async def _removed(folder: tempfile.TemporaryDirectory[str]) -> None:
    with anyio.CancelScope(shield=True):
        await to_thread.run_sync(folder.cleanup)


def _name(header: str) -> str:
    """The last part of the caller's name for the file, which can say what format it has."""
    name = PurePosixPath(unquote(header, errors="replace")).name.encode()[-_LONGEST_NAME:].decode(errors="ignore")
    return name if name.isprintable() and name.strip(". ") and "\\" not in name else "import.jsonl"
