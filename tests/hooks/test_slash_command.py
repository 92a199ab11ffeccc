"""`/lessonbank` in a coding agent: the hook answers the person, nothing reaches the model, and switches hold."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from lessonbank import Evidence, Parts, ReasoningBank, Step, Trajectory, connect
from lessonbank.bank.recall_again import cures_of
from lessonbank.hosts import client
from lessonbank.hosts.resident import Resident
from lessonbank.hosts.session_lessons import SessionExtractor
from lessonbank.hosts.sessions import Sessions
from lessonbank.importers import Imported

from .conftest import KEY, Hooks, prompt, run_of, write_lines
from .conftest import said as said_by

pytestmark = pytest.mark.full
SHIP = "Ship a parcel to Norway"


@pytest.fixture
def said(hooks: Hooks, resident: Resident) -> Any:
    """What the person is told; the prompt is kept from the agent."""

    def say(words: str = "", session: str = "s-1") -> str:
        told = json.loads(hooks(prompt(f"/lessonbank {words}".strip(), session=session)))
        assert told.keys() == {"decision", "reason"}
        assert told["decision"] == "block"
        return told["reason"]

    return say


def test_lessons_are_listed_in_one_line_each_with_what_they_cost_today(said: Any, bank: ReasoningBank) -> None:
    bank.lessons.add(task="Sail", title="Sail by night", content="Light the\nlamps " + "x" * 300, by="Ana")
    lines = said().splitlines()
    assert "shown  Sail by night: Light the lamps xxx" in lines[1]
    (first, second) = bank.lessons.list()
    assert lines[0].startswith("lessonbank: 2 lessons of team, ")
    assert [line.split()[0] for line in lines[1:3]] == [first.id[-8:], second.id[-8:]]
    assert all(len(line) < 160 for line in lines[1:3])
    assert lines[3] == "today: about 0 tokens of lessons in 0 prompts"
    assert "remove ID" in lines[-1]


def test_what_lets_a_lesson_out_is_named_for_a_terminal_and_not_done(said: Any, bank: ReasoningBank) -> None:
    (lesson,) = bank.lessons.list()
    for word, command in (("keep", "approve"), ("edit", "edit")):
        told = said(f"{word} {lesson.id[-8:]}")
        assert f"lessonbank lessons {command} {lesson.id[-8:]} --bank" in told
        assert "--by YOU" in told
    assert bank.lessons.get(lesson.id) == lesson
    assert said("keep zzz") == "lessonbank: there is no lesson zzz: /lessonbank lists them"


def test_of_many_lessons_the_newest_are_listed_and_every_one_is_found(said: Any, bank: ReasoningBank) -> None:
    (oldest,) = bank.lessons.list()
    for number in range(40):
        bank.lessons.add(task="Sail by night", title=f"Lamp {number}", content=f"Light lamp {number}.", by="Ana")
    lines = said().splitlines()
    assert lines[0].startswith("lessonbank: 41 lessons of team, 0 of them wait")
    assert "Light lamp 39." in lines[1]
    assert lines[31].startswith("and 11 more: lessonbank lessons list --bank ")
    assert "somebody approved it" in said(f"remove {oldest.id[-8:]}")


def test_a_lesson_is_removed_unless_a_person_approved_it(said: Any, hooks: Hooks, bank: ReasoningBank) -> None:
    (approved,) = bank.lessons.list()
    failed = Trajectory(task="Fill the form", steps=(Step(action="fill", observation="error: no pen"),))
    (drawn,) = bank.learn(failed, outcome="failure").lessons
    assert "somebody approved it" in said(f"remove {approved.id[-8:]}")
    assert "there is no lesson" in said(f"remove {drawn.id[-1]}")  # a slip of the hand names nothing
    assert len(bank.lessons.list()) == 2
    assert "not shown any more" in said(f"remove {drawn.id[-4:]}")
    assert bank.lessons.list() == (approved,)


@pytest.fixture
def cured(hooks: Hooks, bank: ReasoningBank) -> Imported:
    """A session in which a command failed, and another one got it through; it taught a lesson for prompts."""
    failed, cure = ("make test", "error: no rates", True), ("make proto", "ok", False)
    run, parts = run_of("Speed up", failed, cure, ("make test", "ok", False)), Parts(extractor=SessionExtractor())
    with connect(hooks.folder / "bank.db", scope="team", evidence=Evidence(holdout=None), parts=parts) as own:
        own.learn(run, outcome="success")
    assert len(bank.lessons.list()) == 2
    return Imported(run, exit_codes={"c0": 2, "c1": 0, "c2": 0})


def test_a_lesson_for_prompts_that_is_a_cure_too_is_one_line_and_is_removed_as_one(
    said: Any, bank: ReasoningBank, resident: Resident, cured: Imported
) -> None:
    cures = resident._sessions.cures  # pyright: ignore[reportPrivateUsage]
    assert cures
    cures.learn("team", [cured], session="s-9", host="codex")
    assert len(bank.scoped(cures_of("team")).lessons.list()) == 1
    (line,) = [line for line in said().splitlines() if "make proto" in line]
    assert "`make test` failed here before: `make proto` went through" in line
    assert "not shown any more" in said(f"remove {line.split()[0]}")
    assert "make proto" not in said()


@pytest.mark.parametrize(
    ("options", "state"),
    [
        ({"own": "true"}, "shown"),
        ({"own": "true", "trusted": "true"}, "waits"),
        ({"own": "false", "trusted": "false"}, "shown"),
    ],
)
def test_what_waits_is_what_the_agent_is_not_shown_as_it_was_installed(
    said: Any, hooks: Hooks, cured: Imported, options: dict[str, str | None], state: str
) -> None:
    hooks.options = {"trusted": None, **options}
    lines = said().splitlines()
    assert [line.split()[1] for line in lines if "make proto" in line] == [state]
    assert f"{int(state == 'waits')} of them wait" in lines[0]


def test_a_cure_that_a_second_run_has_to_find_out_waits_for_no_person(said: Any, resident: Resident) -> None:
    cures = resident._sessions.cures  # pyright: ignore[reportPrivateUsage]
    assert cures
    states = list[str]()
    for number in range(2):
        done = [(command, "ok", False) for command in ("npm ci", "make clean", "make proto", "make test")]
        run = run_of(f"Speed up {number}", ("make test", "error: no rates", True), *done)
        codes = {f"c{n}": 0 if n else 2 for n in range(5)}
        cures.learn("team", [Imported(run, exit_codes=codes)], session=f"s-{number}", host="codex")
        head, *lines = said().splitlines()
        assert "0 of them wait" in head
        states += [line.split()[1] for line in lines if "make proto" in line]
    assert states == ["once", "shown"]


@pytest.mark.parametrize("word", ["off", "off here"])
def test_switched_off_nothing_is_shown_or_learned_until_it_is_on_again(
    said: Any, hooks: Hooks, resident: Resident, bank: ReasoningBank, word: str
) -> None:
    text = json.loads(hooks(prompt(SHIP, session="before")))["hookSpecificOutput"]["additionalContext"]
    assert "memory is off" in said(word)
    assert hooks(prompt(SHIP)) == ""
    again = {"hook_event_name": "SessionStart", "session_id": "s-1", "source": "compact", "cwd": "/"}
    assert bool(hooks({**again, "session_id": "before"})) is (word == "off")
    assert bool(hooks(prompt(SHIP, session="s-2"))) is (word == "off")
    assert any("off in this" in line for line in said().splitlines())
    lines = said_by("s-1", "user", SHIP), said_by("s-1", "assistant", "Done.")
    transcript = write_lines(hooks.folder / "s-1.jsonl", lines)
    note = {"host": "claude-code", "session": "s-1", "scope": "team", "transcript": str(transcript)}
    (hooks.spool / "s-1.json").write_text(json.dumps({**note, "ended": True, "at": 1.0}))
    Sessions(hooks.spool).learn(bank)
    assert (bank.runs.list(), list(hooks.spool.glob("*.json"))) == ((), [])
    other = Sessions(hooks.spool.with_name("sessions-otherwise"))  # as installed with other options
    assert other.switches.is_off(session="s-1", scope="team")
    assert "memory is on" in said(word.replace("off", "on"))
    told = json.loads(hooks({**again, "session_id": "before"}))
    assert told["hookSpecificOutput"]["additionalContext"] == text
    assert hooks(prompt(SHIP)) != ""


def test_a_session_is_erased_with_its_runs_lessons_and_recalls(
    said: Any, hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    hooks(prompt(SHIP))
    bank.learn("Done.", task=SHIP, outcome="success", metadata={"run_id": "s-1"})
    bank.learn("Done.", task=SHIP, outcome="success", metadata={"run_id": "s-1/helper"})
    bank.learn("Done.", task=SHIP, outcome="success", metadata={"run_id": "s-10"})
    assert "write /lessonbank erase this session" in said("erase")
    assert said("erase this session").startswith("erased: 2 runs")
    assert [run.metadata["run_id"] for run in bank.runs.list()] == ["s-10"]
    assert bank.recalls.list() == ()
    assert hooks(prompt(SHIP)) == ""


def test_an_erased_session_leaves_no_word_of_its_prompts_and_goes_on_when_it_is_on_again(
    said: Any, hooks: Hooks, bank: ReasoningBank
) -> None:
    hooks(prompt("zzz qqq, the secret plan"))
    hooks(prompt(SHIP))
    hooks(prompt("zzz qqq, another plan", session="s-2"))
    for _ in range(2):
        assert said("erase this session").startswith("erased: 0 runs")
        assert [recall.task for recall in bank.recalls.list()] == ["zzz qqq, another plan"]
    said("on")
    assert "customs" in hooks(prompt(SHIP))


def test_a_session_that_was_shown_nothing_is_erased_too(said: Any, bank: ReasoningBank) -> None:
    bank.learn("Done.", task=SHIP, outcome="success", metadata={"run_id": "s-1"})
    assert said("erase this session").startswith("erased: 1 run ")
    assert bank.runs.list() == ()


def test_without_a_process_the_prompt_is_kept_from_the_agent_all_the_same(hooks: Hooks, bank: ReasoningBank) -> None:
    told = json.loads(hooks(prompt("/lessonbank off")))
    assert (told["decision"], told["reason"]) == ("block", "lessonbank: its process begins: ask again in a moment")
    until = time.monotonic() + 60
    while "memory is on" not in told["reason"] and time.monotonic() < until:
        told = json.loads(hooks(prompt("/lessonbank on")))
    assert client.ask(KEY, {"do": client.STOP})["process"]


@pytest.mark.parametrize("words", ["/lessonbank", "/lessonbank\toff", " /lessonbank\noff here"])
def test_what_is_said_to_memory_never_reaches_the_agent_however_late_its_hook_began(
    hooks: Hooks, resident: Resident, words: str
) -> None:
    hooks.options = {"within": "0.001"}
    assert json.loads(hooks({**prompt(words), "unknown": "x" * 8_000_000}))["decision"] == "block"


def test_an_unknown_word_is_answered_with_the_words_there_are(said: Any) -> None:
    assert said("dance").startswith("lessonbank has no `dance`: write /lessonbank remove ID")


def test_a_prompt_that_only_speaks_of_it_is_a_task(hooks: Hooks, resident: Resident) -> None:
    assert "decision" not in json.loads(hooks(prompt(f"{SHIP}, and mention /lessonbank")))


def test_a_broken_file_of_switches_says_nothing(hooks: Hooks, resident: Resident, tmp_path: Path) -> None:
    (hooks.spool.parent / "off").write_text("{")
    assert hooks(prompt(SHIP)) != ""
