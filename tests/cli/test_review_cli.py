"""`lessonbank review`: a link on the terminal that opens the pages, once, for this machine."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
from contextlib import closing
from email.message import Message
from pathlib import Path

import pytest

import lessonbank

pytest.importorskip("jinja2", reason="pip install 'lessonbank[pages]'")
pytest.importorskip("uvicorn", reason="pip install 'lessonbank[pages]'")
pytestmark = pytest.mark.full
COMMAND = (sys.executable, "-c", "from lessonbank.cli import main; main()", "review")


def test_the_command_prints_a_link_serves_the_fullest_scope_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    bank = tmp_path / "bank.db"
    with lessonbank.connect(bank, scope="acme/support", embedder="lexical") as memory:
        memory.lessons.add(title="Read it first", content="Read the order first.", task="Cancel an order", by="Ana")
    with subprocess.Popen([*COMMAND, str(bank), "--no-browser"], stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        assert serving.stderr.readline() == f"opening {bank}, which can take some seconds\n"
        said = serving.stderr.readline()
        found = re.search(r"http://(127\.0\.0\.1:\d+)(/open\?token=\S+)", said)
        assert found, said
        host, at = found.groups()
        headers, _ = _get(host, at)
        cookie = headers.get("set-cookie", "").partition(";")[0]
        assert "Read it first" in _get(host, "/lessons", Cookie=cookie)[1]
        serving.send_signal(signal.SIGINT)
        rest = serving.stderr.read()
        assert serving.wait(timeout=30) in (0, 130)
    assert "Traceback" not in rest
    assert "token=" not in rest


def _get(host: str, at: str, **headers: str) -> tuple[Message, str]:
    """The headers and the page."""
    with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        connection.request("GET", at, headers={**headers, "Connection": "close"})
        with connection.getresponse() as answer:
            return answer.headers, answer.read().decode()
