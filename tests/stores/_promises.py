"""What a bank must hold after a crowd used it: every log compared with every record."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _crowd import BACK, SPACE, lines, mark, seal, vector_of
from _onlookers import halves

from lessonbank.contracts.records import Experience
from lessonbank.contracts.records.timeline import state_at
from lessonbank.contracts.store_calls import every_recall, get_trajectory, list_scopes, settlement_of
from lessonbank.errors import NotFound
from lessonbank.stores.sqlite import SqliteStore

Line = dict[str, Any]
_SOUGHT = 10
"""Experiences of each scope that are looked for in the indexes; all of them are looked for among the records."""


def read_logs(folder: Path, /) -> list[list[Line]]:
    """Every process's lines."""
    return [list(lines(path.read_bytes())) for path in sorted(folder.glob("*.log"))]


@dataclass
class Held:
    """What one scope holds: marks by kind and id."""

    marks: dict[tuple[str, str], str] = field(default_factory=dict)
    journal: dict[int, str] = field(default_factory=dict)
    unindexed: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


async def held(store: SqliteStore, scope: str, asked: set[tuple[str, str]]) -> Held:
    """Everything that was ever promised of this scope, as the bank has it now."""
    found = Held()
    experiences = [e async for e in store.scan(scope=scope)]
    entries = [e async for e in store.journal(scope=scope)]
    found.marks.update({("experience", e.id): mark(e) for e in experiences})
    found.journal.update({e.sequence: mark(e.entry) for e in entries})
    found.marks.update({("recall", r.id): mark(r) async for r in every_recall(store, scope=scope)})
    found.unindexed = {id for id, _ in await store.unindexed(scope=scope, space=SPACE, limit=1 << 30)}
    for kind, id in asked:
        if (one := await _one(store, kind, id, scope)) is not None:
            found.marks[kind, id] = one
    told = state_at(entries, len(entries), scope=scope)
    found.problems = _scope_problems(scope, experiences, [e.sequence for e in entries], told.experiences)
    for experience in [e for e in experiences if e.active_lessons and "seal" in e.metadata][-_SOUGHT:]:
        found.problems += await _sought(store, experience)
    return found


async def _sought(store: SqliteStore, known: Experience) -> list[str]:
    """Its own vector and its own word must find an experience before any other."""
    by_vector = (await store.nearest(vector_of(known.id), scope=known.scope, space=SPACE, limit=1)).matches
    by_word = await store.search(f"case{known.id}", scope=known.scope, limit=2)
    ways = {"vector": by_vector, "word": by_word}
    return [
        f"{known.id} of {known.scope}: its {way} finds {[m.experience.id for m in found]}"
        for way, found in ways.items()
        if [m.experience.id for m in found] != [known.id]
    ]


async def _one(store: SqliteStore, kind: str, id: str, scope: str) -> str | None:
    try:
        if kind == "run":
            return mark(await get_trajectory(store, id, scope=scope))
        settlement = await settlement_of(store, id, scope=scope)
        return mark(settlement) if settlement else None
    except NotFound:
        return None


def _scope_problems(
    scope: str, experiences: Sequence[Experience], sequences: list[int], told: Sequence[Experience]
) -> list[str]:
    problems = [f"half: {e.id} is not whole" for e in experiences if e.metadata.get("seal") != seal(e)]
    problems += [f"half: {name} has {has} of {size}" for name, has, size in halves(experiences)]
    if sequences != list(range(1, len(sequences) + 1)):
        problems.append(f"{scope}: the journal has a gap")
    if list(told) != list(experiences):
        problems.append(f"{scope}: the journal tells of {len(told)} experiences, the bank has {len(experiences)}")
    return problems


@dataclass
class Judged:
    """How the bank compares with what it acknowledged."""

    lost: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    acknowledged: int = 0
    under_way: int = 0
    """Operations that nobody heard the end of; `finished` of them are in the bank."""
    finished: int = 0


def judge(log: Sequence[Line], scopes: dict[str, Held], found: Judged, /) -> None:
    """Hold one process's log against the bank. What was under way when it was killed may be there or not, but whole."""
    done = {line["done"]: line for line in log if "done" in line}
    last: dict[tuple[str, str, str], str] = {}
    for op in (line for line in log if "op" in line):
        bank, named = scopes[op["scope"]], {(op["scope"], kind, id): said for kind, id, said in op["facts"]}
        if op["op"] in done:
            found.acknowledged += 1
            last.update(named)
            got = [bank.journal.get(sequence) for sequence in done[op["op"]]["sequences"]]
            if got != op["entries"]:
                found.lost.append(f"entries {done[op['op']]['sequences']} of {op['scope']}: {got}")
            continue
        there = {bank.marks.get((kind, id)) == said for (_, kind, id), said in named.items()}
        there |= {entry in bank.journal.values() for entry in op["entries"]}
        found.under_way += 1
        if len(there) > 1:
            found.half.append(f"{op}")
        elif there == {True}:
            found.finished += 1
            last.update(named)
    found.lost += _missing(last, scopes)


def _missing(last: dict[tuple[str, str, str], str], scopes: dict[str, Held]) -> Iterator[str]:
    for (scope, kind, id), wanted in last.items():
        got = scopes[scope].marks.get((kind, id))
        if got != wanted:
            yield f"{kind} {id} of {scope}: {'another content' if got else 'missing'}"
        elif kind == "experience" and id in scopes[scope].unindexed:
            yield f"the vector of {id} of {scope}"


async def compare(path: Path, logs: Sequence[Sequence[Line]], /) -> dict[str, Any]:
    """Open the bank as the next process would, and compare it with all logs."""
    began = time.monotonic()
    store = await SqliteStore.open(path)
    opened = time.monotonic() - began
    problems = [f"verify: {problem}" for problem in (await store.verify()).problems]
    problems += [line[key] for log in logs for line in log for key in ("problem", "error") if key in line]
    asked: dict[str, set[tuple[str, str]]] = {scope: set() for scope in await list_scopes(store)}
    for op in (line for log in logs for line in log if "op" in line):
        wanted = ((kind, id) for kind, id, _ in op["facts"] if kind in {"run", "settlement"})
        asked.setdefault(op["scope"], set()).update(wanted)
    scopes = {scope: await held(store, scope, ids) for scope, ids in asked.items()}
    await store.put_setting("embedder", "lexical")  # what `doctor` would have to choose
    await store.close()
    found = Judged()
    for log in logs:
        judge(log, scopes, found)
    problems += [problem for bank in scopes.values() for problem in bank.problems]
    return {
        "acknowledged": found.acknowledged,
        "under_way": found.under_way,
        "under_way_finished": found.finished,
        "lost": found.lost,
        "half_written": found.half + [p for p in problems if p.startswith("half: ")],
        "problems": [p for p in problems if not p.startswith("half: ")],
        "experiences": sum(kind == "experience" for bank in scopes.values() for kind, _ in bank.marks),
        "journal": sum(len(bank.journal) for bank in scopes.values()),
        "rollback_scopes": sum(scope.endswith(BACK) for scope in scopes),
        "opened_s": round(opened, 2),
        "checked_s": round(time.monotonic() - began, 1),
    }
