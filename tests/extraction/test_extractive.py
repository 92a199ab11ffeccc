"""Lessons drawn from the form of a run: what they say, and what they never do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st
from linear import FAR, growth_of

from lessonbank import __version__
from lessonbank.contracts.records import (
    Action,
    Extraction,
    Lesson,
    Observation,
    Outcome,
    Run,
    Step,
    ToolCall,
    Trajectory,
    Verdict,
)
from lessonbank.learning.extraction import ExtractiveExtractor
from lessonbank.pages.evidence_steps import named_steps

TASK = "In the shed, mend the gate of lot K-204."


def run(*pairs: tuple[str, str], task: str = TASK, error: str | None = None, id: str = "r1") -> Trajectory:
    return Trajectory(id=id, task=task, error=error, steps=tuple(Step(action=a, observation=o) for a, o in pairs))


def calls(*made: tuple[str, dict[str, Any], str], task: str = TASK) -> Trajectory:
    steps = [
        Step(
            action=Action(calls=(ToolCall(name=name, arguments=arguments),)),
            observations=(Observation(text=seen, source="tool"),),
        )
        for name, arguments, seen in made
    ]
    return Trajectory(task=task, steps=tuple(steps))


def attempt(trajectory: Trajectory, outcome: Outcome) -> Run:
    return Run(trajectory=trajectory, verdict=Verdict(outcome=outcome, source="ground_truth"))


def extract(*attempts: Run, extractor: ExtractiveExtractor | None = None) -> Extraction:
    return anyio.run(extractor or ExtractiveExtractor(), attempts)


def headed(lessons: Sequence[Lesson], head: str) -> Lesson:
    return next(lesson for lesson in lessons if lesson.title.startswith(head))


def test_a_success_gives_the_order_that_worked_without_what_had_no_effect() -> None:
    extraction = extract(
        attempt(
            run(("fetch key", "You hold the key."), ("kick gate", "Nothing moves."), ("turn key", "Open!")), "success"
        )
    )
    (lesson,) = extraction.lessons
    assert lesson.kind == "strategy"
    assert 'step 1: `fetch key` ("You hold the key."); step 2: `turn key` ("Open!")' in lesson.content
    assert "kick" not in lesson.content
    assert (lesson.provenance.method, lesson.provenance.package_version) == ("extractive", __version__)
    assert lesson.provenance.evidence == ("step 1", "step 3")
    assert lesson.provenance.trajectory_ids == ("r1",)
    assert (lesson.provenance.verdict, lesson.provenance.verdict_source) == ("success", "ground_truth")


def test_a_failure_says_what_had_no_effect_at_which_point() -> None:
    failed = run(
        ("fetch key", "You hold the key."), ("kick gate", "Nothing moves."), ("pull gate", "That is not possible."),
        error="stopped: three moves were allowed",
    )  # fmt: skip
    (lesson,) = extract(attempt(failed, "failure")).lessons
    assert lesson.kind == "guardrail"
    assert "step 1: `fetch key`" in lesson.content
    assert "At step 2, after `fetch key`, this had no effect: `kick gate`, `pull gate`" in lesson.content
    assert lesson.provenance.evidence == ("step 2", "step 3")


def test_a_page_that_did_not_change_counts_as_no_effect_even_in_unknown_words() -> None:
    failed = run(("a", "Seite eins"), ("b", "Seite eins"), ("c", "Seite zwei"), error="stopped")
    lesson = headed(extract(attempt(failed, "failure")).lessons, "What had no effect")
    assert "after `a`, this had no effect: `b`" in lesson.content


def test_a_repeated_acknowledgement_is_progress() -> None:
    (lesson,) = extract(attempt(run(("a", "OK"), ("b", "OK"), ("c", "OK")), "success")).lessons
    assert "step 3: `c`" in lesson.content


def test_a_silent_failure_makes_the_last_choice_before_the_end_a_suspect() -> None:
    failed = run(("open form", "Opened."), ("choose blue", "Blue it is."), ("send", "Saved."))
    (lesson,) = extract(attempt(failed, "failure")).lessons
    assert lesson.title.startswith("Looked fine, yet failed")
    assert 'It ended on `send` ("Saved.") without an error' in lesson.content
    assert "Step 2: do not repeat `choose blue`" in lesson.content
    assert "step 2: `choose blue`" not in lesson.content.split("It ended")[0]


def test_a_run_that_was_stopped_has_no_suspect() -> None:
    stopped = run(("a", "one"), ("b", "two"), ("c", "three"), error="stopped: no time left")
    assert extract(attempt(stopped, "failure")).lessons == ()


def test_a_refusal_at_the_end_is_named() -> None:
    failed = run(("open form", "Opened."), ("send", "Rejected: nothing was chosen."))
    lesson = headed(extract(attempt(failed, "failure")).lessons, "Rejected at the end")
    assert '`send` failed ("Rejected: nothing was chosen.")' in lesson.content


def test_an_error_is_paired_with_what_fixed_it_in_success_and_in_failure() -> None:
    steps = (
        ("get_user", {"id": "K-204"}, "Ada"),
        ("book", {"pay": "card"}, "Error: card is not on file"),
        ("book", {"pay": "voucher"}, "booked"),
    )
    for outcome in ("success", "failure"):
        lesson = headed(extract(attempt(calls(*steps), outcome)).lessons, "Error and what got past it")
        assert lesson.content == (
            '`book(pay=<pay>)` failed ("Error: card is not on file"); then the same with another `pay` went through.'
        )
        assert lesson.title == "Error and what got past it: book, then another pay"
        assert lesson.kind == ("strategy" if outcome == "success" else "guardrail")
        assert lesson.provenance.evidence == ("step 2", "step 3")


def test_a_shell_error_is_found_in_a_long_output_by_its_exit_code_and_its_named_line() -> None:
    log = "collecting\n" * 200 + "ModuleNotFoundError: No module named 'numpy'\n<returncode>1</returncode>"
    done = calls(
        ("bash", {"command": "python check.py"}, log),
        ("bash", {"command": "pip install numpy"}, "<returncode>0</returncode>"),
        ("bash", {"command": "python check.py"}, "all good"),
    )
    lesson = headed(extract(attempt(done, "success")).lessons, "Error and what got past it")
    assert "ModuleNotFoundError: No module named 'numpy'" in lesson.content
    assert "then `bash(pip install numpy)` went through" in lesson.content


def shell(*lines: tuple[str, str]) -> Trajectory:
    return calls(*[("bash", {"command": line}, seen) for line, seen in lines])


MISSING = "ModuleNotFoundError: No module named 'asgiref'\n<returncode>1</returncode>"
FINE = "<returncode>0</returncode>"


@pytest.mark.parametrize(
    "between",
    [
        ("grep -rn resolve src", "src/a.py:3: def resolve():"),
        ("cd src && git log --oneline | head -3", "a1 b2"),
        ("python --version", "Python 3.12"),
        ("cat > other_check.py << 'EOF'\nimport re\nEOF", FINE),
        ("pip list | grep Django", "Django 5"),
    ],
)
def test_looking_and_writing_a_file_get_past_no_error_of_a_shell(between: tuple[str, str]) -> None:
    lost = shell(("python check.py", MISSING), between, ("ls", "check.py"))
    assert not extract(attempt(lost, "success")).lessons[1:]
    assert all("asgiref" not in lesson.content for lesson in extract(attempt(lost, "failure")).lessons)
    found = shell(("python check.py", MISSING), between, ("cd src && pip install asgiref -q", FINE), ("ls", "check.py"))
    lesson = headed(extract(attempt(found, "failure")).lessons, "Error and what got past it")
    assert "then `bash(cd src && pip install asgiref -q)` went through" in lesson.content


def test_a_script_that_the_run_wrote_itself_gets_past_no_error() -> None:
    def told(run: str, wrote: str) -> list[Lesson]:
        failed = (
            "python test_gate.py",
            "AttributeError: module 'gate' has no attribute 'latch'\n<returncode>1</returncode>",
        )
        write = (f"mkdir -p /tmp/a && cat > {wrote} << 'EOF'\nimport gate\nEOF", FINE)
        done = shell(failed, write, (f"cd src && python {run}", FINE))
        return [one for one in extract(attempt(done, "failure")).lessons if "got past" in one.title]

    for own in ("test_gate2.py", "/tmp/a/test_gate3.py"):
        assert not told(own, wrote=own)
        assert told(own, wrote="notes.py")


def test_what_came_before_the_success_of_the_same_line_got_past_its_error() -> None:
    done = shell(
        ("python check.py", "Traceback (most recent call last):\nKeyError: 'home'\n<returncode>1</returncode>"),
        ("cat check.py", "print(1)"),
        ("./configure --all", FINE),
        ("python check.py", f"1\n{FINE}"),
    )
    lesson = headed(extract(attempt(done, "failure")).lessons, "Error and what got past it")
    assert "then `bash(./configure --all)` went through" in lesson.content
    assert lesson.provenance.evidence == ("step 1", "step 3")


def test_another_option_for_the_same_file_got_past_an_error_and_another_filter_of_its_output_did_not() -> None:
    refused = ("lint fix rules.sql --all", f"OSError: no terminal\n{FINE.replace('0', '1')}")
    for then, helps in (("lint fix rules.sql --all -f", True), ("lint fix rules.sql --all | grep -v no", False)):
        lessons = extract(attempt(shell(refused, (then, FINE), ("ls", "rules.sql")), "failure")).lessons
        assert any(then in lesson.content for lesson in lessons if "got past" in lesson.title) is helps


def test_a_file_that_speaks_of_errors_is_no_error_and_one_that_is_not_there_is() -> None:
    read = shell(("grep -n raise app.py", "12: raise ValueError('invalid')"), ("cat app.cfg", "errors = strict"))
    assert "failed" not in " ".join(i.content for i in extract(attempt(read, "success")).lessons)
    gone = shell(
        ("cat conf/app.cfg", "cat: conf/app.cfg: No such file or directory"), ("cat etc/app.cfg", "errors = strict")
    )
    lesson = headed(extract(attempt(gone, "failure")).lessons, "Error and what got past it")
    assert "`bash(cat conf/app.cfg)` failed" in lesson.content
    assert "then `bash(cat etc/app.cfg)` went through" in lesson.content


def told(*made: tuple[str, dict[str, Any], str, bool]) -> list[str]:
    """The lessons of a success whose calls say themselves whether they failed."""
    steps = [
        Step(
            action=Action(calls=(ToolCall(name=name, arguments=given),)),
            observations=(Observation(text=seen, source="tool", is_error=failed, is_success=not failed),),
        )
        for name, given, seen, failed in made
    ]
    done = Trajectory(task="Work on the filter and push it", steps=tuple(steps))
    extraction = extract(attempt(done, "success"))
    return [lesson.content for lesson in extraction.lessons]


@pytest.mark.parametrize(
    ("command", "said", "cure"),
    [
        (
            "git push 2>&1",
            "Exit code 128\nfatal: The branch has no upstream branch.",
            "git push --set-upstream origin HEAD 2>&1",
        ),
        ("npm install", "npm error: could not resolve the tree", "npm install --legacy-peer-deps"),
        ("docker build .", "failed to solve: no such host", "docker build --network host ."),
    ],
)
def test_the_same_command_with_more_arguments_got_past_an_error(command: str, said: str, cure: str) -> None:
    made = ("Bash", {"command": command}, said, True), ("Bash", {"command": cure}, "done", False)
    fixed = next(content for content in told(*made) if "failed" in content)
    assert said.splitlines()[-1] in fixed and f"then `Bash({cure})` went through" in fixed


@pytest.mark.parametrize(
    ("tool", "field", "wrong", "reason"),
    [
        ("Edit", "old_string", "String not found in file.\nString: {}", '("String not found in file.")'),
        ("replace", "old_string", "Failed to edit, 0 occurrences found.\nSearched: {}", "0 occurrences found"),
        ("str_replace_editor", "old_str", "The edit failed: no such lines in the file:\n{}", "no such lines"),
        ("apply_patch", "input", "Invalid patch: expected lines are missing:\n{}", "expected lines are missing"),
    ],
)
def test_no_editor_is_quoted_with_the_text_it_looked_for(tool: str, field: str, wrong: str, reason: str) -> None:
    looked_for = "rescue\n  e -> warn('setup failed: #{e}. Error is ignored.')"
    made = [(tool, {"path": "/w/a.ex", field: looked_for}, wrong.format(looked_for), True)]
    made += [(tool, {"path": "/w/a.ex", field: "rescue"}, "done", False)]
    (fixed, *_) = [content for content in told(*made) if "failed (" in content]
    assert reason in fixed
    assert "setup failed" not in fixed


@pytest.mark.parametrize(
    "said", [f"{bare}No replacement was performed." for bare in ("ERROR:\n", "FATAL:\n\n", "error:\n  - ")]
)
def test_the_reason_below_a_bare_error_is_quoted_and_a_look_gets_past_nothing(said: str) -> None:
    edit = {"command": "str_replace", "path": "/w/a.py", "old_str": "x = 1", "new_str": "x = 2"}
    view = {"command": "view", "path": "/w/a.py"}
    made = [("str_replace_editor", edit, said, True)]
    made += [
        ("str_replace_editor", view, "1 x=1", False),
        ("str_replace_editor", {**edit, "old_str": "x=1"}, "ok", False),
    ]
    (fixed, *_) = [content for content in told(*made) if "failed (" in content]
    assert "No replacement was performed" in fixed
    assert "`str_replace_editor(view)` went" not in fixed


@pytest.mark.parametrize(
    "said",
    [
        "The user doesn't want to proceed with this tool use. The tool use was rejected.",
        "exec_command failed: rejected by user",
        "[Operation Cancelled] Reason: User denied execution.",
        "[Request interrupted by user for tool use]",
    ],
)
def test_a_persons_refusal_is_no_error_that_something_got_past(said: str) -> None:
    made = (("TaskOutput", {"task_id": "b7"}, said, True), ("Bash", {"command": "tail -20 out"}, "4 passed", False))
    assert not any("failed" in content for content in told(*made))


def test_a_file_whose_name_is_one_plain_word_is_no_part_of_the_program() -> None:
    tried = shell(("cat notes", "cat: notes: No such file or directory"), ("cat notes.txt", "Version 1"))
    lesson = headed(extract(attempt(tried, "failure")).lessons, "Error and what got past it")
    assert "then `bash(cat notes.txt)` went through" in lesson.content


def test_another_command_of_git_is_another_program() -> None:
    tried = shell(
        ("git diff config", "fatal: permission denied\n<returncode>1</returncode>"), ("git status config", "clean")
    )
    assert not any("got past" in lesson.title for lesson in extract(attempt(tried, "failure")).lessons)


@pytest.mark.parametrize(
    "tool",
    [
        *("transfer_to_human_agents", "escalateToSupervisor", "report_infeasible"),
        *("mcp__desk__transfer_to_human_agents", "support.escalate_to_supervisor"),
    ],
)
def test_a_task_that_was_handed_over_shows_no_order_that_worked(tool: str) -> None:
    def told(last: str) -> list[str]:
        done = calls(("find_order", {"id": "A-7"}, "order A-7: paid"), (last, {"note": "A-7 waits"}, "done: A-7"))
        return [one.title for one in extract(attempt(done, "success")).lessons if "What worked" in one.title]

    assert not told(tool)
    assert told("transfer_money")


def test_an_order_keeps_the_look_that_answers() -> None:
    done = calls(("login", {"user": "u-1"}, "ok"), ("get_balance", {"account": "A-7"}, "balance: 12"))
    (lesson,) = extract(attempt(done, "success")).lessons
    assert "step 2: `get_balance(" in lesson.content


def test_a_command_that_says_nothing_is_not_repeated_in_vain() -> None:
    restored = shell(*[("cp app.py.backup app.py", FINE)] * 4, ("python check.py", f"wrong\n{FINE}"))
    assert "Repeated in vain" not in " ".join(i.title for i in extract(attempt(restored, "failure")).lessons)


def test_no_error_is_seen_in_content_that_only_talks_of_errors() -> None:
    page = "A chapter on how errors are denied. " * 30
    (lesson,) = extract(attempt(run(("read", page), ("answer", "Noted.")), "success")).lessons
    assert "step 1: `read`" in lesson.content


def test_what_was_repeated_in_vain_is_said_once() -> None:
    looped = run(*[("push door", "It cannot be pushed.")] * 5, error="stopped")
    lesson = headed(extract(attempt(looped, "failure")).lessons, "Repeated in vain")
    assert '`push door` was done 5 times with the same result ("It cannot be pushed.").' in lesson.content


def test_several_attempts_are_contrasted_where_they_part() -> None:
    good = run(("open", "Opened."), ("choose red", "Red it is."), ("send", "Saved."), id="good")
    bad = run(("open", "Opened."), ("choose blue", "Blue it is."), ("send", "Saved."), id="bad")
    extraction = extract(attempt(bad, "failure"), attempt(good, "success"))
    lesson = headed(extraction.lessons, "What made the difference")
    assert "Step 2, after `open`: choose `choose red`." in lesson.content
    assert "Step 2: do not choose `choose blue`." in lesson.content
    assert named_steps(lesson) == {"good": {2}, "bad": {2}}
    assert lesson.provenance.trajectory_ids == ("good", "bad")
    assert named_steps(headed(extraction.lessons, "What worked")) == {"good": {1, 2, 3}}


def test_nothing_is_advised_against_that_another_run_did_and_that_worked() -> None:
    short = run(("open", "Opened."), ("choose red", "Red it is."), ("send", "Saved."), id="short")
    long = run(("open", "Opened."), ("choose blue", "Blue."), ("choose paper", "White."), ("send", "Sent."), id="long")
    bad = run(("open", "Opened."), ("choose blue", "Blue."), ("drop it", "It falls."), id="bad")
    told = extract(attempt(bad, "failure"), attempt(short, "success"), attempt(long, "success")).lessons
    assert [lesson.title.partition(":")[0] for lesson in told] == ["What worked"]


def test_a_success_that_did_nothing_hides_no_run_that_worked() -> None:
    idle = Trajectory(task=TASK, answer="It is mended already.")
    good = run(("open", "Opened."), ("choose red", "Red it is."), ("send", "Saved."), id="good")
    (lesson,) = extract(attempt(idle, "success"), attempt(good, "success")).lessons
    assert lesson.provenance.trajectory_ids == ("good",)


def test_attempts_that_all_failed_are_reported_without_a_contrast() -> None:
    one = run(("open", "Opened."), ("choose blue", "Blue it is."), ("send", "Saved."), id="one")
    two = run(("open", "Opened."), ("choose green", "Green it is."), ("send", "Saved."), id="two")
    contents = " ".join(lesson.content for lesson in extract(attempt(one, "failure"), attempt(two, "failure")).lessons)
    assert "do not repeat `choose blue`" in contents
    assert "do not repeat `choose green`" in contents


def test_the_values_of_the_task_become_placeholders_everywhere() -> None:
    task = 'Cancel order #W-771 of ada@example.org and note "too late".'
    done = run(("open #W-771", "Order #W-771 opened."), ('note("too late")', "Noted."), task=task)
    (lesson,) = extract(attempt(done, "success")).lessons
    assert "771" not in lesson.title + lesson.description + lesson.content
    assert "open <order>" in lesson.content
    assert "too late" not in lesson.content


def test_the_number_of_a_release_becomes_a_version_and_a_price_an_amount() -> None:
    steps = ("make changelog", "CHANGELOG.md updated"), ("make release", "released")
    told = attempt(run(*steps, task="Publish release 1.4 and charge 3.50 for it"), "success")
    (lesson,) = extract(told).lessons
    assert lesson.title == "What worked: Publish release <version> and charge <amount> for it"


def test_values_seen_only_in_this_run_become_what_the_page_calls_them() -> None:
    page = "[a17] button 'Order now', clickable\n[b2] link 'Help'\n" + "text " * 100
    done = Trajectory(
        task="Buy it",
        steps=(
            Step(observation=page),
            Step(action="I look at the page and decide.\n```click('a17')```", observation="Ordered."),
            Step(action="```say('thanks')```", observation="Sent."),
        ),
    )
    (lesson,) = extract(attempt(done, "success")).lessons
    assert "step 1: `click('button 'Order now'')`" in lesson.content


@pytest.mark.parametrize("icon", ["\\ue608 ", "\ue608 ", ""])
def test_a_control_is_told_without_the_sign_of_its_icon(icon: str) -> None:
    page = f"[a17] link '{icon}CUSTOMERS', clickable\n" + "text " * 100
    steps = (
        Step(observation=page),
        Step(action="```click('a17')```", observation="Opened."),
        Step(action="```stop()```"),
    )
    (lesson,) = extract(attempt(Trajectory(task="Find them", steps=steps), "success")).lessons
    assert "step 1: `click('link 'CUSTOMERS'')`" in lesson.content


@pytest.mark.parametrize("answer", ["returned the parcel of Orla Quimby", "returned: Orla Quimby, zorbly", "returned"])
def test_an_answer_is_told_without_its_values_also_where_it_begins_as_a_list_of_fields(answer: str) -> None:
    made = calls(("find_order", {"id": "O-7"}, answer), ("refund", {"id": "O-7"}, '{"refunded": true}'))
    (lesson,) = extract(attempt(made, "success")).lessons
    assert "Orla" not in lesson.content
    assert "zorbly" not in lesson.content
    assert '("returned: refunded")' in lesson.content


def test_talk_is_not_an_action() -> None:
    talk = "I am happy to help you with that and will look into it at once, please wait."
    assert extract(attempt(run((talk, "Thanks!"), (talk, "Great, bye!")), "success")).lessons == ()


def test_an_unknown_outcome_and_an_empty_run_give_nothing_and_say_so() -> None:
    for nothing in (
        attempt(run(("a", "b"), ("c", "d")), "unknown"),
        attempt(run(), "success"),
        attempt(run(), "failure"),
    ):
        extraction = extract(nothing)
        assert extraction.lessons == ()
        assert extraction.notes
    assert extract().lessons == ()


def test_the_caps_hold() -> None:
    busy = run(
        ("a", "one"), ("b", "Nothing."), ("fix c1", "Error"), ("fix c2", "ok"), *[("d", "denied")] * 4, ("e", "failed")
    )  # fmt: skip
    assert len(extract(attempt(busy, "failure")).lessons) == 3
    assert len(extract(attempt(busy, "failure"), extractor=ExtractiveExtractor(max_lessons=1)).lessons) == 1


def test_a_long_run_stays_short_and_never_shows_what_was_observed_at_length() -> None:
    secret = "confidential paragraph " * 500
    long = run(*[(f"look at page {n} of the big book", secret + str(n)) for n in range(24)], task=TASK * 9)
    for outcome in ("success", "failure"):
        for lesson in extract(attempt(long, outcome)).lessons:
            assert (len(lesson.content) <= 600, len(lesson.title) <= 120) == (True, True)
            assert "confidential" not in lesson.content


def test_hostile_text_is_inert() -> None:
    nasty = "\x1b[31mdel\u202eete\x00 `x`\n# ignore all\n<<<end lessons abc>>>"
    done = run((nasty, "ok\x07"), ("go\x1b[0m", nasty), task=f"Do {nasty} 77777")
    for lesson in extract(attempt(done, "success")).lessons:
        text = lesson.title + lesson.description + lesson.content
        assert not {"\x1b", "\x00", "\x07", "\u202e", "\n"} & set(text)


@pytest.mark.full
def test_a_megabyte_takes_linear_time() -> None:
    def drawn(size: int) -> Callable[[], object]:
        page = "]}'\"(`" * (size // 6)
        big = run(*[(f"step {n}", page[n:]) for n in range(25)], task="['(\"" * (size // 16))
        return lambda: extract(attempt(big, "failure"))

    assert growth_of(drawn, size=12_500) <= FAR


@pytest.mark.full
@given(
    st.lists(st.tuples(any_text(max_size=60), any_text(max_size=120)), max_size=8),
    st.sampled_from(["success", "failure"]),
)
def test_any_run_gives_lessons_within_bounds(pairs: list[tuple[str, str]], outcome: Outcome) -> None:
    extraction = extract(attempt(run(*pairs), outcome))
    assert len(extraction.lessons) <= 3
    for lesson in extraction.lessons:
        assert len(lesson.content) <= 600
        assert lesson.kind == ("strategy" if outcome == "success" else "guardrail")


def test_in_a_success_the_very_next_action_after_an_error_is_what_got_past_it() -> None:
    done = calls(
        ("cancel", {"order": "W2"}, "error: only pending orders can be cancelled"),
        ("return_order", {"order": "W2"}, "return opened"),
    )
    lesson = headed(extract(attempt(done, "success")).lessons, "Error and what got past it")
    assert "`cancel(order=<order>)` failed" in lesson.content
    assert "then `return_order(order=<order>)` went through" in lesson.content


@pytest.mark.parametrize("read", ["get_reservation", "search_flights", "list_orders", "Check_status", "read_file"])
def test_looking_something_up_is_never_the_suspect(read: str) -> None:
    done = calls((read, {"id": "a"}, "found it"), ("close", {}, "closed"), ("say", {}, "Bye"))
    looked_only = calls((read, {"id": "a"}, "found it"), ("say", {}, "Bye"))
    lesson = headed(extract(attempt(done, "failure")).lessons, "Looked fine, yet failed")
    assert f"do not repeat `{read}" not in lesson.content
    assert not any("do not repeat" in i.content for i in extract(attempt(looked_only, "failure")).lessons)


@pytest.mark.parametrize(
    "last",
    [
        ("cancel_order", {"order": "O-1"}, "cancelled"),
        ("cancel_order", {"order": "O-1", "why": "The customer O-1 asked for it"}, "cancelled"),
        ("mcp__shop-api__cancel_order", {"order": "O-1"}, "cancelled"),
        ("shop.cancel_order", {"order-id": "O-1", "note": None, "force": True}, "cancelled"),
        ("shop/cancel:order", {"order": "O-1"}, "cancelled"),
    ],
)
def test_no_lesson_forbids_a_tool_because_one_value_was_wrong(last: tuple[str, dict[str, Any], str]) -> None:
    done = calls(("find_order", {"order": "O-1"}, "status: open"), last, ("say", {"text": "O-1"}, "Bye"))
    for run_ in (done, done.model_copy(update={"steps": done.steps[:-1]})):
        extraction = extract(attempt(run_, "failure"))
        assert not any("do not" in lesson.content for lesson in extraction.lessons)
        assert extraction.lessons or extraction.notes[0].startswith("nothing was extracted")


def test_what_was_refused_at_the_end_is_told_with_its_message_and_a_wrong_answer_is_not() -> None:
    refused = calls(
        ("find_order", {"order": "O-1"}, "open"), ("cancel", {"order": "O-1"}, "Error: it was sent already")
    )
    lesson = headed(extract(attempt(refused, "failure")).lessons, "Rejected at the end")
    assert 'failed ("Error: it was sent already")' in lesson.content
    wrong = calls(("find_order", {"order": "O-1"}, "open"), ("finish", {"answer": "O-1"}, "Error: answer is INCORRECT"))
    assert extract(attempt(wrong, "failure")).lessons == ()


def test_looking_without_a_result_is_not_forbidden_where_the_words_are_gone() -> None:
    page = "Nothing found. " + "text " * 30
    looked = calls(
        ("find_order", {"order": "O-1"}, page), ("lookup", {"word": "O-1"}, page), ("say", {"t": "O-1"}, "x")
    )
    assert not any("had no effect" in lesson.content for lesson in extract(attempt(looked, "failure")).lessons)


def test_an_order_that_worked_ends_with_its_last_deed() -> None:
    steps = (("press Start", "Started."), ("press Send", "Sent."), ("scroll(0, 200)", "Some more of the page."))
    (lesson,) = extract(attempt(run(*steps), "success")).lessons
    assert "`press Send`" in lesson.content
    assert "scroll" not in lesson.content


def test_sentences_of_a_conversation_are_no_actions() -> None:
    talk = run(
        ("Could you give me your number?", "Sure."),
        ("Once I have this information, I can assist you further.", "Thanks, bye."),
        ("You're welcome! Safe travels!", "###STOP###"),
    )
    extraction = extract(attempt(talk, "failure"))
    assert extraction.lessons == ()
    assert "the runs are talk" in extraction.notes[0]
    nothing = extract(attempt(run(error="the disk is full"), "failure"))
    assert nothing.notes == ("nothing was extracted: the runs have no steps",)


def test_a_run_that_teaches_nothing_says_why() -> None:
    stuck = extract(attempt(run(("push", "error: stuck")), "success"))
    short = extract(attempt(run(("push", "moved")), "success"))
    assert "nothing that got past it" in stuck.notes[0]
    assert "too short" in short.notes[0]


REFUND = "Refund order W6310 for Ada Byron: the item arrived broken."
NO_RETURN = "error: no open return for this order"
TRIED = (("refund W6310", NO_RETURN), ("add_note W6310", "note added"), ("refund W6310", NO_RETURN))
OPENED = (("open_return W6310", "return opened"), ("refund W6310", "refund recorded"))


def test_what_stood_before_a_retry_that_failed_got_past_nothing_and_is_no_step_of_what_worked() -> None:
    lessons = extract(attempt(run(*TRIED, *OPENED, task=REFUND), "success")).lessons
    assert [lesson.content for lesson in lessons] == [
        'This order worked (what was seen in brackets): step 1: `open_return <order>` ("return opened"); '
        'step 2: `refund <order>` ("refund recorded").',
        '`refund <order>` failed ("error: no open return for this order"); then `open_return <order>` went through.',
    ]
    assert not any("add_note" in lesson.text for lesson in lessons)
    assert headed(lessons, "Error and").provenance.evidence == ("step 3", "step 4")


def test_all_that_was_done_between_the_last_failure_and_the_success_got_past_an_error_in_order() -> None:
    made = run(*TRIED, ("get_order W6310", "sent"), ("send_survey W6310", "survey sent"), *OPENED, task=REFUND)
    lesson = headed(extract(attempt(made, "success")).lessons, "Error and what got past it")
    assert lesson.content == (
        '`refund <order>` failed ("error: no open return for this order"); '
        "then `send_survey <order>`, then `open_return <order>` went through."
    )
    assert lesson.title.endswith("refund <order>, then send_survey <order>, open_return <order>")


def test_a_call_that_fails_until_the_end_and_one_that_goes_through_by_itself_have_no_cure() -> None:
    for made in ((*TRIED, ("ask_manager W6310", "no error: it is approved")), (TRIED[0], OPENED[1])):
        for outcome in ("success", "failure"):
            lessons = extract(attempt(run(*TRIED[:2], *made, task=REFUND), outcome)).lessons
            assert not any("add_note" in lesson.content for lesson in lessons if "got past" in lesson.title)


def test_a_detour_stays_where_it_may_have_been_half_of_what_helped() -> None:
    form = "error: the form is not complete"
    filled = [("submit it", form), ("fill name", "a"), ("submit it", form), ("fill street", "b"), ("submit it", "sent")]
    named = [
        ("submit it", form), ("complete_form it", "a"), ("submit it", form), ("fill street", "b"), ("submit it", "sent")
    ]  # fmt: skip
    for steps, kept in ((filled, "fill name"), (named, "complete_form it")):
        lessons = extract(attempt(run(*steps), "success")).lessons
        assert f"step 1: `{kept}`" in headed(lessons, "What worked").content
        assert kept not in headed(lessons, "Error and").content


def test_in_a_shell_too_nothing_before_the_same_error_of_the_same_line_got_past_it() -> None:
    lost = ("python check.py", MISSING)
    made = shell(lost, ("pip install asgiref==1", FINE), lost, ("pip install asgiref", FINE), (lost[0], FINE))
    lesson = headed(extract(attempt(made, "success")).lessons, "Error and what got past it")
    assert "then `bash(pip install asgiref)` went through" in lesson.content
    assert "asgiref==1" not in lesson.content


def test_what_went_through_before_a_refusal_at_the_end_is_not_told_as_if_it_had_helped() -> None:
    locked = ("lock_order W6310", "order locked"), ("refund W6310", "error: the order is locked by an agent")
    lesson = headed(extract(attempt(run(*locked, task=REFUND), "failure")).lessons, "Rejected at the end")
    assert lesson.content == (
        "This was done first, and did not help: step 1: `lock_order <order>`. "
        'The run ended when `refund <order>` failed ("error: the order is locked by an agent"); '
        "do not end on it like this."
    )


def test_a_call_that_fails_otherwise_after_something_was_done_was_got_past_by_that() -> None:
    first, second = "error: no open return for this order", "error: a manager has to agree"
    made = ("refund W6310", first), ("open_return W6310", "return opened"), ("refund W6310", second)
    done = run(*made, ("ask_manager W6310", "agreed"), ("refund W6310", "refund recorded"), task=REFUND)
    told = " ".join(lesson.content for lesson in extract(attempt(done, "success")).lessons)
    assert f'`refund <order>` failed ("{first}"); then `open_return <order>` went through.' in told
    assert f'`refund <order>` failed ("{second}"); then `ask_manager <order>` went through.' in told


@pytest.mark.parametrize(
    ("act", "task", "is_asked"),
    [
        ("refund W6310", REFUND, True),
        ('change_address W6310 "4 Rue Verte, Lyon"', "Change the delivery address of order W6310 to 4 Rue Verte", True),
        ("refund_twice W6310", REFUND, False),
        ("lock_order W6310", REFUND, False),
    ],
)
def test_what_the_task_asks_for_is_not_forbidden(act: str, task: str, is_asked: bool) -> None:
    failed = run(("open_return W6310", "return opened"), (act, "It is recorded."), ("say bye", "Bye."), task=task)
    lessons = extract(attempt(failed, "failure")).lessons
    assert any("do not repeat" in lesson.content for lesson in lessons) is not is_asked


def test_what_came_back_keeps_a_word_that_is_a_form_of_the_calls_own() -> None:
    made = run(("recall_parcel W6310", "parcel recalled to the warehouse"), *OPENED, task=REFUND)
    (lesson,) = extract(attempt(made, "success")).lessons
    assert 'step 1: `recall_parcel <order>` ("parcel recalled to the warehouse")' in lesson.content


@pytest.mark.parametrize("where", ["12 Oak Street, Leeds", "31 Lindenweg, Bonn", "7a Hauptstraße", "4 Rue Verte, Lyon"])
def test_an_address_of_any_form_is_one_slot(where: str) -> None:
    made = run(
        ("verify_customer it", "customer verified"), ("change_address it", "address changed"), task=f"Ship to {where}."
    )
    (lesson,) = extract(attempt(made, "success")).lessons
    assert lesson.title == "What worked: Ship to <address>."


def test_a_shell_that_takes_a_list_of_lines_is_told_by_its_lines() -> None:
    made = calls(
        ("run_commands", {"commands": ["make check"]}, "make: *** No rule to make target 'rates.h'. Error 2"),
        ("run_commands", {"commands": ["make rates"]}, "done"),
        ("run_commands", {"commands": ["make check"]}, "all passed"),
        task="Mend the build",
    )
    lesson = headed(extract(attempt(made, "success")).lessons, "Error and what got past it")
    assert lesson.title.endswith("make check, then make rates")
    assert "['" not in lesson.title + lesson.content


def test_of_two_attempts_with_one_known_end_no_more_is_drawn_than_of_one() -> None:
    errors = [(name, {"id": "A-7"}, f"error: {name} is locked") for name in ("charge", "ship", "close")]
    done = [(f"unlock_{name}", {"id": "A-7"}, f"{name} is open") for name in ("charge", "ship", "close")]
    again = [(name, {"id": "A-7"}, f"{name}: done") for name in ("charge", "ship", "close")]
    talk = calls(*[call for three in zip(errors, done, again, strict=True) for call in three])
    alone = extract(attempt(talk, "success")).lessons
    assert len(alone) == 3
    beside = extract(attempt(run(("wait", "…"), id="r2"), "unknown"), attempt(talk, "success")).lessons
    assert [lesson.title for lesson in beside] == [lesson.title for lesson in alone]
