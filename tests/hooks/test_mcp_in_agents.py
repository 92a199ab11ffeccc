"""The real programs as MCP clients: what `recall` finds is in the next request, and `record` keeps the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .alone import agents, driven
from .programs import OPENING, PROGRAMS, texts

pytestmark = [pytest.mark.full, pytest.mark.release]


@pytest.fixture(scope="module", autouse=True)
def the_sdk() -> None:
    """Whoever runs these tests imports the SDK, and not each worker that collects them."""
    pytest.importorskip("mcp.server.mcpserver", reason="needs `pip install 'lessonbank[mcp]'`")


def words(request: dict[str, Any]) -> str:
    return "\n".join(texts(request))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", agents())
def test_a_model_recalls_and_records_inside_the_agent(tmp_path: Path, host: str) -> None:
    told = driven("mcp_session.py", host, tmp_path / "w")
    session = told["session"]
    assert session["code"] == 0, session["err"]

    requests = [request for request in session["requests"] if request.get("tools")]
    before, recalled, recorded = requests[-3:]
    assert not [request for request in requests[:-2] if OPENING in words(request)]
    assert ("call recall with the task" in words(before)) == PROGRAMS[host].reads_instructions
    (shown,) = {text for text in texts(recalled) if OPENING in text}
    opened = shown.partition(OPENING)[2]
    assert "Customs form first" in opened.partition("<<<end lessons ")[0]
    assert "<<<end lessons " in opened
    assert "run_id" in words(recorded)
    assert "run_id" not in words(recalled)

    (run,) = told["runs"]
    (step,) = run["trajectory"]["steps"]
    assert (run["trajectory"]["task"], run["trajectory"]["answer"]) == ("Ship a parcel abroad", "It is sent.")
    assert "print the label" in str(step["action"])
    assert "the label came out" in str(step["observations"])
    (recall,) = told["recalls"]
    assert recall["id"] in words(recorded)
    assert recall["task"] == run["trajectory"]["task"]
