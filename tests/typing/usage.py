"""What a user writes, as a type checker sees it: read by basedpyright and mypy in the architecture tests, never run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_type

import lessonbank
from lessonbank import (
    Evidence,
    Experience,
    Extraction,
    File,
    Learned,
    Learning,
    Lesson,
    LessonbankError,
    Model,
    Parts,
    Recall,
    Retrieval,
    Run,
    Safety,
    Server,
    Step,
    ToolCall,
    Trajectory,
    Verdict,
)
from lessonbank.bank.attempt import AsyncAttempt, Attempt
from lessonbank.bank.explanation import Explanation
from lessonbank.bank.views import Erasing
from lessonbank.contracts.events import Event, Hook, Retrieved
from lessonbank.contracts.ports import Consolidator, Extractor, Judge, Redactor, Store
from lessonbank.contracts.records import (
    Action,
    Add,
    Change,
    Counts,
    JournalEntry,
    Observation,
    Outcome,
    Proposal,
    Restored,
    Salvaged,
    Usage,
)
from lessonbank.contracts.records.timeline import Diff, Lineage, State
from lessonbank.contracts.settings import Caps
from lessonbank.errors import StoreDamaged
from lessonbank.evidence.lift import Lift
from lessonbank.importers import Imported, Skipped, read
from lessonbank.matts.result import Scaled
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.trials import Trial

# --- the three ways in -----------------------------------------------------------------------------------------------


def the_block(agent_says: list[dict[str, object]]) -> tuple[str, ...]:
    bank = lessonbank.connect("bank.db", scope="acme/support", model="openai:gpt-5-mini")
    assert_type(bank, lessonbank.ReasoningBank)
    with bank.attempt("Cancel the pending order #W123", metadata={"user": "u-17"}) as attempt:
        assert_type(attempt, Attempt)
        assert_type(attempt.text, str)
        attempt.step("look up the order", "pending", thought="first the state")
        assert_type(attempt.finish(agent_says, outcome="success", wait=False), Learned)
    assert_type(attempt.learned, Learned | None)
    return attempt.notes


def the_plain_form(messages: list[dict[str, object]]) -> str:
    with lessonbank.connect(Path("bank.db"), scope="acme/support") as bank:
        recall = bank.retrieve("Cancel the pending order #W123", limit=3, metadata={"user": "u-17"})
        learned = bank.learn(messages, recall=recall, reward=1.0, metadata={"user": "u-17"})
        assert_type(recall, Recall)
        assert_type(recall.shown, tuple[Lesson, ...])
        assert_type(learned, Learned)
        assert_type(learned.changes, tuple[Change, ...])
        assert_type(bank.submit(messages, recall=recall.id, outcome="failure"), tuple[str, ...])
        return recall.text


async def the_same_awaited(run: Trajectory) -> Sequence[Change]:
    async with await lessonbank.connect_async(":memory:", scope="acme") as bank:
        assert_type(bank, lessonbank.AsyncReasoningBank)
        recall = await bank.retrieve(run.task, limit=3)
        assert_type(recall, Recall)
        learned = await bank.learn([run, run], recall=recall.id, reward=[1.0, 0.0])
        async with bank.attempt(run.task) as attempt:
            assert_type(attempt, AsyncAttempt)
            assert_type(await attempt.finish(run, reward=0.5), Learned)
        return learned.changes


# --- settings --------------------------------------------------------------------------------------------------------


async def my_judge(trajectory: Trajectory, /) -> Verdict:
    return Verdict(outcome="unknown", confidence=0.0, reason=f"nobody looked at {trajectory.id}")


async def my_extractor(attempts: Sequence[Run], /) -> Extraction:
    return Extraction(notes=(f"{len(attempts)} attempts",))


async def my_consolidator(new: Experience, /) -> list[Change]:
    return [Add(experience=new)]


def my_redactor(text: str, /) -> str:
    return text.replace("hunter2", "[password]")


def my_hook(event: Event) -> None:
    if isinstance(event, Retrieved):
        assert_type(event.recall, Recall)


async def my_model(prompt: str) -> str:
    return prompt


judge: Judge = my_judge
extractor: Extractor = my_extractor
consolidator: Consolidator = my_consolidator
redactor: Redactor = my_redactor
hook: Hook = my_hook


def every_setting() -> dict[str, object]:
    bank = lessonbank.connect(
        File("~/bank.db", read_only=True),
        scope="acme/support",
        model=Model("qwen3", base_url="http://localhost:8000/v1", api_key="no-key", timeout=60),
        embedder="hashing",
        profile="paper",
        retrieval=Retrieval("hybrid", limit=2, budget=1500, floor=0.2, preface="cite", level="experience"),
        learning=Learning(
            domain="code",
            consolidation="append",
            abstain=0.2,
            judge_budget=8000,
            success_at=0.9,
            keep_runs=90,
        ),
        evidence=Evidence(holdout=0.1, act=True, observe=False),
        safety=Safety(trust="corroborated", redact=my_redactor, admission=None, caps=Caps(hour=100, scope=None)),
        parts=Parts(judge=my_judge, extractor=my_extractor, consolidator=my_consolidator, hooks=[my_hook, print]),
    )
    return bank.settings


def short_settings() -> None:
    lessonbank.connect(":memory:", scope="a", model=my_model, retrieval="lexical", evidence=0.2, safety="reviewed")
    lessonbank.connect(":memory:", scope="a", model={"judge": "openai:gpt-5-mini", "extractor": my_model})
    lessonbank.connect(Server("https://bank.example", api_key="a key"), scope="a")
    lessonbank.connect(":memory:", scope="a", retrieval=Retrieval(limit=3), evidence=Evidence(holdout=None))
    lessonbank.connect(":memory:", scope="a", retrieval=Retrieval(floor=None))
    lessonbank.connect(":memory:", scope="a", safety=Safety(redact=None, caps=None), profile="default")


# --- views, waiting --------------------------------------------------------------------------------------------------


def lessons(bank: lessonbank.ReasoningBank, id: str) -> None:
    assert_type(bank.lessons.list(state="quarantined", kind="guardrail", limit=50, after=id), tuple[Lesson, ...])
    assert_type(bank.lessons.search("refund", state="active"), tuple[Lesson, ...])
    assert_type(bank.lessons.get(id), Lesson)
    assert_type(bank.lessons.get(id).approved, bool)
    assert_type(bank.lessons.proposals(), tuple[Proposal, ...])
    assert_type(bank.lessons.experience(id), Experience)
    assert_type(bank.lessons.approve(id, id, by="Ana"), tuple[JournalEntry, ...])
    assert_type(bank.lessons.quarantine(id, reason="odd"), tuple[JournalEntry, ...])
    assert_type(bank.lessons.retire(id, reason="stale", by="Ana"), tuple[JournalEntry, ...])
    assert_type(bank.lessons.restore(id, reason="useful"), tuple[JournalEntry, ...])
    assert_type(bank.lessons.narrow(id, to=("refund",), by="Ana"), Lesson)
    assert_type(bank.lessons.edit(id, content="Ask first.", by="Ana"), Lesson)
    added = bank.lessons.add(title="Ask", content="Ask first.", task="Cancel", when="always", kind="strategy", by="Ana")
    assert_type(added, Lesson)


def runs_and_recalls(bank: lessonbank.ReasoningBank, id: str, recall: Recall) -> None:
    assert_type(bank.runs.list(outcome="failure", status="pending"), tuple[Run, ...])
    assert_type(bank.runs.search("order", metadata={"user": "u-17"}), tuple[Run, ...])
    assert_type(bank.runs.get(id), Run)
    assert_type(bank.runs.get(id).trajectory, Trajectory)
    assert_type(bank.runs.correct(id, outcome="failure", by="Ana", reason="the order is still there"), Learned)
    assert_type(bank.runs.audit(20, by="Ana"), tuple[Run, ...])
    assert_type(bank.runs.unlabelled(), tuple[Run, ...])
    assert_type(bank.runs.pending(), tuple[Trajectory, ...])
    assert_type(bank.runs.retry(limit=50), tuple[Learned, ...])
    assert_type(bank.recalls.list(metadata={"user": "u-17"}, lesson=id, settled=True), tuple[Recall, ...])
    assert_type(bank.recalls.search("order"), tuple[Recall, ...])
    assert_type(bank.recalls.get(id), Recall)
    assert_type((recall.kept, recall.imported), tuple[bool, bool])
    assert_type(recall.signature, str)
    assert_type(bank.recalls.explain(recall), Explanation)
    assert_type(bank.recalls.explain(id), Explanation)


def history_and_admin(bank: lessonbank.ReasoningBank, id: str, now: datetime) -> None:
    assert_type(bank.history.list(lesson=id, limit=5), tuple[JournalEntry, ...])
    assert_type(bank.history.state(9), State)
    assert_type(bank.history.diff(3, now), Diff)
    assert_type(bank.history.rollback(to=datetime.now(UTC), reason="a bad import", by="Ana"), JournalEntry)
    assert_type(bank.history.lineage(id), Lineage)
    assert_type(bank.history.retrieve("Cancel an order", at=9).notes, tuple[str, ...])
    assert_type(bank.admin.counts(), Counts)
    assert_type(bank.admin.export("scope.jsonl"), int)
    assert_type(bank.admin.import_(Path("scope.jsonl"), approved_by="Ana"), int)
    assert_type(bank.admin.export("CLAUDE.md", format="claude-md", budget=2000), int)
    assert_type([one.proposals for one in bank.admin.sync("CLAUDE.md", preview=True)], list[tuple[Proposal, ...]])
    assert_type(bank.admin.reindex(progress=print), int)
    assert_type(bank.admin.purge(metadata={"user": "u-17"}, by="Ana", reason="asked", preview=True), Erasing)
    assert_type(bank.admin.purge(all=True, reason="the tenant left"), Erasing)
    assert_type(bank.admin.purge(run=[id, id], recall=id, lesson=(id,), reason="asked"), Erasing)
    assert_type(bank.admin.scopes(), tuple[str, ...])
    assert_type(bank.admin.verify(journal=False), tuple[str, ...])
    bank.admin.backup("copy.db")
    bank.admin.rebuild()
    key = bank.admin.add_writer("u-17")
    assert_type(bank.scoped(writer="u-17", key=key), lessonbank.ReasoningBank)
    assert_type(bank.admin.writers(), tuple[str, ...])
    bank.admin.remove_writer("u-17")
    assert_type(bank.admin.unembedded(), tuple[str, ...])


def one_bank_for_many(bank: lessonbank.ReasoningBank) -> str:
    other = bank.scoped("acme/sales", writer="u-17")
    assert_type(other, lessonbank.ReasoningBank)
    return other.scope


# --- views, awaited --------------------------------------------------------------------------------------------------


async def awaited_views(bank: lessonbank.AsyncReasoningBank, id: str) -> None:
    assert_type(await bank.lessons.list(state="active"), tuple[Lesson, ...])
    assert_type(await bank.lessons.approve(id, by="Ana"), tuple[JournalEntry, ...])
    assert_type(await bank.runs.correct(id, outcome="success", by="Ana"), Learned)
    assert_type(await bank.recalls.explain(id), Explanation)
    assert_type(await bank.history.diff(3, 9), Diff)
    assert_type(await bank.admin.purge(lesson=id, reason="asked"), Erasing)
    assert_type(bank.scoped("acme/sales"), lessonbank.AsyncReasoningBank)
    assert_type(await bank.lift(level=0.9), Lift)
    assert_type(await bank.lessons.proposals(), tuple[Proposal, ...])
    key = await bank.admin.add_writer("u-17")
    assert_type(bank.scoped("acme/sales", writer="u-17", key=key), lessonbank.AsyncReasoningBank)


# --- does it help, several runs, the steps of the loop ---------------------------------------------------------------


def my_agent(task: str, memory: str, *, seed: int = 0) -> Trajectory:
    return Trajectory(task=task, answer=f"{memory}{seed}")


async def my_awaited_agent(task: str, memory: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": task}, {"role": "assistant", "content": memory}]


def is_done(run: Trajectory, /) -> bool:
    return run.answer is not None


async def looked_up(run: Trajectory, /) -> Outcome:
    return "success" if run.answer else "failure"


def measured(bank: lessonbank.ReasoningBank, tasks: list[str], id: str) -> None:
    assert_type(bank.lift(), Lift)
    assert_type(bank.trial(tasks, my_agent, without=id, verify=is_done, max_runs=50, concurrency=4), Trial)
    assert_type(bank.scale("Cancel the order", my_agent, k=5, verify=is_done), Scaled)
    assert_type(bank.scale("Cancel the order", my_awaited_agent, mode="sequential", verify=looked_up), Scaled)


def the_steps(bank: lessonbank.ReasoningBank, run: Trajectory, experience: Experience) -> None:
    assert_type(bank.judge(run, outcome="success"), Verdict)
    assert_type(bank.extract([Run(trajectory=run, verdict=Verdict(outcome="success"))]), Extraction)
    assert_type(bank.consolidate(experience, dry_run=True), tuple[Change, ...])


# --- records ---------------------------------------------------------------------------------------------------------


def short_and_long_forms() -> Trajectory:
    short = Step(action="ls", observation="a.txt")
    long = Step(
        thought="look around",
        action=Action(calls=(ToolCall(name="list_files", arguments={"path": "."}),)),
        observations=(Observation(text="a.txt", source="tool"), "b.txt"),
    )
    return Trajectory(task="List the files", steps=(short, long), answer="a.txt", usage=Usage() + Usage())


def files_of_other_programs() -> Iterator[Trajectory]:
    for entry in read("runs.jsonl", success_at=0.9, follow_links=True):
        if isinstance(entry, Skipped):
            continue
        assert_type(entry, Imported)
        yield entry.trajectory


def errors_have_codes(bank: lessonbank.ReasoningBank) -> str:
    try:
        return bank.lessons.get("nothing").title
    except LessonbankError as error:
        return error.code


# --- a file that is damaged, a store of one's own --------------------------------------------------------------------


def bring_back(backup: Path) -> Restored | Salvaged:
    try:
        restored = lessonbank.restore(backup, "bank.db")
    except StoreDamaged:
        salvaged = lessonbank.salvage("bank.db", "new.db")
        assert_type(salvaged.complete, bool)
        return salvaged
    assert_type(restored.kept, str | None)
    return restored


async def through_the_port(recall: Recall, new: Experience) -> bool:
    store: Store = SqliteStore.in_memory()
    assert_type(await store.experiences("wording", [], scope=new.scope), Sequence[Experience])
    assert_type(await store.experiences("repeats", ["id"], scope=new.scope), Sequence[Experience])
    assert_type(await store.settings("writer/"), Mapping[str, str])
    change = [Add(experience=new)]
    assert_type(
        await store.apply(change, scope=new.scope, writer="learn", unique_wording=True),
        Sequence[JournalEntry],
    )
    return await store.save_recall(recall, returned=True)
