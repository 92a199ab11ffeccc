"""The real programs: a cure of the first session is in the request after the same command failed in the second."""

from __future__ import annotations

from pathlib import Path

import pytest

from .alone import agents, driven
from .programs import texts

pytestmark = pytest.mark.full
CURE = "`make proto` went through"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", agents(["claude-code", "gemini-cli"]))
def test_a_cure_of_one_session_is_told_in_another_when_the_command_fails_again(tmp_path: Path, host: str) -> None:
    told = driven("cured_session.py", host, tmp_path / "w")
    assert told["second"]["code"] == 0, told["second"]["err"]
    (cure,) = told["cures"]
    assert cure["place"] == "make test"
    held = [any(CURE in text for text in texts(request)) for request in told["second"]["requests"]]
    assert held[-1]
    assert not held[0]
    assert len(told["recalls"]) == 1
