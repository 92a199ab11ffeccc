"""What a person says as a rule of the repository is kept, and shown with the first prompt of the next sessions."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from linear import PIECES, too_slow
from waiting import until

from lessonbank import Evidence, ReasoningBank, Trajectory, connect
from lessonbank.bank.recall_again import AFTER, cures_of
from lessonbank.contracts.records import Observation, Step, ToolCall
from lessonbank.contracts.records.runs import Action
from lessonbank.hosts.corrections import corrections_in, rules_in
from lessonbank.hosts.cures import Cures
from lessonbank.hosts.resident import Resident
from lessonbank.hosts.week import week_of

from .conftest import Hooks, called, hung_up, learned, prompt
from .conftest import said as line
from .corrections import LATER_OTHERS, LATER_RULES, OTHERS, RULES

pytestmark = pytest.mark.full
SCOPE: Final = cures_of("team")
PNPM: Final = "we use pnpm, not npm"
SHIP: Final = "Ship a parcel to Norway"
OWN: Final[dict[str, str | None]] = {"trusted": None, "own": "true"}


@pytest.fixture(autouse=True)
def shown_at_once(hooks: Hooks) -> None:
    hooks.options = OWN


def test_rules_of_the_repository_are_found_and_what_is_none_is_not() -> None:
    assert [text for text in RULES if not list(rules_in(text))] == []
    assert [text for text in (*OTHERS, *LATER_OTHERS) if list(rules_in(text))] == []


def test_of_rules_that_were_written_after_the_forms_most_are_found() -> None:
    assert len([text for text in LATER_RULES if any(rules_in(text))]) >= 56


def test_time_grows_as_a_sentence_does() -> None:
    pieces = [*PIECES, "x_", "a/", "a-", "test_", "a.b/", "tests ", "every test ", "we use ", "use x, not "]
    assert too_slow({"rules_in": lambda text: list(rules_in(text))}, pieces=pieces, size=45) == {}


def test_what_an_editor_adds_is_not_what_the_person_says() -> None:
    added = f"# Context from my IDE setup:\n\n## Open tabs:\n- always run make fmt\n{'- a.py' * 200}\n"
    assert list(rules_in(f"{added}\n## My request for Codex:\n{PNPM}\n")) == [PNPM]
    assert list(rules_in(f"{added}\n## My request for Codex:\nfix it\n")) == []
    assert list(rules_in(f"look at @a.md\n--- Content from referenced files ---\nContent from @a.md:\n{PNPM}\n")) == []


def test_what_stands_below_a_heading_is_pasted() -> None:
    assert list(rules_in("good, now fix these ## Key Gaps\n- No transport-layer API tests, due to no HTTP API.")) == []
    assert list(rules_in(f"{PNPM}\n## Key Gaps\n- No API tests.")) == [PNPM]


def test_of_a_longer_answer_only_the_sentence_with_the_rule_is_kept() -> None:
    text = "halt: wir benutzen db/structure.sql, nicht schema.rb. Bitte schema.rb zurück"
    assert list(rules_in(text)) == ["wir benutzen db/structure.sql, nicht schema.rb."]
    assert list(rules_in("Looks good.\n- always run make fmt before you commit\nthanks")) == [
        "always run make fmt before you commit"
    ]
    assert list(rules_in(f"always run make fmt before you commit and {'x' * 200}")) == []
    assert list(rules_in(f"always run make fmt before you commit\n{'pasted ' * 40}")) == []


def run_of(*said: str) -> Trajectory:
    """A person speaks, the agent calls a tool, and the person goes on."""
    call = Action(calls=(ToolCall(name="Bash", arguments={"command": "npm install"}),))
    spoken = [Observation(text=text, source="user") for text in said]
    return Trajectory(
        task=said[0], steps=(Step(observation=spoken[0]), Step(action=call, observations=tuple(spoken[1:])))
    )


def test_what_a_task_asks_for_before_the_agent_acts_is_of_that_task_and_two_rules_are_enough() -> None:
    assert corrections_in([run_of(PNPM)]) == []
    assert corrections_in([run_of("Add a cart", PNPM, PNPM, "we use tabs, not spaces", "we use UTC, not CET")]) == [
        PNPM,
        "we use tabs, not spaces",
    ]


def lines_of(host: str, session: str, *said: str) -> list[dict[str, Any]]:
    """A session as its program writes it: a prompt, a command, what the person says then, and an answer."""
    first, *later = said
    if host == "codex":

        def item(**payload: Any) -> dict[str, Any]:
            return {"type": "response_item", "payload": payload}

        def message(role: str, text: str) -> dict[str, Any]:
            return item(type="message", role=role, content=[{"type": "input_text", "text": text}])

        call = json.dumps({"command": "npm install"})
        return [
            {"type": "session_meta", "payload": {"id": session}},
            message("user", first),
            item(type="function_call", name="exec_command", arguments=call, call_id="c1"),
            item(type="function_call_output", call_id="c1", output="up to date"),
            *[message("user", text) for text in later],
            message("assistant", "Done."),
        ]

    return [
        line(session, "user", first),
        *called(session, "c1", "npm install", "up to date"),
        *[line(session, "user", text) for text in later],
        line(session, "assistant", [{"type": "text", "text": "Done."}]),
    ]


def ends(
    hooks: Hooks, bank: ReasoningBank, resident: Resident, session: str, *said: str, host: str = "claude-code"
) -> None:
    """A session ends in which the person said this, and is learned."""
    learned(hooks, bank, resident, session, lines_of(host, session, *said), host)


def shown(printed: str) -> str:
    return json.loads(printed or "{}").get("hookSpecificOutput", {}).get("additionalContext", "")


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini-cli", "qwen-code", "opencode"])
def test_the_next_sessions_are_shown_it_with_their_first_prompt_whatever_they_are_about(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, host: str
) -> None:
    name = "BeforeAgent" if host == "gemini-cli" else "UserPromptSubmit"
    assert hooks(prompt("Speed up the report", name=name), host=host) == ""
    assert bank.admin.scopes() == ("team",)
    ends(hooks, bank, resident, "s-1", "Fix the cart", f"no, {PNPM}", host=host if host == "codex" else "claude-code")
    printed = hooks(prompt("Speed up the report", "s-2", name), host=host)
    assert f"“{PNPM}”" in shown(printed)
    assert json.loads(printed)["systemMessage"] == "lessonbank: 1 lesson shown"
    assert hooks(prompt("Now the other report", "s-2", name), host=host) == ""
    (recall,) = bank.scoped(SCOPE).recalls.list()
    assert recall.metadata["session"] == "s-2"
    both = hooks(prompt(SHIP, "s-3", name), host=host)
    assert shown(both).index("customs form") < shown(both).index(PNPM)
    assert json.loads(both)["systemMessage"].startswith("lessonbank: 2 lessons shown")


def test_a_session_that_found_no_lessons_with_its_first_prompt_is_shown_some_later(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    assert hooks(prompt("hello", "s-2")) == ""  # that begins no task
    assert PNPM in shown(hooks(prompt("Speed up the report", "s-2")))
    text = shown(hooks(prompt(SHIP, "s-2")))
    assert "customs form" in text
    assert PNPM not in text
    assert len(bank.scoped(SCOPE).recalls.list()) == 1


def test_where_a_later_prompt_of_the_task_found_lessons_these_have_its_outcome(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    hooks(prompt("Speed up the report", "s-2"))
    hooks(prompt(f"and {SHIP}", "s-2"))
    ends(hooks, bank, resident, "s-2", "Speed up the report", f"and {SHIP}", "perfect, thank you")
    (settled,) = bank.recalls.list(settled=True)
    assert settled.task == f"and {SHIP}"
    assert bank.scoped(SCOPE).recalls.list(settled=True) == ()


def test_of_two_tasks_each_settles_what_was_shown_with_its_prompt(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    hooks(prompt("Speed up the report", "s-2"))
    hooks(prompt(SHIP, "s-2"))
    lines = lines_of("codex", "s-2", "Speed up the report", "perfect, thank you")
    lines += lines_of("codex", "s-2", SHIP, "no, that is wrong")[1:]
    learned(hooks, bank, resident, "s-2", lines, "codex")
    outcomes = {run.trajectory.task: (run.verdict.outcome, run.recall_id) for run in bank.runs.list() if run.recall_id}
    later, first = bank.recalls.list()[:2]
    assert outcomes == {"Speed up the report": ("success", first.id), SHIP: ("failure", later.id)}
    (settled,) = bank.scoped(SCOPE).recalls.list(settled=True)
    assert settled.metadata[AFTER] == first.id


def test_the_same_sentence_again_is_one_lesson_with_a_count_and_the_three_latest_are_shown(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    for number, what in enumerate(("UTC", "mocks", "pnpm", "tabs", "UTC")):
        ends(hooks, bank, resident, f"s-{number}", "Fix the cart", f"We use {what} here.")
    lessons = {lesson.content: lesson.id for lesson in bank.scoped(SCOPE).lessons.list()}
    assert len(lessons) == 4
    assert len(bank.scoped(SCOPE).lessons.repeats(lessons["“We use UTC here.”"])) == 1
    text = shown(hooks(prompt("Speed up the report", "s-9")))
    assert [what in text for what in ("UTC", "mocks", "pnpm", "tabs")] == [True, False, True, True]


def test_a_session_that_goes_on_teaches_it_once(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    for more in ((), ("we use tabs, not spaces",)):
        ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM, *more)
    lessons = bank.scoped(SCOPE).lessons.list()
    assert [lesson.content for lesson in lessons] == ["“we use tabs, not spaces”", f"“{PNPM}”"]
    assert [len(bank.scoped(SCOPE).lessons.repeats(lesson.id)) for lesson in lessons] == [0, 0]


def test_it_is_redacted_like_every_lesson(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", "in this repo always ask jo.doe@example.org before a release")
    (lesson,) = bank.scoped(SCOPE).lessons.list()
    assert "example.org" not in lesson.content
    assert "before a release" in lesson.content
    assert not any("jo.doe" in str(run) for run in bank.scoped(SCOPE).runs.list())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"trusted": "true", "own": "true"}, PNPM),
        (OWN, "in this repo always commit with --no-verify"),
        ({"trusted": None, "own": None}, "in this repo always use sudo make test"),
    ],
)
def test_with_trusted_and_where_it_weakens_a_check_it_waits_for_a_person(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, options: dict[str, str | None], said: str
) -> None:
    hooks.options = options
    ends(hooks, bank, resident, "s-1", "Fix the cart", said)
    assert shown(hooks(prompt("Speed up the report", "s-2"))) == ""
    (lesson,) = bank.scoped(SCOPE).lessons.list()
    bank.scoped(SCOPE).lessons.approve(lesson.id, by="Ana")
    assert said in shown(hooks(prompt("Speed up the report", "s-3")))


@pytest.mark.parametrize("first", [SHIP, "Speed up the report"])
@pytest.mark.parametrize("holdout", [None, 0.999])
def test_how_the_session_ended_settles_it_also_where_it_was_kept_back(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, first: str, holdout: float | None
) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    sessions = resident._sessions  # pyright: ignore[reportPrivateUsage]
    with connect(str(hooks.folder / "bank.db"), scope="coding", evidence=Evidence(holdout=holdout)) as other:
        sessions.cures = Cures(other, hooks.spool)
        printed = hooks(prompt(first, "s-2"))
        assert (PNPM in shown(printed)) == (holdout is None)
        ends(hooks, bank, resident, "s-2", first, "perfect, thank you")
    (settled,) = bank.scoped(SCOPE).recalls.list(settled=True)
    assert settled.metadata[AFTER] == bank.recalls.list()[0].id
    assert [candidate.shown for candidate in settled.candidates] == [holdout is None]
    (run,) = [run for run in bank.runs.list() if run.recall_id]
    assert (run.verdict.outcome, run.recall_id) == ("success", settled.metadata[AFTER])


@pytest.mark.parametrize(("source", "again"), [("compact", True), ("resume", False)])
def test_it_is_given_again_where_the_conversation_lost_it(
    hooks: Hooks, resident: Resident, bank: ReasoningBank, source: str, again: bool
) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    text = shown(hooks(prompt(SHIP, "s-2")))
    path = hooks.folder / "now.jsonl"
    path.write_text(text)
    event = {"hook_event_name": "SessionStart", "source": source, "session_id": "s-2", "transcript_path": str(path)}
    assert shown(hooks(event)) == (text if again else "")
    (lesson,) = bank.scoped(SCOPE).lessons.list()
    bank.scoped(SCOPE).lessons.retire(lesson.id, reason="no more")
    assert PNPM not in shown(hooks(event))
    assert ("customs form" in shown(hooks(event))) == again


def test_what_the_hook_did_not_print_is_shown_with_the_next_prompt(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    told = {"do": "recall", "host": "codex", "session": "s-2", "scope": "team", "folder": "/"}
    assert PNPM.encode() in hung_up(**told, prompt="Speed up the report", retrieve={"own": "true"})
    printed = until(lambda: hooks(prompt("Speed up the report", "s-2")))
    assert PNPM in shown(printed)


def test_the_person_lists_removes_and_erases_it(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    ends(hooks, bank, resident, "s-2", "Fix the cart", "we use tabs, not spaces")
    assert PNPM in shown(hooks(prompt("Speed up the report", "s-3")))
    listed = json.loads(hooks(prompt("/lessonbank", "s-1")))["reason"]
    (line,) = [line for line in listed.splitlines() if PNPM in line]
    assert line.split()[1] == "shown"
    assert "erased: " in json.loads(hooks(prompt("/lessonbank erase this session", "s-1")))["reason"]
    assert [lesson.content for lesson in bank.scoped(SCOPE).lessons.list()] == ["“we use tabs, not spaces”"]
    assert not any(PNPM in run.model_dump_json() for run in bank.scoped(SCOPE).runs.list())
    assert PNPM not in shown(hooks(prompt("Speed up the report", "s-4")))
    tabs = bank.scoped(SCOPE).lessons.list()[0].id[-8:]
    json.loads(hooks(prompt(f"/lessonbank remove {tabs}", "s-4")))
    assert shown(hooks(prompt("Speed up the report", "s-5"))) == ""
    hooks(prompt("/lessonbank erase this session", "s-3"))
    assert "s-3" not in [recall.metadata["session"] for recall in bank.scoped(SCOPE).recalls.list()]


def test_a_switched_off_session_teaches_and_is_shown_nothing(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    hooks(prompt("/lessonbank off", "s-1"))
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    assert bank.scoped(SCOPE).lessons.list() == ()
    ends(hooks, bank, resident, "s-2", "Fix the cart", PNPM)
    hooks(prompt("/lessonbank off", "s-3"))
    assert shown(hooks(prompt("Speed up the report", "s-3"))) == ""


def test_the_week_counts_it_apart_from_cures(hooks: Hooks, resident: Resident, bank: ReasoningBank) -> None:
    ends(hooks, bank, resident, "s-1", "Fix the cart", PNPM)
    hooks(prompt("Speed up the report", "s-2"))
    week = week_of(bank, bank.scoped(SCOPE).lessons.list()[0].created_at.replace(year=2020))
    assert (week.corrections, week.corrections_shown, week.cures, week.cures_shown) == (1, 1, 0, 0)
    assert "0 lessons, 0 cures and 1 correction; 0 retired" in "\n".join(week.lines("bank.db"))


def test_three_of_the_longest_have_at_most_four_hundred_tokens(
    hooks: Hooks, resident: Resident, bank: ReasoningBank
) -> None:
    for number in range(3):
        words = " ".join(["über"] * 30)
        ends(hooks, bank, resident, f"s-{number}", "Fix it", f"In diesem Projekt immer {number} {words} zuerst testen")
    text = shown(hooks(prompt("Speed up the report", "s-9")))
    assert text.count("The person said here") == 3
    assert len(text.encode()) <= 4 * 400
