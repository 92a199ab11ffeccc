"""What the documentation shows runs: every Python block, offline, and every command that it names exists."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import pages
import pytest
import typer
from examples_of import main_loop

from lessonbank.cli import app, plugins
from lessonbank.errors import MissingExtra
from lessonbank.testing.model_server import ModelServer

PAGES = pages.pages()
RUN_HERE = [page for page in PAGES if page.parent.name != "tutorials"]  # those run in a kernel: test_tutorials.py


@cache
def known_commands() -> dict[str, Any]:
    """The commands by the words that call them, as in `lessons list`."""
    group: Any = typer.main.get_command(app)
    context = group.context_class(group)
    top: dict[str, Any] = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {
        " ".join(filter(None, (name, below))): found
        for name, command in top.items()
        for below, found in getattr(command, "commands", {"": command}).items()
    }


def runnable(page: Path) -> Any:
    """Pages about experiments need a distribution of their own, and long ones wait for the full run."""
    return page if page.name == "README.md" else pytest.param(page, marks=pytest.mark.full)


@contextlib.contextmanager
def skipped_without_its_framework(page: Path) -> Iterator[None]:
    """The page of an agent framework needs that framework, and no more."""
    try:
        with main_loop() if page.parent.name == "hosts" else contextlib.nullcontext():
            yield
    except (MissingExtra, ModuleNotFoundError) as missing:
        if page.parent.name != "hosts" or str(getattr(missing, "name", "")).startswith("lessonbank"):
            raise
        pytest.skip(f"needs a framework: {missing}")


def same(printed: str) -> str:
    """What a program prints, without what differs from run to run: the code of a block, the end of an id, seconds."""
    return re.sub(r"\b[0-9a-f]{8}\b|\d+\.\d(?= seconds)", "#", printed)


@pytest.mark.parametrize("page", [runnable(page) for page in RUN_HERE], ids=map(pages.name, RUN_HERE))
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "lessonbank_bench" in page.read_text(encoding="utf-8"):
        pytest.importorskip("lessonbank_bench")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    namespace: dict[str, Any] = {"__name__": "docs"}
    blocks = list(pages.blocks(page))
    with skipped_without_its_framework(page):
        for block, below in zip_longest(blocks, blocks[1:]):
            if block.runs:
                code = "\n" * (block.line - 1) + block.code
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile(code, pages.name(page), "exec"), namespace)
                if below and below.info == "text" and below.before == "```":  # right below: it is what this prints
                    assert same(out.getvalue()).startswith(same(below.code))
    for value in list(namespace.values()):
        if isinstance(value, ModelServer):
            value.__exit__(None, None, None)


def test_only_what_needs_a_key_or_another_project_is_not_run() -> None:
    left = [b.before for p in PAGES for b in pages.blocks(p) if b.info.startswith("py") and not b.runs]
    assert set(left) <= {
        "<!-- no-run: needs a provider's key -->",
        "<!-- no-run: needs a clone of another project -->",
    }


def commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, words) of every call of the command line in a page's shell blocks."""
    for block in pages.blocks(page):
        if block.info not in ("sh", "bash", "console"):
            continue
        for offset, line in enumerate(block.code.replace("\\\n", " ").splitlines()):
            for part in line.removeprefix("$ ").split("&&"):
                words = shlex.split(part, comments=True)
                if words:
                    yield block.line + offset, words


@pytest.mark.full
@pytest.mark.parametrize("experiments", [False, True], ids=["the program's own", "those of the experiments"])
def test_every_command_of_every_page_can_be_given(experiments: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if experiments:
        pytest.importorskip("lessonbank_bench")
    for page in PAGES:
        with monkeypatch.context() as environment:
            given(page, environment, experiments=experiments)


def given(page: Path, environment: pytest.MonkeyPatch, *, experiments: bool) -> None:
    """Let the command line read a page's commands: its own, or those that the experiments bring along."""
    for line, words in commands(page):
        if words[0] == "export":
            for name, _, value in (word.partition("=") for word in words[1:]):
                environment.setenv(name, value)
        if words[0].rpartition("/")[2] != "lessonbank":
            continue
        name = words[1] if words[1] in known_commands() else " ".join(words[1:3])
        assert name in known_commands(), f"{pages.name(page)}, line {line}: there is no command {name!r}"
        if (name in plugins.KNOWN) is not experiments:
            continue
        try:
            command(name).make_context(name, list(words[1 + len(name.split()) :]))
        except click.ClickException as error:
            pytest.fail(f"{pages.name(page)}, line {line}: {error.format_message()}")


def command(name: str) -> Any:
    return plugins.load(name) if name in plugins.KNOWN else known_commands()[name]


@pytest.mark.full
def test_the_bench_takes_the_options_that_the_readme_gives_it(capsys: pytest.CaptureFixture[str]) -> None:
    bench = pytest.importorskip("lessonbank_bench.__main__")
    with pytest.raises(SystemExit):
        bench.main(["--help"])
    known = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    named = set(re.findall(r"lessonbank_bench ([^`]*)`", (pages.ROOT / "README.md").read_text(encoding="utf-8")))
    assert {option for text in named for option in re.findall(r"--[\w-]+", text)} <= known


def test_the_guide_has_every_command_and_names_only_options_that_it_has() -> None:
    guide = pages.ROOT / "docs" / "guides" / "command-line.md"
    named = re.findall(r"^##+ lessonbank (\w+(?: \w+)?)$", guide.read_text(encoding="utf-8"), re.M)
    assert sorted(named) == sorted(known_commands())
    known = {
        name: {o for p in _options(command) for o in (*p.opts, *p.secondary_opts)}
        for name, command in known_commands().items()
    }
    for option in re.findall(r"`(--[\w-]+)", pages.section(guide, "Shared options")):
        assert any(option in options for options in known.values()), option
    for command in named:
        text = re.sub(r"`[a-z]+ (?:[a-z]+ )?--[\w-]+`", "", pages.section(guide, f"lessonbank {command}"))  # another's
        assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)) <= known[command], command


def test_the_help_of_a_command_says_what_each_option_does() -> None:
    silent = [(name, p.opts) for name, command in known_commands().items() for p in _options(command) if not p.help]
    assert silent == []


def _options(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "option"]
