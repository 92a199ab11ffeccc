"""The real programs, each through two sessions: the lesson of the first stands in the request of the second."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from .programs import OPENING, PROGRAMS

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
INSTALLED = Path(os.environ.get("LESSONBANK_HOSTS", HERE.parents[1] / ".hosts"))
CLOSING = "<<<end lessons "


@cache
def namespace() -> tuple[str, ...]:
    """The command that runs another with nothing but loopback; empty where that cannot be."""
    command = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += [] if os.getuid() == 0 else ["--map-root-user"]
    if not shutil.which("unshare") or not shutil.which("ip"):
        return ()
    tried = subprocess.run([*command, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    return () if tried.returncode else tuple(command)


def texts(value: Any) -> list[str]:
    """Every text in a request, as the model reads it: some programs write `<` as `&lt;`."""
    if isinstance(value, str):
        return [unescape(value)]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in texts(part)]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", PROGRAMS)
def test_the_lesson_of_the_first_session_is_in_the_request_of_the_second(tmp_path: Path, host: str) -> None:
    program = INSTALLED / PROGRAMS[host].command
    if not program.exists():
        pytest.skip(f"{host} is not installed: bash .ci/hosts {host}")
    if not namespace():
        pytest.skip("no namespace of its own can be made for a program here")
    node = INSTALLED / "node/node_modules/.bin"
    environment = {**os.environ, "PATH": f"{node}:{os.environ['PATH']}"}
    driver = [sys.executable, str(HERE / "two_sessions.py"), host, str(program), str(tmp_path / "w")]
    command = [*namespace(), "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *driver]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3500, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads((tmp_path / "w" / "result.json").read_text())
    first, second = told["sessions"]
    assert (first["code"], second["code"]) == (0, 0), (first["err"], second["err"])

    (run,) = told["runs"]
    assert run["verdict"]["outcome"] == "success"
    assert run["trajectory"]["metadata"]["outcome_by"] == "the tests passed after the last edit"
    assert [call["arguments"] for step in run["trajectory"]["steps"] for call in step["action"]["calls"]]
    (lesson,) = told["lessons"]

    shown = [text for request in second["requests"] for text in texts(request) if OPENING in text]
    assert shown, "no request of the second session holds lessons"
    assert lesson["title"] in shown[0]
    assert CLOSING in shown[0].partition(OPENING)[2]
    assert not [text for request in first["requests"] for text in texts(request) if OPENING in text]
    assert "sk-ant" not in json.dumps(told["runs"])
    left = [
        path
        for path in (tmp_path / "w" / "home").rglob("*")
        if path.is_file() and b"hooks/client.py" in path.read_bytes()
    ]
    assert not [path for path in left if "lessonbank" in str(path) or path.name.startswith(("settings", "hooks"))]
