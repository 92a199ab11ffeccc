"""What rules draw of recorded sessions is written for a blind reading as an agent would be shown it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lessonbank_bench.measure.coding_lessons import main
from lessonbank_bench.measure.host_files import codex_lines

PROTO = [("make test", 2, "no module rates_pb"), ("make proto", 0, "ok"), ("make test", 0, "3 passed")]
SAID = [("git push", 1, "use 'git pull' first"), ("git pull --rebase", 0, "ok"), ("git push", 0, "ok")]


def session(file: Path, commands: list[tuple[str, int, str]]) -> None:
    turns = [{"role": "person", "text": f"Do {file.stem}"}]
    turns += [
        {"role": "tool", "tool": "bash", "command": command, "exit_code": code, "output": output}
        for command, code, output in commands
    ]
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(codex_lines(file.stem, turns)), encoding="utf-8")


def test_a_pack_has_what_an_agent_would_be_shown_with_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, pack, runs = tmp_path / "corpus", tmp_path / "pack.json", tmp_path / "runs.json"
    folder.mkdir()
    session(folder / "shop" / "one.jsonl", PROTO + SAID)
    session(folder / "bank" / "two.jsonl", SAID)
    session(folder / "bank" / "three.jsonl", SAID)
    monkeypatch.setattr("sys.argv", ["coding_lessons", str(folder), "--pack", str(pack), "--runs", str(runs)])
    main()
    rows = {(row["repository"], row["content"].split("`")[1]): row for row in json.loads(pack.read_bytes())}
    assert rows.keys() == {("shop", "make proto"), ("bank", "git pull --rebase")}, "git names it: two sessions"
    assert "rates_pb" in rows["shop", "make proto"]["drawn_from"]
    assert rows["bank", "git pull --rebase"]["sessions"] == 2
    assert all("(exit 1)" in row["run"] for row in json.loads(runs.read_bytes()))
    assert "sessions 3" in capsys.readouterr().out
