"""The coding agents as programs: how each finds a model on loopback, is asked one thing, and runs a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

OPENING = "<<<lessons "
Prepare = Callable[[Path, Path, str], dict[str, str]]
AddServer = Callable[[Path, Path, list[str], dict[str, str]], None]


def texts(value: Any) -> list[str]:
    """Every text in a request, as the model reads it: some programs write `<` as `&lt;`."""
    if isinstance(value, str):
        return [unescape(value)]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in texts(part)]


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
    tool: Callable[[str], dict[str, Any]]
    """How the model names a tool of the MCP server `lessonbank`."""
    add_server: AddServer
    """Writes that server into settings as `docs/guides/mcp.md` says: a command, and its environment."""
    log_in: Callable[[str], list[str]] | None = None
    """A command before the first session, for the model at a URL."""
    transcripts: str = ""
    """Where sessions are, below the home folder, for a program that has no hook for their end."""
    has_hooks: bool = True
    """Whether a hook can show lessons with a prompt."""
    reads_instructions: bool = True
    """Whether the model is told what an MCP server says of itself."""


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


def _change(file: Path, **more: Any) -> None:
    """Add fields to a JSON file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    told = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**told, **more}))


def _entry(command: list[str], environment: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"lessonbank": {"command": command[0], "args": command[1:], "env": environment, **more}}


def _server_of_claude(home: Path, project: Path, command: list[str], environment: dict[str, str]) -> None:
    """In the project; that the server may be used and its tools called is what its user confirms."""
    _change(project / ".mcp.json", mcpServers=_entry(command, environment))
    allowed = {"permissions": {"allow": ["mcp__lessonbank"]}, "enabledMcpjsonServers": ["lessonbank"]}
    _change(project / ".claude/settings.local.json", **allowed)


def _server_of_codex(home: Path, project: Path, command: list[str], environment: dict[str, str]) -> None:
    told = [f"command = {json.dumps(command[0])}", f"args = {json.dumps(command[1:])}"]
    named = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
    with (home / ".codex/config.toml").open("a") as file:
        file.write("\n".join(["[mcp_servers.lessonbank]", *told, f"env = {{ {named} }}"]) + "\n")


def _server_of_opencode(home: Path, project: Path, command: list[str], environment: dict[str, str]) -> None:
    entry = {"type": "local", "enabled": True, "command": command, "environment": environment}
    _change(home / ".config/opencode/opencode.json", mcp={"lessonbank": entry})


def _server_in(settings: str, **more: Any) -> AddServer:
    def add(home: Path, project: Path, command: list[str], environment: dict[str, str]) -> None:
        _change(home / settings, mcpServers=_entry(command, environment, **more))

    return add


PROGRAMS = {
    "claude-code": Program(
        "claude-code/node_modules/.bin/claude",
        _claude,
        lambda prompt: ["-p", prompt, "--allowedTools", "Bash"],
        lambda command: {"tool": "Bash", "arguments": {"command": command, "description": "run"}},
        lambda name: {"tool": f"mcp__lessonbank__{name}"},
        _server_of_claude,
    ),
    "codex": Program(
        "codex/node_modules/.bin/codex",
        _codex,
        lambda prompt: ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt],
        lambda command: {"tool": "exec_command", "arguments": {"cmd": command}},
        lambda name: {"namespace": "mcp__lessonbank", "tool": name},
        _server_of_codex,
    ),
    "gemini-cli": Program(
        "gemini-cli/node_modules/.bin/gemini",
        _gemini,
        lambda prompt: ["-p", prompt, "--yolo", "-m", "gemini-2.5-flash"],
        lambda command: {"tool": "run_shell_command", "arguments": {"command": command}},
        lambda name: {"tool": f"mcp_lessonbank_{name}"},
        _server_in(".gemini/settings.json"),
    ),
    "opencode": Program(
        "opencode/node_modules/.bin/opencode",
        _opencode,
        lambda prompt: ["run", "--format", "json", prompt],
        lambda command: {"tool": "bash", "arguments": {"command": command, "description": "run"}},
        lambda name: {"tool": f"lessonbank_{name}"},
        _server_of_opencode,
    ),
    "cline": Program(
        "cline/node_modules/.bin/cline",
        lambda home, project, url: {},
        lambda prompt: ["--json", prompt],
        lambda command: {"tool": "run_commands", "arguments": {"commands": [command]}},
        lambda name: {"tool": f"lessonbank__{name}"},
        _server_in(".cline/data/settings/cline_mcp_settings.json", timeout=60),  # else it leaves a server out after 3 s
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
        has_hooks=False,
        reads_instructions=False,
    ),
    "qwen-code": Program(
        "qwen-code/node_modules/.bin/qwen",
        _qwen,
        lambda prompt: ["-p", prompt, "--yolo"],
        lambda command: {"tool": "run_shell_command", "arguments": {"command": command, "is_background": False}},
        lambda name: {"tool": f"mcp__lessonbank__{name}"},
        _server_in(".qwen/settings.json"),
    ),
}
