"""Plays the scripted sessions that somebody wrote blind, through the hooks as a coding agent calls them.

    python -m lessonbank_bench.measure.blind_sessions set1 [--host codex] [--holdout 0] [--list]

Each hook is a process, and the resident process behind them is the real one. The session files are as the agents write
them. A recurring problem is known where an earlier session of the repository met and solved it. Its lesson is there
where what is shown with the prompt, or told after a failure, comes from one of these sessions. `--list` prints it.
It waits where the cure that such a session taught is of a kind that only a person lets out, and the person is told
in this session that something waits: such a lesson is not there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lessonbank.bank.recall_again import cures_of
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Recall
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.guard.hazards import is_hazard
from lessonbank.hosts import client, hosts
from lessonbank.hosts.repositories import Repositories
from lessonbank.hosts.sessions import open_bank
from lessonbank.hosts.week import exposure

from .blind_sets import cases
from .hooks import own_folder
from .host_files import Turn, claude_lines, codex_lines, gemini_lines, gemini_output

_FILES = {"claude-code": claude_lines, "codex": codex_lines, "gemini-cli": gemini_lines}
_PATIENCE = 120.0
"""Seconds for the resident process to begin, and to learn from a session."""


@dataclass(slots=True)
class Played:
    """What a session was given."""

    texts: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    """What the person saw."""
    recalls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The ids of its recalls, with their scopes."""


class Player:
    """One agent with its hooks, in a folder of its own."""

    def __init__(self, host: str, folder: Path, holdout: float | None) -> None:
        self._host, self._folder = host, folder
        self._wanted = hosts.Wanted(str(folder / "bank.db"), holdout=holdout)
        self._spool = Path(client.spool_folder(self._wanted.key))
        self._files = dict[str, list[Turn]]()

    def play(self, case: Mapping[str, Any], session: str, *, resumed: bool) -> Played:
        """One session, from its start until it was learned from."""
        root, played = self._root(case["repository"]), Played()
        self._file = self._folder / f"{session}.jsonl"
        about = {"session_id": session, "cwd": str(root), "transcript_path": str(self._file)}
        done = self._files.setdefault(session, [])
        self._call({"hook_event_name": "SessionStart", "source": "resume" if resumed else "startup", **about}, played)
        for turn in _with_own_words(case["turns"]):
            done.append(turn)
            self._write(session)
            for event in self._events(turn, f"{session}-{len(done) - 1}"):
                self._call({**event, **about}, played)
        self._note_recalls(session, played)
        self._call({"hook_event_name": "SessionEnd", "reason": "other", **about}, played)
        self._await_learning(session)
        return played

    def _root(self, repository: Mapping[str, str]) -> Path:
        root = self._folder / "src" / repository["name"]
        (root / ".git").mkdir(parents=True, exist_ok=True)
        (root / ".git/config").write_text(f'[remote "origin"]\n\turl = {repository["origin"]}\n')
        return root

    def _write(self, session: str) -> None:
        self._file.write_text("".join(_FILES[self._host](session, self._files[session])), encoding="utf-8")

    def _events(self, turn: Turn, id: str) -> Iterator[dict[str, Any]]:
        if turn["role"] == "person" and not turn.get("own"):
            yield {"hook_event_name": "BeforeAgent" if self._host == "gemini-cli" else "UserPromptSubmit"} | {
                "prompt": turn["text"]
            }
        elif turn["role"] == "agent" and turn.get("own") == "/compact" and self._host == "claude-code":
            yield {"hook_event_name": "SessionStart", "source": "compact"}
        elif turn["role"] == "tool" and turn["tool"] == "bash" and turn["exit_code"] is not None:
            yield from self._after_tool(turn, id)

    def _after_tool(self, turn: Turn, id: str) -> Iterator[dict[str, Any]]:
        name = "run_shell_command" if self._host == "gemini-cli" else "Bash"
        event: dict[str, Any] = {"tool_name": name, "tool_input": {"command": turn["command"]}, "tool_use_id": id}
        if self._host == "codex":
            yield {"hook_event_name": "PostToolUse", "tool_response": turn["output"], **event}
        elif self._host == "gemini-cli":
            yield {"hook_event_name": "AfterTool", "tool_response": {"llmContent": gemini_output(turn)}, **event}
        elif turn["exit_code"]:
            said = f"Exit code {turn['exit_code']}\n{turn['output']}"
            yield {"hook_event_name": "PostToolUseFailure", "error": said, "is_interrupt": False, **event}

    def _call(self, event: dict[str, Any], played: Played) -> None:
        options = {"key": self._wanted.key, "own": "true", **self._wanted.options, "within": "20"}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        command = [sys.executable, "-I", "-S", client.__file__, self._host, *words]
        done = subprocess.run(command, input=json.dumps(event).encode(), capture_output=True, check=True)
        told = json.loads(done.stdout or b"{}")
        if text := told.get("hookSpecificOutput", {}).get("additionalContext", ""):
            played.texts.append(text)
        if line := told.get("systemMessage", ""):
            played.lines.append(line)

    def _note_recalls(self, session: str, played: Played) -> None:
        for name in ("recall", "cures"):
            path = self._spool / f"{session}.{name}"
            told = json.loads(path.read_bytes()) if path.exists() else {}
            if name == "recall":
                recalls = [(told.get("id"), str(told.get("scope", ""))), (told.get("corrections"), "@cures")]
            else:
                recalls = [(id, "@cures") for id in told.values()]
            played.recalls += [(id, scope) for id, scope in recalls if id]  # where nothing was found there is none

    def _await_learning(self, session: str) -> None:
        until = time.monotonic() + _PATIENCE
        while (self._spool / f"{session}.json").exists() and time.monotonic() < until:
            time.sleep(0.05)

    def begin(self) -> None:
        """Start the resident process, and wait until it answers."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            self._call({"hook_event_name": "SessionStart", "source": "startup", "session_id": "begin"}, Played())
            try:
                client.ask(self._wanted.key, {"do": client.WAKE})
            except OSError:
                time.sleep(0.2)
            else:
                return

    def stop(self) -> None:
        """End the resident process."""
        client.ask(self._wanted.key, {"do": client.STOP})

    def given(self, case: Mapping[str, Any], played: Played) -> list[tuple[Recall, set[str]]]:
        """The session's recalls, each with the sessions that what it found comes from."""
        found = list[tuple[Recall, set[str]]]()
        with open_bank(self._wanted.options) as bank:
            scopes = {scope for _, scope in played.recalls if scope != "@cures"}
            own = next(iter(scopes), Repositories().look_up(str(self._root(case["repository"]))))
            for id, scope in played.recalls:
                here = bank.scoped(cures_of(own) if scope == "@cures" else scope)
                recall = here.recalls.get(id)
                runs = {run for lesson in recall.lessons for run in lesson.provenance.trajectory_ids}
                found.append((recall, _sessions_of(here, runs)))
        return found

    def waiting(self, case: Mapping[str, Any], played: Played) -> set[str]:
        """The sessions whose cures wait for a person for what they do, where the person is told that some wait."""
        with open_bank(self._wanted.options) as bank:
            here = bank.scoped(cures_of(Repositories().look_up(str(self._root(case["repository"])))))
            if not any("wait" in line and f"--scope {here.scope}" in line for line in played.lines):
                return set()
            lessons = [lesson for lesson in here.lessons.list() if is_hazard(lesson.content)]
            held = [lesson for lesson in lessons if exposure(here, lesson, RetrieveOptions(own=True)) == "waits"]
            return _sessions_of(here, {run for lesson in held for run in lesson.provenance.trajectory_ids})


def _sessions_of(bank: ReasoningBank, runs: Iterable[str]) -> set[str]:
    return {str(bank.runs.get(run).trajectory.metadata.get("run_id", "")) for run in runs}


def _with_own_words(turns: list[Turn]) -> Iterator[Turn]:
    """The turns, of which those are marked that the program carries out itself, with what it says to them."""
    command = ""
    for turn in turns:
        if turn["role"] == "person":
            command = turn["text"] if turn["text"].startswith("/") else ""
        yield {**turn, "own": command} if command and turn["role"] != "tool" else turn


def main() -> None:
    """Print what each session was given, and what all of it comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=("set1", "set2", "set3"))
    parser.add_argument("--host", choices=tuple(_FILES), default="claude-code")
    parser.add_argument("--holdout", type=float, default=None)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    with own_folder() as folder:
        player = Player(asked.host, folder, asked.holdout)
        player.begin()
        try:
            _print(_play(player, cases(asked.set)), player, listing=asked.list)
        finally:
            player.stop()


def _play(player: Player, sessions: list[dict[str, Any]]) -> list[tuple[dict[str, Any], Played]]:
    names = dict[str, str]()
    played = list[tuple[dict[str, Any], Played]]()
    for case in sessions:
        session = names.get(case["id"], case["id"])
        if case["end"].startswith("continued:"):
            names[case["end"].partition(":")[2]] = session
        played.append((case, player.play(case, session, resumed=session != case["id"])))
    return played


def _print(played: list[tuple[dict[str, Any], Played]], player: Player, *, listing: bool) -> None:
    solved: dict[tuple[str, str], set[str]] = {}
    of_repository: dict[str, str] = {}
    counts, foreign, silent = Counter[str](), 0, 0
    for case, told in played:
        repository = case["repository"]["name"]
        of_repository[case["id"]] = repository
        given = player.given(case, told)
        sources = {one for recall, names in given if recall.text for one in names}
        foreign += sum(of_repository.get(one, repository) != repository for one in sources)
        silent += bool(told.texts) and not told.lines
        held = {one for recall, names in given if not recall.text for one in names}
        waiting = player.waiting(case, told) if case["should_know"] else set[str]()
        for kind in case["should_know"]:
            earlier = solved.get((repository, kind), set())
            states = {"there": sources, "kept back": held, "waits": waiting}
            state = next((name for name, those in states.items() if earlier & those), "MISSING")
            counts.update((state, "known"))
            print(f"{case['id']} {kind}: {state}")
        for kind in case["kinds"]:
            solved.setdefault((repository, kind), set()).add(case["id"])
        for text in [*told.lines, *told.texts] if listing else ():
            print("    " + text.replace("\n", "\n    "))
    print(f"known kinds: {counts['known']}; their lesson is there: {counts['there']}; kept back: {counts['kept back']}")
    print(f"their lesson waits for the person, who is told so: {counts['waits']}")
    print(f"lessons of another repository: {foreign}; sessions with lessons and no line for the person: {silent}")


if __name__ == "__main__":
    main()
