"""Settings objects from single settings: for tests and experiments that vary one of many."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final, cast

from lessonbank.contracts.settings import Evidence, Learning, Model, Parts, Retrieval, Safety
from lessonbank.errors import UsageError

_GROUPS: Final[dict[str, type]] = {
    "retrieval": Retrieval,
    "learning": Learning,
    "evidence": Evidence,
    "safety": Safety,
    "parts": Parts,
}
_OF_MODEL: Final = ("base_url", "api_key", "timeout")
_DIRECT: Final = ("model", "embedder", "profile", "scope")


def grouped(**single: Any) -> dict[str, Any]:
    """The arguments of `connect` for single settings: `grouped(limit=3, holdout=None)` is
    `{"retrieval": Retrieval(limit=3), "evidence": Evidence(holdout=None)}`.

    Settings objects may stand among them. Raises UsageError for a setting that does not exist.
    """
    made: dict[str, Any] = {name: single.pop(name) for name in _DIRECT if name in single}
    of_model = {name: single.pop(name) for name in _OF_MODEL if name in single}
    if of_model and made.get("model") is not None:
        made["model"] = Model(made["model"], **of_model)
    if callable(single.get("consolidation")):
        single["consolidator"] = single.pop("consolidation")
    for name, kind in _GROUPS.items():
        given = single.pop(name, None)
        given = Retrieval(cast("Any", given)) if name == "retrieval" and isinstance(given, str) else given
        settings = {field.name: single.pop(field.name) for field in fields(kind) if field.name in single}
        if given is not None or settings:
            made[name] = replace(given if given is not None else kind(), **settings)
    if single:
        raise UsageError(f"connect has no setting {next(iter(single))!r}")
    return made
