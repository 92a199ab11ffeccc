"""LangGraph's own server, offline, with its guard against a blocked event loop: memory works there like anywhere."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from loopback import alone

pytestmark = pytest.mark.full
HERE = Path(__file__).parent
PYTHON = Path(os.environ.get("LESSONBANK_LANGGRAPH", HERE.parents[1] / ".adapters/langgraph-server")) / "bin/python"
TASK = "Count the rows of the report"


@pytest.mark.skipif(not PYTHON.exists(), reason="LangGraph's server is not installed: bash .ci/frameworks")
def test_an_agent_on_the_server_is_shown_lessons_and_its_runs_are_kept(tmp_path: Path) -> None:
    words = [str(PYTHON), str(HERE / "langgraph_server.py"), str(tmp_path)]
    done = subprocess.run(alone(words), capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, f"{done.stderr[-2000:]}\n{(tmp_path / 'log').read_text()[-4000:]}"
    told = json.loads((tmp_path / "result.json").read_text())

    said = {task: told[task]["values"]["messages"][-1]["content"] for task in (TASK, f"{TASK} of ben")}
    assert said == {TASK: "shown", f"{TASK} of ben": "not shown"}
    assert "Most rows stand there" not in json.dumps(told)
    assert told["stream"].count("updates") > 2
    # The guard is on: a tool that blocks the event loop ends its run. Nothing of ours did.
    assert told["blocking"]["status"] == "error"
    assert "Blocking" in json.dumps(told["blocking"])

    runs = {run["trajectory"]["task"]: run for run in told["runs"]["ana"]}
    assert runs.keys() == {TASK, f"{TASK}, then crash", "blocking", f"{TASK} in a stream"}
    assert [run["trajectory"]["task"] for run in told["runs"]["ben"]] == [f"{TASK} of ben"]
    assert runs[TASK]["trajectory"]["answer"] == "shown"
    assert runs[TASK]["recall_id"]
    assert "the model is gone" in runs[f"{TASK}, then crash"]["trajectory"]["error"]
    assert "BlockingError" in runs["blocking"]["trajectory"]["error"]
