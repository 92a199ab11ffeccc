"""What `connect` is handed: anything that cannot be is one clear sentence, and leaves the bank as it was."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lessonbank
from lessonbank import Evidence, File, Learning, Model, Parts, Retrieval, Safety, Server, Step, Trajectory, Verdict
from lessonbank.contracts.records import Add, Experience
from lessonbank.errors import LessonbankError, ReadOnly, UsageError
from lessonbank.evidence import AdaptiveHoldout
from lessonbank.testing import HashingEmbedder
from lessonbank.testing.settings import grouped

STUCK = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


class Nameless:
    async def generate(self, *_: Any, **__: Any) -> str:
        return "x"


def model(prompt: str) -> str:
    return "x"


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ({"scope": None}, "cannot be a scope"),
        ({"scope": 3}, "cannot be a scope"),
        ({"limit": "3"}, "limit=) is a whole number of at least 1"),
        ({"limit": 0}, "limit=) is a whole number of at least 1"),
        ({"budget": None}, "budget=) is a whole number of at least 100"),
        ({"budget": 5}, "budget=) is a whole number of at least 100"),
        ({"model": model, "timeout": 0}, "timeout"),
        ({"model": model, "timeout": "5"}, "timeout"),
        ({"model": model, "timeout": float("nan")}, "timeout"),
        ({"holdout": "0.1"}, "holdout is a probability"),
        ({"holdout": 1}, "holdout is a probability"),
        ({"holdout": -0.1}, "holdout is a probability"),
        ({"holdout": True}, "holdout is a probability"),
        ({"holdout": float("nan")}, "holdout is a probability"),
        ({"holdout": AdaptiveHoldout}, "holdout is a probability"),
        ({"success_at": "0.5"}, "success_at=) is above 0 and at most 1"),
        ({"success_at": float("inf")}, "success_at=) is above 0 and at most 1"),
        ({"judge": "openai:x"}, "judge="),
        ({"extractor": 3}, "extractor="),
        ({"retriever": "dense"}, "retriever="),
        ({"consolidation": None}, "consolidation"),
        ({"consolidation": "apend"}, "consolidation"),
        ({"hooks": print}, "hooks="),
        ({"hooks": None}, "hooks="),
        ({"hooks": ["x"]}, "hooks="),
        ({"model": 3}, "a model is"),
        ({"model": {}}, "mapping of models"),
        ({"model": {"contrast": model}}, "mapping of models"),
        ({"model": {"jugde": model}}, "no model role 'jugde'"),
        ({"model": {"judge": Model("openai:gpt-5-mini")}}, "a role takes a name, a function or a LanguageModel"),
        ({"model": {"judge": model, "contrast": model}}, "name an extractor, too"),
        ({"model": Nameless()}, "`name`"),
        ({"embedder": 3}, "embedder="),
        ({"embedder": HashingEmbedder}, "embedder="),
        ({"embedder": "foo"}, "no embedder 'foo'"),
        ({"profile": "papers"}, "profile= is 'default' or 'paper'"),
        ({"domain": "wob"}, "Learning(domain=) is"),
    ],
)
def test_an_argument_that_cannot_be_is_refused_in_one_sentence(argument: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as raised:
        told = {"model": model} if "timeout" in argument else {}
        lessonbank.connect(":memory:", **grouped(**{"scope": "t", "embedder": "lexical", **told, **argument}))
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("where", [None, 3, b"bank.db", "", " "])
def test_a_place_that_is_none_makes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="file path"):
        lessonbank.connect(where, scope="t")
    assert list(tmp_path.iterdir()) == []


class Own:
    """An embedder of somebody's own, with what it makes of good rows."""

    def __init__(self, change: Any) -> None:
        self._good, self._change = HashingEmbedder(), change

    @property
    def space(self) -> str:
        return "own"

    async def embed(self, texts: Sequence[str], /, *, role: Any) -> Any:
        return self._change(await self._good.embed(texts, role=role))


def fails(rows: Any) -> Any:
    raise ValueError("boom\n\x1b[2Jtwice")


@pytest.mark.parametrize("change", [lambda rows: rows * np.nan, fails], ids=["nan", "raises"])
def test_an_embedder_of_ones_own_that_is_broken_costs_neither_the_lesson_nor_the_bank(
    tmp_path: Path, change: Any
) -> None:
    with lessonbank.connect(
        tmp_path / "bank.db", scope="t", embedder=Own(change), evidence=Evidence(holdout=None)
    ) as bank:
        learned = bank.learn(STUCK, outcome="failure")
        assert learned.lessons
        assert "not embedded yet" in learned.notes[-1]
        assert "\n" not in learned.notes[-1]
        recall = bank.retrieve("open the valve")
        assert recall.shown == learned.lessons
        assert "searched by words only" in recall.notes[0]
    with lessonbank.connect(
        tmp_path / "bank.db", scope="t", embedder=Own(lambda rows: rows), evidence=Evidence(holdout=None)
    ) as bank:
        recall = bank.retrieve("open the valve")
        assert recall.shown == learned.lessons
        assert recall.notes == ()


async def gives_nothing(_: Any, /) -> Any:
    return None


def is_not_async(_: Any, /) -> Verdict:
    return Verdict(outcome="success")


async def gives_a_change_alone(new: Experience, /) -> Any:
    return Add(experience=new)


async def gives_no_changes(_: Any, /) -> Any:
    return ["add"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        *[(name, part) for name in ("judge", "extractor", "consolidator") for part in (gives_nothing, is_not_async)],
        ("consolidator", gives_a_change_alone),
        ("consolidator", gives_no_changes),
    ],
)
def test_a_part_of_ones_own_that_breaks_its_promise_is_named_in_one_sentence(name: str, part: Any) -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", parts=Parts(**{name: part})) as bank:
        with pytest.raises(UsageError, match=f"{name}= takes an async function"):
            bank.learn(STUCK, outcome=None if name == "judge" else "failure")
        assert len(bank.runs.pending(limit=10_000)) == 1


def test_a_gate_that_gives_no_extraction_is_named_in_one_sentence() -> None:
    gate: Any = lambda extraction, attempts, *, shown: None  # noqa: E731
    with (
        lessonbank.connect(":memory:", scope="t", embedder="lexical", safety=Safety(admission=gate)) as bank,
        pytest.raises(UsageError, match="admission= takes a gate that returns Extraction; this one gave NoneType"),
    ):
        bank.learn(STUCK, outcome="failure")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Parts(hooks=[gives_nothing]),
        lambda: Safety(redact=gives_nothing),  # type: ignore[arg-type]
        lambda: Safety(admission=gives_nothing),  # type: ignore[arg-type]
    ],
)
def test_a_part_that_nobody_waits_for_may_not_be_async(make: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match="not async"):
        make()


def test_the_settings_name_the_parts_that_are_the_callers_own() -> None:
    parts = Parts(judge=gives_nothing, extractor=gives_nothing)
    with lessonbank.connect(":memory:", scope="t", embedder="lexical", model=model, parts=parts) as bank:
        assert (bank.settings["judge"], bank.settings["extractor"]) == ("gives_nothing", "gives_nothing")


def test_additions_are_for_a_bank_that_recognises_what_comes_again() -> None:
    recognise, append = (Learning(consolidation=name) for name in ("recognise", "append"))
    for consolidation in ({"profile": "paper"}, {"profile": "paper", "learning": recognise}, {"learning": append}):
        with lessonbank.connect(":memory:", scope="t", embedder="lexical", **consolidation) as bank:
            assert bank.settings["additions"] is False
    for wrong in (
        {"profile": "paper", "learning": Learning(additions=True)},
        {"learning": Learning(additions=True, consolidation="append")},
        {"learning": Learning(additions=True), "parts": Parts(consolidator=gives_nothing)},
    ):
        with pytest.raises(UsageError, match="needs consolidation='recognise'"):
            lessonbank.connect(":memory:", scope="t", embedder="lexical", **wrong)


def test_the_papers_judge_has_the_budget_that_was_asked_for() -> None:
    def length(**learning: Any) -> int:
        asked: list[str] = []
        long = STUCK.model_copy(update={"answer": "word " * 20_000})
        with lessonbank.connect(
            ":memory:",
            scope="t",
            embedder="lexical",
            profile="paper",
            model={"judge": lambda prompt: asked.append(prompt) or ""},
            learning=Learning(**learning),
        ) as bank:
            bank.learn(long)
        return len(asked[0])

    assert length(judge_budget=1000) < length() / 2


# -- the call itself ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda connect: connect(),
        lambda connect: connect(":memory:"),
        lambda connect: connect(":memory:", "t"),
    ],
)
def test_a_wrong_call_of_connect_never_blames_connect_async(call: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, UsageError)) as raised:
        call(lessonbank.connect)
    assert "connect_async" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ({"evidence": "x"}, "holdout"),
        ({"evidence": [0.1]}, "evidence= takes Evidence(…)"),
        ({"retrieval": 3.5}, "Retrieval(by=) is"),
        ({"retrieval": {"limit": 3}}, "retrieval= takes Retrieval(…)"),
        ({"learning": "code"}, "learning= takes Learning(…)"),
        ({"safety": "reviewd"}, "trust is"),
        ({"parts": print}, "parts= takes Parts(…)"),
        ({"safety": Evidence()}, "safety= takes Safety(…)"),
    ],
)
def test_a_group_of_settings_that_is_none_is_refused_in_one_sentence(argument: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as raised:
        lessonbank.connect(":memory:", scope="t", embedder="lexical", **argument)
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_string_or_a_number_stands_for_the_common_case() -> None:
    with lessonbank.connect(
        ":memory:", scope="t", embedder="lexical", retrieval="lexical", evidence=0.2, safety="reviewed"
    ) as bank:
        assert bank.settings["trust"] == "reviewed"
        assert "0.2" in str(bank.settings["holdout"]) or "20" in str(bank.settings["holdout"])


def test_the_paper_with_another_limit_is_the_paper_in_everything_else() -> None:
    settings = []
    for retrieval in (None, Retrieval(limit=3)):
        with lessonbank.connect(
            ":memory:", scope="t", embedder="hashing", profile="paper", retrieval=retrieval
        ) as bank:
            settings.append(bank.settings)
    plain, limited = settings
    assert (plain["limit"], limited["limit"]) == (1, 3)
    assert {**plain, "limit": 3} == limited


@pytest.mark.parametrize("wrong", [5, ["id"]])
@pytest.mark.parametrize("call", ["learn", "submit"])
def test_a_recall_that_is_none_is_refused_in_one_sentence(call: str, wrong: Any) -> None:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical") as bank:
        with pytest.raises(UsageError, match="recall= takes") as raised:
            getattr(bank, call)(STUCK, recall=wrong, outcome="failure")
        assert "\n" not in str(raised.value)
        assert bank.admin.counts().trajectories == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Trajectory(tsk="open the valve"), "Trajectory has no field 'tsk': did you mean 'task'?"),
        (lambda: Trajectory(), "Trajectory needs task="),
        (lambda: Trajectory(task="  "), "Trajectory(task=) is wrong"),
        (lambda: Trajectory(task=5), "Trajectory(task=) is wrong"),
        (lambda: Step(acton="turn"), "Step has no field 'acton': did you mean 'action'?"),
        (lambda: Trajectory(task="x", steps=("turn",)), "Trajectory(steps.0"),
        (lambda: Verdict(outcome="sucess"), "Verdict(outcome=) is wrong"),
        (lambda: lessonbank.Lesson(title="x"), "Lesson needs content="),
    ],
)
def test_a_record_that_cannot_be_is_refused_in_one_sentence(make: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        make()
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250
    assert raised.value.code == "usage"
    assert isinstance(raised.value, ValueError)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX")
def test_a_new_bank_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
            bank.learn(STUCK, outcome="failure")
            modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes["bank.db"] == "0o600"
    assert set(modes.values()) == {"0o600"}


def test_a_home_folder_is_expanded_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for n, where in enumerate(("~/a.db", Path("~/b.db"), File("~/c.db"))):
        with lessonbank.connect(where, scope="t", embedder="lexical") as bank:
            bank.learn(STUCK, outcome="failure")
            bank.admin.export(f"~/export-{n}.jsonl")
            bank.admin.backup(f"~/backup-{n}.db")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"a.db", "b.db", "c.db", "export-0.jsonl", "backup-2.db"} <= names


def test_a_bank_that_is_read_only_retrieves_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    evidence = Evidence(holdout=None)
    with lessonbank.connect(path, scope="t", embedder="lexical", evidence=evidence) as bank:
        learned = bank.learn(STUCK, outcome="failure")
    before = path.read_bytes()
    with lessonbank.connect(File(path, read_only=True), scope="t", embedder="lexical", evidence=evidence) as bank:
        recall = bank.retrieve("open the valve", metadata={"user": "u-1"})
        assert recall.shown == learned.lessons
        assert not recall.kept
        assert any("opened read-only" in note for note in recall.notes)
        assert bank.lessons.list() == learned.lessons
        assert "read only" in str(bank.settings["store"])
        for call in (
            lambda: bank.learn(Trajectory(task="another"), outcome="failure"),
            lambda: bank.submit(STUCK, outcome="failure"),
            lambda: bank.lessons.retire(learned.lessons[0].id, reason="no", by="Ana"),
            lambda: bank.admin.purge(all=True, reason="no"),
        ):
            with pytest.raises(ReadOnly):
                call()
        with bank.attempt("open the valve") as attempt:
            assert attempt.text
            attempt.finish(Trajectory(task="open the valve"), outcome="failure")
        assert any("nothing was learned from this run" in note for note in attempt.notes)
    assert path.read_bytes() == before


def test_a_bank_that_is_not_there_is_not_made_by_opening_it_read_only(tmp_path: Path) -> None:
    with pytest.raises(LessonbankError):
        lessonbank.connect(File(tmp_path / "bank.db", read_only=True), scope="t", embedder="lexical")
    assert list(tmp_path.iterdir()) == []


# -- secrets -----------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_no_secret_stands_in_settings_representations_notes_or_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = "http://jane:geheim-1@127.0.0.1:9/v1?key=geheim-2"
    chosen = Model("qwen3", base_url=url, api_key="geheim-3", timeout=2)
    server = Server("https://jane:geheim-4@127.0.0.1:9/bank", api_key="geheim-5")
    said = [repr(chosen), str(chosen), repr(server), str(server)]
    with caplog.at_level(logging.DEBUG):
        with lessonbank.connect(tmp_path / "bank.db", scope="t", model=chosen, embedder="lexical") as bank:
            said += [repr(bank), repr(bank.aio), str(bank.settings), repr(bank.scoped("u").settings)]
            learned = bank.learn(STUCK)
            said += [str(learned.notes), str(learned.errors), learned.model_dump_json()]
            assert learned.notes
        for where in (server, "postgresql://jane:geheim-6@127.0.0.1:9/bank"):
            with pytest.raises(LessonbankError) as raised:
                lessonbank.connect(where, scope="t")
            said.append(str(raised.value))
        with pytest.raises(UsageError) as wrong:
            lessonbank.connect(":memory:", scope="t", model=Model("x", base_url="ftp://jane:geheim-7@example.com"))
        said.append(str(wrong.value))
    said += [record.getMessage() for record in caplog.records]
    assert [text for text in said if "geheim" in text] == []
    assert "qwen3" in str(bank.settings["model"])
