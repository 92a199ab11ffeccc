"""`demo`: watch an agent learn in a small closed world, offline, and see what that proves and what not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from lessonbank._base.plural import plural
from lessonbank.guard import clean

from . import _options as options
from ._output import progress_console, show_json

if TYPE_CHECKING:
    from lessonbank.demo import Episode, KeptBank
    from lessonbank.demo.story import Story

PACE = 0.05
"""Seconds a task is held on a terminal, so that the curves can be watched."""
SCRIPTED = """The agent is a script of fixed skill (version {version}), not a language model. It sees the goal, the last
message, the controls and the memory text, nothing else; the bank sees its runs and the verdict, nothing else.
This shows   that the loop works from end to end (retrieve, inject, act, learn), that retrieval brings the right
             lessons to the right task, and that lessons from failed runs carry over to other tasks.
It shows not how well a language model judges, distils or acts. The world is synthetic and its failures tell much.
             The same world with a model of yours: lessonbank bench run --preset desk (lessonbank-bench)"""
NEXT = (
    "The demo keeps no bank. To have one and read it in the browser: "
    "lessonbank learn RUNS --bank bank.db --scope NAME, then lessonbank review bank.db"
)


@dataclass(frozen=True)
class Asked:
    """What was asked for."""

    seed: int
    tasks: int
    limit: int
    worlds: int


def demo(
    seed: Annotated[int, typer.Option("--seed", help="Which world; 0 to 19 are those it was tuned on.")] = 100,
    tasks: Annotated[int, typer.Option("--tasks", min=1, max=2000, help="How many tasks, one after the other.")] = 80,
    limit: Annotated[int, typer.Option("--limit", "-k", min=1, help="Past experiences shown per task.")] = 3,
    worlds: Annotated[int, typer.Option("--worlds", min=0, max=200, help="More worlds for the interval.")] = 10,
    as_json: options.Json = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Plain text.")] = False,
) -> None:
    """Watch an agent learn: the same tasks without memory and with it, offline, in seconds.

    Both play the same stream in a closed world with hidden conventions; the second keeps a bank through the whole
    public loop. No key and no network are needed.
    """
    asked = Asked(seed, tasks, limit, worlds)
    console = Console(highlight=False, no_color=no_color or None)
    story = _watch(asked, console, quiet=as_json)
    across = _across(asked)
    if as_json:
        show_json(_as_dict(asked, story, across))
    else:
        _tell(asked, story, across, console)


def _pairs(asked: Asked) -> Iterator[tuple[Episode, Episode]]:
    """The two streams side by side, so that the curves grow together."""
    from lessonbank.demo import NoMemory, play

    without = play(NoMemory(), asked.seed, tasks=asked.tasks)
    yield from zip(without, play(_bank(asked, asked.seed), asked.seed, tasks=asked.tasks), strict=True)


def _bank(asked: Asked, seed: int) -> KeptBank:
    from lessonbank.demo import new_bank

    return new_bank(f"desk/{seed}", limit=asked.limit)


def _watch(asked: Asked, console: Console, *, quiet: bool) -> Story:
    from lessonbank.demo.story import Story

    story = Story()
    screen = console if not quiet else progress_console
    pairs = _pairs(asked)
    if screen.is_terminal and not quiet:
        with Live(console=screen, refresh_per_second=20) as live:
            for pair in pairs:
                _add(story, pair)
                live.update(_curves(story, asked, screen))
                time.sleep(PACE)
        return story
    for pair in pairs:
        _add(story, pair)
        if len(story.without) % max(1, asked.tasks // 8) == 0:
            screen.print(_progress(story, asked), soft_wrap=True)
    if not quiet:
        console.print(_curves(story, asked, console))
    return story


def _add(story: Story, pair: tuple[Episode, Episode]) -> None:
    story.without.append(pair[0])
    story.remembering.append(pair[1])


def _progress(story: Story, asked: Asked) -> Text:
    from lessonbank.demo.story import won

    done = len(story.without)
    counts = f"without memory {sum(won(story.without)):.0f} done, with memory {sum(won(story.remembering)):.0f} done"
    return Text(f"task {done:>3} of {asked.tasks}: {counts}")


def _curves(story: Story, asked: Asked, console: Console) -> Group:
    drawn = f"world {asked.seed}, {plural(asked.tasks, 'task')}, top of each chart = all"
    head = Text(f"Share done of the ten tasks up to each one ({drawn})")
    parts = [head]
    for title, episodes, style in (
        ("without memory", story.without, "yellow"),
        ("with memory", story.remembering, "green"),
    ):
        parts += [Text(), *_chart(title, episodes, style, console)]
    return Group(*parts)


def _chart(title: str, episodes: Sequence[Episode], style: str, console: Console) -> list[Text]:
    from lessonbank.demo import curves
    from lessonbank.demo.story import rate, won

    glyphs = curves.BLOCKS if "utf" in console.encoding.lower() else curves.ASCII
    rates = curves.thinned(
        curves.moving_rate([e.success for e in episodes]), columns=max(10, min(80, console.width - 4))
    )
    caption = f"{title}: {sum(won(episodes)):.0f} of {len(episodes)} done"
    if len(episodes) > 20:
        caption += f", {rate(episodes, last=20):.0%} of the last 20"
    return [Text(caption), *(Text(f"  {row}", style=style) for row in curves.bars(rates, glyphs=glyphs))]


def _across(asked: Asked) -> list[tuple[float, float]]:
    """Success rates without and with memory in further worlds."""
    from lessonbank.demo import NoMemory, play
    from lessonbank.demo.story import rate

    pairs: list[tuple[float, float]] = []
    for seed in range(asked.seed + 1, asked.seed + 1 + asked.worlds):
        without = rate(list(play(NoMemory(), seed, tasks=asked.tasks)))
        pairs.append((without, rate(list(play(_bank(asked, seed), seed, tasks=asked.tasks)))))
    return pairs


def _tell(asked: Asked, story: Story, across: list[tuple[float, float]], console: Console) -> None:
    def say(text: str, style: str = "") -> None:
        console.print(Text(clean(text), style=style), soft_wrap=True)

    say(f"\nLessons it wrote ({len(story.lessons)} in all; these are the first of their sort)", "bold")
    for lesson in story.picked_lessons():
        origin = "a failed run" if lesson.provenance.verdict == "failure" else "a run that succeeded"
        say(f"\n  {lesson.title}", "cyan")
        say(
            f"    {lesson.kind}, from {origin}; by: {lesson.provenance.method}; {', '.join(lesson.provenance.evidence)}"
        )
        say(f"    when: {lesson.description}\n    {lesson.content}")
    if example := story.example():
        say("\nOne block, exactly as the agent saw it", "bold")
        say(f"(for the task: {example.task.goal})\n")
        say(example.memory)
        pressed = "; ".join(f"{s.action.text} → {s.observations[0].text}" for s in example.run.steps[1:])
        say(f"\nWhat it did then: {pressed} The verifier said: {'success' if example.success else 'failure'}.")
    say("\nThe difference", "bold")
    for line in _numbers(asked, story, across):
        say(f"  {line}")
    for note in story.notes[:3]:
        say(f"  note: {note}", "yellow")
    say("\nWhat this shows, and what not", "bold")
    say(_meaning())
    say(f"\n{NEXT}")


def _numbers(asked: Asked, story: Story, across: list[tuple[float, float]]) -> Iterator[str]:
    from lessonbank.demo import paired_bootstrap
    from lessonbank.demo.story import rate

    rates = f"{rate(story.without):.3f} without, {rate(story.remembering):.3f} with memory"
    yield f"this world, {plural(len(story.without), 'task')}: {rates}"
    yield f"gain {story.difference} (95 %, bootstrap over this world's tasks, paired)"
    if across:
        without, with_memory = [a for a, _ in across], [b for _, b in across]
        mean = f"{sum(without) / len(across):.3f} without, {sum(with_memory) / len(across):.3f} with memory"
        yield f"{plural(len(across), 'further world')}: {mean}"
        yield f"gain {paired_bootstrap(with_memory, without)} (95 %, bootstrap over worlds, paired)"


def _meaning() -> str:
    from lessonbank.demo import READER_VERSION

    return SCRIPTED.format(version=READER_VERSION)


def _as_dict(asked: Asked, story: Story, across: list[tuple[float, float]]) -> dict[str, Any]:
    from lessonbank.demo import paired_bootstrap
    from lessonbank.demo.story import rate, won

    example = story.example()
    return {
        "asked": asdict(asked),
        "agent": "scripted",
        "without": {"rate": rate(story.without), "done": won(story.without)},
        "with": {"rate": rate(story.remembering), "done": won(story.remembering)},
        "difference": asdict(story.difference),
        "worlds": across,
        "difference_over_worlds": asdict(paired_bootstrap([b for _, b in across], [a for a, _ in across]))
        if across
        else None,
        "lessons": story.picked_lessons(),
        "injected": {"task": example.task.goal, "text": example.memory} if example else None,
        "notes": story.notes,
        "meaning": _meaning(),
    }
