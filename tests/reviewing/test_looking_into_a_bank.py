"""The pages that answer questions: does it help, why was this shown, what changed, what would go."""

from __future__ import annotations

import re
from functools import partial
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seeding import SCOPE, give_up, opened, run_of
from serving_pages import Site, serving, words

import lessonbank
from lessonbank import Action, Learning, Step, ToolCall, Trajectory
from lessonbank.contracts.records import Edit, Lesson, Provenance, Usage
from lessonbank.http.workers import Worker
from lessonbank.http.workers.budgets import Budget, Budgets
from lessonbank.pages.apart import apart
from lessonbank.pages.comparing import first_difference
from lessonbank.pages.evidence_steps import named_steps
from lessonbank.pages.topics import placed
from lessonbank.text.authors import author, teacher

pytestmark = pytest.mark.full


def test_home_says_whether_memory_helps_what_waits_and_what_was_taken_back(site: Site, bank_file: Path) -> None:
    site.enter()
    home, helps = site.get("/"), site.get("/helps", HX_Request="true")
    assert "5 lessons in quarantine" in home.text
    back = site.get("/taken-back", HX_Request="true")
    assert "Always offer a voucher" in back.text
    assert "too expensive, and it did not help" in back.text
    with opened(bank_file) as bank:
        assert str(bank.lift()).splitlines()[0].removeprefix("Does memory help? ")[:12] in helps.text
    assert "<html" not in helps.text
    assert 'class="with"' in helps.text
    assert re.search(r"With memory a task takes: steps [+−][\d.]+ \[", helps.text)
    assert re.search(r"Measuring has cost so far: \d+ of \d+ tasks without memory", helps.text)
    shares = re.search(
        r"so far with it ([\d.]+)\u00a0% of (\d+) tasks succeed, without it ([\d.]+)\u00a0% of \d+ tasks\. Six",
        helps.text,
    )
    assert shares
    with opened(bank_file) as bank:
        lift = bank.lift()
    assert lift.success.value is not None
    assert round(float(shares[1]) - float(shares[3]), 1) == pytest.approx(100 * lift.success.value, abs=0.11)
    assert int(shares[2]) == lift.shown
    assert "What memory changed" in site.get("/evidence").text


def test_the_evidence_of_a_lesson_leads_to_its_page_and_its_runs(unchanged: Site) -> None:
    text = unchanged.get("/evidence").text
    inside = "".join(re.findall(r'<div class="inside">.*?</dl>', text, re.DOTALL))
    for kind in ("lessons", "runs"):
        found = re.findall(rf'<a href="(/{kind}/[^"]+)">', inside)
        assert found, kind
        assert unchanged.get(found[0]).status == 200


def test_trying_a_task_shows_the_text_and_keeps_no_receipt(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        before = bank.admin.counts()
        journal = len(bank.history.list())
    tried = site.enter().get("/why?task=Cancel+pending+order+%23W777&limit=3")
    assert "Check the order&#39;s status before cancelling" in tried.text
    assert "&lt;&lt;&lt;lessons" in tried.text
    assert "Nothing would be shown" in site.get("/why?task=quantum+chromodynamics").text
    huge = site.get(f"/why?task=Cancel+pending+order+%23W777&limit=001{'9' * 5000}")
    assert (huge.status, "limit is a number" in huge.text) == (400, True)
    with opened(bank_file) as bank:
        assert bank.admin.counts() == before
        assert len(bank.history.list()) == journal


def test_a_task_is_tried_with_settings_that_its_address_says(site: Site, bank_file: Path) -> None:
    task = "task=Cancel+pending+order+%23W777"
    with opened(bank_file) as bank:
        before = bank.admin.counts(), len(bank.history.list())
    own = site.enter().get(f"/why?{task}")
    assert '<details class="settings">' in own.text, "folded, as long as nothing is chosen"
    blank = site.get(f"/why?{task}&limit=&by=&budget=&floor=&trust=&preface=")
    assert (blank.status, "Look up" in blank.text or "Check the order" in blank.text) == (200, True)
    tried = {
        "limit=50&floor=0": lambda text: text.count(">score ") > own.text.count(">score "),
        "budget=100": lambda text: "does not fit the budget of 100 tokens" in text,
        "floor=1": lambda text: "less alike than 1 (1 is the same)" in text,
        "preface=Hints+of+%3Cb%3Eold%3C%2Fb%3E": lambda text: "Hints of &lt;b&gt;old" in text,
        "by=lexical": lambda text: "Searched past tasks by words." in text,
        "trust=reviewed": lambda text: "trusted enough: reviewed." in text,
    }
    for settings, is_so in tried.items():
        page = site.get(f"/why?{task}&{settings}")
        assert (page.status, is_so(page.text)) == (200, True), settings
        assert '<details class="settings" open>' in page.text
        part = site.get(f"/why/try?{task}&{settings}", HX_Request="true")
        assert (part.status, "<html" in part.text) == (200, False)
    for wrong, why in {"limit=51": "at most 50", "floor=nan": "floor", "by=dense": "needs an embedder"}.items():
        page = site.get(f"/why?{task}&{wrong}")
        assert (page.status, "This cannot be tried" in page.text, why in page.text) == (400, True, True), wrong
        assert site.get(f"/why/try?{task}&{wrong}", HX_Request="true").status == 200, "it comes into its page"
    with opened(bank_file) as bank:
        assert (bank.admin.counts(), len(bank.history.list())) == before


def test_a_recall_shows_what_was_found_and_how_its_task_ended(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        recall = next(one for one in bank.recalls.list() if one.candidates)
    site.enter()
    assert recall.candidates[0].lesson_id in site.get(f"/why/{recall.id}").text
    assert re.search(r"As a (success|failure)\.", site.get(f"/why/{recall.id}/explained").text)


def test_a_recall_says_of_each_lesson_what_became_of_it_and_leads_to_its_run(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        recalls = bank.recalls.list(limit=100)
        withheld = next(one for one in recalls if any(each.withheld for each in one.candidates))
        grouped = next((one for one in recalls if one.groups), withheld)
        run = next(one for one in bank.runs.list(limit=100) if one.recall_id == withheld.id)
    text = unescape(site.enter().get(f"/why/{withheld.id}").text)
    assert re.search(r"Withheld (by chance|with its group|with all of memory).*, to compare with \(odds \d+ %\)", text)
    assert "its task scored" not in text
    assert f"/runs/{run.trajectory.id}" in text
    assert not re.search(r"\btopic/[0-9a-f]{8}", unescape(site.get(f"/why/{grouped.id}").text))
    tried = unescape(site.get("/why?task=Cancel+pending+order+%23W777").text)
    assert "It would be shown." in tried
    assert "<h2>Recalls</h2>" not in tried


def test_a_recall_whose_outcome_is_unknown_says_so_in_a_sentence(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        recall = bank.retrieve("Cancel pending order #W950")
        bank.learn(run_of(950, 0, good=True, id="run-950"), recall=recall, outcome="unknown")
    assert "As a unknown" not in site.enter().get(f"/why/{recall.id}/explained").text


def test_a_rollback_is_previewed_done_and_undone(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        last = bank.history.list()[-1].sequence
    site.enter()
    assert f"change {last}," in site.get("/history").text
    preview = site.get(f"/history/diff?a={last - 1}&back=yes")
    assert "Always offer a voucher" in preview.text
    fields = {"csrf": preview.csrf, "to": last - 1, "last": last, "reason": "a mistake"}
    assert site.post("/history/rollback", {**fields, "last": last - 1}).status == 409
    assert site.post("/history/rollback", fields).status == 303
    with opened(bank_file) as bank:
        assert any(one.title == "Always offer a voucher" for one in bank.lessons.list())
    assert site.post("/undo", {"csrf": preview.csrf}).status == 303
    with opened(bank_file) as bank:
        assert not any(one.title == "Always offer a voucher" for one in bank.lessons.list())
    assert "rolled back to change" in site.get("/history").text


def test_the_time_line_is_read_to_its_beginning(unchanged: Site) -> None:
    seen, at = list[int](), "/history"
    while at:
        text = unchanged.get(at).text
        seen += [int(number) for number in re.findall(r'id="change-(\d+)"', text)]
        found = re.search(r'rel="next" href="(/history\?before=\d+)"', text)
        at = found[1] if found else ""
    assert seen == list(range(seen[0], 0, -1))


def test_an_erasure_shows_first_what_goes_and_takes_just_that(site: Site, bank_file: Path) -> None:
    preview = site.enter().get("/purge?run=run-007")
    assert "order #W007" in preview.text
    other, seen = (
        re.findall(r'name="seen" value="([^"]+)"', page.text)[0] for page in (site.get("/purge?run=run-008"), preview)
    )
    fields = {"csrf": preview.csrf, "run": "run-007", "seen": seen}
    assert site.post("/purge", fields).status == 400
    assert site.post("/purge", {**fields, "reason": "asked", "seen": other}).status == 409, "as many, and others"
    assert site.get("/runs/run-007").status == 200
    assert site.post("/purge", {**fields, "reason": "the customer asked"}).status == 303
    assert site.get("/runs/run-007").status == 404
    assert site.get("/runs/run-008").status == 200
    with opened(bank_file) as bank:
        assert bank.history.list()[-1].entry.kind == "purge"


def test_an_erasure_shows_which_lessons_live_on_and_in_which_words(site: Site, bank_file: Path) -> None:
    steps = [("make release", "error: no entry"), ("make changelog", "updated"), ("make release", "released")]
    told = [Step(action=action, observation=seen) for action, seen in steps]
    with lessonbank.connect(bank_file, scope=SCOPE, embedder="lexical") as bank:
        for n in range(3):
            run = Trajectory(id=f"release-{n}", task=f"Publish release 1.{n} of the parser", steps=told)
            bank.learn(run, outcome="success")
    preview = site.enter().get("/purge?run=release-0")
    assert "live on in the words of other runs" in preview.text
    assert 'href="/runs/release-1">another run</a>' in preview.text
    fields = dict(re.findall(r'name="(csrf|seen)" value="([^"]+)"', preview.text))
    assert site.post("/purge", {**fields, "run": "release-0", "reason": "a request"}).status == 303
    assert "live on" in site.get("/administration").text


def test_whoever_is_named_in_runs_is_found_by_words_chosen_and_erased(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        for n in (1, 2, 3):
            bank.learn(run_of(900 + n, 0, good=True, id=f"noah-{n}", text="I am Noah Muller."), outcome="success")
    found = site.enter().get("/purge?q=noah+muller").text
    boxes = re.findall(r'type="checkbox" name="(\w+)" value="([^"]+)"', found)
    assert {id for kind, id in boxes if kind == "run"} == {"noah-1", "noah-2", "noah-3"}
    assert "holds all of these words" in site.get("/purge?q=zanzibar").text
    preview = site.get("/purge?run=noah-1&run=noah-3")
    assert "2 runs" in preview.text and "1 runs" not in site.get("/purge?run=noah-2").text
    fields = dict(re.findall(r'name="(csrf|seen)" value="([^"]+)"', preview.text))
    assert 'class="danger"' in preview.text and "kept for ever, so no names" in preview.text
    assert site.post("/purge", {**fields, "run": ["noah-1", "noah-3"], "reason": "a request"}).status == 303
    assert [site.get(f"/runs/noah-{n}").status for n in (1, 2, 3)] == [404, 200, 404]
    both = site.get("/purge?run=noah-2&metadata=user%3Dnoah")
    assert (both.status, "exactly one of the three" in unescape(both.text)) == (400, True)
    assert "/purge?run=noah-2" in site.get("/runs/noah-2").text


def test_what_is_chosen_goes_at_once_with_all_that_rests_on_it_or_stays(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        bank.learn(run_of(900, 0, good=True, id="noah"), outcome="success")
        one, other = (
            bank.lessons.add(title=f"Ask {n}", content=f"Ask {n} times.", task=f"Ask {n}", by="Ben") for n in (2, 3)
        )
        merged = bank.lessons.merge(one.id, other.id, title="Ask often", content="Ask often.", by="Ben")
        recall = bank.retrieve("Where is Noah?")
        before = bank.history.list()[-1].sequence
    chosen = {"run": "noah", "lesson": one.id, "recall": recall.id}
    preview = site.enter().get(f"/purge?{urlencode(chosen)}")
    assert "All of it goes at once, or none of it" in preview.text
    assert merged.title in preview.text
    assert other.id not in preview.text
    fields = dict(re.findall(r'name="(csrf|seen)" value="([^"]+)"', preview.text))
    with opened(bank_file) as bank:
        bank.admin.purge(recall=recall.id, reason="by another")
    asked = {**fields, **chosen, "reason": "a request"}
    assert site.post("/purge", asked).status in (404, 409)
    assert site.get("/runs/noah").status == site.get(f"/lessons/{one.id}").status == 200
    preview = site.get(f"/purge?run=noah&lesson={one.id}")
    fields = dict(re.findall(r'name="(csrf|seen)" value="([^"]+)"', preview.text))
    assert site.post("/purge", {**fields, "run": "noah", "lesson": one.id, "reason": "a request"}).status == 303
    gone = ["/runs/noah", f"/lessons/{one.id}", f"/lessons/{merged.id}"]
    assert [site.get(where).status for where in (*gone, f"/lessons/{other.id}")] == [404, 404, 404, 200]
    with opened(bank_file) as bank:
        assert {entry.entry.kind for entry in bank.history.list(after=before)} == {"purge"}


def test_a_lesson_that_a_rollback_took_back_is_called_that_and_one_that_was_erased_too(
    site: Site, bank_file: Path
) -> None:
    task = "Polish the brass of the sundial in the yard"
    with opened(bank_file) as bank:
        mark = bank.history.list()[-1].sequence
        kept, erased = (
            bank.lessons.add(title=title, content=f"{title} with a soft cloth.", task=task, by="Ben")
            for title in ("Polish by hand", "Polish at noon")
        )
        recall = next(one for one in (bank.retrieve(task) for _ in range(60)) if len(one.shown) == 2)
        run = Trajectory(id="sundial", task=task, recall_id=recall.id, steps=(Step(action="rub", observation="ok"),))
        bank.learn(run, outcome="unknown")
        bank.admin.purge(lesson=erased.id, by="Ben", reason="a request")
        bank.history.rollback(to=mark, reason="not so", by="Ben")
    site.enter()
    for where in ("/runs/sundial", f"/why/{recall.id}"):
        told = words(site.get(where))
        assert ("a lesson that a rollback took back" in told, "a lesson that was erased" in told) == (True, True), where
    line = words(site.get("/history?by=Ben"))
    assert "kept a task with 1 lesson : Polish by hand (a rollback took it back)" in line
    assert "Polish at noon" not in line
    assert f"/lessons/{kept.id}" not in site.get("/history?by=Ben").text


def test_a_lesson_names_who_wrote_it_and_who_taught_it(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        noted = bank.lessons.note("Look at the stamp of the parcel first.", task="Trace a parcel")
        by_ben = bank.lessons.add(title="Weigh it", content="Weigh the parcel.", task="Trace a parcel", by="Ben")
    site.enter()
    assert author(Provenance(method="extractive")) == "rules, without a model"
    assert author(Provenance(method="mem0", writer="import")) == "an import from mem0"
    assert teacher(Provenance(writer="learn", identity="key:ben")) == "key:ben"
    assert teacher(Provenance(writer="Ben", identity="key:ben")) == "Ben, key:ben"
    assert teacher(Provenance(writer="import")) == ""
    authors = ((noted, "an agent, as a note"), (by_ben, "Ben"))
    for lesson, who in authors:
        assert f"written by {who} " in words(site.get(f"/lessons/{lesson.id}"))
        found = words(site.get(f"/lessons?q={lesson.title.split()[0]}"))
        assert f"UTC by {who}" in found
        assert "by learn" not in found


def test_an_erasure_that_finds_nothing_says_what_it_looked_at(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        bank.learn(run_of(901, 0, good=True, id="run-u"), outcome="success", metadata={"customer": "u-1"})
    wrong = site.enter().get("/purge?metadata=Noah+Muller")
    assert (wrong.status, "key=value" in wrong.text, 'value="Noah Muller"' in wrong.text) == (400, True, True)
    none = site.get("/purge?metadata=user%3Dnoah").text
    assert "Metadata alone were looked at" in none
    assert "<code>customer</code>" in none


def test_administration_names_scopes_reviewers_and_what_the_doctor_finds(site: Site, bank_file: Path) -> None:
    site.enter()
    assert "Not protected from an agent on this machine" in site.get("/administration").text
    assert "The records are sound" in site.get("/doctor").text
    with opened(bank_file) as bank:
        bank.admin.add_reviewer("Ana")
    assert "Reviewers with a key: ana" in site.get("/administration").text


def test_administration_says_which_budgets_are_in_force_and_what_of_them_is_spent(site: Site, bank_file: Path) -> None:
    async def work(budget: Budget | None, usage: Usage, *, scope: str = SCOPE) -> None:
        async with (
            await lessonbank.connect_async(bank_file, scope=scope, embedder="lexical") as bank,
            anyio.create_task_group() as group,
        ):
            worker = Worker(bank, budget=budget)
            group.start_soon(worker.run)
            while worker.name not in str(await bank.store.settings("running ")):
                await anyio.sleep(0.01)
            await Budgets(bank.store, budget, worker=worker.name).spend(scope, usage)
            shown.append(await anyio.to_thread.run_sync(lambda: words(site.get("/administration"))))
            worker.stop()

    shown = [words(site.enter().get("/administration"))]
    assert "No worker runs now" in shown[0] and "Workers with a budget spent nothing here today" in shown[0]
    spent = Usage(requests=2, input_tokens=1_000, output_tokens=234, cost=0.0125)
    anyio.run(work, Budget(tokens=100_000, cost=2.5), spent)
    assert "1 worker runs now. A scope may spend at most 100,000 tokens and 2.5 US dollars a day." in shown[-1]
    assert "spent 1,234 tokens and 0.0125 US dollars here today" in shown[-1]
    anyio.run(partial(work, Budget(cost=0.001), Usage(requests=1, input_tokens=7_777), scope="other"))
    assert "A scope may spend at most 0.001 US dollars a day." in shown[-1]
    assert "100,000" not in shown[-1] and "7,777" not in shown[-1], "what ended, and what others spent"
    anyio.run(work, None, spent)
    assert "1 worker runs now. A scope may spend as much as it takes, and it is not counted." in shown[-1]
    assert "No worker runs now" in words(site.get("/administration"))


def test_a_worker_that_was_killed_is_shown_until_its_lease_is_over(site: Site, bank_file: Path) -> None:
    async def tell(budget: Budget, worker: str, seconds: float) -> None:
        async with await lessonbank.connect_async(bank_file, scope=SCOPE, embedder="lexical") as bank:
            await Budgets(bank.store, budget, worker=worker).tell(seconds)

    anyio.run(tell, Budget(tokens=100_000), "killed", -1.0)
    assert "No worker runs now" in words(site.enter().get("/administration"))
    for number in (1, 2):
        anyio.run(tell, Budget(tokens=50), f"worker {number}", 60.0)
    anyio.run(tell, Budget(cost=1234.5), "another", 60.0)
    told = words(site.get("/administration"))
    assert "by 1 worker: at most 1,234.5 US dollars a day" in told
    assert "by 2 workers: at most 50 tokens a day" in told


def test_runs_that_were_given_up_are_tried_again_after_a_look_at_them(site: Site, bank_file: Path) -> None:
    give_up(bank_file, "run-stuck")
    left = Learning(submit="worker")
    with lessonbank.connect(bank_file, scope=SCOPE, embedder="lexical", learning=left) as bank:
        bank.submit(run_of(7, 0, good=True, id="run-fresh"), outcome="success")
    queue = site.enter().get("/queue")
    assert "the model is &lt;b&gt;down&lt;/b&gt;" in queue.text
    assert "1 was given up" in queue.text
    assert site.get("/queue/retry").status == 400
    preview = site.get("/queue/retry?run=all")
    assert "run-stuck" in preview.text
    assert "run-fresh" not in preview.text
    with opened(bank_file) as bank:
        assert bank.runs.get("run-stuck").status == "failed", "a look changes nothing"
    assert site.post("/queue/retry", {"csrf": preview.csrf, "run": ["run-stuck", "run-fresh"]}).status == 303
    assert "Learned from 2 of 2 runs: 1 new lesson" in site.get("/queue").text
    with opened(bank_file) as bank:
        assert {bank.runs.get(f"run-{name}").status for name in ("stuck", "fresh")} == {"learned"}


def test_two_runs_are_chosen_in_the_list_and_named_by_how_they_ended(unchanged: Site) -> None:
    runs = unchanged.get("/runs").text
    assert 'action="/compare"' in runs and 'name="run" value="run-0' in runs
    text = unescape(unchanged.get("/compare?run=run-005&run=run-010").text)
    for place in ("first", "second"):
        assert re.search(rf"the {place} run, (success|failure), \d steps?, <time[^>]+>20\d\d-\d\d-\d\d", text)
    assert re.search(
        r"(went apart in step \d|Step \d is the first that differs, in its values): one did <code>\w+\(", text
    )
    assert "the words that differ" in text and ("<del>" in text or "<ins>" in text)
    assert "Step 1 is the first that differs, in its values" in unchanged.get("/compare?a=run-005&b=run-010").text
    for both, status in (("run=run-005", 400), ("a=run-005", 400), ("a=run-005&b=none", 404)):
        assert unchanged.get(f"/compare?{both}").status == status
    others = unchanged.get("/runs/run-005/others").text
    assert "Compare with" in others or "None is kept" in others
    assert not re.search(r"Compare with run-", others)


def test_the_map_of_the_topics_names_them(unchanged: Site) -> None:
    topics = unchanged.get("/topics").text
    assert topics.count("<circle") >= 14
    assert "cancel pending order" in topics


def test_a_change_of_wording_beside_the_same_call_is_no_parting() -> None:
    call = (ToolCall(name="get_order", arguments={"id": 7}),)
    one, other = (Step(action=Action(text=said, calls=call)) for said in ("Let me look.", "I look it up."))
    away = Step(action=Action(text="Let me look.", calls=(ToolCall(name="cancel", arguments={"id": 7}),)))
    assert first_difference((one, one), (other, away)) == 2


def test_a_change_names_its_lesson_once(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        (edit,) = [one.entry for one in bank.history.list() if isinstance(one.entry, Edit)]
    lines = re.findall(r'<li id="change-\d+"><p>(.*?)</p>', site.enter().get("/history").text, re.DOTALL)
    (line,) = [one for one in lines if one.startswith("<b>edited")]
    assert line.count(edit.title) == 1


def test_a_search_that_finds_nothing_says_what_was_compared(unchanged: Site) -> None:
    text = unchanged.get("/lessons?q=quantum+chromodynamics&by=task").text
    assert "compares words, not meaning" in text and ">for a task<" in text
    assert "No lesson has all of these words." in unchanged.get("/lessons?q=zanzibar").text


def test_lessons_without_a_recall_lead_to_retrieve_and_to_a_try(tmp_path: Path) -> None:
    with opened(tmp_path / "new.db") as bank:
        bank.learn(run_of(1, 0, good=True, id="run-1"), outcome="success")
    with serving(tmp_path / "new.db", scope=SCOPE) as site:
        text = site.enter().get("/helps", HX_Request="true").text
    assert "You have lessons" in text and 'href="/why"' in text
    assert "Nothing was found for any task" not in text


def test_a_lesson_says_who_approved_it_when_and_why(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = bank.lessons.list(state="quarantined")[0]
        assert "Approved by Berta" not in re.sub(
            r"<[^>]+>", "", site.enter().get(f"/lessons/{lesson.id}/versions").text
        )
        (entry,) = bank.lessons.approve(lesson.id, by="Berta", reason="it is so")
    told = re.sub(r"<[^>]+>", "", site.get(f"/lessons/{lesson.id}/versions").text)
    assert f"Approved by Berta, {entry.at:%Y-%m-%d %H:%M} UTC: it is so" in told


def test_a_rollback_shows_which_words_would_change(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = bank.lessons.list(state="active")[0]
        before = bank.history.list()[-1].sequence
        bank.lessons.edit(lesson.id, content=lesson.content + " Whisper it.", by="Ana", reason="tone")
    back = unescape(site.enter().get(f"/history/diff?a={before}&back=yes").text)
    assert "Words that would change back (1)" in back and re.search(r"<del>[^<]*Whisper", back)
    assert re.search(r"<ins>[^<]*Whisper", site.get(f"/history/diff?a={before}&b={before + 1}").text)


def test_settings_and_the_doctor_speak_in_words(unchanged: Site) -> None:
    settings = unchanged.get("/administration").text
    assert "<dt>embedder</dt><dd>lexical" in settings
    assert "<dt>judged by</dt><dd>" in settings
    for own in ("<dt>model</dt>", "<dt>judge</dt>", "<dt>trust</dt>", "memory acts"):  # of the process that shows it
        assert own not in settings
    assert "Each agent brings its own model" in settings
    assert not re.search(r"<dd>(True|False|None)</dd>", settings)
    assert "no search by vectors finds" not in unchanged.get("/doctor").text


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("/lessons", ("probation", "quarantined", "guardrail")),
        ("/inbox", ("quarantined", "active")),
        ("/why", ("recall", "settled", "withheld")),
        ("/runs", ("ground truth",)),
    ],
)
def test_a_word_is_explained_where_it_stands_without_a_script(
    unchanged: Site, where: str, words: tuple[str, ...]
) -> None:
    text = unchanged.get(where).text
    told = re.findall(r"<details class=\"fold meanings\">.*?</details>", text, re.DOTALL)[0]
    for word in words:
        assert re.search(rf"<dt>{word}</dt><dd>[^<]{{20,}}</dd>", told)
    if where == "/lessons":
        assert re.search(r'<span class="badge probation" title="a new lesson: [^"]+">probation</span>', text)


def test_titles_that_begin_alike_are_cut_where_they_do_not_differ(site: Site, bank_file: Path) -> None:
    same = "Before you cancel an order for a customer of the shop, " * 3
    with opened(bank_file) as bank:
        for shop in ("Oslo", "Rome"):
            bank.lessons.add(title=f"{same}ask whether {shop} ships it", content=f"Ask {shop}.", task=shop, by="Ben")
        ids = [bank.lessons.list(text=shop)[0].id for shop in ("Oslo", "Rome")]
        bank.lessons.quarantine(*ids, reason="to look at", by="Ben")
    site.enter()
    for where in ("/lessons", "/inbox"):
        titles = re.findall(r"<a [^>]*>(Before you cancel an order[^<]*)</a>", site.get(where).text)
        assert len({one for one in titles if " … " in one and len(one) < 200}) >= 2
        assert any("Oslo" in one for one in titles) and any("Rome" in one for one in titles)


@given(st.lists(st.text("ab ", max_size=80), max_size=6), st.integers(50, 70))
def test_cut_titles_are_short_and_differ_where_the_titles_do(titles: list[str], most: int) -> None:
    plain = [" ".join(one.split()) for one in titles]
    cut = apart(titles, most)
    assert all(len(one) <= most + 5 for one in cut)
    assert all(said == one for said, one in zip(cut, plain, strict=True) if len(one) <= most)


def test_long_titles_that_begin_alike_differ_once_cut() -> None:
    for shared in range(0, 400, 7):
        titles = [f"{'word ' * 80}"[:shared] + end for end in ("Oslo" + " tail" * 30, "Rome" + " tail" * 30, "Zug")]
        assert len(set(apart(titles, 90))) == 3, shared
    assert apart(["x" * 100, "x" * 100], 50) == ["x" * 50 + " …"] * 2


def test_a_slot_says_what_it_is_and_a_text_that_imitates_one_acts_nowhere(site: Site, bank_file: Path) -> None:
    told = "Call `cancel(order=<order from the request>)` for <…>; <b onclick=x()>not</b> <script>."
    with opened(bank_file) as bank:
        lesson = bank.lessons.add(title="Cancel", content=told, when="Refund <order>", task="Cancel it", by="Ana")
    site.enter()
    for where in (f"/lessons/{lesson.id}", "/lessons"):
        page = site.get(where).text
        assert "a place for a value of the task at hand: its order from the request" in page
        assert 'title="a word that was left out, because it belongs to one case">&lt;…&gt;</abbr>' in page
        assert "<b onclick" not in page
        assert "<script>." not in page
    assert "slot" in words(site.get("/words"))


def test_a_lesson_whose_words_were_changed_says_why_nothing_is_known_of_it(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = bank.recalls.list(limit=1)[0].candidates[0].lesson_id
        bank.lessons.edit(lesson, content="Say what is possible first.", by="Ana")
    assert "Its words were changed, and no task has found it since" in site.enter().get(f"/lessons/{lesson}/lift").text


def test_a_table_names_each_number_for_a_phone(unchanged: Site) -> None:
    for where, name in (
        ("/evidence", "change"),
        ("/evidence", "interval however often you look"),
        ("/administration", "Runs"),
    ):
        assert f'data-name="{name}"' in unchanged.get(where).text


def test_steps_that_a_lesson_names_are_found_in_their_runs() -> None:
    told = Provenance(trajectory_ids=("r1", "r2"), evidence=("step 7", "run 2, step 3", "run 9, step 1", "nothing"))
    lesson = Lesson(title="t", content="c", provenance=told)
    assert named_steps(lesson) == {"r1": frozenset({7}), "r2": frozenset({3})}


def test_runs_part_where_they_do_different_things() -> None:
    go, stay = Step(action="go"), Step(action="stay")
    assert first_difference((go, go), (go, stay)) == 2
    assert first_difference((go,), (go, go)) == 2
    assert first_difference((go,), (Step(action=Action(text="go"), observation="elsewhere"),)) is None


def test_texts_with_the_same_words_lie_together() -> None:
    texts = ["cancel the order"] * 3 + ["book a flight to oslo"] * 3
    spots = placed(texts)
    assert spots[0] == pytest.approx(spots[2], abs=1e-6)
    assert spots[3] == pytest.approx(spots[5], abs=1e-6)
    assert spots[0] != pytest.approx(spots[3], abs=1e-6)
    assert placed(["one"]) == [(0.0, 0.0)]
