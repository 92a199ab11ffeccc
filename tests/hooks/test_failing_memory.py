"""The real programs, while memory fails: each ends its turn as without memory, and its model reads nothing of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .alone import agents, driven
from .programs import PROGRAMS, texts

pytestmark = [pytest.mark.full, pytest.mark.release]
OURS = ("Notes from past tasks", "<<<lessons", '{"text"', "gone.py", "Traceback")


def turns(session: dict[str, Any]) -> list[Any]:
    """The requests in which the model was asked to work."""
    return [request for request in session["requests"] if request.get("tools")]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", agents())
def test_a_program_whose_memory_fails_works_as_without_it(tmp_path: Path, host: str) -> None:
    told = driven("failing_memory.py", host, tmp_path / "w")
    ways = {"a broken bank", "a missing file", "no Python"} | (
        {"it hangs", "half an answer"} if PROGRAMS[host].has_hooks else set[str]()
    )
    plain = told.pop("without memory")
    assert set(told) == ways
    assert plain["code"] == 0, plain["err"]
    for way, session in told.items():
        assert session["code"] == 0, (way, session["err"])
        # An end of the turn that is blocked would ask the model again, some programs without end.
        assert len(turns(session)) == len(turns(plain)), way
        said = "\n".join(text for request in session["requests"] for text in texts(request))
        assert "looked" in said, way
        assert not [words for words in OURS if words in said], way
