"""From a name, or a TOML table, to an arm."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from lessonbank.errors import UsageError

from ._interface import Factory, Memory, Setting
from .awm import AllWorkflowsMemory, WorkflowMemory
from .bank import BankMemory
from .controls import MirrorMemory, PlaceboMemory, RandomMemory, ShuffledMemory
from .options import Options
from .plain import NoMemory, OracleMemory
from .synapse import SynapseMemory

ArmName: TypeAlias = Literal[
    "none",
    "placebo",
    "random",
    "shuffled",
    "synapse",
    "awm",
    "awm-multi",
    "success-only",
    "reasoningbank-paper",
    "lessonbank",
    "a/a",
    "a/a-none",
    "mirror",
    "oracle",
]


class _Kept(Protocol):
    """An arm that keeps a bank."""

    def __call__(self, setting: Setting, options: Options, /) -> Memory: ...


_STANDARD = Options()


@dataclass(frozen=True, slots=True)
class Base:
    """A class of arms and how it is set unless a table says otherwise."""

    make: _Kept
    options: Options = _STANDARD

    def __call__(self, setting: Setting, /) -> Memory:
        return self.make(setting, self.options)


_ONLY_SUCCESS = Options(failures=False)
_BASES: Mapping[str, Base] = {
    "placebo": Base(PlaceboMemory),
    "random": Base(RandomMemory),
    "shuffled": Base(ShuffledMemory),
    "synapse": Base(SynapseMemory, _ONLY_SUCCESS),
    "awm": Base(WorkflowMemory, _ONLY_SUCCESS),
    "awm-multi": Base(AllWorkflowsMemory, _ONLY_SUCCESS),
    "success-only": Base(BankMemory, _ONLY_SUCCESS),
    "reasoningbank-paper": Base(BankMemory, Options(profile="paper")),
    "lessonbank": Base(BankMemory),
    "a/a": Base(BankMemory),
}
_PLAIN: Mapping[str, Factory] = {
    "none": lambda setting: NoMemory(),
    "a/a-none": lambda setting: NoMemory(),
    "mirror": MirrorMemory,
    "oracle": OracleMemory,
}
_KEYS = tuple(field.name for field in fields(Options))


def arm_from(choice: str | Mapping[str, Any], /) -> Factory:
    """The arm of a name, of a name with settings (`lessonbank:limit=5,retrieval=hybrid`), or of a table.

    A table holds a `base`, which is an arm that keeps a bank (`lessonbank` unless it says), and any of the settings of
    `Options`; the base's own settings stay where the table is silent.

    Raises:
        UsageError: no such arm, a key that no arm has, or a value that cannot be.
    """
    table = _read(choice) if isinstance(choice, str) else dict(choice)
    name = table.pop("base", "lessonbank")
    if not isinstance(name, str):
        raise UsageError(f"an arm's base is the name of an arm; got {name!r}")
    if name in _PLAIN:
        if table:
            raise UsageError(f"the arm {name!r} keeps no bank and takes no settings; it was given {sorted(table)[0]!r}")
        return _PLAIN[name]
    if name not in _BASES:
        raise UsageError(f"there is no arm {name!r}: use one of {', '.join((*_PLAIN, *_BASES))}")
    if unknown := sorted(set(table) - set(_KEYS)):
        raise UsageError(f"an arm has no setting {unknown[0]!r}: its settings are {', '.join(_KEYS)}")
    base = _BASES[name]
    return replace(base, options=Options(**{**asdict(base.options), **table}))


def name_of(table: Mapping[str, Any], /) -> str:
    """The name with settings that means the same as `table`, keys in order: what a record keeps of an arm.

    Raises:
        UsageError: as `arm_from`.
    """
    arm_from(table)
    settings = ",".join(f"{key}={_written(table[key])}" for key in sorted(table) if key != "base")
    base = cast("str", table.get("base", "lessonbank"))
    return f"{base}:{settings}" if settings else base


def with_embedder(name: str, embedder: str, /) -> str:
    """The arm of that name, whose bank searches by the vectors of `embedder`; one without a bank stays as it is.

    Raises:
        UsageError: as `arm_from`.
    """
    base = name.partition(":")[0]
    return name_of({**_read(name), "embedder": embedder, "retrieval": "dense"}) if base in _BASES else name


def read_arms(path: str | Path, /) -> dict[str, str]:
    """The arms of a TOML file, `[arm.NAME]` each: by NAME, what `arm_from` and `play` take.

    Raises:
        UsageError: the file cannot be read, holds no arm, or one that cannot be; the sentence names it.
    """
    try:
        told = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the arms in {path} cannot be read: {error}") from error
    arms = told.get("arm")
    if not isinstance(arms, dict) or not arms or set(told) != {"arm"}:
        raise UsageError(f"{path} should hold tables [arm.NAME] with the settings of each arm, and nothing else")
    return {name: _named(name, table) for name, table in cast("dict[str, Any]", arms).items()}


def _named(name: str, table: object) -> str:
    if not isinstance(table, dict):
        raise UsageError(f"arm {name!r} should be a table [arm.{name}] with settings; got {table!r}")
    try:
        return name_of(cast("dict[str, Any]", table))
    except UsageError as error:
        raise UsageError(f"arm {name!r}: {error}") from error


def _read(name: str) -> dict[str, Any]:
    base, _, rest = name.partition(":")
    settings = [part.partition("=") for part in rest.split(",") if part.strip()]
    return {"base": base, **{key.strip(): _value(text.strip()) for key, _, text in settings}}


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Arms(dict[str, Factory]):
    """The arms that have a name, in the order of a table; a name with settings is understood besides."""

    def __missing__(self, name: str) -> Factory:
        return arm_from(name)


ARMS: Mapping[str, Factory] = _Arms({name: arm_from(name) for name in get_args(ArmName)})
"""Every named arm. A name with settings, such as `lessonbank:limit=5`, is looked up here too."""
