"""What does each piece of retrieval do for an agent: what is shown of the task's own kind, tokens, tasks done?

    python -m lessonbank_bench.measure.pieces [--world NAME]... [--seeds 20] [--tasks N] [--json] [--data FOLDER]

A stream of tasks is done with a bank that learns from each of them, once with the bank as it is by default and once
with each piece the other way. Nothing asks a language model: agents are scripted, and lessons are drawn by rule. So
`rewrite` and contradictions are not measured, and `fit` has a reader of a few lines that knows how tasks are named:
what it gains is the most that selecting can gain here.

A lesson belongs to the kind of a task (the same form; the same change in the same repository) or to its group (the
vendor, the organisation, the domain) where a run of it taught the lesson. The agents of `miniwob` and `recorded` take
nothing from memory, so there is no success. Intervals are a 95 % bootstrap over seeds, paired with the default.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, Final

import lessonbank
from lessonbank import Retrieval
from lessonbank.contracts.records import Found, Learned, Merge, Recall
from lessonbank.errors import Conflict, ModelError, UsageError
from lessonbank.search._wrapper import RetrieverWrapper
from lessonbank.text.bm25 import words
from lessonbank.text.rendering import estimate_tokens
from lessonbank_bench.arms import PATIENCE
from lessonbank_bench.environments.interface import Job
from lessonbank_bench.measure.checkout import SHARED
from lessonbank_bench.statistics import paired_bootstrap

from .worlds import World, worlds

TASKS: Final[Mapping[str, int]] = {"desk": 80, "repo-desk": 15, "miniwob": 20, "recorded": 60}
"""Tasks of a stream."""
BASE: Final = "as it is by default"
_LOOKS: Final = 3
_FLOOR: Final = 0.07
_DEEP: Final = 50
_LINE: Final = re.compile(r"\[(\d+)\] ([^\n]*)")
_CHECK: Final = re.compile(r'"check": "(\w+)"')
_ASKED: Final = re.compile(r"<<<task \w+>>>\n\S+ ([^\n]*)")
"""The task in a prompt, without its first word, which has a capital in any case."""
_NAME: Final = re.compile(r"[A-Z]\w+(?: [A-Z]\w+)*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A bank with one piece the other way."""

    retrieval: Retrieval = field(default_factory=Retrieval)
    learning: lessonbank.Learning = field(default_factory=lessonbank.Learning)
    profile: str = "default"
    rarity: bool = True
    """Whether a word counts by how rare it is in the scope."""
    looks: str = ""
    """Why the agent looks again where a step came to nothing; `error` is told cures alone. Empty: it does not."""
    notes: bool = False
    """Whether the agent puts what it did into the inbox after each run."""


PIECES: Final[Mapping[str, Piece]] = {
    BASE: Piece(),
    "no floor": Piece(Retrieval(floor=0)),
    "words weigh alike": Piece(rarity=False),
    "gap rule, 0.3": Piece(Retrieval(relative_floor=0.3)),
    "gap rule, 0.4": Piece(Retrieval(relative_floor=0.4)),
    "no additions": Piece(learning=lessonbank.Learning(additions=False)),
    "recall again, a cure alone": Piece(looks="error"),
    "recall again when stuck": Piece(looks="stuck"),
    "1 experience": Piece(Retrieval(limit=1)),
    "12 experiences": Piece(Retrieval(limit=12)),
    "12, fit=select": Piece(Retrieval(limit=12, fit="select")),
    "remember, nobody approves": Piece(notes=True),
    "the paper's profile": Piece(profile="paper"),
}


@dataclass(slots=True)
class Count:
    """What one stream came to."""

    tasks: int = 0
    done: int = 0
    shown: int = 0
    of_kind: int = 0
    of_group: int = 0
    tokens: int = 0
    model_tokens: int = 0
    looks: int = 0
    """Texts that a second look gave."""
    notes: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))

    def figures(self) -> dict[str, float]:
        """By task, or by lesson shown."""
        return {
            "kind": self.of_kind / max(self.shown, 1),
            "group": self.of_group / max(self.shown, 1),
            "lessons": self.shown / self.tasks,
            "tokens": self.tokens / self.tasks,
            "model tokens": self.model_tokens / self.tasks,
            "looks": self.looks / self.tasks,
            "success": self.done / self.tasks,
        }


class PlainWords(RetrieverWrapper):
    """The same words, each of one weight: the share of the task's words that an experience has."""

    @property
    def name(self) -> str:
        """For the receipt."""
        return f"plain({self.inner.name})"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """The best `limit`."""
        asked, found = set(words(task)), await self.inner(task, scope=scope, limit=_DEEP)
        scored = [
            match.model_copy(update={"score": len(asked & set(words(match.experience.task))) / max(len(asked), 1)})
            for match in found.matches
        ]
        best = sorted((one for one in scored if one.score >= _FLOOR), key=lambda one: -one.score)
        return found.model_copy(update={"matches": tuple(best[:limit])})


class Reader:
    """A model for `fit` that knows how tasks are named: what bears its longest name matters, else any."""

    def __init__(self, count: Count, /) -> None:
        self._count = count

    def __call__(self, prompt: str) -> str:
        """Keep the lessons of the task's own place, those that share most words with it first; all where none is."""
        asked = "".join(_ASKED.findall(prompt)[:1])
        names = sorted(set(_NAME.findall(asked)), key=len, reverse=True)
        lessons = {int(n): line for n, line in _LINE.findall(prompt.partition("<<<lessons")[2])}
        named = ([n for n, line in lessons.items() if name in line] for name in names)
        kept = next(filter(None, named), list(lessons))
        best = sorted(kept, key=lambda n: -len(set(words(asked)) & set(words(lessons[n]))))
        reply = json.dumps({"check": _CHECK.findall(prompt)[-1], "keep": best})
        self._count.model_tokens += estimate_tokens(prompt) + estimate_tokens(reply)
        return reply


def _judges_nothing(prompt: str) -> str:
    raise ModelError("the verifier says how each run ended")


@dataclass(slots=True)
class Looking:
    """What the bank says in the middle of a run, at most three times."""

    bank: lessonbank.ReasoningBank
    recall: Recall
    reason: str
    count: Count
    shown: Callable[[Recall], None]
    left: int = _LOOKS

    def __call__(self, observation: str, doing: str) -> str:
        """The text of a second look, or nothing."""
        if not self.left:
            return ""
        told = {"recall": self.recall, "reason": self.reason, "cured": self.reason == "error", "patience": PATIENCE}
        again = self.bank.recall_again(observation, doing=doing, **told)
        if again.text:
            self.left -= 1
            self.count.looks += 1
            self.shown(again)
        return again.text


def stream(world: World, piece: Piece, seed: int, tasks: int, /) -> Count:
    """One stream of tasks with one bank."""
    count, taught = Count(), defaultdict[str, set[str]](set)
    jobs = {job.id: job for job in world.tasks(seed, tasks)}
    shown = partial(_add, count, jobs=jobs, taught=taught)
    with _bank(piece, count, f"pieces/{seed}") as bank:
        for job in jobs.values():
            recall = bank.retrieve(job.goal, patience=PATIENCE)
            shown(recall, job=job)
            look = Looking(bank, recall, piece.looks, count, partial(shown, job=job))
            done = world.attempt(job, recall.text, look if piece.looks and world.acts else None)
            outcome = "success" if done.success else "failure"
            learned = bank.learn(done.run, recall=recall, outcome=outcome)
            _note_teachers(learned, job, taught)
            if piece.notes:
                with suppress(UsageError, Conflict):  # the inbox is full; a task that came before
                    bank.lessons.note(f"{job.goal[:200]} ended as {outcome}.", task=job.goal, run=done.run.id)
            count.tasks += 1
            count.done += bool(done.success)
    return count


def _bank(piece: Piece, count: Count, scope: str) -> lessonbank.ReasoningBank:
    fits, reader = piece.retrieval.fit != "none", Reader(count)
    bank = lessonbank.connect(
        ":memory:",
        scope=scope,
        embedder="lexical",
        profile=piece.profile,  # pyright: ignore[reportArgumentType]
        retrieval=piece.retrieval,
        learning=piece.learning,
        evidence=lessonbank.Evidence(holdout=None),
        safety=lessonbank.Safety(admission=None) if fits else lessonbank.Safety(),
        model=lessonbank.Model({"judge": _judges_nothing, "fit": reader}) if fits else None,
    )
    if not piece.rarity:
        parts = bank.aio.parts
        bank.aio.parts = replace(parts, retriever=PlainWords(parts.retriever))
    return bank


def _add(count: Count, recall: Recall, /, *, job: Job, jobs: Mapping[str, Job], taught: Mapping[str, set[str]]) -> None:
    count.tokens += estimate_tokens(recall.text)
    for note in recall.notes:
        count.notes[note.code] += 1
    for one in recall.candidates:
        if one.shown:
            teachers = [jobs[id] for id in taught.get(one.lesson_id, ())]
            count.shown += 1
            count.of_kind += any(other.family == job.family for other in teachers)
            count.of_group += any(other.group == job.group for other in teachers)


def _note_teachers(learned: Learned, job: Job, taught: Mapping[str, set[str]]) -> None:
    """Which runs taught which lesson; what two lessons became was taught by the runs of both."""
    for change in learned.changes:
        brought = change.brings
        if brought is None:
            continue
        merged = change.source_lesson_ids if isinstance(change, Merge) else ()
        before = {run for id in merged for run in taught[id]}
        for id in (*(lesson.id for lesson in brought.lessons), *brought.repeats):
            taught[id].update(before, {job.id})


# --- tables ----------------------------------------------------------------------------------------------------------


def measured(name: str, seed: int, tasks: int, data: Path, pieces: Sequence[str]) -> dict[str, Count]:
    """Every piece in one world's stream of a seed."""
    world = worlds(data)[name]()
    try:
        return {piece: stream(world, PIECES[piece], seed, tasks) for piece in pieces if _says(world, PIECES[piece])}
    finally:
        world.close()


def _says(world: World, piece: Piece) -> bool:
    """Nobody looks again where nobody reads."""
    return world.acts or not piece.looks


def rows(name: str, counts: Sequence[Mapping[str, Count]], *, acts: bool) -> list[dict[str, Any]]:
    """A line for each piece: means over seeds, and the differences from the default with their intervals."""
    told = list[dict[str, Any]]()
    for piece in counts[0]:
        figures = [one[piece].figures() for one in counts]
        base = [one[BASE].figures() for one in counts]
        line: dict[str, Any] = {"world": name, "piece": piece, "seeds": len(counts)}
        for key in figures[0]:
            if key == "success" and not acts:
                continue
            line[key] = round(mean(one[key] for one in figures), 3)
            if piece != BASE and key in ("kind", "group", "tokens", "success"):
                gap = paired_bootstrap([one[key] for one in figures], [one[key] for one in base])
                line[f"{key}, difference"] = [round(v, 3) for v in (gap.estimate, gap.low, gap.high)]
        unfit = sum(one[piece].notes.get("not_fitted", 0) for one in counts)
        told.append({**line, **({"not fitted": unfit} if unfit else {})})
    return told


def markdown(lines: Sequence[Mapping[str, Any]]) -> str:
    """The table of one world."""
    head = ("", "of its kind", "of its group", "lessons", "tokens", "of a model", "success", "success, difference")
    told = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for line in lines:
        success = f"{line['success']:.3f}" if "success" in line else ""
        cells = [line["piece"], _percent(line, "kind"), _percent(line, "group"), f"{line['lessons']:.1f}"]
        cells += [f"{line['tokens']:.0f}", f"{line['model tokens']:.0f}", success, _interval(line, "success")]
        told.append(f"| {' | '.join(cells)} |")
    return "\n".join(told)


def _percent(line: Mapping[str, Any], key: str) -> str:
    gap = line.get(f"{key}, difference")
    return f"{100 * line[key]:.0f} %" + ("" if gap is None else f" [{100 * gap[1]:+.1f}, {100 * gap[2]:+.1f}]")


def _interval(line: Mapping[str, Any], key: str) -> str:
    gap = line.get(f"{key}, difference")
    return "" if gap is None else f"{gap[0]:+.3f} [{gap[1]:+.3f}, {gap[2]:+.3f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or JSON with `--json`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--world", action="append", choices=sorted(TASKS), help="may be given again; all by default")
    parser.add_argument("--piece", action="append", choices=sorted(PIECES), help="beside the default; all by default")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=100, help="the first seed: the game was tuned on 0 to 19")
    parser.add_argument("--tasks", type=int, help=f"of a stream; {', '.join(f'{k}: {v}' for k, v in TASKS.items())}")
    parser.add_argument("--at-once", type=int, default=1, help="processes")
    parser.add_argument("--data", type=Path, default=SHARED, help="the folder of recorded runs")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    pieces = list(PIECES) if asked.piece is None else [one for one in PIECES if one == BASE or one in asked.piece]
    told = dict[str, list[dict[str, Any]]]()
    for name in asked.world or TASKS:
        work = partial(measured, name, tasks=asked.tasks or TASKS[name], data=asked.data, pieces=pieces)
        seeds = range(asked.first, asked.first + asked.seeds)
        if asked.at_once > 1:
            with ProcessPoolExecutor(asked.at_once) as pool:
                counts = list(pool.map(work, seeds))
        else:
            counts = [work(seed) for seed in seeds]
        told[name] = rows(name, counts, acts=name in ("desk", "repo-desk"))
        if not asked.json:
            print(f"## {name}: {asked.seeds} seeds of {asked.tasks or TASKS[name]} tasks\n\n{markdown(told[name])}\n")
    if asked.json:
        print(json.dumps(told, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
