"""Commands of other distributions are named at once, imported when called, and explained where they are absent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer
from running import lessonbank_cli

from lessonbank.cli import app, plugins
from lessonbank.errors import UsageError


@pytest.fixture
def greeting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution that brings the command `greet`."""
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n", encoding="utf-8")
    info.joinpath("entry_points.txt").write_text("[lessonbank.commands]\ngreet = greeting:app\n", encoding="utf-8")
    code = (
        "import typer\napp = typer.Typer()\n@app.command()\ndef greet(name: str) -> None:\n    print('Hello', name)\n"
    )
    tmp_path.joinpath("greeting.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_command_of_another_distribution_is_named_in_the_help_without_being_imported(greeting: Path) -> None:
    shown = lessonbank_cli("--help", cwd=greeting)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "greet" in shown.stdout
    assert "greeting" not in sys.modules


@pytest.mark.full
def test_a_command_of_another_distribution_is_called_with_its_words(greeting: Path) -> None:
    done = lessonbank_cli("greet", "Ana", cwd=greeting)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello Ana\n", "")
    assert lessonbank_cli("greet", cwd=greeting).returncode == 2


def test_without_its_distribution_a_known_command_says_in_one_sentence_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plugins, "KNOWN", {"absent": ("lessonbank-absent", "Not here.")})
    with pytest.raises(UsageError, match=r"^`lessonbank absent` is not installed: pip install lessonbank-absent$"):
        typer.main.get_command(app).main(["absent", "--anything"], standalone_mode=False)


@pytest.mark.full
def test_help_names_the_experiments_whether_they_are_installed_or_not(tmp_path: Path) -> None:
    assert "pip install lessonbank-bench" in " ".join(lessonbank_cli("--help", cwd=tmp_path).stdout.split())


@pytest.mark.full
def test_a_word_that_is_no_command_is_refused(tmp_path: Path) -> None:
    done = lessonbank_cli("benhc", cwd=tmp_path)
    assert done.returncode == 2
    assert "No such command" in done.stderr
