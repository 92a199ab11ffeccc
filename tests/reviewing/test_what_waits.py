"""What waits for a person is counted, says why it waits, and can be taken back by one rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from seeding import opened
from serving_pages import Answer, Site, words

from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Relation

pytestmark = pytest.mark.full


def shown_after(site: Site, answer: Answer) -> Answer:
    """The page that a form leads to."""
    assert answer.status == 303, answer.text
    return site.get(answer.headers["location"])


def test_proposals_are_counted_and_the_inbox_opens_where_something_waits(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        waiting = bank.lessons.list(state="quarantined", limit=500)
        bank.lessons.retire(*(one.id for one in waiting), reason="not now", by="Ana")
        proposals = len(bank.lessons.proposals())
    assert proposals
    home = site.enter().get("/")
    assert f"{proposals} proposal" in words(home)
    assert "Nothing." not in words(home).partition("Waits for you")[2].partition("New lessons")[0]
    assert f"Inbox {proposals} " in words(home)
    inbox = site.get("/inbox")
    assert "Proposed:" in words(inbox)
    assert "No lesson is in quarantine." in words(site.get("/inbox?state=quarantined"))
    assert "Nothing waits for you" not in words(site.get("/inbox?state=quarantined"))


def test_the_inbox_says_why_a_lesson_waits_who_put_it_there_and_when(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = bank.lessons.list(state="active")[0]
        (entry,) = bank.lessons.quarantine(lesson.id, reason="it blames a tool", by="Berta")
    at = f"/inbox?state=quarantined&at={lesson.id}"
    told = words(site.enter().get(at))
    assert re.search(r"In quarantine since [\d-]+ [\d:]+ UTC , by Berta: it blames a tool", told)
    assert entry.at.strftime("%Y-%m-%d %H:%M") in told
    part = site.get(f"/lessons/{lesson.id}/held", HX_Request="true")
    assert "by Berta: it blames a tool" in words(part)
    listed = words(site.get("/inbox?state=quarantined")).partition("Retire chosen")[2].partition("This list as CSV")[0]
    assert f"{lesson.title} it blames a tool" in listed
    assert "nobody else saw it" in listed


def test_each_shelf_of_the_inbox_has_its_number_and_says_that_approving_merges_nothing(
    site: Site, bank_file: Path
) -> None:
    with opened(bank_file) as bank:
        held, proposals = len(bank.lessons.list(state="quarantined", limit=500)), bank.lessons.proposals()
    page = words(site.enter().get("/inbox?state=proposed"))
    assert f"Quarantined {held} Proposed {len(proposals)} On probation" in page
    assert "merge" in [one.change for one in proposals]
    assert "Approve merges nothing: it keeps both lessons." in page
    assert "Approve merges nothing" not in words(site.get("/inbox?state=quarantined"))


def test_an_edited_lesson_is_approved_with_it_or_said_to_wait(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        first, second, *_ = bank.lessons.list(state="quarantined")
    page = site.enter().get(f"/inbox?state=quarantined&at={first.id}&do=edit")
    assert "Save (stays in quarantine)" in page.text
    fields = {"csrf": page.csrf, "title": first.title, "content": "Say it kindly.", "when": ""}
    edited = {**fields, "version": first.version, "back": "/inbox"}
    assert "It is still in quarantine" in words(shown_after(site, site.post(f"/lessons/{first.id}/edit", edited)))
    both = {**fields, "title": second.title, "version": second.version, "then": "approve", "onward": "/inbox"}
    assert "Edited and approved" in words(shown_after(site, site.post(f"/lessons/{second.id}/edit", both)))
    with opened(bank_file) as bank:
        assert bank.lessons.get(first.id).state == "quarantined"
        assert (bank.lessons.get(second.id).state, bank.lessons.get(second.id).content) == ("active", "Say it kindly.")
    undone = shown_after(site, site.post("/undo", {"csrf": page.csrf}))
    assert "says what it said before, and is in quarantine again" in words(undone)
    with opened(bank_file) as bank:
        again = bank.lessons.get(second.id)
        assert (again.state, again.content) == ("quarantined", second.content)


def test_undo_names_what_it_takes_back_and_shows_it(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = bank.lessons.list(state="quarantined")[0]
        run = next(one for one in bank.runs.list() if one.verdict.outcome == "success")
    csrf = site.enter().get("/inbox").csrf
    decided = {"csrf": csrf, "do": "retire", "lesson": f"{lesson.version}:{lesson.id}", "back": "/inbox"}
    assert site.post("/decide", decided).status == 303
    at = f"/runs/{run.trajectory.id}"
    assert site.post(f"{at}/correct", {"csrf": csrf, "outcome": "failure", "back": at}).status == 303
    site.get(at)
    assert "Undo: The run is a failure" in words(site.get("/topics")), "on whatever page somebody stands"
    back = shown_after(site, site.post("/undo", {"csrf": csrf}))
    assert "Taken back: the run is a success again, by ground truth" in words(back)
    assert f"Undo: Retired: “{lesson.title[:20]}" in words(back), "what would be taken back next"
    assert "What happened" in back.text
    shown = shown_after(site, site.post("/undo", {"csrf": csrf}))
    assert f"Taken back: “{lesson.title}” is in quarantine again" in words(shown)
    assert re.search(rf'id="chosen"><a href="/lessons/{lesson.id}"', shown.text)
    assert "Undo" not in words(site.get("/topics"))


def test_undo_on_a_page_of_before_takes_back_nothing_else(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        first, second, *_ = bank.lessons.list(state="quarantined")
    csrf = site.enter().get("/inbox").csrf
    for lesson in (first, second):
        decided = {"csrf": csrf, "do": "retire", "lesson": f"{lesson.version}:{lesson.id}", "back": "/topics"}
        page = shown_after(site, site.post("/decide", decided))
    (what,) = set(re.findall(r'name="what" value="(\w+)"', page.text))
    assert site.post("/undo", {"csrf": csrf, "what": what}).status == 303
    again = site.post("/undo", {"csrf": csrf, "what": what})
    assert (again.status, "taken back already" in words(again)) == (409, True)
    with opened(bank_file) as bank:
        assert [bank.lessons.get(lesson.id).retired for lesson in (first, second)] == [True, False]


def test_undo_takes_away_nothing_that_somebody_else_decided_since(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = bank.lessons.list(state="active")[0]
        run = next(one for one in bank.runs.list() if one.verdict.outcome == "success").trajectory
    csrf = site.enter().get("/inbox").csrf
    fields = {"csrf": csrf, "title": lesson.title, "content": "Say it kindly.", "when": "", "version": lesson.version}
    assert site.post(f"/lessons/{lesson.id}/edit", fields).status == 303
    with opened(bank_file) as bank:
        bank.lessons.edit(lesson.id, content="Say it kindly, and once.", by="Berta")
    refused = site.post("/undo", {"csrf": csrf})
    assert (refused.status, "It was changed again since" in words(refused)) == (409, True)
    assert site.post(f"/runs/{run.id}/correct", {"csrf": csrf, "outcome": "failure"}).status == 303
    with opened(bank_file) as bank:
        bank.runs.correct(run.id, outcome="unknown", by="Berta")
    assert site.post("/undo", {"csrf": csrf}).status == 409
    with opened(bank_file) as bank:
        assert bank.lessons.get(lesson.id).content == "Say it kindly, and once."
        assert bank.runs.get(run.id).verdict.outcome == "unknown"


def test_a_decision_that_cannot_be_taken_back_does_not_stand_before_the_others(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson, other = bank.lessons.list(state="active")[:2]
    csrf = site.enter().get("/inbox").csrf
    decided = {"csrf": csrf, "do": "retire", "lesson": f"{other.version}:{other.id}"}
    assert site.post("/decide", decided).status == 303
    fields = {"csrf": csrf, "title": lesson.title, "content": "Say it kindly.", "when": "", "version": lesson.version}
    assert site.post(f"/lessons/{lesson.id}/edit", fields).status == 303
    with opened(bank_file) as bank:
        bank.lessons.edit(lesson.id, content="Say it once.", by="Berta")
    assert [site.post("/undo", {"csrf": csrf}).status for _ in range(2)] == [409, 303]
    with opened(bank_file) as bank:
        assert not bank.lessons.get(other.id).retired


def test_the_inbox_asks_how_a_run_ended_where_nobody_said(site: Site, bank_file: Path) -> None:
    from seeding import run_of

    with opened(bank_file) as bank:
        bank.learn([run_of(1, 1, good=True, id="open-1")], outcome="unknown")
        bank.learn([run_of(2, 2, good=True, id="open-2")], outcome="unknown")
    page = site.enter().get("/runs/open-2")
    assert "Nobody said how it ended. Did it succeed?" in words(page)
    assert "confidence 0" not in words(page)
    assert "pass outcome=" not in words(page)
    assert 'data-key="s"' in page.text
    assert 'data-key="j" href="/runs/open-1"' in page.text
    told = {"csrf": page.csrf, "outcome": "success", "back": "/runs/open-1"}
    after = shown_after(site, site.post("/runs/open-2/correct", told))
    assert "Did it succeed?" in words(after)
    assert "The run is a success" in words(after)


def test_a_verdict_has_its_value_chosen_and_says_what_becomes_of_the_lessons(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        run = next(one for one in bank.runs.list() if one.verdict.outcome == "success")
    at = f"/runs/{run.trajectory.id}"
    page = site.enter().get(at)
    assert re.search(r'value="success" required checked', page.text)
    assert "The lessons that were drawn from it stay" in words(page)
    told = {"csrf": page.csrf, "outcome": "failure", "back": at}
    after = words(shown_after(site, site.post(f"{at}/correct", told)))
    assert "Why: Ana" not in after
    assert "Said by Ana" in after


def test_a_proposal_names_the_near_lesson_once_and_by_its_title(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        proposal = next(one for one in bank.lessons.proposals() if one.change == "merge")
        older = bank.lessons.get(str(proposal.of))
    page = site.enter().get(f"/inbox?state=proposed&at={proposal.lesson.id}")
    assert str(proposal.of) not in words(page)
    assert f"nearly the same as “{older.title}”" in words(page)
    assert "merge the two, or keep both" in words(page)
    assert "Marked: where this lesson and" in words(page)
    near = site.get(f"/lessons/{proposal.lesson.id}/near?but={proposal.of}", HX_Request="true")
    assert f'href="/lessons/{proposal.of}"' not in near.text


def test_two_lessons_that_contradict_each_other_wait_for_a_choice(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        held = bank.lessons.list(state="active")[0]
        against = Relation(lesson_ids=(held.id,), kind="contradicts")
        new = Lesson(title="Never do that", content="It is refused on Sundays.", relation=against)
        other = Lesson(title="Do it on Mondays", content="It goes through then.")
        denied = Relation(lesson_ids=(other.id,), kind="contradicts")
        third = Lesson(title="Do it on no Monday", content="It is refused then.", relation=denied)
        for lesson in (new, other, third):
            bank.consolidate(Experience(scope=bank.aio.scope, task=f"Task of {lesson.title}", lessons=(lesson,)))
        asked = {one.lesson.id: one for one in bank.lessons.proposals() if one.change == "choose"}
    assert asked.keys() == {other.id, third.id}, "a person has approved the other one of the first pair"
    assert {one.of for one in asked.values()} == asked.keys()
    page = site.enter().get(f"/inbox?state=proposed&at={third.id}")
    assert "Proposed: choose one of two lessons" in words(page)
    assert "“Do it on Mondays” says otherwise" in words(page)
    assert "It contradicts a lesson that is here" in words(page)
    site.post("/decide", {"csrf": page.csrf, "do": "approve", "lesson": f"1:{third.id}"})
    with opened(bank_file) as bank:
        assert not [one for one in bank.lessons.proposals() if one.change == "choose"]


def test_an_ended_session_says_where_the_command_still_runs(site: Site, bank_file: Path) -> None:
    csrf = site.enter().get("/").csrf
    ended = shown_after(site, site.post("/sign-out", {"csrf": csrf}))
    assert "Your session has ended" in words(ended)
    assert "Ctrl-C" in words(ended)
    assert f"lessonbank review {bank_file}" in words(ended)


def test_a_lesson_on_probation_waits_neither_on_home_nor_in_the_inbox(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        while found := [*(one.lesson for one in bank.lessons.proposals()), *bank.lessons.list(state="quarantined")]:
            bank.lessons.retire(*{one.id for one in found}, reason="not now", by="Ana")
        assert bank.lessons.list(state="probation")
    assert "Nothing." in words(site.enter().get("/")).partition("Waits for you")[2]
    assert "Nothing waits for you." in words(site.get("/inbox"))
    assert "These wait for nothing" in words(site.get("/inbox?state=probation"))


def test_home_the_inbox_and_doctor_count_the_same_decisions(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        held = len(bank.lessons.list(state="quarantined", limit=500))
        proposals = len(bank.lessons.proposals())
    noun = "proposal" if proposals == 1 else "proposals"
    told = f"{held + proposals} decisions wait: {held} lessons in quarantine, {proposals} {noun}"
    home = words(site.enter().get("/"))
    assert told in home
    assert f"Inbox {held + proposals} " in home
    assert told in words(site.get("/doctor"))
    assert "decisions wait for you." in words(site.get("/helps"))


def test_a_lesson_with_a_proposal_does_not_stand_with_those_that_wait_for_nothing(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        proposed = [one.lesson for one in bank.lessons.proposals() if one.lesson.state == "probation"]
    assert proposed
    shelf = site.enter().get("/inbox?state=probation").text
    assert "These wait for nothing" in shelf
    assert not [one for one in proposed if f":{one.id}" in shelf]


def test_a_lesson_that_was_approved_before_its_quarantine_says_so(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = next(one for one in bank.lessons.list(state="probation") if not one.retired)
        bank.lessons.approve(lesson.id, by="Ben")
        bank.lessons.quarantine(lesson.id, reason="it blames a tool", by="Berta")
    page = words(site.enter().get(f"/lessons/{lesson.id}"))
    assert "no person has checked" not in page
    assert re.search(r"Approved by Ben, [\d-]+ [\d:]+ UTC , before it was put in quarantine", page)
    assert "before it was put in quarantine" in words(site.get(f"/lessons/{lesson.id}/versions"))
