"""Names the keywords of a function that takes `**options`, for everything that reads its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def with_keywords(function: F, keywords: Sequence[tuple[Parameter, Any]], /, *, evaluate: bool = False) -> F:
    """`function`, whose signature and type hints name `keywords` in the place of its `**options`.

    Each keyword comes with its type, which the parameter may write as text. `evaluate`: the types of the function's
    own parameters are no texts in the signature, for readers that do not evaluate them.
    """
    signature = inspect.signature(function, eval_str=evaluate)
    own = [one for one in signature.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    gone = signature.parameters.keys() - {one.name for one in own}
    hints = {name: kind for name, kind in function.__annotations__.items() if name not in gone}
    function.__annotations__ = {**hints, **{one.name: kind for one, kind in keywords}}
    written = signature.replace(parameters=[*own, *(one for one, _ in keywords)])
    setattr(function, "__signature__", written)  # noqa: B010 - a function has no such attribute by its type
    return function
