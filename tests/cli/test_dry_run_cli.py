"""`learn --dry-run` tells what a folder holds and what reading it leaves out, and touches no bank."""

from __future__ import annotations

import json
from pathlib import Path

from .running import RUNS, lessonbank_cli

TALK = [{"role": "user", "content": "Return the lamp"}, {"role": "assistant", "content": "Done"}]


def folder(tmp_path: Path) -> Path:
    place = tmp_path / "runs"
    place.mkdir()
    (place / "good.jsonl").write_text("\n".join(map(json.dumps, RUNS)), encoding="utf-8")
    (place / "odd.json").write_text(json.dumps({"messages": TALK, "reward_info": {"reward": 1}}), encoding="utf-8")
    (place / "settings.json").write_text('{"theme": "dark"}', encoding="utf-8")
    return place


def test_a_dry_run_prints_one_row_a_file_and_warns_of_what_was_left(tmp_path: Path) -> None:
    done = lessonbank_cli("learn", folder(tmp_path), "--dry-run", cwd=tmp_path, COLUMNS="160")
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if ".json" in line]
    assert [row[1:] for row in rows] == [
        ["neutral", "4", "16", "0", "0", "0", "user", "file", "roles"],
        ["messages", "1", "2", "0", "0", "0", "user", "none", "roles"],
    ]
    assert "1 × `reward_info` may say how the run ended, and was not used" in done.stderr
    assert "no runs in 1 more file" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_dry_run_as_json_has_every_file_with_its_sums(tmp_path: Path) -> None:
    place = folder(tmp_path)
    (place / "broken.jsonl").write_text(json.dumps(RUNS[0]) + "\n{", encoding="utf-8")
    done = lessonbank_cli("learn", place, "--dry-run", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 3
    assert [(Path(one["file"]).name, one["format"], one["runs"], one["outcomes"]) for one in told["files"]] == [
        ("broken.jsonl", "neutral", 1, {"failure": 1}),
        ("good.jsonl", "neutral", 4, {"failure": 2, "success": 2}),
        ("odd.json", "messages", 1, {"none": 1}),
    ]
    assert told["files"][2]["left"] == {"`reward_info` may say how the run ended, and was not used": 1}
    assert [Path(one).name for one in told["passed_over"]] == ["settings.json"]
    assert [(Path(one["file"]).name, one["line"]) for one in told["skipped"]] == [("broken.jsonl", 2)]


def test_learning_warns_of_what_was_left_too(tmp_path: Path) -> None:
    done = lessonbank_cli("learn", folder(tmp_path) / "odd.json", "--bank", "b.db", "--scope", "s", cwd=tmp_path)
    assert "1 × `reward_info` may say how the run ended, and was not used" in done.stderr


def test_a_dry_run_refuses_what_only_learning_can_mean(tmp_path: Path) -> None:
    done = lessonbank_cli("learn", folder(tmp_path), "--dry-run", "--model", "x:y", cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing is learned: leave out model" in done.stderr
