"""What the page of an experiment says of lessons, scores, costs and errors, and that all of it is inert."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank.contracts.records import Step, Trajectory
from lessonbank_bench.arms import lesson_code
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.curves import KINDS, course
from lessonbank_bench.experiment.journal import BANKS, read_rows
from lessonbank_bench.experiment.lesson_effects import Said, randomised, shown_in, used, what_was_said
from lessonbank_bench.experiment.records import AttemptRow, Experiment, Failure, Lesson, file_name, made
from lessonbank_bench.experiment.report import page
from lessonbank_bench.experiment.runner import run

from .experiments import made_row as row

CODE = lesson_code("Open first", "Open the record before all else.")
LESSON = Lesson(kind="strategy", title="Open first", content="Open the record before all else.")


def asked(**more: Any) -> Experiment:
    arms = [{"name": "none"}, {"name": "new", "memory": "random"}]
    return made({"arms": arms, "seeds": [1, 2, 3], "tasks": 6, "environment": "desk", **more}, source="test")


def both(**more: Any) -> list[AttemptRow]:
    """Three seeds of six tasks; the new arm does all but the first of each, the baseline none."""
    return [
        row(arm, seed, place, arm == "new" and place > 0, **(more if arm == "new" else {}))
        for seed in (1, 2, 3)
        for place in range(6)
        for arm in ("none", "new")
    ]


class _Read(HTMLParser):
    """The tags, that they close, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.seen, self.words = list[str](), set[str](), ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not any(name in ("src", "href", "srcset") or name.startswith("on") for name, _ in attrs)
        if tag not in ("meta", "path", "line", "circle", "polygon", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += f" {data}"


def read(text: str) -> str:
    """The page's words, after a check that it is whole and runs nothing."""
    found = _Read(text)
    assert not found.seen & {"script", "img", "link", "iframe", "object"}
    return " ".join(found.words.split())


def block(*lessons: tuple[str, str, str], code: str = "0a1b2c3d") -> str:
    lines = [f"{code}| [{n}] {kind}: {title}\n{code}|   {said}" for n, (kind, title, said) in enumerate(lessons, 1)]
    return "\n".join(
        ["Lessons stand here.", f"<<<lessons {code}>>>", "~~~", *lines, "~~~", f"<<<end lessons {code}>>>"]
    )


def test_lessons_are_read_from_between_the_marker_lines_and_nowhere_else() -> None:
    text = block(("strategy", "One", "Do it."), ("guardrail", "Two", "[9] strategy: a forgery inside of the content"))
    assert shown_in(text) == (
        Said("strategy", "One", "Do it."),
        Said("guardrail", "Two", "[9] strategy: a forgery inside of the content"),
    )
    assert shown_in(text.replace("0a1b2c3d", "9a1b2c3d", 1)) == ()
    assert shown_in("[1] strategy: not in a fence") == ()
    assert len(shown_in(f"{text}\n\n{block(('strategy', 'Three', 'x'), code='ffffffff')}")) == 3


def test_a_lesson_is_counted_on_the_tasks_it_was_shown_for_and_beside_the_baseline_on_those() -> None:
    rows = both(shown=(CODE, CODE), lessons=(LESSON,))
    rows = [one for one in rows if (one.arm, one.seed, one.place) != ("none", 1, 3)]
    rows += [row("none", 1, 3, None, error=Failure(stage="attempt", code="x", message="gone"))]
    (found,) = used(asked(), rows)
    assert (found.arm, found.said.title, found.seeds) == ("new", "Open first", 3)
    assert (found.shown, found.succeeded, found.pairs, found.base) == (18, 15, 17, 0)
    assert (found.better, found.worse) == (14, 0)
    assert found.always.estimate == pytest.approx(14 / 17)
    assert 0 < found.always.low < 14 / 17 < found.always.high <= 1


def test_a_lesson_that_no_row_wrote_is_named_as_it_stood_in_the_prompt() -> None:
    merged = lesson_code("Merged", "Both at once.")
    text = block(("strategy", "Merged", "Both at once."))
    rows = [row("new", 1, 0, True, memory=text, shown=(merged,)), row("new", 1, 1, True, shown=("unseen",))]
    assert what_was_said(rows) == {merged: Said("strategy", "Merged", "Both at once.")}
    assert [one.said.title for one in used(asked(), rows)] == ["Merged", "unseen"]


def test_the_page_says_that_what_is_observed_of_a_lesson_is_no_effect_of_it() -> None:
    words = read(page(asked(), both(shown=(CODE,), lessons=(LESSON,), memory=block(("strategy", "Open first", "…")))))
    assert "nothing here is the effect of a single lesson" in words
    assert "1 lesson was shown, counted for each arm; 1 of them for 5 tasks or more" in words
    assert "1. Open first" in words
    assert "+83.3 points" in words
    assert "left out at random:" not in words


def test_a_page_without_lessons_says_nothing_of_them() -> None:
    assert "Single lessons" not in page(asked(), both())


@pytest.fixture(scope="module")
def withheld(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment's folder whose one bank left lessons out at random."""
    folder = tmp_path_factory.mktemp("withheld")
    (folder / BANKS).mkdir()
    with lessonbank.connect(
        ":memory:", scope="desk/1", embedder="lexical", evidence=lessonbank.Evidence(holdout=0.3)
    ) as bank:
        for number in range(60):
            recall = bank.retrieve(f"close ticket number {number}")
            steps = (Step(action="press A", observation="nothing happened"), Step(action="press B", observation="done"))
            done = Trajectory(task=f"close ticket number {number}", steps=steps)
            bank.learn(done, recall=recall, outcome="success" if recall.shown or number == 0 else "failure")
        bank.admin.export(folder / BANKS / file_name("new", 1))
    (folder / BANKS / file_name("none", 1)).write_bytes(b"")
    return folder


def test_the_randomised_estimate_is_there_where_lessons_were_left_out_at_random(withheld: Path) -> None:
    (found,) = randomised(asked(), withheld)
    assert (found.arm, found.seed) == ("new", 1)
    assert found.lift.success.value is not None
    assert found.lift.controls > 5
    words = read(page(asked(), both(), folder=withheld))
    assert "Single lessons, left out at random: new, seed 1" in words
    assert "probabilities that were fixed before the draw" in words
    assert "Memory as a whole changes success by" in words


def test_an_arm_that_shows_all_it_has_gives_no_randomised_estimate(tmp_path: Path) -> None:
    what = asked(seeds=[1], tasks=5, arms=[{"name": "none"}, {"name": "lessonbank"}])
    run(what, DeskEnvironment(), tmp_path)
    experiment, rows = read_rows(tmp_path)
    assert randomised(experiment, tmp_path) == ()
    assert any(one.shown for one in rows)
    assert "Single lessons, as they were shown" in page(experiment, rows, folder=tmp_path)


def test_costs_and_tokens_are_drawn_where_they_are_known_and_their_lack_is_said_where_not() -> None:
    known = page(asked(), both(tokens=900, requests=3, cost=0.0125, steps=4))
    assert "US dollars for a task, so far" in known
    assert "tokens for a task, so far" in known
    assert "0.0125" in read(known)
    unknown = read(page(asked(), both()))
    assert "No tokens were counted" in unknown
    assert "What attempts cost is not known" in unknown


def test_the_verifiers_scores_are_a_table() -> None:
    words = read(page(asked(), both(scores={"element accuracy": 0.5, "F1": 0.25})))
    assert "Scores Means over attempts" in words
    assert "0.5 [0.5, 0.5]" in words
    assert "element accuracy 0.5, F1 0.25" in words
    assert "Differences to the baseline" not in words, "the baseline was not measured so"
    rows = [one.model_copy(update={"scores": {"F1": 0.5 if one.arm == "new" else 0.25}}) for one in both()]
    assert "new +0.25 [+0.25, +0.25]" in read(page(asked(), rows))
    assert "Means over attempts" not in read(page(asked(), both()))


def test_errors_of_infrastructure_are_a_table_and_no_failures() -> None:
    broken = Failure(stage="attempt", code="model_transient", message="HTTP 503 <b>")
    rows = [*both(), row("new", 4, 0, None, error=broken), row("none", 4, 0, False)]
    words = read(page(asked(), rows))
    assert "1 with an error of infrastructure" in words
    assert "new attempt model_transient 1 HTTP 503 <b>" in words
    assert "17% of 18" in words or "83% of 18" in words


def test_steps_of_attempts_that_are_graded_later_are_drawn() -> None:
    rows = [row(arm, 1, place, None, steps=5) for place in range(4) for arm in ("none", "new")]
    text = page(asked(), rows)
    assert "steps for a task, so far" in text
    assert "no outcome yet, 5 steps" in read(text)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "synthetic, scripted model"),
        ({"model": "openai:any"}, "synthetic"),
        ({"environment": "miniwob"}, "scripted model"),
        ({"environment": "webarena", "model": "openai:any"}, ""),
    ],
)
def test_a_made_up_world_and_a_script_are_named_before_any_number(more: dict[str, Any], told: str) -> None:
    text = page(asked(**more), both())
    assert (f'<span class="made-of">{told}</span>' in text) == bool(told)
    assert ('class="made-of"' in text) == bool(told)


def attempts(text: str) -> Iterator[str]:
    yield from re.findall(r'<details class="attempt"><summary>(.*?):', text)


def test_attempts_at_one_task_stand_together_in_the_order_of_the_arms() -> None:
    text = page(asked(), both(), attempts=7)
    shown = list(attempts(text))
    assert (len(shown), shown.count("none")) == (7, 4)
    assert all(one == "none" or before == "none" for before, one in itertools.pairwise(shown))
    assert list(attempts(page(asked(), both(), attempts=0))) == []
    assert len(list(attempts(page(asked(), both(), attempts=1000)))) == 36
    assert text == page(asked(), both(), attempts=7)


def test_an_attempt_shows_the_prompt_with_the_block_of_memory_in_its_place() -> None:
    memory = block(("strategy", "Open first", "Open it."))
    done = Trajectory(
        task="t", instructions=f"You are careful.\n{memory}\nEnd with done.", steps=(Step(action="a", observation="b"),)
    )
    text = page(asked(), [row("new", 1, 0, True, memory=memory, run=done, verdict="success", told=True)])
    words = read(text)
    assert (
        words.index("You are careful.") < words.index("Put in by memory, within the instructions") < words.index("[1]")
    )
    assert words.index("[1] strategy: Open first") < words.index("End with done.")
    assert "<pre class=memory>" in text
    assert "Memory was told: success. It took the attempt for a success." in words
    plain = read(page(asked(), [row("new", 1, 0, True, memory=memory, run=Trajectory(task="t"), shared="other")]))
    assert "Put in by memory (SHA-256" in plain
    assert "The attempt is that of other, which was shown the same." in plain


def test_a_hostile_page_stays_inert() -> None:
    bad = "</pre><script>alert(\"x\")</script>\x1b[31m\u202e<img src=x onerror=1> & 'all' http-ish"
    lesson = Lesson(kind=bad, title=bad, content=bad)
    rows = both(
        task=bad,
        family=bad,
        shown=(lesson.code,),
        lessons=(lesson,),
        memory=bad,
        scores={bad: 1.0},
        notes=(bad,),
        run=Trajectory(
            task=bad, instructions=f"x{bad}y", steps=(Step(thought=bad, action=bad, observation=bad),), error=bad
        ),
    )
    rows.append(row("new", 9, 0, None, error=Failure(stage="learn", code=bad, message=bad)))
    text = page(asked(name=bad), rows)
    read(text)
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not re.search(r"https?:|url\(|@import", text)
    assert text == page(asked(name=bad), rows)


def test_a_page_has_a_curve_of_each_number_both_halves_every_family_and_so_many_attempts() -> None:
    arms = [{"name": "none"}, {"name": "a/a", "again": True}, {"name": "new", "memory": "random"}]
    experiment = asked(arms=arms)
    rows = [
        row(arm, seed, place, arm == "new" and place > 0, steps=4, tokens=100)
        for seed in (1, 2, 3)
        for place in range(6)
        for arm in ("none", "a/a", "new")
    ]
    text = page(experiment, rows, attempts=7)
    assert text.count('<details class="attempt"') == 7
    assert text.count("<svg") == 7  # the differences; success, steps and tokens, for two arms beside the baseline
    for what in ("early half", "late half", "family 1", "noise floor", "Each arm against the baseline"):
        assert what in read(text)
    assert 'class="attempt"' not in page(experiment, rows, attempts=0)
    read(page(experiment, []))
    read(page(asked(arms=arms, seeds=[1]), rows[:3]))


def test_what_a_frozen_bank_learned_while_it_was_trained_is_drawn() -> None:
    experiment = asked(mode="frozen", train=3, tasks=3)
    rows = [one.model_copy(update={"phase": "train" if one.place < 3 else "test"}) for one in both()]
    rows = [
        one.model_copy(update={"lessons": (LESSON,)}) if one.place < 3 and one.arm == "new" else one for one in rows
    ]
    text = page(experiment, rows)
    assert "Lessons written" in read(text)
    assert "9 of 9" not in read(text), "what is compared is the test alone"


def test_a_text_of_nothing_but_marker_lines_is_read_in_time() -> None:
    lines = [f"<<<lessons {number:08x}>>>" for number in range(50_000)]
    assert shown_in("\n".join(lines)) == ()
    assert shown_in("\n".join(["<<<lessons 0a1b2c3d>>>", *["0a1b2c3d| [1] strategy: x"] * 5_000])) == ()


def test_a_curve_ends_at_what_the_table_says_where_a_task_has_no_outcome() -> None:
    rows = [row("new", seed, place, seed == 1) for seed in (1, 2) for place in range(4)]
    rows[1] = row("new", 1, 1, None, error=Failure(stage="attempt", code="x", message="gone"))
    one = course(rows, KINDS[0].value, level=0.95)
    assert one is not None
    assert list(one.places) == [1, 2, 3, 4]
    assert list(one.mean) == [0.5, 0.5, 0.5, 0.5]
    tail = course([*rows, row("new", 1, 4, True)], KINDS[0].value, level=0.95)
    assert tail is not None
    assert tail.mean[-1] == 1.0, "the other seed is not that far yet"
    late = course([row("new", 1, 0, None, error=rows[1].error), row("new", 1, 1, True)], KINDS[0].value, level=0.95)
    assert late is not None
    assert (list(late.places), list(late.mean)) == ([2], [1.0])
    assert course([], KINDS[0].value, level=0.95) is None
    assert course([rows[1]], KINDS[0].value, level=0.95) is None


def test_what_is_no_claim_of_its_own_stands_beside_the_claims() -> None:
    arms = [{"name": "none"}, {"name": "a/a", "again": True}, {"name": "new", "memory": "lessonbank"}]
    experiment = asked(arms=arms, leave_out=["task"])
    rows = [
        row(arm.name, seed, place, arm.name == "new" and place > 0)
        for seed in experiment.seeds
        for place in range(6)
        for arm in experiment.arms
    ]
    text = page(experiment, rows[:-1])
    assert re.findall(r'<p class="answer \w+">(.*?) against', text) == ["new"]
    assert "<p class=soft>new, other tasks against none" in text
    assert "<p class=soft>a/a against none" in text
    assert "71 of 72 attempts so far" in text


def test_a_page_of_an_experiment_that_may_stop_early_says_by_what_it_goes() -> None:
    assert "may stop as soon as every arm is shown to differ" in page(asked(stop=True), both())
    assert "McNemar&#x27;s exact test, adjusted" in page(asked(), both())
