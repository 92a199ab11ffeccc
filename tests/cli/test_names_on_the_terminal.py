"""Names with control characters are shown escaped by every command, in errors and in what went well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.name != "posix", reason="file names with control characters are POSIX"),
]

NAME = "a\x1b[31mred\x1b]0;title\x07\u202e\x9b31m"


@pytest.mark.parametrize(
    "words",
    [
        ("learn", f"{NAME}.jsonl", "--bank", "bank.db", "--scope", "t"),
        ("import", f"{NAME}.jsonl", "--bank", "bank.db", "--scope", "t"),
        ("lessons", "list", "--bank", NAME, "--scope", "t"),
        ("lessons", "list", "--bank", "bank.db", "--scope", NAME),
        ("lessons", "retire", NAME, "--reason", "x", "--bank", "bank.db", "--scope", "t"),
        (NAME,),
    ],
)
def test_a_refusal_shows_a_name_escaped(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bank.db").touch()
    done = lessonbank_cli(*words, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stderr.rstrip("\n").isprintable(), done.stderr
    assert len(done.stderr) < 1000


def test_what_went_well_shows_names_escaped(tmp_path: Path) -> None:
    runs = '{"task": "t", "messages": [{"role": "user", "content": "x"}]}\n'
    (tmp_path / f"{NAME}.jsonl").write_text(runs, encoding="utf-8")
    where = ("--bank", "bank.db", "--scope", "t")
    for words in (
        ("learn", f"{NAME}.jsonl", *where),
        ("export", f"{NAME}.out.jsonl", *where),
        ("import", f"{NAME}.out.jsonl", *where),
        ("backup", f"{NAME}.copy", "--bank", "bank.db"),
    ):
        done = lessonbank_cli(*words, cwd=tmp_path)
        assert done.returncode in (0, 3), done.stderr
        assert all(c.isprintable() or c == "\n" for c in done.stdout + done.stderr), (words, done.stdout)


@pytest.mark.parametrize("name", [f"{NAME}.db", "[b]/[/b].db"])
@pytest.mark.parametrize("columns", ["200", "10"])
def test_a_bank_in_a_title_is_shown_as_it_is_written(name: str, columns: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    for path, title in ((name, "Open the valve"), ("b.db", "Shut the valve")):
        with lessonbank.connect(tmp_path / path, scope="t", embedder="lexical") as bank:
            bank.lessons.add(title=title, content="By hand.", task="valve", by="Ana")
    words = ("history", "diff", "--bank", name, "--other-bank", "b.db", "--scope", "t")
    done = lessonbank_cli(*words, cwd=tmp_path, COLUMNS=columns)
    assert done.returncode == 0, done.stderr
    assert all(c.isprintable() or c == "\n" for c in done.stdout), done.stdout
    assert "[b]" not in name or name in done.stdout.replace("\n", "")


def test_a_title_that_is_wider_than_its_table_stands_on_one_line(tmp_path: Path) -> None:
    scope = "coding/github.com/acme/shop"
    lessonbank.connect(tmp_path / "bank.db", scope=scope, embedder="lexical").close()
    done = lessonbank_cli("lessons", "list", "--bank", "bank.db", "--scope", scope, cwd=tmp_path)
    assert done.stdout.splitlines()[0] == f"0 lessons in {scope}"
