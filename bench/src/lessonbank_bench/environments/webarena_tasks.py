"""WebArena's tasks as they are published, and what has to be there before one of them can be done."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from lessonbank.errors import UsageError
from lessonbank.guard import one_line

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "multi")
ADDRESSES = ("SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE")
"""Each is told in the environment variable of that name with `WA_` before it."""
_VIEW = {"width": 1500, "height": 1280}
"""As in the paper's runs."""


@dataclass(frozen=True, slots=True)
class WebTask:
    """One task: the published record, and what an experiment asks of it."""

    id: int
    sites: tuple[str, ...]
    intent: str
    template: int
    fuzzy: bool
    """Whether a language model of OpenAI's grades the answer."""
    spoken: bool
    """Whether the answer is graded at all; where it is not, the state of the site is."""
    record: Mapping[str, Any]


def read_tasks(path: Path, /) -> tuple[WebTask, ...]:
    """The tasks of a file in the published format, a JSON list, by ascending number.

    Raises:
        UsageError: there is no such file, or something in it is no task; the message says which.
    """
    try:
        records: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the tasks in {str(path)!r} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not JSON: {one_line(str(error), limit=200)}") from error
    if not isinstance(records, list):
        raise UsageError(f"{str(path)!r} should hold a list of tasks, as WebArena's test.raw.json does")
    found = [_task(record, place, path) for place, record in enumerate(cast("list[Any]", records))]
    return tuple(sorted(found, key=lambda task: task.id))


def of_site(tasks: Sequence[WebTask], site: str, /) -> tuple[WebTask, ...]:
    """The tasks of a site alone; `multi`: of several sites, without the map, as the paper counts them."""
    if site == "multi":
        return tuple(task for task in tasks if len(task.sites) > 1 and "map" not in task.sites)
    return tuple(task for task in tasks if task.sites == (site,))


def published() -> Path:
    """The file of tasks that comes with the package `libwebarena`.

    Raises:
        UsageError: it is not there.
    """
    spec = find_spec("webarena")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = next((path for folder in folders if (path := Path(folder) / "test.raw.json").is_file()), None)
    if found is None:
        raise UsageError("environment 'webarena' finds no test.raw.json in the package libwebarena: install it again")
    return found


def check_addresses(*, reset: bool) -> None:
    """Raises:
    UsageError: the address of a site is not told, or that of the service that resets them.
    """
    missing = [name for name in (f"WA_{name}" for name in ADDRESSES) if not os.environ.get(name)]
    if missing:
        raise UsageError(
            f"environment 'webarena' needs the address of your own WebArena in {_listed(missing)}, "
            "such as WA_SHOPPING=http://localhost:7770; a site that no task of yours visits may be 'todo'"
        )
    if reset and not os.environ.get("WA_FULL_RESET"):
        raise UsageError(
            "environment 'webarena': reset = true needs the address of the service that resets the sites in "
            "WA_FULL_RESET; without it, leave reset out and reset them yourself between two experiments"
        )


def check_grader(tasks: Sequence[WebTask], site: str, /) -> None:
    """Raises:
    UsageError: answers are graded by a model, and there is no key for it.
    """
    graded = sum(task.fuzzy for task in tasks)
    if graded and not os.environ.get("OPENAI_API_KEY"):
        raise UsageError(
            f"environment 'webarena': {graded} of the {len(tasks)} tasks of {site!r} are graded by fuzzy_match, which "
            "asks OpenAI's gpt-4-1106-preview: set OPENAI_API_KEY, or leave them out with fuzzy = false in [settings]"
        )


def check_tokenizer() -> None:
    """Raises:
    UsageError: nltk has none; the adapter would fetch it when it is imported.
    """
    data = import_module("nltk.data")
    try:
        data.find("tokenizers/punkt_tab")
    except LookupError:
        raise UsageError(
            "environment 'webarena' needs nltk's tokenizer to grade answers: python -m nltk.downloader punkt_tab"
        ) from None


def addressed(record: Mapping[str, Any], addresses: Mapping[str, str], /) -> dict[str, Any]:
    """A record with the addresses of the sites in the place of `__SHOPPING__` and the like.

    Args:
        addresses: by the names of `ADDRESSES`.
    """
    text = json.dumps(record)
    for name, address in addresses.items():
        text = text.replace(f"__{name}__", json.dumps(address)[1:-1])
    return cast("dict[str, Any]", json.loads(text))


def browser_task(seed: int, /, *, task: WebTask) -> Any:
    """The task as BrowserGym wants it: a subclass of a class that is there only where the adapter is."""
    base = import_module("browsergym.webarena.task").GenericWebArenaTask
    kind = cast("Any", type("WebArenaTask", (BrowserTask, base), {}))
    made = kind(seed, task_id=0)
    made.viewport, made.slow_mo, made.spoken = _VIEW, 0, task.spoken
    addresses = {name: os.environ[f"WA_{name}"] for name in ADDRESSES}
    made.task_configs = [addressed(task.record, addresses)]
    return made


class BrowserTask:
    """What is changed in the adapter's task, which stands behind this class in a subclass of both."""

    spoken: bool
    config_file: str | None
    evaluator: Any

    def validate(
        self, page: Any, chat_messages: Sequence[Mapping[str, Any]]
    ) -> tuple[float, bool, str, dict[str, Any]]:
        """Without an answer there is nothing to grade in one; the adapter has a model grade "whatever" at each step."""
        answered = bool(chat_messages) and chat_messages[-1]["role"] in ("assistant", "infeasible")
        grade = self.evaluator
        if self.spoken and not answered:
            self.evaluator = _nothing
        try:
            return cast("Any", super()).validate(page, chat_messages)
        finally:
            self.evaluator = grade

    def teardown(self) -> None:
        """The adapter writes each task to a file and leaves it there."""
        if self.config_file:
            Path(self.config_file).unlink(missing_ok=True)


def _nothing(**_asked: object) -> float:
    return 0.0


def _task(record: Any, place: int, path: Path) -> WebTask:
    try:
        grading = record["eval"]
        answers: Any = grading.get("reference_answers") or {}
        return WebTask(
            id=_int(record["task_id"]),
            sites=tuple(map(str, record["sites"])),
            intent=_said(record["intent"]),
            template=_int(record["intent_template_id"]),
            fuzzy="fuzzy_match" in answers,
            spoken="string_match" in grading["eval_types"],
            record=record,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        told = f"no {error.args[0]!r}" if isinstance(error, KeyError) else one_line(str(error), limit=120)
        raise UsageError(f"task {place} in {str(path)!r} is not in WebArena's format: {told}") from error


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} should be a whole number")
    return value


def _said(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"the intent {value!r} should be text")
    return value


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
