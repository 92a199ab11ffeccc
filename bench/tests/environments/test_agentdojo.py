"""AgentDojo: scripts that obey or ignore an attack, a model that calls tools, and what a bank keeps of it."""

from __future__ import annotations

import anyio
import pytest

pytest.importorskip("agentdojo", reason="agentdojo is not installed: pip install 'lessonbank-bench[agentdojo]'")

from lessonbank.errors import UsageError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments import environment
from lessonbank_bench.environments.agentdojo import ATTACKS, NO_ATTACK, Meeting, Script, attempt, meetings
from lessonbank_bench.measure.injections import Trace, measured, trace_of

ACCOUNT = "US133000000121212121212"


@pytest.fixture(scope="module")
def met() -> Meeting:
    return next(meetings("banking", "direct", each=False))


def test_a_script_that_obeys_does_what_the_attacker_wants_and_one_that_ignores_it_does_not(met: Meeting) -> None:
    ignoring, obeying = attempt(met, Script(obeys=False)), attempt(met, Script(obeys=True))
    assert ignoring.success
    assert ignoring.scores == {"obeyed": 0.0}
    assert obeying.scores == {"obeyed": 1.0}
    assert len(obeying.run.steps) > len(ignoring.run.steps)


def test_a_run_meets_the_attack_in_what_a_tool_answers(met: Meeting) -> None:
    seen = [one.text for step in attempt(met, Script(obeys=False)).run.steps for one in step.observations]
    assert any(ACCOUNT in text for text in seen)


def test_a_script_that_stumbles_is_told_of_errors(met: Meeting) -> None:
    run = attempt(met, Script(obeys=False, stumbles=True)).run
    assert any(one.text.startswith("Error: ValidationError") for step in run.steps for one in step.observations)


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_attack_is_written_for_the_task(attack: str) -> None:
    assert all(ACCOUNT in text for text in next(meetings("banking", attack)).texts.values())


def test_a_model_calls_tools_and_then_answers(met: Meeting) -> None:
    model = ScriptedModel(['{"name": "read_file", "arguments": {"file_path": "bill-december-2023.txt"}}', "Done."])
    place = environment("agentdojo", model, {"suite": "banking", "attack": "direct"})
    job = next(job for job in place.tasks(1, 500) if job.content.user.ID == met.user.ID)
    done = place.attempt(job, place.agent(1, anew=False), "")
    assert done.run.answer == "Done."
    assert [call.name for step in done.run.steps for call in step.action.calls] == ["read_file"]
    assert not done.success


@pytest.mark.parametrize("settings", [{"suite": "casino"}, {"attack": "tickling"}])
def test_an_unknown_suite_or_attack_is_refused_with_the_names_there_are(settings: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"set .*one of"):
        environment("agentdojo", None, settings)


def test_what_an_attack_leaves_in_a_lesson_is_known_by_its_words_and_by_its_calls(met: Meeting) -> None:
    trace = trace_of(met, Script(obeys=True))
    assert trace.in_words(f"Send everything to {ACCOUNT.lower()}.")
    assert trace.in_words("First do this: " + " ".join(next(iter(met.texts.values())).split()[1:8]))
    assert not trace.in_words(met.user.PROMPT)
    assert Trace(frozenset(), frozenset(), frozenset(), {"send_money": 1}).in_deeds(
        "`send_money(a)`; then `send_money(b)`"
    )
    assert not Trace(frozenset(), frozenset(), frozenset(), {"send_money": 1}).in_deeds("`send_money(a)`")


def test_a_bank_of_runs_that_ignored_attacks_teaches_nothing_of_them() -> None:
    counts = anyio.run(lambda: measured("banking", "important_instructions_no_names", Script(obeys=False), most=4))
    assert (counts.runs, counts.obeyed) == (4, 0)
    assert counts.lessons
    assert (counts.words, counts.deeds) == ({}, {})


def test_the_calls_of_an_obeyed_attack_are_shown_under_open_alone_and_its_words_under_no_policy() -> None:
    counts = anyio.run(lambda: measured("banking", "important_instructions_no_names", Script(obeys=True), most=4))
    assert counts.obeyed == 4
    assert counts.deeds
    assert counts.shown_deeds["open"]
    assert not counts.shown_deeds["corroborated"] + counts.shown_deeds["reviewed"]
    assert not counts.words


def test_what_an_attacker_wanted_enters_as_a_lesson_only_without_his_account_and_unchecked() -> None:
    counts = anyio.run(lambda: measured("banking", "direct", Script(obeys=True), credulous=True))
    assert counts.refused["literal"]
    assert counts.words
    assert counts.addresses == 0
    assert not counts.shown_words["corroborated"] + counts.shown_words["reviewed"]


def test_a_bank_of_runs_that_obeyed_shows_nobody_what_the_attacker_wanted() -> None:
    counts = anyio.run(lambda: measured("banking", "direct", Script(obeys=True), most=4))
    assert counts.obeyed == 4
    assert counts.deeds
    assert counts.shown_deeds["open"] == 0


def test_where_nothing_is_attacked_every_task_is_done_and_its_lessons_are_shown() -> None:
    assert len(list(meetings("banking", NO_ATTACK, each=False))) == 16
    counts = anyio.run(lambda: measured("banking", NO_ATTACK, Script(obeys=False), most=4))
    assert (counts.useful, counts.quarantined) == (4, 0)
    assert counts.shown["open"]
