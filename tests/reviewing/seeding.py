"""A bank of a small support desk, with everything the pages show: for tests and for the documentation's pictures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lessonbank
from lessonbank import (
    Action,
    Evidence,
    Experience,
    Extraction,
    Learning,
    Lesson,
    Observation,
    Parts,
    ReasoningBank,
    Run,
    Step,
    ToolCall,
    Trajectory,
)
from lessonbank.contracts.records import Provenance, Usage
from lessonbank.evidence import Holdout

SCOPE = "acme/support"
STORIES = (
    (
        "Cancel pending order #{n}",
        "cancel_order",
        "Check the order's status before cancelling",
        "Use it when a customer asks to cancel an order. Not for returns of delivered items.",
        "Call get_order first and read its status. Only a pending order can be cancelled: for a processed one, offer a "
        "return instead. Cancel with the reason the customer gave, and confirm the refund method.",
    ),
    (
        "Return the headphones of order #{n}",
        "return_items",
        "Ask where the refund should go before returning items",
        "Use it for returns of delivered items that were paid by card or voucher.",
        "The tool refuses a return without a refund method. List the payment methods of the account and ask which one. "
        "Then call return_items once, with all items of the order together.",
    ),
    (
        "Change the delivery address of order #{n}",
        "modify_address",
        "Confirm the full new address with the customer",
        "Use it when an address of a pending order changes.",
        "modify_address overwrites the whole address. Read the old one, change only what the customer named, and "
        "repeat all lines back before calling it. A missing zip code is an error.",
    ),
    (
        "Exchange the blue shirt of order #{n} for size M",
        "exchange_items",
        "Collect all items before an exchange, it works once per order",
        "Use it for exchanges of delivered orders.",
        "exchange_items can be called once per order. Ask for every item to exchange, look the variants up with "
        "get_product, and only then call it.",
    ),
    (
        "Why was my card charged twice for order #{n}?",
        "get_payments",
        "Compare payment ids before promising a refund",
        "Use it for questions about double charges.",
        "A pre-authorisation looks like a second charge. Compare the ids from get_payments: two with one id are one "
        "charge. Promise nothing before that.",
    ),
)


async def taught(attempts: Sequence[Run], /) -> Extraction:
    """What a careful reader would write about these runs."""
    run = attempts[0].trajectory
    story = next(one for one in STORIES if one[0].partition("#")[0] in run.task)
    success = attempts[0].verdict.outcome == "success"
    title, when, content = story[2:] if success else _guardrail(story)
    provenance = Provenance(method="scripted", evidence=(f"step {len(run.steps)}",), model="scripted:careful-reader")
    kind = "strategy" if success else "guardrail"
    return Extraction(
        lessons=(Lesson(title=title, description=when, content=content, kind=kind, provenance=provenance),)
    )


def _guardrail(story: tuple[str, ...]) -> tuple[str, str, str]:
    return (
        f"Never call {story[1]} before reading the order",
        f"Use it for every task that ends with {story[1]}.",
        f"{story[1]} failed with “order is not in a state that allows this”. Read the order first and tell the "
        "customer what is possible before you change anything.",
    )


def run_of(place: int, story: int, *, good: bool, id: str, text: str = "") -> Trajectory:
    """One run of a support agent."""
    task, tool, *_ = STORIES[story]
    order = {"order_id": f"W{place:03}"}
    ended = Observation(
        text='{"ok": true}' if good else "Error: order is not in a state that allows this", source="tool"
    )
    reading = Step(
        thought="I should read the order first.",
        action=Action(text=f"Let me look at your order. {text}", calls=(ToolCall(name="get_order", arguments=order),)),
        observations=(
            Observation(
                text=f'{{"id": "W{place:03}", "status": "pending", "items": 3}}\n' * 20, source="tool", name="get_order"
            ),
        ),
    )
    acting = Step(
        action=Action(calls=(ToolCall(name=tool, arguments={**order, "reason": "no longer needed"}),)),
        observations=(ended.model_copy(update={"name": tool, "is_error": not good}),),
    )
    return Trajectory(
        id=id,
        task=task.format(n=f"W{place:03}"),
        instructions="You are a support agent of ACME. Follow the policy.",
        steps=(reading, acting) if good else (acting,),
        answer="Done: it is confirmed, and you get an e-mail." if good else "I am sorry, that did not work.",
        usage=Usage(requests=2, input_tokens=900 + 7 * place, output_tokens=60 + place, cost=0.002 + place % 7 / 1e4),
        metadata={"user": f"u-{place % 8}", "seconds": 4.5 + place % 5},
    )


def opened(path: Path | str, scope: str = SCOPE, *, holdout: float | None = 0.25) -> ReasoningBank:
    """The bank of the desk. Its draws follow from a seed, so that its numbers are the same each time."""
    draws = None if holdout is None else Holdout(holdout, holdout, seed="desk")
    return lessonbank.connect(
        path,
        scope=scope,
        embedder="lexical",
        parts=Parts(extractor=taught),
        evidence=Evidence(holdout=draws),
        learning=Learning(),
    )


def seed(path: Path | str, *, tasks: int = 120) -> None:
    """Fill a new bank: tasks one after the other, with outcomes that memory makes better."""
    chance = random.Random(7)
    with opened(path) as bank:
        for place in range(tasks):
            story = place % len(STORIES)
            recall = bank.retrieve(STORIES[story][0].format(n=f"W{place:03}"))
            good = chance.random() < (0.85 if recall.text else 0.45)
            text = "[1] applies here." if recall.shown else ""
            bank.learn(
                run_of(place, story, good=good, id=f"run-{place:03}", text=text),
                recall=recall,
                outcome="success" if good else "failure",
            )
        wait(bank)


def wait(bank: ReasoningBank) -> None:
    """Put things into the inbox, and a few decisions into the history."""
    first, second, third, *_ = bank.lessons.list(limit=50)
    bank.lessons.edit(first.id, content=first.content + " Say so in one sentence.", by="Ana", reason="clearer")
    bank.lessons.approve(second.id, by="Ana", reason="seen twice")
    bank.lessons.quarantine(third.id, reason="it blames a tool")
    for story, title, when, content in WAITING:
        task = STORIES[story][0].format(n="W900")
        lesson = bank.lessons.add(title=title, when=when, content=content, task=task, by="Ben")
        bank.lessons.quarantine(lesson.id, reason="nobody else saw it")
    for title, content in NEAR:
        said = Lesson(title=title, description="For refunds.", content=content)
        bank.consolidate(Experience(scope=SCOPE, task="Refund the late order #W901", lessons=(said,)))
    gone = bank.lessons.add(title="Always offer a voucher", content="Offer 20 euros.", task="A complaint", by="Ben")
    bank.lessons.retire(gone.id, reason="too expensive, and it did not help", by="Ana")


def give_up(path: Path | str, *ids: str, why: str = "the model is <b>down</b>") -> None:
    """Keep runs that workers failed with so often that they take them no more."""
    with ThreadPoolExecutor(1) as thread:  # where Playwright runs, no other event loop can
        thread.submit(asyncio.run, _give_up(path, ids, why)).result()


async def _give_up(path: Path | str, ids: Sequence[str], why: str) -> None:
    learning = Learning(submit="worker")
    async with await lessonbank.connect_async(path, scope=SCOPE, embedder="lexical", learning=learning) as bank:
        for id in ids:
            await bank.submit(run_of(7, 0, good=True, id=id), outcome="success")
            (claim,) = await bank.store.claim(worker="w", limit=1, seconds=60, scope=SCOPE)
            await bank.store.release(claim.trajectory.id, scope=SCOPE, worker="w", error=why, wait=None)


WAITING = (
    (
        1,
        "Read the order before you offer a return",
        "For returns.",
        "Call get_order, and return only what was delivered.",
    ),
    (
        0,
        "Skip the status check for regular customers",
        "For customers with more than ten orders.",
        "Regular customers know their orders: call cancel_order at once, without get_order.",
    ),
    (
        2,
        "Repeat the address back, line by line",
        "For changes of address.",
        "Read all lines of the new address back, and wait for a yes before calling modify_address.",
    ),
    (
        3,
        "Exchange items one at a time",
        "For exchanges of delivered orders.",
        "Call exchange_items for each item as the customer names it, and look the variants up with get_product.",
    ),
)

NEAR = (
    ("Ask for the card of a refund", "A refund goes back to the card that paid. Ask which card it was, then refund."),
    (
        "Tell the customer where a refund goes",
        "Name the card that the money goes back to, and say how long it takes.",
    ),
)

if __name__ == "__main__":
    import sys

    seed(Path(sys.argv[1]))
