"""The same tasks again, with and without a lesson: what the agent is handed, what it must prove, what comes of it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import Experience, Lesson, Recall, Step, Trajectory
from lessonbank.bank import AsyncReasoningBank
from lessonbank.errors import FormatError, NotFound, UsageError
from lessonbank.evidence import Holdout
from lessonbank.evidence.replay import replay
from lessonbank.evidence.replay_design import Design, Replay, asked
from lessonbank.testing.settings import grouped
from lessonbank.types import Add
from lessonbank.types.ids import digest

pytestmark = pytest.mark.anyio

Ask = Callable[..., Awaitable[Replay]]
TASK = "Cancel the order"


def a_lesson(name: str, content: str = "", **more: Any) -> Lesson:
    return Lesson(title=f"Lesson {name}", description=f"when {name}", content=content or f"Do {name}.", **more)


async def bank_of(*lessons: Lesson, tasks: int = 1, holdout: Any = None, **options: Any) -> AsyncReasoningBank:
    """A bank whose tasks all find the same lessons."""
    bank = await lessonbank.connect_async(
        ":memory:", scope="t", embedder="lexical", **grouped(holdout=holdout, **options)
    )
    kept = Experience(scope="t", task=TASK, lessons=lessons)
    await bank.store.apply([Add(experience=kept)], scope="t", writer="test")
    return bank


async def recalls_of(bank: AsyncReasoningBank, tasks: int) -> list[Recall]:
    return [await bank.retrieve(f"{TASK} number {n}") for n in range(tasks)]


async def ask(
    bank: AsyncReasoningBank,
    recalls: Any,
    agent: Any,
    *,
    verify: Any = lambda run: run.answer == "yes",
    without: str | None = None,
    with_: str | None = None,
    placebo: str | bool = False,
    scope: str = "t",
    **design: Any,
) -> Replay:
    question = asked(without=without, with_=with_, placebo=placebo)
    return await replay(
        bank.store,
        bank._injector,
        recalls,
        agent,
        verify=verify,
        question=question,
        design=Design(**design),
        scope=scope,
    )


class World:
    """A resettable world with planted effects: a lesson moves the chance of success, the seed is all luck."""

    def __init__(self, effects: dict[str, float] | None = None, *, base: float = 0.5, common: bool = True) -> None:
        self.effects, self.base, self.common = effects or {}, base, common
        self.asked: list[tuple[str, str]] = []

    def __call__(self, task: str, memory: str, *, seed: int) -> Trajectory:
        self.asked.append((task, memory))
        chance = self.base + sum(by for name, by in self.effects.items() if f"Lesson {name}\n" in memory)
        drawn = random.Random(f"{seed} {task} {'' if self.common else len(self.asked)}").random()
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
    (recall,) = await recalls_of(bank, 1)
    await ask(bank, [recall], world, without=second.id)
    with_, without = sorted(set(world.texts), key=len, reverse=True)
    assert with_ == recall.text
    assert digest(with_) == recall.text_digest
    assert lines(without) == [
        line for line in lines(with_) if line not in ("guardrail: Lesson b", "  when: when b", "  Do b.")
    ]
    assert len(lines(without)) == len(lines(with_)) - 3
    assert frame(with_) == frame(without)


async def test_a_lesson_that_was_shown_alone_leaves_an_empty_text() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only), World({"a": 0.5})
    told = await ask(bank, await recalls_of(bank, 40), world, without=only.id)
    assert "" in world.texts
    assert told.standing == "helps"
    assert told.rows[0].digest_without == digest("")


async def test_a_lesson_is_added_to_what_was_shown() -> None:
    there, other = a_lesson("a"), a_lesson("b")
    bank, world = await bank_of(there), World({"b": 0.5})
    elsewhere = Experience(scope="t", task="Paint the fence", lessons=(other,))
    await bank.store.apply([Add(experience=elsewhere)], scope="t", writer="test")
    recalls = await recalls_of(bank, 40)
    told = await ask(bank, recalls, world, with_=other.id)
    assert (told.standing, told.way, told.title) == ("helps", "with", "Lesson b")
    first = next(recall for recall in recalls if recall.id == told.rows[0].recall_id)
    without, with_ = sorted({text for task, text in world.asked if task == first.task}, key=len)
    assert without == first.text
    assert lines(with_) == [*lines(without), "strategy: Lesson b", "  when: when b", "  Do b."]
    assert told.notes == ()


@pytest.mark.parametrize("profile", ["default", "paper"])
@pytest.mark.parametrize("whole", [False, True])
async def test_a_placebo_stands_where_the_lesson_stood_and_is_about_as_long(whole: bool, profile: str) -> None:
    first, second = a_lesson("a", "Read the order.\n- then its lines\n" * 8), a_lesson("b", "Ask for the number. " * 9)
    bank, world = await bank_of(first, second, profile=profile), World()
    (recall,) = await recalls_of(bank, 1)
    told = await ask(bank, recall, world, placebo=True if whole else first.id)
    (other,) = set(world.texts) - {recall.text}
    assert recall.text in world.texts
    assert (frame(other), len(lines(other))) == (frame(recall.text), len(lines(recall.text)))
    assert 0.9 < len(other) / len(recall.text) <= 1
    assert "Lesson a" not in other
    assert ("Lesson b" in other) != whole
    assert (told.lesson_id, told.title) == ((None, "") if whole else (first.id, "Lesson a"))


async def test_what_was_withheld_beside_it_stays_withheld_and_the_lesson_itself_is_shown() -> None:
    first, second = a_lesson("a"), a_lesson("b")
    bank = await bank_of(first, second, holdout=Holdout(0.5, 0.5, seed="s"))
    recalls = await recalls_of(bank, 24)
    world = World()
    told = await ask(bank, recalls, world, without=first.id, min_effect=0.0)
    assert told.pairs == 24
    for recall in recalls:
        held = {c.lesson_id for c in recall.candidates if c.withheld}
        texts = [memory for task, memory in world.asked if task == recall.task]
        assert sorted("Lesson a" in text for text in texts) == [False, True]
        assert {"Lesson b" in text for text in texts} == {second.id not in held}
    assert "neither text is the one that was shown then" in told.notes[0]


async def test_the_bank_stays_as_it_was() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    recalls = await recalls_of(bank, 3)
    before = (await bank.admin.counts(), (await bank.lessons.list(limit=10_000))[::-1])
    await ask(bank, recalls, World({"a": 0.4}), without=only.id)
    assert (await bank.admin.counts(), (await bank.lessons.list(limit=10_000))[::-1]) == before


async def test_a_retired_lesson_can_be_tried_once_more_and_a_quarantined_one_cannot() -> None:
    tried, beside = a_lesson("a"), a_lesson("b")
    bank, world = await bank_of(tried, beside), World({"a": 0.5})
    recalls = await recalls_of(bank, 40)
    await bank.lessons.retire(tried.id, reason="it seemed to harm")
    assert (await ask(bank, recalls, world, without=tried.id)).standing == "helps"
    assert (await bank.lessons.get(tried.id)).retired
    await bank.lessons.quarantine(beside.id, reason="risky")
    world.asked.clear()
    told = await ask(bank, recalls, world, without=tried.id)
    assert not any("Lesson b" in text for text in world.texts)
    assert told.notes
    with pytest.raises(UsageError, match="unknown, erased or in quarantine"):
        await ask(bank, recalls, world, without=beside.id)


async def test_what_was_erased_is_not_shown_again() -> None:
    tried, erased = a_lesson("a"), a_lesson("b")
    bank, world = await bank_of(tried, erased), World()
    recalls = await recalls_of(bank, 6)
    await bank.admin.purge(lesson=erased.id, reason="asked for")
    told = await ask(bank, recalls, world, without=tried.id, min_effect=0.0)
    assert told.pairs == 6
    assert not any("Lesson b" in text for text in world.texts)
    assert told.notes[0].startswith("in 6 of 6 recalls neither text is the one that was shown then")


# --- proof -----------------------------------------------------------------------------------------------------------


async def test_an_agent_that_shows_nothing_to_its_model_is_refused() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)

    def forgetful(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, instructions="Be brief.", answer="yes")

    told = await ask(bank, await recalls_of(bank, 30), forgetful, without=only.id)
    assert (told.effect, told.low, told.pairs + told.refused, told.stopped) == (
        None,
        None,
        len(told.rows),
        "not proven",
    )
    assert told.refused == 1
    assert told.runs <= 3
    assert "neither holds the text it was handed nor has its digest" in str(told)


async def test_one_run_in_which_the_text_was_lost_costs_the_pair_and_the_effect() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only), World({"a": 0.5})

    def flaky(task: str, memory: str, *, seed: int) -> Trajectory:
        run = world(task, memory, seed=seed)
        return run.model_copy(update={"instructions": ""}) if len(world.asked) > 8 and memory else run

    told = await ask(bank, await recalls_of(bank, 30), flaky, without=only.id)
    assert (told.refused, told.effect, told.stopped, told.standing) == (1, None, "not proven", "no evidence yet")
    assert told.pairs >= 4
    assert told.rows[-1].refused.startswith("the run with it of recall")
    assert told.rows[-1].difference is None


async def test_a_run_that_holds_the_text_of_the_other_side_is_refused() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    (recall,) = await recalls_of(bank, 1)

    def stuck(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, instructions=recall.text, metadata={"memory_digest": digest(memory)}, answer="yes")

    told = await ask(bank, recall, stuck, without=only.id)
    assert "without it" in told.rows[0].refused
    assert "holds the text of the other side" in told.rows[0].refused


async def test_a_digest_is_proof_and_a_wrong_one_is_none() -> None:
    only = a_lesson("a")
    bank, recalls = await bank_of(only), []
    recalls = await recalls_of(bank, 3)

    def echoing(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, answer="yes", metadata={"memory_digest": digest(memory)})

    def lying(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, instructions=memory, answer="yes", metadata={"memory_digest": "0" * 64})

    assert (await ask(bank, recalls, echoing, without=only.id)).pairs == 3
    told = await ask(bank, recalls, lying, without=only.id)
    assert (told.pairs, told.refused) == (0, 1)
    assert "shown something else" in told.rows[0].refused


async def test_the_text_may_stand_in_a_step_or_in_the_messages() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    recalls = await recalls_of(bank, 2)

    def as_step(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, steps=(Step(action="", observation=f"{task}\n{memory}"), Step(action="done")))

    def as_messages(task: str, memory: str) -> list[dict[str, str]]:
        said = [{"role": "user", "content": f"{task}\n\n{memory}"}, {"role": "assistant", "content": "yes"}]
        return [{"role": "system", "content": "Be brief."}, *said]

    def as_original(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, original=({"deep": [{"content": memory}]},))

    for agent in (as_step, as_messages, as_original):
        told = await ask(bank, recalls, agent, verify=lambda run: 0.5, without=only.id)
        assert (told.pairs, told.refused, told.ties) == (2, 0, 2), agent


async def test_every_row_carries_the_digests_of_what_was_handed_out() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only, a_lesson("b")), World()
    told = await ask(bank, await recalls_of(bank, 12), world, without=only.id)
    assert len(told.rows) == 12
    handed = {digest(text) for text in world.texts}
    assert {d for row in told.rows for d in (row.digest_with, row.digest_without)} == handed
    assert {row.first for row in told.rows} == {"with", "without"}


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

    recalls = await recalls_of(bank, 4)
    assert (await ask(bank, recalls, Agent(), verify=verify, without=only.id)).success_with == 1.0
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == 4
    assert (await ask(bank, recalls, plain, verify=lambda _: True, without=only.id)).ties == 4
    told = await ask(bank, recalls, lambda task, memory: Agent()(task, memory), verify=verify, without=only.id)
    assert told.pairs == 4


async def test_an_unknown_outcome_is_left_out_and_a_score_counts_as_it_is() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)

    def score(run: Trajectory) -> float | str:
        return "unknown" if run.task.endswith("0") else 0.75 if "Lesson a" in run.instructions else 0.5

    told = await ask(bank, await recalls_of(bank, 3), World(), verify=score, without=only.id)
    assert (told.pairs, told.unknown, told.effect) == (2, 1, 0.25)


@pytest.mark.parametrize("wrong", [3, -0.5, float("nan"), 10**400, "passed", None, [1]])
async def test_a_verifier_that_says_something_else_is_told_so(wrong: object) -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    with pytest.raises(UsageError, match="verify= gives a bool"):
        await ask(bank, await recalls_of(bank, 1), World(), verify=lambda _: wrong, without=only.id)


async def test_what_an_agent_raises_reaches_the_caller_and_what_it_forgets_to_return_is_told() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    (recall,) = await recalls_of(bank, 1)

    def broken(task: str, memory: str) -> Trajectory:
        raise OSError("the world is gone")

    with pytest.raises(OSError, match="the world is gone"):
        await ask(bank, recall, broken, without=only.id)
    with pytest.raises(FormatError, match="cannot read a run"):
        await ask(bank, recall, lambda task, memory: None, without=only.id)
    with pytest.raises(UsageError, match="the agent must be a function"):
        await ask(bank, recall, "claude", without=only.id)


# --- bad calls -------------------------------------------------------------------------------------------------------


async def test_calls_that_cannot_be_are_refused_in_one_sentence() -> None:
    only, world = a_lesson("a"), World()
    bank = await bank_of(only)
    (recall,) = await recalls_of(bank, 1)
    other = await bank.scoped("u").retrieve("Cancel the order")
    stranger = Experience(scope="t", task="Paint the fence", lessons=(a_lesson("b"),))
    await bank.store.apply([Add(experience=stranger)], scope="t", writer="test")
    for recalls, what, said in (
        ([], {"without": only.id}, "at least one Recall"),
        (None, {"without": only.id}, "at least one Recall or its id"),
        ([recall, 3], {"without": only.id}, "at least one Recall or its id"),
        ([recall, other], {"without": only.id}, "its own scope only"),
        (recall, {"without": stranger.lessons[0].id}, "had no place in recall"),
        (recall, {"placebo": stranger.lessons[0].id}, "had no place in recall"),
        (recall, {"without": "0" * 32}, "unknown, erased or in quarantine"),
        (recall, {"with_": "0" * 32}, "unknown, erased or in quarantine"),
        (recall, {}, "one of without=id"),
    ):
        with pytest.raises(UsageError, match=said):
            await ask(bank, recalls, world, **what)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        await ask(bank, other.id, world, without=only.id)
    assert not world.asked


async def test_a_recall_in_which_nothing_can_be_compared_is_left_out_and_spoken_of() -> None:
    small, copy, long = a_lesson("a"), a_lesson("a"), a_lesson("c", "word " * 1500)
    bank, world = await bank_of(small), World()
    for alone in (copy, long):
        kept = Experience(scope="t", task="Paint the fence", lessons=(alone,))
        await bank.store.apply([Add(experience=kept)], scope="t", writer="test")
    shown = await bank.retrieve(TASK)
    for alone in (copy, long):
        with pytest.raises(UsageError, match="no room for it, or shows a lesson that says the same"):
            await ask(bank, shown, world, with_=alone.id)
    nothing = await bank.retrieve("zzz")
    with pytest.raises(UsageError, match=f"recall {nothing.id} is empty"):
        await ask(bank, nothing, world, placebo=True)
    told = await ask(bank, [nothing, shown], world, placebo=True)
    assert (told.pairs, told.notes) == (1, (f"not replayed: 1 of 2 recalls (recall {nothing.id} is empty)",))


# --- stopping, seeds, cancelling -------------------------------------------------------------------------------------


@pytest.mark.full
async def test_the_same_seed_gives_the_same_replay_whatever_runs_at_once() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    recalls = await recalls_of(bank, 30)
    effects = {"a": 0.3}
    first = await ask(bank, recalls, World(effects), without=only.id, seed=3, rounds=3)
    assert await ask(bank, recalls, World(effects), without=only.id, seed=3, rounds=3) == first
    assert await ask(bank, [r.id for r in recalls], World(effects), without=only.id, seed=3, rounds=3) == first
    wide = await ask(bank, recalls, World(effects), without=only.id, seed=3, rounds=3, concurrency=7)
    assert wide.model_copy(update={"runs": first.runs}) == first
    assert first.runs <= wide.runs < first.runs + 14
    other = await ask(bank, recalls, World(effects), without=only.id, seed=4, rounds=3)
    assert [row.seed for row in other.rows] != [row.seed for row in first.rows]


async def test_the_budget_is_kept_and_rounds_are_spoken_of() -> None:
    only = a_lesson("a")
    bank, world = await bank_of(only), World()
    told = await ask(bank, await recalls_of(bank, 3), world, without=only.id, rounds=9, max_pairs=7, min_effect=0.0)
    assert (told.pairs, told.runs, len(world.asked), told.stopped) == (7, 14, 14, "nothing left to run")
    assert "each task was done up to 9 times a side" in told.notes[0]


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

    await ask(bank, await recalls_of(bank, 12), agent, without=only.id, concurrency=4)
    assert most == 4


async def test_a_replay_that_is_cancelled_starts_no_further_run_and_leaves_the_bank_usable() -> None:
    only = a_lesson("a")
    bank = await bank_of(only)
    recalls = await recalls_of(bank, 12)
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

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: ask(bank, recalls, agent, without=only.id))
        await third.wait()
        tasks.cancel_scope.cancel()
    assert (begun, ended) == (3, 3)
    assert (await bank.admin.counts()).recalls == 12
    assert (await ask(bank, recalls, World(), without=only.id)).pairs == 12


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
    recalls = await recalls_of(bank, 40)
    design = {"rounds": 15, "max_pairs": 600, "min_effect": 0.0, "level": 0.8, "concurrency": 8}
    right, used, needed = 0, 0.0, 0.0
    for lesson, effect in zip(lessons, effects.values(), strict=True):
        told = await ask(bank, recalls, World(effects), without=lesson.id, **design)
        right += told.standing == ("helps" if effect > 0 else "harms")
        used, needed = used + told.runs, needed + runs_for_the_sign_alone(effect, base=0.5)
        assert told.low is not None and told.high is not None
        assert told.low <= effect <= told.high
    assert right == len(effects)
    assert used / needed <= 0.4


@pytest.mark.full
async def test_chance_that_both_runs_share_makes_an_effect_visible_in_a_fraction_of_the_pairs() -> None:
    only = a_lesson("a")
    bank, effects = await bank_of(only), {"a": 0.12}
    recalls = await recalls_of(bank, 40)
    design = {"rounds": 30, "max_pairs": 1200, "min_effect": 0.0}
    shared = await ask(bank, recalls, World(effects), without=only.id, **design)
    own = await ask(bank, recalls, World(effects, common=False), without=only.id, **design)
    assert (shared.standing, shared.losses) == ("helps", 0)
    assert own.standing in ("helps", "no evidence yet")
    assert shared.runs / own.runs <= 0.4


async def test_a_lesson_without_an_effect_is_soon_known_to_be_too_small_to_matter() -> None:
    null, other = a_lesson("a"), a_lesson("b")
    bank = await bank_of(null, other)
    told = await ask(bank, await recalls_of(bank, 40), World({"b": 0.2}), without=null.id, rounds=10, max_pairs=400)
    assert (told.stopped, told.standing, told.effect) == ("too small to matter", "no evidence yet", 0.0)


def says(texts: Sequence[str]) -> set[bool]:
    return {bool(text) for text in texts}


async def test_memory_as_a_whole_is_compared_with_a_placebo_and_never_with_nothing() -> None:
    bank, world = await bank_of(a_lesson("a"), a_lesson("b")), World({"a": 0.2, "b": 0.2})
    told = await ask(bank, await recalls_of(bank, 40), world, placebo=True)
    assert told.standing == "helps"
    assert says(world.texts) == {True}
    assert "memory as a whole against a placebo in its place" in str(told)
