"""A task done several times: one recall, one contrast, and no run lost to whatever goes wrong around it."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from coded_replies import code_in

import lessonbank
from lessonbank import Evidence, Experience, Extraction, Lesson, Run, Step, Trajectory, Usage, Verdict
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.contracts.events import Retrieved, Settled
from lessonbank.contracts.records import Add
from lessonbank.errors import ModelError, StoreUnavailable, UsageError
from lessonbank.matts import Progress, Scaled
from lessonbank.testing import ScriptedModel
from lessonbank.testing.settings import grouped

pytestmark = [pytest.mark.anyio, pytest.mark.full]

TASK = "Find the cheapest blue shoes"


async def bank_of(where: Path | str = ":memory:", **options: Any) -> AsyncReasoningBank:
    settings: dict[str, Any] = {"scope": "t", "embedder": "lexical", "holdout": None, "admission": None}
    return await lessonbank.connect_async(where, **grouped(**settings | options))


async def with_lesson(bank: AsyncReasoningBank) -> AsyncReasoningBank:
    lesson = Lesson(title="Sort first", content="Sort the list by price before you answer.")
    kept = Experience(scope="t", task=TASK, lessons=(lesson,))
    await bank.store.apply([Add(experience=kept)], scope="t", writer="test")
    return bank


def run(answer: str | None = "12 dollars", *, steps: int = 2, **fields: Any) -> Trajectory:
    made = tuple(
        Step(thought=f"I try {n}.", action=f"search {answer} {n}", observation=f"page {n}") for n in range(steps)
    )
    return Trajectory(task=fields.pop("task", TASK), steps=made, answer=answer, **fields)


def some_lessons(count: int = 1, evidence: str = "run 1, step 1", *, last: str = "") -> str:
    made = [
        {
            "evidence": [evidence],
            "cause": "seen",
            "title": f"Lesson {n}",
            "description": f"When it is about {n}.",
            "content": f"Do the thing number {n} before anything else{last}.",
        }
        for n in range(count)
    ]
    return json.dumps({"items": made})


class Model:
    """Answers as each role is asked: judge, chooser, rewriter, extractor; what it does not know is an error."""

    def __init__(
        self,
        *,
        judge: Callable[[str], str] = lambda prompt: "success",
        best: int = 1,
        rewrites: Sequence[Any] = (),
        lessons: int = 1,
        fails: Sequence[str] = (),
    ) -> None:
        self.judge, self.best, self.rewrites, self.lessons, self.fails = judge, best, list(rewrites), lessons, fails
        self.asked: list[tuple[str, str]] = []
        self.scripted = ScriptedModel(self.answer, name="a:model")

    def answer(self, messages: Sequence[Any]) -> Any:
        prompt = "\n".join(message.content for message in messages)
        role = next(
            name
            for name, sign in (
                ("judge", "You judge whether"),
                ("choose", "choose the best one"),
                ("rewrite", "You are the agent whose run"),
                ("extract", "lesson"),
            )
            if sign in prompt
        )
        self.asked.append((role, prompt))
        if role in self.fails:
            return ModelError(f"no {role} today")
        if role == "extract":
            several = "run 1" if "<<<run 1 " in prompt else ""
            last = f" ({len(self.of('extract'))})"  # each reply has words of its own
            return some_lessons(self.lessons, f"{several}, step 1" if several else "step 1", last=last)
        told: dict[str, Any] = {"check": code_in(messages)}
        if role == "judge":
            told |= {"reason": "step 1 shows it", "outcome": self.judge(prompt), "confidence": 0.9}
        elif role == "choose":
            told |= {"analysis": "it went straight there", "index": [self.best]}
        else:
            told |= {"notes": "looked at step 1", "confirmed": False} | self.rewrites.pop(0)
        return json.dumps(told)

    def of(self, role: str) -> list[str]:
        return [prompt for name, prompt in self.asked if name == role]


class Agent:
    """Gives the answers it was handed, one for each run; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, str]]()

    async def __call__(self, task: str, memory: str) -> Any:
        self.asked.append((task, memory))
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Trajectory) else run(answer)


def right(trajectory: Trajectory) -> bool:
    return trajectory.answer == "12 dollars"


# --- parallel ---------------------------------------------------------------------------------------------------------


async def test_all_runs_see_one_recall_and_are_contrasted_in_one_call() -> None:
    seen, model = list[Any](), Model(judge=lambda prompt: "success" if "12 dollars" in prompt else "failure", best=2)
    bank = await with_lesson(await bank_of(model=model.scripted, hooks=[seen.append]))
    agent = Agent("13 dollars", "12 dollars", "14 dollars")
    scaled = await bank.scale(TASK, agent)
    assert len({memory for _, memory in agent.asked}) == 1
    assert "Sort the list by price" in agent.asked[0][1]
    assert len([event for event in seen if isinstance(event, Retrieved)]) == 1
    assert [a.verdict.outcome for a in scaled.attempts] == ["failure", "success", "failure"]
    assert (scaled.choice, scaled.answer, scaled.best_of_n, scaled.mixed) == (1, "12 dollars", 1.0, True)
    assert scaled.pass_at_1 == pytest.approx(1 / 3)
    assert scaled.pass_at_k == (pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0)
    assert len(model.of("extract")) == 1
    assert len(set(re.findall(r"<<<run (\d)", model.of("extract")[0]))) == 3
    assert scaled.learned
    assert scaled.learned.experience
    assert len(scaled.learned.experience.attempts) == 3
    assert (scaled.stopped, scaled.notes) == ("all were run", ())
    assert "it went straight there" in scaled.why
    settled = [event for event in seen if isinstance(event, Settled)]
    assert len(settled) == 1
    assert settled[0].settlement.recall_id == scaled.recall_id
    assert settled[0].settlement.reward == pytest.approx(1 / 3)


async def test_all_runs_are_under_way_at_once_so_that_the_slowest_says_how_long_it_takes() -> None:
    everybody, waiting = anyio.Event(), 0

    async def agent(task: str, memory: str) -> Trajectory:
        nonlocal waiting
        waiting += 1
        if waiting == 6:
            everybody.set()
        await everybody.wait()  # no run can end before all have begun
        return run()

    with anyio.fail_after(60):
        scaled = await (await bank_of()).scale(TASK, agent, k=6, verify=right)
    assert len(scaled.attempts) == 6


async def test_plain_functions_run_side_by_side_in_threads_of_their_own() -> None:
    barrier = threading.Barrier(5, timeout=60)

    def agent(task: str, memory: str) -> Trajectory:
        barrier.wait()
        return run()

    scaled = await (await bank_of()).scale(TASK, agent, k=5, verify=right)
    assert scaled.pass_at_1 == 1.0


@pytest.mark.parametrize(("told", "expected"), [({"concurrency": 2}, 2), ({}, 8)])
async def test_no_more_runs_are_made_at_once_than_asked_for_and_eight_by_default(
    told: dict[str, int], expected: int
) -> None:
    under_way, most = 0, 0

    async def agent(task: str, memory: str) -> Trajectory:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await anyio.lowlevel.checkpoint()
        under_way -= 1
        return run()

    await (await bank_of()).scale(TASK, agent, k=20, memory=False, verify=right, **told)  # type: ignore[arg-type]
    assert most == expected


async def test_a_run_that_raises_is_a_failed_attempt_and_the_others_go_on() -> None:
    bank = await bank_of()
    scaled = await bank.scale(TASK, Agent("12 dollars", RuntimeError("page crashed"), "12 dollars"), verify=right)
    assert [a.verdict.outcome for a in scaled.attempts] == ["success", "failure", "success"]
    assert scaled.attempts[1].trajectory.error == "RuntimeError: page crashed"
    assert scaled.attempts[1].verdict.source == "framework_error"
    assert scaled.crashed == 1
    assert scaled.pass_at_1 == pytest.approx(2 / 3)
    assert (await bank.admin.counts()).trajectories == 3


async def test_an_agent_that_catches_its_own_error_keeps_its_steps() -> None:
    bank = await bank_of()
    scaled = await bank.scale(TASK, Agent(run(None, steps=3, error="page crashed"), "12 dollars"), k=2, verify=right)
    assert [len(a.trajectory.steps) for a in scaled.attempts] == [3, 2]
    assert (scaled.attempts[0].verdict.source, scaled.choice, scaled.crashed) == ("framework_error", 1, 1)


async def test_an_agent_that_gives_no_run_is_a_failed_attempt_that_says_so() -> None:
    async def nothing(task: str, memory: str) -> Any:
        return None

    scaled = await (await bank_of()).scale(TASK, nothing, k=2)
    assert scaled.choice is None
    assert (scaled.best_of_n, scaled.pass_at_1) == (0.0, 0.0)
    assert any("the agent gave no run" in note for note in scaled.notes)


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_an_agent_that_cancels_itself_is_a_failed_attempt_too(mode: Any) -> None:
    async def agent(task: str, memory: str) -> Trajectory:
        raise asyncio.CancelledError

    scaled = await (await bank_of()).scale(TASK, agent, k=2, mode=mode)
    assert [a.trajectory.error for a in scaled.attempts] == ["the run cancelled itself"] * 2


async def test_the_same_trajectory_given_twice_counts_as_two_runs() -> None:
    same = run()
    scaled = await (await bank_of()).scale(TASK, Agent(same, same), k=2, verify=right)
    assert len({a.trajectory.id for a in scaled.attempts}) == 2
    assert scaled.pass_at_1 == 1.0


async def test_every_run_belongs_to_the_task_whatever_the_agent_calls_it() -> None:
    scaled = await (await bank_of()).scale(TASK, Agent(run(task="shoes"), run(task="other")), k=2, verify=right)
    assert {a.trajectory.task for a in scaled.attempts} == {TASK}
    assert scaled.learned
    assert scaled.learned.experience


async def test_messages_and_plain_answers_are_runs_too() -> None:
    answers = [[{"role": "user", "content": TASK}, {"role": "assistant", "content": "12 dollars"}], "12 dollars"]

    async def agent(task: str, memory: str) -> Any:
        return answers.pop()

    assert (await (await bank_of()).scale(TASK, agent, k=2, verify=right)).pass_at_1 == 1.0


async def test_every_run_gets_its_own_seed() -> None:
    seeds = list[int]()

    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        seeds.append(seed)
        return run()

    await (await bank_of()).scale(TASK, agent, k=3, seed=40)
    assert sorted(seeds) == [40, 41, 42]


# --- truth and judges -------------------------------------------------------------------------------------------------


async def test_the_world_beats_the_judge_and_is_asked_once_a_run() -> None:
    model, asked = Model(judge=lambda prompt: "failure"), list[str]()

    def verify(trajectory: Trajectory) -> bool:
        asked.append(trajectory.id)
        return True

    scaled = await (await bank_of(model=model.scripted)).scale(TASK, Agent("a", "b"), k=2, verify=verify)
    assert {a.verdict.source for a in scaled.attempts} == {"ground_truth"}
    assert len(asked) == 2
    assert not model.of("judge")


async def test_a_score_is_kept_as_a_reward() -> None:
    scores = {"a": 0.4, "b": 1.0}
    bank = await bank_of()
    scaled = await bank.scale(TASK, Agent("a", "b"), k=2, verify=lambda trajectory: scores[trajectory.answer or ""])
    assert [(a.verdict.outcome, a.verdict.reward) for a in scaled.attempts] == [("failure", 0.4), ("success", 1.0)]
    assert scaled.answer == "b"


async def test_the_judge_decides_where_the_verifier_failed() -> None:
    model = Model()

    async def verify(trajectory: Trajectory) -> bool:
        raise RuntimeError("the site is down")

    scaled = await (await bank_of(model=model.scripted)).scale(TASK, Agent("a"), k=1, verify=verify)
    assert scaled.attempts[0].verdict.source == "judge"
    assert "the site is down" in scaled.notes[0]


async def test_a_verifier_that_says_what_is_no_outcome_is_told_so_and_no_run_is_lost() -> None:
    bank = await bank_of()
    with pytest.raises(UsageError, match="verify= gives a bool"):
        await bank.scale(TASK, Agent("a"), k=1, verify=lambda trajectory: "good")  # type: ignore[arg-type,return-value]
    assert len(await bank.runs.pending(limit=10_000)) == 1


async def test_runs_without_a_verdict_stay_pending_and_out_of_the_figures() -> None:
    bank = await bank_of()
    scaled = await bank.scale(TASK, Agent("a", "b"), k=2)
    assert (scaled.pass_at_1, scaled.best_of_n, scaled.pass_at_k) == (None, None, ())
    assert len(await bank.runs.pending(limit=10_000)) == 2
    assert any("how 2 of 2 runs ended is not known" in note for note in scaled.notes)


# --- what the extractor is told --------------------------------------------------------------------------------------


async def test_labels_of_one_call_do_not_stay_with_the_bank() -> None:
    model = Model()
    bank = await bank_of(model=model.scripted)
    await bank.scale(TASK, Agent("a", "12 dollars"), k=2, verify=right, labels=False)
    await bank.scale(TASK, Agent("b", "12 dollars"), k=2, verify=right)
    assert ["(failure)" in prompt for prompt in model.of("extract")] == [False, True]


async def test_an_extractor_of_ones_own_that_can_hide_labels_is_asked_to() -> None:
    told: list[bool] = []

    class Own:
        def __init__(self, shown: bool = True) -> None:
            self._shown = shown

        def labelled(self, shown: bool, /) -> Own:
            return Own(shown)

        async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
            told.append(self._shown)
            return Extraction()

    bank = await bank_of(extractor=Own())
    for labels in (False, True, None):
        scaled = await bank.scale(TASK, Agent("a", "b"), k=2, verify=right, labels=labels)
        assert not any("labels=" in note for note in scaled.notes)
    assert told == [False, True, True]


async def test_an_extractor_that_cannot_hide_labels_says_so() -> None:
    async def extractor(attempts: Sequence[Run]) -> Extraction:
        return Extraction()

    scaled = await (await bank_of(extractor=extractor)).scale(TASK, Agent("a", "b"), k=2, verify=right, labels=False)
    assert "labels= changed nothing" in scaled.notes[0]


# --- choosing ---------------------------------------------------------------------------------------------------------


async def test_verdicts_choose_where_nobody_is_to_be_asked() -> None:
    model = Model(judge=lambda prompt: "success" if "12 dollars" in prompt else "failure")
    scaled = await (await bank_of(model=model.scripted)).scale(TASK, Agent("a", "12 dollars"), k=2, choose="verdicts")
    assert (scaled.answer, scaled.why) == ("12 dollars", "by verdict: success, judge")
    assert not model.of("choose")


async def test_a_choice_by_the_truth_is_marked_as_such() -> None:
    scaled = await (await bank_of()).scale(TASK, Agent("a", "12 dollars"), k=2, verify=right)
    assert scaled.best_of_n == 1.0
    assert any("best of n is then Pass@n" in note for note in scaled.notes)


async def test_the_verdicts_choose_where_the_model_fails_to() -> None:
    for model in (Model(fails=["choose"]), Model(best=9)):
        bank = await bank_of(model=model.scripted)
        scaled = await bank.scale(TASK, Agent("a", "12 dollars"), k=2, verify=right)
        assert scaled.answer == "12 dollars"
        assert any("the verdicts chose the best run" in note for note in scaled.notes)
        assert len(model.of("choose")) == 1


async def test_a_run_that_crashed_is_not_shown_to_who_chooses() -> None:
    model = Model(best=2)
    bank = await bank_of(model=model.scripted)
    scaled = await bank.scale(TASK, Agent("a", RuntimeError("crash"), "12 dollars"), verify=right)
    assert len(set(re.findall(r"<<<run (\d)", model.of("choose")[0]))) == 2
    assert scaled.choice == 2
    alone = Model()
    await (await bank_of(model=alone.scripted)).scale(TASK, Agent("a", RuntimeError("crash")), k=2, verify=right)
    assert not alone.of("choose")


async def test_secrets_of_a_run_are_not_shown_to_who_chooses() -> None:
    secret = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8" * 2
    model = Model()
    scaled = await (await bank_of(model=model.scripted)).scale(TASK, Agent(secret, "b"), k=2, verify=right)
    assert scaled.attempts[0].trajectory.answer == secret
    assert not [role for role, prompt in model.asked if secret in prompt]


# --- sequential -------------------------------------------------------------------------------------------------------


async def test_one_confirmation_is_enough_if_the_caller_says_so() -> None:
    scaled = await (await bank_of()).scale(TASK, Agent("a", "a"), mode="sequential", k=5, confirm=1)
    assert (len(scaled.attempts), scaled.stopped) == (2, "confirmed")


async def test_an_agent_that_takes_the_check_gets_it_apart_from_the_memory() -> None:
    given = list[tuple[str, str, str | None]]()

    async def agent(task: str, memory: str, *, check: str = "", previous: Trajectory | None = None) -> Trajectory:
        given.append((memory, check, previous.answer if previous else None))
        return run(f"answer {len(given)}")

    await (await with_lesson(await bank_of())).scale(TASK, agent, mode="sequential", k=3)
    assert len({memory for memory, _, _ in given}) == 1
    assert [previous for _, _, previous in given] == [None, "answer 1", "answer 2"]
    assert [check[:12] for _, check, _ in given] == ["", "You have wor", "Check it onc"]


async def test_a_crash_in_a_re_examination_leaves_the_run_before_to_be_examined() -> None:
    agent = Agent("12 dollars", RuntimeError("crash"), "12 dollars", "12 dollars")
    scaled = await (await bank_of()).scale(TASK, agent, mode="sequential", k=4, verify=right)
    assert "search 12 dollars 0" in agent.asked[2][1]
    assert (scaled.choice, scaled.stopped, scaled.best_of_n) == (3, "confirmed", 1.0)
    crashed = Agent("12 dollars", RuntimeError("crash"))
    scaled = await (await bank_of()).scale(TASK, crashed, mode="sequential", k=2, verify=right)
    assert scaled.answer == "12 dollars"


async def test_a_first_run_that_crashed_is_made_again_without_a_check() -> None:
    agent = Agent(RuntimeError("crash"), "12 dollars", "12 dollars")
    await (await bank_of()).scale(TASK, agent, mode="sequential", k=3)
    assert [memory[:20] for _, memory in agent.asked[:2]] == ["", ""]
    assert agent.asked[2][1].startswith("You have worked on this task")


async def test_a_model_can_rewrite_the_answer_and_the_agent_acts_once() -> None:
    model = Model(rewrites=[{"answer": "12 dollars"}, {"confirmed": True}, {"confirmed": True}])
    agent = Agent("13 dollars")
    bank = await bank_of(model=model.scripted)
    scaled = await bank.scale(TASK, agent, mode="sequential", k=8, examine="rewrite", verify=right)
    assert len(agent.asked) == 1
    assert [a.trajectory.answer for a in scaled.attempts] == ["13 dollars", *["12 dollars"] * 3]
    assert scaled.stopped == "confirmed"
    last = scaled.attempts[-1].trajectory
    assert [step.thought for step in last.steps[-3:]] == ["looked at step 1"] * 3
    assert "looked at step 1" in model.of("extract")[0]
    assert scaled.usage.requests == 3
    assert "worked on this task already" in model.of("rewrite")[0]
    assert "Check it once more" in model.of("rewrite")[1]


@pytest.mark.parametrize("model", [Model(fails=["rewrite"]), Model(rewrites=[{"answer": ""}])])
async def test_a_model_that_cannot_re_examine_costs_the_agent_nothing(model: Model) -> None:
    bank = await bank_of(model=model.scripted)
    scaled = await bank.scale(TASK, Agent("12 dollars"), mode="sequential", k=4, examine="rewrite", verify=right)
    assert (len(scaled.attempts), scaled.stopped, scaled.pass_at_1) == (1, "not examined", 1.0)
    assert any("not re-examined any further" in note for note in scaled.notes)


async def test_secrets_of_a_run_are_not_shown_to_who_rewrites_it_and_a_confirmed_answer_keeps_them() -> None:
    secret = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8" * 2
    model = Model(rewrites=[{"confirmed": True}, {"confirmed": True}])
    bank = await bank_of(model=model.scripted)
    scaled = await bank.scale(TASK, Agent(secret), k=3, mode="sequential", examine="rewrite", verify=right)
    assert len(model.of("rewrite")) == 2
    assert not [role for role, prompt in model.asked if secret in prompt]
    assert (scaled.stopped, scaled.answer) == ("confirmed", secret)
    assert [step.action.text for step in scaled.attempts[-1].trajectory.steps[:1]] == [f"search {secret} 0"]


async def test_a_redactor_that_breaks_ends_the_rewriting_and_costs_no_run() -> None:
    def redact(text: str) -> str:
        if "12 dollars" in text:
            raise RuntimeError("no redaction today")
        return text

    model = Model(rewrites=[{"confirmed": True}])
    bank = await bank_of(model=model.scripted, redact=redact)
    scaled = await bank.scale(TASK, Agent("12 dollars"), k=3, mode="sequential", examine="rewrite", verify=right)
    assert (len(scaled.attempts), scaled.stopped, scaled.answer) == (1, "not examined", "12 dollars")
    assert not model.asked
    assert any("not re-examined any further" in note for note in scaled.notes)


# --- controls ---------------------------------------------------------------------------------------------------------


async def test_a_frozen_bank_is_shown_and_left_as_it_is() -> None:
    bank, agent = await with_lesson(await bank_of()), Agent("a", "12 dollars")
    scaled = await bank.scale(TASK, agent, k=2, learn=False, verify=right)
    assert "Sort the list by price" in agent.asked[0][1]
    assert (scaled.learned, scaled.pass_at_1) == (None, 0.5)
    counts = await bank.admin.counts()
    assert (counts.trajectories, counts.recalls, counts.recalls_with_a_run) == (0, 1, 0)


async def test_in_vanilla_mode_no_note_doubts_that_the_runs_share_a_recall_and_what_failed_is_named() -> None:
    async def fails_late(attempts: Sequence[Run]) -> Extraction:
        if attempts[0].verdict.outcome == "success":
            raise ModelError("down")
        return Extraction()

    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        return run("12 dollars" if seed else "14 dollars")

    bank = await bank_of(extractor=fails_late)
    scaled = await bank.scale(TASK, agent, k=2, mode="vanilla", verify=lambda run: run.answer == "12 dollars")
    assert scaled.learned
    assert [verdict.outcome for verdict in scaled.learned.verdicts] == ["failure", "success"]
    assert scaled.learned.errors == (ModelError.code,)
    assert not [note for note in scaled.notes if "recall" in note], scaled.notes


# --- budgets ----------------------------------------------------------------------------------------------------------


def spending(**usage: Any) -> Callable[[str, str], Awaitable[Trajectory]]:
    async def agent(task: str, memory: str) -> Trajectory:
        return run(usage=Usage(requests=1, **usage))

    return agent


@pytest.mark.parametrize("mode", ["parallel", "sequential", "vanilla"])
async def test_no_run_is_begun_once_the_tokens_are_spent(mode: Any) -> None:
    bank = await bank_of()
    scaled = await bank.scale(
        TASK, spending(input_tokens=40, output_tokens=10), k=9, mode=mode, confirm=9, tokens=120, verify=right
    )
    assert (len(scaled.attempts), scaled.stopped, scaled.usage.input_tokens) == (3, "tokens", 120)
    assert scaled.learned


async def test_under_a_budget_one_run_shows_the_price_and_the_others_run_together() -> None:
    first, together, begun = anyio.Event(), anyio.Event(), list[int]()

    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        begun.append(seed)
        assert seed == 0 or first.is_set()
        if len(begun) == 4:
            together.set()
        if seed == 0:
            first.set()
        else:
            await together.wait()
        return run(usage=Usage(output_tokens=100))

    with anyio.fail_after(60):
        scaled = await (await bank_of()).scale(TASK, agent, k=4, tokens=1000, verify=right)
    assert ([a.verdict.outcome for a in scaled.attempts], scaled.stopped) == (["success"] * 4, "all were run")


async def test_a_crash_at_the_start_does_not_let_all_others_go_at_once_over_the_budget() -> None:
    begun = list[int]()

    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        begun.append(seed)
        if seed == 0:
            raise RuntimeError("the site was down")
        return run(usage=Usage(output_tokens=100))

    scaled = await (await bank_of()).scale(TASK, agent, k=9, tokens=100, verify=right)
    assert (begun, scaled.stopped, scaled.usage.output_tokens) == ([0, 1], "tokens", 100)


async def test_what_is_under_way_when_the_tokens_are_spent_is_finished() -> None:
    everybody, begun = anyio.Event(), list[int]()

    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        begun.append(seed)
        if len(begun) == 4:
            everybody.set()
        await everybody.wait()
        return run(usage=Usage(output_tokens=100))

    scaled = await (await bank_of()).scale(TASK, agent, k=9, tokens=100, concurrency=4, verify=right)
    assert (len(scaled.attempts), scaled.stopped) == (4, "tokens")
    assert not any(a.trajectory.error for a in scaled.attempts)


async def test_a_run_under_way_when_time_is_up_is_cut_off_and_failed() -> None:
    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        if seed:
            await anyio.Event().wait()
        return run()

    bank = await bank_of()
    scaled = await bank.scale(TASK, agent, k=3, seconds=1.5, verify=right)
    assert [bool(a.trajectory.error) for a in scaled.attempts] == [False, True, True]
    assert "its 1.5 seconds were over" in (scaled.attempts[1].trajectory.error or "")
    assert scaled.answer == "12 dollars"
    assert scaled.stopped == "seconds"
    alone = await bank.scale(TASK, agent, k=3, mode="sequential", seconds=1.0, seed=1, verify=right)
    assert (len(alone.attempts), alone.stopped, alone.choice) == (1, "seconds", None)


@pytest.mark.full
async def test_a_plain_function_cannot_be_cut_off_and_its_run_counts() -> None:
    over = threading.Event()

    def agent(task: str, memory: str) -> Trajectory:
        over.wait(1.0)  # longer than the budget: nobody sets it
        return run()

    scaled = await (await bank_of()).scale(TASK, agent, k=4, concurrency=1, seconds=0.5, verify=right)
    assert ([a.trajectory.error for a in scaled.attempts], scaled.stopped) == ([None], "seconds")


async def test_a_budget_that_runs_do_not_account_for_is_named() -> None:
    scaled = await (await bank_of()).scale(TASK, Agent("a", "b"), k=2, cost=1.0, verify=right)
    assert any("the budget in money could not be kept" in note for note in scaled.notes)


# --- progress, usage, record ------------------------------------------------------------------------------------------


async def test_progress_is_told_after_every_run() -> None:
    told = list[Progress]()
    bank = await bank_of()
    scaled = await bank.scale(TASK, spending(output_tokens=5), k=3, progress=told.append)
    assert [(p.done, p.of, p.usage.output_tokens) for p in told] == [(1, 3, 5), (2, 3, 10), (3, 3, 15)]
    assert {p.run.id for p in told} == {a.trajectory.id for a in scaled.attempts}
    assert all(p.seconds >= 0 for p in told)


async def test_what_progress_raises_ends_the_whole_and_loses_no_run() -> None:
    def enough(progress: Progress) -> None:
        if progress.done == 2:
            raise LookupError("enough")

    bank = await bank_of()
    with pytest.raises(LookupError, match="enough"):
        await bank.scale(TASK, Agent("a", "b", "c"), k=3, concurrency=1, progress=enough)
    assert len(await bank.runs.pending(limit=10_000)) == 2


async def test_usage_is_told_for_each_run_in_sum_and_for_what_was_done_around_it() -> None:
    model = Model(best=1)
    bank = await bank_of(model=model.scripted)
    scaled = await bank.scale(TASK, spending(input_tokens=70), k=2)
    assert [a.trajectory.usage.input_tokens for a in scaled.attempts] == [70, 70]
    assert (scaled.usage.input_tokens, scaled.usage.requests) == (140, 2)
    assert scaled.overhead.requests == 4  # two verdicts, a choice, an extraction
    assert scaled.total.requests == 6
    frozen = await bank.scale(TASK, spending(input_tokens=70), k=2, learn=False)
    assert frozen.overhead.requests == 3


async def test_every_run_says_how_long_it_took_unless_it_says_so_itself() -> None:
    bank = await bank_of()
    scaled = await bank.scale(TASK, Agent(run(), run(metadata={"seconds": 9.5})), k=2, concurrency=1)
    seconds = [a.trajectory.metadata["seconds"] for a in scaled.attempts]
    assert isinstance(seconds[0], float)
    assert (seconds[0] < 5, seconds[1]) == (True, 9.5)
    assert scaled.seconds < 5


async def test_the_record_can_be_printed_kept_and_read_again() -> None:
    scaled = await (await bank_of()).scale(TASK, Agent("\x1b[31mred", "12 dollars"), k=2, verify=right)
    assert Scaled.model_validate_json(scaled.model_dump_json()) == scaled
    told = str(scaled)
    assert "2 of 2 runs" in told
    assert "Pass@1 0.50; best of 2 1.00; Pass@2 1.00. Stopped: all were run." in told
    assert "\x1b" not in told
    assert "Scaled" in str(Scaled(task="t", scope="s", mode="parallel", k=1))


# --- failing open, cancellation --------------------------------------------------------------------------------------


async def test_the_agent_works_without_memory_where_the_store_fails() -> None:
    bank = await bank_of()

    class Down:
        def __getattr__(self, name: str) -> Any:
            raise StoreUnavailable("the disk is full")

    bank.store = Down()  # type: ignore[assignment]
    scaled = await bank.scale(TASK, Agent("a", "12 dollars"), k=2, verify=right)
    assert (scaled.pass_at_1, scaled.answer, scaled.recall_id) == (0.5, "12 dollars", None)
    for told in ("the agent works without memory", "a run is not on disk yet", "nothing was learned from these runs"):
        assert sum(told in note for note in scaled.notes) == 1
    assert scaled.learned
    assert not scaled.learned.lessons


async def test_a_hook_that_breaks_while_learning_costs_no_run() -> None:
    def hook(event: Any) -> None:
        if isinstance(event, Settled):
            raise RuntimeError("the audit log is full")

    scaled = await (await bank_of(hooks=[hook])).scale(TASK, Agent("a"), k=1, verify=right)
    assert scaled.attempts[0].verdict.outcome == "failure"
    assert any("the audit log is full" in note for note in scaled.notes)


async def test_a_judge_that_breaks_leaves_the_run_without_a_verdict() -> None:
    async def judge(trajectory: Trajectory) -> Verdict:
        raise RuntimeError("no judge")

    scaled = await (await bank_of(judge=judge)).scale(TASK, Agent("a"), k=1, learn=False)
    assert scaled.attempts[0].verdict.outcome == "unknown"
    assert any("a run was not judged" in note for note in scaled.notes)


async def test_an_extraction_that_fails_costs_the_lesson_and_says_so() -> None:
    model = Model(fails=["extract"])
    bank = await bank_of(model=model.scripted)
    scaled = await bank.scale(TASK, Agent("a", "b"), k=2, choose="verdicts")
    assert scaled.pass_at_1 == 1.0
    assert any("no lesson was drawn" in note for note in scaled.notes)
    assert len(await bank.runs.pending(limit=10_000)) == 2


async def test_runs_that_ended_before_a_cancellation_are_on_disk() -> None:
    bank, ended = await bank_of(), anyio.Event()

    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        if seed == 2:
            await anyio.Event().wait()
        return run(f"answer {seed}")

    def progress(told: Progress) -> None:
        if told.done == 2:
            ended.set()

    async with anyio.create_task_group() as tasks:

        async def scale() -> None:
            await bank.scale(TASK, agent, k=3, progress=progress)
            raise AssertionError("it was to be cancelled")

        tasks.start_soon(scale)
        await ended.wait()
        tasks.cancel_scope.cancel()
    assert {pending.answer for pending in await bank.runs.pending(limit=10_000)} == {"answer 0", "answer 1"}
    learned = await bank.learn(await bank.runs.pending(limit=10_000), outcome=["success", "failure"])
    assert len(learned.verdicts) == 2


@pytest.mark.parametrize(("mode", "reached"), [("parallel", [0, 1, 2]), ("sequential", [0])])
async def test_a_cancellation_reaches_the_agents(mode: Any, reached: list[int]) -> None:
    cancelled, begun = list[int](), anyio.Event()

    async def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        try:
            begun.set()
            await anyio.Event().wait()
        finally:
            cancelled.append(seed)
        return run()

    bank = await bank_of()
    working = asyncio.ensure_future(bank.scale(TASK, agent, k=3, mode=mode))
    await begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert sorted(cancelled) == reached
    assert (await bank.admin.counts()).trajectories == 0


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_a_plain_function_that_ends_after_a_cancellation_is_waited_for_and_on_disk(mode: Any) -> None:
    bank, begun, go, made = await bank_of(), threading.Event(), threading.Event(), list[int]()

    def agent(task: str, memory: str, *, seed: int) -> Trajectory:
        made.append(seed)
        begun.set()
        go.wait(60)
        return run(f"answer {seed}")

    working = asyncio.ensure_future(bank.scale(TASK, agent, k=3, mode=mode))
    await anyio.to_thread.run_sync(begun.wait)
    working.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert {pending.answer for pending in await bank.runs.pending(limit=10_000)} == {f"answer {seed}" for seed in made}


async def test_a_cancellation_while_learning_leaves_all_runs_to_be_learned_later() -> None:
    asked = anyio.Event()

    async def extractor(attempts: Sequence[Run]) -> Extraction:
        asked.set()
        await anyio.Event().wait()
        return Extraction()

    bank = await bank_of(extractor=extractor)
    working = asyncio.ensure_future(bank.scale(TASK, Agent("a", "12 dollars", "b"), verify=right))
    await asked.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert (len(await bank.runs.pending(limit=10_000)), (await bank.admin.counts()).experiences) == (3, 0)


# --- bad arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"k": 0}, "k is a whole number"),
        ({"limit": 0}, "limit is a whole number of at least 1"),
        ({"verify": "success"}, "verify= takes a function"),
        ({"progress": 3}, "progress= takes a function"),
        ({"choose": "model"}, "choose='model' needs a model"),
        ({"mode": "sequential", "examine": "rewrite"}, "examine='rewrite' needs a model"),
    ],
)
async def test_a_bad_argument_is_refused_before_anything_is_done(arguments: dict[str, Any], said: str) -> None:
    bank, agent = await bank_of(), Agent("a")
    with pytest.raises(UsageError, match=said):
        await bank.scale(TASK, agent, **arguments)
    assert not agent.asked
    assert (await bank.admin.counts()).recalls == 0


async def test_a_blank_task_is_refused_without_memory_too() -> None:
    for task in ("  ", 7):
        with pytest.raises(UsageError):
            await (await bank_of()).scale(task, Agent("a"), memory=False)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="agent"):
        await (await bank_of()).scale(TASK, "agent")  # type: ignore[arg-type]


def test_the_bank_that_waits_scales_as_well() -> None:
    def agent(task: str, memory: str) -> Trajectory:
        return run()

    with lessonbank.connect(":memory:", scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        scaled = bank.scale(TASK, agent, k=2, verify=right)
    assert (scaled.pass_at_1, scaled.mode) == (1.0, "parallel")
