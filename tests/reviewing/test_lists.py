"""Lists say what a lead looks for first: what helps, what waits, what a run took; and each goes into a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from seeding import SCOPE, opened
from serving_pages import Site, serving

import lessonbank
from lessonbank import Evidence
from lessonbank.contracts.records import Run, Trajectory, Usage, Verdict
from lessonbank.evidence import Holdout
from lessonbank.evidence.effects import Estimate, says_nothing
from lessonbank.evidence.lift import Lift
from lessonbank.pages.home import lead
from lessonbank.pages.runs import facts_of
from lessonbank.pages.tables import csv_of

pytestmark = pytest.mark.full


def table(site: Site, where: str) -> list[dict[str, str]]:
    answer = site.get(where)
    assert answer.status == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_home_speaks_as_a_lead_does() -> None:
    sides = {"shown": 50, "withheld": 20}
    sure = Estimate(value=0.49, always_low=0.2, always_high=0.7)
    lift = Lift(scope="t", success=sure, standing="helps", success_with=0.84, success_without=0.35, **sides)
    said = "with it 84.0 % of 50 tasks succeed, without it 35.0 % of 20 tasks"
    assert lead(lift, waiting=2) == f"Memory helps: {said}. Two decisions wait for you."
    assert lead(lift, waiting=1).endswith("One decision waits for you.")
    assert lead(lift, waiting=0).endswith("35.0 % of 20 tasks.")
    assert lead(lift, waiting=240).endswith("240 decisions wait for you.")
    harms = lift.model_copy(update={"standing": "harms", "success_with": 0.2})
    assert lead(harms, waiting=0) == "Memory harms: with it 20.0 % of 50 tasks succeed, without it 35.0 % of 20 tasks."
    opinion = lift.model_copy(update={"success": sure.model_copy(update={"basis": "judge"})})
    assert lead(opinion, waiting=0).startswith("The judge thinks: memory helps: with it 84")
    open_yet = lift.model_copy(update={"standing": "no evidence yet"})
    assert lead(open_yet, waiting=0).startswith("It is too early to say whether memory helps; so far with it 84")
    assert lead(Lift(scope="t"), waiting=0) == "It is too early to say whether memory helps."
    assert "outcomes are missing" in lead(lift.model_copy(update={"missing_differs": True}), waiting=0)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Site, Lift]]:
    """The first lesson decides how a task ends, the second does nothing, and no task finds the third.

    Draws follow from the seed and from which lesson is nearer, so that each run is the same.
    """
    path = tmp_path_factory.mktemp("measured") / "bank.db"
    draws = Evidence(holdout=Holdout(0.5, 0.1, seed="lists"))
    with lessonbank.connect(path, scope=SCOPE, embedder="lexical", evidence=draws) as bank:
        about = {"Works": "Cancel the order", "Idle": "Cancel the order soon", "Unused": "Water the plants"}
        for title, task in about.items():
            bank.lessons.add(title=title, content=f"{title}.", task=task, by="Ana")
        for _ in range(80):
            recall = bank.retrieve("Cancel the order")
            good = any(lesson.title == "Works" for lesson in recall.shown)
            bank.learn(
                Trajectory(task="Cancel the order", answer="Done."),
                recall=recall,
                outcome="success" if good else "failure",
            )
        lift = bank.lift()
    with serving(path, scope=SCOPE) as site:
        yield site.enter(), lift


def test_lessons_are_sorted_by_effect_and_say_how_often_they_were_shown(measured: tuple[Site, Lift]) -> None:
    site, _ = measured
    page = site.get("/lessons").text
    newest = site.get("/lessons?sort=newest").text
    helps = table(site, "/lessons?effect=helps&format=csv")
    titles = r"data-row>(Works|Idle|Unused)</a>"
    assert re.findall(titles, page) == ["Works", "Idle", "Unused"]
    assert re.findall(titles, newest) == ["Unused", "Idle", "Works"]
    assert re.search(r"[+−][\d.]+ points \[.*: keep: .*helps; shown \d+ times, left out \d+ times", page)
    assert "No task found it yet." in page
    (row,) = helps
    assert (row["title"], float(row["effect_points"]) > 30, int(row["shown"]) > 10) == ("Works", True, True)


def test_a_lesson_that_was_measured_has_a_page_of_its_effect(measured: tuple[Site, Lift]) -> None:
    site, lift = measured
    lessons = [one for one in lift.lessons if one.success.value is not None]
    assert len(lessons) == 2
    for one in lessons:
        assert site.get(f"/lessons/{one.lesson_id}/lift", HX_Request="true").status == 200
        page = site.get(f"/lessons/{one.lesson_id}/lift")
        assert page.status == 200
        assert says_nothing(one) != bool(re.search(r"[+−][\d.]+ points \[", page.text))
        assert not says_nothing(one) or "not known yet" in page.text


def test_lessons_can_be_filtered_by_effect_by_topic_and_by_what_waits(site: Site, bank_file: Path) -> None:
    site.enter()
    with opened(bank_file) as bank:
        held = {lesson.id for lesson in bank.lessons.list(state="quarantined")}
        proposed = {one.lesson.id for one in bank.lessons.proposals()}
        lifts = {one.lesson_id: one.standing for one in bank.lift().lessons}
        topic = next(lesson.topic.id for lesson in bank.lessons.list(limit=100) if lesson.topic)
        name = bank.lessons.topics()[topic]
        of_topic = {lesson.id for lesson in bank.lessons.list(topic=topic, limit=100)}
    assert {row["id"] for row in table(site, "/lessons?effect=waits&format=csv")} == held | proposed
    for word in ("helps", "harms"):
        wanted = {id for id, standing in lifts.items() if standing in (word, f"likely {word}")}
        assert {row["id"] for row in table(site, f"/lessons?effect={word}&format=csv")} <= wanted
    assert {row["id"] for row in table(site, f"/lessons?topic={topic}&format=csv")} == of_topic
    page = site.get("/lessons").text
    assert f'<option value="{name}"></option>' in page
    for field in ("effect", "topic", "sort"):
        assert f'name="{field}"' in page


def test_a_run_says_when_it_was_how_long_it_took_for_whom_and_what_it_cost(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    usage = Usage(requests=1, input_tokens=900, output_tokens=100, cost=0.0123)
    told: dict[str, Any] = {"user": "u-17", "seconds": 12.5}
    with lessonbank.connect(path, scope=SCOPE, embedder="lexical") as bank:
        recall = bank.retrieve("Cancel order 1")
        bank.learn(
            Trajectory(id="of-a-ticket", task="Cancel order 1", answer="Done.", usage=usage, metadata=told),
            recall=recall,
            outcome="success",
        )
        bank.learn(Trajectory(task="Cancel order 2", answer="Done."), outcome="success")
        at = f"{recall.created_at:%Y-%m-%d %H:%M}"
    with serving(path, scope=SCOPE) as site:
        line = f"{at} UTC, 12.5 s, user u-17, 1,000 tokens, 0.0123 US dollars"
        assert line in re.sub(r"<[^>]+>", "", site.enter().get("/runs").text)
        assert line in re.sub(r"<[^>]+>", "", site.get("/runs/of-a-ticket").text)
        assert "Cancel order 2" not in site.get("/runs?user=u-17").text
        (row,) = table(site, "/runs?user=u-17&format=csv")
    assert (row["id"], row["user"], row["seconds"], row["us_dollars"]) == ("of-a-ticket", "u-17", "12.5", "0.0123")
    assert row["time"].startswith(f"{at:.10}")


def test_what_a_run_does_not_say_is_not_made_up() -> None:
    run = Run(
        trajectory=Trajectory(id="f" * 64, task="t"),
        verdict=Verdict(outcome="success"),
        metadata={"seconds": "soon", "user": None},
    )
    assert facts_of(run).sentence == ""


def test_every_list_is_a_file_for_a_spreadsheet(site: Site, bank_file: Path) -> None:
    site.enter()
    with opened(bank_file) as bank:
        counts = bank.admin.counts()
    sizes = {name: len(table(site, f"/{name}?format=csv")) for name in ("runs", "why", "history", "lessons")}
    assert sizes["runs"] == counts.trajectories
    assert sizes["why"] == counts.recalls
    assert sizes["history"] == counts.changes
    assert sizes["lessons"] > 0
    assert sum(int(row["lessons"]) for row in table(site, "/topics?format=csv")) > 0
    assert {row["waits_as"] for row in table(site, "/inbox?format=csv")} >= {"quarantined"}
    for name in sizes:
        assert "This list as CSV" in site.get(f"/{name}").text


def test_a_text_cannot_run_in_a_spreadsheet() -> None:
    told = csv_of("x", ("a", "b"), [('=HYPERLINK("http://x")', -1.5), ("-2+3", None), ("a\x1b[2Jb", "fine")]).body
    rows = list(csv.reader(io.StringIO(bytes(told).decode())))
    assert rows[1] == ['\'=HYPERLINK("http://x")', "-1.5"]
    assert rows[2] == ["'-2+3", ""]
    assert "\x1b" not in rows[3][0]


def test_every_page_is_named_in_the_bar_on_a_phone() -> None:
    """A bar that scrolls sideways hides its last entries."""
    style = (Path(lessonbank.__file__).parent / "pages" / "static" / "pages.css").read_text(encoding="utf-8")
    narrow = "".join(re.findall(r"@media \(max-width: 48rem\) \{.*?\n\}", style, re.DOTALL))
    bar = [line for line in narrow.splitlines() if ".bar nav" in line]
    assert bar
    assert not [line for line in bar if "nowrap; width" in line or "overflow-x" in line]
