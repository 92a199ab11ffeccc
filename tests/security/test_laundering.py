"""What an agent read and believed stays what it was: attributed, fenced, removable, and no more trusted on any way."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attacks import Case, cases

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.records import (
    Experience,
    Extraction,
    Learned,
    Lesson,
    Merge,
    Recall,
    Run,
    Step,
    Trajectory,
    Trust,
)
from lessonbank.contracts.store_calls import every_recall
from lessonbank.guard.trust import TrustPolicy
from lessonbank.search import LexicalRetriever
from lessonbank.testing.settings import grouped
from lessonbank.testing.store_samples import collected

pytestmark = [pytest.mark.anyio, pytest.mark.full]

ALICE, BOB = "acme/alice", "acme/bob"
EARNED: tuple[TrustPolicy, ...] = ("corroborated", "reviewed")
GRAFTS, MINJA, CHAINS = cases("memorygraft"), cases("minja"), cases("laundering")


def of_each_attack(all: Sequence[Case]) -> Sequence[Case]:
    """One of each attack, as trust hangs on where a lesson came from, not on its words; with `LESSONBANK_SOAK` all."""
    return all if "LESSONBANK_SOAK" in os.environ else [*{case["attack"]: case for case in all}.values()]


def mark(case: Case) -> str:
    """A word that is in the case and nowhere else."""
    return f"quill{''.join('abcdefghij'[int(c)] if c.isdigit() else c.lower() for c in case['id'])}"


def named(case: Case, text: str) -> str:
    return text.replace("{mark}", mark(case))


class Fooled:
    """The worst extractor there is: it copies what it is told to, as a lesson that is trusted."""

    def __init__(self) -> None:
        self.lesson: dict[str, str] = {}

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        return Extraction(lessons=(Lesson(**self.lesson, state="active"),))


class Victim:
    """A bank whose extractor copies what stands in a run."""

    def __init__(self, bank: AsyncReasoningBank, extractor: Fooled, case: Case) -> None:
        self.bank, self.case, self._extractor, self.keys = bank, case, extractor, dict[str, str]()

    async def read(
        self, turn: Case, *, task: str = "", writer: str = "mallory", scope: str = ALICE, **more: Any
    ) -> Learned:
        """A run that reads the hostile text, and what the extractor makes of it."""
        self._extractor.lesson = {name: named(self.case, text) for name, text in turn["lesson"].items()}
        seen = Step(action="read", observation=named(self.case, turn["text"]))
        run = Trajectory(task=task or named(self.case, turn["task"]), steps=(seen,), answer="Done.")
        handle = self.bank.scoped(scope, writer=writer, key=self.keys.get(writer))
        return await handle.learn(run, outcome="success", **more)

    async def marked(self) -> list[Lesson]:
        """Every lesson that came of the case, those taken back too."""
        return [
            i for i in (await self.bank.lessons.list(retired=True, limit=10_000))[::-1] if mark(self.case) in i.text
        ]

    async def asked(self, task: str = "") -> Recall:
        return await self.bank.retrieve(named(self.case, task or self.case["task"]), limit=9)


@asynccontextmanager
async def victim(case: Case, trust: TrustPolicy = "open", **more: Any) -> AsyncGenerator[Victim]:
    extractor = Fooled()
    told: dict[str, Any] = {"scope": ALICE, "trust": trust, "embedder": "lexical", "holdout": None, "limit": 9, **more}
    async with await lessonbank.connect_async(":memory:", **grouped(extractor=extractor, **told)) as bank:
        yield Victim(bank, extractor, case)


def leaks(text: str, case: Case) -> list[str]:
    """Lines of a recall's text that have the mark and do not carry the recall's code."""
    nonce = text.partition("<<<lessons ")[2][:8]
    return [line for line in text.splitlines() if mark(case) in line and not (nonce and line.startswith(f"{nonce}| "))]


async def stored(bank: AsyncReasoningBank) -> str:
    """Everything a bank of one scope holds, in one text."""
    parts: list[Any] = [
        *await collected(bank.store.scan(scope=ALICE)),
        *await collected(bank.store.journal(scope=ALICE)),
        *await collected(every_recall(bank.store, scope=ALICE)),
        *await bank.runs.pending(limit=10_000),
    ]
    return "\n".join(part.model_dump_json() for part in parts)


async def shown_without_leave(bank: AsyncReasoningBank) -> list[str]:
    """Active lessons that no record of the journal moved: there must be none, whatever happened."""
    moved = {
        id for entry in await bank.history.list() if isinstance(entry.entry, Trust) for id in entry.entry.lesson_ids
    }
    return [
        lesson.id
        for lesson in (await bank.lessons.list(retired=True, limit=10_000))[::-1]
        if lesson.state == "active" and lesson.id not in moved
    ]


# --- the corpora -----------------------------------------------------------------------------------------------------


def test_the_corpora_are_as_large_as_they_claim() -> None:
    assert len(GRAFTS) >= 20
    assert len(MINJA) >= 15
    assert len(CHAINS) >= 15
    assert {case["attack"] for case in GRAFTS} >= {"fake-success-log", "fake-lesson", "fake-verdict", "authority"}
    assert {case["attack"] for case in MINJA} == {"indication", "bridge", "shortening", "two-users"}
    assert all(len(case["turns"]) >= 2 for case in MINJA)
    ids = [case["id"] for case in (*GRAFTS, *MINJA, *CHAINS)]
    assert len(set(ids)) == len(ids)


async def test_most_of_the_corpora_get_past_the_gate_so_that_trust_is_what_is_tested() -> None:
    turned_away: list[str] = []
    for case in (*GRAFTS, *MINJA, *CHAINS):
        async with victim(case) as fooled:
            learned = [await fooled.read(turn) for turn in case.get("turns", [case])]
            if not any(one.lessons for one in learned):
                turned_away.append(case["id"])
    assert len(turned_away) <= 3, turned_away


# --- MemoryGraft: a page that looks like experience ------------------------------------------------------------------


async def test_a_grafted_memory_is_shown_by_no_bank_where_trust_has_to_be_earned() -> None:
    shown: list[tuple[str, str]] = []
    for trust in EARNED:
        for case in of_each_attack(GRAFTS):
            async with victim(case, trust) as fooled:
                await fooled.read(case)
                await fooled.read(case, writer="another")  # the same task once more speaks for nothing
                if (await fooled.asked()).text:
                    shown.append((trust, case["id"]))
                assert {i.state for i in await fooled.marked()} <= {"probation", "quarantined"}
    assert shown == []


async def test_an_open_bank_shows_a_grafted_memory_inside_the_fence_and_attributed() -> None:
    seen = 0
    for case in GRAFTS:
        async with victim(case) as fooled:
            learned = await fooled.read(case, writer="the agent of mallory")
            recall = await fooled.asked()
            assert leaks(recall.text, case) == [], case["id"]
            for lesson in recall.shown:
                seen += 1
                assert lesson.state == "probation"
                assert lesson.provenance.writer == "the agent of mallory"
                assert learned.experience is not None
                assert lesson.provenance.trajectory_ids == (learned.experience.attempts[0].trajectory_id,)
                assert lesson.provenance.method not in ("human", "extractive")
    assert seen >= 20


async def test_a_grafted_memory_is_found_by_its_run_and_by_its_writer_and_taken_out() -> None:
    for case in of_each_attack(GRAFTS):
        async with victim(case) as fooled:
            harmless = {
                **case,
                "text": "nothing",
                "lesson": {
                    "title": "Sort by date",
                    "content": "Sort the list by date before its first row is read, because it opens by name.",
                },
            }
            await fooled.read(harmless, task="Sort the list", writer="ana")
            learned = await fooled.read(case)
            assert learned.experience is not None
            run, bank = learned.experience.attempts[0].trajectory_id, fooled.bank
            by_writer = [i for i in (await bank.lessons.list(limit=10_000))[::-1] if i.provenance.writer == "mallory"]
            by_run = [i for i in (await bank.lessons.list(limit=10_000))[::-1] if run in i.provenance.trajectory_ids]
            assert by_writer == by_run == await fooled.marked()
            assert {entry.writer for entry in await bank.history.list()} == {"ana", "mallory"}
            await fooled.asked()
            await bank.admin.purge(run=run, reason="it read a poisoned page")
            assert mark(case) not in await stored(bank), case["id"]
            assert [i.title for i in (await bank.lessons.list(limit=10_000))[::-1]] == ["Sort by date"]
            assert await bank.admin.verify() == ()


async def test_quarantine_hides_a_grafted_memory_and_keeps_it_as_evidence() -> None:
    for case in GRAFTS[::4]:
        async with victim(case) as fooled:
            await fooled.read(case)
            for lesson in await fooled.marked():
                if lesson.state == "probation":
                    await fooled.bank.lessons.quarantine(lesson.id, reason="it came of a poisoned page")
            assert (await fooled.asked()).text == ""
            assert await fooled.marked()


async def test_two_tasks_that_read_one_page_pass_for_independent_unless_their_writer_has_a_key() -> None:
    """What is not promised: nobody knows that two runs read one page. A writer with a key needs a second one for it."""
    shown: dict[str, list[str]] = {"corroborated": [], "with a key": [], "reviewed": []}
    for way in shown:
        trust: TrustPolicy = "reviewed" if way == "reviewed" else "corroborated"
        for case in of_each_attack(GRAFTS):
            async with victim(case, trust) as fooled:
                if way == "with a key":
                    fooled.keys["mallory"] = await fooled.bank.admin.add_writer("mallory")
                await fooled.read(case)
                await fooled.read(case, task=f"{case['task']}, for the other office")
                if (await fooled.asked()).text:
                    shown[way].append(case["id"])
                    moves = [e.entry for e in await fooled.bank.history.list() if isinstance(e.entry, Trust)]
                    assert all(len(move.evidence) == 2 and move.by == "corroboration" for move in moves)
                assert await shown_without_leave(fooled.bank) == []
    assert shown["with a key"] == shown["reviewed"] == []
    assert len(shown["corroborated"]) >= 3, "if this falls, the threat model may promise more"


# --- MINJA: a user who asks in such a way that the agent itself writes the poison -----------------------------------


async def test_what_one_user_made_an_agent_write_is_shown_to_nobody_in_another_scope() -> None:
    for case in of_each_attack(MINJA):
        async with victim(case, "open") as fooled:
            for turn in case["turns"]:
                await fooled.read(turn)
            alone = await fooled.bank.scoped(BOB).retrieve(named(case, case["victim"]), limit=9)
            assert (alone.text, alone.lessons, alone.candidates) == ("", (), ()), case["id"]
            assert (await fooled.bank.scoped(BOB).admin.counts()).experiences == 0
            assert (await fooled.bank.scoped(BOB).lessons.list(retired=True, limit=10_000))[::-1] == ()
            other = {
                **case["turns"][0],
                "text": "nothing",
                "lesson": {
                    "title": "Own",
                    "content": "Read the record of the customer before the list, because the list is a day old.",
                },
            }
            await fooled.read(other, task=named(case, case["victim"]), scope=BOB)
            recall = await fooled.bank.scoped(BOB).retrieve(named(case, case["victim"]), limit=9)
            assert mark(case) not in repr(recall), case["id"]
            assert [i.title for i in recall.shown] == ["Own"]


async def test_the_turns_of_one_user_never_witness_for_each_other() -> None:
    for trust in EARNED:
        for case in of_each_attack(MINJA):
            async with victim(case, trust) as fooled:
                fooled.keys["mallory"] = await fooled.bank.admin.add_writer("mallory")
                for turn in (*case["turns"], case["turns"][0]):
                    await fooled.read(turn)
                assert "active" not in {i.state for i in await fooled.marked()}, (trust, case["id"])
                for task in (case["victim"], *(turn["task"] for turn in case["turns"])):
                    assert (await fooled.asked(task)).text == "", (trust, case["id"])


async def test_a_user_who_asks_in_other_words_corroborates_alone_unless_another_writer_or_a_person_is_asked() -> None:
    """What is not promised: two tasks of one user are two tasks. What was moved by it is on record, run by run."""
    won: list[str] = []
    for case in MINJA:
        async with victim(case, "corroborated") as fooled:
            for turn in case["turns"]:
                await fooled.read(turn)
            for lesson in await fooled.marked():
                if lesson.state == "active":
                    won.append(case["id"])
                    moves = [e for e in await fooled.bank.history.list(lesson=lesson.id) if isinstance(e.entry, Trust)]
                    assert [len(e.entry.evidence) for e in moves if isinstance(e.entry, Trust)] == [2]
                    assert {e.writer for e in moves} == {"mallory"}
            assert await shown_without_leave(fooled.bank) == []
    same = [case for case in MINJA if len({_wording(t) for t in case["turns"]}) < len(case["turns"])]
    assert set(won) <= {case["id"] for case in same}, "other words alone move nothing"


def _wording(turn: Case) -> str:
    return turn["lesson"]["content"]


async def test_one_user_s_lessons_are_all_found_by_writer_and_taken_out() -> None:
    for case in of_each_attack(MINJA):
        async with victim(case) as fooled:
            for turn in case["turns"]:
                await fooled.read(turn)
            lessons = (await fooled.bank.lessons.list(limit=10_000))[::-1]
            assert {i.provenance.writer for i in lessons} <= {"mallory"}
            again = [one for i in lessons for one in await fooled.bank.lessons.repeats(i.id)]
            runs = {id for i in lessons for id in i.provenance.trajectory_ids}
            runs |= {run.trajectory_id for one in again for run in one.runs}
            await fooled.bank.admin.purge(run=sorted(runs), reason="all of this user's")
            assert (await fooled.bank.lessons.list(retired=True, limit=10_000))[::-1] == ()
            assert (await fooled.asked(case["victim"])).text == ""


# --- laundering: the same lesson by other ways -----------------------------------------------------------------------


class Chain:
    """A lesson on its way through banks; `runs` are all that it can be traced to."""

    def __init__(self, case: Case, folder: Path, trust: TrustPolicy, joins: Any, stack: AsyncExitStack) -> None:
        self.case, self._folder, self._trust, self._joins, self._stack = case, folder, trust, joins, stack
        self.banks: list[Victim] = []
        self.runs: set[str] = set()
        self.merged = 0

    @property
    def now(self) -> Victim:
        return self.banks[-1]

    async def begin(self) -> None:
        await self.open()
        await self.learned(await self.now.read(self.case))

    async def open(self) -> None:
        policy = self._joins(None, named(self.case, self.case["both"]))
        self.banks.append(await self._stack.enter_async_context(victim(self.case, self._trust, consolidation=policy)))
        policy.retriever = LexicalRetriever(self.now.bank.store)

    async def learned(self, told: Learned) -> None:
        if told.experience is not None:
            self.runs |= {attempt.trajectory_id for attempt in told.experience.attempts}
        self.merged += sum(isinstance(change, Merge) for change in told.changes)

    async def do(self, step: str) -> None:
        await getattr(self, f"_{step}")()

    # -- the steps

    async def _export(self) -> None:
        await self.now.bank.admin.export(self._folder / "lessons.jsonl")

    async def _import(self) -> None:
        await self.open()
        await self.now.bank.scoped(writer="ana").admin.import_(self._folder / "lessons.jsonl")

    async def _return(self) -> None:
        await self.banks[0].bank.admin.import_(self._folder / "lessons.jsonl")
        self.banks.append(self.banks[0])

    async def _forge(self) -> None:
        """An export in whose lines the lesson is trusted, with a checksum that fits."""
        await self._export()
        file = self._folder / "lessons.jsonl"
        head, *lines, _ = file.read_text().splitlines(keepends=True)
        lines = [line.replace('"state": "probation"', '"state": "active"') for line in lines]
        assert any('"state": "active"' in line for line in lines)
        digest = hashlib.sha256("".join(lines).encode()).hexdigest()
        end = json.dumps({"end": True, "records": len(lines), "sha256": digest}) + "\n"
        file.write_text("".join([head, *lines, end]))

    async def _merge(self) -> None:
        """Another run of the task reads nearly the same, so that one lesson stands for two."""
        other = {**self.case, "lesson": {**self.case["lesson"], "content": self.case["near"]}}
        await self.learned(await self.now.read(other))

    async def _relearn(self) -> None:
        await self.learned(await self.now.read(self.case))

    async def _echo(self) -> None:
        recall = await self.now.asked()
        if recall.text:  # without a text there is nothing to echo: a second task would teach the lesson by itself
            await self.now.read({**self.case, "text": recall.text}, task="Another task", recall=recall)

    async def _copy(self) -> None:
        """A caller puts what it was given back in, under ids of its own."""
        fresh = [Lesson(title="x", content="x").id for _ in await self.now.marked()]
        pairs = zip(await self.now.marked(), fresh, strict=True)
        lessons = tuple(i.model_copy(update={"id": id, "state": "active", "risk": None}) for i, id in pairs)
        await self.now.bank.consolidate(
            Experience(scope=ALICE, task=named(self.case, self.case["task"]), lessons=lessons)
        )

    async def _sign(self) -> None:
        self.now.bank.writer = "ana"

    async def _rollback(self) -> None:
        await self.now.bank.history.rollback(to=0, reason="away")
        last = (await self.now.bank.history.list())[-1].sequence
        await self.now.bank.history.rollback(to=last - 1, reason="and back")


@asynccontextmanager
async def walked(case: Case, folder: Path, trust: TrustPolicy, joins: Any) -> AsyncGenerator[Chain]:
    """The chain of a case, step by step; after each, nothing may be more trusted than before."""
    async with AsyncExitStack() as stack:
        chain = Chain(case, folder, trust, joins, stack)
        await chain.begin()
        for step in case["steps"]:
            await chain.do(step)
            lessons = await chain.now.marked()
            assert lessons, (case["id"], step)
            assert {i.state for i in lessons} == {"probation"}, (case["id"], step)
        yield chain


@pytest.mark.parametrize("trust", EARNED)
async def test_no_way_through_banks_makes_a_lesson_more_trusted(trust: TrustPolicy, tmp_path: Path, joins: Any) -> None:
    for case in CHAINS:
        async with walked(case, tmp_path, trust, joins) as chain:
            assert not (await chain.now.asked()).text, case["id"]
            assert await chain.now.bank.admin.verify() == ()


async def test_however_it_came_a_lesson_is_fenced_names_its_runs_and_first_writer_and_goes_with_its_runs(
    tmp_path: Path, joins: Any
) -> None:
    merged = 0
    for case in CHAINS:
        async with walked(case, tmp_path, "open", joins) as chain:
            bank, recall = chain.now.bank, await chain.now.asked()
            assert recall.text, case["id"]
            assert leaks(recall.text, case) == [], case["id"]
            merged += chain.merged
            lessons = await chain.now.marked()
            for lesson in lessons:
                assert lesson.provenance.trajectory_ids, (case["id"], lesson.provenance)
                assert set(lesson.provenance.trajectory_ids) <= chain.runs, (case["id"], lesson.provenance)
                if lesson.provenance.method != "merge" or "merge" in case["steps"]:
                    assert lesson.provenance.writer == "mallory", case["id"]
            for run in sorted(chain.runs):
                if any(run in lesson.provenance.trajectory_ids for lesson in await bank.lessons.list(retired=True)):
                    await bank.admin.purge(run=run, reason="it read a poisoned page")
            assert await chain.now.marked() == [], case["id"]
            assert (await chain.now.asked()).text == "", case["id"]
            assert await bank.admin.verify() == ()
    assert merged >= 7, "one lesson did stand for two"
