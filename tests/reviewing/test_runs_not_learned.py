"""A run that could not be learned keeps the outcome that was told, and is named wherever it waits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from seeding import give_up
from serving_pages import Site

pytestmark = pytest.mark.full


def test_a_run_that_was_given_up_keeps_the_outcome_that_was_told(site: Site, bank_file: Path) -> None:
    give_up(bank_file, "run-stuck")
    site.enter()
    for where, state in (("/runs?status=failed", " could not be learned"), ("/runs/run-stuck", "")):
        page = site.said(where)
        assert f"told: success{state}" in page
        assert "not yet learned" not in page, "one state of learning"
        assert "not judged yet" not in page
        assert "obody said how it ended" not in page
    assert re.search(r'value="success" required checked', site.get("/runs/run-stuck").text)


def test_the_badge_says_that_learning_failed_and_the_page_why(site: Site, bank_file: Path) -> None:
    give_up(bank_file, "run-stuck")
    listed = site.enter().get("/runs?status=failed").text
    assert re.search(r'class="badge failure">could not be learned<', listed)
    assert ">failed<" not in listed
    page = site.get("/runs/run-stuck").text
    assert "It could not be learned.</b> the model is &lt;b&gt;down&lt;/b&gt;" in page
    assert re.search(r'<a href="/queue">Try it again', page)


def test_a_run_that_was_given_up_is_named_on_home_and_by_doctor_with_a_link(site: Site, bank_file: Path) -> None:
    give_up(bank_file, "run-stuck")
    site.enter()
    home = site.get("/").text.partition("Waits for you")[2]
    assert '<a href="/queue">1 run given up</a>' in home
    assert '<a href="/queue">1 run given up</a>' in site.get("/doctor").text
    assert '<a href="/queue"><b>1 given up</b></a>' in site.get("/administration").text
