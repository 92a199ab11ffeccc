"""Strings and settings become objects here, and nowhere else are concrete classes named."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Coroutine
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, cast, get_args

from anyio import CancelScope, to_thread

from lessonbank._base.checks import display_name, is_instance, one_of
from lessonbank._base.keywords import no_such_keyword
from lessonbank._base.sync_bridge import run_sync
from lessonbank._base.tables import read_tables
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.bank.parts import BankOptions, BankParts
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Extraction, Verdict
from lessonbank.contracts.settings import (
    OFF,
    UNSET,
    Consolidation,
    Evidence,
    File,
    Learning,
    Model,
    Parts,
    Profile,
    Retrieval,
    Safety,
    Search,
    Server,
    TrustPolicy,
    chosen,
)
from lessonbank.evidence.policy import Holdout, described
from lessonbank.guard import check_scope
from lessonbank.guard.identity import warn_unprotected
from lessonbank.learning.judging import Abstaining
from lessonbank.search import TrustFilter

from ._arguments import grouped, promised
from ._consolidation import choose_consolidator, choose_topics, takes_additions
from ._embedders import Choice as EmbedderChoice
from ._embedders import choose_embedder
from ._entrance import choose_intake, describe_intake
from ._measuring import choose_measuring, measuring
from ._models import ModelChoice as ModelChoice
from ._models import OneModel as OneModel
from ._models import bare_model as bare_model
from ._models import resolve as resolve_models
from ._remote import is_remote, open_remote
from ._repair import restore as restore
from ._repair import salvage as salvage
from ._retrieval import PreviewFactory, choose_fitter, choose_retrieval
from ._stores import is_store, named_place, open_store, spool_place, switched_off
from ._stores import migrate as migrate

if TYPE_CHECKING:
    from ._profiles import Components

P = ParamSpec("P")
Place: TypeAlias = str | Path | File | Server | Store
LIMIT: Final = 3
"""Experiences of a recall; the paper's profile has one."""
BUDGET: Final = 1500
_AS_GIVEN: Final = ("abstain", "success_at", "keep_runs", "keep_lessons", "sleep_after", "reflect_every", "submit")


_SETTINGS: Final = {
    "model": Model,
    "retrieval": Retrieval,
    "learning": Learning,
    "evidence": Evidence,
    "safety": Safety,
    "parts": Parts,
}
"""By parameter of `connect`: the settings that it takes."""


def _elsewhere() -> dict[str, str]:
    """What to write for a setting that was handed to `connect` itself."""
    hints = {
        field.name: f"{parameter}=lessonbank.{settings.__name__}({field.name}=…)"
        for parameter, settings in _SETTINGS.items()
        for field in fields(settings)
    }
    for name in ("api_key", "timeout"):
        hints[name] += f", or connect(lessonbank.Server(URL, {name}=…), scope=…) for a server"
    return hints | {"read_only": "connect(lessonbank.File(PATH, read_only=True), scope=…)"}


def _explains(
    make: Callable[P, Coroutine[Any, Any, AsyncReasoningBank]], /
) -> Callable[P, Coroutine[Any, Any, AsyncReasoningBank]]:
    """`make`, which says of a wrong keyword what to write."""

    @functools.wraps(make)
    async def connect(*args: P.args, **kwargs: P.kwargs) -> AsyncReasoningBank:
        if wrong := no_such_keyword(make, "connect", kwargs, besides=_elsewhere()):
            raise TypeError(wrong)
        return await make(*args, **kwargs)

    return connect


@_explains
async def connect_async(
    where: Place,
    /,
    *,
    scope: str,
    model: Model | ModelChoice = None,
    embedder: EmbedderChoice = None,
    profile: Profile = "default",
    retrieval: Retrieval | Search | None = None,
    learning: Learning | None = None,
    evidence: Evidence | float | None = None,
    safety: Safety | TrustPolicy | None = None,
    parts: Parts | None = None,
) -> AsyncReasoningBank:
    """Open a bank, and make it if it is not there yet.

    What belongs together is one frozen object of settings. A field that is not given is the profile's. A string or a
    number stands for the common case. With the environment variable `LESSONBANK_OFF=1` the bank opens nothing and every
    call does nothing and says so.

    Args:
        where: a file, `:memory:` for a bank that ends with the process, `File(path, read_only=True)`, a database of
            PostgreSQL with pgvector (`postgresql://USER:PASSWORD@HOST/DATABASE`), or a server (`https://HOST`,
            `Server(url, api_key=…)`), which decides every setting but the scope; or a store of your own, which is
            closed with the bank.
        scope: whose memory this is, a path such as `acme/support`. Nothing of another scope is ever read.
        model: who judges and extracts: `"provider:model"`, a function from a prompt to a text, a mapping of roles, or
            `Model(name, base_url=…, api_key=…, timeout=…)`. `None`: only ground truth and errors decide, and lessons
            are drawn from the runs' own words (their provenance says `extractive`).
        embedder: `provider:model`, `sentence-transformers:NAME`, `fastembed:NAME`, `hashing`, `lexical`, or an
            `Embedder`. `None`: what this bank was made with; for a new one the best there is. A provider's embedder
            sends the text of tasks to that provider.
        profile: `default`, or `paper` for exactly the published method.
        retrieval: `dense`, `lexical`, `hybrid`, or `Retrieval(…)`.
        learning: `Learning(…)`: prompts, consolidation, thresholds, how long runs are kept.
        evidence: a probability, or `Evidence(…)`: what is withheld so that effects can be measured. By default about
            15 % of the tasks that find lessons get none, 5 % once memory clearly helps, and of several lessons each is
            also left out alone (see `AdaptiveHoldout`); `Evidence(holdout=None)` turns it off.
        safety: a trust policy such as `reviewed`, or `Safety(…)`: what may be remembered and shown.
        parts: `Parts(…)`: a judge, an extractor, a retriever, a consolidator or hooks of your own.

    Raises:
        UsageError: an argument is wrong; the message says which and what to do.
        MissingExtra: an optional dependency is not installed.
        StoreUnavailable, VersionMismatch: the file cannot be used.
    """
    scope = check_scope(scope)
    where = where if is_instance(where, (File, Server)) or is_store(where) else File(cast("str | Path", where))
    one_of(profile, "profile=", get_args(Profile))
    if is_instance(where, (File, Server)) and is_remote(where) and not _is_off():
        return open_remote(
            where,
            scope=scope,
            model=model,
            embedder=embedder,
            profile=None if profile == "default" else profile,
            retrieval=retrieval,
            learning=learning,
            evidence=evidence,
            safety=safety,
            parts=parts,
        )
    model = model if is_instance(model, Model) else Model(model) if model is not None else None
    retrieval = grouped(retrieval, Retrieval, "retrieval", short=Retrieval)
    learning = grouped(learning, Learning, "learning")
    evidence = grouped(evidence, Evidence, "evidence", short=lambda holdout: Evidence(holdout=holdout))
    safety = grouped(safety, Safety, "safety", short=Safety)
    parts = grouped(parts, Parts, "parts")
    consolidation: Consolidation = chosen(learning.consolidation, "append" if profile == "paper" else "recognise")
    recognises = consolidation == "recognise" and parts.consolidator is None
    additions = takes_additions(learning, profile, recognises=recognises)
    if off := _is_off():  # what needs a model or an embedder would ask for one
        model, embedder, learning = None, "lexical", replace(learning, topics=UNSET)
        retrieval = replace(retrieval, by=UNSET, level="experience", fit="none")
    limit = chosen(retrieval.limit, 1 if profile == "paper" else LIMIT)
    policy = choose_measuring(evidence.holdout, profile)
    roles = resolve_models(model, lambda: store)
    fitter = choose_fitter(retrieval, roles.fit)
    intake = choose_intake(safety.redact, safety.admission, roles.extractor or roles.judge, profile)
    store = switched_off() if off else await open_store(where)
    try:
        if not off:
            await warn_unprotected(safety.trust, store)
        selection = await choose_embedder(embedder, store=store, scope=scope, model=model)
        search, bare = choose_retrieval(
            retrieval, parts.retriever, store=store, embedder=selection.embedder, profile=profile
        )
        search = TrustFilter(search, safety.trust)
        ledger = await to_thread.run_sync(lambda: measuring(store, policy, act=evidence.act, trust=safety.trust))
        kit = await to_thread.run_sync(lambda: _equip(profile, learning, retrieval, roles))
        consolidator = choose_consolidator(
            consolidation,
            bare,
            roles.extractor,
            selection.embedder,
            given=parts.consolidator,
            store=store,
            trust=safety.trust,
            additions=additions,
            caps=safety.caps,
            unique_wording=profile != "paper",
        )
        topics = choose_topics(learning.topics, store, roles.extractor, profile, measured=policy != Holdout(0.0, 0.0))
        place = "" if off else await to_thread.run_sync(spool_place, where)
    except BaseException:
        with CancelScope(shield=True):
            await store.close()
        raise
    settings = {
        "store": named_place(where),
        "scope": scope,
        "profile": f"{profile} ({learning.domain} prompts)",
        "model": roles.description,
        "embedder": selection.description,
        "retriever": search.name,
        **kit.description,
        **{name: display_name(part) for name in kit.description if (part := getattr(parts, name))},
        "holdout": described(policy),
        **describe_intake(intake),
        "trust": safety.trust,
        "limit": limit,
        "fit": retrieval.fit,
        "budget": chosen(retrieval.budget, BUDGET),
        "consolidation": consolidation if parts.consolidator is None else display_name(parts.consolidator),
        "additions": additions,
        "topics": "off" if topics is None else "model" if topics.asks_model else "words",
        **{name: getattr(learning, name) for name in _AS_GIVEN},
        "act": evidence.act,
        "observe": evidence.observe,
        **({"off": OFF} if off else {}),
    }
    bank_parts = BankParts(
        retriever=search,
        injector=kit.injector,
        fitter=fitter,
        judge=Abstaining(promised(parts.judge, Verdict, name="judge") or kit.judge, learning.abstain),
        extractor=promised(parts.extractor, Extraction, name="extractor") or kit.extractor,
        consolidator=consolidator,
        topics=topics,
        ledger=ledger,
        intake=intake,
        scaler=kit.scaler,
        reflector=roles.extractor,
        previews=PreviewFactory(
            asked=retrieval,
            own=parts.retriever,
            store=store,
            embedder=selection.embedder,
            profile=profile,
            trust=safety.trust,
            injector=kit.injector,
            domain=learning.domain,
        ),
        hooks=tuple(parts.hooks),
    )
    return AsyncReasoningBank(
        store,
        bank_parts,
        BankOptions(
            limit=limit,
            fit=retrieval.fit,
            success_at=learning.success_at,
            keep_runs=learning.keep_runs,
            keep_lessons=learning.keep_lessons,
            sleep_after=learning.sleep_after,
            reflect_every=learning.reflect_every,
            submits_here=learning.submit == "here",
            unique_wording=profile != "paper",
            corroborates=safety.trust == "corroborated",
            shows_known=profile != "paper" and recognises,
            observe=evidence.observe,
            place=place,
            off=off,
            settings=settings,
        ),
        scope=scope,
    )


def _waiting(make: Callable[P, Coroutine[Any, Any, AsyncReasoningBank]], /) -> Callable[P, ReasoningBank]:
    signature = inspect.signature(make).replace(return_annotation=ReasoningBank)

    def connect(*args: P.args, **kwargs: P.kwargs) -> ReasoningBank:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            wrong = no_such_keyword(make, "connect", kwargs, besides=_elsewhere())
            raise TypeError(wrong or f"connect(): {error}") from None
        return ReasoningBank(run_sync(make(*args, **kwargs)))

    connect.__doc__, connect.__qualname__ = make.__doc__, "connect"
    connect.__signature__ = signature  # type: ignore[attr-defined]  # help() shows the parameters and the right result
    return connect


connect = _waiting(connect_async)


def _is_off() -> bool:
    return os.environ.get("LESSONBANK_OFF", "").strip().lower() not in ("", "0", "false", "no")


def _equip(profile: Profile, learning: Learning, retrieval: Retrieval, roles: Any) -> Components:
    """Off the loop: it reads prompts and tables, and loads what `import lessonbank` leaves for later."""
    from ._profiles import build_parts

    read_tables()
    return build_parts(
        profile,
        learning=learning,
        roles=roles,
        budget=chosen(retrieval.budget, BUDGET),
        preface=chosen(retrieval.preface, None),
    )
