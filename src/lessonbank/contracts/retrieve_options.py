"""The options of `retrieve`, written once: whatever makes a recall takes all of them, and names none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import Parameter
from typing import Any, Final, TypedDict, TypeVar, cast, get_args, get_type_hints

from lessonbank._base.checks import (
    a_flag,
    a_mapping,
    is_instance,
    maybe_count,
    maybe_one_of,
    set_frozen,
    some_seconds,
)
from lessonbank._base.signatures import with_keywords

from .records import Json
from .settings import Fit

F = TypeVar("F", bound=Callable[..., Any])


class RetrieveKeywords(TypedDict, total=False):
    """The fields of `RetrieveOptions` as keywords: type checkers cannot derive them."""

    limit: int | None
    trusted: bool
    own: bool
    fit: Fit | None
    metadata: Mapping[str, Json] | None
    patience: float


PATIENCE: Final = 2.0
"""Seconds that an agent waits for its memory."""
LEAST_PATIENCE: Final = 0.01
"""Seconds: in less, a disk has written nothing, and no server has answered."""


def some_patience(value: object, /) -> float:
    """`value`, seconds that somebody may wait for the memory. Raises UsageError."""
    return some_seconds(value, "patience=", above=LEAST_PATIENCE)


@dataclass(frozen=True, slots=True)
class Offer:
    """How an option is offered on the command line and as the argument of a tool."""

    help: str = ""
    short: str = ""
    """Its short form on the command line, such as `-k`."""
    least: int | None = None
    by_agent: bool = True
    """Whether an agent may set it that calls the bank as a tool. Else only who runs the server may."""
    most_by_agent: int | None = None


def _offered(default: Any, **offer: Any) -> Any:
    return field(default=default, metadata={"offer": Offer(**offer)})


@dataclass(frozen=True, slots=True)
class RetrieveOptions:
    """What a caller asks of `retrieve`.

    Raises:
        UsageError: a value is wrong.
    """

    limit: int | None = _offered(
        None, help="How many past experiences to draw on.", short="-k", least=1, most_by_agent=50
    )
    """`None`: as many as the bank does. Lessons are counted where these are searched."""
    trusted: bool = _offered(False, help="Show only lessons that a person approved or evidence supports.")
    """Whether only active lessons are shown: for a text that goes where instructions stand."""
    own: bool = _offered(False, help="Also leave out what others brought, until a person approves it.")
    """Whether a lesson waits for a person that no run of the caller's own taught: what was imported, was taught by
    another person, quotes a tool, or was written by a model and not checked for harm. Active lessons are shown."""
    fit: Fit | None = _offered(  # noqa: RUF009 - a field
        None, help="Whether the model fits the lessons to the task first: none, select or rewrite.", by_agent=False
    )
    """`none`, `select` or `rewrite`, see `Retrieval(fit=)`. `None`: as the bank does."""
    metadata: Mapping[str, Json] | None = _offered(
        None, help="KEY=TEXT, or KEY:=JSON for a number, true or false. May be given several times.", by_agent=False
    )
    """Kept with the receipt, for example `{"user": "u-17"}`."""
    patience: float = _offered(PATIENCE, help="Seconds that the agent waits for memory.", by_agent=False)
    """Seconds in which there is a recall, or an error. In `attempt`, also those until the run is safely kept. A search
    by vectors takes three quarters of them at most: then words stand in, and a note says so."""

    def __post_init__(self) -> None:
        a_flag(self.trusted, "trusted=")
        a_flag(self.own, "own=")
        maybe_one_of(self.fit, "fit=", get_args(Fit))
        metadata = None if self.metadata is None else a_mapping(self.metadata)
        seconds = some_patience(self.patience)
        set_frozen(self, limit=maybe_count(self.limit), metadata=metadata, patience=seconds)

    @property
    def keywords(self) -> RetrieveKeywords:
        """Return the options as keywords of `retrieve`."""
        return cast("RetrieveKeywords", {name: getattr(self, name) for name in OPTIONS})

    def for_agent(self, asked: Mapping[str, Any], /) -> RetrieveOptions:
        """What an agent gets that asks for `asked`, where these are what the owner of the server chose.

        An agent sets what the owner left as it is by default, and asks for fewer where the owner said how many. So it
        can switch `trusted` on and not off. Raises UsageError.
        """
        keywords = {
            name: value for name, value in asked.items() if OPTIONS[name].may_become(value, getattr(self, name))
        }
        return RetrieveOptions(**cast("RetrieveKeywords", {**self.keywords, **keywords}))


@dataclass(frozen=True, slots=True)
class Option:
    """One field of `RetrieveOptions`."""

    name: str
    kind: Any
    default: Any
    offer: Offer
    written: str
    """Its type as the source says it."""

    def may_become(self, value: object, owned: object, /) -> bool:
        """Whether an agent may ask for `value` where the owner of the server chose `owned`."""
        if not self.offer.by_agent or value == self.default:
            return False
        return owned == self.default or (is_instance(value, int) and is_instance(owned, int) and value < owned)


def _options() -> Mapping[str, Option]:
    kinds = get_type_hints(RetrieveOptions)
    return {
        field.name: Option(
            field.name, kinds[field.name], field.default, field.metadata.get("offer", Offer()), str(field.type)
        )
        for field in fields(RetrieveOptions)
    }


OPTIONS: Final = _options()
"""Every option by its name."""


def takes_retrieve_options(function: F, /) -> F:
    """`function`, whose signature names the options in the place of `**options: Unpack[RetrieveKeywords]`."""
    keyword = Parameter.KEYWORD_ONLY
    named = [
        (Parameter(option.name, keyword, default=option.default, annotation=option.written), option.kind)
        for option in OPTIONS.values()
    ]
    return with_keywords(function, named)


def check_names(options: Mapping[str, object], /) -> None:
    """Raises TypeError for a keyword that is no option, as a call would."""
    if unknown := options.keys() - OPTIONS.keys():
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
