"""What a bank weighs on disk per lesson: as measured here, and as `learn` writes it with its verdicts and origin."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lessonbank.contracts.records import Experience, PromptRef, Provenance, RunRef, Verdict
from lessonbank.stores.sqlite import SqliteStore

from .banks import Built, Part, add, experience, on_disk, portions
from .figures import Figure, Target
from .workload import DIMENSIONS, Text

_GOAL = Target(1.2)
_MOST = 10_000
_PROMPT = PromptRef(id="default/extract", version="1", digest="3f9a" * 16)


def size(bank: Built) -> list[Figure]:
    """Per lesson, with and without its text; the file was closed, so that nothing waits in a log."""
    text = bank.text / bank.lessons / 1024
    whole = bank.size / bank.lessons / 1024
    float32, note = DIMENSIONS * 4 / 1024, f"task and lesson: {text:.3f} KB as UTF-8, counted once"
    name = "disk per lesson, text excluded"
    return [
        Figure(
            name, bank.lessons, whole - text, "KB", raw=float32, under="the row as float32", target=_GOAL, note=note
        ),
        Figure("disk per lesson, whole file", bank.lessons, whole, "KB", raw=text, under="the text as UTF-8"),
    ]


async def learned(folder: Path, lessons: int) -> list[Figure]:
    """The same for experiences with an attempt, a verdict and provenance, as `learn` makes them; no target."""
    path, text, many = folder / "learned.db", 0, min(lessons, _MOST)
    store = await SqliteStore.open(path)
    rng = np.random.default_rng(5)
    for said, vectors in portions(Part(many)):
        await add(store, [_as_learned(each, rng.bytes(16).hex()) for each in said], vectors)
        text += sum(each.size for each in said)
    await store.close()
    weight = (on_disk(path) - text) / many / 1024
    note = "with one attempt, its verdict, and provenance; without the runs themselves"
    return [Figure("disk per lesson as learned, text excluded", many, weight, "KB", note=note)]


def _as_learned(text: Text, run: str) -> Experience:
    verdict = Verdict(
        outcome="success", confidence=0.9, reason=text.description, model="provider:model", prompt=_PROMPT
    )
    origin = Provenance(
        trajectory_ids=(run,),
        verdict="success",
        prompts=(_PROMPT,),
        model="provider:model",
        package_version="1.0.0",
        evidence=("step 3", "step 7"),
    )
    plain = experience(text)
    lessons = tuple(lesson.model_copy(update={"provenance": origin}) for lesson in plain.lessons)
    attempt = RunRef(trajectory_id=run, verdict=verdict, n_steps=12)
    return plain.model_copy(update={"lessons": lessons, "attempts": (attempt,)})
