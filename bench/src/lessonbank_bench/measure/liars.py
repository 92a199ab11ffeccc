"""How many writers may lie before the bank does something wrong: a good lesson taken back, a bad one trusted?

    python -m lessonbank_bench.measure.liars [--seeds 20] [--tasks 500] [--writers 50] [--json]
    python -m lessonbank_bench.measure.liars --leave-out 1 --writers 20 --shares 0.1 --reports 10 --ways lies
                                      what if results had to hold without each single key, not without a tenth of them?
    python -m lessonbank_bench.measure.liars --bank [--seeds 3] [--shares 0.1 0.2]
                                      liars who discredit, ten reports a task, through a bank, by trust policy

Each task is one of a writer drawn at random. Honest writers tell what happened. Liars either tell
the opposite of what is true of the lesson, or make the task again and again and tell only what suits them; each as
often as `reports` says. The table has its runs from the code that a bank uses: receipts and settlements become columns,
the columns are reviewed, and the review sets what is withheld next. Exit code 1 when a share of liars up to a tenth led
to a wrong action.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final, Literal

import lessonbank
from lessonbank import ReasoningBank
from lessonbank.contracts.records import Candidate, Extraction, Lesson, Outcome, Recall, Settlement, Step, Trajectory
from lessonbank.contracts.settings import Parts, Safety
from lessonbank.evidence.evidence_table import EvidenceTable
from lessonbank.evidence.policy import AdaptiveHoldout
from lessonbank.evidence.review import left_out, review
from lessonbank.evidence.stored_ledger import treatment_reviews
from lessonbank.guard.trust import POLICIES, TrustPolicy

Way = Literal["lies", "chosen truths"]
World = Literal["discredit", "praise"]
SHARES: Final = (0.01, 0.05, 0.1, 0.2, 0.3)
REPORTS: Final = (1, 10, 50)
WAYS: Final[tuple[Way, ...]] = ("lies", "chosen truths")
EFFECTS: Final[dict[World, tuple[float, float]]] = {"discredit": (0.5, 0.8), "praise": (0.8, 0.5)}
"""The rate of success without the lesson and with it: liars discredit one that helps, and praise one that harms."""
WITHSTOOD: Final = 0.1
OFTEN: Final = 10
"""Reports of a task by a liar, where the same is tried through a bank."""
LOOKED: Final = 10
"""After so many recalls the bank is asked what it did: its lists take as long as a recall."""
SCOPE, ID, MORNING = "s", "lesson", datetime(2026, 1, 5, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who tells what."""

    writers: int = 50
    liars: int = 0
    reports: int = 1
    """How often a liar makes each of its tasks."""
    way: Way = "lies"
    world: World = "discredit"

    def told(self, writer: int, chance: random.Random, *, shown: bool) -> Outcome | None:
        """What is said of one run; `None`: nothing."""
        success = chance.random() < EFFECTS[self.world][shown]
        if writer < self.liars:
            wanted = shown is (self.world == "praise")
            if self.way == "chosen truths" and success is not wanted:
                return None
            success = wanted
        return "success" if success else "failure"

    def identity(self, writer: int) -> str:
        """As the bank knows it."""
        return f"key:u{writer}" if self.writers > 1 else "process:ana@host"

    def tasks(self, count: int, chance: random.Random) -> Iterator[tuple[int, int]]:
        """The number of each task, and its writer, as often as it tells of it."""
        for number in range(count):
            writer = chance.randrange(self.writers)
            yield from [(number, writer)] * (self.reports if writer < self.liars else 1)


@dataclass(frozen=True, slots=True)
class Ended:
    """What a run came to: the task after which the ledger acted, and what it did."""

    tasks: int | None = None
    did: Literal["retired", "trusted"] | None = None
    shown: float = 0.0
    """The share of recalls that showed the lesson."""
    proposed: bool = False
    """Whether a person was asked to retire it, which is no action."""

    def wrong(self, world: World) -> bool:
        """Whether it was wrong."""
        return self.did == ("retired" if world == "discredit" else "trusted")


def played(crowd: Crowd, *, tasks: int, seed: int, leave_out: int | None = None) -> Ended:
    """One run until the ledger acts, or to its end. `leave_out`: so many keys at most, in place of a tenth."""
    chance, columns, policy = random.Random(seed), EvidenceTable(), AdaptiveHoldout(seed=str(seed))
    settled = reviewed = shown = made = 0
    for number, writer in crowd.tasks(tasks, chance):
        recall = _recall(policy, f"{made}")
        made, shown = made + 1, shown + bool(recall.text)
        outcome = crowd.told(writer, chance, shown=bool(recall.text))
        if outcome is None:
            continue
        columns.receipt(recall)
        settled += 1
        told = Settlement(
            recall_id=recall.id, scope=SCOPE, outcome=outcome, source="ground_truth", identity=crowd.identity(writer)
        )
        columns.settle(told)
        if settled - reviewed < max(20, 0.05 * reviewed):
            continue
        reviewed = settled
        episodes = columns.episodes()
        apart = left_out(episodes) if leave_out is None else min(leave_out, left_out(episodes))
        found = review(episodes, leave_out=apart)
        treatment = episodes.treatments.index(ID)
        harms, helps = (found.is_shown(treatment, standing) for standing in ("harms", "helps"))
        if harms or (helps and not apart):
            return Ended(number + 1, "retired" if harms else "trusted", shown / made)
        policy.tell(SCOPE, treatment_reviews(episodes, found))
    return Ended(shown=shown / made)


def _recall(policy: AdaptiveHoldout, id: str) -> Recall:
    drawn = policy({ID: ()}, recall_id=id, task="t", scope=SCOPE)
    withheld = ID in drawn.withheld
    shown = not withheld and not drawn.control
    one = Candidate(
        lesson_id=ID,
        experience_id="e",
        score=1.0,
        rank=1,
        shown=shown,
        withheld=withheld,
        probability=drawn.probability[ID],
    )
    return Recall(
        id=id,
        scope=SCOPE,
        task="t",
        text="lesson" if shown else "",
        candidates=(one,),
        control=drawn.control,
        control_probability=drawn.control_probability,
    )


@dataclass(frozen=True, slots=True)
class Row:
    """Runs of one kind."""

    share: float
    reports: int
    way: Way
    world: World
    runs: int
    wrong: int
    right: int
    shown: float


def table(
    *,
    seeds: int,
    tasks: int,
    writers: int,
    shares: Sequence[float] = SHARES,
    reports: Sequence[int] = REPORTS,
    ways: Sequence[Way] = WAYS,
    worlds: Sequence[World] = tuple(EFFECTS),
    leave_out: int | None = None,
) -> Iterator[Row]:
    """Every share of liars, with few and many reports, both ways and both aims."""
    for share, often, way, world in product(shares, reports, ways, worlds):
        crowd = Crowd(writers, max(1, round(share * writers)), often, way, world)
        ended = [played(crowd, tasks=tasks, seed=seed, leave_out=leave_out) for seed in range(seeds)]
        wrong = sum(one.wrong(world) for one in ended)
        right = sum(one.did is not None for one in ended) - wrong
        shown = statistics.fmean(one.shown for one in ended)
        yield Row(share, often, way, world, seeds, wrong, right, shown)


@dataclass(frozen=True, slots=True)
class Power:
    """How long a lesson that harms by 30 points stays."""

    writers: int
    liars: int
    runs: int
    retired: int
    median: float | None
    """Tasks until it was retired, in half of the runs; `None`: more than were played."""
    tasks: int


def power(*, seeds: int, tasks: int = 3000) -> Iterator[Power]:
    """With one writer, with several honest ones, and with a tenth of them who praise the lesson in every report."""
    for writers, liars in ((1, 0), (2, 0), (10, 0), (50, 0), (50, 5)):
        crowd = Crowd(writers, liars, world="praise")
        ended = sorted(one.tasks or tasks + 1 for one in (played(crowd, tasks=tasks, seed=s) for s in range(seeds)))
        middle = ended[len(ended) // 2]
        yield Power(writers, liars, seeds, sum(t <= tasks for t in ended), middle if middle <= tasks else None, tasks)


# --- through a bank ---------------------------------------------------------------------------------------------------


def in_bank(policy: TrustPolicy, crowd: Crowd, *, tasks: int, seed: int) -> Ended:
    """The same through the public API: every writer has a key, the lesson came in as the policy asks."""
    chance = random.Random(seed)
    drawn = [Lesson(title="Compare the ledger first", content="Compare the last ledger entry with the request.")]

    async def extractor(attempts: object) -> Extraction:
        return Extraction(lessons=tuple(lesson.model_copy(update={"id": f"{len(said)}"}) for lesson in drawn))

    said = list[int]()
    with lessonbank.connect(
        ":memory:",
        scope=SCOPE,
        embedder="lexical",
        safety=Safety(trust=policy, admission=None),
        parts=Parts(extractor=extractor),
    ) as bank:
        writers = [bank.scoped(writer=f"u{n}", key=bank.admin.add_writer(f"u{n}")) for n in range(crowd.writers)]
        for writer, task in zip(
            writers[-2:], ("Settle the invoice of a customer", "Settle the invoice of a firm"), strict=True
        ):
            said.append(0)
            writer.learn(_run(task), outcome="success")
        ids = {lesson.id for lesson in bank.lessons.list()}
        if policy == "reviewed":
            bank.lessons.approve(*ids, by="Ann")
        before = {lesson.id: lesson.state for lesson in bank.lessons.list()}
        drawn.clear()
        shown, made, proposed = 0, 0, False
        for number, writer in crowd.tasks(tasks, chance):
            recall = bank.retrieve(f"Settle the invoice of customer {chance.randrange(10_000)}")
            made, shown = made + 1, shown + bool(recall.shown)
            outcome = crowd.told(writer, chance, shown=bool(recall.shown))
            if outcome is None:
                continue
            writers[writer].learn(_run(f"Settle {number}, {made}"), recall=recall, outcome=outcome)
            if made % LOOKED == 0:
                proposed = proposed or bool(bank.lessons.proposals())
                if did := _did(bank, before):
                    return Ended(number + 1, did, shown / made, proposed)
        did = _did(bank, before)
        return Ended(tasks if did else None, did, shown / made, proposed or bool(bank.lessons.proposals()))


def _did(bank: ReasoningBank, before: Mapping[str, str]) -> Literal["retired", "trusted"] | None:
    """What became of a lesson without a person."""
    if bank.lessons.list(state="retired"):
        return "retired"
    return "trusted" if any(before[lesson.id] != lesson.state for lesson in bank.lessons.list()) else None


def _run(task: str) -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="look", observation="done"),))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--writers", type=int, default=50)
    parser.add_argument("--bank", action="store_true")
    parser.add_argument("--shares", nargs="+", type=float, help="of liars")
    parser.add_argument("--reports", nargs="+", type=int, default=REPORTS, help="of a task by a liar")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--worlds", nargs="+", choices=EFFECTS, default=tuple(EFFECTS))
    parser.add_argument("--leave-out", type=int, help="keys without which results must hold; else a tenth")
    parser.add_argument("--json", action="store_true")
    asked: Any = parser.parse_args()
    sys.exit(_through_banks(asked) if asked.bank else _tabled(asked))


def _tabled(asked: Any) -> int:
    narrowed = {name: getattr(asked, name) for name in ("reports", "ways", "worlds", "leave_out")}
    shares = asked.shares or SHARES
    rows = list(table(seeds=asked.seeds, tasks=asked.tasks, writers=asked.writers, shares=shares, **narrowed))
    powers = [] if asked.shares else list(power(seeds=asked.seeds))
    if asked.json:
        print(json.dumps({"rows": list(map(asdict, rows)), "power": list(map(asdict, powers))}, indent=2))
    else:
        print("\n".join((*lines(rows, asked.tasks), "", *(_power_lines(powers) if powers else ()))))
    return int(any(row.wrong for row in rows if row.share <= WITHSTOOD))


def lines(rows: list[Row], tasks: int) -> Iterator[str]:
    """As Markdown: by the share of liars and how often each tells, over both aims and both ways."""
    columns = sorted({row.reports for row in rows})
    yield f"| writers who lie | {' | '.join(map(_reported, columns))} |"
    yield f"|---|{'---|' * len(columns)}"
    for share in dict.fromkeys(row.share for row in rows):
        cells = [_cell([row for row in rows if (row.share, row.reports) == (share, often)]) for often in columns]
        yield f"| {share:.0%} | {' | '.join(cells)} |"
    yield ""
    yield f"Wrong actions within {tasks} tasks, and the least share of recalls that showed a lesson that helps."


def _reported(reports: int) -> str:
    return "one report a task" if reports == 1 else f"{reports} reports a task"


def _cell(rows: list[Row]) -> str:
    least = min((row.shown for row in rows if row.world == "discredit"), default=None)
    shown = "" if least is None else f"; {least:.0%}"
    return f"{sum(row.wrong for row in rows)} of {sum(row.runs for row in rows)} runs{shown}"


def _power_lines(powers: list[Power]) -> Iterator[str]:
    yield "| writers | of them liars, who praise it | a lesson of −30 points is retired, median | within the run |"
    yield "|---|---|---|---|"
    for one in powers:
        median = f"after {one.median:.0f} tasks" if one.median else f"later than {one.tasks} tasks"
        yield f"| {one.writers} | {one.liars} | {median} | {one.retired} of {one.runs} |"


def _through_banks(asked: Any) -> int:
    """Each cell as soon as it is known, then the table."""
    cells, wrong = dict[tuple[float, TrustPolicy], str](), 0
    shares = asked.shares or (0.1, 0.2, 0.3)
    for share in shares:
        for policy in POLICIES:
            crowds = [Crowd(asked.writers, round(share * asked.writers), OFTEN, way) for way in WAYS]
            ended = [in_bank(policy, c, tasks=asked.tasks, seed=seed) for c in crowds for seed in range(asked.seeds)]
            bad, shown = sum(one.wrong("discredit") for one in ended), min(one.shown for one in ended)
            wrong += bad if share <= WITHSTOOD else 0
            asked_for = f", {n} proposed" if (n := sum(one.proposed for one in ended)) else ""
            cells[share, policy] = f"{bad} of {len(ended)}{asked_for}; {shown:.0%}"
            print(f"{share:.0%}, {policy}: {cells[share, policy]}", flush=True)
    print("\n".join(("", *_policy_lines(shares, cells))))
    return int(wrong > 0)


def _policy_lines(shares: Sequence[float], cells: Mapping[tuple[float, TrustPolicy], str]) -> Iterator[str]:
    yield f"| trust policy | {' | '.join(f'{share:.0%} lie' for share in shares)} |"
    yield f"|---|{'---|' * len(shares)}"
    for policy in POLICIES:
        yield f"| `{policy}` | {' | '.join(cells[share, policy] for share in shares)} |"


if __name__ == "__main__":
    main()
