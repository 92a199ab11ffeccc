"""A call that a newcomer makes and the library does not take answers in one sentence with what to write."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Evidence, Step, Trajectory
from lessonbank.errors import LessonbankError, UsageError
from lessonbank.stores.sqlite import _errors

CONNECT: Any = lessonbank.connect


class OpenAI:
    """A client of a provider's SDK."""


@pytest.fixture
def bank() -> Any:
    with lessonbank.connect(":memory:", scope="t", embedder="lexical") as made:
        yield made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"holdout": 0.1}, "connect() has no 'holdout': write evidence=lessonbank.Evidence(holdout=…)"),
        ({"api_key": "k"}, "connect() has no 'api_key': write model=lessonbank.Model(api_key=…)"),
        ({"success_at": 0.5}, "connect() has no 'success_at': write learning=lessonbank.Learning(success_at=…)"),
        ({"read_only": True}, "connect() has no 'read_only': write connect(lessonbank.File(PATH, read_only=True)"),
        ({"embeder": "lexical"}, "connect() has no 'embeder': write embedder=…"),
        ({"colour": "red"}, "connect() has no 'colour': it takes embedder, evidence, "),
    ],
)
def test_a_setting_handed_to_connect_is_told_where_it_belongs(given: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError) as waiting:
        CONNECT(":memory:", scope="t", **given)
    with pytest.raises(TypeError) as awaited:
        asyncio.run(lessonbank.connect_async(":memory:", scope="t", **given))
    assert str(waiting.value).startswith(said)
    assert str(awaited.value).startswith(said)


def test_a_client_of_a_provider_is_told_how_a_model_is_written() -> None:
    with pytest.raises(UsageError, match=r"a name such as 'openai:gpt-5-mini', Model\(.*got OpenAI"):
        CONNECT(":memory:", scope="t", model=OpenAI())


def test_the_name_of_the_extra_is_no_embedder_and_the_error_names_the_one_that_it_brings() -> None:
    with pytest.raises(UsageError, match=r"install lessonbank\[local\], and write embedder='fastembed:"):
        CONNECT(":memory:", scope="t", embedder="local")


def test_a_keyword_that_a_method_does_not_take_is_told_by_the_class_that_was_called(bank: Any) -> None:
    told = {"title": "a", "content": "b", "task": "c", "by": "Ana"}
    with pytest.raises(TypeError, match=r"^Lessons.add\(\) has no 'description': write when=…$"):
        bank.lessons.add(**told, description="d")
    with pytest.raises(TypeError, match=r"^ReasoningBank.retrieve\(\) takes its task without a name: write retrieve\("):
        bank.retrieve(query="Cancel order 1")
    with pytest.raises(TypeError, match=r"^Lessons.add\(\) missing 1 required"):
        bank.lessons.add(title="a", content="b", task="c")
    with pytest.raises(TypeError, match=r"^Admin.purge\(\) has no 'user': write metadata=…$"):
        bank.admin.purge(user="u-17", reason="asked")
    with pytest.raises(TypeError, match=r"^Lessons.retire\(\) has no 'user': write by=…$"):
        bank.lessons.retire("1a2b3c4d", user="Ana", reason="too dear")
    with pytest.raises(TypeError, match=r"^Lessons.topics\(\) has no 'colour': it takes "):
        bank.lessons.topics(colour=1)


@pytest.mark.parametrize("level", [0.49, 1.0, 95, float("nan"), "high"])
def test_the_level_of_an_interval_goes_from_a_half_to_below_one(bank: Any, level: Any) -> None:
    with pytest.raises(UsageError, match=r"level goes from 0\.5 to below 1; got"):
        bank.lift(level=level)
    assert [bank.lift(level=taken).level for taken in (0.5, 0.999)] == [0.5, 0.999]


def test_views_are_no_lists_and_say_what_is(bank: Any) -> None:
    for wrong in (list, len):
        with pytest.raises(TypeError, match=r"Lessons is no list: write bank.lessons.list\(\)"):
            wrong(bank.lessons)
        with pytest.raises(TypeError, match=r"Runs is no list: write bank.runs.list\(\)"):
            wrong(bank.runs)
    assert bank
    assert bank.lessons


def test_a_plain_bank_in_an_async_function_warns_once_and_works(bank: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def app() -> str:
        return str(bank.retrieve("Cancel order 1").text)

    bank.retrieve("Cancel order 2")
    assert caplog.messages == []
    assert asyncio.run(app()) == asyncio.run(app()) == ""
    (told,) = caplog.messages
    assert told.startswith("ReasoningBank.retrieve() was called in the async function app, whose event loop stands")
    assert "connect_async" in told


def test_what_was_taught_again_is_named_by_eight_characters_and_a_field_has_the_whole_id(bank: Any) -> None:
    run = Trajectory(
        task="Make the release", steps=(Step(action="make release", observation="error: CHANGELOG.md has no entry"),)
    )
    (first, *_) = bank.learn(run, outcome="failure").lessons
    again = bank.learn(run.model_copy(update={"id": "f" * 32}), outcome="failure")
    (note,) = [note for note in again.notes if "taught again" in note]
    assert first.id not in note
    assert first.id[-8:] in note


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("purge",), "Missing '--bank', '--scope', '--by' and '--reason'"),
        (("purge", "--bank", "x", "--scope", "t"), "Missing '--by' and '--reason'"),
        (("import", "--scope", "t"), "Missing FILE and '--bank'"),
        (("lessons", "retire", "--bank", "x", "--scope", "t", "--by", "Ana"), "Missing ID… and '--reason'"),
        (("lessons", "retire", "abcd", "--bank", "x", "--scope", "t", "--by", "Ana"), "Missing option '--reason'"),
    ],
)
def test_a_command_names_everything_that_it_lacks(arguments: tuple[str, ...], missing: str, tmp_path: Path) -> None:
    done = lessonbank_cli(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert missing in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.full
@pytest.mark.parametrize("command", ["review", "worker"])
def test_each_command_takes_its_bank_by_one_option(command: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "no.db")
    for arguments in ((command, "--bank", missing), (command, missing)):
        done = lessonbank_cli(*arguments, cwd=tmp_path)
        assert (done.returncode, "there is no bank at" in done.stderr) == (2, True), done.stderr
    assert "--bank bank.db" in lessonbank_cli(command, cwd=tmp_path).stderr


def may_not_write(_path: object, mode: int) -> bool:
    return mode != os.W_OK


class TestReadOnly:
    @pytest.mark.parametrize("name", ["SQLITE_CANTOPEN", "SQLITE_READONLY"])
    def test_a_bank_that_cannot_be_written_is_told_how_it_can_be_read(self, name: str, tmp_path: Path) -> None:
        import sqlite3

        path = tmp_path / "bank.db"
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = getattr(sqlite3, name)
        assert "read_only" not in str(_errors.unavailable(error, path))
        path.touch()
        assert f"connect(lessonbank.File({str(path)!r}, read_only=True), scope=…)" in str(
            _errors.unavailable(error, path)
        )

    def test_a_command_that_only_reads_opens_such_a_bank(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from lessonbank.cli._bank import opened

        path = tmp_path / "bank.db"
        with lessonbank.connect(path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as made:
            made.lessons.add(title="Look first", content="Look.", task="Cancel order 1", by="Ana")
        monkeypatch.setattr(os, "access", may_not_write)  # as root, everything may be written
        with opened(str(path), "t") as memory:
            assert [lesson.title for lesson in memory.lessons.list()] == ["Look first"]
            with pytest.raises(LessonbankError):
                memory.lessons.add(title="a", content="b", task="c", by="Ana")
