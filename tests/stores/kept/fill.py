"""Fills a bank with something of everything, by the public API alone: so every release can keep one for later ones.

    python tests/stores/kept/fill.py FOLDER              # a file, its export, and what the API says of it
    python tests/stores/kept/fill.py FOLDER DATABASE     # the same in PostgreSQL; `pg_dump` keeps it

It runs with the release that is installed, on an empty folder or database.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lessonbank
from lessonbank import Evidence, Extraction, Learning, Lesson, Model, Parts, Run, Safety, Step, Trajectory, Usage
from lessonbank.testing import HashingEmbedder, ScriptedModel

sys.path.insert(0, str(Path(__file__).parent.parent))
from _description import described

SUPPORT, SALES, SHEETS, GUEST, ERASED, SEARCH = (
    *("acme/support", "acme/sales", "acme/sheets", "acme/guest", "acme/erased", "acme/search"),
)
ODD = "Zeile\x00mit NUL, \x01 und \u2028, 注文 und \U0001f600"
KINDS = ["order", "refund", "voucher", "parcel", "invoice", "return", "account", "coupon"]


async def one_lesson(attempts: Sequence[Run]) -> Extraction:
    """A lesson that names the task; for the same task the same, later in another form."""
    first = attempts[0]
    stop = "." if first.trajectory.id < "run-0020" else "!"
    words = f"Read the `state` of the record before you answer{stop} It says: {first.trajectory.task}"
    kind = "guardrail" if first.verdict.outcome == "failure" else "strategy"
    return Extraction(lessons=(Lesson(title=f"Look first: {first.trajectory.task}", content=words, kind=kind),))


def run(number: int, task: str, **more: Any) -> Trajectory:
    steps = (
        Step(thought="I look.", action=f"get {number}", observation=f"error: {number} is closed"),
        Step(action="open it", observation="opened"),
    )
    usage = Usage(requests=2, input_tokens=300 + number, output_tokens=20, cost=0.01)
    return Trajectory(id=f"run-{number:04}", task=task, steps=steps, answer="done", usage=usage, **more)


def connected(where: str | Path, /, scope: str, **more: Any) -> lessonbank.ReasoningBank:
    told: dict[str, Any] = {"parts": Parts(extractor=one_lesson), "evidence": Evidence(0.3)} | more
    return lessonbank.connect(where, scope=scope, embedder=HashingEmbedder(dimensions=16), **told)


def fill(where: str | Path, folder: Path) -> None:
    with connected(where, SUPPORT) as bank:
        _learn(bank)
        _decide(bank)
        _erase(bank)
        _sync(bank.scoped("acme/files"), folder)
        _import(bank.scoped(GUEST), bank, folder)
        bank.scoped(SALES, writer="Mia", key=bank.admin.add_writer("Mia")).learn(
            run(500, "Quote a price", metadata={"user": "u-17"}), outcome="success"
        )
        bank.scoped(ERASED).learn(run(600, "A task that has to go"), outcome="success")
        bank.scoped(ERASED).admin.purge(all=True, reason="request", by="Ana")
    _with_a_model(where)
    _scaled(where)
    asyncio.run(_failed(where))
    with connected(where, SEARCH, safety=Safety(trust="reviewed")) as bank:
        bank.learn(run(700, "Find the newest report"), outcome="success")
        bank.retrieve("Find the newest report")
        key = bank.admin.add_reviewer("Rae")
        bank.scoped(writer="Rae", key=key).lessons.approve(bank.lessons.list()[0].id, by="Rae", reason="read it")


def _learn(bank: lessonbank.ReasoningBank) -> None:
    for number in range(36):
        kind = KINDS[number % len(KINDS)]
        task, told = f"Close the {kind} case", {"user": f"u-{number % 3}", "template": kind, "session": f"s-{number}"}
        with bank.attempt(task, metadata=told) as attempt:
            outcome: Any = "failure" if number % 5 == 2 else "success"
            attempt.finish(run(number, task, metadata={"seconds": 1.5 + number, "model": "tests"}), outcome=outcome)
    for number in range(4):
        bank.retrieve(f"Close the {KINDS[number]} case", metadata={"user": "u-9", "nested": {"a": [1, None, "x"]}})
    bank.learn([run(100 + n, "Ship the parcel twice") for n in range(2)], outcome=["success", "failure"])
    bank.learn(run(110, ODD, instructions="Be kind.", metadata={"tools": ["get", "open"], "odd": ODD}), reward=0.25)
    bank.learn(run(111, "A task of a sub-agent", metadata={"parent_run": "run-0110"}), outcome="success")
    bank.learn(run(112, "A run that nobody judged"))
    bank.learn(run(113, "A run that broke", error="ConnectionError: gone"))
    bank.keep_unfinished(run(114, "A run that somebody stopped"), metadata={"user": "u-1"})
    bank.submit(
        run(115, "A run that is learned later"), outcome="success", recall=bank.retrieve("Close the order case")
    )
    bank.drain()
    bank.runs.correct("run-0003", outcome="failure", by="Ana", reason="the customer called again")
    bank.runs.audit(3)


def _decide(bank: lessonbank.ReasoningBank) -> None:
    add, by = bank.lessons.add, "Ana"
    one = add(title="Stale index", content="Rebuild the index.", task="Find the invoice of March", by=by)
    other = add(title="Empty search", content="Rebuild it once.", task="Look up a receipt", by=by, when="It is empty.")
    third = add(title="Ask first", content="Ask for the reason.", task="Cancel it", by=by, kind="guardrail")
    fourth = add(title="Say thanks", content="Thank the customer.", task="End a call", by=by, metadata={"user": "u-1"})
    bank.lessons.edit(third.id, content="Ask for the reason, then act.", by="Ben", reason="clearer")
    merged = bank.lessons.merge(one.id, other.id, title="Rebuild", content="Rebuild a stale index.", by="Ben")
    pair = [add(title=f"Twin {n}", content=f"Do it {n} times.", task=f"Do it {n} times", by=by) for n in (1, 2)]
    twins = bank.lessons.merge(*[each.id for each in pair], title="Twins", content="Do it.", by="Ben", reason="twins")
    bank.lessons.unmerge(twins.id, reason="they differ", by="Ana")
    bank.lessons.narrow(fourth.id, to="refund", by="Ben", reason="only there")
    learned = [lesson for lesson in bank.lessons.list(limit=200) if lesson.provenance.writer == "learn"]
    bank.lessons.approve(merged.id, by="Ana")
    again = [(lesson.id, one) for lesson in learned for one in bank.lessons.repeats(lesson.id) if one.lesson]
    bank.lessons.split(again[0][0], again[0][1].experience_id, reason="it says another thing", by="Ana")
    bank.lessons.approve(learned[0].id, learned[1].id, by="Ana", reason="read both")
    bank.lessons.retire(learned[2].id, reason="too broad", by="Ana")
    bank.lessons.retire(learned[3].id, reason="too broad", by="Ana")
    bank.lessons.restore(learned[3].id, reason="it was good", by="Ben")
    bank.lessons.quarantine(learned[4].id, reason="looks odd", by="Ben")
    before = len(bank.history.list())
    add(title="Soon gone", content="It is taken back.", task="A mistake", by=by)
    bank.history.rollback(to=before, reason="a broken tool", by="Ana")


def _erase(bank: lessonbank.ReasoningBank) -> None:
    gone = bank.lessons.add(title="Private", content="The secret of a customer.", task="Keep a secret", by="Ana")
    bank.admin.purge(lesson=gone.id, reason="request", by="Ana")
    bank.learn(run(300, "A run that has to go"), outcome="success")
    bank.admin.purge(run="run-0300", reason="request", by="Ana")


def _sync(bank: lessonbank.ReasoningBank, folder: Path) -> None:
    first = bank.lessons.add(title="Run the tests", content="Run the tests before a push.", task="Push", by="Ana")
    bank.lessons.add(title="Say why", content="Say why in the message.", task="Write a message", by="Ana")
    file = folder / "AGENTS.md"
    bank.admin.export(file, format="agents-md")
    file.write_text(
        file.read_text(encoding="utf-8").replace(first.content, "Run all the tests before a push."), "utf-8"
    )
    bank.admin.sync(file)
    file.unlink()


def _import(guest: lessonbank.ReasoningBank, bank: lessonbank.ReasoningBank, folder: Path) -> None:
    file = folder / "sent.jsonl"
    bank.admin.export(file)
    guest.admin.import_(file, approved_by="Ana")
    file.unlink()


def _with_a_model(where: str | Path) -> None:
    def drafts(title: str, content: str, **more: Any) -> str:
        told = {"evidence": ["step 1"], "cause": "the button was not there", "rests_on": "button", "applies_to": "kind"}
        words = {"title": title, "description": "When a table is exported.", "content": content}
        return json.dumps({"items": [{**told, "where": "", "unsettled": False, "choice": None, **words, **more}]})

    replies = [
        drafts("Open the table first", "The button stands below the table: open the table, then press it."),
        drafts("Scroll to the end first", "The button appears late: scroll first.", stands="sharper", to="K1"),
        drafts("Open it", "Open the table and press the button.", stands="same", to="K1"),
    ]
    model = Model({"extractor": ScriptedModel([*replies, *['{"items": []}'] * 50]), "judge": ScriptedModel([])})
    learning = Learning(topics="words")
    with connected(where, SHEETS, model=model, learning=learning, parts=Parts(), evidence=Evidence(0.1)) as bank:
        for number in range(6):
            recall = bank.retrieve("Export the table of tickets as a sheet")
            made = Trajectory(
                id=f"sheet-{number}",
                task="Export the table of tickets as a sheet",
                steps=(Step(action="press export", observation=f"no button {number}"),),
                answer="done",
            )
            bank.learn(made, outcome="failure" if number < 3 else "success", recall=recall)


def _scaled(where: str | Path) -> None:
    def agent(task: str, memory: str) -> Trajectory:
        return Trajectory(task=task, steps=(Step(action="search", observation="2 found"),), answer="12 dollars")

    with connected(where, SALES) as bank:
        bank.scale("Find the cheapest shoes", agent, k=2, verify=lambda run: True, labels=True)


async def _failed(where: str | Path) -> None:
    """Of three submitted runs one waits, and workers gave one up."""
    told: dict[str, Any] = {"parts": Parts(extractor=one_lesson), "learning": Learning(submit="worker")}
    bank = await lessonbank.connect_async(where, scope="acme/queue", embedder=HashingEmbedder(dimensions=16), **told)
    async with bank:
        (given_up,) = await bank.submit(run(800, "A run that workers gave up"), outcome="success")
        store: Any = bank.store
        for claim in await store.claim(worker="tests", limit=1, seconds=60.0):
            assert claim.trajectory.id == given_up
            await store.release(given_up, scope=claim.scope, worker="tests", error="it makes no sense", wait=None)
        await bank.submit(run(801, "A run that waits for a worker"), metadata={"user": "u-5"})
        await bank.submit([run(802, "Two that wait"), run(803, "Two that wait")], outcome="failure")


def main(folder: str, database: str = "") -> None:
    """Fill the bank, export it, and write what the API says of it."""
    into = Path(folder)
    name, where = ("step_1", database) if database else ("format_10", str(into / "format_10.sqlite"))
    fill(where, into)
    with connected(where, SUPPORT) as bank:
        if not database:
            bank.admin.export(into / "format_10.jsonl", all=True)
        said = json.dumps(described(bank), sort_keys=True, separators=(",", ":"))
        (into / f"{name}.json").write_text(said + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
