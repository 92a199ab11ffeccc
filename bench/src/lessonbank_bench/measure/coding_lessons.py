"""Draws the lessons that rules find in recorded sessions of coding agents, for somebody to read blind.

    python -m lessonbank_bench.measure.coding_lessons FOLDER [--half 1] [--list] [--pack FILE] [--runs FILE]

`FOLDER` holds session files below a folder for each repository. A lesson counts once for a repository, and only if an
agent would be shown it as installed: what waits for a person does not, and what an output names itself has to be drawn
from two sessions. The halves are of repositories, split by a fixed seed: one to make rules with, one to read. Where a
file's reader gives no exit codes (mini-swe-agent, conversations), they are what the program printed of them.
`bench/blind/READ_LESSONS.md` says how a pack is read, and how cures are marked in the runs of `--runs`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lessonbank import importers
from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.errors import LessonbankError
from lessonbank.guard.hazards import is_hazard
from lessonbank.hosts.corrections import corrections_in
from lessonbank.importers import Imported, calls_of, failures_in

FORMS: Final = {
    *("claude_code", "codex", "gemini_cli", "openhands", "swe_agent", "mini_swe_agent", "copilot_cli"),
    *("messages", "qwen_code", "opencode"),
}
_RETURNED: Final = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
_COMMAND: Final = re.compile(r"```(?:bash|sh|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_PRINTED: Final = re.compile(r"\s*(?:Error: )?Exit code:? (\d{1,5})\b|(?s:.{0,200}?)Process exited with code (\d+)")
_MOST_STEPS: Final = 14
_NEAR: Final = 12
"""Steps after a failure in which its cure is looked for."""
_MOST_RUNS: Final = 60
_MOST_PRINTED: Final = 900
"""Characters of an output in a pack: its begin and its end."""


class Drawn(NamedTuple):
    """A lesson of a repository, with what it was drawn from."""

    kind: str
    repository: str
    title: str
    content: str

    @property
    def name(self) -> str:
        """The same for the same lesson whenever it is drawn, and in no order that says anything."""
        return hashlib.sha256("\n".join(self).encode()).hexdigest()[:8]


def sessions(folder: Path, half: int | None, /) -> Iterator[tuple[str, str, list[Imported]]]:
    """The sessions of a half, or all: the repository's folder, the form, and the runs of the file."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.parent != folder):
        repository = file.relative_to(folder).parts[0]
        try:
            form = importers.detect(file)
            is_one_task = form in ("mini_swe_agent", "swe_agent", "openhands")
            seed = f"29 {file.relative_to(folder).as_posix() if is_one_task else repository}"
            if form in FORMS and half in (None, int(hashlib.sha256(seed.encode()).hexdigest(), 16) % 2):
                yield repository, form, [one for one in importers.read(file) if isinstance(one, Imported)]
        except LessonbankError:
            continue


def with_codes(entry: Imported, form: str, /) -> tuple[Trajectory, dict[str, int]]:
    """The run with its calls of a shell, and their exit codes."""
    run = entry.trajectory
    if entry.exit_codes:
        return run, dict(entry.exit_codes)
    if form == "mini_swe_agent":
        steps = [_told(step, number) or (step, {}) for number, step in enumerate(run.steps)]
        codes = {name: code for _, each in steps for name, code in each.items()}
        return run.model_copy(update={"steps": tuple([step for step, _ in steps])}), codes
    pairs = [pair for step in run.steps for pair in calls_of(step)]
    return run, {call.id: _code(seen) for call, seen in pairs if call.id and seen}


def _told(step: Step, number: int) -> tuple[Step, dict[str, int]] | None:
    """A step whose command stands in a fence, as a call with its exit code."""
    printed = "\n".join(seen.text for seen in step.observations)
    found, code = _COMMAND.search(step.action.text), _RETURNED.search(printed)
    if found is None or code is None:
        return None
    call = ToolCall(id=f"c{number}", name="bash", arguments={"command": found[1].strip()})
    text = re.sub(r"</?output>", "", _RETURNED.sub("", printed)).strip()
    seen = Observation(text=text, call_id=call.id)
    return Step(action=Action(calls=(call,)), observations=(seen,)), {f"c{number}": int(code[1])}


def _code(seen: Observation) -> int:
    told = _PRINTED.match(seen.text)
    return int(told[1] or told[2]) if told else int(seen.is_error)


class Corpus:
    """What was drawn from sessions so far: each lesson with what it was drawn from, and how often."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.sources = dict[Drawn, list[str]]()
        self.failing = dict[str, tuple[str, Trajectory, dict[str, int]]]()
        self._waits = set[Drawn]()
        self._seen = set[int]()

    def add(self, repository: str, form: str, runs: Sequence[Imported], /) -> None:
        """Draw the lessons of a session, but of runs that were seen before."""
        pairs = [with_codes(entry, form) for entry in runs]
        pairs = [pair for pair in pairs if self._is_new(*pair)]
        drawn = dict[Drawn, str]()
        for run, codes in pairs:
            if any(codes.values()):
                self.failing[hashlib.sha256(f"31 {run.id}".encode()).hexdigest()[:8]] = repository, run, codes
            for failure in failures_in(run, codes):
                if failure.cure and not is_hazard((lesson := failure.lesson(run.id)).content):
                    one = Drawn("cure", repository, lesson.title, lesson.content)
                    drawn[one] = excerpt(run, failure.at, failure.through_at or failure.at)
                    self._waits |= {one} if lesson.rests_on else set()
        for rule in corrections_in([run for run, _ in pairs]):
            drawn[Drawn("correction", repository, "The person said here", f"“{rule}”")] = around(rule, pairs)
        for one, source in drawn.items():
            self.sources.setdefault(one, []).append(source)
        self.counts.update(sessions=bool(pairs), failing=any(any(codes.values()) for _, codes in pairs))
        self.counts.update(teaching=bool(drawn), drawn=len(drawn))

    def _is_new(self, run: Trajectory, codes: dict[str, int]) -> bool:
        is_new = (same := hash((run.task, tuple(codes.values())))) not in self._seen
        self._seen.add(same)
        return is_new and len(codes) > 1

    @property
    def shown(self) -> list[Drawn]:
        """What an agent would be shown, in an order that says nothing."""
        once = {one for one in self._waits if len(self.sources[one]) == 1}
        return sorted(self.sources.keys() - once, key=lambda one: one.name)


def excerpt(run: Trajectory, first: int, last: int, /) -> str:
    """Steps of a run, as somebody reads them who judges what was drawn from it."""
    steps = run.steps[first : last + 1]
    parts = [
        part
        for step in steps[: _MOST_STEPS - 4] + steps[max(_MOST_STEPS - 4, len(steps) - 4) :]
        for part in _parts(step)
    ]
    return "\n".join(parts)


def around_failures(run: Trajectory, codes: dict[str, int], /) -> str:
    """The numbered commands of a run near each one that failed, with exit codes, for somebody to mark cures in."""
    failed = {at for at, step in enumerate(run.steps) for call in step.action.calls if codes.get(call.id or "")}
    near = [at for at in range(len(run.steps)) if any(one - 2 <= at <= one + _NEAR for one in failed)]
    return "\n".join(f"[{at}] {part}" for at in near for part in _parts(run.steps[at], codes))


def around(rule: str, pairs: Sequence[tuple[Trajectory, dict[str, int]]], /) -> str:
    """What the agent did before a person said something, and after."""
    for run, _ in pairs:
        for at, step in enumerate(run.steps):
            if any(rule in seen.text for seen in step.observations if seen.source == "user"):
                return excerpt(run, max(at - 1, 0), at + 2)
    return ""


def _parts(step: Step, codes: dict[str, int] | None = None) -> Iterator[str]:
    if step.action.text and codes is None:
        yield f"AGENT: {_cut(step.action.text)}"
    for call in step.action.calls:
        given = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
        ended = f" (exit {code})" if codes and (code := codes.get(call.id or "")) is not None else ""
        yield f"CALL {call.name}{ended}: {_cut(given)}"
    for seen in step.observations:
        yield f"{'PERSON' if seen.source == 'user' else 'OUTPUT'}: {_cut(seen.text)}"


def _cut(text: str) -> str:
    half = _MOST_PRINTED // 2
    return text if len(text) <= _MOST_PRINTED else f"{text[:half]}\n[...]\n{text[-half:]}"


def main() -> None:
    """Print how many sessions there are, how many have a failed command, and what was drawn."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("folder", type=Path)
    command.add_argument("--half", type=int, choices=(0, 1), help="Of the repositories; without: all.")
    command.add_argument("--list", action="store_true", help="Also print the lessons.")
    command.add_argument("--pack", type=Path, help="Write the lessons there, each with what it was drawn from.")
    command.add_argument("--runs", type=Path, help=f"Write {_MOST_RUNS} runs with a failed command there, by chance.")
    asked, corpus = command.parse_args(), Corpus()
    for session in sessions(asked.folder, asked.half):
        corpus.add(*session)
    kinds = Counter(one.kind for one in corpus.shown)
    print(
        ", ".join(f"{name} {count}" for name, count in corpus.counts.items()),
        "- distinct lessons shown:",
        *kinds.items(),
    )
    for one in corpus.shown if asked.list else ():
        print(f"{one.name} {one.repository}: {one.title}: {one.content}")
    if asked.pack:
        rows = [
            {
                "id": one.name,
                **one._asdict(),
                "drawn_from": corpus.sources[one][0],
                "sessions": len(corpus.sources[one]),
            }
            for one in corpus.shown
        ]
        asked.pack.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    if asked.runs:
        chosen = sorted(corpus.failing.items())[:_MOST_RUNS]
        texts = [{"id": id, "repository": one[0], "run": around_failures(*one[1:])} for id, one in chosen]
        asked.runs.write_text(json.dumps(texts, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
