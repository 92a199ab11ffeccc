"""A request that is sent again and again while it is done is done once more only where it failed."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

from anyio.lowlevel import checkpoint
from starlette.responses import Response

from lessonbank.http.service.once import Once


@pytest.mark.anyio
async def test_of_several_that_wait_for_one_that_fails_only_one_is_done() -> None:
    once, tries = Once(), list[int]()

    async def do() -> Response:
        tries.append(500 if not tries else 200)
        status = tries[-1]
        await checkpoint()
        return Response(b"", status)

    async with asyncio.TaskGroup() as group:
        sent = [group.create_task(once(("a key", "a name"), b"asked", do)) for _ in range(3)]
    assert tries == [500, 200]
    assert [one.result().status_code for one in sent] == [500, 200, 200]
