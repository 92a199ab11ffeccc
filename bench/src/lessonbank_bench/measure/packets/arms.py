"""What each setting would have shown before a failed run, and in the middle of it, out of banks of other tasks."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import lessonbank
from lessonbank import Experience, ReasoningBank, Retrieval
from lessonbank.bank.recall_again import cures_of
from lessonbank.contracts.records import Lesson, Recall, Step, Trajectory
from lessonbank.importers import calls_of, doing_of, failures_in, opens_with_error
from lessonbank_bench.measure.judging.labelled import Labelled
from lessonbank_bench.measure.pieces.__main__ import PlainWords

FILES: Final[Mapping[str, int]] = {
    "tau_bench_airline": 20,
    "swe_bench_mini_swe_agent": 20,
    "hotpotqa_react": 15,
    "browsergym_web": 5,
    "tau2_telecom": 4,
}
"""The sources, with the failed runs that are drawn of each, no two of one task."""
STARTS: Final[Mapping[str, Retrieval]] = {
    "default": Retrieval(),
    "words weigh alike": Retrieval(),
    "gap rule 0.4": Retrieval(relative_floor=0.4),
    "5 experiences": Retrieval(limit=5),
}
AGAIN: Final = ("error", "stuck")
ARMS: Final = (*STARTS, *(f"recall again, {reason}" for reason in AGAIN))
MIXED: Final = "mixed"
_FOLDS: Final = 3
_SCOPE: Final = "bench/packets"
_RETURNED: Final = re.compile(
    r"<returncode>\s*(-?\d+)\s*</returncode>\s*(?:<output>)?(.*?)(?:</output>\s*)?\Z", re.DOTALL
)
_SAID: Final = re.compile(
    r"(?:Observation \d+: )?Could not find \[|(?s:.*)\n# Error message from last action\n(?!None)"
)
_LEAST: Final = 20


@dataclass(frozen=True, slots=True)
class Sheet:
    """One failed run, and the lessons of each bank and arm before it or in it."""

    failed: Labelled
    shown: Mapping[str, Sequence[Lesson]]
    """By `BANK: ARM`; an arm that does not apply is left out."""


def folds(runs: Sequence[Labelled], seed: int, /) -> list[list[Labelled]]:
    """The runs in three parts, all of a task in one."""
    texts = sorted({one.run.task for one in runs})
    random.Random(seed).shuffle(texts)
    place = {text: number % _FOLDS for number, text in enumerate(texts)}
    return [[one for one in runs if place[one.run.task] == number] for number in range(_FOLDS)]


def draw(runs: Sequence[Labelled], most: int, seed: int, /) -> list[Labelled]:
    """At most so many failed runs, one of a task."""
    chance, failed = random.Random(seed), [one for one in runs if not one.success]
    firsts = {one.run.task: one for one in chance.sample(failed, len(failed))}
    return sorted(chance.sample(list(firsts.values()), min(most, len(firsts))), key=lambda one: one.run.id)


def sheets(runs: Mapping[str, Sequence[Labelled]], seed: int, folder: Path, /) -> Iterator[Sheet]:
    """Every drawn run with what is shown: the bank of its own source and one of all sources know none of its tasks."""
    parts = {source: folds(own, seed) for source, own in runs.items()}
    drawn = {source: {one.run.id for one in draw(own, FILES[source], seed)} for source, own in runs.items()}
    for fold in range(_FOLDS):
        taught = {s: [one for n in range(_FOLDS) if n != fold for one in parts[s][n]] for s in parts}
        mixed = [one for source in taught for one in taught[source]]
        random.Random(seed).shuffle(mixed)
        _teach(folder / f"{fold}-{MIXED}.db", mixed)
        for source, own in taught.items():
            path = folder / f"{fold}-{source}.db"
            _teach(path, own)
            asked = [one for one in parts[source][fold] if one.run.id in drawn[source]]
            banks = {"own": path, MIXED: folder / f"{fold}-{MIXED}.db"}
            told = {name: _shown(bank, asked) for name, bank in banks.items()}
            for one in asked:
                named = {f"{name}: {arm}": x for name in banks for arm, x in told[name][one.run.id].items()}
                yield Sheet(one, named)


@contextmanager
def _bank(path: Path, arm: str) -> Iterator[ReasoningBank]:
    told = {"scope": _SCOPE, "embedder": "lexical", "evidence": lessonbank.Evidence(holdout=None)}
    with lessonbank.connect(path, retrieval=STARTS[arm], **told) as bank:
        if arm == "words weigh alike":
            parts = bank.aio.parts
            bank.aio.parts = replace(parts, retriever=PlainWords(parts.retriever))
        yield bank


def _teach(path: Path, taught: Sequence[Labelled], /) -> None:
    """Lessons by rules, and the cures of commands that an adapter keeps."""
    with _bank(path, "default") as bank:
        for one in taught:
            bank.learn(one.run, outcome="success" if one.success else "failure")
            run, codes = with_codes(one.run)
            cured = (failure for failure in failures_in(run, codes) if failure.cure)
            for failure in cured:
                lesson = failure.lesson(run.id)
                bank.scoped(cures_of(_SCOPE)).consolidate(
                    Experience(scope=cures_of(_SCOPE), task=failure.key, lessons=(lesson,))
                )


def _shown(path: Path, asked: Sequence[Labelled], /) -> dict[str, dict[str, Sequence[Lesson]]]:
    found: dict[str, dict[str, Sequence[Lesson]]] = {one.run.id: {} for one in asked}
    for arm in STARTS:
        with _bank(path, arm) as bank:
            for one in asked:
                recall = bank.retrieve(one.run.task)
                found[one.run.id][arm] = recall.shown
                if arm == "default":
                    found[one.run.id].update(_again(bank, recall, one.run))
    return found


def _again(bank: ReasoningBank, first: Recall, run: Trajectory, /) -> dict[str, Sequence[Lesson]]:
    run, codes = with_codes(run)
    told: dict[str, Sequence[Lesson]] = {}
    for reason, at in (("error", first_error(run, codes)), ("stuck", first_repeat(run))):
        if at is not None:
            step = run.steps[at]
            last = step.observations[-1].text
            again = bank.recall_again(last, doing=doing_of(step), recall=first, reason=reason, step=at + 1)
            told[f"recall again, {reason}"] = again.shown
    return told


def with_codes(run: Trajectory, /) -> tuple[Trajectory, dict[str, int]]:
    """The run with what commands printed alone, and the exit code of each call; 1 where a tool says that it failed."""
    codes = dict[str, int]()
    for call, seen in (pair for step in run.steps for pair in calls_of(step)):
        if call.id and seen:
            found = _RETURNED.match(seen.text)
            codes[call.id] = int(found[1]) if found else int(seen.is_error or opens_with_error(seen.text))
    return run.model_copy(update={"steps": tuple(map(_printed, run.steps))}), codes


def _printed(step: Step) -> Step:
    seen = (one.model_copy(update={"text": _RETURNED.sub(r"\2", one.text)}) for one in step.observations)
    return step.model_copy(update={"observations": tuple(seen)})


def first_error(run: Trajectory, codes: Mapping[str, int], /) -> int | None:
    """The place of the first step that came back with an error."""
    for at, step in enumerate(run.steps):
        failed = any(codes.get(call.id or "") for call in step.action.calls)
        if failed or any(one.is_error or _SAID.match(one.text) for one in step.observations):
            return at
    return None


def first_repeat(run: Trajectory, /) -> int | None:
    """The place of the first step that brought what an earlier one had brought."""
    seen = set[str]()
    for at, step in enumerate(run.steps):
        text = re.sub(r"\d+", "", "\n".join(one.text for one in step.observations)).strip()
        if text in seen:
            return at
        seen |= {text} if len(text) >= _LEAST else set()
    return None
