"""The pages of a bank in PostgreSQL are those of a file."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pictures import PAGES
from seeding import SCOPE, opened, seed
from serving_pages import serving

pytest.importorskip("psycopg", reason="pip install 'lessonbank[postgres]'")
pytestmark = pytest.mark.full


def test_every_page_is_shown_and_a_decision_is_made_and_undone(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank()
    seed(address, tasks=40)
    with serving(address, scope=SCOPE) as site:
        csrf = site.enter().get("/inbox").csrf
        answers = {name: site.get(at).status for name, at in PAGES.items()}
        assert {name for name, status in answers.items() if status != 200} == {"nowhere"}
        administration = site.get("/administration").text
        assert ("pg_dump" in administration, "Download a backup" in administration) == (True, False)
        with opened(address) as bank:
            lesson = bank.lessons.list(state="quarantined")[0]
        told = {"csrf": csrf, "do": "approve", "lesson": f"{lesson.version}:{lesson.id}"}
        assert site.post("/decide", told).status == 303
        with opened(address) as bank:
            assert bank.lessons.get(lesson.id).state == "active"
        assert site.post("/undo", {"csrf": csrf}).status == 303
        with opened(address) as bank:
            assert bank.lessons.get(lesson.id).state == "quarantined"
