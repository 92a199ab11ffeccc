"""A run is erased whose words went into a lesson that others taught again: no byte of the bank says them any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from _bytes import leftovers

import lessonbank
from lessonbank import Evidence, Step, Trajectory

SECRET = "Jacaranda"
SCOPE = "acme/support"


def lived(where: str) -> None:
    """Learn, show and erase: a run that names a secret wherever it can, and runs that teach the same."""
    with lessonbank.connect(where, scope=SCOPE, embedder="hashing", evidence=Evidence(holdout=None)) as bank:
        for user, name in enumerate((SECRET, "Acme", "Globex", SECRET)):
            with bank.attempt(f"Publish release 1.{user} of the parser", metadata={"user": f"u-{user % 3}"}) as attempt:
                told = [
                    {"role": "system", "content": f"You publish.\n{attempt.text}"},
                    {"role": "user", "content": attempt.task},
                    {"role": "assistant", "content": "make release"},
                    {"role": "user", "content": f"error: {name} has no entry in the list"},
                    {"role": "assistant", "content": "make changelog"},
                    {"role": "user", "content": f"updated for {name}"},
                    {"role": "assistant", "content": "make release"},
                    {"role": "user", "content": "released"},
                ]
                attempt.finish(told, outcome="success")
        steps = [Step(action="call", observation=f"error: {SECRET}"), Step(action="ask", observation="ok")]
        bank.learn(Trajectory(task=SECRET, steps=steps, metadata={"user": "u-0"}), outcome="failure")
        words = bank.lessons.list()[-1]
        bank.lessons.edit(words.id, content=f"Ask {SECRET} for the list. {words.content}", by="Ana")
        bank.retrieve("Publish release 2 of the parser")
        bank.lessons.approve(*(lesson.id for lesson in bank.lessons.list()), by="Ana", reason=f"{SECRET} says so")


def erase(where: str, folder: Path) -> str:
    """Erase who said the secret; what an export says afterwards."""
    with lessonbank.connect(where, scope=SCOPE, embedder="hashing") as bank:
        told = bank.admin.purge(metadata={"user": "u-0"}, by="Ana", reason="asked to")
        assert told.successors
        assert bank.retrieve("Publish release 2 of the parser").lessons
        assert bank.admin.verify() == ()
        bank.admin.export(folder / "export.jsonl")
        bank.admin.export(folder / "AGENTS.md", format="agents-md", all=True)
    return "".join((folder / name).read_text("utf-8") for name in ("export.jsonl", "AGENTS.md"))


def test_no_byte_of_a_file_says_what_an_erased_run_said(path: Path, tmp_path: Path) -> None:
    lived(str(path))
    assert leftovers(path, SECRET)
    assert SECRET not in erase(str(path), tmp_path)
    assert leftovers(path, SECRET) == []


@pytest.mark.full
def test_no_table_of_a_database_says_what_an_erased_run_said(postgres_bank: Callable[..., str], tmp_path: Path) -> None:
    address = postgres_bank(2)
    lived(address)
    assert SECRET.lower() in rows_of(address)
    assert SECRET not in erase(address, tmp_path)
    assert SECRET.lower() not in rows_of(address)


def rows_of(address: str) -> str:
    """Every column of every row of every table."""
    with psycopg.connect(address) as raw:
        raw.execute("SELECT set_config('lessonbank.scope', '*', true)")
        tables = raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'lessonbank'").fetchall()
        found = [raw.execute(f"SELECT * FROM lessonbank.{name}".encode()).fetchall() for (name,) in tables]
    values = [value for rows in found for row in rows for value in row]
    return "\n".join(
        bytes(one).decode("latin-1") if isinstance(one, bytes | memoryview) else str(one) for one in values
    ).lower()
