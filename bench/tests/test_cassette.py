"""A recorded run can be repeated without the model that made it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from lessonbank import guard
from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.errors import FormatError, ModelError, UsageError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank.testing.model_contract import ASKED, LanguageModelContract, Shape
from lessonbank_bench.cassette import Recorded

ASYNC = pytest.mark.anyio


@ASYNC
class TestRecording(LanguageModelContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def make(self, reply: str, /) -> LanguageModel:
        return Recorded(ScriptedModel(lambda messages: reply), cassette=self.folder / "c.jsonl")


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    return tmp_path / "c.jsonl"


def _ask(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


@ASYNC
async def test_a_recording_replays_without_its_model_usage_included(tmp_path: Path) -> None:
    cassette = tmp_path / "deep" / "c.jsonl"
    first = await Recorded(ScriptedModel(["42\u2028€"], name="openai:x"), cassette=cassette).generate(ASKED)
    replay = Recorded(None, cassette=cassette)
    assert replay.name == "openai:x"
    assert await replay.generate(ASKED, temperature=1.0) == first


@ASYNC
async def test_the_answers_to_one_request_come_in_their_order_and_the_last_repeats(cassette: Path) -> None:
    recording = Recorded(ScriptedModel(["one", "two"]), cassette=cassette)
    await recording.generate(ASKED)
    await recording.generate(ASKED)
    replay = Recorded(None, cassette=cassette)
    assert [(await replay.generate(ASKED)).text for _ in range(3)] == ["one", "two", "two"]


@ASYNC
async def test_an_interrupted_recording_goes_on_where_it_stopped(cassette: Path) -> None:
    await Recorded(ScriptedModel(["one"]), cassette=cassette).generate(ASKED)
    rest = ScriptedModel(["two"])
    again = Recorded(rest, cassette=cassette)
    assert [(await again.generate(ASKED)).text for _ in range(2)] == ["one", "two"]
    assert len(rest.calls) == 1


@ASYNC
async def test_name_messages_and_schema_tell_requests_apart_and_temperature_does_not(cassette: Path) -> None:
    await Recorded(ScriptedModel(["a"], name="m"), cassette=cassette).generate(ASKED, temperature=0.3)
    replay = Recorded(None, cassette=cassette)
    assert (await replay.generate(ASKED, temperature=0.9)).text == "a"
    for other in (replay.generate(ASKED, schema=Shape), replay.generate(_ask("else"))):
        with pytest.raises(ModelError, match="no answer to this request"):
            await other
    with pytest.raises(ModelError):
        await Recorded(None, cassette=cassette, name="other").generate(ASKED)


@ASYNC
async def test_a_fence_with_a_new_nonce_is_the_same_request_and_the_reply_carries_the_new_one(cassette: Path) -> None:
    def prompt(nonce: str) -> list[Message]:
        return _ask(f"Repeat {nonce} in your verdict.\n{guard.fence('the run', label='run', nonce=nonce)}")

    await Recorded(ScriptedModel(["verdict 0a1b2c3d: success"]), cassette=cassette).generate(prompt("0a1b2c3d"))
    replayed = await Recorded(None, cassette=cassette).generate(prompt("99998888"))
    assert replayed.text == "verdict 99998888: success"
    assert "0a1b2c3d" not in cassette.read_text(encoding="utf-8")


@ASYNC
async def test_a_line_torn_by_a_crash_costs_one_exchange_and_no_more(cassette: Path) -> None:
    await Recorded(ScriptedModel(["one"]), cassette=cassette).generate(_ask("1"))
    with cassette.open("a", encoding="utf-8") as file:
        file.write('{"key": "torn", "na')
    await Recorded(ScriptedModel(["two"]), cassette=cassette).generate(_ask("2"))
    replay = Recorded(None, cassette=cassette)
    assert [(await replay.generate(_ask(n))).text for n in ("1", "2")] == ["one", "two"]


@ASYNC
async def test_recordings_made_at_once_are_all_kept(cassette: Path) -> None:
    recording = Recorded(ScriptedModel(lambda messages: messages[0].content * 1000), cassette=cassette)
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(recording.generate, _ask(str(number)))
    replay = Recorded(None, cassette=cassette)
    assert [(await replay.generate(_ask(str(n)))).text for n in range(20)] == [str(n) * 1000 for n in range(20)]


@ASYNC
async def test_a_failing_model_records_nothing(cassette: Path) -> None:
    with pytest.raises(ModelError, match="down"):
        await Recorded(ScriptedModel([ModelError("down")]), cassette=cassette).generate(ASKED)
    assert not cassette.exists()


def test_nothing_to_replay_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cassette"):
        Recorded(None, cassette=tmp_path / "absent.jsonl")
    other = tmp_path / "other.txt"
    other.write_text("just text\n", encoding="utf-8")
    with pytest.raises(FormatError, match="is no cassette"):
        Recorded(None, cassette=other)


@ASYNC
async def test_a_cassette_of_two_models_wants_to_know_which(cassette: Path) -> None:
    for name in ("judge", "extractor"):
        await Recorded(ScriptedModel([name], name=name), cassette=cassette).generate(ASKED)
    with pytest.raises(UsageError, match="extractor, judge"):
        Recorded(None, cassette=cassette)
    assert (await Recorded(None, cassette=cassette, name="judge").generate(ASKED)).text == "judge"
