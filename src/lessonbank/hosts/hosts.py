"""What is written for each coding agent, and where: data for `install` and `install --remove`."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias, cast

from lessonbank._version import VERSION
from lessonbank.contracts.records import Json
from lessonbank.contracts.retrieve_options import RetrieveKeywords
from lessonbank.errors import UsageError

from . import client
from .pieces import SERVER, Block, Element, Member, OwnFile, Piece, Trace
from .repositories import COMMON

_NAME: Final = "lessonbank"
_OURS: Final = "(lessonbank)"
_ABOUT: Final = f"Lessons from earlier sessions {_OURS}"
_SHOW: Final = (
    "Call the tool `recall` of the MCP server `lessonbank` with this task: {}. If no task is given, use the task of "
    "this session. Show the lessons that it returns, each with its id. Do nothing else."
)
_SLASH_COMMAND: Final = (
    f"---\ndescription: See, remove or switch off what memory knows ({_NAME})\ndisable-model-invocation: true\n---\n"
    f"{client.SLASH_COMMAND} {{}}\n"
)
_GONE: Final = (
    "lessonbank: no lessons: its program is gone. Install lessonbank again, and run `lessonbank install {0}`, "
    "or with --remove to take its hooks out"
)
"""What the person sees at the start of a session where the Python of the hooks, or lessonbank in it, was deleted."""
_SECONDS: Final = 3
"""Codex allows no more for the end of a session."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a user asks `install` for."""

    bank: str
    scope: str | None = None
    """Whose memory all sessions use. `None`: each repository has its own."""
    model: str | None = None
    holdout: float | None = None
    retrieve: RetrieveKeywords = field(default_factory=RetrieveKeywords)
    """What each recall is asked with."""
    within: float = client.ANSWER_WITHIN
    """Seconds that a prompt waits for its lessons."""
    mcp: bool = True
    """Whether the MCP server and its command are part of it."""
    without: tuple[str, ...] = ()
    """Tools that the MCP server does not offer."""

    @property
    def options(self) -> dict[str, str]:
        """What the resident process is started with."""
        options = {"bank": self.bank, "model": self.model, "holdout": self.holdout}
        return {name: str(value) for name, value in options.items() if value is not None}

    @property
    def key(self) -> str:
        """Names the resident process of these options."""
        return hashlib.sha256(json.dumps(self.options, sort_keys=True).encode()).hexdigest()[:16]


Build: TypeAlias = Callable[[Wanted, Path | None], Iterable[Piece]]


@dataclass(frozen=True, slots=True)
class Host:
    """A coding agent."""

    name: str
    title: str
    build: Build
    """The pieces for a user, or for the project in this folder."""
    next_step: str
    """What the user confirms in the program itself."""


def pieces_of(host: Host, wanted: Wanted, project: Path | None) -> list[Piece]:
    """Everything that is written for a host. Raises UsageError: it has no settings for one project."""
    return list(host.build(wanted, project))


def leftovers(host: Host, wanted: Wanted, project: Path | None) -> list[Piece]:
    """What an earlier installation may have written that is not wanted now. Raises UsageError, like `pieces_of`."""
    pieces = pieces_of(host, wanted, project)
    return [piece for piece in pieces_of(host, replace(wanted, mcp=True), project) if piece not in pieces]


def _hook(host: str, wanted: Wanted) -> list[str]:
    """The command of a hook: this very Python, with nothing loaded but the standard library."""
    scope = {} if wanted.scope is None else {"scope": wanted.scope}
    asked = {name: json.dumps(value) for name, value in wanted.retrieve.items()}
    options = {"key": wanted.key, **scope, **asked}
    options |= wanted.options
    options["within"] = str(wanted.within)
    words = [sys.executable, "-I", "-S", str(Path(client.__file__).resolve()), host]
    return words + [word for name, value in options.items() for word in (f"--{name}", value)]


def _events(host: str, wanted: Wanted, events: str, *, timeout: int = _SECONDS, **more: Json) -> dict[str, Json]:
    """The entry of our hook for each event; a `matcher` names the tools that it is for."""
    # Where only lessonbank was uninstalled, Python ends with 2: hosts take that for "block this prompt".
    call, says = (
        shlex.join(_hook(host, wanted)),
        f"echo {shlex.quote(json.dumps({'systemMessage': _GONE.format(host)}))}",
    )
    matcher: dict[str, Json] = {"matcher": more.pop("matcher")} if "matcher" in more else {}
    # Gemini CLI would show what the shell says of each hook.
    commands = {
        event: f"{call} 2>/dev/null || {'true' if event != 'SessionStart' else says}" for event in events.split()
    }
    words: dict[str, Json] = {"type": "command", "timeout": timeout, **more}
    return {event: {**matcher, "hooks": [{**words, "command": command}]} for event, command in commands.items()}


def _elements(file: Path, events: dict[str, Json]) -> list[Piece]:
    return [Element(file, ("hooks", event), entry) for event, entry in events.items()]


def _server(wanted: Wanted) -> tuple[str, list[str]]:
    """The command of the MCP server, with the settings of the hooks."""
    scope = ["--repository"] if wanted.scope is None else ["--scope", wanted.scope]
    words = ["-P", "-m", "lessonbank.cli", "mcp", *scope, "--domain", "code", *_flags(wanted.retrieve)]
    words += [word for tool in wanted.without for word in ("--without", tool)]
    return sys.executable, words + [word for name, value in wanted.options.items() for word in (f"--{name}", value)]


def _flags(asked: RetrieveKeywords) -> list[str]:
    """Options of `retrieve` as the command line takes them."""
    words = list[str]()
    for name, value in asked.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, Mapping):
            mapping = cast("Mapping[str, Json]", value)
            words += [word for key in mapping for word in (flag, f"{key}:={json.dumps(mapping[key])}")]
        elif value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


def _server_entry(wanted: Wanted) -> dict[str, Json]:
    command, words = _server(wanted)
    return {"command": command, "args": cast("list[Json]", words)}


def _folder(project: Path | None, name: str, variable: str = "") -> Path:
    """Where a host keeps its settings: in the project, where a variable says, or in the user's home."""
    if project is not None:
        return project / name
    return Path(os.environ.get(variable) or Path.home() / name) if variable else Path.home() / name


def _json(value: Json) -> str:
    return json.dumps(value, indent=2) + "\n"


def _claude_code(wanted: Wanted, project: Path | None) -> Iterable[Piece]:
    """A plug-in in a folder that is its own marketplace, and the two settings that switch it on."""
    home = _folder(project, ".claude", "CLAUDE_CONFIG_DIR")
    folder = home / _NAME
    about: dict[str, Json] = {"name": _NAME, "description": _ABOUT, "version": VERSION}
    about |= {"author": {"name": _NAME}, "license": "Apache-2.0"}
    events = _events("claude-code", wanted, "SessionStart UserPromptSubmit Stop SessionEnd")
    events |= _events("claude-code", wanted, "PostToolUseFailure", matcher="Bash")
    hooks: Json = {"hooks": {event: [entry] for event, entry in events.items()}}
    market: Json = {
        "name": _NAME,
        "description": _ABOUT,
        "owner": {"name": _NAME},
        "plugins": [{**about, "source": "./plugin"}],
    }
    yield OwnFile(folder / ".claude-plugin/marketplace.json", _json(market))
    yield OwnFile(folder / "plugin/.claude-plugin/plugin.json", _json(about))
    yield OwnFile(folder / "plugin/hooks/hooks.json", _json(hooks))
    if wanted.mcp:
        yield OwnFile(folder / "plugin/.mcp.json", _json({"mcpServers": {_NAME: _server_entry(wanted)}}))
        yield OwnFile(folder / "plugin/commands/lessons.md", _command("$ARGUMENTS"))
    yield OwnFile(home / f"commands/{_NAME}.md", _SLASH_COMMAND.format("$ARGUMENTS"))
    settings = home / ("settings.json" if project is None else "settings.local.json")
    source: Json = {"source": {"source": "directory", "path": str(folder)}}
    yield Member(settings, ("extraKnownMarketplaces", _NAME), source)
    yield Member(settings, ("enabledPlugins", f"{_NAME}@{_NAME}"), True)
    # Else it says that it could not load what is not there any more.
    own = _folder(None, ".claude", "CLAUDE_CONFIG_DIR") / "plugins"
    yield Trace(own / "known_marketplaces.json", (_NAME,))
    yield Trace(own / "installed_plugins.json", ("plugins", f"{_NAME}@{_NAME}"))


def _command(task: str) -> str:
    return f"---\ndescription: Show the lessons for a task {_OURS}\n---\n{_SHOW.format(task)}\n"


def _codex(wanted: Wanted, project: Path | None) -> Iterable[Piece]:
    home = _folder(project, ".codex", "CODEX_HOME")
    events = _events("codex", wanted, "SessionStart UserPromptSubmit Stop SessionEnd")
    events |= _events("codex", wanted, "PostToolUse", matcher="Bash")
    yield from _elements(home / "hooks.json", events)
    if wanted.mcp:
        command, words = _server(wanted)
        # TOML has no pairs of surrogates, as JSON escapes them for an emoji in a path.
        value, values = (json.dumps(each, ensure_ascii=False) for each in (command, words))
        table = f"[mcp_servers.{_NAME}]\ncommand = {value}\nargs = {values}"
        yield Block(home / "config.toml", table)


def _gemini_cli(wanted: Wanted, project: Path | None) -> Iterable[Piece]:
    names, milliseconds = "SessionStart BeforeAgent AfterAgent SessionEnd", _SECONDS * 1000
    # Without a name it shows the whole command beside the line for the person.
    events = _events("gemini-cli", wanted, names, timeout=milliseconds, name=_NAME)
    words: dict[str, Json] = {"matcher": "run_shell_command", "name": _NAME}
    events |= _events("gemini-cli", wanted, "AfterTool", timeout=milliseconds, **words)
    home = _folder(project, ".gemini")
    yield from _settings_and_command(home, wanted, events)
    text = f"description = {json.dumps(_ABOUT)}\nprompt = {json.dumps(f'{client.SLASH_COMMAND} {{{{args}}}}')}\n"
    yield OwnFile(home / f"commands/{_NAME}.toml", text)


def _qwen_code(wanted: Wanted, project: Path | None) -> Iterable[Piece]:
    """Qwen Code was made of Gemini CLI, and keeps its settings alike."""
    events = _events("qwen-code", wanted, "SessionStart UserPromptSubmit Stop SessionEnd")
    events |= _events("qwen-code", wanted, "PostToolUseFailure", matcher="run_shell_command")
    yield from _settings_and_command(_folder(project, ".qwen"), wanted, events)


def _settings_and_command(home: Path, wanted: Wanted, events: dict[str, Json]) -> Iterable[Piece]:
    yield from _elements(home / "settings.json", events)
    if wanted.mcp:
        yield Member(home / "settings.json", ("mcpServers", _NAME), _server_entry(wanted), SERVER)
        command = f"description = {json.dumps(_ABOUT)}\nprompt = {json.dumps(_SHOW.format('{{args}}'))}\n"
        yield OwnFile(home / "commands/lessons.toml", command, _OURS)


def _opencode(wanted: Wanted, project: Path | None) -> Iterable[Piece]:
    """A plug-in that calls the same hook: opencode itself has none."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode"
    folder = home if project is None else project / ".opencode"
    plugin = (Path(__file__).parent / "opencode.js").read_text(encoding="utf-8")
    words = json.dumps(_hook("opencode", wanted))
    plugin = plugin.replace("[] /* the hook's command */", words)
    plugin = plugin.replace('"" /* its program is gone */', json.dumps(_GONE.format("opencode")))
    plugin = plugin.replace("400 /* milliseconds */", str(round(wanted.within * 1000) + 300))  # and to start Python
    yield OwnFile(folder / "plugin/lessonbank.js", plugin)
    if wanted.mcp:
        place = home if project is None else project
        files = place / "opencode.json", place / "opencode.jsonc"
        command, words_of_server = _server(wanted)
        entry: Json = {"type": "local", "enabled": True, "command": cast("list[Json]", [command, *words_of_server])}
        for file in files:  # it reads both
            is_chosen = file == files[files[1].exists()]
            yield Member(file, ("mcp", _NAME), entry if is_chosen else None, SERVER)
        yield OwnFile(folder / "command/lessons.md", _command("$ARGUMENTS"), _OURS)


def _cline(wanted: Wanted, project: Path | None) -> Iterable[Piece]:
    """The MCP server only: what a hook of Cline answers at the start of a task reaches no request."""
    if project is not None:
        raise UsageError("Cline has no settings for one project: leave --project out")
    wanted = replace(wanted, scope=wanted.scope or COMMON)  # its servers do not begin in the folder of a session
    file = Path.home() / ".cline/data/settings/cline_mcp_settings.json"
    entry: dict[str, Json] = {**_server_entry(wanted), "timeout": 60}  # else Cline leaves a server out after 3 s
    yield Member(file, ("mcpServers", _NAME), entry, SERVER)


HOSTS: Final = {
    host.name: host
    for host in (
        Host("claude-code", "Claude Code", _claude_code, "start claude, and trust the plug-in if it asks"),
        Host("codex", "Codex", _codex, "start codex, and trust the hooks with /hooks: without it none of them runs"),
        Host("gemini-cli", "Gemini CLI", _gemini_cli, "start gemini, and trust the folder if it asks"),
        Host("opencode", "opencode", _opencode, "start opencode"),
        Host("qwen-code", "Qwen Code", _qwen_code, "start qwen"),
        Host("cline", "Cline", _cline, "start cline; it has the MCP server only"),
    )
}
"""Every coding agent, by its name on the command line."""
