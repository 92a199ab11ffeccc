"""The same tasks again, with and without a lesson: what the agent is handed, what it must prove, what comes of it."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import Action, Experience, Lesson, Step, ToolCall, Trajectory, Usage
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.contracts.records import Add
from lessonbank.contracts.records.ids import digest
from lessonbank.errors import FormatError, UsageError
from lessonbank.evidence import Holdout
from lessonbank.testing.settings import grouped
from lessonbank.trials import Trial

pytestmark = [pytest.mark.anyio, pytest.mark.full]

TASK = "Cancel the order"


def a_lesson(name: str, content: str = "", **more: Any) -> Lesson:
    return Lesson(title=f"Lesson {name}", description=f"when {name}", content=content or f"Do {name}.", **more)


async def bank_of(*lessons: Lesson, holdout: Any = None, **options: Any) -> AsyncReasoningBank:
    """A bank whose tasks all find the same lessons."""
    bank = await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", **grouped(holdout=holdout, **options)
    )
    kept = Experience(scope="t", task=TASK, lessons=lessons)
    await bank.store.apply([Add(experience=kept)], scope="t", writer="test")
    return bank


def numbered(tasks: int) -> list[str]:
    return [f"{TASK} number {n}" for n in range(tasks)]


async def ask(
    bank: AsyncReasoningBank, tasks: Any, agent: Any, *, verify: Any = lambda run: run.answer == "yes", **more: Any
) -> Trial:
    return await bank.trial(tasks, agent, verify=verify, **more)


class World:
    """A resettable world with planted effects: a lesson moves the chance of success, the seed is all luck."""

    def __init__(self, effects: dict[str, float] | None = None, *, base: float = 0.5) -> None:
        self.effects, self.base = effects or {}, base
        self.asked: list[tuple[str, str]] = []

    def __call__(self, task: str, memory: str, *, seed: int) -> Trajectory:
        self.asked.append((task, memory))
        chance = self.base + sum(by for name, by in self.effects.items() if f"Lesson {name}\n" in memory)
        drawn = random.Random(f"{seed} {task}").random()
        return Trajectory(task=task, instructions=f"Be brief.\n\n{memory}", answer="yes" if drawn < chance else "no")

    @property
    def texts(self) -> list[str]:
        return [memory for _, memory in self.asked]


def lines(text: str) -> list[str]:
    """The lines of the lessons, without their nonces and numbers."""
    inside = [line.partition("| ")[2] for line in text.split("\n") if "| " in line[:12]]
    return [line.partition("] ")[2] if line.startswith("[") else line for line in inside]


def frame(text: str) -> list[str]:
    return [line for line in text.split("\n") if "| " not in line[:12]]


# --- what the agent is handed ----------------------------------------------------------------------------------------


async def test_the_two_texts_differ_by_the_lesson_and_nothing_else() -> None:
    first, second, third = a_lesson("a"), a_lesson("b", kind="guardrail"), a_lesson("c")
    bank, world = await bank_of(first, second, third), World()
    await ask(bank, numbered(1), world, without=second.id)
    with_, without = sorted(set(world.texts), key=len, reverse=True)
    assert lines(with_) == lines((await bank.retrieve(numbered(1)[0])).text)
    assert lines(without) == [
        line for line in lines(with_) if line not in ("guardrail: Lesson b", "  when: when b", "  Do b.")
    ]
    assert len(lines(without)) == len(lines(with_)) - 3
    assert frame(with_) == frame(without)


async def test_a_lesson_that_was_shown_alone_leaves_an_empty_text() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only), World({"a": 0.5})
    told = await ask(bank, numbered(40), world, without=only.id)
    assert "" in world.texts
    assert told.standing == "helps"
    assert {row.memory_digest for row in told.rows if row.arm == "without"} == {digest("")}


async def test_a_lesson_is_added_to_what_was_shown() -> None:
    there, other = a_lesson("a"), a_lesson("b")
    bank, world = await bank_of(there), World({"b": 0.5})
    elsewhere = Experience(scope="t", task="Paint the fence", lessons=(other,))
    await bank.store.apply([Add(experience=elsewhere)], scope="t", writer="test")
    told = await ask(bank, numbered(40), world, with_=other.id)
    assert (told.standing, told.title) == ("helps", "Lesson b")
    first = numbered(1)[0]
    without, with_ = sorted({text for task, text in world.asked if task == first}, key=len)
    assert lines(without) == lines((await bank.retrieve(first)).text)
    assert lines(with_) == [*lines(without), "strategy: Lesson b", "  when: when b", "  Do b."]
    assert told.notes == ()


async def test_the_bank_stays_as_it_was() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    tasks = numbered(3)
    before = (await bank.admin.counts(), (await bank.lessons.list(limit=10_000))[::-1])
    await ask(bank, tasks, World({"a": 0.4}), without=only.id)
    assert (await bank.admin.counts(), (await bank.lessons.list(limit=10_000))[::-1]) == before


async def test_a_retired_lesson_can_be_tried_once_more_and_a_quarantined_one_cannot() -> None:
    tried, beside = a_lesson("a"), a_lesson("b")
    bank, world = await bank_of(tried, beside), World({"a": 0.5})
    await bank.lessons.retire(tried.id, reason="it seemed to harm")
    assert (await ask(bank, numbered(40), world, with_=tried.id)).standing == "helps"
    assert (await bank.lessons.get(tried.id)).retired
    await bank.lessons.quarantine(beside.id, reason="risky")
    with pytest.raises(UsageError, match="unknown, erased or in quarantine"):
        await ask(bank, numbered(40), world, with_=beside.id)


# --- proof -----------------------------------------------------------------------------------------------------------


async def test_an_agent_whose_runs_do_not_show_the_memory_is_measured_and_the_result_says_so() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only), World({"a": 0.5})

    def quiet(task: str, memory: str, *, seed: int) -> Trajectory:
        return world(task, memory, seed=seed).model_copy(update={"instructions": ""})

    told = await ask(bank, numbered(40), quiet, without=only.id)
    assert told.standing == "helps"
    assert f"in {told.pairs} of {told.runs} runs the memory that was handed over does not show" in str(told)


async def test_an_agent_that_drops_the_memory_shows_no_effect_and_is_not_taken_for_proof_of_none() -> None:
    bank = await bank_of(a_lesson("a"))

    def forgetful(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, instructions="Be brief.", answer="yes")

    told = await ask(bank, numbered(30), forgetful)
    assert (told.effect, told.standing) == (0.0, "no evidence yet")
    assert "and none if the agent drops or mixes it" in str(told)


async def test_a_run_that_holds_the_text_of_the_other_side_is_counted_and_named() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    shown = (await bank.recalls.preview(TASK)).text

    def stuck(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, instructions=shown, metadata={"memory_digest": digest(memory)}, answer="yes")

    told = await ask(bank, TASK, stuck, without=only.id)
    assert {row.arm: row.proven for row in told.rows} == {"with": True, "without": False}
    assert "in 1 of 2 runs" in str(told)
    assert "or that of the other side does" in str(told)


async def test_a_digest_is_proof_and_a_wrong_one_is_none() -> None:
    only = a_lesson("a")
    bank, tasks = await bank_of(only), numbered(3)

    def echoing(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, answer="yes", metadata={"memory_digest": digest(memory)})

    def lying(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, instructions=memory, answer="yes", metadata={"memory_digest": "0" * 64})

    assert (await ask(bank, tasks, echoing, without=only.id)).pairs == 3
    told = await ask(bank, tasks, lying, without=only.id)
    assert not any(row.proven for row in told.rows)


async def test_the_text_may_stand_in_a_step_or_in_the_messages() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    tasks = numbered(2)

    def as_step(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, steps=(Step(action="", observation=f"{task}\n{memory}"), Step(action="done")))

    def as_messages(task: str, memory: str) -> list[dict[str, str]]:
        said = [{"role": "user", "content": f"{task}\n\n{memory}"}, {"role": "assistant", "content": "yes"}]
        return [{"role": "system", "content": "Be brief."}, *said]

    def as_original(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, original=({"deep": [{"content": memory}]},))

    def as_arguments(task: str, memory: str) -> Trajectory:
        call = ToolCall(name="ask", arguments={"system": ["\x1b \u00e9 \U0001f600", f"\x01 {memory} \\"]})
        return Trajectory(task=task, steps=(Step(action=Action(calls=(call,))),))

    for agent in (as_step, as_messages, as_original, as_arguments):
        told = await ask(bank, tasks, agent, verify=lambda run: 0.5, without=only.id)
        assert (told.pairs, told.ties) == (2, 2), agent
        assert all(row.proven for row in told.rows), agent


async def test_a_text_with_odd_characters_is_found_again() -> None:
    bank = await bank_of(a_lesson("a", 'Say "caf\u00e9" \U0001f600 \\ \x7f / <b>\u2028 here.'))
    told = await ask(bank, numbered(2), World())
    assert told.pairs == 2
    assert all(row.proven for row in told.rows)


async def test_every_row_carries_the_digests_of_what_was_handed_out() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only, a_lesson("b")), World()
    told = await ask(bank, numbered(12), world, without=only.id)
    assert len(told.rows) == 24
    assert [row.memory_digest for row in told.rows] == [digest(text) for text in world.texts]
    assert {row.arm for row in told.rows[::2]} == {"with", "without"}


# --- agents and verifiers --------------------------------------------------------------------------------------------


async def test_agent_and_verifier_may_be_async_or_not_and_both_runs_get_the_same_seed() -> None:
    only = a_lesson("a")
    bank, seeds = await bank_of(only), list[int]()

    class Agent:
        async def __call__(self, task: str, memory: str, /, *, seed: int = 0) -> Trajectory:
            await anyio.lowlevel.checkpoint()
            seeds.append(seed)
            return Trajectory(task=task, instructions=memory)

    async def verify(run: Trajectory) -> str:
        await anyio.lowlevel.checkpoint()
        return "success"

    def plain(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, instructions=memory)

    tasks = numbered(4)
    assert (await ask(bank, tasks, Agent(), verify=verify, without=only.id)).success_with == 1.0
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == 4
    assert (await ask(bank, tasks, plain, verify=lambda _: True, without=only.id)).ties == 4
    told = await ask(bank, tasks, lambda task, memory: Agent()(task, memory), verify=verify, without=only.id)
    assert told.pairs == 4


async def test_an_unknown_outcome_is_left_out_and_a_score_counts_as_it_is() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)

    def score(run: Trajectory) -> float | str:
        return "unknown" if run.task.endswith("0") else 0.75 if "Lesson a" in run.instructions else 0.5

    told = await ask(bank, numbered(3), World(), verify=score, without=only.id)
    assert (told.pairs, told.effect) == (2, 0.25)


async def test_a_verifier_that_says_something_else_is_told_so() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    with pytest.raises(UsageError, match="verify= gives a bool"):
        await ask(bank, numbered(1), World(), verify=lambda _: "passed", without=only.id)


async def test_what_an_agent_raises_reaches_the_caller_and_what_it_forgets_to_return_is_told() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)

    def broken(task: str, memory: str) -> Trajectory:
        raise OSError("the world is gone")

    with pytest.raises(OSError, match="the world is gone"):
        await ask(bank, TASK, broken, without=only.id)
    with pytest.raises(FormatError, match="cannot read a run"):
        await ask(bank, TASK, lambda task, memory: None, without=only.id)
    with pytest.raises(UsageError, match="the agent must be a function"):
        await ask(bank, TASK, "claude", without=only.id)


# --- bad calls -------------------------------------------------------------------------------------------------------


async def test_calls_that_cannot_be_are_refused_in_one_sentence() -> None:
    only, world = a_lesson("a"), World()
    bank = await bank_of(only)
    stranger = Experience(scope="t", task="Paint the fence", lessons=(a_lesson("b"),))
    await bank.store.apply([Add(experience=stranger)], scope="t", writer="test")
    for tasks, what, said in (
        ([], {"without": only.id}, "at least one text"),
        (None, {"without": only.id}, "at least one text"),
        ([TASK, 3], {"without": only.id}, "at least one text"),
        (await bank.retrieve(TASK), {}, "at least one text"),
        ([" "], {}, "a task takes a text that is not blank"),
        (TASK, {"without": stranger.lessons[0].id}, f"nothing to compare.*{TASK}' does not show it"),
        (TASK, {"without": "0" * 32}, "unknown, erased or in quarantine"),
        (TASK, {"with_": "topic/refunds"}, "no lesson 'topic/refunds'"),
        (TASK, {"with_": "0" * 32}, "unknown, erased or in quarantine"),
        (TASK, {"without": "topic/refunds"}, "no lesson 'topic/refunds'"),
        (TASK, {"without": only.id, "with_": only.id}, "one of without=id"),
    ):
        with pytest.raises(UsageError, match=said):
            await ask(bank, tasks, world, **what)  # type: ignore[arg-type]
    assert not world.asked


async def test_a_lesson_that_cannot_be_added_is_refused() -> None:
    small, copy, long = a_lesson("a"), a_lesson("a"), a_lesson("c", "word " * 1500)
    bank, world = await bank_of(small), World()
    for alone in (copy, long):
        kept = Experience(scope="t", task="Paint the fence", lessons=(alone,))
        await bank.store.apply([Add(experience=kept)], scope="t", writer="test")
    for alone in (copy, long):
        with pytest.raises(UsageError, match="no room for it, or shows a lesson that says the same"):
            await ask(bank, TASK, world, with_=alone.id)


# --- tasks given as text ---------------------------------------------------------------------------------------------


async def test_a_task_gets_what_a_user_would_see_or_nothing_and_the_bank_stays_as_it_was() -> None:
    bank = await bank_of(a_lesson("a"), a_lesson("b"), holdout=Holdout(0.9, 0.9))
    world = World({"a": 0.5})
    open_bank = await bank_of(a_lesson("a"), a_lesson("b"))
    before = (await bank.admin.counts(), await bank.lessons.list())
    told = await bank.trial([f"{TASK} {n}" for n in range(40)], world, verify=lambda run: run.answer == "yes")
    assert (told.standing, told.treatment, told.tasks, told.notes) == ("helps", None, 40, ())
    assert (await bank.admin.counts(), await bank.lessons.list()) == before
    by_task = {task: sorted(text for asked, text in world.asked if asked == task) for task, _ in world.asked}
    for task, (without, with_) in by_task.items():
        assert without == ""
        assert lines(with_) == lines((await open_bank.retrieve(task)).text)
    assert str(told).startswith("Memory helps: success +")


async def test_the_same_trial_hands_out_the_same_texts_and_fences_differ_by_task() -> None:
    bank, first, again = await bank_of(a_lesson("a")), World(), World()
    for world in (first, again):
        await ask(bank, [f"{TASK} 1", f"{TASK} 2"], world)
    assert first.asked == again.asked
    assert len({text.split("| ")[0] for text in first.texts if text}) == 2


async def test_a_lesson_can_be_asked_about_with_tasks_given_as_text() -> None:
    first, second = a_lesson("a"), a_lesson("b")
    bank, world = await bank_of(first, second), World({"b": 0.6})
    told = await ask(bank, [f"{TASK} {n}" for n in range(40)] + ["zzz"], world, without=second.id)
    assert (told.standing, told.title, told.tasks) == ("helps", "Lesson b", 40)
    assert all("Lesson a" in text for text in world.texts)
    assert "1 of 41 tasks (the memory for the task 'zzz' does not show it)" in told.notes[0]


async def test_tasks_for_which_memory_has_nothing_cost_no_run() -> None:
    bank, world = await bank_of(a_lesson("a")), World()
    told = await ask(bank, [TASK + " 1", "zzz"], world)
    assert (told.tasks, told.runs) == (1, 2)
    assert "1 of 2 tasks (the memory for the task 'zzz' is empty)" in told.notes[0]
    with pytest.raises(UsageError, match="nothing to compare in these tasks: the memory for the task 'zzz' is empty"):
        await ask(bank, "zzz", world)


async def test_a_task_that_is_given_twice_counts_once_and_one_that_taught_the_lesson_is_named() -> None:
    bank = await bank_of(a_lesson("a"))
    told = await ask(bank, [TASK, f"{TASK} 1", TASK], World())
    assert told.pairs == 2
    assert [note.split(",")[0].split(":")[0] for note in told.notes] == [
        "1 task was given more than once",
        "for 1 of 2 tasks a lesson was learned from the very same task",
    ]


async def test_tasks_that_differ_in_an_address_alone_are_all_done() -> None:
    bank, world = await bank_of(a_lesson("a")), World()
    tasks = [f"{TASK} of {name}@example.org" for name in ("ana", "ben", "eve")]
    told = await ask(bank, tasks, world, min_effect=0.0)
    assert (told.tasks, told.pairs) == (3, 3)
    assert sorted({task for task, _ in world.asked}) == tasks
    assert len({row.task for row in told.rows}) == 3


# --- budgets, progress, what it cost ---------------------------------------------------------------------------------


async def test_no_pair_begins_once_the_money_is_spent_and_the_cost_is_told() -> None:
    bank = await bank_of(a_lesson("a"))

    def agent(task: str, memory: str) -> Trajectory:
        paid = Usage(requests=1, input_tokens=1500 if memory else 500, output_tokens=100, cost=0.25)
        return Trajectory(task=task, instructions=memory, usage=paid)

    told = await ask(bank, numbered(20), agent, max_cost=1.1, min_effect=0.0)
    assert (told.stopped, told.runs, told.usage.cost) == ("max_cost", 6, 1.5)
    assert "Cost: 6 runs, 6,600 tokens, $1.50, " in str(told)
    assert "A run took 1,600 tokens with it and 600 without." in str(told)


async def test_a_budget_that_no_run_can_be_held_against_is_spoken_of() -> None:
    bank = await bank_of(a_lesson("a"))
    told = await ask(bank, numbered(4), World(), max_cost=0.01)
    assert told.pairs == 4
    assert "the budget in money could not be kept: no run says what it cost (usage.cost)" in told.notes


async def test_no_pair_begins_once_the_time_is_up() -> None:
    bank = await bank_of(a_lesson("a"))
    told = await ask(bank, numbered(20), World(), max_seconds=1e-9)
    assert (told.stopped, told.pairs) == ("max_seconds", 0)
    assert "no pair of runs has two known outcomes" in str(told)


@pytest.mark.parametrize("wrong", [{"max_runs": 1}, {"max_cost": 0}, {"max_seconds": -1}])
async def test_budgets_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    bank, world = await bank_of(a_lesson("a")), World()
    with pytest.raises(UsageError, match=next(iter(wrong))):
        await ask(bank, [f"{TASK} 1"], world, **wrong)
    assert not world.asked


async def test_progress_is_told_after_every_pair() -> None:
    bank, seen = await bank_of(a_lesson("a")), list[Trial]()
    told = await ask(bank, numbered(40), World({"a": 0.5}), progress=seen.append, concurrency=3)
    assert [one.pairs for one in seen] == list(range(1, told.pairs + 1))
    assert [one.stopped for one in seen[:-1]] == [None] * (len(seen) - 1)
    assert untimed(seen[-1]) == untimed(told)
    assert told.most_runs == 80


# --- stopping, seeds, cancelling -------------------------------------------------------------------------------------


def untimed(told: Trial) -> dict[str, Any]:
    return told.model_dump(exclude={"seconds": True, "rows": {"__all__": {"seconds"}}})


@pytest.mark.full
async def test_the_same_seed_gives_the_same_trial_whatever_runs_at_once() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    tasks = numbered(30)
    effects = {"a": 0.3}
    first = await ask(bank, tasks, World(effects), without=only.id, seed=3, rounds=3)
    again = await ask(bank, tasks, World(effects), without=only.id, seed=3, rounds=3)
    assert untimed(again) == untimed(first)
    wide = await ask(bank, tasks, World(effects), without=only.id, seed=3, rounds=3, concurrency=7)
    assert untimed(wide) | {"runs": first.runs} == untimed(first)
    assert first.runs <= wide.runs < first.runs + 14
    other = await ask(bank, tasks, World(effects), without=only.id, seed=4, rounds=3)
    assert [row.seed for row in other.rows] != [row.seed for row in first.rows]


async def test_the_budget_of_runs_is_kept_and_rounds_are_spoken_of() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only), World()
    tasks = numbered(3)
    told = await ask(bank, tasks, world, without=only.id, rounds=9, max_runs=15, min_effect=0.0, concurrency=4)
    assert (told.pairs, told.runs, told.most_runs, len(world.asked)) == (7, 14, 15, 14)
    assert told.stopped == "max_runs"
    assert "each task was done up to 9 times a side" in told.notes[0]
    whole = await ask(bank, tasks, world, without=only.id, max_runs=6, min_effect=0.0)
    assert (whole.pairs, whole.stopped) == (3, "nothing left to run")


async def test_at_most_so_many_pairs_are_run_at_once() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    busy, most = 0, 0

    async def agent(task: str, memory: str) -> Trajectory:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        busy -= 1
        return Trajectory(task=task, instructions=memory)

    await ask(bank, numbered(12), agent, without=only.id, concurrency=4)
    assert most == 4


async def test_a_trial_that_is_cancelled_starts_no_further_run_and_leaves_the_bank_usable() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    tasks = numbered(12)
    begun, ended, third = 0, 0, anyio.Event()

    async def agent(task: str, memory: str) -> Trajectory:
        nonlocal begun, ended
        begun += 1
        try:
            if begun == 3:
                third.set()
            if begun >= 3:
                await anyio.sleep_forever()
        finally:
            ended += 1
        return Trajectory(task=task, instructions=memory)

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: ask(bank, tasks, agent, without=only.id))
        await third.wait()
        group.cancel_scope.cancel()
    assert (begun, ended) == (3, 3)
    assert (await bank.admin.counts()).recalls == 0
    assert (await ask(bank, tasks, World(), without=only.id)).pairs == 12


# --- planted effects -------------------------------------------------------------------------------------------------


def runs_for_the_sign_alone(effect: float, *, base: float) -> float:
    """What two groups that share nothing need for the right sign at 95 %, by one who knows the size of the effect
    beforehand, looks once and asks for no evidence: 2 n with n = 1.645^2 (p q + p' q') / effect^2."""
    other = base + effect
    return 2 * 1.645**2 * (base * (1 - base) + other * (1 - other)) / effect**2


@pytest.mark.full
async def test_planted_effects_get_their_sign_at_a_fraction_of_what_independent_runs_need() -> None:
    effects = {"a": 0.05, "b": -0.08, "c": 0.12, "d": -0.15, "e": 0.1, "f": -0.05}
    lessons = [a_lesson(name) for name in effects]
    bank = await bank_of(*lessons)
    tasks = numbered(40)
    design = {"rounds": 15, "max_runs": 1200, "min_effect": 0.0, "level": 0.8, "concurrency": 8}
    right, used, needed = 0, 0.0, 0.0
    for lesson, effect in zip(lessons, effects.values(), strict=True):
        told = await ask(bank, tasks, World(effects), without=lesson.id, **design)
        right += told.standing == ("helps" if effect > 0 else "harms")
        used, needed = used + told.runs, needed + runs_for_the_sign_alone(effect, base=0.5)
        assert told.low is not None and told.high is not None
        assert told.low <= effect <= told.high
    assert right == len(effects)
    assert used / needed <= 0.4


async def test_a_lesson_without_an_effect_is_soon_known_to_be_too_small_to_matter() -> None:
    null, other = a_lesson("a"), a_lesson("b")
    bank = await bank_of(null, other)
    told = await ask(bank, numbered(40), World({"b": 0.2}), without=null.id, rounds=10, max_runs=800)
    assert (told.stopped, told.standing, told.effect) == ("too small to matter", "no evidence yet", 0.0)
