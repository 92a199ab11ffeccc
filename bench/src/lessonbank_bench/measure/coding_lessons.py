"""Draws the lessons that rules find in recorded sessions of coding agents, for somebody to read blind.

    python -m lessonbank_bench.measure.coding_lessons FOLDER [--half 1] [--list]

`FOLDER` holds session files below a folder for each repository. They are split in two halves by a fixed seed: rules
are made with the first, and read blind with the second. Where a file's reader gives no exit codes (mini-swe-agent,
conversations), they are what the program printed of them. A lesson counts once for a repository.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lessonbank import importers
from lessonbank.contracts.records import Action, Lesson, Observation, Step, ToolCall, Trajectory
from lessonbank.errors import LessonbankError
from lessonbank.guard.hazards import is_hazard
from lessonbank.importers import Imported, calls_of, failures_in

FORMS: Final = {
    *("claude_code", "codex", "gemini_cli", "openhands", "swe_agent", "mini_swe_agent", "copilot_cli"),
    *("messages", "qwen_code", "opencode"),
}
_RETURNED: Final = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
_COMMAND: Final = re.compile(r"```(?:bash|sh|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_PRINTED: Final = re.compile(r"\s*(?:Error: )?Exit code:? (\d{1,5})\b|(?s:.{0,200}?)Process exited with code (\d+)")


def sessions(folder: Path, half: int, /) -> Iterator[tuple[str, str, Imported]]:
    """The runs of a half: the repository's folder, the form, and the run."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        repository = file.relative_to(folder).parts[0]
        try:
            form = importers.detect(file)
            is_one_task = form in ("mini_swe_agent", "swe_agent", "openhands")
            seed = f"29 {file.relative_to(folder).as_posix() if is_one_task else repository}"
            if form in FORMS and int(hashlib.sha256(seed.encode()).hexdigest(), 16) % 2 == half:
                yield from ((repository, form, one) for one in importers.read(file) if isinstance(one, Imported))
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


def main() -> None:
    """Print how many sessions there are, how many have a failed command, and what was drawn."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("folder", type=Path)
    command.add_argument("--half", type=int, choices=(0, 1), default=0)
    command.add_argument("--list", action="store_true", help="Also print the lessons.")
    asked = command.parse_args()
    counts, told, seen = Counter[str](), dict[tuple[str, str, str], Lesson](), set[int]()
    for repository, form, entry in sessions(asked.folder, asked.half):
        run, codes = with_codes(entry, form)
        if (same := hash((run.task, tuple(codes.values())))) in seen or len(codes) < 2:
            continue
        seen.add(same)
        drawn = [one.lesson(run.id) for one in failures_in(run, codes) if one.cure]
        shown = {(repository, one.title, one.content): one for one in drawn if not is_hazard(one.content)}
        counts.update(sessions=1, failing=any(codes.values()), teaching=bool(shown), drawn=len(shown))
        told |= shown
    print(", ".join(f"{name} {count}" for name, count in counts.items()), f"- distinct lessons {len(told)}")
    for repository, title, content in told if asked.list else ():
        print(f"{repository}: {title}: {content}")


if __name__ == "__main__":
    main()
