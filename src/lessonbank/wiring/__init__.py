"""Strings and settings become objects here, and nowhere else are concrete classes named."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

import anyio.to_thread

from lessonbank._portal import run_sync
from lessonbank.bank import AsyncReasoningBank
from lessonbank.errors import UsageError
from lessonbank.events import Hook
from lessonbank.evidence.draws import Withholding
from lessonbank.guard import check_scope
from lessonbank.guard.trust import TrustPolicy
from lessonbank.learning.consolidation import DEFAULT_CAPS, Caps, MergeSimilar, SkipDuplicates, append
from lessonbank.learning.judging import checked_threshold
from lessonbank.protocols import Admission, Consolidator, Embedder, Extractor, Judge, LanguageModel, Redactor, Retriever
from lessonbank.sync import ReasoningBank
from lessonbank.types import Extraction, Verdict

from ._arguments import abstaining, check_functions, check_hooks, check_numbers, promised
from ._embedders import Choice as EmbedderChoice
from ._embedders import Keys
from ._embedders import choose as choose_embedder
from ._entrance import choose as choose_entrance
from ._entrance import named
from ._measuring import Choice as Withheld
from ._measuring import choose as choose_measuring
from ._measuring import described, measuring
from ._models import ModelChoice as ModelChoice
from ._models import Roles
from ._models import resolve as resolve_models
from ._retrieval import Choice as RetrievalChoice
from ._retrieval import choose as choose_retrieval
from ._retrieval import settings as retrieval_settings
from ._stores import open_store
from ._trust import rationed, trusting

if TYPE_CHECKING:
    from ._profiles import Kit

P = ParamSpec("P")
Profile = Literal["default", "paper"]
Consolidation = Literal["append", "skip_duplicates", "merge_similar"]


async def connect_async(
    where: str | Path,
    /,
    *,
    scope: str,
    model: ModelChoice = None,
    embedder: EmbedderChoice = None,
    retrieval: RetrievalChoice = None,
    profile: Profile = "default",
    domain: str = "general",
    holdout: Withheld = "default",
    act: bool = True,
    limit: int = 1,
    budget: int = 1500,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 120.0,
    abstain: float = 0.0,
    success_at: float = 1.0,
    judge: Judge | None = None,
    extractor: Extractor | None = None,
    retriever: Retriever | None = None,
    consolidation: Consolidation | Consolidator = "append",
    hooks: Sequence[Hook] = (),
    writer: str = "learn",
    redact: Redactor | Literal["default"] | None = "default",
    admission: Admission | Literal["default"] | None = "default",
    trust: TrustPolicy = "open",
    caps: Caps | None = DEFAULT_CAPS,
) -> AsyncReasoningBank:
    """Open a bank, and make it if it is not there yet.

    Args:
        where: a file, or `:memory:` for a bank that ends with the process.
        scope: whose memory this is, a path such as `acme/support`. Nothing of another scope is ever read.
        model: who judges and extracts: `provider:model`, a plain function of a prompt, a `LanguageModel`, or a mapping
            of the roles `judge`, `extractor` and `contrast` to any of these. `None`: only ground truth and errors
            decide, and lessons are drawn from the runs' own words (their provenance says `extractive`).
        embedder: `provider:model`, `sentence-transformers:NAME`, `fastembed:NAME`, `hashing`, `lexical`, or an
            `Embedder`. `None`: what this bank was made with; for a new one the best there is.
        retrieval: `dense`, `lexical`, `hybrid`, or a `lessonbank.retrieving.Retrieval` that also sets a floor,
            diversity, what is left out, or the preface in the prompt. `None`: dense where there is an embedder, else
            lexical.
        profile: `default`, or `paper` for exactly the published method.
        domain: which prompts: `general`, `web` or `code`.
        holdout: the probability with which each lesson, and each whole recall, is withheld so that effects can be
            measured; a policy of `lessonbank.evidence`; `None` for never. By default 0.1 at first, then less the surer
            a lesson helps and more the likelier it harms; never in the paper profile.
        act: whether a lesson that is shown to harm is retired by itself, and one that is shown to help trusted.
        limit: how many experiences a recall draws on (the paper's k).
        budget: the most tokens a recall's text may take.
        base_url: an OpenAI-compatible server for `model`; `api_key` and `timeout` (seconds per call) go with it.
        abstain: a judge that is less sure than this (0 to 1) says nothing: its run stays pending and mints no lesson.
        success_at: the reward from which a run is a success. A reward between 0 and 1 is named in the notes of `learn`.
        judge, extractor, retriever, consolidation, hooks: parts of your own in the place of the standard ones.
        writer: kept in the journal with every change.
        redact: what takes secrets and personal data out of every task, run and experience before anything else sees
            it: a function of text that returns text, or `None` for nothing. By default the built-in redactor.
        admission: what rejects drafts that are not lessons: a part of your own, or `None` for nothing, which is the
            default of the paper's profile.
        trust: what it takes for a lesson to be shown: `open`, nothing; `corroborated`, an independent run that taught
            the same; `witnessed`, such a run of another writer; `reviewed`, a person's approval, as it does for each.
        caps: how many lessons a scope takes in an hour and holds; `None` for no bound.

    Raises:
        UsageError: an argument that cannot be; the message says which and what to do.
        MissingExtra: an optional dependency is not installed.
        StoreUnavailable, VersionMismatch: the file cannot be used.
    """
    check_scope(scope)
    policy, entrance = choose_measuring(holdout, profile), choose_entrance(redact, admission, profile)
    check_numbers(limit=limit, budget=budget, timeout=timeout)
    success_at = checked_threshold(success_at)
    check_functions(judge=judge, extractor=extractor, retriever=retriever)
    check_hooks(hooks)
    roles = resolve_models(model, base_url=base_url, api_key=api_key, timeout=timeout)
    store = await open_store(where)
    try:
        chosen = await choose_embedder(embedder, store=store, model=model, keys=Keys(base_url, api_key))
        search, bare = choose_retrieval(retrieval, retriever, store=store, embedder=chosen.embedder, profile=profile)
        ledger = await anyio.to_thread.run_sync(lambda: measuring(store, policy, act=act))
        preface = retrieval_settings(retrieval).preface
        kit = await anyio.to_thread.run_sync(
            lambda: _equip(profile, domain=domain, roles=roles, budget=budget, preface=preface)
        )
        consolidator = _consolidator(consolidation, bare, roles.extractor, chosen.embedder)
        search, consolidator = trusting(trust, search, bare, consolidator)
        consolidator = rationed(consolidator, store, caps)
    except BaseException:
        await store.close()
        raise
    return AsyncReasoningBank(
        store,
        scope=scope,
        retriever=search,
        judge=abstaining(promised(judge, Verdict, name="judge") or kit.judge, abstain),
        extractor=promised(extractor, Extraction, name="extractor") or kit.extractor,
        consolidator=consolidator,
        injector=kit.injector,
        ledger=ledger,
        limit=limit,
        writer=writer,
        hooks=hooks,
        entrance=entrance,
        scaler=kit.scaler,
        success_at=success_at,
        parts={
            **_parts(where, profile, domain, roles, chosen.description, search, kit.description, policy),
            **named(entrance),
            "trust": trust,
        },
    )


def _waiting(make: Callable[P, Coroutine[Any, Any, AsyncReasoningBank]], /) -> Callable[P, ReasoningBank]:
    def connect(*args: P.args, **kwargs: P.kwargs) -> ReasoningBank:
        return ReasoningBank(run_sync(make(*args, **kwargs)))

    connect.__doc__ = make.__doc__
    connect.__wrapped__ = make  # type: ignore[attr-defined]  # so that help() shows the parameters
    return connect


connect = _waiting(connect_async)


def _equip(profile: Profile, *, domain: str, roles: Roles, budget: int, preface: str | None) -> Kit:
    """Off the loop: it reads prompt files, and loads what `import lessonbank` leaves for later."""
    from ._profiles import equip

    return equip(profile, domain=domain, roles=roles, budget=budget, preface=preface)


def _consolidator(
    choice: Consolidation | Consolidator, retriever: Retriever, model: LanguageModel | None, embedder: Embedder | None
) -> Consolidator:
    if callable(choice):
        return choice
    if choice == "append":
        return append
    if choice == "skip_duplicates":
        return SkipDuplicates(retriever)
    if choice != "merge_similar":
        raise UsageError(f"consolidation is 'append', 'skip_duplicates', 'merge_similar' or a function; got {choice!r}")
    if model is None:
        raise UsageError("consolidation='merge_similar' needs a model to word the merged lesson: pass model=")
    return MergeSimilar(retriever, model, embedder=embedder)


def _parts(
    where: str | Path,
    profile: str,
    domain: str,
    roles: Roles,
    embedder: str,
    retriever: Retriever,
    kit: Mapping[str, str],
    policy: Withholding,
) -> dict[str, str]:
    return {
        "store": str(where),
        "profile": f"{profile} ({domain} prompts)",
        "model": roles.description,
        "embedder": embedder,
        "retriever": retriever.name,
        **kit,
        "holdout": described(policy),
    }


def recorded(model: LanguageModel | None, /, *, cassette: Path, failures: bool = False) -> LanguageModel:
    """`model` with its answers kept in `cassette`, so that a run can be repeated; `None` replays what the file holds.

    With `failures`, that the model failed is kept and repeated, too.

    Raises:
        ModelError: on a call, when nothing is recorded for it and there is no model to ask.
    """
    from lessonbank.models.recorded import Recorded

    return Recorded(model, cassette=cassette, failures=failures)
