"""What pages claim is so: counts that agree, sources that were asked, searches and topics in words."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from seeding import SCOPE, opened, run_of
from serving_pages import Site, serving

from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Recall, Topic, Verdict
from lessonbank.pages.why import search_in_words
from lessonbank.text.verdicts import who_said

pytestmark = pytest.mark.full

TASKS = ("Cancel pending order #{n}", "Return the headphones of order #{n}", "Why was my card charged twice?")
OPEN = (4, 7, 9)
"""Tasks of which nobody says how they ended."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """Twelve tasks without a judge, of which three have no outcome; and two lessons that are retired."""
    path = tmp_path_factory.mktemp("desk") / "bank.db"
    with opened(path, holdout=0.5) as bank:
        for place in range(12):
            recall = bank.retrieve(TASKS[place % 2].format(n=f"W{place:03}"))
            outcome = None if place in OPEN else "success" if place % 3 else "failure"
            bank.learn(run_of(place, place % 2, good=True, id=f"run-{place:03}"), recall=recall, outcome=outcome)
        gone = bank.lessons.list(limit=1)[0]
        bank.lessons.retire(gone.id, reason="wrong")
        bank.lessons.add(title="Offer no voucher", content="They cost.", task=TASKS[2], by="Ana")
        bank.lessons.retire(
            bank.lessons.add(title="Offer a voucher", content="20 euros.", task=TASKS[2], by="Ana").id, reason="no"
        )
    with serving(path, scope=SCOPE) as site:
        yield site.enter()


def test_pages_count_the_same_lessons_and_say_what_is_retired_besides(desk: Site) -> None:
    counts = [
        int(re.search(rf"(\d+) lessons{after}", desk.said(where))[1])  # type: ignore[index]
        for where, after in (("/", " from"), ("/lessons", ", 0 of them"), ("/topics", "; retired ones are not here"))
    ]
    listed = re.findall(
        r'data-name="Lessons">(\d+)</td>.*?data-name="Retired">(\d+)</td>', desk.get("/administration").text
    )
    shown = len(re.findall("data-row", desk.get("/lessons").text))
    assert counts == [shown] * 3
    assert listed == [(str(shown), "2")]


def test_no_page_calls_a_recall_settled_whose_run_has_no_outcome(desk: Site) -> None:
    page = desk.get("/administration").text
    assert "Settled" not in page
    assert re.findall(r'data-name="Recalls with a run">(\d+)</td>', page) == ["12"]


def test_no_judge_is_named_where_none_was_asked(desk: Site) -> None:
    runs = desk.said("/runs")
    assert runs.count("unknown nobody said how it ended") == len(OPEN)
    assert "by judge" not in runs
    rows = {row["id"]: row["by"] for row in csv.DictReader(io.StringIO(desk.get("/runs?format=csv").text))}
    assert {rows[f"run-{place:03}"] for place in OPEN} == {""}
    assert {by for by in rows.values() if by} == {"ground_truth"}
    assert "judged by ground truth (in the last records)" in desk.said("/administration")
    judge = Verdict(outcome="unknown", source="judge", model="gpt-5", confidence=0.2)
    assert who_said(judge) == "by judge (gpt-5)"
    assert who_said(Verdict(outcome="success", source="judge")) == "by judge"


def test_topics_say_that_nothing_was_known_then(desk: Site) -> None:
    topics = desk.said("/topics")
    assert "Nothing was known then" in topics
    assert "Lessons may have come since" in topics


def test_a_search_is_told_in_words(desk: Site) -> None:
    tried = desk.said("/why?task=Cancel+pending+order+%23W500")
    assert "Searched past tasks by words. What is less alike than 0.07 (1 is the same) is not found." in tried
    recall = re.findall(r'<a href="(/why/[0-9a-f]{32})"', desk.get("/why").text)[0]
    assert "Searched past tasks by words." in desk.said(recall)
    for page in (tried, desk.said(recall)):
        assert "experience/" not in page
        assert "floor(" not in page


def test_every_way_of_searching_has_words() -> None:
    told = {
        "experience/dense+floor(0.3)": "Searched past tasks by meaning, with vectors of e5. What is less alike",
        "experience/hybrid(dense+floor(0.12)+words(0.05), lexical+floor(0.07))": "Searched past tasks by words and by "
        "meaning, with vectors of e5. What is less alike than 0.12 and 0.07",
        "lesson/dense+corroborated": "Searched the lessons by meaning, with vectors of e5.",
        "my-search": "Searched by my-search.",
    }
    for name, words in told.items():
        assert search_in_words(Recall(scope="t", task="a", retriever=name, space="e5")).startswith(words)


def test_a_topic_has_one_name_on_every_page_and_its_id_is_never_one(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    told = (("Refund it", "refund order"), ("Ask for the card", "refund order"), ("Say sorry", "money back"))
    with opened(path) as bank:
        for title, name in told:
            topic = Topic(id="0badcafe", name=name)
            said_once = Lesson(title=title, content=f"{title} at once.", topic=topic)
            bank.consolidate(Experience(scope=SCOPE, task=f"Task: {title}", lessons=(said_once,)))
        bare = Lesson(title="Nameless", content="It has no name.", topic=Topic(id="deadbeef"))
        bank.consolidate(Experience(scope=SCOPE, task="Bare", lessons=(bare,)))
        ids = {lesson.title: lesson.id for lesson in bank.lessons.list()}
    with serving(path, scope=SCOPE) as site:
        site.enter()
        badges = re.findall(r'class="badge kind" href="[^"]*topic=(\w+)[^"]*">([^<]+)<', site.get("/lessons").text)
        one = re.findall(r'topic=0badcafe[^"]*">([^<]+)<', site.get(f"/lessons/{ids['Say sorry']}").text)
        listed = re.findall(r'</svg> <a href="[^"]*topic=(\w+)[^"]*">([^<]+)<', site.get("/topics").text)
        chosen = site.get("/lessons?topic=0badcafe").text
        rows = list(csv.DictReader(io.StringIO(site.get("/lessons?format=csv").text)))
    bare_name = "a topic without a name (deadbeef)"
    assert sorted(badges) == [("0badcafe", "refund order")] * 3 + [("deadbeef", bare_name)]
    assert one == ["refund order"]
    assert sorted(listed) == [("0badcafe", "refund order"), ("deadbeef", bare_name)]
    assert 'name="topic" value="refund order"' in chosen
    assert sorted({row["topic"] for row in rows}) == [bare_name, "refund order"]


def test_the_glossary_and_the_pages_explain_the_words_that_a_lead_meets(desk: Site) -> None:
    glossary = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
    page = desk.get("/words").text
    for word in ("gate", "e-value", "floor", "lift", "trial", "settings"):
        assert f"* **{word}**: " in glossary
        assert re.search(rf"<dt[^>]*>{word}</dt><dd>.{{20,}}</dd>", page), word
    for word in ("probation", "recall", "settled", "scope", "withheld", "guardrail", "ground truth", "extractive"):
        assert f">{word}</dt>" in page
    assert '<a href="/words" data-key="?">' in desk.get("/").text


def test_no_page_of_the_evidence_shows_an_e_value_without_a_scale(desk: Site) -> None:
    lesson = re.findall(r"/lessons/([0-9a-f]{32})", desk.get("/lessons").text)[0]
    for where in ("/", "/helps", "/evidence", f"/lessons/{lesson}/lift"):
        assert "e-value" not in desk.said(where)


def test_home_says_why_its_curves_end_early(desk: Site) -> None:
    helps = desk.said("/helps")
    told = re.search(
        r"The curves end at outcome (\d+): (\d+) outcomes? do(es)? not count yet: an earlier recall has", helps
    )
    assert told
    assert "these are counted" not in helps
    known = int(re.search(r"the outcome of (\d+) is known", helps)[1])  # type: ignore[index]
    assert int(told[1]) + int(told[2]) == known
