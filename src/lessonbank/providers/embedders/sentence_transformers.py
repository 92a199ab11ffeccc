"""Embedding models that run on this machine, through sentence-transformers."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from lessonbank.contracts.ports import Vectors
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.guard import one_line

from ._rows import off_loop, unit_rows

try:
    _library: Any = importlib.import_module("sentence_transformers")
    _torch: Any = importlib.import_module("torch")
except ImportError as missing:
    raise MissingExtra("a local embedder (sentence-transformers)", extra="sentence-transformers") from missing


class SentenceTransformersEmbedder:
    """A sentence-transformers model, from a directory or from the hub's cache.

    Building one from a name loads weights, which takes seconds: in async code, use `open`.

    Args:
        model: a directory, a hub name, or a loaded `SentenceTransformer`.
        name: its name in the space; by default the hub name, or the directory's name and a digest of its settings.
        threads: how many threads torch may use in this process; its own choice by default.

    Raises:
        UsageError: it cannot be loaded.
    """

    def __init__(self, model: Any, /, *, name: str | None = None, threads: int | None = None) -> None:
        if threads is not None:
            _torch.set_num_threads(threads)
        self._model: Any = _load(model) if isinstance(model, str | Path) else model
        dimensions = self._encode(["a"], "document").shape[1]
        self._space = f"sentence-transformers:{name or _name(model)}-{dimensions}-{_pooling(self._model)}"
        self._window = _window(self._model)

    @classmethod
    async def open(cls, model: Any, /, *, name: str | None = None, threads: int | None = None) -> Self:
        """Build one without holding the event loop."""
        return await off_loop(lambda: cls(model, name=name, threads=threads))

    @property
    def space(self) -> str:
        """Model, dimensions and pooling."""
        return self._space

    @property
    def window(self) -> int | None:
        """The most tokens of one text it reads, without the model's own marks and prompts."""
        return self._window

    def count(self, text: str, /) -> int:
        """Tokens of `text`."""
        return _tokens(self._model, text)

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions). What is beyond the window is not read: use `Chunked`."""
        return await off_loop(lambda: self._encode(list(texts), role))

    def _encode(self, texts: list[str], role: Literal["query", "document"]) -> Vectors:
        sound = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        rows: Any = encode(sound, show_progress_bar=False, convert_to_numpy=True) if sound else ()
        return unit_rows(rows, count=len(texts), name="the sentence-transformers model")


def _load(model: str | Path, /) -> Any:
    try:
        return _library.SentenceTransformer(str(model))
    except Exception as error:  # the hub client, the tokenizer and torch each raise their own
        raise UsageError(
            f"the embedder {str(model)!r} cannot be loaded: give a directory with a sentence-transformers model, or a "
            f"hub name that is cached or can be downloaded ({one_line(str(error), limit=200)})"
        ) from error


def _name(model: Any, /) -> str:
    if not isinstance(model, str | Path):
        return one_line(str(getattr(model.model_card_data, "base_model", None) or "unnamed"), limit=100)
    path = Path(model)
    return f"{path.resolve().name}@{_fingerprint(path)}" if path.is_dir() else str(model)


def _fingerprint(directory: Path, /) -> str:
    """Settings by content, weights by size: two directories called `model` are two spaces."""
    seen = hashlib.sha256()
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        seen.update(f"{file.relative_to(directory).as_posix()} {file.stat().st_size}\n".encode())
        if file.suffix == ".json" and file.stat().st_size < 100_000:
            seen.update(file.read_bytes())
    return seen.hexdigest()[:8]


def _pooling(model: Any, /) -> str:
    for module in model:
        named = getattr(module, "get_pooling_mode_str", None)  # up to release 5; an attribute since 6
        mode = named() if named is not None else getattr(module, "pooling_mode", None)
        if mode is not None:
            return str(mode) if isinstance(mode, str) else "+".join(map(str, mode))
    return "own"


def _window(model: Any, /) -> int | None:
    longest: int | None = model.max_seq_length
    if not longest or longest > 1_000_000:
        return None
    prompts: dict[str, str] = getattr(model, "prompts", None) or {}
    marks = int(model.tokenizer.num_special_tokens_to_add())
    return longest - marks - max((_tokens(model, prompt) for prompt in prompts.values()), default=0)


def _tokens(model: Any, text: str, /) -> int:
    sound = text.encode("utf-8", "replace").decode("utf-8")
    return len(model.tokenizer(sound, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])
