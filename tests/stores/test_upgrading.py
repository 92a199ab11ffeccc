"""A bank that an earlier release wrote is opened with everything it held."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing._store_samples import MINE, SPACE, added, collected, experience, towards
from lessonbank.types import Rollback

FIXTURES = Path(__file__).parents[1] / "fixtures"

pytestmark = pytest.mark.anyio


@pytest.fixture
def said() -> dict[str, Any]:
    """What the earlier release read from it."""
    return json.loads((FIXTURES / "bank-of-format-4.json").read_text())


@pytest.fixture(params=[4, 1], ids=["format 4", "format 1"])
def earlier(request: pytest.FixtureRequest, path: Path) -> Path:
    shutil.copy(FIXTURES / "bank-of-format-4.db", path)
    if request.param == 1:
        raw = sqlite3.connect(path, isolation_level=None)
        # Format 1 knew no rollback and had none of this.
        for table in ("touched", "removed", "word_counts"):
            raw.execute(f"DROP TABLE {table}")
        raw.execute("DROP INDEX journal_rollbacks")
        raw.execute("PRAGMA user_version = 1")
        raw.close()
    return path


def _like(seen: Any, said: Any) -> Any:
    """`seen` without the fields that the earlier release did not know; they must hold nothing."""
    if isinstance(seen, dict) and isinstance(said, dict):
        new = {name: value for name, value in seen.items() if name not in said}
        assert all(value in (None, [], 0, "probation") for value in new.values()), new
        return {name: _like(value, said[name]) for name, value in seen.items() if name in said}
    if isinstance(seen, list) and isinstance(said, list) and len(seen) == len(said):
        return [_like(*pair) for pair in zip(seen, said, strict=True)]
    return seen


async def test_everything_an_earlier_release_kept_is_there(earlier: Path, said: dict[str, Any]) -> None:
    store = await SqliteStore.open(earlier)
    seen = {
        "experiences": await dumps(store.scan(scope=MINE)),
        "journal": await dumps(store.journal(scope=MINE)),
        "receipts": await dumps(store.receipts(scope=MINE)),
        "runs": [(await store.trajectory(run["id"], scope=MINE)).model_dump(mode="json") for run in said["runs"]],
        "pending": [run.id for run in await store.pending(scope=MINE)],
        "counts": (await store.counts(scope=MINE)).model_dump(mode="json"),
        "found": [[m.experience.id, m.score] for m in await store.search("cancel the boots", scope=MINE, limit=5)],
    }
    assert _like(seen, said) == {name: said[name] for name in seen}
    settled = await store.settlement(said["settlement"]["recall_id"], scope=MINE)
    assert settled is not None
    assert settled.model_dump(mode="json") == said["settlement"]
    near = await store.nearest(towards(1, tilt=0.3), scope=MINE, space=SPACE, limit=5)
    assert [m.experience.id for m in near] == [id for id, _ in said["nearest"]]
    assert [m.score for m in near] == pytest.approx([score for _, score in said["nearest"]], abs=2.5e-5)
    assert await store.setting("embedder") == "hashing"
    assert await store.verify() == []
    await store.close()


async def test_an_upgraded_bank_goes_on_and_goes_back(earlier: Path, said: dict[str, Any]) -> None:
    store = await SqliteStore.open(earlier)
    last = said["journal"][-1]["sequence"]
    await added(store, experience("New", minute=20), along=[towards(7)])
    for to in range(last + 1, 0, -1):
        await store.apply([Rollback(to=to, reason="back")], scope=MINE, writer="tests")
        assert await store.verify() == []
    await store.apply([Rollback(to=last, reason="to the upgrade")], scope=MINE, writer="tests")
    assert _like(await dumps(store.scan(scope=MINE)), said["experiences"]) == said["experiences"]
    await store.close()


async def test_the_second_opening_finds_todays_format(earlier: Path) -> None:
    await (await SqliteStore.open(earlier)).close()
    before = earlier.read_bytes()
    await (await SqliteStore.open(earlier)).close()
    assert earlier.read_bytes() == before


async def dumps(records: Any) -> list[dict[str, Any]]:
    return [record.model_dump(mode="json") for record in await collected(records)]
