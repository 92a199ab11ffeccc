"""The page about the paper's tables: every published figure is the one on file, and every command can be given.

`python tests/bench/test_reproduce.py` writes the tables into the page anew.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("pydantic_ai", reason="needs the extra models")

from lessonbank.contracts.ports import LanguageModel
from lessonbank.demo.desk import SUBMIT
from lessonbank.testing.model_server import Answer, ModelServer
from lessonbank_bench.cli import bench
from lessonbank_bench.environments import ENVIRONMENTS, Settings, desk
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.environments.mind2web import RULES
from lessonbank_bench.experiment import request as asking
from lessonbank_bench.experiment.records import Experiment

from .environments.test_mind2web import OTHERS, action, candidate, task
from .test_llm_path import acts
from .test_scale_cli import Server

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduce.md"
FIGURES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("published.toml").read_text(encoding="utf-8"))
REFERENCE = ROOT.parent / "shared" / "facts" / "reference.md"
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end -->)", re.S)
_SHORT = {"Gemini-2.5-flash": "flash", "Gemini-2.5-pro": "pro", "ReasoningBank": "RB"}


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], published: int) -> str:
    """A table of published figures, with a dash where no figure was published."""
    cells = [[*row[:published], *(figure or "–" for figure in row[published:])] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in [columns, ["---"] * len(columns), *cells])


def with_tables(text: str) -> str:
    return _TABLE.sub(
        lambda found: found[1] + "\n" + table(**FIGURES[found[2]]).replace(" / ", "/") + "\n" + found[3], text
    )


def given() -> Iterator[list[str]]:
    """The words of every command of the page."""
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        yield from filter(None, (shlex.split(line, comments=True) for line in block.splitlines()))


COMMANDS = list(given())
RUNS = [words for words in COMMANDS if words[:3] == ["lessonbank", "bench", "run"]]


def asked(words: Sequence[str]) -> Experiment:
    """The experiment that a command is for."""
    told: dict[str, str] = {}
    settings: list[str] = []
    for key, value in pairwise(words):
        if key == "--set":
            settings.append(value)
        elif key.startswith("--"):
            told[key] = value
    tasks = int(told["--tasks"]) if "--tasks" in told else None
    return asking.asked(
        None, preset=told["--preset"], model=told.get("--model"), base_url=told.get("--base-url"), tasks=tasks,
        settings=settings,
    )  # fmt: skip


def test_every_table_of_the_page_is_the_one_on_file() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text, "run: python tests/bench/test_reproduce.py"
    assert sorted(name for _, name, _ in _TABLE.findall(text)) == sorted(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_row_on_file_has_a_figure_for_each_column(name: str) -> None:
    told = FIGURES[name]
    assert all(len(row) == len(told["columns"]) for row in told["rows"])
    for row in told["rows"]:
        assert all(re.fullmatch(r"(?:[\d.,]+\??(?: / [\d.,]+)*)?", cell) for cell in row[told["published"] :]), row


def test_the_overall_figures_are_the_means_of_the_sites() -> None:
    counts = (187, 182, 180, 106, 29)
    for row in FIGURES["webarena"]["rows"]:
        *sites, overall = (float(cell.split(" / ")[0]) for cell in row[2:])
        mean = sum(n * rate for n, rate in zip(counts, sites, strict=True)) / sum(counts)
        assert mean == pytest.approx(overall, abs=0.1), row


def test_what_the_text_says_of_the_figures_follows_from_them() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    error = (0.497 * 0.503 / 187) ** 0.5
    assert f"standard error of {100 * error:.1f} points" in text
    assert round(100 * error * 2**0.5) == 5
    counts = (187, 182, 180, 106, 29)
    odd = [
        (row[0], row[1], FIGURES["webarena"]["columns"][place])
        for row in FIGURES["webarena"]["rows"]
        for place, n in enumerate(counts, 2)
        if all(abs(100 * k / n - float(row[place].split(" / ")[0])) > 0.1 for k in range(n + 1))
    ]
    assert odd == [
        ("Gemini-2.5-pro", "AWM", "Admin"),
        ("Claude-3.7-sonnet", "Synapse", "Gitlab"),
        ("Claude-3.7-sonnet", "AWM", "Gitlab"),
    ]
    assert f"Three of the {len(FIGURES['webarena']['rows']) * 5} rates" in text


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the facts about the paper are kept beside the project, not in it")
def test_every_figure_is_that_of_the_facts() -> None:
    facts = " ".join(REFERENCE.read_text(encoding="utf-8").replace("*", "").split())
    for name in ("webarena", "mind2web"):
        for row in FIGURES[name]["rows"]:
            memory = _SHORT.get(row[1], row[1].replace("ReasoningBank + MaTTS", "RB+MaTTS"))
            assert f"| {memory} | {' | '.join(cell.replace(' / ', '/') for cell in row[2:])} |" in facts, row
    for row in FIGURES["scaling_curve"]["rows"]:
        assert f"|{'|'.join(row)}|" in facts, row
    for name in FIGURES.keys() - {"webarena", "mind2web", "scaling_curve"}:
        for row in FIGURES[name]["rows"]:
            for cell in row[1:]:
                numbers = [part for part in cell.removesuffix(" %").split(" / ") if part[:1].isdigit()]
                assert all(re.search(rf"(?<![\d.]){re.escape(part)}(?![\d])", facts) for part in numbers), (name, row)


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the facts about the paper are kept beside the project, not in it")
def test_every_figure_of_the_prose_is_that_of_the_facts() -> None:
    facts = REFERENCE.read_text(encoding="utf-8")
    text = _TABLE.sub("", re.sub(r"```.*?```|<!-- setup.*?-->", "", PAGE.read_text(encoding="utf-8"), flags=re.S))
    told = set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", text)) - {"0.1"}  # a tolerance of ours
    assert {"49.7", "37.4", "72.7"} <= told
    assert {figure for figure in told if figure not in facts} == set()


@pytest.mark.parametrize("words", RUNS, ids=lambda words: " ".join(words[3:]))
def test_every_run_of_the_page_is_an_experiment_that_the_package_has(words: list[str]) -> None:
    experiment = asked(words)
    assert experiment.environment in ENVIRONMENTS
    assert words.count("--out") == 1
    assert "--anyway" in words


def test_runs_go_to_folders_of_their_own() -> None:
    folders = [words[words.index("--out") + 1] for words in RUNS]
    assert len(set(folders)) == len(folders)


def test_the_sizes_of_the_commands_are_those_of_the_paper() -> None:
    sizes = {
        (e.environment, e.settings.get("site") or e.settings.get("split") or ""): e.tasks
        for e in map(asked, RUNS)
        if len(e.arms) > 2 and not e.model.startswith("openai")
    }
    assert sizes == {
        ("webarena", "shopping"): 187,
        ("webarena", "shopping_admin"): 182,
        ("webarena", "gitlab"): 180,
        ("webarena", "reddit"): 106,
        ("webarena", "multi"): 29,
        ("mind2web", "test_task"): 252,
        ("mind2web", "test_website"): 177,
        ("mind2web", "test_domain"): 912,
        ("swebench", ""): 500,
    }


def test_every_preset_of_the_paper_is_on_the_page_with_the_papers_settings() -> None:
    named = {words[words.index("--preset") + 1] for words in RUNS}
    assert named == {name for name in asking.presets() if name.startswith("paper-")}
    for name in named:
        experiment = asking.asked(None, preset=name)
        assert not experiment.shuffle
        assert experiment.model == "google:gemini-2.5-flash"
        assert experiment.settings["temperature"] == (0.0 if name == "paper-swebench" else 0.7)
        limits = {arm.limit for arm in experiment.arms if arm.memory or arm.name != "none"}
        assert limits == ({1, 2, 3, 4} if name == "paper-k" else {1})


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("webarena", {"site": "shopping", "max_steps": 30, "temperature": 0.7, "infeasible": False}),
        ("mind2web", {"split": "test_task", "variant": "awm", "candidates": "ranked", "top_k": 5, "temperature": 0.7}),
        ("swebench", {"dataset": "verified", "temperature": 0.0, "max_steps": 250, "max_cost": 3.0}),
    ],
)
def test_a_preset_of_a_benchmark_has_its_settings_and_the_memories_that_the_paper_compares(
    name: str, settings: dict[str, Any]
) -> None:
    experiment = asking.asked(None, preset=f"paper-{name}")
    assert (experiment.environment, experiment.settings, experiment.judged) == (name, settings, True)
    baselines = ["none", "synapse", *(["awm"] if name != "swebench" else [])]
    assert [arm.name for arm in experiment.arms] == [*baselines, "reasoningbank-paper"]


class StandIn(DeskEnvironment):
    """The desk in the place of what needs a browser or containers; it takes whatever it is told."""

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        super().__init__(model)


def answers(body: dict[str, Any]) -> Answer:
    """Acts by rules, on a page of Mind2Web too; opens a form and submits it, so that a run is short; judges, distils
    and chooses as a model would, always alike."""
    system, shown = (str(body["messages"][at]["content"]) for at in (0, -1))
    if system.startswith("You operate a web form"):
        return Answer(SUBMIT if " -> " in shown.rpartition("Goal: ")[2] else acts(shown))
    if system.startswith(RULES.strip()[:30]):
        return Answer("CLICK [" + re.findall(r"\[(\d+)\]", shown)[0] + "]")
    return Answer(Server().said(system, shown)[1])


def played(words: Sequence[str]) -> str:
    """What a command plays, without what is all the same here: the site, how many tasks, the model, and the folder."""
    return re.sub(r" --(?:out|tasks|model|base-url|set site)[= ]\S+", "", " ".join(words))


@pytest.mark.release
def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First what plays, then what reads it. One task each, one server; what is played already is copied.

    Each kind of command has a test of its own, and each experiment of the page is made above."""
    for split in ("task", "website", "domain"):
        (tmp_path / "mind2web" / f"test_{split}").mkdir(parents=True)
        tasks = [task(f"t{n}", [action(f"{n}", "CLICK", "", [candidate("12", 1)], OTHERS)]) for n in range(2)]
        (tmp_path / "mind2web" / f"test_{split}" / f"test_{split}_0.json").write_text(json.dumps(tasks))
    ranks = {f"t{n}_{n}": {"12": 1, "14": 3, "15": 60} for n in range(2)}
    (tmp_path / "ranks.json").write_text(json.dumps(ranks))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(desk, "StandIn", StandIn, raising=False)
    for name in ("webarena", "swebench"):
        monkeypatch.setitem(ENVIRONMENTS, name, "desk:StandIn")  # type: ignore[arg-type]
    with ModelServer(default=answers) as server:
        model = ["--model", "openai:gpt-4o", "--base-url", server.base_url, "--tasks", "1"]
        plays = [words for words in COMMANDS if words[2] in ("run", "scale")]
        reads = [words for words in COMMANDS if words[2] not in ("run", "scale")]
        folders: dict[str, str] = {}
        for words, more in [*((words, model) for words in plays), *((words, list[str]()) for words in reads)]:
            if "--out" in words and (out := words[words.index("--out") + 1]) != folders.setdefault(played(words), out):
                shutil.copytree(folders[played(words)], out)
                continue
            done = CliRunner().invoke(bench, [*words[2:], *more])
            assert done.exit_code == (3 if words[2] == "plan" else 0), (words, done.output, done.exception)
            if words[2] == "table":
                assert all(f"{folder}, 95 % over tasks" in done.stdout for folder in words[3:]), words
                assert ("Overall" in done.stdout) is (len(words) > 4), words
            if words[2] == "scale":
                assert "Pass@1" in done.stdout, words


def test_what_is_played_is_printed() -> None:
    made = {words[words.index("--out") + 1] for words in COMMANDS if "--out" in words}
    assert made - {folder for words in COMMANDS if words[2] == "table" for folder in words[3:]} == {"cross-task-50"}


def test_the_page_has_no_code_but_commands() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^```(\w*)$", text, re.M)) == {"sh", ""}
    assert not re.findall(r"^# ?(?:from|import|model|lessonbank)", text, re.M)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
