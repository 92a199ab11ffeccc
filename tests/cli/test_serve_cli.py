"""`serve` and `keys`: a server as a program of its own, and the keys that open it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from running import COMMAND, lessonbank_cli

pytest.importorskip("fastapi", reason="needs the extra server")

import lessonbank
from lessonbank import Server
from lessonbank.errors import Unauthenticated

pytestmark = pytest.mark.full


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
    again = lessonbank_cli("keys", "rotate", told["id"], *bank, "--overlap", "1", cwd=tmp_path).stdout.strip()
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
            assert bank.learn({"messages": [{"role": "user", "content": "Ship parcel 7"}]}, outcome="success").verdicts
            lessonbank_cli("keys", "remove", key.split("_")[1], "--bank", "bank.db", cwd=tmp_path)
            with pytest.raises(Unauthenticated):
                bank.retrieve("Ship parcel 7")
        server.send_signal(signal.SIGTERM)
        rest = server.stderr.read()
    assert server.returncode in (0, -signal.SIGTERM)
    assert "Ship parcel" not in rest
    assert "acme" not in rest
    assert '"route": "/v1/runs/learn"' in rest


def test_commands_that_read_take_the_address_of_a_server(tmp_path: Path) -> None:
    pytest.importorskip("httpx2", reason="needs the extra client")
    from lessonbank.service.serving import running

    with lessonbank.connect(tmp_path / "bank.db", scope="acme", embedder="lexical") as bank:
        bank.lessons.add(title="Weigh it", content="Weigh it first.", task="Ship a parcel", by="Ana")
    opened = partial(lessonbank.connect_async, tmp_path / "bank.db", scope="acme", embedder="lexical")
    with running(opened) as server:
        key = server.key("cli", scope="acme", role="admin")
        where = ("--bank", server.url, "--scope", "acme")
        more = {"LESSONBANK_API_KEY": key}
        shown = lessonbank_cli("retrieve", "Ship a parcel", *where, cwd=tmp_path, **more)
        assert "Weigh it first." in shown.stdout, shown.stderr
        refused = lessonbank_cli("retrieve", "Ship a parcel", *where, "--holdout", "0.5", cwd=tmp_path, **more)
        assert "decided where the server runs" in refused.stderr
        for words in (
            ("lift",),
            ("lessons", "list"),
            ("runs", "list"),
            ("recalls", "list"),
            ("history", "list"),
        ):
            done = lessonbank_cli(*words, *where, cwd=tmp_path, **more)
            assert done.returncode == 0, (words, done.stderr)
