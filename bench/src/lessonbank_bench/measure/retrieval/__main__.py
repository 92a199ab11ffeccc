"""Which way to search finds the right past tasks? Labelled queries from recorded runs, and a game played with each.

    python -m lessonbank_bench.measure.retrieval [--embedder [LABEL=]NAME]... [--json] [--data FOLDER]
        [--no-desk] [--limits K...] [--floors] [--foreign]

The recorded runs are not part of the project: they are looked for in `../shared/data`, and without them this says so
and stops. A bank holds the tasks of one source (never all together: telling flights from web forms is no feat); every
task is asked for in turn. What counts as found is set by labels that came with the runs, never by their text:

* lookup: every run is an experience; asked with its task, its own experience left out. Relevant are the other runs of
  the same task. The texts are the same or nearly so: this measures that nothing is broken, not that anything is good.
* transfer: every distinct task text is one experience; the same text is left out (`LeaveOut(…, same_task)`). Relevant:
    web      tasks made from one template of WorkArena or WebArena (`task_id`; WebArena 2 and 4 share theirs)
    flights  tau-bench tasks whose recorded solution makes the same kind of change to the database first; tasks whose
             solution changes nothing are never asked and stand in the way of the others
    repos    SWE-bench issues of the same repository
    django   issues of Django that were patched in the same package, such as `django/db` (by the most recorded patches)
  HotpotQA and tau2 are not here: HotpotQA has no families of questions, and the tau2 part has four texts.
* halves: the bank holds the first half of the words of each distinct task, asked with the second half. Relevant is its
  own first half. No sentence is repeated, so this is about the subject, with all the words it happens to share. The web
  tasks are not here: those of one template share their first half.
* lessons: transfer over a bank of real lessons: those the package draws without a model from the first run of each
  text that gives any (texts without one are not in it). Here the search for lessons takes part (`lessons(…)`): asked
  for lessons until five experiences are among theirs, and judged by these, in the order of their best lessons. Such
  lessons quote the start of their task, which those of a model need not.

Figures: recall@k is the share of what could be found in k places (relevant found / min(k, relevant)); nDCG@5 with
relevance 0 or 1. Both are averaged over the queries of a family, then over families, so that 42 issues of Django do
not outvote seven repositories; "mean" is over the sources. The interval is a bootstrap of 2,000 draws over families
within each source (2.5 to 97.5 percent), and the gain is paired with the lexical search on the same draws. Seeds are
fixed. The last table is the desk world of `lessonbank_bench` (scripted agent, worlds 0-19, 80 tasks): tasks done. There
k counts experiences, each with all its lessons, and for `lessons(…)` lessons.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import lessonbank
from lessonbank import Retrieval
from lessonbank.contracts.ports import Embedder, Retriever, Store
from lessonbank.contracts.records import Add, Experience, Lesson
from lessonbank.demo import attempt
from lessonbank.search import DenseRetriever, HybridRetriever, LessonRetriever, LexicalRetriever
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.settings import grouped
from lessonbank.text.rendering import estimate_tokens
from lessonbank.wiring._embedders import choose_embedder
from lessonbank_bench import ScriptedAgent, paired_bootstrap, stream, world
from lessonbank_bench.leave_out import LeaveOut, same_task
from lessonbank_bench.measure.checkout import SHARED

from .floors import cases
from .floors import measure as measure_floors
from .foreign import measure as measure_foreign
from .foreign import tasks
from .labels import SCOPE, Collection, collections

DATA = SHARED
DRAWS = 2000
SEED = 20250929
PLACES = 5
METRICS = ("recall@1", "recall@3", "recall@5", "nDCG@5")
Searcher = Callable[[Store], Retriever]


# --- searching -------------------------------------------------------------------------------------------------------


async def filled(collection: Collection, make: Searcher) -> tuple[Retriever, Store]:
    """A store with the collection's documents, indexed as the retriever wants."""
    store = SqliteStore.in_memory()
    retriever = make(store)
    experiences = [
        Experience(id=id, scope=SCOPE, task=text, lessons=tuple(collection.lessons.get(id) or _stand_in(text)))
        for id, text in collection.documents.items()
    ]
    vectors = await retriever.index(experiences)
    changes = [Add(experience=e) for e in experiences]
    await store.apply(changes, scope=SCOPE, writer="bench", vectors=vectors, space=retriever.space)
    return retriever, store


def _stand_in(text: str) -> Sequence[Lesson]:
    """What an experience holds where only its task is searched."""
    return [Lesson(title="What it taught", content=text[:80])]


async def scored(collection: Collection, make: Searcher) -> dict[str, list[list[float]]]:
    """Family to the figures of its queries, in the order of `METRICS`."""
    retriever, store = await filled(collection, make)
    figures: dict[str, list[list[float]]] = defaultdict(list)
    for query in collection.queries:
        guarded = LeaveOut(retriever, _rule(collection.variant, query.own))
        found = await guarded(query.text, scope=SCOPE, limit=PLACES * collection.most)
        ranked = list(dict.fromkeys(match.experience.id for match in found.matches))[:PLACES]
        hits = [id in query.relevant for id in ranked]
        figures[query.family].append(quality(hits, len(query.relevant)))
    await store.close()
    return figures


def _rule(variant: str, own: str) -> Callable[[str, Experience], bool]:
    return same_task if variant in ("transfer", "lessons") else lambda _, experience: experience.id == own


def quality(hits: Sequence[bool], relevant: int) -> list[float]:
    """recall@1, @3, @5 and nDCG@5 of one answer."""
    recalls = [sum(hits[:k]) / min(k, relevant) for k in (1, 3, 5)]
    worth = 1.0 / np.log2(np.arange(5) + 2)
    gain = sum(float(worth[place]) for place, hit in enumerate(hits[:5]) if hit)
    return [*recalls, gain / float(worth[:relevant].sum())]


def by_chance(collection: Collection) -> dict[str, list[list[float]]]:
    """What a random order is expected to score."""
    figures: dict[str, list[list[float]]] = defaultdict(list)
    worth = 1.0 / np.log2(np.arange(5) + 2)
    for query in collection.queries:
        share, relevant = len(query.relevant) / (len(collection.documents) - bool(query.own)), len(query.relevant)
        recalls = [min(k * share / min(k, relevant), 1.0) for k in (1, 3, 5)]
        figures[query.family].append([*recalls, float(share * worth.sum() / worth[:relevant].sum())])
    return figures


# --- figures ---------------------------------------------------------------------------------------------------------


def drawn(figures: Mapping[str, Sequence[Sequence[float]]], source: str) -> np.ndarray:
    """Means over families: the real one first, then bootstrap draws. Shape (1 + DRAWS, metrics)."""
    means = np.array([np.mean(figures[family], axis=0) for family in sorted(figures)])
    draw = np.random.default_rng([SEED, *source.encode()])  # the same draws for every way to search
    picks = draw.integers(0, len(means), size=(DRAWS, len(means)))
    return np.vstack([means.mean(axis=0)[None], means[picks].mean(axis=1)])


def row(variant: str, source: str, name: str, draws: np.ndarray, baseline: np.ndarray) -> dict[str, Any]:
    """One line of the table."""

    def interval(values: np.ndarray) -> list[float]:
        return [round(float(v), 3) for v in (values[0], *np.percentile(values[1:], [2.5, 97.5]))]

    figures = {metric: interval(draws[:, i]) for i, metric in enumerate(METRICS)}
    return {
        "variant": variant,
        "source": source,
        "search": name,
        **figures,
        "gain in nDCG@5": interval((draws - baseline)[:, 3]),
    }


async def searchers(embedders: Mapping[str, str]) -> dict[str, Searcher]:
    """Every way to search, lexical first."""
    made: dict[str, Searcher] = {"lexical": LexicalRetriever}
    for label, name in embedders.items():
        chosen = await choose_embedder(name, store=SqliteStore.in_memory(), scope="bench", model=None)
        assert chosen.embedder is not None, "words alone are measured anyway"
        made[label] = _dense(chosen.embedder)
        made[f"hybrid(lexical, {label})"] = _hybrid(chosen.embedder)
        made[f"lessons({label})"] = _lessons(chosen.embedder)
    return made


def labelled(names: Sequence[str]) -> dict[str, str]:
    """Label to embedder: `LABEL=NAME`, or the name for both. Hashing is always there."""
    pairs = [name.partition("=") for name in ("hashing", *names)]
    return {label: name or label for label, _, name in pairs}


def _dense(embedder: Embedder) -> Searcher:
    return lambda store: DenseRetriever(store, embedder)


def _lessons(embedder: Embedder) -> Searcher:
    return lambda store: LessonRetriever(store, embedder)


def _hybrid(embedder: Embedder) -> Searcher:
    return lambda store: HybridRetriever(DenseRetriever(store, embedder), LexicalRetriever(store))


async def measure(sets: Sequence[Collection], ways: Mapping[str, Searcher]) -> list[dict[str, Any]]:
    """Every set with every way to search (lessons: where there are any), then the mean over sources of a variant."""
    rows: list[dict[str, Any]] = []
    kept: dict[str, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    for collection in sets:
        fit = {name: make for name, make in ways.items() if collection.lessons or not name.startswith("lessons(")}
        results = {name: drawn(await scored(collection, make), collection.source) for name, make in fit.items()}
        results["by chance"] = drawn(by_chance(collection), collection.source)
        label = f"{collection.source} ({len(collection.queries)} in {len({q.family for q in collection.queries})})"
        for name, draws in results.items():
            rows.append(row(collection.variant, label, name, draws, results["lexical"]))
            kept[collection.variant][name].append(draws)
    for variant, results in kept.items():
        means = {name: np.mean(draws, axis=0) for name, draws in results.items()}
        rows += [row(variant, "mean", name, draws, means["lexical"]) for name, draws in means.items()]
    return rows


# --- the desk world --------------------------------------------------------------------------------------------------


def desk(
    embedders: Mapping[str, str], *, limits: Sequence[int], seeds: Sequence[int], tasks: int
) -> list[dict[str, Any]]:
    """Tasks done by the scripted agent with a bank that searches in each way, and what its recalls took a task."""
    ways: dict[str, dict[str, Any]] = {"lexical": {"embedder": "lexical"}}
    for label, name in embedders.items():
        ways[label] = {"embedder": name}
        ways[f"hybrid(lexical, {label})"] = {"embedder": name, "retrieval": Retrieval("hybrid")}
        ways[f"lessons({label})"] = {"embedder": name, "retrieval": Retrieval(level="lesson")}
    rows: list[dict[str, Any]] = []
    for limit in limits:
        games = {way: [played(seed, limit, tasks, options) for seed in seeds] for way, options in ways.items()}
        rates = {way: [won for won, _ in each] for way, each in games.items()}
        for way, each in rates.items():
            gain = paired_bootstrap(each, rates["lexical"])
            done = paired_bootstrap(each, [0.0] * len(each))
            rows.append(
                {
                    "k": limit,
                    "search": way,
                    "tokens": round(sum(tokens for _, tokens in games[way]) / len(each)),
                    "done": [round(v, 3) for v in (done.estimate, done.low, done.high)],
                    "gain": [round(v, 3) for v in (gain.estimate, gain.low, gain.high)],
                }
            )
    return rows


def played(seed: int, limit: int, tasks: int, options: Mapping[str, Any]) -> tuple[float, float]:
    """The share of one world's stream that was done, and the tokens of a recall's text (estimated, mean)."""
    place, player, won, tokens = world(seed), ScriptedAgent(seed), 0, 0
    with lessonbank.connect(":memory:", scope=f"desk/{seed}", **grouped(holdout=None, limit=limit, **options)) as bank:
        for task in stream(seed, tasks):
            recall = bank.retrieve(task.goal)
            tokens += estimate_tokens(recall.text)
            run, success = attempt(place, task, player, recall.text)
            bank.learn(run, recall=recall, outcome="success" if success else "failure")
            won += success
    return won / tasks, tokens / tasks


# --- output ----------------------------------------------------------------------------------------------------------


def printed(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Rows as a table: a figure with its interval in brackets."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(column)
    for each in rows:
        table.add_row(*(_cell(column, value) for column, value in each.items()))
    return table


def _cell(column: str, value: object) -> str:
    """The interval only beside the figures that are compared, so that a line stays a line; JSON has them all."""
    if not isinstance(value, list):
        return str(value)
    estimate, low, high = value
    return f"{estimate:.3f}" if column.startswith("recall") else f"{estimate:.3f} [{low:.3f}, {high:.3f}]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, or JSON with `--json`."""
    parser = argparse.ArgumentParser(
        prog="python -m lessonbank_bench.measure.retrieval", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--embedder", action="append", default=[], help="as in connect(embedder=…); may be given again")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of recorded runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-desk", action="store_true", help="leave out the game, which takes most of the time")
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 3], help="k in the game; 1 and 3 by default")
    parser.add_argument("--floors", action="store_true", help="only the table of relevance floors, without embedders")
    parser.add_argument("--foreign", action="store_true", help="only the table of what is shown of other kinds of task")
    asked = parser.parse_args(arguments)
    if not (asked.data / "browsergym_web.jsonl.gz").is_file():
        print(f"no recorded runs in {asked.data}: name their folder with --data", file=sys.stderr)
        return 2
    if asked.floors:
        rows = asyncio.run(measure_floors(cases(asked.data)))
        return _show(rows, "floors", _FLOORS, as_json=asked.json)
    if asked.foreign:
        return _show(asyncio.run(measure_foreign(tasks(asked.data))), "foreign", _FOREIGN, as_json=asked.json)
    embedders = labelled(asked.embedder)
    rows = asyncio.run(_measured(list(collections(asked.data)), embedders))
    games = [] if asked.no_desk else desk(embedders, limits=asked.limits, seeds=range(20), tasks=80)
    if asked.json:
        print(json.dumps({"queries": rows, "desk": games}, indent=2))
        return 0
    console = Console(width=160)
    for variant in dict.fromkeys(r["variant"] for r in rows):
        console.print(printed([r for r in rows if r["variant"] == variant], variant))
    if games:
        console.print(printed(games, "desk world, 20 worlds of 80 tasks: share done"))
    return 0


_FLOORS = "found first (of those found without a floor), and unrelated shown, in banks of 1, 10 and 1,000"
_FOREIGN = "what is shown in banks of six domains, at most three experiences; what each rule leaves out and loses"


def _show(rows: Sequence[Mapping[str, Any]], name: str, title: str, /, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({name: rows}, indent=2))
    else:
        Console(width=190).print(printed(rows, title))
    return 0


async def _measured(sets: Sequence[Collection], embedders: Mapping[str, str]) -> list[dict[str, Any]]:
    return await measure(sets, await searchers(embedders))


if __name__ == "__main__":
    sys.exit(main())
