"""What agents see of honest and of harmful lessons: how many honest ones are kept from them, how many harmful ones are
shown as if somebody had checked them.

    python -m lessonbank_bench.measure.gate [--set second] [--model NAME [--base-url URL] [--cassette FILE]]
        [--sample N [--seed S]] [--lessons-a-call 12] [--perfect] [--json]

The lessons are `tests/security/corpus/gate_honest.jsonl` and `gate_harmful.jsonl`. They are shuffled and learned three
a run through the public API, then looked for. `--set fresh` takes `gate_fresh_*.jsonl` and `--set second` takes
`gate_second_*.jsonl`, each by a writer who has seen neither gate nor corpus. Without a model every lesson is unchecked.
With `--model` the gate asks that model. It sees the lessons of both sets mixed, and no label.
With `--cassette` answers are kept and replayed; without `--model` they are only replayed. `--perfect` answers from the
labels: no model does better, and what is wrong then is what the gate did not ask about or did not heed.
`--sample` draws that many lessons of the held-out half, honest and harmful in the share that they have there.
`--lessons-a-call` above 3 puts more lessons into one question than the gate keeps of one run, which spares a reader
time: then gate and question are asked directly, and what they leave counts as shown, without a bank.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio

import lessonbank
from lessonbank import Evidence, Extraction, Learning, Lesson, Model, Parts, Run, Step, Trajectory, Verdict
from lessonbank.contracts.ports import LanguageModel
from lessonbank.errors import ModelError
from lessonbank.guard.gate import ONE_RUN, LessonGate
from lessonbank.guard.intake import IntakeFilter
from lessonbank.learning.harm_check import HarmCheck
from lessonbank.wiring import resolve_models
from lessonbank.wiring._models import bare_model
from lessonbank_bench.cassette import Recorded
from lessonbank_bench.measure.checkout import TESTS
from lessonbank_bench.statistics import wilson

CORPUS = TESTS / "security" / "corpus"
Reader: TypeAlias = "LanguageModel | Callable[[str], str]"
HALVES = ("tuning", "held-out")
SETS = {"gate": "", "fresh": "fresh_", "second": "second_"}
_TITLE = re.compile(r"^title: (.+)$", re.MULTILINE)
_PATIENCE = 600.0
"""Seconds for an answer: a reader may be a person."""
_TASK = "Do what the ticket of today asks for"
_RUN = Trajectory(task=_TASK, steps=(Step(action="look", observation="done"),))


@dataclass(frozen=True, slots=True)
class Case:
    """A lesson and what it is."""

    label: str
    language: str
    lesson: Lesson

    @property
    def half(self) -> str:
        """`tuning`, or `held-out`: by a hash of its words, so that nobody chooses."""
        told = f"{self.language}{self.lesson.title}{self.lesson.content}"
        return HALVES[hashlib.sha256(told.encode()).digest()[0] % 2]


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one lesson: whether an agent sees it, and is told that nobody checked it."""

    case: Case
    shown: bool
    marked: bool


@dataclass(frozen=True, slots=True)
class Share:
    """One line of the table."""

    name: str
    half: str
    count: int
    of: int

    @property
    def line(self) -> str:
        """The share in percent, with its 95 % interval (Wilson)."""
        if not self.of:
            return f"| {self.name} | {self.half} | - | |"
        low_high = wilson(self.count, self.of)
        share = f"{100 * self.count / self.of:.1f} % ({100 * low_high.low:.1f} to {100 * low_high.high:.1f})"
        return f"| {self.name} | {self.half} | {share} | {self.count} of {self.of} |"


def cases(which: str = "gate", /) -> list[Case]:
    """The honest and the harmful lessons of a set, in their order."""
    files = [CORPUS / f"gate_{SETS[which]}{label}.jsonl" for label in ("honest", "harmful")]
    return [case for file in files for case in _read(file)]


def _read(file: Path) -> Iterator[Case]:
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        lesson = Lesson(title=row["title"], description=row["when"], content=row["content"], kind=row["kind"])
        yield Case(row["label"], row["language"], lesson)


def sampled(every: Sequence[Case], count: int, /, *, seed: int = 0) -> list[Case]:
    """`count` lessons of the held-out half, drawn by chance, honest and harmful in the share that they have there."""
    held_out = [case for case in every if case.half == "held-out"]
    honest, harmful = ([case for case in held_out if case.label == label] for label in ("honest", "harmful"))
    if count > len(held_out):
        raise ValueError(f"the held-out half has {len(held_out)} lessons, not {count}")
    share = round(count * len(honest) / len(held_out))
    chance = random.Random(seed)
    return [*chance.sample(honest, share), *chance.sample(harmful, count - share)]


async def seen(
    every: Sequence[Case], /, *, model: Reader | None = None, seed: int = 0, a_call: int = ONE_RUN
) -> list[Seen]:
    """What an agent is shown of each lesson, and with which mark. A model is asked about `a_call` lessons at once."""
    mixed = random.Random(seed).sample(every, len(every))
    decided = _of_one_run if a_call <= ONE_RUN else _at_the_entrance
    found: list[Seen] = []
    for number in range(0, len(mixed), a_call):
        found += await decided(mixed[number : number + a_call], model)
    return found


async def _of_one_run(drawn: Sequence[Case], model: Reader | None) -> list[Seen]:
    async def extractor(_: Sequence[Run], /) -> Extraction:
        return Extraction(lessons=tuple(case.lesson for case in drawn))

    async with await lessonbank.connect_async(
        ":memory:",
        scope="bench/gate",
        model=Model({"extractor": model}, timeout=_PATIENCE) if model else None,
        embedder="lexical",
        evidence=Evidence(holdout=None),
        learning=Learning(topics="words", consolidation="append"),
        parts=Parts(extractor=extractor),
    ) as bank:
        learned = await bank.learn(_RUN, outcome="success")
        _raise_if_unanswered(learned.notes)
        recall = await bank.retrieve(_TASK)
    shown = {lesson.id: lesson for lesson in recall.shown}
    return [_seen(case, shown) for case in drawn]


async def _at_the_entrance(drawn: Sequence[Case], model: Reader | None) -> list[Seen]:
    """The same of any number of lessons: no bank keeps so many of one run, so its gate and its question are asked."""
    check = HarmCheck(bare_model(model, None, None)) if model else None
    entrance = IntakeFilter(admission=LessonGate(one_run=len(drawn)), check=check)
    run = Run(trajectory=_RUN, verdict=Verdict(outcome="success"))
    left = await entrance.lessons(Extraction(lessons=tuple(case.lesson for case in drawn)), [run], shown=())
    _raise_if_unanswered(left.notes)
    shown = {lesson.id: lesson for lesson in left.lessons if not lesson.hidden}
    return [_seen(case, shown) for case in drawn]


def _raise_if_unanswered(notes: Sequence[str]) -> None:
    """A model that failed says nothing of the gate. What it answered stays in the cassette."""
    if failed := next((note for note in notes if note.startswith("nobody checked")), None):
        raise ModelError(failed)


def _seen(case: Case, shown: Mapping[str, Lesson]) -> Seen:
    lesson = shown.get(case.lesson.id)
    return Seen(case, lesson is not None, lesson is not None and lesson.is_unchecked)


def perfect(every: Sequence[Case], /) -> Callable[[str], str]:
    """A reader that never errs."""
    labels = {case.lesson.title: "harmful" if case.label == "harmful" else "keep" for case in every}

    def answer(prompt: str) -> str:
        titles = _TITLE.findall(prompt)
        told = [{"lesson": n, "answer": labels[title]} for n, title in enumerate(titles, 1)]
        return json.dumps({"answers": told})

    return answer


def table(found: Sequence[Seen], /) -> list[Share]:
    """The shares that the gate is held to, for each half and for both."""
    told: list[Share] = []
    for half in (*HALVES, "both"):
        part = [one for one in found if half in ("both", one.case.half)]
        honest, harmful = ([one for one in part if one.case.label == label] for label in ("honest", "harmful"))
        told += [
            Share("honest lessons that no agent sees", half, sum(not one.shown for one in honest), len(honest)),
            Share("honest lessons shown as unchecked", half, sum(one.marked for one in honest), len(honest)),
            Share(
                "harmful lessons shown as if checked",
                half,
                sum(one.shown and not one.marked for one in harmful),
                len(harmful),
            ),
            Share("harmful lessons that no agent sees", half, sum(not one.shown for one in harmful), len(harmful)),
        ]
    return told


def _reader(options: argparse.Namespace) -> Reader | None:
    if options.perfect:
        return perfect(cases(options.set))
    asked = Model(options.model, base_url=options.base_url, api_key=options.api_key, timeout=_PATIENCE)
    model = resolve_models(asked).extractor if options.model else None
    return Recorded(model, cassette=options.cassette) if options.cassette else model


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", choices=SETS, default="gate")
    parser.add_argument("--model")
    parser.add_argument("--base-url")
    parser.add_argument("--api-key")
    parser.add_argument("--cassette", type=Path)
    parser.add_argument("--perfect", action="store_true")
    parser.add_argument("--sample", type=int, metavar="N", help="this many lessons of the held-out half")
    parser.add_argument("--seed", type=int, default=0, help="of the sample and of the order")
    parser.add_argument("--lessons-a-call", type=int, default=ONE_RUN, metavar="N")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    every = cases(options.set)
    if options.sample:
        every = sampled(every, options.sample, seed=options.seed)
    asked = partial(seen, every, model=_reader(options), seed=options.seed, a_call=options.lessons_a_call)
    shares = table(anyio.run(asked))
    if options.json:
        json.dump([asdict(share) for share in shares], sys.stdout, indent=2)
        print()
        return
    print("| outcome | half | share (95 % interval) | lessons |\n|---|---|---:|---|")
    print("\n".join(share.line for share in shares if share.of))


if __name__ == "__main__":
    main()
