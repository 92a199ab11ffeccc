"""What reads foreign text before or after the guard takes time in proportion to it: importers, rendering, replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast, get_args

import anyio
import pytest
from linear import PIECES, growth, too_slow

from lessonbank import importers
from lessonbank.contracts.records import Lesson, Run, Step, Trajectory, Verdict
from lessonbank.errors import LessonbankError
from lessonbank.guard.names import name_key
from lessonbank.guard.quote import quoted
from lessonbank.guard.wording import wording_of
from lessonbank.learning.extraction import ExtractiveExtractor
from lessonbank.learning.extraction.parsing import parse_lessons
from lessonbank.learning.judging.parsing import parse_verdict
from lessonbank.text import bounded_json, messages
from lessonbank.text.bm25 import words
from lessonbank.text.rendering import View, excerpt, render, render_instructions, render_steps

pytestmark = pytest.mark.full

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = (
    *("importers/claude_code.jsonl", "importers/claude_code_flat.jsonl", "importers/neutral.jsonl"),
    *("importers/otel.json", "importers/tau2.json", "importers/tau_bench.json"),
    *("traces/inspect.json", "traces/langfuse.json", "traces/langsmith.jsonl", "traces/openinference.json"),
)
SPOKEN = 20
"""A string of a fixture that is this long, or has a blank, is what somebody said."""


def a_run(text: str) -> Trajectory:
    parts = (text[: len(text) // 2], text[len(text) // 2 :])
    steps = tuple(Step(thought=part, action=part, observation=part) for part in parts)
    return Trajectory(task=f"x{text}", instructions=text, steps=steps, answer=text)


def drawn(text: str) -> object:
    run = Run(trajectory=a_run(text), verdict=Verdict(outcome="failure"))
    return anyio.run(ExtractiveExtractor(), [run])


def a_reply(parse: Callable[[str], object]) -> Callable[[str], object]:
    """A reply that cannot be read takes no longer than one that can."""

    def parsed(text: str) -> None:
        with suppress(LessonbankError):
            parse(text)

    return parsed


def from_messages(text: str) -> object:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": text}}
    said: list[dict[str, Any]] = [
        {"role": "system", "content": text},
        {"role": "user", "content": f"x{text}"},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
        {"role": "assistant", "content": text},
    ]
    return messages.to_messages(messages.trajectory_from(said))


CALLS: dict[str, Callable[[str], object]] = {
    "render": lambda text: render(a_run(text), budget=8_000),
    "render, two steps": lambda text: render(a_run(text), budget=8_000, steps=(1, 2)),
    "render_instructions": lambda text: render_instructions(a_run(text)),
    **{
        f"render_steps, {view}": lambda text, view=view: render_steps(a_run(text), budget=8_000, view=view)
        for view in get_args(View)
        if view != "full"
    },
    "excerpt": lambda text: excerpt(text, budget=500),
    "ExtractiveExtractor": drawn,
    "trajectory_from": from_messages,
    "parse_verdict": a_reply(lambda text: parse_verdict(f"Thoughts: {text}\nStatus: {text}")),
    "parse_lessons": a_reply(lambda text: parse_lessons(f'{{"lessons": [{{"title": "{text}"', limit=3)),
    "parse_lessons, Markdown": a_reply(
        lambda text: parse_lessons(f"# Memory Item 1\n## Title {text}\n## Content\n{text}", limit=3)
    ),
    "bounded_json": lambda text: bounded_json.parse(json.dumps({"a": text})),
    "words": words,
    "wording_of": lambda text: wording_of(Lesson(title=f"x{text}"[:200], content=f"x{text}")),
    "name_key": name_key,
    "quoted": quoted,
}


def spoken(value: Any, text: str) -> Any:
    """A copy of a file's value in which everything that was said is `text`."""
    if isinstance(value, dict):
        return {key: spoken(item, text) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [spoken(item, text) for item in cast("list[Any]", value)]
    is_said = isinstance(value, str) and len(value) >= SPOKEN and " " in value
    return text if is_said else value


def whole_values(source: Path) -> Iterator[Any]:
    """The values of a file; some fixtures have lines that are cut off."""
    text = source.read_text(encoding="utf-8")
    for line in text.split("\n") if source.suffix == ".jsonl" else [text]:
        with suppress(ValueError):
            yield json.loads(line)


def reading(name: str, folder: Path) -> Callable[[str], object]:
    """Import a fixture in which the text stands for all that was said, shared out among its places."""
    source = FIXTURES / name
    format, values = importers.detect(source), list(whole_values(source))
    places = json.dumps(spoken(values, "\u2603")).count('"\\u2603"')
    assert places, name

    def read(long: str) -> object:
        share = long[: len(long) // places]
        path = folder / source.name
        path.write_text("\n".join(json.dumps(spoken(value, share)) for value in values), encoding="utf-8")
        return [entry for entry in importers.read(path, format=format) if isinstance(entry, importers.Imported)]

    assert read("the usual words " * 50), name
    return read


@pytest.mark.release
@pytest.mark.parametrize("name", CALLS)
def test_four_times_the_text_is_read_in_five_times_the_time_at_most(name: str) -> None:
    assert too_slow({name: CALLS[name]}, pieces=PIECES[::3]) == {}


@pytest.mark.release
@pytest.mark.parametrize("name", FILES)
def test_a_file_four_times_as_long_is_imported_in_five_times_the_time_at_most(name: str, tmp_path: Path) -> None:
    assert too_slow({name: reading(name, tmp_path)}, pieces=PIECES[::6]) == {}


@pytest.mark.parametrize("name", ["render", "excerpt", "parse_lessons"])
def test_time_grows_as_what_is_read_does(name: str) -> None:
    assert growth(CALLS[name], "Alpha Beta ", size=10_000) <= 5.0


CHANGE = "--- a/pay.py\n+++ b/pay.py\n@@ -1 +1 @@\n-    return whole(amount)\n+    return cents(amount)\n"


@pytest.mark.parametrize("piece", ["git diff ", "patch", "open("])
def test_the_commands_of_a_run_that_changes_code_are_read_in_proportion_to_their_length(piece: str) -> None:
    def rendered(text: str) -> str:
        steps = (Step(action="git diff", observation=CHANGE), Step(action=f"cat {text} |x", observation="ok"))
        return render(Trajectory(task="Mend it", steps=steps), budget=8_000)

    assert growth(rendered, piece, size=10_000) <= 5.0
