"""A bank that an earlier release wrote opens in place and says what that release said of it, field by field."""

from __future__ import annotations

import json
import logging
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import psycopg
import pytest
from _description import described
from test_room import room

import lessonbank
from lessonbank import Evidence, Extraction, File, Parts
from lessonbank.contracts.records import format_10
from lessonbank.errors import StoreDamaged, StoreUnavailable, VersionMismatch
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.stores.sqlite._migrations import MIGRATIONS
from lessonbank.stores.sqlite._schema import FORMAT, OLDEST, version
from lessonbank.testing import HashingEmbedder
from lessonbank.testing.store_samples import SPACE, towards

KEPT: Final = Path(__file__).parent / "kept"
SCOPE: Final = "acme/support"
MOVED: Final[Mapping[str, str]] = {
    "edits": "proposal.lesson_id",
    "imported": "imported",
    "merged": "merged",
    "not_merged": "not_merged",
    "not_recognised": "not_recognised",
    "parent_run": "parent_run",
    "pending": "pending",
    "recall_id": "recall_id",
    "repeats": "repeats",
    "retires": "proposal.lesson_id",
    "template": "template",
    "tools": "tools",
    "unfinished": "unfinished",
    "was": "proposal.was",
}
"""A key of a record's `metadata` then to the field of that record that may have its value now."""
UNSAID: Final = frozenset({"lessonbank_submitted"})
"""What runs no longer say of themselves: it is the bank's own note of what was said when they were submitted."""
ADDED: Final = frozenset({"lessons"})
"""Fields of a recall that the release before left empty where it read one."""
COMPUTED: Final = frozenset(
    {
        *("series", "success_with", "success_without", "cost", "steps", "tokens", "seconds"),
        *("success", "more", "measuring", "controls"),
        *("notes", "evidence", "shown", "withheld", "missing_with", "missing_without", "labels_needed"),
        *("writers", "uncounted"),
    }
)
"""Of a lift: it is estimated in another way now, in the order in which recalls were made, and each task without memory
counts as one."""
COUNTED: Final = frozenset({"lesson_id", "group", "title", "content", "retired", "proposed"})
"""Of a group or a lesson in a lift: what is neither estimated nor waits for earlier outcomes."""
CHANGED: Final = frozenset({"additions", "fit", "keep_lessons", "sleep_after", "trust_names"})
"""Settings that a bank has no longer, or did not have yet."""
NAMED: Final = {"settled": "recalls_with_a_run"}
"""A count then, by the name that it has now."""
BOTH: Final = re.compile(r"\.scopes\.acme/sheets\.(?:found\.[^.]+|proposals)(?:\[\d\])+: 'nothing' is now ")
"""Of a lesson and a sharper one a search gave one then, drawn anew each time. Both are found now, and a person is asked
which stays."""


Json: TypeAlias = Mapping[str, Any]


async def nothing(_: Any) -> Extraction:
    return Extraction()


def opened(where: str | Path | File, scope: str = SCOPE) -> lessonbank.ReasoningBank:
    told: dict[str, Any] = {"evidence": Evidence(0.3), "parts": Parts(extractor=nothing)}
    return lessonbank.connect(where, scope=scope, embedder=HashingEmbedder(dimensions=16), **told)


def unlike(then: Any, now: Any) -> list[str]:
    """Where what was is not any more. A field that is new says nothing of what was."""
    return [one for one in _unlike(then, now, "") if not BOTH.match(one)]


def _unlike(then: Any, now: Any, where: str) -> Iterator[str]:
    if isinstance(then, dict) and isinstance(now, dict):
        yield from _unlike_records(cast("Json", then), cast("Json", now), where)
    elif isinstance(then, list) and isinstance(now, list):
        one, other = (sorted(cast("list[Any]", told), key=_of_lift) for told in (then, now))
        for place, pair in enumerate(zip_longest(one, other, fillvalue="nothing")):
            yield from _unlike(*pair, f"{where}[{place}]")
    elif then != now:
        yield f"{where}: {then!r} is now {now!r}"


def _unlike_records(then: Json, now: Json, where: str) -> Iterator[str]:
    for key, value in then.items():
        if key == "metadata":
            yield from _unlike_metadata(value, now, where)
        elif not (key in ADDED and value == [] and "candidates" in then) and not _is_computed(key, then):
            yield from _unlike(value, now.get(key, now.get(NAMED.get(key, ""), "nothing")), f"{where}.{key}")


def _of_lift(value: Any) -> str:
    """The name of a group or a lesson in a lift, whose order follows from estimates; other lists stay in theirs."""
    return str(value.get("lesson_id") or value.get("group")) if isinstance(value, dict) and "standing" in value else ""


def _is_computed(key: str, then: Json) -> bool:
    """Whether it is an estimate of a lift, or of a group or a lesson in it; or what is computed no more."""
    is_gone = key in ("split", "judges")
    return is_gone or (key in COMPUTED and "judges" in then) or (key not in COUNTED and "expected" in then)


def _unlike_metadata(then: Json, record: Json, where: str) -> Iterator[str]:
    for key in then.keys() - UNSAID:
        places = [record, record.get("trajectory", {})]
        moved = [value for place in places if (value := _at(place, MOVED.get(key, ""))) not in (None, False, {})]
        now = record.get("metadata", {}).get(key, moved[0] if moved else "nothing")
        yield from _unlike(then[key], now, f"{where}.metadata.{key}")


def _at(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = cast("Json", record).get(name) if isinstance(record, dict) else None
    return record


def said(name: str) -> Any:
    described = json.loads((KEPT / name).read_text(encoding="utf-8"))
    if "settings" in described:
        described["settings"] = sorted(CHANGED ^ set(described["settings"]))
    return described


def format_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as raw:
        return version(raw)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(KEPT / "format_10.sqlite", tmp_path / "bank.db"))


# --- a file -----------------------------------------------------------------------------------------------------------


def test_a_file_of_format_10_says_what_it_said(path: Path) -> None:
    with opened(path) as bank:
        assert unlike(said("format_10.json"), described(bank)) == []
    with opened(File(path, read_only=True)) as bank:
        assert unlike(said("format_10.json"), described(bank)) == []


def test_an_upgraded_file_has_the_tables_of_a_new_one(path: Path, tmp_path: Path) -> None:
    for file in (path, tmp_path / "new.db"):
        opened(file).close()
    assert _tables(path) == _tables(tmp_path / "new.db")


def _tables(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as raw:
        rows = raw.execute("SELECT type || ' ' || name, sql FROM sqlite_master").fetchall()
    return {name: " ".join((sql or "").replace('"', "").split()) for name, sql in rows}


def test_what_waited_is_learned_with_what_was_said_then(path: Path) -> None:
    with opened(path, "acme/queue") as bank:
        learned = bank.runs.retry(limit=50)
        assert {verdict.outcome for one in learned for verdict in one.verdicts} >= {"failure"}
        assert bank.runs.get("run-0802").verdict.outcome == "failure"
        assert bank.admin.verify() == ()


def test_an_upgrade_keeps_a_copy_and_says_its_name_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "lessonbank"), opened(path) as bank:
        named = [name for name, told in bank.admin.storage().items() if "bank.db.format-10" in told]
    opened(path).close()
    assert [record.getMessage().count("bank.db.format-10") for record in caplog.records] == [1]
    assert len(named) == 1
    copy = path.with_name("bank.db.format-10")
    assert (format_of(path), format_of(copy)) == (FORMAT, 10)
    assert copy.stat().st_mode & 0o777 == path.stat().st_mode & 0o777
    assert _rows(copy) == _rows(KEPT / "format_10.sqlite"), "the release before opens it as it was"


def _rows(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as raw:
        sql = "SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        return {name: raw.execute(f"SELECT * FROM {name}").fetchall() for (name,) in raw.execute(sql).fetchall()}


def test_a_file_of_format_10_that_is_only_read_says_what_to_do(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(VersionMismatch, match=r"is of format 10, and this .* open it for writing once"):
        opened(File(path, read_only=True))
    assert (path.read_bytes(), path.with_name("bank.db.format-10").exists()) == (before, False)


VERIFIES: Final = """
import asyncio, sys
from lessonbank.stores.sqlite import SqliteStore

async def verify():
    store = await SqliteStore.open(sys.argv[1])
    assert (await store.verify()).problems == []
    await store.close()

asyncio.run(verify())
"""


@pytest.mark.full
def test_many_that_open_an_older_file_at_once_upgrade_it_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    others = [subprocess.Popen([sys.executable, "-c", VERIFIES, str(path)]) for _ in range(2)]
    wrong: list[object] = []

    def look() -> None:
        with opened(path) as bank:
            wrong.extend(bank.admin.verify())

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [other.wait(60) for other in others] == [0, 0]
    assert wrong == []
    assert len([record for record in caplog.records if "format-10" in record.getMessage()]) <= 1
    with opened(path) as bank:
        assert unlike(said("format_10.json"), described(bank)) == []


KILLED: Final = """
import asyncio, os, signal, sys
from lessonbank.stores.sqlite import SqliteStore, _migrations

def killing(function, calls):
    def counted(*args, **options):
        nonlocal calls
        calls -= 1
        if calls == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **options)
    return counted

name, calls, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
setattr(_migrations, name, killing(getattr(_migrations, name), calls))
asyncio.run(SqliteStore.open(path))
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "calls"),
    [
        *(("backup", 1), ("upgraded", 400), ("_tag_again", 1)),
        *(
            pytest.param(name, calls, marks=pytest.mark.release)
            for name, calls in (("upgraded", 1), ("upgraded", 150), ("run", 2))
        ),
    ],
)
def test_an_upgrade_that_is_killed_is_whole_or_absent(path: Path, name: str, calls: int) -> None:
    told = [sys.executable, "-c", KILLED, name, str(calls), str(path)]
    assert subprocess.run(told, check=False, timeout=60).returncode == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as raw:
        assert version(raw) == 10, "it was killed before the end"
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with opened(path) as bank:
        assert unlike(said("format_10.json"), described(bank)) == []


@pytest.mark.full
@pytest.mark.parametrize("most", [100_000, 470_000], ids=["no room for the copy", "no room for the tables"])
def test_an_upgrade_without_room_leaves_the_file_as_it_was(path: Path, most: int) -> None:
    with room(most), pytest.raises(StoreUnavailable):
        opened(path)
    assert format_of(path) == 10
    assert not list(path.parent.glob("*format-10*")), "a copy of it would take the room that is missing"
    with opened(path) as bank:
        assert unlike(said("format_10.json"), described(bank)) == []


def test_a_damaged_record_of_format_10_is_still_one_after_the_upgrade_and_the_others_are_read(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE recalls SET record = CAST(x'05' || substr(record, 2, 30) AS BLOB) WHERE number = 3")
        ((id,),) = raw.execute("SELECT id FROM recalls WHERE number = 3")
    then = said("format_10.json")["scopes"][SCOPE]
    with opened(path) as bank:
        assert (
            unlike(
                then["lessons"],
                [json.loads(one.model_dump_json()) for one in bank.lessons.list(retired=True, limit=99)],
            )
            == []
        )
        with pytest.raises(StoreDamaged, match="lessonbank salvage"):
            bank.recalls.get(id)
        assert "1 receipts cannot be read" in " ".join(bank.admin.verify())
        assert bank.retrieve(then["lessons"][0]["title"])
    found = lessonbank.salvage(path, path.with_name("new.db"))
    assert [len(lost.recalls) for lost in found.lost] == [1]


def test_a_record_whose_metadata_moved_is_found_by_what_it_says_now(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(fields: Json) -> dict[str, Any]:
        metadata = {key: value for key, value in fields.get("metadata", {}).items() if key != "user"}
        return {**fields, "metadata": metadata} if "metadata" in fields else {**fields}

    def moved_in(fields: Json) -> dict[str, Any]:
        return {**fields, **({"experience": moved(fields["experience"])} if "experience" in fields else {})}

    told = {
        "journal": lambda fields: moved_in(format_10.upgrade_change(fields)),
        "experiences": lambda fields: moved(format_10.upgrade_experience(fields)),
        "trajectories": lambda fields: moved(format_10.upgrade_run(fields)),
        "recalls": moved,
    }
    monkeypatch.setattr("lessonbank.stores._format_10._UPGRADES", told)
    with opened(path) as bank:
        assert bank.admin.verify() == ()
        assert bank.runs.list(metadata={"user": "u-1"}) == bank.recalls.list(metadata={"user": "u-1"}) == ()
        assert len(bank.recalls.list(metadata={"session": "s-3"})) == 1


def test_every_migration_leads_to_the_next_format() -> None:
    assert list(MIGRATIONS) == list(range(OLDEST, FORMAT))


@pytest.mark.anyio
async def test_a_file_of_format_11_finds_what_it_found(tmp_path: Path) -> None:
    bank = Path(shutil.copy(KEPT / "format_11.sqlite", tmp_path / "bank.db"))
    store = await SqliteStore.open(bank)
    assert (await store.verify()).problems == []
    for scope, then in said("format_11.json").items():
        near = {"words": await store.search("cancel order 7 again", scope=scope, limit=99)}
        for space in (SPACE, "lessons"):
            query, lessons = towards(1, tilt=0.3), space == "lessons"
            answer = await store.nearest(query, scope=scope, space=space, limit=99, lessons=lessons)
            near[space] = answer.matches
        assert {name: [[m.experience.id, m.lesson_id, m.score] for m in each] for name, each in near.items()} == then
    await store.close()
    opened(bank).close()
    assert _tables(bank) == _tables(_new(tmp_path))


def _new(folder: Path) -> Path:
    opened(folder / "new.db").close()
    return folder / "new.db"


# --- an export --------------------------------------------------------------------------------------------------------


def test_an_export_of_format_10_is_imported_with_all_it_held(tmp_path: Path) -> None:
    with opened(tmp_path / "new.db") as bank:
        bank.admin.import_(KEPT / "format_10.jsonl", approved_by="Ana")
        now = described(bank)["scopes"][SCOPE]
        assert bank.admin.verify() == ()
    then = json.loads(_cleaned(json.dumps(said("format_10.json")["scopes"]["acme/guest"])))
    for what in ("lessons", "runs", "recalls"):
        assert len(now[what]) == len(then[what]), what
        assert unlike(_imported(then[what]), _imported(now[what])) == [], what
    assert unlike(then["counts"] | {"changes": now["counts"]["changes"]}, now["counts"]) == []


def _cleaned(text: str) -> str:
    """JSON as an import has it: without control characters, and with plain ends of lines."""
    return re.sub(r"\\u000[01]", "", text).replace("\\u2028", "\\n")


def _imported(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What an import keeps: another scope is another bank's, topics are named anew, and nobody has checked a lesson."""
    told = ({name: value for name, value in one.items() if name not in ("scope", "topic", "risk")} for one in records)
    return sorted(told, key=lambda one: str(one.get("id") or one["trajectory"]["id"]))


# --- a database -------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_database_of_step_1_says_what_it_said(postgres: Callable[[], str], caplog: pytest.LogCaptureFixture) -> None:
    address = postgres()
    with psycopg.connect(address) as raw, psycopg.ClientCursor(raw) as cursor:
        cursor.execute((KEPT / "step_1.sql").read_bytes())
    with opened(address) as bank:
        assert unlike(said("step_1.json"), described(bank)) == []
    assert ["from step 1 to 2" in record.getMessage() for record in caplog.records] == [True]
    with psycopg.connect(address) as raw:
        raw.execute("SELECT set_config('lessonbank.scope', %s, false)", (SCOPE,))
        (task,) = raw.execute("SELECT record_json::json->>'task' FROM lessonbank.recalls LIMIT 1").fetchone() or ("",)
        assert task.startswith("Close the")
