"""What lies in deploy/ can be read, starts commands that exist, and gives a server no more than it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from lessonbank.cli import app

pytestmark = pytest.mark.full
DEPLOY = Path(__file__).parents[2] / "deploy"


def calls() -> list[tuple[str, list[str]]]:
    """(file, words) of every command line that starts lessonbank."""
    docker = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    found = [("Dockerfile", re.findall(r'"([^"]+)"', re.findall(r"^CMD (.*)$", docker, re.M)[-1]))]
    for name, key in (("compose.yaml", "command"), ("kubernetes.yaml", "args")):
        text = (DEPLOY / name).read_text(encoding="utf-8")
        found += [(name, re.split(r",\s*", words)) for words in re.findall(rf"^ *{key}: \[(.*)\]$", text, re.M)]
    for unit in DEPLOY.glob("*.service"):
        (line,) = re.findall(r"^ExecStart=\S+/lessonbank (.*)$", unit.read_text(encoding="utf-8"), re.M)
        found.append((unit.name, line.split()))
    return found


def test_every_command_of_the_files_exists_with_its_options() -> None:
    found, group = calls(), typer.main.get_command(app)
    assert {name for name, _ in found} == {
        "Dockerfile",
        "compose.yaml",
        "kubernetes.yaml",
        "lessonbank-server.service",
        "lessonbank-worker.service",
    }
    for name, (command, *words) in found:
        known = group.get_command(group.context_class(group), command)
        assert known is not None, (name, command)
        options = {option for parameter in known.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, name


def test_servers_run_without_root_on_a_file_system_that_they_cannot_write() -> None:
    docker = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER 10001", docker, re.M)
    assert "HEALTHCHECK" in docker
    yaml: Any = pytest.importorskip("yaml", reason="pip install pyyaml")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    for name in ("server", "worker"):
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in compose["services"]["server"]["ports"])
    objects = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
    for one in objects:
        if one["kind"] != "Deployment":
            continue
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]


def test_the_copied_files_of_the_image_exist() -> None:
    docker = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    for names in re.findall(r"^COPY (?!--from)(.*) \S+$", docker, re.M):
        for name in names.split():
            assert (DEPLOY.parent / name).exists(), name


def broken(name: str, folder: Path, old: str, new: str) -> Path:
    """A copy of a file with one mistake in it."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder / name


def checked(tool: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """What a tool of the group `deploy` says."""
    path = shutil.which(tool, path=str(Path(sys.executable).parent))
    if path is None:
        pytest.skip(f"needs {tool}: pip install --group deploy")
    return subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)


CHECKS: dict[str, tuple[str, list[str], str, str]] = {
    "compose.yaml": ("check-jsonschema", ["--builtin-schema", "vendor.compose-spec"], "read_only:", "readonly:"),
    "kubernetes.yaml": ("kubernetes-validate", ["--strict"], "runAsNonRoot:", "runAsNotRoot:"),
    "Dockerfile": ("hadolint", ["--no-color"], "USER 10001:10001", "USER root"),
}
"""For each file who checks it, and a mistake that must be found."""


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_what_the_files_say_is_what_their_schemas_and_the_linter_know(name: str, tmp_path: Path) -> None:
    tool, options, old, new = CHECKS[name]
    told = checked(tool, *options, DEPLOY / name)
    assert told.returncode == 0, told.stdout + told.stderr
    assert checked(tool, *options, broken(name, tmp_path, old, new)).returncode != 0


GUIDE = (DEPLOY.parent / "docs/guides/server.md").read_text(encoding="utf-8").partition("\n## In Docker\n")[2]


def of_guide(language: str) -> str:
    """The block of the guide in a language; of Python the program that stands in the container."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.M | re.S)[:1]
    return block


def test_the_compose_file_of_the_guide_is_what_its_schema_knows(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    for text, is_sound in ((of_guide("yaml"), True), (of_guide("yaml").replace("read_only:", "readonly:"), False)):
        file.write_text(text, encoding="utf-8")
        told = checked("check-jsonschema", "--builtin-schema", "vendor.compose-spec", file)
        assert (told.returncode == 0) is is_sound, told.stdout


def test_the_containers_of_the_guide_do_what_it_says(tmp_path: Path) -> None:
    """Without an engine: its program and its commands, with the volume in a folder."""
    yaml: Any = pytest.importorskip("yaml", reason="pip install pyyaml")
    services, data = yaml.safe_load(of_guide("yaml"))["services"], tmp_path / "data"
    data.mkdir()
    (place,) = services["agent"]["environment"].values()
    (tmp_path / "agent.py").write_text(of_guide("python"), encoding="utf-8")
    environment = {**os.environ, "LESSONBANK_BANK": place.replace("/data", str(data))}
    subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    backup = re.findall(r"run --rm look (backup .*)$", GUIDE, re.M)[0].split()
    for words in (services["look"]["command"], backup):
        command = [sys.executable, "-m", "lessonbank.cli", *(word.replace("/data", str(data)) for word in words)]
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0, words
    assert {"bank.db", "copy.db"} <= {file.name for file in data.iterdir()}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_units_are_sound(tmp_path: Path) -> None:
    for unit in DEPLOY.glob("*.service"):
        text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(encoding="utf-8"))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        told = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr
