"""No value in any place of any public call brings out an error of Python: it works, or one typed sentence says why."""

from __future__ import annotations

import inspect
import random
import shutil
import warnings
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pytest
from hostile_values import VALUES

import lessonbank
from lessonbank import importers
from lessonbank.contracts import settings as config
from lessonbank.contracts.records import (
    Action,
    Experience,
    Extraction,
    Lesson,
    Observation,
    Recall,
    Record,
    Run,
    Step,
    ToolCall,
    Trajectory,
    Usage,
    Verdict,
)
from lessonbank.errors import Conflict, LessonbankError, NotFound

LONGEST = 500
VIEWS = ("lessons", "runs", "recalls", "history", "admin")
MESSAGES = [{"role": "user", "content": "Cancel order W1"}, {"role": "assistant", "content": "Done."}]


def _agent(task: str, memory: str) -> object:
    return [{"role": "user", "content": task}, {"role": "assistant", "content": f"{memory} done"}]


@dataclass
class Call:
    """A public call with arguments that work, and the parameters that get others."""

    name: str
    function: Callable[..., Any]
    given: dict[str, Any] = field(default_factory=dict[str, Any])

    def parameters(self) -> list[str]:
        return [name for name in inspect.signature(self.function).parameters if name not in ("self", "progress")]

    def __call__(self, **changed: Any) -> Any:
        """Positional where the parameter is; what is not given is left out."""
        given = {**self.given, **changed}
        args, keywords = list[Any](), dict[str, Any]()
        for name, parameter in inspect.signature(self.function).parameters.items():
            if name not in given:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(given[name] if name not in changed else [given[name]])
            elif parameter.kind is parameter.POSITIONAL_ONLY:
                args.append(given[name])
            else:
                keywords[name] = given[name]
        return self.function(*args, **keywords)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with a run that was learned, one that waits, a recall, and an export beside it."""
    path = tmp_path_factory.mktemp("template") / "bank.db"
    with lessonbank.connect(path, scope="acme", embedder="lexical") as bank:
        bank.lessons.add(title="Check the order", content="Look at the order first.", task="Cancel order W1", by="Ana")
        bank.lessons.add(title="Weigh it", content="Weigh the parcel.", task="Ship a parcel", by="Ana")
        recall = bank.retrieve("Cancel order W1")
        bank.learn(MESSAGES, recall=recall, outcome="success")
        bank.learn([{"role": "user", "content": "Refund W2"}, {"role": "assistant", "content": "Hm."}])
        bank.admin.export(path.with_name("export.jsonl"))
    path.with_name("runs.jsonl").write_text('{"task": "t", "messages": [{"role": "user", "content": "x"}]}\n')
    return path


def _given(bank: lessonbank.ReasoningBank, folder: Path) -> dict[str, Any]:
    """For each parameter that has to be given, a value that works."""
    run, recall = bank.runs.list()[0], bank.recalls.list()[0]
    lesson = bank.lessons.get(next(c.lesson_id for one in bank.recalls.list() for c in one.candidates))
    return {
        "task": "Cancel order W3",
        "observation": "error: it is locked",
        "source": MESSAGES,
        "attempts": [Run(trajectory=run.trajectory, verdict=Verdict(outcome="success"))],
        "experience": Experience(scope="acme", task="t", lessons=(Lesson(title="a", content="b"),)),
        "tasks": [recall.task for recall in bank.recalls.list() if recall.candidates],
        "recall": recall,
        "of": run.trajectory.id,
        "agent": _agent,
        "verify": lambda run: True,  # pyright: ignore[reportUnknownLambdaType]
        "text": "order",
        "id": lesson.id,
        "lesson_id": lesson.id,
        "ids": (lesson.id,),
        "title": "Check first",
        "content": "Look before you act.",
        "by": "Ana",
        "reason": "because",
        "outcome": "failure",
        "at": 1,
        "a": 0,
        "b": 1,
        "to": 1,
        "experience_id": lesson.id,
        "path": folder / "out.jsonl",
        "days": 10_000.0,
        "name": "Ben",
        "action": "ls",
        "work": _work,
        "lost": "nothing is lost",
    }


async def _work() -> None:
    """What may be done in the background."""


def _methods(of: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(of):
        if not name.startswith("_") and name not in ("close", "aio") and callable(found := getattr(of, name)):
            yield name, found


REQUIRED_ONLY = inspect.Parameter.empty


def _call(name: str, function: Callable[..., Any], known: Mapping[str, Any], **more: Any) -> Call:
    told = {**known, **more}
    parameters = inspect.signature(function).parameters.items()
    needed = {
        name: told[name]
        for name, parameter in parameters
        if parameter.default is REQUIRED_ONLY and parameter.kind is not parameter.VAR_KEYWORD
    }
    return Call(name, function, needed | {key: more[key] for key in more if key in dict(parameters)})


def _calls(bank: lessonbank.ReasoningBank, folder: Path) -> Iterator[Call]:
    """Every public call, found by looking: the bank, its views, its attempts, `connect`, settings and importers."""
    known = _given(bank, folder)
    run_id = bank.runs.list()[0].trajectory.id
    special: dict[str, dict[str, Any]] = {
        "trial": {"without": known["id"], "max_runs": 2},
        "scale": {"k": 1, "learn": False},
        "tell": {"outcome": "failure"},
        "purge": {"lesson": known["id"], "preview": True},
        "runs.get": {"id": run_id},
        "runs.correct": {"id": run_id},
        "recalls.get": {"id": known["recall"].id},
        "recalls.preview": {"task": "Open the valve"},
        "import_": {"path": folder / "export.jsonl"},
        "backup": {"path": folder / "copy.db"},
        "sync": {"path": folder / "CLAUDE.md"},
        "edit": {"title": "New"},
        "note": {"content": "The order is locked until noon."},
        "merge": {
            "ids": tuple(lesson.id for lesson in bank.lessons.list()),
            "title": "Check first",
            "content": "Look before you act.",
        },
        "narrow": {"to": "order"},
    }
    for name, function in _methods(bank):
        yield _call(name, function, known, **special.get(name, {}))
    for view in VIEWS:
        for name, function in _methods(getattr(bank, view)):
            more = special.get(f"{view}.{name}", special.get(name, {}))
            if name not in ("add_reviewer", "remove_reviewer"):
                yield _call(f"{view}.{name}", function, known, **more)
    yield Call("attempt block", _attempted(bank), {"task": "t", "source": MESSAGES, "action": "ls"})
    yield Call("connect", _connected, {"where": folder / "new.db", "scope": "acme"})
    for kind in (config.File, config.Server, config.Model, *_settings()):
        needed = {"path": folder / "new.db", "url": "https://x.example", "name": "openai:x"}
        known_here = {one.name: needed[one.name] for one in fields(kind) if one.name in needed}
        yield Call(kind.__name__, _used(kind, folder), known_here)
    yield Call("importers.read", _read, {"path": folder / "runs.jsonl"})
    yield Call("importers.detect", importers.detect, {"path": folder / "runs.jsonl"})
    yield _call("admin.add_reviewer", bank.admin.add_reviewer, known)  # last: it closes doors


def _settings() -> tuple[Any, ...]:
    return config.Retrieval, config.Learning, config.Evidence, config.Caps, config.Safety, config.Parts


def _attempted(bank: lessonbank.ReasoningBank) -> Callable[..., Any]:
    def attempted(
        *,
        task: Any,
        source: Any = None,
        limit: Any = None,
        metadata: Any = None,
        action: Any = "",
        observation: Any = None,
        thought: Any = "",
        answer: Any = None,
        outcome: Any = None,
        reward: Any = None,
        wait: Any = True,
    ) -> None:
        """An attempt raises nothing at all."""
        with bank.attempt(task, limit=limit, metadata=metadata) as attempt:
            attempt.step(action, observation, thought=thought)
            attempt.finish(source, answer=answer, outcome=outcome, reward=reward, wait=wait)
            assert isinstance(attempt.text, str)
            for note in attempt.notes:
                _check_line(note, most=2 * LONGEST)

    return attempted


def _connected(where: Any, /, **settings: Any) -> None:
    lessonbank.connect(where, **{"embedder": "lexical", **settings}).close()


_connected.__signature__ = inspect.signature(lessonbank.connect)  # type: ignore[attr-defined]


def _used(kind: Any, folder: Path) -> Callable[..., Any]:
    """Settings are made, and where they stand a bank is opened with them."""
    place = {config.Retrieval: "retrieval", config.Learning: "learning", config.Evidence: "evidence"}
    place |= {config.Safety: "safety", config.Parts: "parts"}

    def used(**told: Any) -> None:
        made = kind(**told)
        if kind in place:
            _connected(folder / "new.db", scope="acme", **{place[kind]: made})

    used.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
    return used


def _read(path: Any, /, **told: Any) -> None:
    list(importers.read(path, **told))


_read.__signature__ = inspect.signature(importers.read)  # type: ignore[attr-defined]


def _check_line(told: str, *, most: int = LONGEST) -> None:
    assert len(told) <= most, f"{len(told)} characters: {told[:200]}"
    assert told.isprintable(), repr(told[:300])


def _trouble(call: Callable[..., Any], parameter: str, value: str) -> str:
    """What is wrong with what came out; empty where it is fine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(**{parameter: VALUES[value]()})
    except LessonbankError as error:
        try:
            _check_line(str(error))
            assert error.code
        except AssertionError as problem:
            return f"{type(error).__name__}: {problem}"
    except Exception as error:  # noqa: BLE001 - every one is what this looks for
        return f"{type(error).__name__}: {str(error)[:160]}"
    return ""


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template.parent, tmp_path / "here"))


@pytest.fixture
def bank(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[lessonbank.ReasoningBank]:
    monkeypatch.chdir(folder)  # for what takes a text for the name of a file
    with lessonbank.connect(folder / "bank.db", scope="acme", embedder="lexical") as bank:
        yield bank


def test_every_call_works_with_what_is_meant_for_it(bank: lessonbank.ReasoningBank, folder: Path) -> None:
    calls = list(_calls(bank, folder))
    assert len(calls) > 50
    for call in calls:
        # Nothing came again or was merged here, and there is no model to ask.
        if call.name not in ("lessons.split", "lessons.unmerge", "reflect"):
            with suppress(Conflict, NotFound):  # such as restoring a lesson that is not retired
                call()


@pytest.mark.full
def test_a_sample_of_wrong_arguments_is_refused_in_one_sentence_each(
    bank: lessonbank.ReasoningBank, folder: Path
) -> None:
    chosen = random.Random(20).sample(list(_cases(bank, folder)), 250)
    told = [f"{call.name}({name}={value}): {t}" for call, name, value in chosen if (t := _trouble(call, name, value))]
    assert not told, "\n".join(told)


EVIL = ("evil object", "evil class", "liar")
"""What `isinstance` cannot be asked about."""


ODD = ("none", "one", "bytes", "nul", "surrogate", "long", "terminal")
"""What a caller may well have in the place of a name or a text."""
READERS = ("retrieve", "lift", "scoped", "connect", "history.state", "recalls.explain", "runs.get", "runs.correct")
READERS += ("lessons.get", "lessons.list", "lessons.search", "lessons.add", "admin.purge")


def _told(
    bank: lessonbank.ReasoningBank, folder: Path, values: Container[str], names: Container[str] | None
) -> list[str]:
    chosen = [(c, p, v) for c, p, v in _cases(bank, folder) if v in values and (names is None or c.name in names)]
    assert len(chosen) > 30
    return [f"{call.name}({name}={value}): {t}" for call, name, value in chosen if (t := _trouble(call, name, value))]


def test_an_object_that_raises_when_it_is_asked_for_its_class_is_refused_by_the_loop(
    bank: lessonbank.ReasoningBank, folder: Path
) -> None:
    told = _told(bank, folder, EVIL, ("learn", "submit", "judge", "Model", "Parts"))
    assert not told, "\n".join(told)


def test_an_odd_name_or_text_is_refused_in_one_short_printable_sentence(
    bank: lessonbank.ReasoningBank, folder: Path
) -> None:
    told = _told(bank, folder, ODD, READERS)
    assert not told, "\n".join(told)


@pytest.mark.full
def test_and_by_every_other_call(bank: lessonbank.ReasoningBank, folder: Path) -> None:
    told = _told(bank, folder, EVIL, None)
    assert not told, "\n".join(told)


CALLED = ("function", "class", "raising", "evil function")
"""Values that an agent may be. What an agent raises reaches the caller."""


def _cases(bank: lessonbank.ReasoningBank, folder: Path) -> Iterator[tuple[Call, str, str]]:
    for call in _calls(bank, folder):
        for parameter in call.parameters():
            for value in VALUES:
                if parameter not in ("agent", "verify") or value not in CALLED:
                    yield call, parameter, value


@pytest.mark.release
@pytest.mark.parametrize("part", ["bank", *VIEWS, "attempt block", "connect", "settings", "importers"])
def test_every_wrong_argument_is_refused_in_one_sentence(
    part: str, bank: lessonbank.ReasoningBank, folder: Path
) -> None:
    told, tried = list[str](), 0
    for call, parameter, value in _cases(bank, folder):
        if _part(call.name) == part:
            tried += 1
            if trouble := _trouble(call, parameter, value):
                told.append(f"{call.name}({parameter}={value}): {trouble}")
    print(f"{part}: {tried} calls, {len(told)} in trouble")
    assert not told, f"{len(told)} of {tried}\n" + "\n".join(told[:400])
    assert tried > 100


def _part(name: str) -> str:
    if name[0].isupper():
        return "settings"
    first = name.partition(".")[0]
    return first if first in (*VIEWS, "attempt block", "connect", "importers") else "bank"


RECORDS = (Action, Experience, Extraction, Lesson, Observation, Recall, Run, Step, ToolCall, Trajectory, Usage, Verdict)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # pydantic asks values for their class
@pytest.mark.parametrize("record", RECORDS, ids=[record.__name__ for record in RECORDS])
def test_a_record_of_wrong_values_is_refused_in_one_sentence(record: type[Record]) -> None:
    cases = [(name, value) for name in record.model_fields for value in VALUES]
    told = [f"{record.__name__}({name}={value}): {t}" for name, value in cases if (t := _trouble(record, name, value))]
    assert not told, "\n".join(told)


def test_work_that_cannot_be_begun_is_refused_and_ends_nothing() -> None:
    with lessonbank.connect(":memory:", scope="a") as bank:
        for value in ("one", "5000 digits", "raising", "evil object"):
            with pytest.raises(LessonbankError):
                bank.in_background(_work, lost=VALUES[value]())
        assert bank.admin.counts().lessons == 0


def test_a_trajectory_and_its_id_are_texts_also_in_a_record_made_without_checks() -> None:
    wrong = Trajectory(task="t").model_copy(update={"task": None})
    with lessonbank.connect(":memory:", scope="a") as bank, pytest.raises(LessonbankError):
        bank.learn(wrong, outcome="success")
