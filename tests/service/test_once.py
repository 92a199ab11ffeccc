"""A request that is sent again and again while it is done is done once more only where it failed."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2
from anyio.lowlevel import checkpoint
from starlette.responses import Response

import lessonbank
from lessonbank.http.service.once import MOST_BYTES, Once
from lessonbank.http.service.serving import running
from lessonbank.testing.bank_contract import SETTINGS


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


@pytest.mark.anyio
async def test_large_answers_are_held_as_long_as_there_is_room_for_all() -> None:
    once, done = Once(), list[int]()

    async def do(number: int) -> Response:
        done.append(number)
        return Response(b"x" * 900_000)

    for number in (*range(100), 99, 0):
        await once((str(number),), b"asked", partial(do, number))
        assert once.size <= MOST_BYTES + 1_000_000
    assert done == [*range(100), 0]


@pytest.mark.full
def test_a_run_that_is_sent_again_to_another_process_is_one_run(tmp_path: Path) -> None:
    opened = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="t", **SETTINGS)
    run = {"task": "Ship a parcel", "steps": [{"action": "print label", "observation": "no form"}]}
    with running(opened) as server:
        headers = {"Authorization": f"Bearer {server.key('Ana', scope='t', role='admin')}"}
    learn = "/v1/runs/learn"
    calls = (("/v1/runs", run, "failure"), (learn, [run, run], ["failure"] * 2), (learn, run, "success"))
    ids = list[list[str]]()
    for _ in range(2):
        with running(opened) as server, httpx2.Client(base_url=server.url, headers=headers, timeout=60) as http:
            for path, source, outcome in calls:
                named = {"Idempotency-Key": f"{type(source).__name__} at {path}"}
                http.post(path, json={"source": source, "outcome": outcome}, headers=named).raise_for_status()
            ids.append([one["trajectory"]["id"] for one in http.get("/v1/runs").json()])
    assert len(ids[0]) == len(ids[1]) == 4
    assert {*ids[0]} == {*ids[1]}
