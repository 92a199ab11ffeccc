"""From a file or a preset, and what a command line says otherwise, to an experiment."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from lessonbank.errors import UsageError
from lessonbank.guard import one_line
from lessonbank_bench.arms import with_embedder

from .records import Experiment, made, read_values
from .spreading import Spread, spread_arms

_PRESETS = "lessonbank_bench.presets"


def presets() -> tuple[str, ...]:
    """The names of the experiments that come with the package."""
    names = (path.name for path in files(_PRESETS).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def preset_values(name: str, /) -> dict[str, Any]:
    """What a preset says.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in presets():
        raise UsageError(f"there is no preset {one_line(name, limit=60)!r}; there are {', '.join(presets())}")
    return tomllib.loads(files(_PRESETS).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def asked(
    file: Path | None,
    /,
    *,
    preset: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    tasks: int | None = None,
    settings: Sequence[str] = (),
    embedder: str | None = None,
    seeds: str | None = None,
    budget: Mapping[str, float | None] | None = None,
    spread: Spread | None = None,
) -> Experiment:
    """The experiment of a file or of a preset, with what is said besides in place of what it says.

    Args:
        file: a TOML file; give this or `preset`.
        preset: one of `presets()`.
        model: `provider:model`.
        base_url: an OpenAI-compatible server that offers it.
        tasks: how many for each seed.
        settings: `KEY=VALUE` each, for the environment.
        embedder: banks search by its vectors, in the place of what each arm says.
        seeds: as a file has them, such as `1-4`.
        budget: what a file's budget says otherwise.
        spread: each arm does its tasks several times, in each of these ways.

    Raises:
        UsageError: neither or both are given, or what they say together is no experiment.
    """
    if (file is None) == (preset is None):
        raise UsageError(f"give a file or a preset, one of the two; presets are {', '.join(presets())}")
    values = preset_values(preset) if preset is not None else read_values(file or Path())
    told = {"model": model, "base_url": base_url, "tasks": tasks, "seeds": seeds}
    values |= {key: value for key, value in told.items() if value is not None}
    source = f"preset {preset}" if preset else str(file)
    before = values.get("settings", {})
    if settings and not isinstance(before, dict):
        raise UsageError(f"{source}: settings are a table; got {one_line(str(before), limit=60)!r}")
    if settings:
        values["settings"] = {**before, **dict(map(_setting, settings))}
    if limits := {key: value for key, value in (budget or {}).items() if value is not None}:
        values["budget"] = {**values.get("budget", {}), **limits}
    if spread is not None:
        values |= spread_arms(values.get("arms", []), spread)
    if embedder is not None:
        values["arms"] = [_searching(arm, embedder) for arm in values.get("arms", [])]
    return made(values, source=source)


def _searching(arm: dict[str, Any], embedder: str) -> dict[str, Any]:
    return {**arm, "memory": with_embedder(str(arm.get("memory") or arm.get("name")), embedder)}


def _setting(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"a setting is KEY=VALUE; got {one_line(text, limit=60)!r}")
    try:
        return key.strip(), tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()
