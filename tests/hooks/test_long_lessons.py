"""The real programs that cut the text of a hook: long lessons in any writing reach the model whole, fence and all."""

from __future__ import annotations

from pathlib import Path

import pytest

from .alone import agents, driven
from .programs import OPENING, texts
from .writings import WRITINGS

pytestmark = [pytest.mark.full, pytest.mark.release]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", agents(["claude-code", "codex"]))
def test_long_lessons_in_any_writing_reach_the_model_whole(tmp_path: Path, host: str) -> None:
    session = driven("long_lessons.py", host, tmp_path / "w")["session"]
    assert session["code"] == 0, session["err"]
    (shown,) = {text for request in session["requests"] for text in texts(request) if OPENING in text}
    fence = shown.partition(OPENING)[2]
    assert f"<<<end lessons {fence[:8]}>>>" in fence
    inside = fence.partition("<<<end lessons ")[0]
    assert all(words[:8] in inside for words in WRITINGS.values())
    assert "truncated" not in shown
    assert len(inside.encode()) > 3_500
