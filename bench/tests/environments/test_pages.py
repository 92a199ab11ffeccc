"""The files that the pages of environments show are experiments that their environment takes, and some run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lessonbank.errors import LessonbankError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.cli import bench
from lessonbank_bench.environments import ArmMemories, environment
from lessonbank_bench.experiment.records import Experiment, read_experiment
from lessonbank_bench.experiment.remembering import memory_for

PAGES = Path(__file__).parents[3] / "docs" / "environments"
HARNESSES = {"inspect", "state-bench"}
"""Pages of programs of others, which have files of their own."""
FILES = {
    page.stem: block
    for page in sorted(PAGES.glob("*.md"))
    for block in re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
}
every_file = pytest.mark.parametrize("name", FILES)
_WRONG = re.compile(r"has no|should be like|is at least")
"""What is said of a setting that the page should not have; anything else is missing on this machine."""


def experiment_of(name: str, folder: Path) -> Experiment:
    """The experiment that a page shows, read from a file as a user would save it."""
    path = folder / "shown.toml"
    path.write_text(FILES[name], encoding="utf-8")
    return read_experiment(path)


def test_every_environment_has_a_page_that_shows_a_whole_file() -> None:
    assert set(FILES) == {page.stem for page in PAGES.glob("*.md")} - HARNESSES


@every_file
def test_the_file_of_a_page_has_arms_whose_memories_there_are(name: str, tmp_path: Path) -> None:
    shown = experiment_of(name, tmp_path)
    memories = ArmMemories(shown.environment, ScriptedModel([]))
    assert shown.claims
    for arm in map(shown.played, shown.arms):
        memory_for(shown, arm, memories, shown.seeds[0], None).close()


@every_file
def test_the_environment_takes_the_settings_of_its_page(name: str, tmp_path: Path) -> None:
    shown = experiment_of(name, tmp_path)
    try:
        environment(shown.environment, ScriptedModel([]) if shown.model else None, shown.settings).close()
    except LessonbankError as missing:
        assert not _WRONG.search(str(missing)), missing
        pytest.skip(str(missing))


@pytest.mark.full
@pytest.mark.parametrize("name", ["index", "repo-desk", "house-rules"])
def test_a_file_that_needs_no_model_runs(name: str, tmp_path: Path) -> None:
    try:
        environment(experiment_of(name, tmp_path).environment).close()
    except LessonbankError as missing:
        pytest.skip(str(missing))
    file, out = str(tmp_path / "shown.toml"), str(tmp_path / "out")
    done = CliRunner().invoke(bench, ["run", file, "--out", out, "--tasks", "1", "--anyway"])
    assert done.exit_code == 0, done.output
    compared = CliRunner().invoke(bench, ["compare", out])
    assert compared.exit_code == 0, compared.output
    assert "lessonbank" in compared.output
