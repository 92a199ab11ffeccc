"""mini-swe-agent as it is run here: quiet to load, memory as plain text, commands without this process's secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lessonbank.contracts.ports import Completion, Message
from lessonbank.contracts.records import Trajectory, Usage
from lessonbank.errors import MissingExtra, ModelError, UsageError
from lessonbank.importers import Imported, read
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments.mini_loading import mini
from lessonbank_bench.environments.mini_model import MiniModel, bounded
from lessonbank_bench.environments.mini_runs import HANDED_IN, Prompts, episode, submitted, trajectory
from lessonbank_bench.environments.mini_shell import ScrubbedShell, can_be_alone, scrubbed
from lessonbank_bench.environments.model_agent import Speaker

needs_mini = pytest.mark.skipif(find_spec("minisweagent") is None, reason="mini-swe-agent is not installed")
PROMPTS = Prompts("You work in a shell.", "Do this: {{ task }}")
HAND_IN = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def block(command: str) -> str:
    return f"So be it.\n\n```mswea_bash_command\n{command}\n```"


def play(
    folder: Path, replies: Sequence[str], *, memory: str = "", steps: int = 8, alone: bool = False
) -> tuple[dict[str, Any], Trajectory, list[Sequence[Message]]]:
    shown: list[Sequence[Message]] = []
    left = iter(replies)

    def answers(messages: Sequence[Message]) -> Completion:
        shown.append(messages)
        return Completion(text=next(left), usage=Usage(requests=1, input_tokens=7, output_tokens=2, cost=0.5))

    loaded = mini()
    model = MiniModel(loaded, "somebody", answers)
    shell = ScrubbedShell(loaded, folder, home=folder, alone=alone)
    data = episode(loaded, model, shell, PROMPTS, task="count {{ 6 * 7 }}", memory=memory, steps=steps)
    return data, trajectory(data, model, task="count", memory=memory), shown


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "minisweagent", None)
    mini.cache_clear()
    yield
    mini.cache_clear()


@pytest.mark.usefixtures("absent")
def test_without_mini_swe_agent_one_sentence_says_what_to_install() -> None:
    before = dict(os.environ)
    with pytest.raises(MissingExtra, match=r"mini-swe-agent needs .* pip install 'lessonbank-bench\[mini\]'"):
        mini()
    assert os.environ == before


def test_version_one_is_refused(monkeypatch: pytest.MonkeyPatch, absent: None) -> None:
    monkeypatch.setitem(sys.modules, "minisweagent", SimpleNamespace(__version__="1.17.3"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"mini-swe-agent 1\.17\.3 is too old: pip install"):
        mini()


@needs_mini
def test_loading_it_prints_nothing_and_takes_nothing_from_the_home_folder(tmp_path: Path) -> None:
    settings = tmp_path / ".config" / "mini-swe-agent"
    settings.mkdir(parents=True)
    settings.joinpath(".env").write_text("TAKEN_FROM_HOME=yes\n")
    code = (
        "import os, sys, lessonbank_bench.environments.mini_loading as m; before = dict(os.environ); m.mini()\n"
        "assert os.environ == before, set(os.environ) ^ set(before)\n"
        "heavy = {'litellm', 'datasets', 'openai', 'textual', 'mcp'} & set(sys.modules); assert not heavy, heavy"
    )
    told = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_mini
def test_memory_stands_in_the_system_message_as_it_is_and_is_no_template(tmp_path: Path) -> None:
    memory = "{{ 6 * 7 }} {% for x in y %} {# gone? #}\n  {{ config }} {{ task.__class__ }}"
    data, run, shown = play(tmp_path, [block(HAND_IN)], memory=memory)
    assert shown[0][0].content == f"You work in a shell.\n\n{memory}"
    assert shown[0][1].content == "Do this: count {{ 6 * 7 }}"
    assert memory not in run.model_dump_json()
    assert run.instructions == "You work in a shell."
    assert data["messages"][0]["content"].endswith(memory)


@needs_mini
def test_a_run_holds_what_was_done_and_seen_and_what_was_handed_in(tmp_path: Path) -> None:
    data, run, _ = play(tmp_path, [block("echo one && exit 3"), block(f"{HAND_IN}; echo a patch")])
    assert submitted(data)
    assert [step.action.text for step in run.steps[1:]] == [block("echo one && exit 3"), HANDED_IN]
    assert "<returncode>3</returncode>\n<output>\none\n" in run.steps[1].observations[0].text
    assert (run.task, run.answer, run.error) == ("count", "a patch\n", None)
    assert run.usage == Usage(requests=2, input_tokens=14, output_tokens=4, cost=1.0)


@needs_mini
def test_a_run_that_is_stopped_says_so_and_handed_nothing_in(tmp_path: Path) -> None:
    data, run, _ = play(tmp_path, [block("true")] * 3, steps=3)
    assert not submitted(data)
    assert (run.error, run.answer) == ("LimitsExceeded", None)
    assert not any(seen.name == "exit" for step in run.steps for seen in step.observations)


@needs_mini
def test_a_reply_without_exactly_one_command_is_answered_and_not_run(tmp_path: Path) -> None:
    replies = ["I think.", block("touch a") + block("touch b"), "```bash\ntouch c\n```", block(HAND_IN)]
    data, _, shown = play(tmp_path, replies)
    assert "held 0 commands" in shown[1][-1].content
    assert "held 2 commands" in shown[2][-1].content
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert data["info"]["model_stats"] == {"instance_cost": 2.0, "api_calls": 4}


@needs_mini
def test_what_a_command_prints_is_bounded_on_its_way_to_the_model(tmp_path: Path) -> None:
    _, run, shown = play(tmp_path, [block("head -c 3000000 /dev/zero | tr '\\0' x"), block(HAND_IN)])
    assert len(shown[1][-1].content) < 11_000
    assert "2990000 characters left out" in shown[1][-1].content
    assert len(run.model_dump_json()) < 20_000
    assert bounded("x" * 10, 10) == "x" * 10


@needs_mini
def test_a_command_that_prints_without_end_is_stopped_early(tmp_path: Path) -> None:
    data, _, shown = play(tmp_path, [block("yes"), block("echo out; echo err >&2; exit 7"), block(HAND_IN)])
    assert "<returncode>141</returncode>" in shown[1][-1].content
    assert len(json.dumps(data)) < 20_000
    assert shown[2][-1].content == "<returncode>7</returncode>\n<output>\nout\nerr\n</output>"


@needs_mini
def test_commands_see_no_variable_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "do-not-tell")
    _, run, _ = play(tmp_path, [block("env; cat /proc/self/environ | tr '\\0' '\\n'"), block(HAND_IN)])
    seen = run.steps[1].observations[0].text
    assert "do-not-tell" not in seen
    assert f"HOME={tmp_path}" in seen
    assert set(scrubbed(tmp_path)) >= {"PATH", "HOME", "GIT_CONFIG_GLOBAL"}


@needs_mini
@pytest.mark.skipif(not can_be_alone(), reason="commands cannot be cut off here: it takes Linux and unshare")
def test_a_command_that_is_alone_has_no_network_and_sees_no_other_process(tmp_path: Path) -> None:
    script = f"ls /proc/{os.getpid()}/environ; tail -n +3 /proc/net/dev"
    _, run, _ = play(tmp_path, [block(script), block(HAND_IN)], alone=True)
    seen = run.steps[1].observations[0].text
    assert "No such file" in seen
    assert [line.split(":")[0].strip() for line in seen.splitlines() if ":" in line][1:] == ["lo"]


@needs_mini
def test_a_command_that_takes_too_long_is_ended_and_says_so(tmp_path: Path) -> None:
    left = iter([block("sleep 60"), block(HAND_IN)])
    model = MiniModel(mini(), "m", lambda messages: Completion(text=next(left)))
    shell = ScrubbedShell(mini(), tmp_path, home=tmp_path, seconds=1)
    data = episode(mini(), model, shell, PROMPTS, task="t", memory="", steps=3)
    assert "<exception>An error occurred" in data["messages"][3]["content"]
    assert submitted(data)


@needs_mini
def test_a_model_that_fails_is_an_error_and_no_run(tmp_path: Path) -> None:
    model = ScriptedModel([ModelError("no answer")])
    wrapped = MiniModel(mini(), "m", Speaker(model, temperature=0.7))
    shell = ScrubbedShell(mini(), tmp_path, home=tmp_path)
    with pytest.raises(ModelError, match="no answer"):
        episode(mini(), wrapped, shell, PROMPTS, task="t", memory="", steps=3)
    assert model.calls[0].temperature == 0.7


@needs_mini
def test_a_configuration_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    assert {"agent", "environment", "model"} <= set(mini().config())
    bad = tmp_path / "bad.yaml"
    for text in ("- a\n- b\n", "a: [\n"):
        bad.write_text(text)
        with pytest.raises(UsageError, match=r"the configuration '.*bad\.yaml'"):
            mini().config(bad)


def written(folder: Path, messages: list[dict[str, Any]]) -> Trajectory:
    path = folder / "made-up__tool-1.traj.json"
    data = {
        "info": {"exit_status": "Submitted", "submission": "diff --git a/x b/x\n", "model_stats": {"api_calls": 2}},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "made-up__tool-1",
    }
    path.write_text(json.dumps(data))
    entry = next(read(path))
    assert isinstance(entry, Imported)
    return entry.trajectory


def in_blocks(command: str, seen: str) -> list[dict[str, Any]]:
    said = f"THOUGHT: so be it.\n\n```bash\n{command}\n```"
    return [{"role": "assistant", "content": said}, {"role": "user", "content": seen}]


def in_calls(command: str, seen: str) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
    return [
        {"role": "assistant", "content": "So be it.", "tool_calls": [call], "extra": {"actions": []}},
        {"role": "tool", "tool_call_id": "c1", "content": seen},
    ]


@pytest.mark.parametrize("turn", [in_blocks, in_calls])
def test_files_of_both_versions_are_read_alike(
    tmp_path: Path, turn: Callable[[str, str], list[dict[str, Any]]]
) -> None:
    asked = "<pr_description>\nConsider the following PR description:\nThe tool is late.\n</pr_description>"
    messages = [{"role": "system", "content": "Work."}, {"role": "user", "content": asked}]
    messages += turn("ls -a", "a.py") + turn("rm a.py", "")
    run = written(tmp_path, messages)
    assert run.task == "The tool is late."
    assert (run.answer, run.error, run.usage.requests) == ("diff --git a/x b/x\n", None, 2)
    acted = [step for step in run.steps if step.action.text or step.action.calls]
    assert len(acted) == 2
    assert "ls -a" in str(acted[0].action)
    assert acted[0].observations[0].text == "a.py"
