"""Reads Mind2Web's published records, one at a time, and keeps of each step only what is asked and what is right.

The files are lists of tasks of hundreds of megabytes each; pages are read once, and dropped. Scores of candidates come
as JSON: the published file of scores is a pickle, and a pickle can run anything, so it is never opened here.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TextIO, TypeAlias, cast

from lessonbank.contracts.records.ids import digest
from lessonbank.errors import FormatError, UsageError
from lessonbank.guard import clean, one_line

from .mind2web_metrics import Gold, Variant
from .mind2web_page import lines

Candidates: TypeAlias = Literal["ranked", "drawn"]
CANDIDATES: Final = ("ranked", "drawn")
"""`ranked`: the best by a ranker's scores, as published. `drawn`: the right ones, and others by chance (easier)."""
Ranks: TypeAlias = Mapping[str, Mapping[str, int]]
"""By `ANNOTATION_ACTION`, a place (from 0) by `backend_node_id`; who is not named comes after all others."""
SPLITS: Final = ("test_task", "test_website", "test_domain", "train")
OPERATIONS: Final = ("CLICK", "TYPE", "SELECT")
_CHUNK: Final = 1 << 24
_SPACE = re.compile(r"[\s,]*")
_NUMBERS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """One step, as it is asked."""

    gold: Gold
    shown: Mapping[str, str]
    """The candidates by id, each with a line that describes it, in the order of the page."""
    done: str
    """What the person did, in the data's own words: the history of the steps that follow."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded task."""

    id: str
    task: str
    website: str
    domain: str
    subdomain: str
    steps: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Showing:
    """Which candidates of a step are shown, and which of them are right."""

    variant: Variant
    candidates: Candidates
    top: int
    ranks: Ranks | None = None

    def chosen(self, key: str, action: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
        """The candidates shown by id, and the ids of those that are right; nothing where none of those is among them.

        Raises:
            UsageError: nobody ranked the candidates of this step.
        """
        right, others = _by_id(action.get("pos_candidates")), _by_id(action.get("neg_candidates"))
        every = {**others, **right}
        ranks = self._ranks(key, every) if self.candidates == "ranked" else {id: self._drawn(key, id) for id in every}
        found = [id for id in right if self.candidates == "drawn" or ranks[id] < self.top]
        if not found:
            return {}, []
        if self.variant == "awm":
            found = [next(iter(right))]
        best = sorted((id for id in others if id not in right), key=lambda id: ranks[id])
        if self.variant == "mind2web" and self.candidates == "ranked":
            best = [id for id in best if ranks[id] < self.top]
        return {id: every[id] for id in (*found, *best[: max(0, self.top - len(found))])}, found

    def _drawn(self, key: str, id: str) -> float:
        return random.Random(f"{key} {id}").random()

    def _ranks(self, key: str, known: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        if self.ranks is not None:
            if key not in self.ranks:
                raise UsageError(f"the file of scores has no ranks for step {key!r}: it belongs to other data")
            told = self.ranks[key]
            return {id: told.get(id, float("inf")) for id in known}
        if any(not isinstance(record.get("rank"), int | float) for record in known.values()):
            raise UsageError(
                "environment 'mind2web': the candidates have no ranks; give `scores`, a JSON file of them "
                "(see docs/environments/mind2web.md), or set candidates = 'drawn', which is another, easier test"
            )
        return {id: float(record["rank"]) for id, record in known.items()}


def data_files(data: Path, split: str, /) -> list[Path]:
    """The files of a split, in the order of their numbers.

    Args:
        data: one file, or a folder with `SPLIT/*.json`, `data/SPLIT/*.json` or `SPLIT*.json`.

    Raises:
        UsageError: there is none.
    """
    if data.is_file():
        return [data]
    found = [*data.glob(f"{split}/*.json"), *data.glob(f"data/{split}/*.json"), *data.glob(f"{split}*.json")]
    if not found:
        raise UsageError(
            f"environment 'mind2web': {str(data)!r} has no files of the split {split!r}: `data` is a file of Mind2Web, "
            "or the folder that holds test_task/, test_website/, test_domain/ (how to get them: "
            "docs/environments/mind2web.md)"
        )
    return sorted(found, key=lambda path: [int(n) for n in _NUMBERS.findall(path.stem)])


def fingerprint(files: Sequence[Path], /) -> str:
    """Names the files by their names and sizes: reading gigabytes for it would take minutes."""
    return digest("\n".join(f"{path.name} {path.stat().st_size}" for path in files))[:8]


def read_ranks(path: Path, /) -> Ranks:
    """Ranks from a JSON file: `{"ranks": {"ANNOTATION_ACTION": {"NODE": 0, …}, …}}`, or the inner object alone.

    Raises:
        UsageError: it cannot be read, is a pickle, or holds something else.
    """
    if path.suffix in {".pkl", ".pickle"}:
        raise UsageError(
            f"{path.name!r} is a pickle, which could run anything, and is not opened: convert it to JSON where you "
            "trust it (docs/environments/mind2web.md shows how)"
        )
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the scores in {str(path)!r}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the scores in {str(path)!r} are not JSON: {one_line(str(error), limit=200)}") from error
    ranks = told.get("ranks", told) if isinstance(told, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(ranks, dict) or not all(_is_ranking(one) for one in cast("dict[str, Any]", ranks).values()):
        raise UsageError(f"the scores in {str(path)!r} should map each step to a place for each of its elements")
    return cast("Ranks", ranks)


def tasks_of(files: Sequence[Path], showing: Showing, /, *, website: str = "", domain: str = "") -> Iterator[Recorded]:
    """The tasks of the files, of one website or domain where one is named; those without a step are left out.

    Raises:
        FormatError: a file holds something else; the sentence names file and record.
        UsageError: nobody ranked the candidates.
    """
    for path in files:
        for place, record in enumerate(_entries(path)):
            try:
                if _is(record, "website", website) and _is(record, "domain", domain) and record.get("actions"):
                    yield _recorded(record, showing)
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                told = one_line(f"{type(error).__name__}: {error}", limit=120)
                raise FormatError(f"{path.name}, record {place}: not a task of Mind2Web ({told})") from error


def _recorded(record: Mapping[str, Any], showing: Showing) -> Recorded:
    told: Sequence[Any] = record.get("action_reprs") or ()
    id = str(record["annotation_id"])
    steps = [_asked(id, action, showing) for action in record["actions"]]
    named = [_named(told[n] if n < len(told) else "", step) for n, step in enumerate(steps)]
    task = one_line(str(record["confirmed_task"]), limit=2000)
    if not task:
        raise ValueError("confirmed_task is empty")
    website, domain, subdomain = (one_line(str(record.get(key, "")), limit=200) for key in _PLACES)
    return Recorded(id, task, website, domain, subdomain, tuple(named))


_PLACES: Final = ("website", "domain", "subdomain")


def _asked(id: str, action: Mapping[str, Any], showing: Showing) -> Asked:
    shown, right = showing.chosen(f"{id}_{action['action_uid']}", action)
    operation = action["operation"]
    if operation["op"] not in OPERATIONS:
        raise ValueError(f"operation {operation['op']!r}")
    first = next(iter(_by_id(action.get("pos_candidates"))), "")
    gold = Gold(operation["op"], str(operation.get("value") or ""), first, frozenset(right))
    return Asked(gold, lines(str(action.get("cleaned_html") or ""), shown) if shown else {}, "")


def _named(told: object, step: Asked) -> Asked:
    done = clean(str(told), limit=300) if told else f"{step.gold.operation} {step.gold.value}"
    return Asked(step.gold, step.shown, " ".join(done.split()))


def _by_id(candidates: Any) -> dict[str, Mapping[str, Any]]:
    return {str(one["backend_node_id"]): one for one in candidates or ()}


def _is(record: Mapping[str, Any], key: str, wanted: str) -> bool:
    return not wanted or str(record.get(key, "")).casefold() == wanted.casefold()


def _is_ranking(value: object) -> bool:
    return isinstance(value, dict) and all(type(n) is int for n in cast("dict[str, object]", value).values())


def _entries(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from _parsed(file)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except (UnicodeDecodeError, RecursionError, json.JSONDecodeError) as error:
        raise FormatError(f"{path.name} is not a JSON list of tasks: {one_line(str(error), limit=200)}") from error


def _parsed(file: TextIO) -> Iterator[Any]:
    """The entries of a JSON list one by one, with no more of the file in memory than the longest of them takes."""
    decoder = json.JSONDecoder()
    text, at = file.read(_CHUNK).lstrip(), 1
    if not text.startswith("["):
        raise json.JSONDecodeError("a list should begin here", text[:1], 0)
    while True:
        at = cast("re.Match[str]", _SPACE.match(text, at)).end()
        if text[at : at + 1] == "]":
            return
        try:
            entry, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            more = file.read(max(_CHUNK, len(text) - at))
            if not more:
                raise
            text, at = text[at:] + more, 0
            continue
        yield entry
