"""An export is a backup: lossless, checked, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import Experience, Lesson, ReasoningBank, Step, Trajectory
from lessonbank.contracts.records import Counts
from lessonbank.contracts.store_calls import forget
from lessonbank.errors import Conflict, FormatError, StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.full

resource = pytest.importorskip("resource", reason="file size limits are POSIX")
OPTIONS: dict[str, Any] = {"embedder": "lexical", "holdout": 0.3}


def opened(where: Any, scope: str = "from") -> ReasoningBank:
    return lessonbank.connect(where, scope=scope, **grouped(**OPTIONS))


def filled(where: Any) -> ReasoningBank:
    bank = opened(where)
    for n in range(4):
        looked = Step(action="look \ud83d", observation=f"error: locked by {n}")
        steps = (
            looked,
            Step(action="unlock it", observation="unlocked"),
            Step(action="look there", observation="found"),
        )
        recall = bank.retrieve(f"find thing {n}")
        bank.learn(
            Trajectory(task=f"find thing {n}", steps=steps), recall=recall, outcome=("success", "failure")[n % 2]
        )
    bank.learn(Trajectory(task="find thing 9", steps=(Step(action="x", observation="y"),)))
    bank.keep_unfinished(Trajectory(task="find thing 10", steps=(Step(action="x", observation="y"),)))
    bank.lessons.retire(bank.lessons.list(limit=10_000)[::-1][0].id, reason="test")
    return bank


def test_only_the_owner_may_read_an_export_whoever_could_read_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    with filled(":memory:") as bank:
        bank.admin.export(path)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
        bank.admin.export(path)
        assert path.stat().st_mode & 0o777 == 0o600


def contents(bank: ReasoningBank, path: Path) -> list[str]:
    """The records of an export, without the marks that an import puts on them."""
    bank.admin.export(path)
    return [unmarked(line) for line in path.read_text(encoding="utf-8").splitlines()[1:-1]]


def unmarked(line: str) -> str:
    told = json.loads(line)
    told["record"].pop("imported", None)
    told["record"].pop("identity", None)
    for lesson in told["record"].get("lessons", ()):
        del lesson["provenance"]["identity"]
    return json.dumps(told)


def anonymous(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Lessons without who taught them: a bank knows that of its own lessons only."""
    sources = [lesson.provenance.model_copy(update={"identity": ""}) for lesson in lessons]
    return [i.model_copy(update={"provenance": source}) for i, source in zip(lessons, sources, strict=True)]


def lessons_of(bank: ReasoningBank) -> list[Lesson]:
    return anonymous(bank.lessons.list(retired=True, limit=10_000))


def runs_of(bank: ReasoningBank) -> list[str]:
    return [unmarked(json.dumps({"record": json.loads(run.model_dump_json())})) for run in bank.runs.pending(limit=99)]


def held(bank: ReasoningBank) -> dict[str, int]:
    """How much it holds, and not how it came to."""
    return bank.admin.counts().model_dump(exclude={"changes"})


def test_what_is_imported_exports_to_the_same_lines(tmp_path: Path) -> None:
    with filled(tmp_path / "source.db") as source, opened(tmp_path / "bank.db") as copy:
        original = contents(source, tmp_path / "a.jsonl")
        kinds = {json.loads(line)["kind"] for line in original}
        assert kinds == {"trajectory", "experience", "recall", "settlement"}
        assert any(lesson.retired for lesson in source.lessons.list(retired=True, limit=10_000)[::-1])
        assert copy.admin.import_(tmp_path / "a.jsonl") == len(original)
        assert contents(copy, tmp_path / "b.jsonl") == original
        assert held(copy) == held(source)
        assert lessons_of(copy) == lessons_of(source)
        assert runs_of(copy) == runs_of(source)
        found, original_found = copy.retrieve("find thing 1"), source.retrieve("find thing 1")
        assert anonymous(found.lessons) == anonymous(original_found.lessons)
        assert copy.admin.verify() == ()


@pytest.mark.parametrize(("held", "portion"), [(0, 512), (2_000, 2), (1_000_000, 1)])
def test_what_is_imported_does_not_depend_on_how_much_of_the_file_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, portion: int
) -> None:
    monkeypatch.setattr("lessonbank.bank.views.archive._LARGE", held)
    monkeypatch.setattr("lessonbank.bank.views.archive._ADDED", portion)
    with filled(":memory:") as source, opened(tmp_path / "b.db") as copy:
        original = contents(source, tmp_path / "a.jsonl")
        assert copy.admin.import_(tmp_path / "a.jsonl") == len(original)
        assert contents(copy, tmp_path / "b.jsonl") == original
        assert not copy.admin.verify()


class LearnsMeanwhile(SqliteStore):
    """A store in which a run is learned once every experience was read."""

    learn: Any = None

    async def scan(self, *, scope: str) -> Any:
        async for one in super().scan(scope=scope):
            yield one
        if learn := self.learn:
            self.learn = None
            await learn()


def test_a_run_that_is_learned_during_an_export_is_in_it(tmp_path: Path) -> None:
    store = LearnsMeanwhile.in_memory()
    with filled(store) as bank:
        (waiting,) = bank.submit(Trajectory(task="find thing 11", answer="there"), learn=False)
        store.learn = partial(bank.aio.tell, waiting, outcome="success")
        bank.admin.export(tmp_path / "all.jsonl")
        assert bank.runs.get(waiting).status == "learned"
    assert waiting in (tmp_path / "all.jsonl").read_text()


def test_an_import_adds_what_is_missing_and_leaves_what_is_there(tmp_path: Path) -> None:
    with filled(":memory:") as source, opened(tmp_path / "to.db") as copy:
        source.admin.export(tmp_path / "a.jsonl")
        copy.admin.import_(tmp_path / "a.jsonl")
        copy.lessons.retire(copy.lessons.list(limit=10_000)[::-1][0].id, reason="decided here")
        source.learn(Trajectory(task="later", steps=(Step(action="x", observation="error: y"),)), outcome="failure")
        source.admin.export(tmp_path / "a.jsonl")
        assert copy.admin.import_(tmp_path / "a.jsonl") == 2, "a run and its experience"
        assert len(copy.lessons.list(retired=True, limit=10_000)[::-1]) == len(
            source.lessons.list(retired=True, limit=10_000)[::-1]
        )
        assert len(copy.lessons.list(limit=10_000)[::-1]) == len(source.lessons.list(limit=10_000)[::-1]) - 1


def test_many_receipts_and_outcomes_keep_their_order(tmp_path: Path) -> None:
    with opened(":memory:") as source:
        for n in range(150):
            source.learn(Trajectory(task=f"task {n}", answer="x"), recall=source.retrieve(f"task {n}"), reward=n % 2)
        original = contents(source, tmp_path / "a.jsonl")
    told = [json.loads(line) for line in original]
    named = [line["record"]["recall_id"] for line in told if line["kind"] == "settlement"]
    assert len(named) == 150
    with opened(tmp_path / "bank.db") as copy:
        assert copy.admin.import_(tmp_path / "a.jsonl") == len(original)
        assert contents(copy, tmp_path / "b.jsonl") == original
        settled = [one.entry.settlement.recall_id for one in copy.history.list() if one.entry.kind == "settle"]
        assert settled == named
        assert copy.admin.import_(tmp_path / "a.jsonl") == 0


def test_a_line_that_says_more_than_its_record_is_read_as_one_that_does_not(tmp_path: Path) -> None:
    with filled(":memory:") as source:
        source.admin.export(tmp_path / "a.jsonl")
    head, *lines, _ = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    odd = [json.dumps({"more": [1, {"kind": "x"}], **json.loads(line)}) for line in lines]
    end = json.dumps({"end": True, "records": len(odd), "sha256": hashlib.sha256(_file(odd)).hexdigest()})
    (tmp_path / "b.jsonl").write_bytes(_file([head, *odd, end]))
    with opened(":memory:") as copy:
        assert copy.admin.import_(tmp_path / "b.jsonl") == len(lines)
        assert contents(copy, tmp_path / "c.jsonl") == list(map(unmarked, lines))


def _file(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_a_record_nested_as_deep_as_a_store_takes_is_carried_over(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(90):
        deep = [deep]
    with opened(":memory:", "t") as source:
        source.learn(Trajectory(id="deep", task="x", metadata={"deep": deep}), outcome="failure")
        source.admin.export(tmp_path / "a.jsonl")
        with opened(tmp_path / "to.db", "t") as copy:
            copy.admin.import_(tmp_path / "a.jsonl")
            assert copy.runs.get("deep").metadata["deep"] == deep


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: lines[:-1],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[1].replace("find", "lose"), *lines[2:]],
        lambda lines: [*lines, lines[1]],
        lambda lines: ["{}", *lines[1:]],
        lambda lines: [],
        lambda lines: ["not json at all"],
        lambda lines: [lines[0].replace('"version": 2', '"version": 99'), *lines[1:]],
    ],
    ids=[
        "cut short",
        "line missing",
        "line changed",
        "line after the end",
        "no header",
        "empty",
        "other file",
        "newer version",
    ],
)
def test_a_damaged_export_is_refused_and_nothing_is_imported(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "a.jsonl"
    with filled(":memory:") as source:
        source.admin.export(path)
    path.write_text("".join(line + "\n" for line in damage(path.read_text("utf-8").splitlines())), encoding="utf-8")
    with opened(":memory:", "to") as copy:
        with pytest.raises(FormatError):
            copy.admin.import_(path)
        assert copy.admin.counts().trajectories == 0


def test_an_export_that_fails_leaves_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with filled(":memory:") as source:
        source.admin.export(path)
        before = path.read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            with pytest.raises(StoreUnavailable, match="cannot write the export"):
                source.admin.export(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from lessonbank import Experience
from lessonbank.bank.views import archive
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.contracts.records import Add

class Dying(SqliteStore):
    async def scan(self, *, scope):
        for n in range(1000):
            yield Experience(scope=scope, task="x" * 10_000)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(archive.write(Dying.in_memory(), Path(sys.argv[1]), scope="t"))
"""


def test_an_export_that_is_killed_leaves_the_earlier_one_and_its_part_goes_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with filled(":memory:") as source:
        source.admin.export(path)
        before = path.read_bytes()
        done = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False)
        assert done.returncode == -signal.SIGKILL
        assert path.read_bytes() == before
        (left,) = tmp_path.glob(".a.jsonl.*.part")
        assert left.stat().st_size > 1_000_000
        source.admin.export(path)
        assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_export_takes_the_place_of_a_file_of_one_byte(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n")
    with filled(":memory:") as source:
        assert source.admin.export(tmp_path / "a.jsonl") > 0


def test_two_exports_to_one_file_at_once_leave_one_of_them_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with filled(tmp_path / "bank.db") as source, ThreadPoolExecutor(4) as pool:
        written = set(pool.map(lambda _: source.admin.export(path), range(12)))
        assert len(written) == 1
        assert source.scoped("copy").admin.import_(path) == written.pop()
    assert not list(tmp_path.glob(".*"))


def test_an_export_to_nowhere_is_one_clear_error(tmp_path: Path) -> None:
    with filled(":memory:") as source, pytest.raises(StoreUnavailable, match="cannot write the export"):
        source.admin.export(tmp_path / "missing" / "a.jsonl")


def test_an_older_export_does_not_undo_a_later_settlement(tmp_path: Path) -> None:
    with opened(":memory:", "t") as bank:
        recall, run = bank.retrieve("x"), Trajectory(task="x", steps=(Step(action="look", observation="found"),))
        bank.learn(run, recall=recall, outcome="success")
        bank.admin.export(tmp_path / "a.jsonl")
        bank.learn(run, recall=recall, outcome="failure")
        assert bank.admin.import_(tmp_path / "a.jsonl") == 0
        bank.admin.export(tmp_path / "b.jsonl")
    assert '"outcome": "failure"' in (tmp_path / "b.jsonl").read_text(encoding="utf-8")


def test_a_record_that_a_newer_release_wrote_is_refused_before_anything_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with filled(":memory:") as source:
        source.admin.export(path)
    head, *lines, _ = path.read_text("utf-8").splitlines(keepends=True)
    lines[-1] = (
        lines[-1].replace('{"kind"', '{"new_field": 1, "kind"').replace('"record": {', '"record": {"mood": "sunny", ')
    )
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    end = json.dumps({"end": True, "records": len(lines), "sha256": digest}) + "\n"
    path.write_text("".join([head, *lines, end]), encoding="utf-8")
    with opened(":memory:", "to") as copy:
        with pytest.raises(FormatError, match="malformed"):
            copy.admin.import_(path)
        assert copy.admin.counts() == Counts()


def some_lessons(bank: ReasoningBank, count: int, *, after: int = 0) -> None:
    """Experiences of one lesson each, with ids that tell their number."""
    for n in range(after, after + count):
        content = f"When the search for part {n} is empty, rebuild the parts index before another search."
        lesson = Lesson(id=f"lesson{n:05d}", title=f"Look at shelf file number {n}", content=content)
        bank.consolidate(Experience(scope=bank.scope, task=f"task {n}", lessons=(lesson,)))


def digest_of(bank: ReasoningBank, path: Path) -> str:
    bank.admin.export(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_conflict_in_the_last_record_of_an_import_leaves_the_bank_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lessonbank.bank.views.archive._ADDED", 20)
    with filled(":memory:") as source, opened(tmp_path / "bank.db") as bank:
        some_lessons(source, 90)
        source.admin.export(tmp_path / "a.jsonl")
        some_lessons(bank, 1, after=89)
        before = digest_of(bank, tmp_path / "before.jsonl")
        entries = bank.history.list()
        with pytest.raises(Conflict, match="lesson00089"):
            bank.admin.import_(tmp_path / "a.jsonl")
        assert bank.history.list() == entries
        assert digest_of(bank, tmp_path / "after.jsonl") == before
        assert bank.admin.verify() == ()


DIES = """
import os, sys
import lessonbank
from lessonbank.bank.views import archive, importing

class Dying:
    def __init__(self, portions):
        self.portions = portions
    def __call__(self, *arguments):
        for number, portion in enumerate(self.portions(*arguments)):
            if number == 3:
                os._exit(9)
            yield portion

archive._ADDED, importing._portions = 20, Dying(importing._portions)
with lessonbank.connect(sys.argv[1], scope="from", embedder="lexical", evidence=0.3) as bank:
    bank.admin.import_(sys.argv[2])
"""


def test_an_import_that_is_killed_in_the_middle_leaves_nothing_of_it(tmp_path: Path) -> None:
    with filled(":memory:") as source:
        some_lessons(source, 90)
        written = source.admin.export(tmp_path / "a.jsonl")
    with opened(tmp_path / "bank.db") as bank:
        some_lessons(bank, 2, after=900)
        before = digest_of(bank, tmp_path / "before.jsonl")
    command = [sys.executable, "-c", DIES, str(tmp_path / "bank.db"), str(tmp_path / "a.jsonl")]
    assert subprocess.run(command, timeout=60, check=False).returncode == 9
    with opened(tmp_path / "bank.db") as bank:
        assert digest_of(bank, tmp_path / "after.jsonl") == before
        assert bank.admin.verify() == ()
        assert bank.admin.import_(tmp_path / "a.jsonl") == written


def test_a_bank_that_forgot_its_runs_can_be_carried_over(tmp_path: Path) -> None:
    end = datetime(2100, 1, 1, tzinfo=UTC)
    with filled(tmp_path / "a.db") as source, opened(":memory:") as copy:
        lessons_before = lessons_of(source)
        anyio.run(partial(_forget, tmp_path / "a.db", end))
        source.admin.export(tmp_path / "a.jsonl")
        copy.admin.import_(tmp_path / "a.jsonl")
        assert lessons_of(copy) == lessons_before
        assert copy.admin.counts().trajectories == 0
        assert copy.admin.counts().recalls_with_a_run == source.admin.counts().recalls_with_a_run == 4


async def _forget(path: Path, end: datetime) -> None:
    store = await SqliteStore.open(path)
    await forget(store, scope="from", before=end, writer="retention")
    await store.close()
