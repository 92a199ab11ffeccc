"""A page of a list costs what is on it, not what the bank holds."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from any_text import any_text
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lessonbank.contracts.ports import LessonFilter, RecallFilter, RunFilter
from lessonbank.contracts.records import Add, Edit, Experience, Lesson, Recall, Rollback
from lessonbank.contracts.store_calls import count_records, purge_one
from lessonbank.guard.wording import wording_of
from lessonbank.stores._listing import may_hold
from lessonbank.stores._records import dumped
from lessonbank.stores.sqlite import SqliteStore, _derived, _listing, _read, _words
from lessonbank.testing.store_samples import MINE, START, added, attempt, experience, lesson, trajectory
from lessonbank.text.bm25 import words

pytestmark = [pytest.mark.anyio, pytest.mark.full]

MANY = 3000
_LITTLE = 4_000
"""Steps of SQLite's machine: to read every lesson takes twenty times as many."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("listing") / "bank.db"
    anyio.run(fill, path)
    return path


async def fill(path: Path) -> None:
    store = await SqliteStore.open(path)
    lessons = [lesson(f"Lesson {n}").model_copy(update={"created_at": START + timedelta(n)}) for n in range(MANY)]
    for n in (5, 1500, 2500):
        lessons[n] = lessons[n].model_copy(update={"state": "quarantined"})
    told = [experience(lessons=(i,)) for i in lessons]
    told[7] = told[7].model_copy(update={"task": f"{told[7].task}, rare"})
    await store.apply([Add(experience=e) for e in told], scope=MINE, writer="tests")
    await store.save_runs([trajectory(f"Task {n}") for n in range(MANY)], scope=MINE)
    for n in range(300):
        metadata = {"user": "u-17"} if n == 7 else {}
        await store.save_recall(
            Recall(scope=MINE, task=f"Task {n}", created_at=START + timedelta(n), metadata=metadata)
        )
    await store.close()


@pytest.fixture
def bank(filled: Path, tmp_path: Path) -> Path:
    """A bank of its own for each test, filled once for all of them."""
    return Path(shutil.copy(filled, tmp_path / "bank.db"))


def steps(path: Path, look: Callable[[sqlite3.Connection], list[Any]]) -> tuple[int, list[Any]]:
    """How many steps SQLite takes for a look, to the next hundred; and what was found."""
    connection, taken = sqlite3.connect(path), 0

    def count() -> int:
        nonlocal taken
        taken += 100
        return 0

    connection.set_progress_handler(count, 100)
    found = look(connection)
    connection.close()
    return taken, found


LOOKS: dict[str, tuple[int, Callable[[sqlite3.Connection], list[Any]]]] = {
    "what is quarantined": (
        3,
        lambda file: _listing.lessons(file, MINE, LessonFilter(state="quarantined")),
    ),
    "the newest lessons": (
        20,
        lambda file: _listing.lessons(file, MINE, LessonFilter(limit=20)),
    ),
    "the newest runs": (
        20,
        lambda file: _listing.runs(file, MINE, RunFilter(limit=20)),
    ),
    "lessons with a rare word": (
        1,
        lambda file: _listing.lessons(file, MINE, LessonFilter(text="2017")),
    ),
    "lessons with a word that none has": (
        0,
        lambda file: _listing.lessons(file, MINE, LessonFilter(text="lesson zanzibar")),
    ),
    "runs that wait": (
        20,
        lambda file: _listing.runs(file, MINE, RunFilter(status="pending", oldest_first=True, limit=20)),
    ),
    "the oldest recalls": (
        20,
        lambda file: _listing.recalls(file, MINE, RecallFilter(oldest_first=True, limit=20)),
    ),
    "who has these words": (
        1,
        lambda file: _read.experiences(file, MINE, "wording", [wording_of(lesson("Lesson 7"))]),
    ),
    "tasks with a rare word": (
        1,
        lambda file: _words.search(file, "rare", scope=MINE, limit=20),
    ),
    "recalls of one user": (
        1,
        lambda file: _listing.recalls(file, MINE, RecallFilter(metadata={"user": "u-17"})),
    ),
}


@pytest.mark.parametrize("what", LOOKS)
async def test_a_page_does_not_read_the_whole_bank(bank: Path, what: str) -> None:
    count, look = LOOKS[what]
    taken, found = steps(bank, look)
    assert len(found) == count
    assert taken < _LITTLE


async def test_a_page_far_down_costs_as_little(bank: Path) -> None:
    store = await SqliteStore.open(bank)
    page = await store.lessons(LessonFilter(limit=MANY - 100), scope=MINE)
    await store.close()
    asked = LessonFilter(state="probation", limit=20, after=page[-1].id)
    taken, found = steps(bank, lambda file: _listing.lessons(file, MINE, asked))
    assert found[0].title == "Lesson 99"
    assert taken < _LITTLE


async def test_the_experiences_of_a_page_of_runs_are_read_together_or_not_at_all(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "runs.db")
    runs = [trajectory(f"Task {n}") for n in range(20)]
    await store.save_runs(runs, scope=MINE)
    await added(store, *(experience(attempts=[attempt(run, "success")]) for run in runs))
    await store.close()

    def asked(**told: Any) -> list[str]:
        statements, connection = list[str](), sqlite3.connect(tmp_path / "runs.db")
        connection.set_trace_callback(statements.append)
        assert _listing.runs(connection, MINE, RunFilter(**told))
        connection.close()
        return statements

    ids = [run.id for run in runs]
    assert len(asked(limit=20)) == len(asked(limit=1))
    assert len(asked(ids=ids)) == len(asked(ids=ids[:1]))
    for told in ({"limit": 20}, {"ids": ids}):
        assert not any("experiences" in statement for statement in asked(verdicts=False, **told))


TEXTS = any_text(min_size=1).filter(str.strip)
CHANGING = st.text(
    st.sampled_from('aZ_9 \n\t"\\/\x00\x1f\u0301\u0338\u0345ßẞİıﬁſＡ①½Σς漢가\u1100\u1161\ud800'), min_size=1
).filter(str.strip)
"""What JSON writes in another way, or what changes as it is normalized and folded."""


@given(TEXTS, CHANGING)
@example("ＡＢＣ ﬁrst", 'a\nword "quoted"\\and\tmore')
async def test_a_record_that_is_passed_over_unread_lacks_a_word(title: str, content: str) -> None:
    said = Lesson(title=title, description=content[::-1], content=content)
    clean, text = dumped(Experience(scope=MINE, task="t", lessons=(said,)))
    assert may_hold(text.encode(), frozenset(words(clean.lessons[0].text)))
    assert not may_hold(text.encode(), frozenset({"qxqxqx"}))


def _asked(**told: Any) -> Callable[[sqlite3.Connection], list[Any]]:
    return lambda connection: _listing.lessons(connection, MINE, LessonFilter(**told))


async def test_lessons_are_found_by_rare_metadata_without_looking_at_the_others_and_by_common_ones_in_order(
    bank: Path,
) -> None:
    store = await SqliteStore.open(bank)
    for user, count in (("u-3", 3), ("u-many", 90)):
        new = [
            lesson(f"{user} {n}").model_copy(update={"created_at": START + timedelta(4_000 + n)}) for n in range(count)
        ]
        adds = [
            Add(experience=experience(lessons=(one,)).model_copy(update={"metadata": {"user": user}})) for one in new
        ]
        await store.apply(adds, scope=MINE, writer="tests")
    await store.close()
    taken, few = steps(bank, _asked(metadata={"user": "u-3"}))
    assert [one.title for one in few] == ["u-3 2", "u-3 1", "u-3 0"]
    assert taken < _LITTLE
    assert [one.title for one in steps(bank, _asked(metadata={"user": "u-3"}, limit=1))[1]] == ["u-3 2"]
    rest = steps(bank, _asked(metadata={"user": "u-3"}, after=few[0].id))[1]
    assert rest == few[1:]
    assert steps(bank, _asked(metadata={"user": "u-3"}, state="retired"))[1] == []
    assert steps(bank, _asked(metadata={"user": "u-3"}, kind="guardrail"))[1] == []
    assert steps(bank, _asked(metadata={"user": "u-3"}, writer="nobody"))[1] == []
    assert steps(bank, _asked(metadata={"user": "u-3", "other": 1}))[1] == []
    many = steps(bank, _asked(metadata={"user": "u-many"}, limit=89))[1]
    assert [one.title for one in many] == [f"u-many {n}" for n in range(89, 0, -1)]


WORDS = st.lists(
    st.sampled_from(["order", "Order", "refund", "card", "the", "漢字", "x_1", "ﬁle"]), min_size=1, max_size=4
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(WORDS, min_size=1, max_size=8), WORDS, st.data())
async def test_looking_words_up_finds_the_lessons_that_a_look_at_each_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[list[str]], asked: list[str], data: st.DataObject
) -> None:
    monkeypatch.setattr(_listing, "_FEW", data.draw(st.sampled_from([0, 3, 128])))
    monkeypatch.setattr(_derived, "TAIL", data.draw(st.sampled_from([1, 3, 64])))
    store = await SqliteStore.open(tmp_path / f"{uuid4()}.db")
    kept = [
        experience(lessons=tuple(lesson(one).model_copy(update={"content": " ".join(some)}) for one in some[:2]))
        for some in said
    ]
    at = await store.apply([Add(experience=one) for one in kept], scope=MINE, writer="tests")
    other = experience(lessons=(lesson("order refund"),))
    await store.apply([Add(experience=other)], scope=MINE, writer="tests")
    theirs = other.model_copy(update={"scope": "elsewhere"})
    await store.apply([Add(experience=theirs)], scope="elsewhere", writer="tests")
    for one in data.draw(st.lists(st.sampled_from(kept), max_size=2, unique_by=lambda e: e.id)):
        id = one.lessons[0].id
        edit = Edit(
            lesson_id=id, title="card", description="", content="漢 order", only_for_tasks=(), by="Ana", reason=""
        )
        await store.apply([edit], scope=MINE, writer="tests")
    if data.draw(st.booleans()):
        await store.apply([Rollback(to=at[-1].sequence, reason="r")], scope=MINE, writer="tests")
    if data.draw(st.booleans()):
        await purge_one(store, "lesson", kept[0].lessons[0].id, scope=MINE, writer="tests", reason="asked")
    every = await store.lessons(LessonFilter(limit=100), scope=MINE)
    found = [await store.lessons(LessonFilter(limit=100, text=" ".join(asked)), scope=MINE)]
    assert (await store.verify()).problems == []
    await store.rebuild()
    found.append(await store.lessons(LessonFilter(limit=100, text=" ".join(asked)), scope=MINE))
    await store.close()
    wanted = [one for one in every if set(words(" ".join(asked))) <= set(words(one.text))]
    assert list(map(list, found)) == [wanted, wanted]


async def test_lessons_are_counted_again_after_whoever_wrote(tmp_path: Path) -> None:
    one = await SqliteStore.open(tmp_path / "bank.db")
    other = await SqliteStore.open(tmp_path / "bank.db")
    for count, writing in enumerate((one, other, one, other), 1):
        await writing.apply([Add(experience=experience(lessons=(lesson(),)))], scope=MINE, writer="tests")
        for store in (one, other):
            for _ in range(3):  # whichever reader answers
                assert (await count_records(store, scope=MINE)).lessons == count
            assert (await count_records(store, scope="elsewhere")).lessons == 0
    await purge_one(one, "scope", "", scope=MINE, writer="tests", reason="asked")
    assert [(await count_records(store, scope=MINE)).lessons for store in (one, other, one, other)] == [0] * 4
    await one.close()
    await other.close()
