"""The arguments of the tool `recall`: the options of `retrieve` that an agent may set itself."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Annotated, Any, TypeVar

from pydantic import Field

from lessonbank._base.signatures import with_keywords
from lessonbank.contracts.retrieve_options import OPTIONS, Option

F = TypeVar("F", bound=Callable[..., Any])


def takes_retrieve_options(tool: F, /) -> F:
    """`tool`, with an argument for each option that is not the owner's alone."""
    mine = [one for one in OPTIONS.values() if one.offer.by_agent]
    keyword = Parameter.KEYWORD_ONLY
    named = [Parameter(one.name, keyword, default=one.default, annotation=_argument(one)) for one in mine]
    return with_keywords(tool, [(one, one.annotation) for one in named], evaluate=True)


def _argument(one: Option) -> Any:
    bounds = {"ge": one.offer.least, "le": one.offer.most_by_agent}
    told: dict[str, Any] = {name: bound for name, bound in bounds.items() if bound is not None}
    return Annotated[one.kind, Field(description=one.offer.help or None, **told)]
