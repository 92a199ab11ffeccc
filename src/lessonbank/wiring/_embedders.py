"""Which embedding space a bank lives in: chosen once, kept with the bank, never changed automatically."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from inspect import isawaitable
from typing import Any, TypeAlias, cast

from lessonbank._base.checks import is_instance, safe_getattr, short_repr
from lessonbank._base.extensions import extension
from lessonbank.bank.audit_log import record_act
from lessonbank.contracts.ports import BlockingEmbedder, Embedder, Store
from lessonbank.contracts.settings import Model
from lessonbank.contracts.store_calls import get_setting
from lessonbank.errors import LessonbankError, MissingExtra, ReadOnly, UsageError

Choice: TypeAlias = str | Embedder | BlockingEmbedder | None
LEXICAL = "lexical"
LOCAL = "fastembed:BAAI/bge-small-en-v1.5"
OF_PROVIDER = {
    "openai": "openai:text-embedding-3-small",
    "openai-chat": "openai:text-embedding-3-small",
    "openai-responses": "openai:text-embedding-3-small",
    "google": "google:gemini-embedding-001",
}
"""Providers whose embeddings come with the same key as the model."""
_SETTING = "embedder"
_PROVIDERS = ("openai", "google", "google-cloud", "cohere", "voyageai", "bedrock")
_OF_AN_OBJECT = re.compile(r"(?:fastembed|sentence-transformers):.*-\d+-[a-z_+]+")
"""How the space of a local model that was given as an object ends: with dimensions and pooling."""
log = logging.getLogger("lessonbank")


class _UnknownEmbedderError(UsageError):
    """No embedder has this name."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """An embedder (`None`: search by words) and one sentence on why it is this one."""

    embedder: Embedder | None
    description: str


async def choose_embedder(choice: Choice, /, *, store: Store, scope: str, model: Model | None) -> Chosen:
    """What the caller names; else what the bank was made with; else the best that answers here.

    A provider's embedder is asked where `model` is, and with its key. The journal of `scope` tells that another one is
    kept with the bank from now on.

    Raises:
        UsageError: no such embedder. MissingExtra: the one named, or kept with the bank, is not installed.
    """
    setting = await get_setting(store, _SETTING)
    if is_instance(choice, str):
        choice = str.__str__(choice)  # a plain one, whatever a subclass does
        made = await _make(choice, model)
        await _keep(store, scope, choice, setting)
        return Chosen(made, f"{choice} (named by the caller)")
    if choice is not None:
        given = _given(choice)
        await _keep(store, scope, given.space, setting)
        return Chosen(given, f"{given.space} (given by the caller)")
    if setting is not None:
        return Chosen(await _again(setting, model), f"{setting} (kept with the bank)")
    best, why, failed = await _best(model)
    made = await _make(best, model)
    if not failed:
        await _keep(store, scope, best, setting)
    return Chosen(made, f"{best} ({why})")


async def _keep(store: Store, scope: str, choice: str, setting: str | None) -> None:
    if setting == choice or {setting, choice} == {"hashing", "hashing-v1-512"}:
        return
    if setting is not None:
        log.warning("the bank's embedder changes from %s to %s: `reindex` embeds its records again", setting, choice)
    with suppress(ReadOnly):  # it is used all the same
        await store.put_setting(_SETTING, choice)
        if setting is not None:
            await record_act(
                store, "settings", f"embedder {choice} in the place of {setting}", scope=scope, writer="learn"
            )


async def _again(setting: str, model: Model | None) -> Embedder | None:
    try:
        return await _make(setting, model)
    except MissingExtra as error:
        raise MissingExtra(
            f"this bank's embedder {setting!r} (embedder='lexical' opens it without)", extra=error.extra
        ) from error
    except UsageError as error:
        if not (isinstance(error, _UnknownEmbedderError) or _OF_AN_OBJECT.fullmatch(setting)):
            raise
        raise UsageError(
            f"this bank was made with the embedder {setting!r}: pass that object as embedder=, or name another one"
        ) from error


async def _best(model: Model | None) -> tuple[str, str, bool]:
    """The first candidate that really embeds a word here, why it is this one, and whether a better one failed.

    A better one that failed may only be down: the choice is then made again next time, and said aloud.
    """
    provider = _provider_of(model.name) if model and model.base_url is None else ""
    candidates = [OF_PROVIDER[provider]] if provider in OF_PROVIDER else []
    if find_spec("fastembed"):
        candidates.append(LOCAL)
    problems: list[str] = []
    for candidate in candidates:
        try:
            embedder = await _make(candidate, model)
            if embedder:
                await embedder.embed(["hello"], role="query")
        except LessonbankError as error:
            problems.append(f"{candidate} failed: {error}")
            continue
        return candidate, "the best there was when the bank was made", bool(problems)
    if problems:
        log.warning("this bank is searched by words for now, because %s", "; ".join(problems))
        return LEXICAL, f"by words for now, because {'; '.join(problems)}", True
    return LEXICAL, "no embedding model is named or installed; the extra `local` has one", False


def _provider_of(name: object) -> str:
    """The provider that a model is named of; empty where it has no such name."""
    if not is_instance(name, str):
        return ""
    from lessonbank.providers.connection import source_of

    return source_of(str.__str__(name), None, what="model", compatible="").partition(":")[0]


def _way_to(kind: str, model: Model) -> dict[str, Any]:
    """The time limit of `model`, and its address and key unless a provider is another one: it may not see that key."""
    roles = cast("Mapping[str, object]", model.name).values() if is_instance(model.name, Mapping) else [model.name]
    named = {_provider_of(name) for name in roles} - {""} if model.base_url is None else {"openai"}
    families = {OF_PROVIDER.get(name, name).partition(":")[0] for name in named} or {kind}
    own = {"base_url": model.base_url, "api_key": model.api_key} if kind in families else {}
    return {"seconds": model.timeout, **own}


def _given(choice: Embedder | BlockingEmbedder) -> Embedder:
    """An embedder of the caller's own, held to what the port promises."""
    space = safe_getattr(choice, "space")
    if is_instance(choice, type) or not is_instance(space, str) or not space or safe_getattr(choice, "embed") is None:
        raise UsageError(
            f"embedder= takes a name or an object with `space` (text) and an `embed`; {short_repr(choice)} is neither"
        )
    from lessonbank.providers.embedders.wrappers import Checked

    return Checked(choice)


async def _make(name: str, model: Model | None) -> Embedder | None:
    """The embedder of a name, with long texts split and pooled, batches, and a cache; `None` for lexical search."""
    bare = await _bare(name, model)
    if bare is None:
        return None
    from lessonbank.providers.embedders.wrappers import standard

    return standard(bare)


async def _bare(name: str, model: Model | None) -> Embedder | None:
    kind, _, rest = name.partition(":")
    if name == LEXICAL:
        return None
    if hashed := re.fullmatch(r"hashing(?:-v1)?(?:-(\d{2,5}))?", name):
        from lessonbank.providers.embedders.hashing import HashingEmbedder

        return HashingEmbedder(dimensions=int(hashed[1] or 512))
    if kind == "sentence-transformers" and rest:
        from lessonbank.providers.embedders.sentence_transformers import SentenceTransformersEmbedder

        return await SentenceTransformersEmbedder.open(rest)
    if kind == "fastembed" and rest:
        from lessonbank.providers.embedders.fastembed import FastembedEmbedder

        return await FastembedEmbedder.open(rest)
    if kind in _PROVIDERS and rest:
        from lessonbank.providers.embedders.pydantic_ai import PydanticAIEmbedder, is_space

        if is_space(rest):
            raise _UnknownEmbedderError(f"{name!r} is the space of an embedder: name its model without the dimensions")
        return PydanticAIEmbedder(name, **_way_to(kind, model) if model else {})
    if made := await _foreign(kind, rest):
        return made
    if name == "local":
        raise UsageError(f"'local' is the name of an extra: install lessonbank[local], and write embedder={LOCAL!r}")
    raise _UnknownEmbedderError(
        f"there is no embedder {short_repr(name)}: use 'lexical', 'hashing', 'fastembed:NAME', "
        "'sentence-transformers:NAME', a provider's as in 'openai:text-embedding-3-small', or an Embedder of your own"
    )


async def _foreign(kind: str, rest: str) -> Embedder | None:
    """The embedder of a distribution that has an entry point of this name in the group `lessonbank.embedders`: a
    function, async or not, of what stands after the colon."""
    make = extension("lessonbank.embedders", kind)
    if make is None:
        return None
    made = make(rest)
    return _given(await made if isawaitable(made) else made)
