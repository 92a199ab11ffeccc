"""python -m lessonbank_bench.measure.policy.blind: twelve worlds that were written by one who knew the guides alone.

`blind.json` has each world as it was written, with the writer's question. `never`, `truth` and `look_at` put the
question into words and numbers. Only what a world's `extra` says in prose is code here. The bank reviews its evidence
some seventy times, so "ever" is over more looks than the seven that the writer asks for.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from lessonbank.evidence import AdaptiveHoldout

from .drive import Bank, final
from .table import share
from .world import SOURCE, Ask, Candidate, End, Told, World

WORLDS: dict[str, dict[str, Any]] = {
    one["name"]: one for one in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
}
_MOST = 6
"""Lessons that a search finds, of which three have a place."""
_REPOSITORIES, _MENDED, _LASTS = 30, 0.3, 400


@dataclass
class Written(World):
    """One of them."""

    tasks: int = 3000
    written: dict[str, Any] = field(default_factory=dict[str, Any])

    def start(self) -> None:
        """Number the lessons."""
        name, lessons = self.written["name"], self.written["lessons"]
        self.name: str = name
        self.lessons = [one for one in lessons for _ in range(one.get("count", 1))]
        self.mended = dict[int, int]()

    def ask(self) -> Ask:
        """A task of a kind, with the lessons that are found for it."""
        kinds = self.written.get("kinds", {"all": 1.0})
        (self.kind,) = self.luck.choices(list(kinds), list(kinds.values()))
        self.home = self.luck.randrange(_REPOSITORIES)
        found = [n for n, one in enumerate(self.lessons) if self.is_found(one)]
        self.luck.shuffle(found)
        return Ask(f"{self.kind} task {self.at}", tuple(Candidate(f"l{n}", 1.0, self.groups(n)) for n in found[:_MOST]))

    def is_found(self, lesson: Mapping[str, Any]) -> bool:
        """By chance, kind and time."""
        chance = lesson["shown_for"]
        chance = chance[self.kind] if isinstance(chance, dict) else chance
        return self.luck.random() < chance and self.at >= lesson.get("from", 0)

    def groups(self, lesson: int) -> tuple[str, ...]:
        """Idle lessons belong to topics of three."""
        many = self.lessons[lesson].get("count", 1) > 1
        return (SOURCE, f"topic/{(lesson - 2) // 3 + 2}" if many else f"topic/{lesson}")

    def end(self, shown: Sequence[str]) -> End:
        """What becomes of the task."""
        bare = self.of_now(self.written["base_rate"])
        adds = sum(self.of_now(self.lessons[int(id[1:])]["effect_points"]) for id in shown) / 100
        if self.name == "twins" and {"l0", "l1"} & set(shown):
            adds += 0.22
        if self.name == "carry-over":
            adds = self.stays(shown)
        chance = min(max(bare + adds, self.low), self.high)
        value = self.luck.random() < chance
        return End(chance, bare, tuple(self.tells(value=value, shown=bool(shown))))

    def stays(self, shown: Sequence[str]) -> float:
        """What memory did in a repository helps the next tasks there, too."""
        is_mended = self.at - self.mended.get(self.home, -_LASTS - 1) <= _LASTS
        if shown and not is_mended and self.luck.random() < _MENDED:
            self.mended[self.home] = self.at
        return 0.25 if shown or is_mended else 0.0

    def tells(self, *, value: bool, shown: bool) -> Iterator[Told]:
        """Whether, what and when somebody tells."""
        lost = self.by_end(self.written["missing"], value=value, shown=shown)
        late = self.by_end(self.written["late"], value=value, shown=shown)
        after = self.luck.uniform(*late) if isinstance(late, list) else float(late)
        if self.luck.random() < float(lost):
            return
        kindly = self.name == "friendly-teller" and not value and self.luck.random() < (0.2 if shown else 0.02)
        yield Told(self.at, float(value or kindly), after=float(int(after)))

    def by_end(self, told: Any, *, value: bool, shown: bool) -> Any:
        """One number for all, or by kind, by outcome, by memory."""
        for key in (self.kind, "success" if value else "failure", "with" if shown else "without"):
            told = told.get(key, told) if isinstance(told, dict) else told
        return told

    def of_now(self, told: Any) -> float:
        """A number, by kind, or by time with straight lines between."""
        told = told.get(self.kind, told.get("all")) if isinstance(told, dict) else told
        if not isinstance(told, list):
            return float(told)
        place = bisect_right([at for at, _ in told], self.at)
        if place in (0, len(told)):
            return float(told[min(place, len(told) - 1)][1])
        (before, low), (after, high) = told[place - 1 : place + 1]
        return float(low + (high - low) * (self.at - before) / (after - before))


def said(world: Written, words: Mapping[tuple[str, str], int], what: str) -> bool:
    """Whether it was ever said, such as "l0 helps", "idle harms", "idle likely"."""
    treatment, _, word = what.partition(" ")
    if treatment != "idle":
        return (treatment, word) in words
    idle = {id for n in range(len(world.lessons)) if n > 1 for id in (f"l{n}", world.groups(n)[1])}
    return any(one in idle and (known == word or known.startswith(f"{word} ")) for one, known in words)


def row(name: str, seeds: Sequence[int]) -> str:
    """What a number of banks show in one world."""
    written, count = WORLDS[name], len(seeds)
    worlds = [Written(seed, written=written) for seed in seeds]
    banks = [Bank(lambda seed: AdaptiveHoldout(seed=seed), str(world.seed)) for world in worlds]
    played = [bank.play(world) for bank, world in zip(banks, worlds, strict=True)]
    wrong = sum(any(said(w, p.words, what) for what in written["never"]) for w, p in zip(worlds, played, strict=True))
    parts = [f"said what never should be {share(wrong, count)}"] if written["never"] else []
    for what in (*written["never"], *written["look_at"]):
        often = sum(said(w, p.words, what) for w, p in zip(worlds, played, strict=True))
        parts += [f"{what} {share(often, count)}"] if often or what in written["look_at"] else []
    ends = [final(bank) for bank in banks]
    for treatment, truth in written["truth"].items():
        own = [end[treatment] for end in ends if treatment in end]
        covers = sum(low <= truth / 100 <= high for _, low, high in own)
        middle = median(100 * value for value, _, _ in own) if own else 0.0
        parts.append(f"{treatment} covers {truth:+} in {covers}/{len(own)}, median {middle:+.1f}")
    gone = [f"{id} retired {share(sum(id in p.retired for p in played), count)}" for id in ("l0", "l1")]
    return "; ".join([*parts, *(one for one in gone if " 0% [" not in one)])


def main() -> None:
    """Print the rows."""
    ask = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ask.add_argument("--banks", type=int, default=100, help="of each world")
    ask.add_argument("--seed", type=int, default=7000, help="of the first bank")
    ask.add_argument("--only", default="", help="worlds whose name begins so")
    told = ask.parse_args()
    for name in WORLDS:
        if name.startswith(told.only):
            print(f"{name}: {row(name, range(told.seed, told.seed + told.banks))}", flush=True)


if __name__ == "__main__":
    main()
