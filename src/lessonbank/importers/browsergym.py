"""Reads BrowserGym and AgentLab result folders from their text: `summary_info.json` and `experiment.log`.

The pickles beside them are never opened: unpickling runs code that a stranger may have written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError

from ._files import Source
from ._reading import Entry, Format, Run, attempt, mapping, words

NAME = "browsergym"
LOG = "experiment.log"
SUMMARY = "summary_info.json"

_RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - \d+ - (\S+) - ([A-Z]+) - (.*)", re.DOTALL)
_SECTION = re.compile(
    r"# (Instructions|Goal|Chat Messages|Currently open tabs|Current page [A-Za-z ]+|Action Space"
    r"|History of past actions|Error message from last action|Next action)\s*"
)
_FIXED = ("Instructions", "Action Space")
_REPEATED = (*_FIXED, "Goal", "History of past actions", "Next action")


@dataclass(slots=True)
class _Record:
    logger: str
    level: str
    lines: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def _matches(value: Json, name: str) -> bool:
    return name == SUMMARY and "n_steps" in mapping(value)


def _records(source: Source) -> Iterator[_Record]:
    """The log's records; a record goes on until the next line that starts like one."""
    current: _Record | None = None
    for raw in source.read_all().decode("utf-8", "replace").split("\n"):
        match = _RECORD.match(raw)
        if match:
            if current:
                yield current
            current = _Record(match[1], match[2], [match[3]])
        elif current:
            current.lines.append(raw)
    if current:
        yield current


def _build(log: Source, folder: Path) -> Run:
    summary = mapping(log.beside(log.path.with_name(SUMMARY)).first())
    env = _environment(folder)
    crash = words(summary.get("err_msg"))
    messages, goal, failed = _messages(_records(log))
    return Run(
        messages=messages,
        source=f"browsergym/{env.split('.')[0]}",
        run_id=folder.name,
        task_id=env,
        task=goal or env,
        reward=None if crash else summary.get("cum_reward"),
        reason="BrowserGym cumulative reward",
        error=crash or (failed if not summary else None) or None,
    )


def _environment(folder: Path) -> str:
    """The environment out of `<time>_<agent>_on_<environment>_<seed>`."""
    env = folder.name.rpartition("_on_")[2]
    name, _, seed = env.rpartition("_")
    return name if seed.isdigit() and name else env


def _messages(records: Iterator[_Record]) -> tuple[list[Json], str, str]:
    """Messages, goal, and the last error of the loop. What every prompt repeats is kept once, as instructions."""
    messages: list[Json] = []
    goal = failed = ""
    for record in records:
        text = record.text
        if record.logger.endswith("experiments.loop") and text.startswith("action:"):
            messages.append({"role": "assistant", "content": text.removeprefix("action:").strip()})
        elif record.logger.endswith("experiments.loop") and record.level in ("ERROR", "CRITICAL"):
            failed = text
        elif record.level == "INFO" and text.startswith("# "):
            prompt = _sections(text)
            goal = goal or prompt.get("Goal", "")
            messages.extend(_prompt(prompt, first=not messages))
    if not messages:
        raise FormatError(f"{LOG} holds no prompts and no actions")
    return messages, goal, failed


def _sections(text: str) -> dict[str, str]:
    """Heading to body. A heading met again (a page can show anything) belongs to the section it stands in."""
    bodies: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines(keepends=True):
        match = _SECTION.fullmatch(line)
        if match and match[1].strip() not in bodies:
            current = bodies.setdefault(match[1].strip(), [])
        else:
            current.append(line)
    return {heading: "".join(lines).strip() for heading, lines in bodies.items()}


def _prompt(sections: dict[str, str], *, first: bool) -> list[Json]:
    seen = "\n\n".join(f"# {h}\n{body}" for h, body in sections.items() if h not in _REPEATED)
    if not first:
        return [{"role": "environment", "content": seen}]
    fixed = "\n\n".join(f"# {h}\n{sections[h]}" for h in _FIXED if h in sections)
    goal = f"# Goal\n{sections.get('Goal', '')}\n\n" if sections.get("Goal") else ""
    return [{"role": "system", "content": fixed}, {"role": "user", "content": goal + seen}]


def is_run(folder: Path, /) -> bool:
    """Whether a folder holds the result of one run."""
    return (folder / LOG).is_file() or (folder / SUMMARY).is_file()


def _read(source: Source) -> Iterator[Entry]:
    """One run. `source` may be the folder or either file in it."""
    folder = source.path if source.path.is_dir() else source.path.parent
    log = source.beside(folder / LOG)
    yield attempt(log, 1, NAME, lambda: _checked(log, folder.resolve()))


def _checked(log: Source, folder: Path) -> Run:
    if not log.path.is_file():
        raise FormatError(f"there is no {LOG} beside {SUMMARY}: what happened stands only there (pickles are not read)")
    try:
        return _build(log, folder)
    except OSError as error:
        raise FormatError(f"the log cannot be read: {error.strerror or error}") from None


FORMAT = Format(NAME, "BrowserGym or AgentLab result folder: `summary_info.json` and `experiment.log`", _matches, _read)
