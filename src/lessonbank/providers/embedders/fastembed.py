"""Small embedding models that run on this machine without torch, through fastembed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from lessonbank.contracts.ports import Vectors
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.guard import one_line

from ._rows import off_loop, unit_rows

try:
    _library: Any = importlib.import_module("fastembed")
except ImportError as missing:
    raise MissingExtra("a local embedder (fastembed)", extra="local") from missing

DEFAULT = "BAAI/bge-small-en-v1.5"


class FastembedEmbedder:
    """A fastembed (ONNX) model, from a directory, the cache or the hub.

    Building one loads weights, which takes seconds (and downloads them once, unless `path` is given or HF_HUB_OFFLINE
    is set): in async code, use `open`.

    Args:
        model: one of fastembed's models.
        path: a directory with this model's files; nothing is downloaded then.
        threads: how many threads an embedding may use; at most four by default.

    Raises:
        UsageError: it cannot be loaded.
    """

    def __init__(self, model: str = DEFAULT, /, *, path: Path | None = None, threads: int | None = None) -> None:
        if Path(model).is_dir():
            raise UsageError(
                f"{model!r} is a folder: name its model as well, as in "
                f"FastembedEmbedder({DEFAULT!r}, path=Path({model!r}))"
            )
        self._model: Any = _load(model, path, threads or min(4, os.cpu_count() or 1))
        self._tokenizer: Any = getattr(self._model.model, "tokenizer", None)
        dimensions = self._encode(["a"], "document").shape[1]
        self._space = f"fastembed:{model}-{dimensions}-own"

    @classmethod
    async def open(cls, model: str = DEFAULT, /, *, path: Path | None = None, threads: int | None = None) -> Self:
        """Build one without holding the event loop."""
        return await off_loop(lambda: cls(model, path=path, threads=threads))

    @property
    def space(self) -> str:
        """Model, dimensions and pooling (which the model brings)."""
        return self._space

    @property
    def window(self) -> int | None:
        """The most tokens of one text it reads, without the model's own two marks."""
        truncation = self._tokenizer.truncation if self._tokenizer is not None else None
        return int(truncation["max_length"]) - 2 if truncation else None

    def count(self, text: str, /) -> int:
        """Tokens of `text`, those beyond the window included."""
        if self._tokenizer is None:
            return len(text)
        first = self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"), add_special_tokens=False)
        return sum(sum(part.attention_mask) for part in (first, *first.overflowing))

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        """Float32 unit rows, shape (len(texts), dimensions). What is beyond the window is not read: use `Chunked`."""
        return await off_loop(lambda: self._encode(list(texts), role))

    def _encode(self, texts: list[str], role: Literal["query", "document"]) -> Vectors:
        sound = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encode = self._model.query_embed if role == "query" else self._model.passage_embed
        return unit_rows(encode(sound) if sound else (), count=len(texts), name="the fastembed model")


def _load(model: str, path: Path | None, threads: int, /) -> Any:
    place = {"specific_model_path": str(path)} if path is not None else {}
    try:
        return _library.TextEmbedding(model_name=model, threads=threads, **place)
    except Exception as error:  # the hub client and onnxruntime each raise their own
        raise UsageError(
            f"the embedder {model!r} cannot be loaded: give the `path` of its files, or the name of a fastembed model "
            f"that is cached or can be downloaded ({one_line(str(error), limit=200)})"
        ) from error
