"""Plays a world with the parts of a bank that decide: the policy, the columns and the review of the evidence.

This is the only file here that imports lessonbank. `bench/tests` compares it with a real bank, task by task.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

import numpy as np

from lessonbank.contracts.records import Candidate as Kept
from lessonbank.contracts.records import Recall, Settlement
from lessonbank.contracts.records.record import Record
from lessonbank.contracts.withholding import Withholding
from lessonbank.evidence import AdaptiveHoldout
from lessonbank.evidence.evidence_table import EvidenceTable
from lessonbank.evidence.review import Review, review
from lessonbank.evidence.stored_ledger import harmful_treatments, treatment_reviews

from .world import Ask, Candidate, Told, World

R = TypeVar("R", bound=Record)
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SHARE = 20, 0.05
"""The rhythm of a bank's reviews."""
LOOK = 40
"""Somebody asks for the lift after so many tasks, too."""
STRONG = ("helps", "harms")


@dataclass
class Played:
    """What came of one bank."""

    chance: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)
    """By task: whether a lesson was found, so that something could be shown."""
    shown: list[tuple[str, ...]] = field(default_factory=list)
    words: dict[tuple[str, str], int] = field(default_factory=dict)
    """By treatment and word: the task after which it was said first."""
    retired: dict[str, int] = field(default_factory=dict)

    def said(self, treatment: str, word: str) -> float:
        """The task after which it was said; infinite for never."""
        return self.words.get((treatment, word), np.inf)

    def empty(self, begin: int, end: int) -> float:
        """The share of tasks with a lesson that got none."""
        some = [not s for s, a in zip(self.shown[begin:end], self.asked[begin:end], strict=True) if a]
        return float(np.mean(some)) if some else 0.0

    def net(self, begin: int, end: int) -> float:
        """Points of success that memory adds."""
        return 100 * float(np.mean(self.chance[begin:end]) - np.mean(self.bare[begin:end]))

    @property
    def false_words(self) -> list[tuple[str, str]]:
        """Strong words; in a world without effects each is false."""
        return [key for key in self.words if key[1] in STRONG]


Policy: TypeAlias = Withholding
"""It may order, too, and follow the evidence."""


class Bank:
    """A policy, the columns and the reviews."""

    def __init__(self, make: Callable[[str], Policy], seed: str, /, *, acts: bool = True) -> None:
        self.policies, self.columns, self.acts = [make(seed), make(f"{seed}b")], EvidenceTable(), acts
        self.seed = seed
        self.out: set[str] = set()
        self.groups: dict[str, tuple[str, ...]] = {}
        self.since: dict[str, datetime] = {}
        self.reviewed = self.known = 0
        self.played = Played()
        self.waiting: list[tuple[float, int, Told]] = []
        self.settled: set[int] = set()

    def play(self, world: World) -> Played:
        """All tasks of a world."""
        while world.at < world.tasks:
            self.settle(world.at)
            ask = world.ask()
            shown = self.recall(ask, world.at)
            end = world.end(shown)
            self.played.chance.append(end.chance)
            self.played.bare.append(end.bare)
            self.played.shown.append(shown)
            for told in end.told:
                heapq.heappush(self.waiting, (world.at + told.after, len(self.played.chance), told))
            world.at += 1
            if world.looks and world.at % LOOK == 0:
                self.look(world.at)
        return self.played

    def recall(self, ask: Ask, number: int) -> tuple[str, ...]:
        """What is shown."""
        policy = self.policies[ask.other_process]
        found = [one for one in ask.candidates if one.id not in self.out]
        self.played.asked.append(bool(found))
        if not found:
            return ()
        id = f"{self.seed}-{number}"
        placed = ordered(policy, found, ask.places, id)
        self.groups.update({one.id: one.groups for one in placed})
        recall = receipt(policy, placed, id=id, task=ask.task, number=number)
        self.columns.receipt(recall)
        return tuple([one.lesson_id for one in recall.candidates if one.shown])

    def settle(self, now: int) -> None:
        """Take in what is told by now, and review the evidence when it is time."""
        while self.waiting and self.waiting[0][0] <= now:
            _, _, told = heapq.heappop(self.waiting)
            at = BEGAN + timedelta(minutes=now)
            self.columns.settle(settlement(told, self.seed, at))
            self.known += told.ask not in self.settled
            self.settled.add(told.ask)
            if self.known - self.reviewed >= max(FIRST, SHARE * self.reviewed):
                self.review(now)

    def review(self, now: int) -> None:
        """Look at the evidence, tell the policy, retire what harms."""
        self.reviewed = self.known
        episodes = self.columns.episodes(since=self.since)
        found = review(episodes)
        self.note(episodes, found, now)
        for policy in self.policies:
            if isinstance(policy, AdaptiveHoldout):
                policy.tell("s", treatment_reviews(episodes, found))
        if self.acts:
            self.retire({id for _, ids in harmful_treatments(episodes, found) for id in ids}, now)

    def retire(self, ids: Collection[str], now: int) -> None:
        """Take lessons back; the evidence of their groups starts again."""
        for id in sorted(set(ids) - self.out):
            self.out.add(id)
            self.played.retired[id] = now
            self.since |= dict.fromkeys(self.groups[id], BEGAN + timedelta(minutes=now))

    def look(self, now: int) -> None:
        """Somebody asks for the lift."""
        if self.known > self.reviewed:
            episodes = self.columns.episodes(since=self.since)
            self.note(episodes, review(episodes), now)

    def note(self, episodes: Any, found: Review, now: int) -> None:
        """What is said for the first time."""
        if found.acts:
            for treatment, word in zip(episodes.treatments, found.standing, strict=True):
                if word != "no evidence yet":
                    self.played.words.setdefault((treatment, word), now)


def final(bank: Bank, /) -> dict[str, tuple[float, float, float]]:
    """By treatment with an estimate: its effect at the end, and between what it lies however often one looks."""
    episodes = bank.columns.episodes(since=bank.since)
    found = review(episodes)
    known = zip(episodes.treatments, found.effects.estimate, found.low, found.high, strict=True)
    return {
        treatment: (float(value), float(low), float(high))
        for treatment, value, low, high in known
        if np.isfinite(value)
    }


def receipt(policy: Policy, placed: Sequence[Candidate], *, id: str, task: str, number: int) -> Recall:
    """What the bank keeps of a recall that a policy draws for; it is made `number` minutes after the beginning."""
    made = policy({one.id: one.groups for one in placed}, recall_id=id, task=task, scope="s")
    gone = {draw.group for draw in made.groups if draw.withheld}
    candidates = tuple(
        like(
            _CANDIDATE,
            lesson_id=one.id,
            experience_id="e",
            score=one.near,
            rank=rank,
            shown=not made.control and one.id not in made.withheld and gone.isdisjoint(one.groups),
            withheld=one.id in made.withheld,
            probability=made.probability[one.id],
            groups=one.groups,
        )
        for rank, one in enumerate(placed)
    )
    return like(
        _RECALL,
        id=id,
        scope="s",
        task=task,
        candidates=candidates,
        groups=made.groups,
        control=made.control,
        control_probability=made.control_probability,
        created_at=BEGAN + timedelta(minutes=number),
    )


def ordered(policy: Policy, found: list[Candidate], places: int, id: str) -> list[Candidate]:
    """Those that have a place: by the policy where it orders, else the nearest."""
    if not isinstance(policy, AdaptiveHoldout):
        return found[:places]
    chosen = policy.order([((one.id,), one.near) for one in found], places=places, recall_id=id, scope="s")
    return [found[n] for n in chosen]


def settlement(told: Told, seed: str, at: datetime) -> Settlement:
    """As the bank keeps it."""
    success = told.value >= 0.5 if told.runs > 1 else told.value >= 1.0
    return like(
        _SETTLEMENT,
        recall_id=f"{seed}-{told.ask}",
        scope="s",
        outcome="success" if success else "failure",
        reward=told.value,
        source=told.source,
        runs=told.runs,
        agent=told.model,
        template=told.template,
        steps=5,
        at=at,
    )


_CANDIDATE = Kept(lesson_id="", experience_id="e", score=1.0, rank=0, shown=True)
_RECALL = Recall(scope="s", task="t")
_SETTLEMENT = Settlement(recall_id="", scope="s", outcome="success", steps=5)


def like(pattern: R, /, **told: object) -> R:
    """The same record with other values. Nothing is checked: half of the time would go into that."""
    made = object.__new__(type(pattern))
    object.__setattr__(made, "__dict__", pattern.__dict__ | told)
    return made
