"""Names of a package whose modules are loaded when the names are first asked for: few programs use them all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def on_first_use(package: str, places: Mapping[str, str], /) -> Callable[[str], object]:
    """The `__getattr__` of a package. `places` has the module of each name, as in `{"connect": ".wiring"}`."""

    def load(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
