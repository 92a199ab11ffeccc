"""Banks to measure: made through the store's own port in batches of 1,000, and kept for later runs where wanted."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

import lessonbank.stores
from lessonbank.contracts.records import Add, Experience, Lesson
from lessonbank.stores.sqlite import SqliteStore

from . import workload
from .clock import Stopwatch
from .workload import DIMENSIONS, SCOPE, SPACE, Text, rows, texts

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Part:
    """`count` rows of the workload, from `start`, in one scope."""

    count: int
    start: int = 0
    scope: str = SCOPE


@dataclass(frozen=True, slots=True)
class Built:
    """A closed bank file, and what making it took. `text` is the bytes of its texts, counted once."""

    path: Path
    parts: tuple[Part, ...]
    wall: float
    cpu: float
    text: int
    size: int

    @property
    def lessons(self) -> int:
        """Of all scopes."""
        return sum(part.count for part in self.parts)


class Ready:
    """An embedder without a model: a query's vector is put in `query` before it is asked for, other texts get any."""

    space = SPACE

    def __init__(self) -> None:
        self.query = np.zeros(DIMENSIONS, dtype=np.float32)
        self._spare = rows(0, 10_000, stream=4)

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> np.ndarray:
        """One row for each text, at once."""
        if role == "query":
            return self.query[None]
        return self._spare[[zlib.crc32(text.encode()) % len(self._spare) for text in texts]]


def experience(text: Text, *, scope: str = SCOPE) -> Experience:
    """One experience with one lesson."""
    lesson = Lesson(title=text.title, description=text.description, content=text.content)
    return Experience(scope=scope, task=text.task, lessons=(lesson,))


def portions(part: Part) -> Iterator[tuple[list[Text], np.ndarray]]:
    """The part's texts and vectors, a batch at a time."""
    for at in range(part.start, part.start + part.count, BATCH):
        many = min(BATCH, part.start + part.count - at)
        yield list(texts(at, many)), rows(at, many)


async def built(path: Path, parts: Sequence[Part], *, reuse: bool = False) -> Built:
    """The bank at `path`, made anew unless the very same one stands there, made by the same code of the store.

    `reuse`: one made by other code of the store will do.
    """
    wanted = {"code": _code(), "workload": workload.VERSION, "parts": [asdict(part) for part in parts]}
    kept = _kept(path, wanted, reuse=reuse)
    if kept is not None:
        return Built(path, tuple(parts), *kept)
    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()
    watch, text = Stopwatch(), 0
    store = await SqliteStore.open(path)
    for part in parts:
        for said, vectors in portions(part):
            await add(store, [experience(each, scope=part.scope) for each in said], vectors, watch=watch)
            text += sum(each.size for each in said)
    await store.close()
    figures = [watch.wall, watch.cpu, text, on_disk(path)]
    _marker(path).write_text(json.dumps({**wanted, "figures": figures}), encoding="utf-8")
    return Built(path, tuple(parts), *figures)


@dataclass(frozen=True, slots=True)
class Adding:
    """Experiences of one scope with their vectors, ready to be added in one durable call."""

    changes: Sequence[Add]
    named: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, new: Sequence[Experience], vectors: np.ndarray) -> Adding:
        """Those, each with its row."""
        return cls([Add(experience=each) for each in new], {each.id: vectors[i] for i, each in enumerate(new)})

    async def into(self, store: SqliteStore) -> None:
        """The call, and nothing else."""
        scope = self.changes[0].experience.scope
        await store.apply(self.changes, scope=scope, writer="bench", vectors=self.named, space=SPACE)


async def add(
    store: SqliteStore, new: Sequence[Experience], vectors: np.ndarray, *, watch: Stopwatch | None = None
) -> None:
    """Add experiences of one scope with their vectors. `watch` times the call and nothing else."""
    adding = Adding.of(new, vectors)
    with watch or Stopwatch():
        await adding.into(store)


@contextmanager
def copied(bank: Built, work: Path) -> Iterator[Path]:
    """A copy to write to, so that a kept bank stays as it was made; gone afterwards."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for file in bank.path.parent.glob(f"{bank.path.name}*"):
            if file != _marker(bank.path):
                shutil.copyfile(file, Path(folder) / file.name)
        yield Path(folder) / bank.path.name


def on_disk(path: Path) -> int:
    """Bytes of a closed bank: the file and whatever its store left beside it."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*") if file != _marker(path))


def _marker(path: Path) -> Path:
    return path.with_name(f"{path.name}.made.json")


def _kept(path: Path, wanted: dict[str, object], *, reuse: bool) -> list[float] | None:
    if not path.exists() or not _marker(path).exists():
        return None
    found = json.loads(_marker(path).read_text(encoding="utf-8"))
    figures = found.pop("figures")
    if reuse:
        found["code"] = wanted["code"]
    return figures if found == wanted else None


def _code() -> str:
    """Names the store's code: a bank made by other code is another bank."""
    found = hashlib.sha256()
    for folder in lessonbank.stores.__path__:
        for file in sorted(Path(folder).rglob("*")):
            if file.suffix in {".py", ".sql"}:
                found.update(file.read_bytes())
    return found.hexdigest()[:16]
