"""Labelled queries over recorded runs: what counts as found is set by labels that came with the runs."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import lessonbank
from lessonbank.contracts.records import Lesson

SCOPE = "bench"
Rows: TypeAlias = Sequence[Mapping[str, Any]]
FamilyOf: TypeAlias = Callable[[Mapping[str, Any]], str | None]


@dataclass(frozen=True, slots=True)
class Query:
    """A text, the experiences that answer it, and whom it belongs to for the average."""

    text: str
    own: str
    relevant: frozenset[str]
    family: str


@dataclass(frozen=True, slots=True)
class Collection:
    """Experiences by id, and queries over them; `lessons` where lessons were drawn from the runs."""

    variant: str
    source: str
    documents: Mapping[str, str]
    queries: Sequence[Query]
    lessons: Mapping[str, Sequence[Lesson]] = field(default_factory=dict[str, Sequence[Lesson]])

    @property
    def most(self) -> int:
        """Lessons of one experience, at most."""
        return max(map(len, self.lessons.values()), default=1)


def read(folder: Path, name: str) -> Rows:
    """The runs of one file."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def collections(folder: Path) -> Iterator[Collection]:
    """Every labelled set."""
    web, flights = read(folder, "browsergym_web"), read(folder, "tau_bench_airline")
    swe, questions = read(folder, "swe_bench_mini_swe_agent"), read(folder, "hotpotqa_react")
    for source, rows in (("web", web), ("flights", flights), ("repos", swe), ("questions", questions)):
        yield lookup(source, rows)
    patched = _packages(swe)
    django = [row for row in swe if repository(row) == "django__django"]
    families: list[tuple[str, Rows, FamilyOf]] = [
        ("web", web, template),
        ("flights", flights, change),
        ("repos", swe, repository),
        ("django", django, lambda row: patched.get(row["task_id"])),
    ]
    for each in families:
        yield transfer(*each)
    for source, rows in (("flights", flights), ("repos", swe), ("questions", questions)):
        yield halves(source, rows)
    for each in families:
        yield lessons(*each)


def lookup(source: str, rows: Rows) -> Collection:
    """Other runs of the same task."""
    ids: dict[str, list[str]] = defaultdict(list)
    for number, row in enumerate(rows):
        ids[row["task_id"]].append(str(number))
    queries = [
        Query(row["task"], str(n), frozenset(ids[row["task_id"]]) - {str(n)}, row["task_id"])
        for n, row in enumerate(rows)
        if len(ids[row["task_id"]]) > 1
    ]
    return Collection("lookup", source, {str(n): row["task"] for n, row in enumerate(rows)}, queries)


def transfer(source: str, rows: Rows, family_of: FamilyOf) -> Collection:
    """Other tasks of the same family, in other words."""
    distinct = {row["task"]: row for row in rows}
    ids = {text: str(number) for number, text in enumerate(distinct)}
    members: dict[str, set[str]] = defaultdict(set)
    for text, row in distinct.items():
        members[family_of(row) or ""].add(ids[text])
    queries = [
        Query(text, ids[text], frozenset(members[family]) - {ids[text]}, family)
        for text, row in distinct.items()
        if (family := family_of(row)) and len(members[family]) > 1
    ]
    return Collection("transfer", source, {id: text for text, id in ids.items()}, queries)


def halves(source: str, rows: Rows) -> Collection:
    """The first half of the same task."""
    split = [(words[: len(words) // 2], words[len(words) // 2 :]) for words in _distinct_words(rows)]
    documents = {str(n): " ".join(first) for n, (first, _) in enumerate(split)}
    queries = [Query(" ".join(second), "", frozenset({str(n)}), str(n)) for n, (_, second) in enumerate(split)]
    return Collection("halves", source, documents, queries)


def lessons(source: str, rows: Rows, family_of: FamilyOf) -> Collection:
    """Transfer among the texts whose runs give a lesson, with these lessons."""
    taught = _taught(rows)
    collection = transfer(source, [row for row in rows if row["task"] in taught], family_of)
    lessons = {id: taught[text] for id, text in collection.documents.items()}
    return replace(collection, variant="lessons", lessons=lessons)


def _taught(rows: Rows) -> dict[str, Sequence[Lesson]]:
    """Text to the lessons of its first run that gives any."""
    taught: dict[str, Sequence[Lesson]] = {}
    with lessonbank.connect(
        ":memory:", scope=SCOPE, embedder="lexical", evidence=lessonbank.Evidence(holdout=None)
    ) as bank:
        for number, row in enumerate(rows):
            if row["task"] not in taught:
                outcome = "success" if row["success"] else "failure"
                alone = bank.scoped(f"{SCOPE}/{number}")  # where others taught a fact before, it would not come again
                learned = alone.learn(row["messages"], task=row["task"], outcome=outcome)
                taught.update({row["task"]: learned.lessons} if learned.lessons else {})
    return taught


def _distinct_words(rows: Rows) -> list[list[str]]:
    return [words for text in dict.fromkeys(row["task"] for row in rows) if len(words := text.split()) >= 10]


def template(row: Mapping[str, Any]) -> str:
    return {"webarena.4": "webarena.2"}.get(row["task_id"], row["task_id"])


def change(row: Mapping[str, Any]) -> str | None:
    names = [a if isinstance(a, str) else a["name"] for a in row["meta"]["ground_truth_actions"]]
    return next((n for n in names if re.match("book|cancel|update|send", n)), None)


def repository(row: Mapping[str, Any]) -> str:
    return row["task_id"].rsplit("-", 1)[0]


def _packages(rows: Rows) -> dict[str, str]:
    """Task to the package most of its recorded patches touch, tests apart."""
    touched: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        paths = re.findall(r"^diff --git a/(\S+)", row["meta"].get("submission") or "", re.M)
        touched[row["task_id"]].update(p for path in paths if (p := _package(path)))
    return {task: min(counts, key=lambda p: (-counts[p], p)) for task, counts in touched.items() if counts}


def _package(path: str) -> str | None:
    return "/".join(path.split("/")[:2]) if path.startswith("django/") and path.count("/") > 1 else None
