"""What a person says about a run: it counts, it can be taken back, and the history names who said it and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from seeding import opened, run_of
from serving_pages import Site, words

pytestmark = pytest.mark.full


def test_the_history_names_who_corrected_which_verdict_and_why(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        run = next(one for one in bank.runs.list() if one.verdict.outcome == "success")
    at = f"/runs/{run.trajectory.id}"
    csrf = site.enter().get(at).csrf
    fields = {"csrf": csrf, "outcome": "failure", "reason": "I checked the record by hand", "back": at}
    assert site.post(f"{at}/correct", fields).status == 303
    told = re.findall(r'<li id="change-(\d+)">(.*?)</li>', site.get("/history").text, re.DOTALL)
    number, line = next((number, line) for number, line in told if "corrected a verdict" in line)
    assert "success by ground truth, now failure by human" in words(line)
    assert "I checked the record by hand" in line
    assert "UTC , Ana ·" in words(line)
    assert f'href="{at}"' in line
    change = site.get(f"/history/diff?a={int(number) - 1}&b={number}").text
    assert "I checked the record by hand" in change
    assert "Nothing differs" not in change
    assert site.post("/undo", {"csrf": csrf, "back": at}).status == 303
    with opened(bank_file) as bank:
        assert bank.runs.get(run.trajectory.id).verdict == run.verdict
        assert bank.recalls.explain(run.recall_id or "").outcome == "success"


def test_a_thumb_says_how_a_run_ended(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        run = next(one for one in bank.runs.list() if one.verdict.outcome == "success")
    at = f"/runs/{run.trajectory.id}"
    page = site.enter().get(at)
    thumbs = re.findall(r'<button class="secondary small" name="outcome" value="(\w+)">', page.text)
    assert thumbs == ["failure"], "what it says already needs no thumb"
    assert site.post(f"{at}/correct", {"csrf": page.csrf, "outcome": "failure", "back": at}).status == 303
    assert 'name="outcome" value="success"' in site.get(at).text
    with opened(bank_file) as bank:
        assert (bank.runs.get(run.trajectory.id).verdict.outcome) == "failure"


def test_a_run_that_is_learned_by_a_person_s_word_names_the_person(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        recall = bank.retrieve("Cancel pending order #W000")
        bank.learn(run_of(0, 0, good=True, id="open-run"), recall=recall, outcome="unknown")
    csrf = site.enter().get("/runs/open-run").csrf
    fields = {"csrf": csrf, "outcome": "success", "reason": "the customer said so"}
    assert site.post("/runs/open-run/correct", fields).status == 303
    told = re.findall(r'<li id="change-\d+">(.*?)</li>', site.get("/history").text, re.DOTALL)
    assert any("Ana: the customer said so" in line and "/runs/open-run" in line for line in told)


def test_an_unknown_outcome_is_not_counted_as_known(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        recall = bank.retrieve("Cancel pending order #W000")
        bank.learn(run_of(0, 0, good=True, id="open-run"), recall=recall, outcome="unknown")
        assert [one.id for one in bank.recalls.list(settled=False)] == [recall.id]
        assert recall.id not in {one.id for one in bank.recalls.list(settled=True, limit=500)}
        lift = bank.lift()
    assert f'href="/why/{recall.id}"' in site.enter().get("/why?settled=no").text
    for where in ("/", "/helps"):
        told = words(site.get(where).text)
        assert f"{lift.recalls} recalls found lessons, and the outcome of {lift.settled} is known" in told
