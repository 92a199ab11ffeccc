"""How much of what is shown belongs to the task's own kind, in banks of six domains, and what each rule leaves out."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from lessonbank import Retrieval
from lessonbank.contracts.ports import Embedder, Retriever, Store
from lessonbank.search import RelativeFloor
from lessonbank.wiring._retrieval import choose_retrieval
from lessonbank_bench.leave_out import LeaveOut, same_task

from .floors import filled, remembering, sources
from .labels import SCOPE, read, transfer

SEED: Final = 20250929
BANKS: Final = 20
"""Banks that are drawn of each size."""
SIZES: Final = (2, 7, 0)
"""Tasks of each domain in a bank; 0: all there are."""
ASKED: Final = 60
LIMIT: Final = 3
Search = Literal["lexical", "dense"]
_SHARES: Final = (0.3, 0.4, 0.5)
RULES: Final[Mapping[str, tuple[Search, Retrieval]]] = {
    "words": ("lexical", Retrieval()),
    **{f"words, relative {share}": ("lexical", Retrieval(relative_floor=share)) for share in _SHARES},
    "hashing, no words asked for": ("dense", Retrieval(floor=0.12)),
    "hashing": ("dense", Retrieval()),
    **{f"hashing, relative {share}": ("dense", Retrieval(relative_floor=share)) for share in _SHARES},
}


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a recorded run or of a world."""

    text: str
    domain: str
    kind: str
    """What its template, change, repository or operation is; empty where nobody labelled it."""


def tasks(folder: Path) -> list[Task]:
    """Every distinct task of six domains: web, flights, desk, repositories, questions, telephones."""
    every = {**sources(folder), "telephones": transfer("telephones", read(folder, "tau2_telecom"), lambda row: None)}
    kinds = {query.text: query.family for source in every.values() for query in source.queries}
    return [
        Task(text, name, f"{name} {kinds[text]}" if text in kinds else "")
        for name, source in every.items()
        for text in dict.fromkeys(source.documents.values())
    ]


async def measure(every: Sequence[Task]) -> list[dict[str, Any]]:
    """By size of bank and rule: what is shown, how much of it is of the task's kind or domain, and what is lost."""
    counts: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    draw, embedder = random.Random(SEED), remembering()
    of_domain: dict[str, list[Task]] = defaultdict(list)
    for task in every:
        of_domain[task.domain].append(task)
    for size in SIZES:
        for _ in range(BANKS if size else 1):
            bank = [one for own in of_domain.values() for one in draw.sample(own, min(size or len(own), len(own)))]
            asked = draw.sample(list(every), ASKED) if size else every
            store = (await filled([task.text for task in bank], embedder)).store
            for rule in RULES:
                counts[size, rule] += await _counted(rule, asked, bank, store, embedder)
            await store.close()
    return [_row(size, rule, counts) for size in SIZES for rule in RULES]


async def _counted(
    rule: str, asked: Sequence[Task], bank: Sequence[Task], store: Store, embedder: Embedder
) -> Counter[str]:
    """What a bank shows for some tasks. A task has a mate where another task of its kind is in the bank."""
    by, settings = RULES[rule]
    used = embedder if by != "lexical" else None
    bare = replace(settings, relative_floor=None)
    retriever, _ = choose_retrieval(bare, None, store=store, embedder=used, profile="default")
    search: Retriever = LeaveOut(retriever, same_task)  # else the task's own text is the best
    search = RelativeFloor(search, settings.relative_floor) if settings.relative_floor else search
    told = Counter[str]()
    for task in asked:
        found = await search(task.text, scope=SCOPE, limit=LIMIT)
        shown = [bank[int(match.experience.id)] for match in found.matches]
        mates = [one for one in shown if task.kind and one.kind == task.kind]
        told += Counter(
            asked=1,
            shown=len(shown),
            mates=len(mates),
            domain=sum(one.domain == task.domain for one in shown),
            served=bool(mates),
            anything=bool(shown),
        )
    return told


def _row(size: int, rule: str, counts: Mapping[tuple[int, str], Counter[str]]) -> dict[str, Any]:
    own = counts[size, rule]
    search = rule.partition(",")[0]
    base = counts[size, search if search == "words" else "hashing, no words asked for"]
    foreign, before = own["shown"] - own["domain"], base["shown"] - base["domain"]
    others, others_before = own["shown"] - own["mates"], base["shown"] - base["mates"]
    return {
        "tasks of each domain": size or "all",
        "rule": rule,
        "shown": round(own["shown"] / own["asked"], 2),
        "own kind": _percent(own["mates"], own["shown"]),
        "own domain": _percent(own["domain"], own["shown"]),
        "of other domains, gone": _percent(before - foreign, before),
        "of other kinds, gone": _percent(others_before - others, others_before),
        "related tasks lost": _percent(base["served"] - own["served"], base["served"]),
        "of its kind, lost": _percent(base["mates"] - own["mates"], base["mates"]),
        "of its domain, lost": _percent(base["domain"] - own["domain"], base["domain"]),
        "tasks shown anything": _percent(own["anything"], own["asked"]),
    }


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
