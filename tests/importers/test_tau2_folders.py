"""tau2-bench's folder form: the index has the tasks and the policy, each simulation a file of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Entry, Imported, detect, read

TALK = [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Return the lamp"}]


def simulation(id: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "task_id": "1",
        "termination_reason": "user_stop",
        "trial": 0,
        "mode": "half_duplex",
        "reward_info": {"reward": 1.0},
        "messages": [*TALK, {"role": "assistant", "content": "Done"}],
        **more,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A result with three simulations, of which one failed, one has no reward and one is missing."""
    place = tmp_path / "runs" / "retail"
    (place / "simulations").mkdir(parents=True)
    index = {
        "info": {"environment_info": {"domain_name": "retail", "policy": "Be nice."}, "agent_info": {"llm": "m"}},
        "tasks": [{"id": "1", "user_scenario": {"instructions": {"reason_for_call": "Return the red lamp"}}}],
        "simulation_index": [{"id": id, "task_id": "1", "trial": 0} for id in ("a", "b", "c", "gone")],
    }
    (place / "results.json").write_text(json.dumps(index), encoding="utf-8")
    for one in (
        simulation("a"),
        simulation("b", reward_info={"reward": 0.0}, termination_reason="max_steps"),
        simulation("c", reward_info={"new_form": [1]}),
    ):
        (place / "simulations" / f"{one['id']}.json").write_text(json.dumps(one), encoding="utf-8")
    return place


def told(entries: list[Entry]) -> list[tuple[str, str | None, str]]:
    return [
        (one.trajectory.task, one.verdict and one.verdict.outcome, one.trajectory.instructions)
        if isinstance(one, Imported)
        else (one.reason, None, "")
        for one in entries
    ]


def test_a_folder_of_simulations_has_task_policy_and_reward(folder: Path) -> None:
    expected = [
        ("Return the red lamp", "success", "Be nice."),
        ("Return the red lamp", "failure", "Be nice."),
        ("Return the red lamp", None, "Be nice."),
        ("simulation gone is in the index, and has no file", None, ""),
    ]
    assert detect(folder) == "tau2"
    assert told(list(read(folder))) == expected
    assert told(list(read(folder.parent))) == expected
    assert told(list(read(folder / "results.json"))) == expected


def test_a_reward_in_a_new_form_is_named(folder: Path) -> None:
    unsaid = [one for one in read(folder) if isinstance(one, Imported) and one.verdict is None]
    assert [one.account.left for one in unsaid] == [("`reward_info` may say how the run ended, and was not used",)]


def test_one_simulation_of_a_folder_finds_its_task_beside_it(folder: Path) -> None:
    assert told(list(read(folder / "simulations" / "a.json"))) == [("Return the red lamp", "success", "Be nice.")]


def test_a_simulation_alone_has_its_reward_and_the_users_words(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(simulation("a", policy="Own policy")), encoding="utf-8")
    assert told(list(read(path))) == [("Return the lamp", "success", "Own policy")]


def test_the_same_simulation_is_the_same_run_by_every_way_to_it(folder: Path) -> None:
    ways = (folder, folder.parent, folder / "results.json", folder / "simulations" / "a.json")
    ids = {one.trajectory.id for way in ways for one in list(read(way))[:1] if isinstance(one, Imported)}
    assert len(ids) == 1


def test_a_spoken_simulation_is_refused_in_one_sentence(folder: Path) -> None:
    spoken = simulation("d", messages=None, ticks=[{"tick_id": 0}])
    (folder / "simulations" / "d.json").write_text(json.dumps(spoken), encoding="utf-8")
    reasons = [reason for reason, outcome, _ in told(list(read(folder))) if outcome is None]
    assert "a spoken simulation, kept as ticks, is not read: only one with messages is" in reasons


def test_another_programs_folder_of_simulations_is_walked_as_any_folder(tmp_path: Path) -> None:
    (tmp_path / "simulations").mkdir()
    (tmp_path / "results.json").write_text('{"mean": 3}', encoding="utf-8")
    (tmp_path / "talk.json").write_text(json.dumps({"messages": TALK}), encoding="utf-8")
    assert [reason for reason, _, _ in told(list(read(tmp_path)))][1] == "Return the lamp"
