"""How often a judge agrees with the truth is counted right, in this process: what it imports is dear."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lessonbank.testing import ModelServer
from lessonbank_bench.measure import judge


def test_agreement_with_the_truth_is_counted_by_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {
            "run_id": f"r{n}",
            "task_id": f"t{n}",
            "task": f"Do {n}",
            "messages": [{"role": "user", "content": f"Do {n}"}, {"role": "assistant", "content": "Done."}],
            "success": n % 2 == 0,
            "reward": float(n % 2 == 0),
        }
        for n in range(8)
    ]
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with ModelServer(default='Thoughts: fine\nStatus: "success"') as server:
        words = ["--model", "m", "--base-url", server.base_url, "--api-key", "x", "--size", "6", "--profile", "paper"]
        monkeypatch.setattr(sys, "argv", ["judge", str(runs), *words])
        judge.main()
    report = json.loads(capsys.readouterr().out)
    assert report["runs"] == 6
    assert report["decided"]["right"] == 0.5
    assert report["said success"]["coverage"] == 1.0
    assert "said failure" not in report
