"""`learn` on transcripts of coding agents: a session that went on may take back what was learned of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import learn, lessonbank_cli

pytestmark = pytest.mark.full


def said(role: str, content: Any) -> str:
    return json.dumps({"type": role, "sessionId": "s-1", "message": {"role": role, "content": content}}) + "\n"


def called(id: str, command: str, output: str) -> str:
    use = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": False}
    return said("assistant", [use]) + said("user", [result])


def test_a_session_that_rejects_its_result_later_leaves_no_success(tmp_path: Path) -> None:
    file = tmp_path / "s-1.jsonl"
    text = said("user", "Fix add") + called("a", "echo x > add.py", "") + called("b", "pytest -q", "3 passed in 0.1s")
    file.write_text(text)
    assert learn(file).returncode == 0
    file.write_text(text + said("assistant", "Done.") + said("user", "No, it still fails"))
    learn(file)
    done = lessonbank_cli("runs", "list", "--bank", "bank.db", "--scope", "t", "--json", cwd=tmp_path)
    verdicts = [run["verdict"] for run in json.loads(done.stdout)]
    assert [(told["outcome"], told["source"]) for told in verdicts] == [
        ("failure", "human"),
        ("unknown", "ground_truth"),
    ]
