"""What was learned in the common scope of all folders moves to the repositories that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lessonbank import Evidence, Parts, ReasoningBank, connect
from lessonbank.contracts.records import Trajectory
from lessonbank.hosts.moving import folder_of, move
from lessonbank.hosts.repositories import COMMON, Repositories
from lessonbank.hosts.session_lessons import SessionExtractor

from .conftest import run_of, write_lines

pytestmark = pytest.mark.full


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReasoningBank]:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    parts = Parts(extractor=SessionExtractor())
    with connect(":memory:", scope=COMMON, parts=parts, evidence=Evidence(holdout=None)) as memory:
        yield memory


def learned(bank: ReasoningBank, session: str, command: str, host: str = "claude-code") -> None:
    calls = (command, "Error: not all", True), (f"{command} --all", "ok", False)
    run = run_of(f"Do {command}", *calls, run_id=session)
    bank.learn(run, outcome="success", metadata={"host": host})


def transcript(home: Path, session: str, folder: Path) -> None:
    place = home / ".claude/projects/-srv" / f"{session}.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"type": "summary"}, {"type": "user", "sessionId": session, "cwd": str(folder)}]
    write_lines(place, lines)
    folder.mkdir(exist_ok=True)


def test_runs_and_lessons_move_to_the_scopes_of_their_folders(tmp_path: Path, bank: ReasoningBank) -> None:
    for session, command, folder in (("s-1", "make rates", "shop"), ("s-2", "npm build", "site")):
        learned(bank, session, command)
        transcript(tmp_path, session, tmp_path / folder)
    learned(bank, "s-3", "cargo doc")
    (approved,) = bank.lessons.list(text="npm")
    bank.lessons.approve(approved.id, by="Ana")
    told = move(bank, Repositories(tmp_path / "roots"), by="Ana")
    shop, site = f"{COMMON}/@folder{tmp_path}/shop", f"{COMMON}/@folder{tmp_path}/site"
    assert (dict(told.runs), told.lessons, told.stay) == ({shop: 1, site: 1}, 2, 1)
    assert ["cargo doc" in lesson.content for lesson in bank.lessons.list()] == [True]
    (lesson,) = bank.scoped(shop).lessons.list()
    assert lesson.content == "`make rates --all` went through."
    assert any(lesson.approved for lesson in bank.scoped(site).lessons.list())


def test_sessions_that_were_read_from_files_move_too(tmp_path: Path, bank: ReasoningBank) -> None:
    transcript(tmp_path, "s-1", tmp_path / "shop")
    for task in ("one", "two"):
        run = Trajectory(task=f"Do {task}", steps=(), answer="x", metadata={"run_id": "s-1", "source": "claude-code"})
        bank.learn(run, outcome="success")
    told = move(bank, Repositories(tmp_path / "roots"), by="Ana")
    assert (dict(told.runs), told.stay) == ({f"{COMMON}/@folder{tmp_path}/shop": 2}, 0)


def test_to_move_twice_moves_nothing_the_second_time(tmp_path: Path, bank: ReasoningBank) -> None:
    learned(bank, "s-1", "make rates")
    transcript(tmp_path, "s-1", tmp_path / "shop")
    for expected in (1, 0):
        assert move(bank, Repositories(tmp_path / "roots"), by="Ana").lessons == expected
    assert len(bank.scoped(f"{COMMON}/@folder{tmp_path}/shop").lessons.list()) == 1


@pytest.mark.parametrize(
    ("host", "path", "text"),
    [
        ("codex", ".codex/sessions/2026/11/28/rollout-2026-s-1.jsonl", '{"payload": {"cwd": "/srv/shop"}}'),
        ("qwen-code", ".qwen/projects/-srv/chats/s-1.jsonl", '{"cwd": "/srv/shop"}'),
        ("claude-code", ".claude/projects/-srv/s-1.jsonl", '[1]\n{"cwd": "/srv/shop"}'),
    ],
)
def test_the_folder_of_a_session_stands_in_its_transcript(
    bank: ReasoningBank, tmp_path: Path, host: str, path: str, text: str
) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    assert folder_of(host, "s-1") == "/srv/shop"
    assert folder_of(host, "s-2") == ""
    assert folder_of(host, "../s-1") == ""


def test_gemini_keeps_the_folder_beside_its_chats(bank: ReasoningBank, tmp_path: Path) -> None:
    chats = tmp_path / ".gemini/tmp/shop/chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/srv/shop\n")
    (chats / "session-2026-01234567.jsonl").write_text("{}")
    assert folder_of("gemini-cli", "01234567-89") == "/srv/shop"
