"""STATE-Bench's hook and its recorded runs, with stand-ins and records written for this.

They follow microsoft/STATE-Bench as stored publicly: `state_bench/agents/state_bench.py` at commit 58276b5
(StateBenchAgent finds `retrieve_learnings`, calls it as `retrieve(query, top_k=top_k)`, refuses anything but
`list[str]`), `state_bench/schemas.py` at 4a7d945 (what a scored run holds) and the form of
`datasets/train_task_trajectories/customer_support/*.json` at abeeafa and f8d1278 (one object with `conversation`).
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank.errors import FormatError, UsageError
from lessonbank.importers import Imported, Skipped
from lessonbank_bench.environments.state_bench import Learnings, remembering, runs


def conversation(item: str = "shirt") -> list[dict[str, Any]]:
    calls = [
        {"name": "cancel_order", "arguments": {"item_ids": [item]}, "result": {"error": f"no item {item}"}},
        {"name": "get_order", "arguments": {"order_id": "O-1"}, "result": {"items": [{"item_id": "I-9"}]}},
        {"name": "cancel_order", "arguments": {"item_ids": ["I-9"]}, "result": {"status": "cancelled"}},
    ]
    return [
        {"role": "system", "content": "You serve customers. Today's date: <REDACTED>."},
        {"role": "user", "content": f"Cancel the {item} of order O-1."},
        {"role": "assistant", "content": f"The {item} is cancelled.", "tool_calls": calls},
        {"role": "user", "content": "And the fee?"},
        {"role": "assistant", "content": "There is none.", "tool_calls": None},
        {"role": "user", "content": "Thanks. [TASK_DONE]"},
    ]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    folder = tmp_path / "train_task_trajectories" / "customer_support"
    folder.mkdir(parents=True)
    for number, item in enumerate(("shirt", "book", "case")):
        (folder / f"{number}-cancel_{item}.json").write_text(json.dumps({"conversation": conversation(item)}))
    return folder


def test_a_train_trajectory_becomes_a_run_with_its_calls_before_the_words(train: Path) -> None:
    first, *others = runs(train)
    assert isinstance(first, Imported)
    assert len(others) == 2
    run = first.trajectory
    assert run.task == "Cancel the shirt of order O-1."
    assert run.instructions.startswith("You serve customers.")
    assert [call.name for step in run.steps for call in step.action.calls] == [
        "cancel_order",
        "get_order",
        "cancel_order",
    ]
    assert [step.action.text for step in run.steps if step.action.text] == ["The shirt is cancelled.", "There is none."]
    assert run.steps[1].observations[0].text == '{"error": "no item shirt"}'
    assert run.steps[-1].observations[0].text == "Thanks. [TASK_DONE]"
    assert run.metadata == {"source": "state-bench/customer_support", "task_id": "0-cancel_shirt"}
    assert first.verdict is None


def test_the_same_file_gives_the_same_id_and_another_another(train: Path) -> None:
    ids = [one.trajectory.id for one in runs(train) if isinstance(one, Imported)]
    assert ids == [one.trajectory.id for one in runs(train) if isinstance(one, Imported)]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(("passed", "outcome"), [(1, "success"), (0, "failure"), (None, None)])
def test_a_scored_run_says_how_it_went(tmp_path: Path, passed: int | None, outcome: str | None) -> None:
    file = tmp_path / "7.json"
    file.write_text(
        json.dumps(
            {
                "task_id": "7-return",
                "user_id": "cust_1",
                "task_summary": "s",
                "task_completion_pass": passed,
                "turns": 2,
                "conversation": conversation(),
            }
        )
    )
    one = next(iter(runs(file)))
    assert isinstance(one, Imported)
    assert (one.verdict.outcome if one.verdict else None) == outcome
    assert one.trajectory.metadata["task_id"] == "7-return"


@pytest.mark.parametrize(
    "content",
    [
        "[1, 2]",
        "{",
        '{"conversation": []}',
        '{"conversation": [1]}',
        '{"conversation": [{"role": "user", "content": "a", "tool_calls": 5}]}',
        '{"conversation": [{"role": "assistant", "content": "a", "tool_calls": [5]}]}',
        '{"conversation": [{"role": "assistant", "content": "nobody asked"}]}',
        '{"a":' * 5_000,
    ],
)
def test_a_file_that_is_no_run_is_skipped_with_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "1.json").write_text(content)
    (tmp_path / "2.json").write_text(json.dumps({"conversation": conversation()}))
    wrong, right = runs(tmp_path)
    assert isinstance(wrong, Skipped)
    assert wrong.reason
    assert "\n" not in wrong.reason
    assert isinstance(right, Imported)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no STATE-Bench runs"):
        next(runs(tmp_path))


@pytest.fixture
def bank(train: Path, tmp_path: Path) -> Path:
    place = tmp_path / "customer_support.db"
    with lessonbank.connect(place, scope="customer_support", embedder="lexical") as made:
        for one in runs(train):
            assert isinstance(one, Imported)
            made.learn(one.trajectory, outcome="success")
    return place


class StateBenchAgent:
    """How the harness's own agent finds the hook and calls it."""

    def __init__(self, *, retrieve_learnings_top_k: int = 3) -> None:
        self.retrieve_learnings_top_k = retrieve_learnings_top_k
        self.retrieval_enabled = callable(getattr(self, "retrieve_learnings", None))

    def _handle_retrieve_learnings_tool(self, args: dict[str, Any]) -> dict[str, list[str]]:
        query = args.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ValueError("retrieve_learnings requires a non-empty string query")
        retrieve = getattr(self, "retrieve_learnings", None)
        if not callable(retrieve):
            raise RuntimeError("retrieve_learnings is not configured")
        learnings = retrieve(query, top_k=self.retrieve_learnings_top_k)
        if not isinstance(learnings, list) or any(not isinstance(item, str) for item in learnings):
            raise TypeError("retrieve_learnings() must return list[str]")
        return {"learnings": learnings}


def test_the_harness_gets_lessons_of_the_bank_as_texts(bank: Path) -> None:
    agent_class = remembering(StateBenchAgent, bank, scope="customer_support")
    assert issubclass(agent_class, StateBenchAgent)
    agent = agent_class(retrieve_learnings_top_k=2)
    assert agent.retrieval_enabled
    answer = agent._handle_retrieve_learnings_tool(
        {"query": "customer wants us to cancel the shirt of an order", "top_k": 9}
    )
    assert 1 <= len(answer["learnings"]) <= 2
    assert all(text.partition(":")[0] in ("strategy", "guardrail") for text in answer["learnings"])


def test_an_agent_without_the_hook_has_no_retrieval() -> None:
    assert StateBenchAgent().retrieval_enabled is False


def test_at_most_as_many_as_asked_and_nothing_for_nothing(bank: Path) -> None:
    learnings = Learnings(bank, scope="customer_support")
    assert len(learnings.retrieve_learnings("cancel the shirt of order O-1", top_k=1)) == 1
    assert learnings.retrieve_learnings("  ") == []
    assert Learnings(bank, scope="travel").retrieve_learnings("cancel the shirt") == []
    learnings.close()
    learnings.close()


def test_nothing_is_ever_withheld_from_the_harness(bank: Path) -> None:
    learnings = Learnings(bank, scope="customer_support")
    answers = {tuple(learnings.retrieve_learnings("cancel the shirt of order O-1")) for _ in range(40)}
    assert len(answers) == 1
    learnings.close()


def test_several_workers_may_ask_one_class(bank: Path) -> None:
    agent_class = remembering(StateBenchAgent, bank, scope="customer_support")
    with ThreadPoolExecutor(4) as workers:
        asked = [workers.submit(agent_class().retrieve_learnings, "cancel the shirt", 1) for _ in range(12)]
        assert len({tuple(one.result()) for one in asked}) == 1


def test_a_bank_that_is_not_there_is_told_in_one_sentence_and_not_made(tmp_path: Path) -> None:
    place = tmp_path / "none.db"
    with pytest.raises(UsageError, match="there is no bank") as told:
        Learnings(place, scope="travel")
    assert "\n" not in str(told.value)
    assert not place.exists()
    assert remembering(StateBenchAgent, place, scope="travel").__name__ == "LessonbankAgent"
