"""What lies in deploy/ can be read, starts commands that exist, and gives a server no more than it needs."""

from __future__ import annotations

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
GROUP: Any = typer.main.get_command(app)


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
    found = calls()
    assert {name for name, _ in found} == {
        "Dockerfile",
        "compose.yaml",
        "kubernetes.yaml",
        "lessonbank-server.service",
        "lessonbank-worker.service",
    }
    for name, (command, *words) in found:
        known = GROUP.get_command(GROUP.context_class(GROUP), command)
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


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_units_are_sound(tmp_path: Path) -> None:
    for unit in DEPLOY.glob("*.service"):
        text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(encoding="utf-8"))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        told = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr
