"""The real programs, each through two sessions: the lesson of the first stands in the request of the second."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .alone import agents, driven
from .programs import OPENING, texts

pytestmark = pytest.mark.full
CLOSING = "<<<end lessons "


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", agents())
def test_the_lesson_of_the_first_session_is_in_the_request_of_the_second(tmp_path: Path, host: str) -> None:
    told = driven("two_sessions.py", host, tmp_path / "w")
    first, second = told["sessions"]
    assert (first["code"], second["code"]) == (0, 0), (first["err"], second["err"])

    (run,) = told["runs"]
    assert run["verdict"]["outcome"] == "success"
    assert run["trajectory"]["metadata"]["outcome_by"] == "the tests passed after the last edit"
    assert [call["arguments"] for step in run["trajectory"]["steps"] for call in step["action"]["calls"]]
    assert told["lessons"]

    shown = [text for request in second["requests"] for text in texts(request) if OPENING in text]
    assert shown, "no request of the second session holds lessons"
    assert [one for one in told["lessons"] if one["title"] in shown[0]]
    assert CLOSING in shown[0].partition(OPENING)[2]
    assert not [text for request in first["requests"] for text in texts(request) if OPENING in text]
    assert "sk-ant" not in json.dumps(told["runs"])
    left = [
        path
        for path in (tmp_path / "w" / "home").rglob("*")
        if path.is_file() and b"hosts/client.py" in path.read_bytes()
    ]
    assert not [path for path in left if "lessonbank" in str(path) or path.name.startswith(("settings", "hooks"))]
