"""The pages that answer questions: does it help, why was this shown, what changed, what would go."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import anyio
import pytest
from seeding import SCOPE, opened, run_of
from serving_pages import Site, serving

import lessonbank
from lessonbank import Action, Learning, Step, Trajectory
from lessonbank.pages.comparing import first_difference
from lessonbank.pages.evidence_steps import named_steps
from lessonbank.pages.rendering import differences
from lessonbank.pages.topics import placed
from lessonbank.types import Lesson, Provenance

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
    assert "What memory changed" in site.get("/evidence").text


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


@pytest.mark.parametrize("bank_file", ["file", "postgres"], indirect=True)
def test_a_task_is_tried_with_settings_that_its_address_says(site: Site, bank_file: Path | str) -> None:
    task = "task=Cancel+pending+order+%23W777"
    with opened(bank_file) as bank:
        before = bank.admin.counts(), len(bank.history.list())
    own = site.enter().get(f"/why?{task}")
    assert '<details class="settings">' in own.text, "folded, as long as nothing is chosen"
    blank = site.get(f"/why?{task}&limit=&by=&budget=&floor=&diversity=&exclude=&trust=&kind=&preface=")
    assert (blank.status, "Look up" in blank.text or "Check the order" in blank.text) == (200, True)
    tried = {
        "limit=50&floor=0": lambda text: text.count('scope="row"') > own.text.count('scope="row"'),
        "budget=100": lambda text: "does not fit the budget of 100 tokens" in text,
        "floor=1": lambda text: "+floor(1)" in text,
        "preface=Hints+of+%3Cb%3Eold%3C%2Fb%3E": lambda text: "Hints of &lt;b&gt;old" in text,
        "by=lexical&diversity=0.5": lambda text: "+diverse(0.5)" in text,
        "exclude=template": lambda text: "same template" in text,
        "trust=reviewed": lambda text: "+reviewed" in text,
        "kind=guardrail": lambda text: "<option selected>guardrail" in text and "+guardrail" in text,
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


def test_a_preview_draws_nothing_and_says_why_it_is_empty(bank_file: Path) -> None:
    with opened(bank_file, holdout=0.9) as bank:
        told = [bank.recalls.preview("Cancel pending order #W777") for _ in range(10)]
        assert all(one.text and not one.kept and not one.withheld and not one.control for one in told)
        assert bank.recalls.preview("quantum chromodynamics").notes


def test_a_recall_shows_what_was_found_and_how_its_task_ended(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        recall = next(one for one in bank.recalls.list() if one.candidates)
    site.enter()
    assert recall.candidates[0].lesson_id in site.get(f"/why/{recall.id}").text
    assert re.search(r"As a (success|failure)\.", site.get(f"/why/{recall.id}/explained").text)


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


def test_the_time_line_is_read_to_its_beginning(site: Site) -> None:
    site.enter()
    seen, at = list[int](), "/history"
    while at:
        text = site.get(at).text
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
    assert "/purge?run=noah-2" in site.get("/runs/noah-2").text


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
    assert "an agent on this machine" in site.get("/administration").text
    assert "The records are sound" in site.get("/doctor").text
    with opened(bank_file) as bank:
        bank.admin.add_reviewer("Ana")
    assert "Reviewers with a key: ana" in site.get("/administration").text


def test_runs_that_were_given_up_are_tried_again_after_a_look_at_them(site: Site, bank_file: Path) -> None:
    async def give_up() -> None:
        learning = Learning(submit="worker")
        async with await lessonbank.connect_async(
            bank_file, scope=SCOPE, embedder="lexical", learning=learning
        ) as bank:
            for name, tries in (("stuck", 1), ("fresh", 0)):
                await bank.submit(run_of(7, 0, good=True, id=f"run-{name}"), outcome="success")
                for _ in range(tries):
                    (claim,) = await bank.store.claim(worker="w", limit=1, seconds=60, scope=SCOPE)
                    why = "the model is <b>down</b>"
                    await bank.store.release(claim.trajectory.id, scope=SCOPE, worker="w", error=why, wait=None)

    anyio.run(give_up)
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


def test_two_runs_and_the_topics_are_shown(site: Site) -> None:
    site.enter()
    assert "They went apart in step 1" in site.get("/compare?a=run-005&b=run-010").text
    assert site.get("/compare?a=run-005").status == 400
    assert site.get("/compare?a=run-005&b=none").status == 404
    assert (
        "Compare with" in site.get("/runs/run-005/others").text
        or "None is kept" in site.get("/runs/run-005/others").text
    )
    topics = site.get("/topics").text
    assert topics.count("<circle") >= 14
    assert "cancel pending order" in topics


def test_words_that_changed_are_marked() -> None:
    assert differences("read the order", "read the whole order twice") == [
        ("same", "read the "),
        ("new", "whole "),
        ("same", "order "),
        ("new", "twice "),
    ]
    assert differences("a b", "c d") == [("gone", "a b "), ("new", "c d ")]


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


def test_the_trials_of_a_folder_are_shown_with_how_far_they_are(bank_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "trials"
    folder.mkdir()
    tasks = [f"Cancel pending order #T{number}" for number in range(4)]

    def agent(task: str, memory: str) -> Trajectory:
        if len(list(folder.glob("broken.jsonl"))) and task.endswith("T2"):
            raise OSError("the world is gone")
        return Trajectory(task=task, instructions=memory, answer="done" if memory else "no")

    with opened(bank_file, holdout=None) as bank:
        told = bank.trial(tasks, agent, verify=lambda run: run.answer == "done", resume=folder / "whole.jsonl")
        with pytest.raises(OSError, match="the world is gone"):
            bank.trial(tasks, agent, verify=lambda run: run.answer == "done", resume=folder / "broken.jsonl")
    (folder / "other.jsonl").write_text("<b>nothing</b>", encoding="utf-8")
    with serving(bank_file, trials=folder) as site:
        assert "/trials" in site.enter().get("/evidence").text
        text = unescape(site.get("/trials").text)
    assert str(told).splitlines()[0] in text
    assert f"{told.runs} runs of at most 8" in text
    assert told.stopped is not None and f">{told.stopped}<" in text
    assert re.search(r"broken\.jsonl.*?\d runs? of at most 8.*?not ended", text, re.DOTALL)
    assert "is no journal of a trial" in text


def test_pages_without_a_folder_of_trials_say_how_to_show_them(site: Site) -> None:
    answer = site.enter().get("/trials")
    assert (answer.status, "--trials FOLDER" in answer.text) == (404, True)
    assert "/trials" not in site.get("/evidence").text
