"""The coding agents as programs: how each finds a model on loopback, is asked one thing, and runs a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPENING = "<<<lessons "
Prepare = Callable[[Path, Path, str], dict[str, str]]


@dataclass(frozen=True)
class Program:
    """One coding agent."""

    command: str
    """Where npm puts it, below the folder of all hosts."""
    prepare: Prepare
    """Writes settings for the model at a URL; the environment that the program needs."""
    words: Callable[[str], list[str]]
    """The command line for a prompt."""
    shell: Callable[[str], dict[str, Any]]
    """The model's turn that runs a shell command."""
    log_in: Callable[[str], list[str]] | None = None
    """A command before the first session, for the model at a URL."""
    transcripts: str = ""
    """Where sessions are, below the home folder, for a program that has no hook for their end."""
    recall: str = ""
    """The tool that finds lessons, for a program that has no hook for a prompt."""


def _claude(home: Path, project: Path, url: str) -> dict[str, str]:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
    key = "sk-ant-" + "scripted"
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, **dict.fromkeys(quiet, "1")}


def _codex(home: Path, project: Path, url: str) -> dict[str, str]:
    (home / ".codex").mkdir()
    lines = [
        'model = "scripted"',
        'model_provider = "loop"',
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        "check_for_update_on_startup = false",
        "[analytics]",
        "enabled = false",
        "[model_providers.loop]",
        'name = "loop"',
        f'base_url = "{url}/v1"',
        'env_key = "LOOP_KEY"',
        'wire_api = "responses"',
    ]
    (home / ".codex/config.toml").write_text("\n".join(lines) + "\n")
    return {"LOOP_KEY": "scripted"}


def _gemini(home: Path, project: Path, url: str) -> dict[str, str]:
    (home / ".gemini").mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    return {"GEMINI_API_KEY": "scripted", "GOOGLE_GEMINI_BASE_URL": url, **trusted}


def _qwen(home: Path, project: Path, url: str) -> dict[str, str]:
    (home / ".qwen").mkdir()
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    (home / ".qwen/settings.json").write_text(json.dumps(settings))
    return {"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}


def _opencode(home: Path, project: Path, url: str) -> dict[str, str]:
    (home / ".config/opencode").mkdir(parents=True)
    model = {"name": "scripted", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "loop",
        "options": {"baseURL": f"{url}/v1", "apiKey": "scripted"},
        "models": {"scripted": model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "loop/scripted",
        "small_model": "loop/scripted",
        "permission": {"*": "allow"},
        "provider": {"loop": provider},
    }
    (home / ".config/opencode/opencode.json").write_text(json.dumps(settings))
    quiet = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    # Else opencode asks a registry for the types of its plug-ins, and waits a minute.
    offline = {"npm_config_fetch_retries": "0", "npm_config_offline": "true"}
    return {**{f"OPENCODE_DISABLE_{name}": "1" for name in quiet}, **offline}


PROGRAMS = {
    "claude-code": Program(
        "claude-code/node_modules/.bin/claude",
        _claude,
        lambda prompt: ["-p", prompt, "--allowedTools", "Bash"],
        lambda command: {"tool": "Bash", "arguments": {"command": command, "description": "run"}},
    ),
    "codex": Program(
        "codex/node_modules/.bin/codex",
        _codex,
        lambda prompt: ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt],
        lambda command: {"tool": "exec_command", "arguments": {"cmd": command}},
    ),
    "gemini-cli": Program(
        "gemini-cli/node_modules/.bin/gemini",
        _gemini,
        lambda prompt: ["-p", prompt, "--yolo", "-m", "gemini-2.5-flash"],
        lambda command: {"tool": "run_shell_command", "arguments": {"command": command}},
    ),
    "opencode": Program(
        "opencode/node_modules/.bin/opencode",
        _opencode,
        lambda prompt: ["run", "--format", "json", prompt],
        lambda command: {"tool": "bash", "arguments": {"command": command, "description": "run"}},
    ),
    "cline": Program(
        "cline/node_modules/.bin/cline",
        lambda home, project, url: {},
        lambda prompt: ["--json", prompt],
        lambda command: {"tool": "run_commands", "arguments": {"commands": [command]}},
        log_in=lambda url: [
            "auth",
            "openai",
            "--apikey",
            "scripted",
            "--modelid",
            "scripted",
            "--baseurl",
            f"{url}/v1",
        ],
        transcripts=".cline/data/sessions",
        recall="lessonbank__recall",
    ),
    "qwen-code": Program(
        "qwen-code/node_modules/.bin/qwen",
        _qwen,
        lambda prompt: ["-p", prompt, "--yolo"],
        lambda command: {"tool": "run_shell_command", "arguments": {"command": command, "is_background": False}},
    ),
}
