"""What was changed behind a bank's back is said, what a stranger hands in is taken whole or not at all, and what was
erased is gone."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attacks import Case, cases
from running import lessonbank_cli

import lessonbank
from lessonbank import AsyncReasoningBank, Step, Trajectory
from lessonbank.contracts.records import Extraction, Lesson, Recall, Replace, Retire
from lessonbank.errors import FormatError, LessonbankError
from lessonbank.stores._entries import entry_of
from lessonbank.stores._records import loaded
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.file_records import with_sum
from lessonbank.testing.settings import grouped
from lessonbank.testing.store_samples import MINE, THEIRS, added, attempt, experience, lesson, settlement, towards

pytestmark = [pytest.mark.anyio, pytest.mark.full]


# --- the file --------------------------------------------------------------------------------------------------------


async def filled(path: Path) -> None:
    """A bank of two scopes with a bit of everything, numbered as the corpus has it."""
    store = await SqliteStore.open(path)
    runs = [Trajectory(id=f"run-{n}", task="Cancel it", answer="a") for n in (1, 2, 3)]
    await store.save_runs(runs, scope=MINE)
    first = experience(minute=1, attempts=[attempt(runs[0], "failure")], lessons=[lesson(), lesson("Ask first")])
    second = experience("Exchange the boots", minute=2)
    await added(store, first, along=[towards(0)])
    await added(store, second, along=[towards(1)])
    kept, hidden = lesson("Later"), lesson("Hidden")
    await store.apply(
        [Replace(experience=second.model_copy(update={"lessons": (kept, hidden)}))], scope=MINE, writer="tests"
    )
    await store.apply([Retire(lesson_ids=(hidden.id,), reason="wrong")], scope=MINE, writer="tests")
    receipts = [Recall(id=f"recall-{n}", scope=MINE, task="Cancel it", text="look first") for n in (1, 2)]
    for receipt in receipts:
        await store.save_recall(receipt)
    await store.apply([], scope=MINE, writer="tests", settlement=settlement(receipts[0]))
    await added(store, experience(scope=THEIRS), scope=THEIRS)
    await store.close()


def tampered(path: Path, case: Case) -> None:
    """What somebody who knows the format does to the file."""
    raw = sqlite3.connect(path, isolation_level=None)
    if case["kind"] == "file":
        for statement in case["sql"].split("; "):
            raw.execute(statement)
    else:
        column = "entry" if case["table"] == "journal" else "record"
        (text,) = raw.execute(f"SELECT {column} FROM {case['table']} WHERE number = ?", (case["number"],)).fetchone()
        record = whole(case["table"], text)
        put(record, case["path"], case["value"])
        change = (*with_sum(json.dumps(record)), case["number"])
        raw.execute(f"UPDATE {case['table']} SET {column} = ?, {column}_sum = ? WHERE number = ?", change)
    raw.close()


def whole(table: str, text: str) -> dict[str, Any]:
    """A record with what it has by default, which is not written."""
    if table == "journal":
        return entry_of(text.encode()).model_dump(mode="json")
    return loaded(Recall if table == "recalls" else Trajectory, text).model_dump(mode="json")


def put(record: Any, path: list[Any], value: Any) -> None:
    *way, last = path
    for name in way:
        record = record[name]
    assert isinstance(record, list) or last in record or value is True or last in ("x", "state", "__class__", "owner")
    record[last] = value


async def said_of(path: Path) -> str:
    """What is said about a file, by whoever opens and checks it; empty when it is taken for sound."""
    try:
        async with await lessonbank.connect_async(path, scope=MINE, embedder="lexical") as bank:
            return "; ".join(await bank.admin.verify())
    except LessonbankError as error:
        return str(error)


async def test_what_was_changed_in_the_file_behind_the_banks_back_is_said(quick: Path) -> None:
    await filled(quick / "sound.db")
    assert await said_of(quick / "sound.db") == ""
    unseen: dict[str, str] = {}
    for case in cases("integrity", "file", "record"):
        path = quick / f"{case['id']}.db"
        shutil.copy(quick / "sound.db", path)
        tampered(path, case)
        try:
            if not await said_of(path):
                unseen[case["id"]] = "nothing was said"
        except Exception as error:  # noqa: BLE001 - any error but one of ours is a finding
            unseen[case["id"]] = repr(error)
    known = {case["id"] for case in cases("integrity", "file", "record") if "known" in case}
    assert {id: what for id, what in unseen.items() if id not in known} == {}
    assert unseen.keys() == known, "what is known to fall short, and nothing else"


@pytest.mark.parametrize("share", [0.95, 0.9, 0.5, 0.1, 0.01])
async def test_a_file_that_was_cut_is_refused_or_found_out(quick: Path, share: float) -> None:
    path = quick / "bank.db"
    await filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert await said_of(path)


async def test_the_doctor_says_what_was_tampered_with_and_fails(quick: Path) -> None:
    path = quick / "bank.db"
    await filled(path)
    doctor = ("doctor", "--verify", "--bank", path, "--scope", MINE, "--embedder", "lexical", "--reindex")
    assert lessonbank_cli(*doctor, cwd=quick).returncode == 0
    tampered(path, {"kind": "file", "sql": "UPDATE lessons SET retired = 0"})
    assert lessonbank_cli(*doctor, cwd=quick).returncode == 1


# --- an export from a stranger ---------------------------------------------------------------------------------------


SECRET = b"xyzzyplugh"
TITLE = b"About it: release the catch"


LESSONS = (
    "Before the handle is turned, release the catch beneath it, because a spring holds it: xyzzyplugh.",
    "When a refund is refused, read the fare rules first, since a basic ticket is only ever rebooked.",
    "If the search returns nothing, widen the dates by a week instead of asking for another city.",
)


async def extract(attempts: Any, /) -> Extraction:
    """A lesson worth keeping: the first has a word in it that stands nowhere else."""
    run = attempts[0].trajectory
    content = LESSONS[int(run.answer)] if run.answer.isdigit() else LESSONS[int(run.id[-1])]
    return Extraction(lessons=(Lesson(title=TITLE.decode(), content=content),))


@asynccontextmanager
async def opened(where: Any, scope: str = MINE) -> AsyncGenerator[AsyncReasoningBank]:
    options: dict[str, Any] = {"embedder": "lexical", "holdout": None, "extractor": extract}
    async with await lessonbank.connect_async(where, scope=scope, **grouped(**options)) as bank:
        yield bank


async def learned(bank: AsyncReasoningBank, *, scope: str, answer: str = "a", runs: int = 3) -> None:
    for n in range(runs):
        recall = await bank.scoped(scope).retrieve(f"task {n}")
        run = Trajectory(id=f"run-{n}", task=f"task {n}", answer=answer, steps=(Step(action="look", observation="x"),))
        await bank.scoped(scope).learn(run, recall=recall, outcome="success")


@pytest.fixture(scope="module")
async def exported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a sound export."""
    path = tmp_path_factory.mktemp("export") / "sound.jsonl"
    async with opened(":memory:", scope="origin") as bank:
        await learned(bank, scope="origin")
        await bank.admin.export(path)
    return path.read_text("utf-8").splitlines()


def damaged(lines: list[str], case: Case) -> str:
    """A file that was changed by somebody who left its checksum as it was."""
    lines, text = list(lines), "".join(f"{line}\n" for line in lines)
    match case["op"]:
        case "drop":
            del lines[case["at"]]
        case "repeat":
            lines.insert(case["at"], lines[case["at"]])
        case "swap":
            lines[case["at"]], lines[case["at"] + 1] = lines[case["at"] + 1], lines[case["at"]]
        case "cut":
            return text[: int(len(text) * case["share"])]
        case "replace":
            assert case["old"] in text
            return text.replace(case["old"], case["new"], 1)
        case "twice":
            lines *= 2
        case _:
            return text + case["text"]
    return "".join(f"{line}\n" for line in lines)


def sealed(lines: list[str], case: Case) -> str:
    """A file that was changed by somebody who made its checksum anew."""
    head, *records = [json.loads(line) for line in lines[:-1]]
    those = [head] if case["of"] == "header" else [r for r in records if r["kind"] == case["of"]]
    value, written = case["value"], ""
    if isinstance(value, dict) and value.keys() & {"raw", "big", "deep"}:
        raw = {"raw": value.get("raw"), "big": "9" * value.get("big", 0), "deep": "[" * value.get("deep", 0)}
        written = next(text for text in raw.values() if text) + "]" * value.get("deep", 0)
        value = "WRITTEN"
    if isinstance(value, dict) and "same" in value:
        value = those[1]
        for name in case["path"]:
            value = value[name]
    put(those[0], case["path"], value)
    body = "".join(json.dumps(record) + "\n" for record in records).replace('"WRITTEN"', written)
    end = {"end": True, "records": len(records), "sha256": hashlib.sha256(body.encode()).hexdigest()}
    return json.dumps(head) + "\n" + body + json.dumps(end) + "\n"


async def holdings(bank: AsyncReasoningBank, *scopes: str) -> list[Any]:
    found: list[Any] = [await bank.admin.scopes()]
    for scope in scopes:
        found += [
            await bank.scoped(scope).admin.counts(),
            (await bank.scoped(scope).lessons.list(limit=10_000))[::-1],
            await bank.scoped(scope).history.list(),
        ]
    return found


async def imported(where: Any, text: bytes, folder: Path) -> tuple[str, list[str]]:
    """What becomes of an import: `refused`, `taken` or another error; and what is wrong with the bank afterwards."""
    path = folder / "handed-in.jsonl"
    path.write_bytes(text)
    wrong: list[str] = []
    async with opened(where) as bank:
        await learned(bank, scope=THEIRS, answer="theirs", runs=1)
        before, theirs = await holdings(bank, MINE, THEIRS), await holdings(bank, THEIRS)
        files = sorted(folder.rglob("*"))
        try:
            await bank.admin.import_(path)
            said = "taken"
        except LessonbankError as error:
            said = "refused" if isinstance(error, FormatError) else f"refused as {error.code}"
            wrong += ["it was half imported"] if await holdings(bank, MINE, THEIRS) != before else []
            wrong += ["the error is no clear sentence"] if not str(error) or len(str(error)) > 600 else []
        except Exception as error:  # noqa: BLE001 - any other error is the finding
            said = f"raised {type(error).__name__}"
        wrong += ["another scope was touched"] if (await holdings(bank, THEIRS))[1:] != theirs[1:] else []
        wrong += ["a scope was made"] if not set(await bank.admin.scopes()) <= {MINE, THEIRS} else []
        wrong += (
            ["a stranger vouched for a lesson"]
            if any(i.approved or i.state == "active" for i in await bank.lessons.list(limit=10_000))
            else []
        )
        wrong += ["a file was made"] if sorted(folder.rglob("*")) != files else []
        wrong += list(await bank.admin.verify())
    return said, wrong


def failed(found: dict[str, Any]) -> dict[str, Any]:
    return {id: what for id, what in found.items() if what}


async def test_bytes_that_are_no_export_are_refused_and_never_executed(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, Any] = {}
    for case in cases("integrity", "bytes"):
        said, wrong = await imported(":memory:", base64.b64decode(case["base64"]), quick)
        found[case["id"]] = wrong + ([] if said == "refused" else [said])
    assert failed(found) == {}
    assert "unpickled" not in capsys.readouterr().out


async def test_an_export_that_was_changed_on_the_way_is_refused_whole(quick: Path, exported: list[str]) -> None:
    found: dict[str, Any] = {}
    for case in cases("integrity", "unsealed"):
        said, wrong = await imported(":memory:", damaged(exported, case).encode(), quick)
        found[case["id"]] = wrong + ([] if said == "refused" else [said])
    assert failed(found) == {}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_forged_export_with_a_right_checksum_is_held_to_the_form_of_its_records(
    kind: str, quick: Path, exported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lessonbank.bank.views.archive._ADDED", 2)  # a long file is added in parts, and so is this one
    found: dict[str, Any] = {}
    # What the form of a record forbids is refused before any store is asked: one kind of store will do for that.
    some = [c for c in cases("integrity", "sealed") if kind == "memory" or c["expect"] == "whole" or "scope" in c["id"]]
    for case in some:
        folder = quick / case["id"]
        folder.mkdir()
        where = ":memory:" if kind == "memory" else quick / f"{case['id']}.db"
        said, wrong = await imported(where, sealed(exported, case).encode(), folder)
        fine = {"refused": said == "refused", "own_scope": said == "taken", "whole": said[:5] in ("taken", "refus")}
        found[case["id"]] = wrong + ([] if fine[case["expect"]] else [said])
    known = {case["id"] for case in some if "known" in case}
    assert failed({id: what for id, what in found.items() if id not in known}) == {}
    assert failed(found).keys() == known, "what is known to fall short, and nothing else"


async def test_a_sound_export_is_taken_and_a_replayed_one_adds_nothing(quick: Path, exported: list[str]) -> None:
    text = "".join(f"{line}\n" for line in exported).encode()
    assert await imported(":memory:", text, quick) == ("taken", [])
    path = quick / "handed-in.jsonl"
    async with opened(":memory:") as bank:
        assert await bank.admin.import_(path) == len(exported) - 2
        before = await holdings(bank, MINE)
        assert await bank.admin.import_(path) == 0
        scopes, counts, lessons, history = await holdings(bank, MINE)
        assert history[-1].entry.kind == "admin", "that somebody imported is told"
        assert [scopes, counts.model_copy(update={"changes": before[1].changes}), lessons, history[:-1]] == before
        lesson = ((await bank.lessons.list(limit=10_000))[::-1])[0]
        await bank.admin.purge(lesson=lesson.id, reason="wrong")
        assert all(i.id != lesson.id for i in (await bank.lessons.list(retired=True, limit=10_000))[::-1])


# --- erased ----------------------------------------------------------------------------------------------------------


def left_of(folder: Path, *texts: bytes) -> list[bytes]:
    """Which of the texts any file of a bank still holds, packed records included."""
    held = b"".join(file.read_bytes().lower() for file in folder.glob("bank.db*"))
    raw = sqlite3.connect(folder / "bank.db")
    for table, column in (
        ("trajectories", "record"),
        ("recalls", "record"),
        ("journal", "entry"),
        ("experiences", "record"),
    ):
        rows = raw.execute(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")
        held += b"".join(text.lower().encode() for (text,) in rows)
    raw.close()
    return [text for text in texts if text.lower() in held]


async def lived_in(bank: AsyncReasoningBank, *, again: bool) -> None:
    """A run whose lesson was recalled and settled: it is in every table. A second run says it again, or another one."""
    task, step = "Open the vault", Step(action="knock three times", observation="it moves")
    run = Trajectory(id="hot-run", task=task, answer="0", steps=(step,))
    assert (await bank.learn(run, outcome="success")).lessons
    recall = await bank.retrieve(task)
    assert SECRET.decode() in recall.text
    second = run.model_copy(update={"id": "second-hot-run", "answer": "0" if again else "1"})
    await bank.learn(second, recall=recall, outcome="failure")


async def left_after(case: Case, folder: Path) -> list[bytes]:
    """What is left of a lesson and its runs once they were erased."""
    async with opened(folder / "bank.db") as bank:
        await lived_in(bank, again=case.get("again", False))
        assert left_of(folder, SECRET, TITLE, b"hot-run", b"knock") == [SECRET, TITLE, b"hot-run", b"knock"]
        if case["what"] == "scope":
            await bank.admin.purge(all=True, reason="asked to")
        for id in ("hot-run", "second-hot-run") if case["what"] == "runs" else ():
            await bank.admin.purge(run=id, reason="asked to")
        for one in (await bank.lessons.list(retired=True, limit=10_000))[::-1] if case["what"] == "lessons" else ():
            await bank.admin.purge(lesson=one.id, reason="asked to")
        at_once = left_of(folder, SECRET, TITLE, b"hot-run", b"knock")
        assert await bank.admin.verify() == ()
    assert left_of(folder, SECRET, TITLE, b"hot-run", b"knock") == at_once
    return at_once


async def test_nothing_of_what_was_erased_is_left_in_any_byte(quick: Path) -> None:
    kept: dict[str, list[bytes]] = {}
    for case in cases("integrity", "purge"):
        (quick / case["id"]).mkdir()
        left = await left_after(case, quick / case["id"])
        kept[case["id"]] = [word for word in left if case["what"] != "lessons" or word in (SECRET, TITLE)]
    known = {case["id"] for case in cases("integrity", "purge") if "known" in case}
    assert failed({id: left for id, left in kept.items() if id not in known}) == {}
    assert failed(kept).keys() == known, "what is known to fall short, and nothing else"
