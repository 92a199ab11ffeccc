"""Is `lift` understood? Twelve banks whose truth is planted, and what somebody who gets its text alone should decide.

    python -m lessonbank_bench.measure.lift_reading FOLDER            # writes texts, prompt and key
    python -m lessonbank_bench.measure.lift_reading FOLDER --score A  # A: a file with a line of twelve letters a reader

The text is what `lessonbank lift` prints. Readers see no world, no name of it and no key.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lessonbank
from lessonbank import Lesson, ReasoningBank, Trajectory
from lessonbank.contracts.records import Provenance

CHOICES: Mapping[str, str] = {
    "A": "Keep memory and all of its lessons: it helps.",
    "B": "Show no memory at all for now.",
    "C": "Keep memory, but one lesson that the text names is out, or goes out.",
    "D": "Of the lessons that the text names together, keep one and take out the rest.",
    "E": "Keep the lessons that the text names together as one: all or none.",
    "F": "Decide nothing yet: let it run on.",
    "G": "First see to how outcomes are told or labelled: nothing can be decided before.",
    "H": "Keep the lesson that the text names for some tasks only.",
}
PROMPT = """You look after a support agent. It has a memory of lessons, and a tool measures whether they help.
Below is what the tool prints today; it is all that you know. Which one decision do you take? Answer with one letter.

{choices}

The text:

{text}
"""
SCOPE, BY = "shop/support", Provenance(method="human", writer="Ana")
Chance = Callable[[frozenset[str], str, int], float]
TITLES = ("Read the status line first", "Ask for the reason", "Send a confirmation", "Use the short form")


@dataclass(frozen=True)
class World:
    """A bank whose truth we know, and the one decision that it asks for."""

    name: str
    decision: str
    chance: Chance
    """Of success, by the titles that were shown, the task and its number."""
    titles: Sequence[str] = TITLES[:2]
    tasks: int = 800
    told: Callable[[bool, bool, random.Random], bool] = lambda shown, good, luck: True
    """Whether the outcome is told."""
    task: Callable[[int], str] = "Cancel order {} of the web shop".format
    also: Callable[[ReasoningBank, int], None] = lambda bank, number: None
    judge: bool = False
    metadata: Callable[[int], dict[str, str]] = field(default=lambda number: {})


def effects(base: float, **of: float) -> Chance:
    """Each lesson, by the first word of its title, adds to the base."""
    return lambda shown, task, number: base + sum(of.get(title.split()[0], 0.0) for title in shown)


def _turned(shown: frozenset[str], task: str, number: int) -> float:
    return 0.5 + (0.25 if number < 600 else -0.3) * (TITLES[0] in shown)


def _twins(shown: frozenset[str], task: str, number: int) -> float:
    return 0.4 + 0.3 * (not shown.isdisjoint(TITLES[:2]))


def _pair(shown: frozenset[str], task: str, number: int) -> float:
    return 0.4 + 0.35 * shown.issuperset(TITLES[:2])


def _by_template(shown: frozenset[str], task: str, number: int) -> float:
    return 0.5 + (TITLES[0] in shown) * (0.3 if number % 2 else -0.35)


def _silent(shown: bool, good: bool, luck: random.Random) -> bool:
    """Failures with memory are mostly not told."""
    return good or not shown or luck.random() < 0.3


def _template(number: int) -> dict[str, str]:
    return {"template": ("cancel in the shop", "cancel by phone")[number % 2]}


def _edit(bank: ReasoningBank, number: int) -> None:
    if number == 700:
        lesson = bank.lessons.list(text="status")[0]
        bank.lessons.edit(lesson.id, content="Read the status line twice before you cancel.", by="Ana")


WORLDS: tuple[World, ...] = (
    World("helps", "A", effects(0.4, Read=0.3), tasks=700),
    World("harms as a whole", "B", effects(0.6, Read=-0.2, Ask=-0.15), tasks=700),
    World("no effect", "F", effects(0.5), tasks=1000),
    World("just begun", "F", effects(0.5, Read=0.1), tasks=60),
    World("one harms among helpers", "C", effects(0.45, Read=0.25, Ask=0.15, Use=-0.3), titles=TITLES, tasks=1200),
    World("twins", "A", _twins, tasks=1200),
    World("help only together", "A", _pair, tasks=1200),
    World("helped, and harms now", "C", _turned, tasks=2400),
    World("outcomes missing with memory", "G", effects(0.5), tasks=700, told=_silent),
    World("a judge alone", "G", effects(0.4, Read=0.25), tasks=600, judge=True),
    World("two kinds of task", "F", _by_template, titles=TITLES[:1], tasks=1600, metadata=_template),
    World("edited of late", "F", effects(0.5, Ask=0.05), tasks=760, also=_edit),
)


async def _no_lessons(attempts: object) -> lessonbank.Extraction:
    return lessonbank.Extraction()


def text_of(world: World, seed: int, /) -> str:
    """What `lift` prints of a world after all of its tasks. Draws go by recall ids, so each call gives other ones."""
    luck = random.Random(f"{world.name} {seed}")
    held = [Lesson(title=title, content=f"{title} before you go on.", provenance=BY) for title in world.titles]
    with lessonbank.connect(
        ":memory:",
        scope=SCOPE,
        embedder="lexical",
        parts=lessonbank.Parts(extractor=_no_lessons, judge=_opinion if world.judge else None),
    ) as bank:
        bank.consolidate(lessonbank.Experience(scope=SCOPE, task=world.task(0), lessons=tuple(held)))
        for number in range(1, world.tasks + 1):
            world.also(bank, number)
            recall = bank.retrieve(world.task(number))
            shown = frozenset(lesson.title for lesson in recall.shown)
            good = luck.random() < world.chance(shown, recall.task, number)
            if not world.told(bool(shown), good, luck):
                continue
            answer = "done" if good else "not done"
            run = Trajectory(task=recall.task, answer=answer, metadata=dict(world.metadata(number)))
            bank.learn(run, recall=recall, reward=None if world.judge else float(good))
        return str(bank.lift())


async def _opinion(run: Trajectory, /) -> lessonbank.Verdict:
    outcome = "success" if run.answer == "done" else "failure"
    return lessonbank.Verdict(outcome=outcome, source="judge", confidence=0.8, model="a judge")


def write(folder: Path, *, seed: int) -> None:
    """A prompt for each world, in an order that says nothing, and the key."""
    folder.mkdir(parents=True, exist_ok=True)
    order = random.Random(seed).sample(WORLDS, len(WORLDS))
    choices = "\n".join(f"{letter}. {said}" for letter, said in CHOICES.items())
    for number, world in enumerate(order, 1):
        prompt = PROMPT.format(choices=choices, text=text_of(world, seed))
        (folder / f"{number:02}.txt").write_text(prompt, encoding="utf-8")
    key = {world.name: world.decision for world in order}
    (folder / "key.json").write_text(json.dumps(key, indent=1), encoding="utf-8")


def score(folder: Path, answers: Path) -> str:
    """How many decisions are right, and which worlds were misread."""
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    readers = [line.strip().upper() for line in answers.read_text(encoding="utf-8").splitlines() if line.strip()]
    if any(len(line) != len(key) for line in readers):
        raise ValueError(f"each line of {answers.name} has {len(key)} letters")
    right = {name: sum(line[n] == want for line in readers) for n, (name, want) in enumerate(key.items())}
    rows = [f"  {count} of {len(readers)}  {key[name]}  {name}" for name, count in right.items()]
    return "\n".join([f"{sum(right.values())} of {len(readers) * len(key)} decisions are right", *rows])


def main() -> None:
    """Write the texts, or score what readers answered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--score", type=Path)
    given = parser.parse_args()
    if given.score:
        print(score(given.folder, given.score))
    else:
        write(given.folder, seed=given.seed)


if __name__ == "__main__":
    main()
