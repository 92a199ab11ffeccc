"""What servers and stores say goes into logs and stored reasons: never with the key they refused."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import lessonbank
from lessonbank.errors import ModelError, StoreUnavailable
from lessonbank.guard.quote import quoted
from lessonbank.testing import ScriptedModel

KEY = "sk-" + "proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4"
REFUSED = f"401 Incorrect API key provided: {KEY}.\nSee the settings page"
RUN: dict[str, Any] = {"task": "open the valve", "steps": (lessonbank.Step(action="turn", observation="open"),)}


def test_a_quoted_error_is_one_line_without_its_key() -> None:
    said = quoted(REFUSED)
    assert KEY not in said and "\n" not in said and "Incorrect API key" in said
    assert len(quoted("word " * 4000, limit=50)) < 60


def test_a_verdict_a_note_and_the_bank_keep_no_key_that_a_server_repeats() -> None:
    def refusing(*_: object) -> str:
        raise RuntimeError(REFUSED)

    with lessonbank.connect(":memory:", scope="t", embedder="lexical", model=refusing) as bank:
        learned = bank.learn(lessonbank.Trajectory(**RUN))
        assert learned.verdicts[0].outcome == "unknown" and learned.notes
        assert KEY not in repr(learned) + repr(bank.history.list())


def test_the_log_of_a_hook_that_failed_has_no_key(caplog: pytest.LogCaptureFixture) -> None:
    def hook(_: object) -> None:
        raise StoreUnavailable(REFUSED)

    with (
        caplog.at_level(logging.WARNING),
        lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=lessonbank.Parts(hooks=[hook])) as bank,
        bank.attempt("open the valve") as attempt,
    ):
        assert attempt.text == ""
    assert "a hook failed" in caplog.text and KEY not in caplog.text + repr(attempt.notes)


def test_a_scripted_model_that_fails_says_so_without_its_key() -> None:
    model = ScriptedModel(lambda _: (_ for _ in ()).throw(ModelError(REFUSED)))
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", model=model) as bank:
        assert KEY not in repr(bank.learn(lessonbank.Trajectory(**RUN), outcome="success"))
