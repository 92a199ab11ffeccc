"""`serve` and `keys`: a server as a program of its own, and the keys that open it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from running import COMMAND, RUNS, lessonbank_cli
from typer.main import get_command

pytest.importorskip("fastapi", reason="needs the extra server")
pytest.importorskip("httpx2", reason="needs the extra client")

import lessonbank
from lessonbank import Server, Step, Trajectory
from lessonbank.cli import app
from lessonbank.errors import Unauthenticated
from lessonbank.http.service.serving import running

pytestmark = pytest.mark.full
SETTINGS: dict[str, Any] = {"scope": "acme", "embedder": "lexical", "evidence": lessonbank.Evidence(holdout=None)}


def test_a_key_is_printed_once_listed_without_its_secret_rotated_and_ended(tmp_path: Path) -> None:
    lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical").close()
    bank = ("--bank", "bank.db")
    made = lessonbank_cli("keys", "add", "agent-1", *bank, "--scope", "acme", "--days", "30", cwd=tmp_path)
    key = made.stdout.strip()
    assert key.startswith("lb_")
    listed = lessonbank_cli("keys", "list", *bank, "--json", cwd=tmp_path).stdout
    (told,) = json.loads(listed)
    assert (told["name"], told["scope"], told["role"], told["used_at"]) == ("agent-1", "acme", "agent", None)
    assert key[-16:] not in listed
    assert told["id"] in lessonbank_cli("keys", "list", *bank, cwd=tmp_path).stdout
    again = lessonbank_cli(
        "keys", "add", "--replaces", told["id"], *bank, "--overlap", "1", cwd=tmp_path
    ).stdout.strip()
    assert again != key
    assert lessonbank_cli("keys", "remove", told["id"], *bank, cwd=tmp_path).returncode == 0
    assert json.loads(lessonbank_cli("keys", "list", *bank, "--json", cwd=tmp_path).stdout) == []
    for wrong in (("remove", told["id"]), ("add", "x"), ("add", "x", "--scope", "a", "--role", "king")):
        assert lessonbank_cli("keys", *wrong, *bank, cwd=tmp_path).returncode == 2


def test_a_server_answers_the_holder_of_a_key_until_it_is_told_to_end(tmp_path: Path) -> None:
    told = [*COMMAND, "serve", "--bank", "bank.db", "--new", "--port", "0", "--embedder", "lexical", "--holdout", "0"]
    environment = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen(told, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "serves" in line)
        url = line.split()[-1].removesuffix("/v1")
        key = lessonbank_cli("keys", "add", "a", "--bank", "bank.db", "--scope", "acme", cwd=tmp_path).stdout.strip()
        with lessonbank.connect(Server(url, api_key=key), scope="acme/support") as bank:
            assert bank.learn({"messages": [{"role": "user", "content": "Ship box 7"}]}, outcome="success").verdicts
            lessonbank_cli("keys", "remove", key.split("_")[1], "--bank", "bank.db", cwd=tmp_path)
            with pytest.raises(Unauthenticated):
                bank.retrieve("Ship box 7")
        server.send_signal(signal.SIGTERM)
        rest = server.stderr.read()
    assert server.returncode in (0, -signal.SIGTERM)
    assert "Ship box" not in rest
    assert "acme" not in rest
    assert '"route": "/v1/runs/learn"' in rest


WITHOUT_SERVER = {"install", "mcp", "proxy", "restore", "review", "salvage", "serve", "trial", "week", "worker"}
"""They begin programs that stay, run an agent, or work on a file of this machine; `--bank` is the same there."""
WHERE_IT_RUNS = "do this where it runs"


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands that take `--bank`, in words."""
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))
    if any(parameter.name == "bank" and "--bank" in parameter.opts for parameter in group.params):
        yield " ".join(path)


def test_every_command_takes_the_address_of_a_server(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", **SETTINGS) as bank:
        one, two, three, four, five = (
            bank.lessons.add(title=f"Weigh {n}", content=f"Weigh {n} times.", task=f"Ship box {n}", by="Ana").id
            for n in range(5)
        )
        bank.learn([{"role": "user", "content": "Ship it"}, {"role": "assistant", "content": "ok"}], outcome="success")
        run, recall = bank.runs.list()[0].trajectory.id, bank.retrieve("Ship box 1").id
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, RUNS)))
    who, why = ("--by", "Ana"), ("--by", "Ana", "--reason", "a test")
    words: dict[str, tuple[str, ...]] = {
        "retrieve": ("Ship box 1", "--trusted"),
        "retrieve --keep": ("Ship box 1", "--metadata", "user=u"),
        "learn": ("runs.jsonl",),
        "export": ("out.jsonl",),
        "import": ("out.jsonl",),
        "backup": ("copy.db",),
        "explain": (recall,),
        "tell": (run, "failure", *who),
        "lessons add": ("--title", "Twice", "--content", "Weigh it twice.", "--task", "Ship it", *who),
        "lessons approve": (one, *who),
        "lessons edit": (one, "--content", "Weigh it well.", *who),
        "lessons merge": (two, three, "--title", "Both", "--content", "Weigh both.", *who),
        "lessons retire": (five, *why),
        "lessons retire --quarantine": (four, *why),
        "lessons retire --undo": (five, *why),
        "history diff": ("0", "1"),
        "history rollback": ("20", *why),
        "keys list": (),
        "keys add --kind writer": ("agent",),
        "keys remove --kind writer": ("agent",),
        "purge": ("--run", run, "--yes", *why),
        "keys add --kind reviewer": ("Ana",),
    }
    refused: dict[str, tuple[tuple[str, ...], str]] = {
        "keys add": (("agent", "--scope", "acme"), WHERE_IT_RUNS),
        "keys add --replaces": (("a-key",), WHERE_IT_RUNS),
        "keys remove": (("a-key",), WHERE_IT_RUNS),
        "history diff --check": (("true", "0", "3"), WHERE_IT_RUNS),
        "export --sync": (("lessons.md",), "call it where the server runs"),
        "reflect": ((), "asks a model, and this bank has none"),
        "lessons edit --any-task": ((one, *who), "says this already"),
        "lessons merge --undo --experience": (("nothing", one, *why), "no experience 'nothing'"),
        "lessons merge --undo": ((one, *why), "was not made by a merge"),
        "keys remove --kind reviewer": (("Ana",), "this bank has reviewers"),
    }
    plain = ("doctor", "lift", "lessons list", "lessons list --proposals", "runs list", "runs audit", "recalls")
    plain += ("history list", "learn --waiting")
    last = ("purge", "keys add --kind reviewer", "keys remove --kind reviewer")
    every = {**dict.fromkeys(plain, ()), **words, **{name: given for name, (given, _) in refused.items()}}
    assert set(commands(get_command(app))) - WITHOUT_SERVER == {name.partition(" --")[0] for name in every}
    with running(partial(lessonbank.connect_async, tmp_path / "bank.db", **SETTINGS)) as server:
        key = server.key("cli", scope="", role="admin")
        for name in (*(name for name in every if name not in last), *last):
            whole = name.split()[0] in ("keys", "backup")
            scope = () if whole else ("--scope", "acme")
            given = (*name.split(), *every[name], "--bank", server.url, *scope)
            done = lessonbank_cli(*given, cwd=tmp_path, LESSONBANK_API_KEY=key)
            assert "Traceback" not in done.stderr, (name, done.stderr[-600:])
            if name in refused:
                assert done.returncode in (1, 2), name
                assert refused[name][1] in " ".join(done.stderr.split()), (name, done.stderr)
            else:
                assert done.returncode in (0, 3), (name, done.stderr)
        more = ("Ship box 1", "--keep", "--holdout", "0.5", "--bank", server.url, "--scope", "acme")
        done = lessonbank_cli("retrieve", *more, cwd=tmp_path, LESSONBANK_API_KEY=key)
        assert "decided where the server runs" in done.stderr


def test_an_agents_key_is_enough_to_explain_the_recall_that_it_was_given(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", **SETTINGS) as bank:
        bank.lessons.add(title="Weigh it", content="Weigh it twice.", task="Ship box 1", by="Ana")
        recall = bank.retrieve("Ship box 1").id
    with running(partial(lessonbank.connect_async, tmp_path / "bank.db", **SETTINGS)) as server:
        where = ("--bank", server.url, "--scope", "acme")
        key = server.key("cli", scope="acme", role="agent")
        done = lessonbank_cli("explain", recall, *where, cwd=tmp_path, LESSONBANK_API_KEY=key)
        assert (done.returncode, "Weigh it" in done.stdout) == (0, True), done.stderr
        for unknown in ("0" * 32, "abcdef"):
            refused = lessonbank_cli("explain", unknown, *where, cwd=tmp_path, LESSONBANK_API_KEY=key)
            assert refused.returncode != 0
            assert "a key of the role 'agent' is not for runs.get" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("role", ["reviewer", "admin"])
def test_a_key_of_one_tenant_decides_on_the_command_line_what_its_role_may(tmp_path: Path, role: Any) -> None:
    with lessonbank.connect(tmp_path / "bank.db", **SETTINGS) as bank:
        run = Trajectory(task="Ship box 1", steps=(Step(action="weigh", observation="error: no scale"),))
        lesson = bank.learn(run, outcome="failure").lessons[0].id
        run_id = bank.runs.list()[0].trajectory.id
    with running(partial(lessonbank.connect_async, tmp_path / "bank.db", **SETTINGS)) as server:
        key = server.key("Ana", scope="acme", role=role)

        def said(*words: str, scope: str = "acme") -> str:
            given = (*words, "--bank", server.url, "--scope", scope)
            done = lessonbank_cli(*given, cwd=tmp_path, LESSONBANK_API_KEY=key)
            assert done.returncode == 0, (words, done.stderr)
            assert "not protected" not in done.stderr
            return done.stdout + done.stderr

        assert "there is nothing in scope acme/support" in said("lessons", "list", scope="acme/support")
        said("lessons", "approve", lesson, "--by", "Ana")
        said("tell", run_id, "success", "--by", "Ana")
        new = ("--title", "Weigh it", "--content", "Weigh it twice.", "--task", "Ship box 2")
        assert "added lesson" in said("lessons", "add", *new, "--by", "Ana")
        said("lessons", "retire", lesson, "--by", "Ana", "--reason", "old")
        if role == "admin":
            said("history", "rollback", "1", "--by", "Ana", "--reason", "try")
            said("purge", "--run", run_id, "--yes", "--by", "Ana", "--reason", "asked")
