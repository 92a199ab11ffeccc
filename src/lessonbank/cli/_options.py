"""The options several commands share, so that one word means one thing everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from inspect import Parameter
from typing import Annotated, Any, TypeAlias, TypeVar, cast, get_args, get_origin

import typer

from lessonbank._base.signatures import with_keywords
from lessonbank.contracts.records import Json as JsonValue
from lessonbank.contracts.retrieve_options import OPTIONS, Option, RetrieveKeywords
from lessonbank.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
MOMENT = "A change's number (0: before the first), or a time such as 2026-03-01T12:00+01:00."

Bank: TypeAlias = Annotated[
    str,
    typer.Option(
        "--bank", envvar="LESSONBANK_BANK", help="The bank's file, or the address of its server.", show_default=False
    ),
]
Place: TypeAlias = Annotated[str | None, typer.Argument(help="The same as --bank.", show_default=False)]
"""For the commands that take their bank without an option, too."""
MaybeBank: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bank", envvar="LESSONBANK_BANK", help="The bank's file, or the address of its server.", show_default=False
    ),
]
Scope: TypeAlias = Annotated[
    str,
    typer.Option(
        "--scope", envvar="LESSONBANK_SCOPE", help="Whose memory: a path such as acme/support.", show_default=False
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
By: TypeAlias = Annotated[
    str, typer.Option("--by", envvar="LESSONBANK_BY", help="Your name; the journal keeps it.", show_default=False)
]
MaybeBy: TypeAlias = Annotated[
    str | None, typer.Option("--by", envvar="LESSONBANK_BY", help="Your name; the journal keeps it.")
]
Reason: TypeAlias = Annotated[str, typer.Option("--reason", help="Why; the journal keeps it.", show_default=False)]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, help="List at most this many.")]
After: TypeAlias = Annotated[
    str | None, typer.Option("--after", help="Go on after this id, the last one of the list before.")
]
Text: TypeAlias = Annotated[str | None, typer.Option("--text", help="Only those that contain all these words.")]
Metadata: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--metadata", help="KEY=TEXT, or KEY:=JSON for a number, true or false. May be given several times."),
]
Model: TypeAlias = Annotated[
    str | None, typer.Option("--model", help="Who judges and extracts: provider:model. Without: ground truth only.")
]
BaseUrl: TypeAlias = Annotated[
    str | None, typer.Option("--base-url", help="An OpenAI-compatible server that offers --model.")
]
Domain: TypeAlias = Annotated[str, typer.Option("--domain", help="Which prompts: general, web or code.")]
Profile: TypeAlias = Annotated[str, typer.Option("--profile", help="default, or paper (the published method).")]
Embedder: TypeAlias = Annotated[
    str | None, typer.Option("--embedder", help="lexical, hashing, fastembed:NAME, provider:NAME. Default: the bank's.")
]
Timeout: TypeAlias = Annotated[
    float, typer.Option("--timeout", min=0.001, help="Seconds to wait for one answer of the model.")
]
Trust: TypeAlias = Annotated[str, typer.Option("--trust", help="What may be shown: open, corroborated or reviewed.")]
Holdout: TypeAlias = Annotated[
    float | None, typer.Option("--holdout", help="How often a lesson is withheld to measure what it does; 0: never.")
]


def needs(given: Mapping[str, object], why: str, /) -> None:
    """Refuse a call without one of these options. Raises BadParameter."""
    if missing := [name for name, value in given.items() if not value]:
        raise typer.BadParameter(why, param_hint=missing[0])


def one_bank(place: str | None, bank: str | None, /) -> str:
    """The bank that a command was given, with `--bank` or without. Raises BadParameter."""
    chosen = place or bank
    if not chosen:
        raise typer.BadParameter("say which bank: --bank bank.db", param_hint="--bank")
    return chosen


def needs_words(given: Mapping[str, str | None], /) -> None:
    """Refuse an option that was given blank, as an unset variable of a shell gives it. Raises BadParameter."""
    if blank := [name for name, value in given.items() if value is not None and not value.strip()]:
        raise typer.BadParameter("it is blank: say what is meant, or leave it out", param_hint=blank[0])


def on_the_line(context: typer.Context, /) -> dict[str, str]:
    """The parameters on the command line itself, each with how it is written. The environment says none."""
    sources = {parameter: context.get_parameter_source(parameter.name or "") for parameter in context.command.params}
    given = [parameter for parameter, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    return {parameter.name or "": parameter.opts[0] for parameter in given}


def takes_retrieve_options(command: F, /) -> F:
    """`command`, with an option for each of `retrieve`; `given` reads them."""
    keyword = Parameter.KEYWORD_ONLY
    named = [Parameter(option.name, keyword, default=None, annotation=_offered(option)) for option in OPTIONS.values()]
    return with_keywords(command, [(parameter, parameter.annotation) for parameter in named], evaluate=True)


def given(asked: Mapping[str, Any], /) -> RetrieveKeywords:
    """The options of `retrieve` that the caller gave. Raises UsageError."""
    options = {name: value for name, value in asked.items() if value is not None}
    return cast("RetrieveKeywords", {n: pairs(value) if _is_pairs(n) else value for n, value in options.items()})


def _offered(option: Option) -> Any:
    names = [f"--{option.name.replace('_', '-')}", *filter(None, [option.offer.short])]
    declaration = typer.Option(*names, min=option.offer.least, help=option.offer.help)
    return Annotated[list[str] | None if _is_pairs(option.name) else option.kind | None, declaration]


def _is_pairs(name: str) -> bool:
    """Whether an option is a mapping, which is given as KEY=VALUE."""
    kind = OPTIONS[name].kind
    return any(get_origin(annotation) is Mapping for annotation in (kind, *get_args(kind)))


def model_of(name: str | None, base_url: str | None = None, timeout: float = 120.0) -> Any:
    """What `connect` takes for the options about a model.

    Raises:
        UsageError: a server without the name of a model.
    """
    from lessonbank import Model

    if name is None and base_url is not None:
        raise UsageError("--base-url needs the name of a model there: give --model")
    return None if name is None else Model(name, base_url=base_url, timeout=timeout)


def settings_of(
    model: Any,
    /,
    *,
    domain: str,
    profile: str = "default",
    embedder: str | None = None,
    trust: str = "open",
    holdout: float | None = None,
    **learning: Any,
) -> dict[str, Any]:
    """What `connect` takes for a model and these options. `learning`: more fields of `Learning`.

    What is as it is by default is left out, because a server refuses every setting: it has its own.

    Raises:
        UsageError: a value is wrong.
    """
    from lessonbank import Evidence, Learning

    asked = Learning(domain=cast("Any", domain), **learning)
    return {
        "model": model,
        "embedder": embedder,
        "profile": profile,
        "learning": None if asked == Learning() else asked,
        "safety": None if trust == "open" else trust,
        "evidence": None if holdout is None else Evidence(holdout=holdout or None),
    }


def moment(text: str, /) -> int | datetime:
    """What `MOMENT` describes.

    Raises:
        UsageError: it is neither.
    """
    try:
        if text.isascii() and text.isdigit():
            return int(text)
        if (when := datetime.fromisoformat(text)).tzinfo:
            return when
    except ValueError:
        pass  # it is neither
    raise UsageError(f"{text[:80]!r} is no moment: give a change's number, or a time with its zone")


def pairs(given: list[str] | None, /) -> dict[str, JsonValue] | None:
    """Metadata as it was given; `None` where none was.

    Raises:
        UsageError: not `KEY=TEXT` or `KEY:=JSON`.
    """
    return dict(map(_pair, given)) if given else None


def _pair(text: str) -> tuple[str, JsonValue]:
    key, equals, value = text.partition("=")
    if not equals or not key.rstrip(":"):
        raise UsageError(f"--metadata takes KEY=VALUE, as in user=u-17; got {text[:80]!r}")
    if not key.endswith(":"):
        return key, value
    try:
        return key[:-1], json.loads(value)
    except (ValueError, RecursionError):
        raise UsageError(f"{value[:80]!r} is not JSON: write {key[:40].rstrip(':')}=… for a text") from None
