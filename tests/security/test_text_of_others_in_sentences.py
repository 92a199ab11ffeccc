"""Text that models, errors, arguments and files bring: no part of a key stays, and nothing of it ends a program."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lessonbank
from lessonbank import Extraction, Lesson, LessonbankError, Run, Step, Trajectory, Verdict, importers
from lessonbank.cli import app
from lessonbank.errors import JudgeError
from lessonbank.guard.gate import LessonGate
from lessonbank.guard.quote import quoted
from lessonbank.guard.redact import redact
from lessonbank.learning.judging.parsing import parse_verdict

KEY = "sk" + "_live_" + "Qx7Lm2Zr9Kd4Wt8Bv3Nf6Hs1"
PARTS = [KEY[at : at + 10] for at in range(8, 22, 2)]
BROKEN = [f"key {KEY[:20]}{end}{KEY[20:]} x" for end in ("\n", "\r\n", "\n  ")]


@pytest.mark.parametrize("text", [*("y" * n + " " + KEY for n in (96, 105, 110)), *BROKEN])
def test_no_part_of_a_key_stays_in_the_sentence_about_an_unreadable_verdict(text: str) -> None:
    with pytest.raises(JudgeError) as caught:
        parse_verdict(text)
    assert not [part for part in PARTS if part in str(caught.value)]


@pytest.mark.parametrize("text", [*("y" * n + " " + KEY for n in (975, 985, 990)), *BROKEN])
def test_no_part_of_a_key_stays_in_the_reason_of_a_verdict(text: str) -> None:
    reason = parse_verdict(json.dumps({"status": "success", "reason": text})).reason
    assert reason
    assert not [part for part in PARTS if part in reason]


def test_no_part_of_a_key_stays_where_a_long_text_is_no_longer_read() -> None:
    said = quoted(" " * 19_980 + KEY, limit=300)
    assert not [part for part in PARTS if part in said]


class MuteError(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


def mute(_prompt: str) -> str:
    raise MuteError


def test_an_error_that_cannot_be_shown_is_called_by_its_type() -> None:
    run = Trajectory(task="Cancel order 17", steps=(Step(action="cancel", observation="done"),), answer="done")
    with lessonbank.connect(":memory:", scope="a/b", embedder="lexical", model=mute) as bank:
        notes = bank.learn(run).notes
    assert any("raised MuteError" in note for note in notes)


@pytest.mark.full
@pytest.mark.parametrize(
    "arguments",
    [
        ["stats", "--bank", "a" * 10_000, "--scope", "a"],
        ["import", "a" * 10_000, "--bank", "BANK", "--scope", "a"],
        ["history", "diff", "9" * 5_000, "1", "--bank", "BANK", "--scope", "a"],
        ["retrieve", "Cancel order", "--at", "9" * 5_000, "--bank", "BANK", "--scope", "a"],
        ["retrieve", "Cancel order", "--metadata", "a:=" + "[" * 20_000, "--bank", "BANK", "--scope", "a"],
        ["learn", "FILE", "--metadata", "a:=" + "[" * 20_000, "--bank", "BANK", "--scope", "a"],
    ],
    ids=["bank", "import", "diff", "at", "metadata", "metadata of runs"],
)
def test_an_argument_of_any_length_or_depth_is_refused_in_a_sentence(arguments: list[str], tmp_path: Path) -> None:
    bank, file = tmp_path / "bank.db", tmp_path / "runs.jsonl"
    file.write_text('{"messages": []}\n')
    lessonbank.connect(bank, scope="a").close()
    given = [{"BANK": str(bank), "FILE": str(file)}.get(word, word) for word in arguments]
    told = CliRunner().invoke(app, given)
    assert told.exit_code
    assert isinstance(told.exception, SystemExit | LessonbankError)  # the command shows the sentence of the latter
    assert len(str(told.exception)) <= 500


def test_a_small_archive_of_many_lines_that_are_no_runs_is_left_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lessonbank.importers._formats._MOST_IN_VAIN", 100)
    file = tmp_path / "runs.jsonl.gz"
    file.write_bytes(gzip.compress(b"{}\n" * 300, 1))
    *_, last = found = list(importers.read(file, format="messages"))
    assert len(found) == 101
    assert isinstance(last, importers.Skipped)
    assert "100 entries in a row are no runs" in last.reason


VALUE = "Zt9" + "rTy2w"


@pytest.mark.parametrize(
    "form",
    [
        "A senha é {}",
        "パスワードは{}",
        "비밀번호는 {} 입니다",
        "lösenordet är {}",
        "log in with the password {}",
        "run ALTER ROLE x WITH PASSWORD '{}' first",
        '<input type="password" value="{}">',
    ],
)
def test_a_password_that_a_sentence_of_any_claimed_language_names_is_removed(form: str) -> None:
    assert redact(form.format(VALUE)) == form.format("[password 1]")


@pytest.mark.parametrize(
    "text",
    [
        "[--password PASSWORD] [--token TOKEN]",
        "--token TOKEN: text",
        "--password PASSWORD, x",
        "パスワードは8文字以上です",
        "비밀번호는 8자 이상이어야 합니다",
        "senha é obrigatória",
        "with the password you chose",
    ],
)
def test_a_usage_text_or_a_rule_about_passwords_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_a_shown_lesson_with_a_note_that_cites_it_is_no_new_lesson() -> None:
    said = "Before saving, check the status line, since it names the state."
    again = Lesson(title="Check the status line", content=f"As note [1] said, {said[0].lower()}{said[1:]}")
    run = Run(trajectory=Trajectory(task="Save the page"), verdict=Verdict(outcome="success"))
    told = LessonGate()(Extraction(lessons=(again,)), [run], shown=(said,))
    assert [one.rule for one in told.rejected] == ["echo"]
