"""Several runs of one task (MaTTS): each claim checked through the public API, offline."""

from __future__ import annotations

import re
from typing import Any

import pytest
from claiming import Profile, bank, both_profiles, claim, run, some_lessons
from coded_replies import coded

import lessonbank
from lessonbank import Trajectory
from lessonbank.matts import pass_at
from lessonbank.testing.fakes import ScriptedModel

TASK = "Find the cheapest blue shoes"


class Agent:
    """Answers in turn, and remembers what it was shown."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.shown = list(answers), list[str]()

    async def __call__(self, task: str, memory: str) -> Trajectory:
        self.shown.append(memory)
        return run(task, answer=self.answers[len(self.shown) - 1])


def right(trajectory: Trajectory) -> bool:
    return trajectory.answer == "12 dollars"


def choosing(number: int) -> Any:
    return coded(analysis="it looked at every page", index=[number])


def scaled(
    profile: Profile, agent: Agent, *replies: Any, **options: Any
) -> tuple[lessonbank.ReasoningBank, Any, ScriptedModel]:
    model = ScriptedModel([some_lessons(last=" at once"), *replies])
    memory = bank(profile, model=model)
    memory.learn(run(), outcome="success")
    return memory, memory.scale(TASK, agent, verify=right, **options), model


@claim("parallel-driver", "one-recall-for-all", "scaling-race")
@both_profiles
def test_k_runs_are_made_under_one_recall_and_contrasted_once(profile: Profile) -> None:
    agent = Agent("14 dollars", "12 dollars", "13 dollars")
    memory, result, model = scaled(profile, agent, some_lessons(9, evidence="run 1, step 2"), choosing(2), k=3)
    assert "Do the thing number 1" in agent.shown[0]
    assert len(set(agent.shown)) == 1
    assert memory.admin.counts().recalls == 1
    assert len(model.calls) == 3
    assert len(set(re.findall(r"<<<run (\d)", model.calls[1].prompt))) == 3
    assert len(result.learned.lessons) == 5
    memory.close()


@claim("best-of-n")
@both_profiles
def test_a_model_chooses_the_best_of_n_by_the_papers_criteria(profile: Profile) -> None:
    agent = Agent("14 dollars", "12 dollars")
    memory, result, model = scaled(profile, agent, some_lessons(evidence="run 1, step 2"), choosing(2), k=2)
    prompt = model.calls[-1].prompt
    for criterion in ("Progress", "Efficiency", "Loops", "fatal", "Quality as a whole"):
        assert criterion in prompt
    assert "(success)" not in prompt
    assert ("error: choose a colour first" in prompt) is (profile == "default")
    assert (result.answer, result.best_of_n) == ("12 dollars", 1.0)
    memory.close()


@claim("pass-at-k")
@both_profiles
def test_pass_at_one_and_pass_at_k_are_told(profile: Profile) -> None:
    agent = Agent("14 dollars", "12 dollars", "13 dollars", "15 dollars")
    memory, result, _ = scaled(profile, agent, some_lessons(evidence="run 1, step 2"), choosing(1), k=4)
    assert (result.pass_at_1, result.best_of_n) == (0.25, 0.0)
    assert result.pass_at_k == (0.25, 0.5, 0.75, 1.0) == tuple(pass_at(k, n=4, successes=1) for k in (1, 2, 3, 4))
    memory.close()


@claim("sequential")
@both_profiles
def test_the_agent_re_examines_its_run_and_all_rounds_are_learned_from(profile: Profile) -> None:
    agent = Agent("14 dollars", "12 dollars", "12 dollars", "12 dollars", "never")
    reply = some_lessons(evidence="run 2, step 2")
    memory, result, model = scaled(profile, agent, reply, mode="sequential", k=5)
    assert "right elements" in agent.shown[1]
    assert "address what was asked" in agent.shown[1]
    assert "Check it once more" in agent.shown[2]
    assert all(told.startswith(agent.shown[0]) for told in agent.shown)
    assert len(set(re.findall(r"<<<run (\d)", model.calls[1].prompt))) == 4
    assert (result.stopped, result.pass_at_1, result.best_of_n) == ("confirmed", 0.0, 1.0)
    memory.close()


@claim("vanilla-scaling")
@both_profiles
def test_vanilla_scaling_draws_three_lessons_from_each_run(profile: Profile) -> None:
    agent = Agent("14 dollars", "12 dollars")
    memory, result, model = scaled(
        profile, agent, some_lessons(5), some_lessons(5, last=" again"), choosing(1), k=2, mode="vanilla"
    )
    assert len(result.learned.lessons) == 6
    assert not [call for call in model.calls if "<<<run 1 (" in call.prompt and "contrast" in call.prompt]
    memory.close()


@claim("no-memory-scaling")
@both_profiles
def test_scaling_without_memory_shows_and_learns_nothing(profile: Profile) -> None:
    agent = Agent("14 dollars", "12 dollars")
    memory, result, _ = scaled(profile, agent, choosing(1), k=2, memory=False)
    assert (agent.shown, result.learned, result.pass_at_1) == (["", ""], None, pytest.approx(0.5))
    assert memory.admin.counts().experiences == 1
    memory.close()


@claim("contrast-without-labels")
@both_profiles
@pytest.mark.parametrize("labels", [True, False])
def test_labels_can_be_shown_or_hidden_in_either_profile(profile: Profile, labels: bool) -> None:
    agent = Agent("14 dollars", "12 dollars")
    memory, _, model = scaled(profile, agent, some_lessons(evidence="run 1, step 2"), choosing(1), k=2, labels=labels)
    assert ("<<<run 2 (success)" in model.calls[1].prompt) is labels
    assert ("is not told" in model.calls[1].prompt) is (profile == "default" and not labels)
    memory.close()
