"""Every example is short, and does what it says, offline."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples_of import load

import lessonbank
from lessonbank.testing.fakes import ScriptedModel
from lessonbank.testing.model_server import Fault, ModelServer

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
MAX_LINES = 60
ADAPTER = re.compile(r"from lessonbank\.adapters\.(\w+) import ReasoningBank")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < MAX_LINES
    assert text.startswith('"""')
    assert f"python examples/{path.name}" in text


def test_every_example_has_its_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    loaded = set(re.findall(r'\bload\("(\w+)"\)', tests))
    assert not [p.stem for p in EXAMPLES if p.stem not in loaded]


def test_an_example_of_a_framework_is_run_wherever_its_adapter_is() -> None:
    adapters = Path(__file__).parent / "adapters"
    used = [(path, found[1]) for path in EXAMPLES if (found := ADAPTER.search(path.read_text(encoding="utf-8")))]
    assert len(used) > 10
    assert not [
        path.stem
        for path, adapter in used
        if f'load("{path.stem}")' not in (adapters / f"test_{adapter}.py").read_text(encoding="utf-8")
    ]


@pytest.mark.full
def test_an_edit_of_a_file_is_a_proposal_that_a_person_approves(capsys: pytest.CaptureFixture[str]) -> None:
    text = load("lessons_as_files").main()
    assert text.startswith("# Our shop\n\nUse tabs.\n")
    assert "Ask politely why" in text
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("edit: Ask politely why")
    assert said[1] == "1 lesson in AGENTS.md, 0 new proposals"


@pytest.mark.full
def test_a_trial_tells_a_lesson_that_helps_from_one_that_harms() -> None:
    found = load("trial").main()
    standing = {"memory": "helps", "Weigh the parcel": "helps", "Pick the label early": "harms"}
    assert {name: trial.standing for name, trial in found.items()} == standing


def test_a_task_is_scaled_and_the_lesson_lifts_every_run() -> None:
    assert load("scale_a_task").main() == [0.5, 1.0, 1.0]


def test_offline_prints_the_lessons_of_a_failure_and_of_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    load("offline").main()
    out = capsys.readouterr().out
    assert "<<<lessons" in out
    assert "guardrail by extractive" in out
    assert "strategy  by extractive" in out
    assert "make changelog" in out


def test_ground_truth_is_enough_for_a_toy_agent_to_improve() -> None:
    assert load("ground_truth").main() >= 0.9


def test_the_plain_bank_works_inside_a_running_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert asyncio.run(load("notebook").cell()) == 1
    out = capsys.readouterr().out
    assert "verdict: unknown - lessons: 0" in out
    assert "after ground truth: ground_truth - still waiting: 0" in out


def chat(message: dict[str, Any], finish: str) -> Fault:
    """A chat completion in the wire format, as a server sends it."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "any",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return Fault(body=json.dumps(body).encode())


def test_the_openai_loop_learns_from_the_sdks_own_messages(tmp_path: Path) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    call = {"id": "call_1", "type": "function", "function": {"name": "cancel_order", "arguments": '{"order": "W123"}'}}
    asks, ends = (
        chat({"content": None, "tool_calls": [call]}, "tool_calls"),
        chat({"content": "It is cancelled."}, "stop"),
    )
    model = ScriptedModel(["no verdict"])
    with ModelServer(asks, ends) as server, openai.OpenAI(base_url=server.base_url, api_key="test") as client:
        learned = load("openai_loop").main(
            client, tmp_path / "bank.db", "Cancel the pending order W123", model=model, embedder="lexical"
        )
        assert server.requests[1].body["messages"][-1] == {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "cancelled",
        }
    shown = model.calls[0].prompt
    assert all(
        told in shown for told in ("cancel_order", "W123", "cancelled", "It is cancelled.", "You serve customers")
    )
    assert learned.verdicts[0].outcome == "unknown"


def test_the_openai_loop_shows_what_it_learned_to_the_next_task(tmp_path: Path) -> None:
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    example, where = load("openai_loop"), tmp_path / "bank.db"
    lesson = {"title": "Look the order up", "content": "Read the order by `get_order` first.", "evidence": ["step 1"]}
    with lessonbank.connect(
        where, scope="acme/support", model=lambda prompt: json.dumps({"items": [lesson]}), embedder="lexical"
    ) as bank:
        run = lessonbank.Trajectory(task="Cancel the order W9", steps=(lessonbank.Step(action="cancel W9"),))
        assert bank.learn(run, outcome="failure").lessons
    with (
        ModelServer(default="It is cancelled.") as server,
        openai.OpenAI(base_url=server.base_url, api_key="test") as client,
    ):
        example.main(client, where, "Cancel the order W123", evidence=lessonbank.Evidence(holdout=None))
        assert "Read the order by `get_order` first." in server.requests[0].body["messages"][0]["content"]


class Block:
    """A content block, as the Anthropic SDK hands it out."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class FakeAnthropic:
    """A client that gives the replies it was handed, and remembers what it was asked."""

    def __init__(self, *replies: list[Block]) -> None:
        self.asked: list[dict[str, Any]] = []
        self.messages = self
        self._replies: Iterator[list[Block]] = iter(replies)

    def create(self, **request: Any) -> Any:
        self.asked.append(request)
        reply = type("Reply", (), {})()
        reply.content = next(self._replies)
        return reply


def test_the_anthropic_loop_learns_from_content_blocks(tmp_path: Path) -> None:
    client = FakeAnthropic(
        [Block(type="tool_use", id="toolu_1", name="read_file", input={"path": "README.md"})],
        [Block(type="text", text="Run `make check`.")],
    )
    model = ScriptedModel(["no verdict"])
    learned = load("anthropic_loop").main(
        client, tmp_path / "bank.db", "How are the tests run?", model=model, embedder="lexical"
    )
    assert client.asked[0]["system"].startswith("You know this project.")
    for told in ("read_file", "README.md", "Run the tests with `make check`.", "Run `make check`.", "You know this"):
        assert told in model.calls[0].prompt
    assert learned.verdicts[0].outcome == "unknown"


@pytest.mark.full
def test_over_mcp_a_session_recalls_what_an_earlier_one_recorded_and_its_claim_taught_nothing() -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="needs `pip install 'lessonbank[mcp]'`")
    assert "guardrail" in load("mcp_client").main()
