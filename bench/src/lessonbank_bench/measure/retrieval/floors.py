"""What a relevance floor costs and what it saves: recalls of related tasks it loses, unrelated tasks it still shows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from lessonbank.contracts.ports import Embedder, Retriever, Store, Vectors
from lessonbank.contracts.records import Add, Experience, Lesson
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.search import DenseRetriever, HybridRetriever, LexicalRetriever, WordFloor
from lessonbank.stores.sqlite import SqliteStore
from lessonbank_bench import stream

from .labels import SCOPE, Collection, change, read, repository, template, transfer

SEED: Final = 20250929
SIZES: Final = (1, 10, 1000)
DRAWS: Final = 3
"""Banks drawn for each query, where a bank is smaller than what there is."""
WORLD: Final = 100
"""Of the desk worlds: the one that is asked. Those after it fill the banks of 1,000."""
Floors: TypeAlias = tuple[float, float]
"""For words, for cosines of hashing; 0 for none."""
WAYS: Final[Mapping[str, Sequence[Floors]]] = {
    "lexical": [(f, 0.0) for f in (0.0, 0.05, 0.06, 0.07, 0.08, 0.1, 0.15, 0.2)],
    "hashing": [(0.0, f) for f in (0.0, 0.08, 0.1, 0.12, 0.13, 0.14, 0.16, 0.2)],
    "hybrid": [(0.0, 0.0), (0.05, 0.1), (0.07, 0.12), (0.1, 0.16)],
}


@dataclass(frozen=True, slots=True)
class Case:
    """One task that is asked of one bank."""

    kind: str
    """`related`: the bank holds a task of its template. `same repository`: of its repository. `unrelated`: neither."""
    size: int
    task: str
    documents: Sequence[str]
    relevant: frozenset[str]


def cases(folder: Path) -> list[Case]:
    """Every question: the same each time."""
    draw, known = random.Random(SEED), sources(folder)
    fill = [task.goal for seed in range(WORLD + 1, WORLD + 40) for task in stream(seed, 40)]
    every = {name: list(dict.fromkeys(source.documents.values())) for name, source in known.items()}
    found = list[Case]()
    for name, source in known.items():
        others = [text for other, texts in every.items() if other != name for text in texts]
        kind = "same repository" if name == "repos" else "related"
        for query in source.queries:
            mates = {source.documents[id] for id in query.relevant} - {query.text}
            apart = [text for text in every[name] if text not in mates and text != query.text]
            for size in SIZES if mates else ():
                for _ in range(DRAWS if size < max(SIZES) else 1):
                    rest = draw.sample(sorted({*apart, *others, *fill} - mates), size - 1)
                    found.append(Case(kind, size, query.text, [draw.choice(sorted(mates)), *rest], frozenset(mates)))
        if name == "desk":
            continue
        large = draw.sample(sorted({*others, *fill}), max(SIZES))
        found += [Case("unrelated", max(SIZES), text, large, frozenset()) for text in every[name]]
        for text in every[name]:
            small = [(size, draw.sample(sorted({*others, *fill}), size)) for size in SIZES[:-1] for _ in range(DRAWS)]
            found += [Case("unrelated", size, text, bank, frozenset()) for size, bank in small]
    return found


def sources(folder: Path) -> dict[str, Collection]:
    """Tasks of five domains, with who is related to whom."""
    questions = read(folder, "hotpotqa_react")
    desk = [{"task": task.goal, "task_id": task.operation} for task in stream(WORLD, 40)]
    return {
        "web": transfer("web", read(folder, "browsergym_web"), template),
        "flights": transfer("flights", read(folder, "tau_bench_airline"), change),
        "desk": transfer("desk", desk, lambda row: row["task_id"]),
        "repos": transfer("repos", read(folder, "swe_bench_mini_swe_agent"), repository),
        "questions": transfer("questions", questions, lambda row: None),
    }


async def measure(asked: Sequence[Case]) -> list[dict[str, Any]]:
    """For each way to search and each floor: how many related tasks are still found first, how many unrelated shown.

    A related task counts where it is found first without a floor.
    """
    counts: dict[tuple[str, Floors, str, int], list[bool]] = defaultdict(list)
    embedder = remembering()
    bank = await filled((), embedder)
    for case in asked:
        if bank.documents != case.documents:
            bank = await filled(case.documents, embedder)
        for way, floors in WAYS.items():
            first = await bank.first(way, (0.0, 0.0), case.task)
            if case.kind != "unrelated" and first not in case.relevant:
                continue
            for pair in floors:
                seen = await bank.first(way, pair, case.task)
                held = seen is not None if case.kind == "unrelated" else seen in case.relevant
                counts[way, pair, case.kind, case.size].append(held)
    return [_row(way, pair, counts) for way, floors in WAYS.items() for pair in floors]


def _row(way: str, pair: Floors, counts: Mapping[tuple[str, Floors, str, int], Sequence[bool]]) -> dict[str, Any]:
    told: dict[str, Any] = {"search": way, "floor": _floor(way, pair)}
    for kind in ("related", "same repository", "unrelated"):
        for size in SIZES:
            held = counts.get((way, pair, kind, size), ())
            told[f"{kind}, {size:,}"] = f"{100 * sum(held) / len(held):.1f} % of {len(held)}" if held else "-"
    return told


def _floor(way: str, pair: Floors) -> str:
    words, vectors = pair
    return f"{words:g} / {vectors:g}" if way == "hybrid" else f"{words or vectors:g}"


def remembering() -> Embedder:
    """Hashing, each text once: the same texts stand in many banks."""
    return _Remembering()


class _Remembering:
    def __init__(self) -> None:
        self._inner, self._rows = HashingEmbedder(), dict[str, Vectors]()

    @property
    def space(self) -> str:
        return self._inner.space

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        for text in texts:
            if text not in self._rows:
                self._rows[text] = self._inner.rows([text])
        return np.concatenate([self._rows[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Bank:
    """A store of some texts, and the ways to search it."""

    store: Store
    embedder: Embedder
    documents: Sequence[str]

    async def first(self, way: str, pair: Floors, task: str) -> str | None:
        """The text that is found first, if any is."""
        found = await self._search(way, pair)(task, scope=SCOPE, limit=1)
        return self.documents[int(found.matches[0].experience.id)] if found.matches else None

    def _search(self, way: str, pair: Floors) -> Retriever:
        words, vectors = pair
        lexical = WordFloor(LexicalRetriever(self.store), words) if words else LexicalRetriever(self.store)
        if way == "lexical":
            return lexical
        dense = DenseRetriever(self.store, self.embedder, vectors or None)
        return HybridRetriever(dense, lexical) if way == "hybrid" else dense


async def filled(documents: Sequence[str], embedder: Embedder) -> Bank:
    """A store in which each text is an experience; its id is the text's place."""
    store = SqliteStore.in_memory()
    experiences = [
        Experience(id=str(n), scope=SCOPE, task=text, lessons=(Lesson(title="What it taught", content=text[:80]),))
        for n, text in enumerate(documents)
    ]
    if experiences:
        vectors = await DenseRetriever(store, embedder).index(experiences)
        changes = [Add(experience=e) for e in experiences]
        await store.apply(changes, scope=SCOPE, writer="bench", vectors=vectors, space=embedder.space)
    return Bank(store, embedder, documents)
