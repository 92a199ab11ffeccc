"""What every command has in common: options by environment, one sentence for a wrong call, tab completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from running import lessonbank_cli, lessonbank_process

import lessonbank
from lessonbank import Step, Trajectory
from lessonbank.cli import _narrowed, app
from lessonbank.cli._reviewing import key_of
from lessonbank.cli.doctor import leaving
from lessonbank.errors import UsageError

pytestmark = pytest.mark.full

WHERE = ("--bank", "bank.db", "--scope", "t")
LONG = "a" * 300
"""A name that no file can have."""
RUN = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        bank.learn(RUN, outcome="failure")
    return tmp_path


def test_the_environment_stands_for_the_bank_and_the_scope(folder: Path) -> None:
    named = {"LESSONBANK_BANK": "bank.db", "LESSONBANK_SCOPE": "t"}
    done = lessonbank_cli("lessons", "list", "--json", cwd=folder, **named)
    assert len(json.loads(done.stdout)) == 1
    other = lessonbank_cli("lessons", "list", "--json", "--scope", "u", cwd=folder, **named)
    assert json.loads(other.stdout) == []


@pytest.mark.parametrize("word", ["doctor", "lessons"])
def test_a_call_makes_its_own_command_and_no_other(word: str) -> None:
    assert {*typer.main.get_command(_narrowed(word)).commands} == {word}  # type: ignore[attr-defined]
    assert {_narrowed(), _narrowed("doktor"), _narrowed("--help")} == {app}
    assert {*typer.main.get_command(_narrowed("bench")).commands} == set()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("lessons", "list"), "--bank"),
        (("lessons", "list", "--bank", "bank.db"), "LESSONBANK_SCOPE"),
        (("lessons", "list", *WHERE, "--state", "sleepy"), "sleepy"),
        (("lessons", "list", *WHERE, "--limit", "0"), "--limit"),
        (("lessons", "list", *WHERE, "--colour"), "--colour"),
        (("lessons", "forget", *WHERE), "forget"),
        (("retrieve", *WHERE), "'task'"),
        (("tell", "x", "sucess", *WHERE, "--by", "Ana"), "sucess"),
        (("tell", "x", "unknown", *WHERE, "--by", "Ana"), "a person says success or failure, as in"),
        (("tell", "x", "--reward", "0.5", *WHERE, "--by", "Ana"), "to give a reward, leave out --by and unset"),
        (("tell", "abcd", *WHERE), "success or failure, or give --reward"),
        (("history", "diff", "0", "2026-01-01T10:00", *WHERE), "a time with its zone"),
        (("reflect", *WHERE), "--model"),
        (("doctor", "--bank", "bank.db", "--base-url", "http://127.0.0.1:1"), "--model"),
        (("learn", LONG, *WHERE), "there is no file"),
        (("learn", LONG, "--dry-run"), "there is no file"),
        (("import", "~nobody-here/x", *WHERE), "there is no file"),
        (("lessons", "list", "--bank", "~nobody-here/bank.db", "--scope", "t"), "there is no bank"),
        (("review", "none.db"), "there is no bank"),
        (("worker", "none.db"), "there is no bank"),
    ],
)
def test_a_wrong_call_is_one_sentence_that_names_what_is_wrong(
    folder: Path, words: tuple[str, ...], named: str
) -> None:
    done = lessonbank_cli(*words, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("lessonbank: ")
    assert sentence.endswith("[usage]")
    assert named in sentence


def test_a_key_file_of_a_user_who_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="nobody-here"):
        key_of("Ana", Path("~nobody-here/key"))


def test_a_group_without_a_command_shows_its_help(tmp_path: Path) -> None:
    done = lessonbank_cli("lessons", cwd=tmp_path)
    assert done.returncode == 2
    assert "approve" in done.stdout + done.stderr


def test_a_bank_that_is_switched_off_is_neither_read_nor_written(folder: Path) -> None:
    (folder / "runs.jsonl").write_text('{"task": "t", "messages": [{"role": "user", "content": "x"}]}')
    for words in (("lessons", "list"), ("learn", "runs.jsonl")):
        done = lessonbank_cli(*words, *WHERE, cwd=folder, LESSONBANK_OFF="1")
        assert done.returncode == 2
        assert "unset LESSONBANK_OFF" in done.stderr


def completed(folder: Path, line: str) -> list[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    done = lessonbank_cli(cwd=folder, _LESSONBANK_COMPLETE="complete_bash", **words)
    return done.stdout.split()


def test_the_tab_key_completes_commands_options_and_values(tmp_path: Path) -> None:
    assert completed(tmp_path, "lessonbank les") == ["lessons"]
    assert completed(tmp_path, "lessonbank lessons ret") == ["retire"]
    assert "--metadata" in completed(tmp_path, "lessonbank runs list --m")
    assert completed(tmp_path, "lessonbank lessons list --state q") == ["quarantined"]


@pytest.mark.parametrize(
    ("shell", "kept"),
    [
        ("bash", ".bash_completions/lessonbank.sh"),
        ("zsh", ".zfunc/_lessonbank"),
        ("fish", ".config/fish/completions/lessonbank.fish"),
    ],
)
def test_completion_is_shown_and_installed_for_each_shell(tmp_path: Path, shell: str, kept: str) -> None:
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "HOME": str(tmp_path)}
    shown = lessonbank_cli("--show-completion", shell, cwd=tmp_path, **env)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"complete_{shell}" in shown.stdout
    done = lessonbank_cli("--install-completion", shell, cwd=tmp_path, **env)
    assert done.returncode == 0, done.stderr
    assert shown.stdout.strip() in (tmp_path / kept).read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("bash") is None, reason="this system has no bash")
def test_a_real_bash_completes_with_the_script_that_is_shown(tmp_path: Path) -> None:
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = lessonbank_process("--show-completion", "bash", cwd=tmp_path, env=env).stdout
    call = "COMP_WORDS=(lessonbank rec); COMP_CWORD=1; _lessonbank_completion lessonbank; echo ${COMPREPLY[@]}"
    code = "import sys; sys.argv[0] = 'lessonbank'; from lessonbank.cli import main; main()"
    stub = f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n'
    (tmp_path / "lessonbank").write_text(stub, encoding="utf-8")
    (tmp_path / "lessonbank").chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", f"{script}\nPATH={path}\n{call}"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["recalls"], done.stderr


def test_the_doctor_says_which_words_leave_the_machine(folder: Path) -> None:
    done = lessonbank_cli("doctor", "--bank", "bank.db", cwd=folder)
    assert "nothing: no model is named, and the embedder runs here" in done.stdout
    words = ("--model", "desk", "--base-url", "http://me:secret@127.0.0.1:9/v1", "--json")
    asked = lessonbank_cli("doctor", "--bank", "bank.db", *words, cwd=folder)
    (sentence,) = json.loads(asked.stdout)["leaves"]
    assert sentence == "to judge a run and draw lessons, the run goes to desk on http://127.0.0.1:9 (on this machine)"
    assert "secret" not in asked.stdout + asked.stderr


def test_the_embedder_of_a_provider_and_its_model_are_both_named() -> None:
    told = leaving(
        model="openai:gpt-5-mini", base_url=None, embedder="openai:text-embedding-3-small (kept with the bank)"
    )
    assert [sentence.rpartition(" ")[2] for sentence in told] == ["openai:gpt-5-mini", "openai:text-embedding-3-small"]
    for name in ("lexical", "hashing (named by the caller)", "fastembed:BAAI/bge-small-en-v1.5 (kept with the bank)"):
        assert len(leaving(model=None, base_url=None, embedder=name)) == 1
        assert leaving(model=None, base_url=None, embedder=name)[0].startswith("nothing")


def test_two_banks_are_compared_lesson_by_lesson(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        bank.lessons.add(title="Ask first", content="Ask the owner first.", task="open the valve", by="Ana")
        bank.admin.backup(folder / "other.db")
        bank.lessons.add(title="Wear gloves", content="Wear gloves.", task="open the valve", by="Ana")
    compare = ("history", "diff", "--bank", "bank.db", "--scope", "t", "--other-bank")
    assert "no difference" in lessonbank_cli(*compare, "bank.db", cwd=folder).stdout
    with lessonbank.connect(folder / "other.db", scope="t") as other:
        asked = other.lessons.search("Ask first")[0]
        other.lessons.edit(asked.id, content="Ask the shift leader first.", by="Bo")
        other.lessons.add(title="Close it", content="Close it again.", task="open the valve", by="Bo")
    done = lessonbank_cli(*compare, "other.db", cwd=folder, COLUMNS="80")
    rows = done.stdout.splitlines()[2:]
    assert [row.split(asked.id[-8:])[0].split("  ")[0] for row in rows] == [
        "only in A",
        "only in B",
        "changed: content",
    ]
    assert ["Wear gloves" in rows[0], "Close it" in rows[1], asked.id[-8:] in rows[2]] == [True] * 3
    told = json.loads(lessonbank_cli(*compare, "other.db", "--json", cwd=folder).stdout)
    assert [len(told[name]) for name in ("only_in_a", "only_in_b", "changed")] == [1, 1, 1]
