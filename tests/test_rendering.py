"""A run becomes text that fits its budget whatever it holds, and what decides is still in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear import FAR, growth_of

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.errors import UsageError
from lessonbank.text.rendering import View, estimate_tokens, excerpt, render, render_steps

TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("ab \n|[]{}:")), st.characters(), st.sampled_from(["\r", "\u2028", "\ud800", "漢", "🙂"])
    ),
    max_size=60,
)
LONG = st.builds(lambda text, times: text * times, TEXT, st.integers(1, 60))
CALLS = st.builds(
    ToolCall, name=TEXT, arguments=LONG | st.dictionaries(TEXT, LONG | st.integers() | st.lists(TEXT), max_size=3)
)
OBSERVATIONS = st.builds(
    Observation,
    text=LONG,
    source=st.sampled_from(["tool", "user", "environment"]),
    name=st.none() | TEXT,
    is_error=st.booleans(),
)
STEPS = st.builds(
    Step,
    thought=LONG,
    action=st.builds(Action, text=LONG, calls=st.lists(CALLS, max_size=3).map(tuple)),
    observations=st.lists(OBSERVATIONS, max_size=3).map(tuple),
)
RUNS = st.builds(
    Trajectory,
    task=LONG.filter(lambda text: bool(text.strip())),
    instructions=LONG,
    steps=st.lists(STEPS, max_size=12).map(tuple),
    answer=st.none() | LONG,
    error=st.none() | LONG,
)
VIEWS = st.sampled_from(["full", "recorded", "thoughts", "messages"])
OURS = re.compile(
    r"\[(task|instructions the agent was given|final answer(: what the agent says in step \d+)?|what stopped the run"
    r"|not told whole: steps? [\d–, ]+|the record ends with step \d+[\w,: ]*|no answer apart from the steps: [\w ]+"
    r"|step \d+(, in brief, [\d,]+ characters cut)?|step \d+ left out|steps \d+–\d+ left out"
    r"|… [\d,]+ characters cut …)\]"
    r"|agent( thinks| calls)?:|(tool|user|environment)\b.*",
)


def shop_run(steps: int = 2, page: str = "pending") -> Trajectory:
    """A run that looks up an order again and again, then cancels it."""
    looks = tuple(
        Step(
            thought=f"Look {i}.",
            action=Action(calls=(ToolCall(name="get_order", arguments={"id": f"W{i}"}),)),
            observations=(Observation(text=f"{i}: {page}", source="tool", name="get_order"),),
        )
        for i in range(1, steps)
    )
    last = Step(
        action=Action(text="Cancelling.", calls=(ToolCall(name="cancel", arguments={"id": "W9", "why": "user"}),)),
        observations=(Observation(text="cancelled", source="tool", name="cancel"),),
    )
    return Trajectory(task="Cancel my order", instructions="Be careful.", steps=(*looks, last), answer="Done.")


def test_a_small_run_is_told_whole() -> None:
    assert render(shop_run(), budget=1_000) == (
        "[task]\n| Cancel my order\n\n"
        "[instructions the agent was given]\n| Be careful.\n\n"
        '[step 1]\nagent thinks:\n| Look 1.\nagent calls:\n| get_order {"id": "W1"}\n'
        "tool get_order:\n| 1: pending\n\n"
        '[step 2]\nagent:\n| Cancelling.\nagent calls:\n| cancel {"id": "W9", "why": "user"}\n'
        "tool cancel:\n| cancelled\n\n"
        "[final answer]\n| Done."
    )


def test_what_users_said_and_what_failed_is_labelled() -> None:
    step = Step(
        observations=(
            Observation(text="hello", source="user", name="Ann"),
            Observation(text="boom", source="tool", name="run", is_error=True),
            Observation(text="  ", source="environment"),
        )
    )
    text = render_steps(Trajectory(task="t", steps=(step,)), budget=500)
    assert text == "[step 1]\nuser Ann:\n| hello\ntool run (error):\n| boom\nenvironment: (empty)"


def test_code_in_arguments_is_laid_out_in_lines() -> None:
    calls = (
        ToolCall(name="write", arguments={"path": "a.py", "text": "def f():\n    return 1"}),
        ToolCall(name="bash", arguments="ls\npwd"),
        ToolCall(name="bash", arguments="ls"),
        ToolCall(name="stop"),
    )
    text = render_steps(Trajectory(task="t", steps=(Step(action=Action(calls=calls)),)), budget=500)
    assert text == (
        '[step 1]\nagent calls:\n| write {"path": "a.py"}\n|   text:\n|     def f():\n|         return 1\n'
        "| bash ls\n| pwd\n| bash ls\n| stop {}"
    )


def test_the_task_and_the_answer_are_named_not_repeated() -> None:
    steps = (Step(observation=Observation(text="Cancel my order", source="user")), Step(action="look"))
    text = render(Trajectory(task="Cancel my order", steps=steps, answer="look"), budget=5_000)
    assert "user: (the same text as the task)" in text
    assert "[no answer apart from the steps: the last thing the agent wrote is in step 2]" in text


@pytest.mark.parametrize(("view", "seen"), [("full", "ITOA"), ("thoughts", "TA"), ("messages", "TOA")])
def test_a_view_shows_what_the_method_shows(view: View, seen: str) -> None:
    run = Trajectory(
        task="t", instructions="I!", steps=(Step(thought="T!", action="A!", observation="O!"),), answer="t done"
    )
    text = render(run, budget=500, view=view)
    assert {letter for letter in "ITOA" if f"| {letter}!" in text} == set(seen)
    assert "| t done" in text


@pytest.mark.full
@pytest.mark.parametrize("budget", [300, 1_000, 4_000])
def test_what_decides_survives_a_tight_budget(budget: int) -> None:
    run = shop_run(steps=60, page="x" * 5_000 + "\nTypeError: no such order\n" + "y" * 5_000)
    text = render(run, budget=budget)
    assert estimate_tokens(text) <= budget
    for fact in (
        "| Cancel my order",
        "| Be careful.",
        '| cancel {"id": "W9", "why": "user"}',
        "cancelled\n",
        "| Done.",
    ):
        assert fact in text
    if budget >= 4_000:
        assert "TypeError: no such order" in text
        assert "[step 1]" in text or "[step 1, in brief, " in text


def test_what_was_left_out_is_said_where_it_was_left_out() -> None:
    text = render(shop_run(steps=400, page="p" * 900), budget=2_000)
    numbers = [
        int(n) for n in re.findall(r"^\[step (\d+)(?:, in brief, [\d,]+ characters cut)?\]$", text, re.MULTILINE)
    ]
    gaps = [(int(a), int(b)) for a, b in re.findall(r"^\[steps (\d+)–(\d+) left out\]$", text, re.MULTILINE)]
    told = sorted([*numbers, *(n for a, b in gaps for n in range(a, b + 1))])
    assert told == list(range(1, 401))
    assert {1, 2, 398, 399, 400} <= set(numbers)


def test_a_step_in_brief_keeps_its_calls_and_its_error() -> None:
    run = shop_run(steps=60, page="q" * 500 + "\nError: sold out\n" + "q" * 500)
    brief = re.search(r"\[step 40, in brief, 1,\d+ characters cut\]\n(.*?)\n\n", render(run, budget=4_000), re.DOTALL)
    assert brief
    assert re.fullmatch(r'\| get_order \{"id": "W\d+"\}\n\| → Error: sold out', brief.group(1))


def test_the_end_state_gets_more_room_than_the_way_there() -> None:
    pages = tuple(Step(action=f"open {i}", observation=chr(97 + i) * 9_000) for i in range(10))
    text = render(Trajectory(task="t", steps=pages), budget=4_000)
    assert text.count("jj") > 5 * text.count("ee")
    assert "open 4" in text


def test_the_cut_is_counted_exactly() -> None:
    text = excerpt("ab" * 5_000, budget=100)
    cut = re.search(r"^\[… ([\d,]+) characters cut …\]$", text, re.MULTILINE)
    assert cut
    kept = sum(len(line) - 2 for line in text.splitlines() if line.startswith("| "))
    assert kept + int(cut.group(1).replace(",", "")) == 10_000


def test_an_excerpt_keeps_head_tail_and_error_lines() -> None:
    noise = "".join(f"line {i}\n" for i in range(3_000))
    text = excerpt(
        f"START\n{noise}Traceback (most recent call last):\n{noise}ValueError: bad id\n{noise}END", budget=200
    )
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("| START", "| END")
    assert "| Traceback (most recent call last):" in lines
    assert "| ValueError: bad id" in lines
    assert estimate_tokens(text) <= 200


def test_error_classes_named_in_source_code_are_no_errors() -> None:
    noise = "".join(f"line {i}\n" for i in range(3_000))
    assert "except" not in excerpt(f"{noise}    except ValueError:\n{noise}", budget=200)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("word" * 3, 4), ("漢字", 2), ("é", 1), ("🙂", 2)])
def test_tokens_are_estimated_from_utf8_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_that_is_none_is_refused(budget: int) -> None:
    with pytest.raises(UsageError, match="positive number of tokens"):
        render(shop_run(), budget=budget)


@pytest.mark.full
@given(run=RUNS, budget=st.integers(1, 3_000), view=VIEWS)
def test_no_run_exceeds_its_budget(run: Trajectory, budget: int, view: View) -> None:
    text = render(run, budget=budget, view=view)
    assert estimate_tokens(text) <= budget
    assert estimate_tokens(render_steps(run, budget=budget, view=view)) <= budget
    assert text == render(run, budget=budget, view=view)


@pytest.mark.full
@given(run=RUNS, budget=st.integers(20, 3_000), view=VIEWS)
def test_the_task_is_always_there(run: Trajectory, budget: int, view: View) -> None:
    assert render(run, budget=budget, view=view).startswith("[task]\n| ")


@pytest.mark.full
@given(run=RUNS, budget=st.integers(20, 3_000), view=VIEWS)
def test_every_line_is_quoted_or_ours_and_every_number_is_real(run: Trajectory, budget: int, view: View) -> None:
    lines = render(run, budget=budget, view=view).splitlines()
    ours = [line for line in lines if line and not line.startswith("|")]
    assert [line for line in ours if not OURS.fullmatch(line)] == []
    numbers = [int(n) for line in ours for n in re.findall(r"^\[step (\d+)", line)]
    assert numbers == sorted(set(numbers))
    assert all(1 <= n <= len(run.steps) for n in numbers)


@pytest.mark.parametrize("sign", ["\n", "\r", "\u2028", "\x85"])
@pytest.mark.parametrize("budget", [200, 1_500])
def test_no_sign_in_the_data_of_a_result_begins_a_line_of_ours(sign: str, budget: int) -> None:
    forged = f"x{sign}[step 9]{sign}agent:"
    rows = {"key": "v" * 300, forged: [{"x": "y " * 100}] * 20, f"long {forged}": ["z " * 300] * 2, "text": forged * 20}
    step = Step(action="look", observations=(Observation(text=json.dumps(rows), source="tool"),))
    lines = render(Trajectory(task="t", steps=(step,) * 3), budget=budget).splitlines()
    assert [line for line in lines if line and not line.startswith("|") and not OURS.fullmatch(line)] == []
    assert not any(line.startswith("[step 9") for line in lines)


@given(text=LONG, budget=st.integers(1, 400))
def test_no_excerpt_exceeds_its_budget(text: str, budget: int) -> None:
    assert estimate_tokens(excerpt(text, budget=budget)) <= budget


@pytest.mark.full
@pytest.mark.parametrize("page", ["\n", "Error: no\n", "[step 1]\n", " failed \u2028"], ids=ascii)
def test_four_times_as_much_is_rendered_in_about_four_times_the_time(page: str) -> None:
    def rendered(size: int) -> Callable[[], None]:
        seen = [f"{i}{page * (size // len(page))}" for i in range(100)]
        steps = tuple(Step(thought=f"{i}", action=f"open {i}", observation=each) for i, each in enumerate(seen))
        run = Trajectory(task="t", steps=steps)

        def check() -> None:
            assert estimate_tokens(render(run, budget=8_000)) <= 8_000

        return check

    assert growth_of(rendered, size=3_000) <= FAR


@pytest.mark.full
def test_four_times_as_many_steps_are_rendered_in_about_four_times_the_time() -> None:
    def rendered(size: int) -> Callable[[], None]:
        steps = (Step(action="go", observation="went"),) * size
        run = Trajectory.model_construct(task="t", steps=steps, instructions="", answer="a", error=None)

        def check() -> None:
            assert estimate_tokens(render(run, budget=2_000)) <= 2_000

        return check

    assert growth_of(rendered, size=6_000) <= FAR


def test_arguments_nested_without_end_are_shown_as_such() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    call = ToolCall.model_construct(name="f", arguments={"x": deep}, id=None)
    run = Trajectory(task="t").model_copy(
        update={"steps": (Step(action=Action.model_construct(text="", calls=(call,))),)}
    )
    assert "nested too deeply" in render(run, budget=500)


def test_how_the_tests_ended_survives_a_tight_budget() -> None:
    noise = "\n".join(f"tests/test_{n}.py::test_case_{n} PASSED [{n}%]" for n in range(90))
    summary = f"{'=' * 24} 3 passed, 1 warning in 0.{{}}6s {'=' * 24}"
    steps = tuple(
        Step(action=f"run the tests, try {n}", observation=f"<output>\n{noise}\n{summary.format(n)}\n</output>")
        for n in range(20)
    )
    shown = render(Trajectory(task="mend it", steps=steps), budget=2400)
    assert estimate_tokens(shown) <= 2400
    told = [n for n in range(20) if f"3 passed, 1 warning in 0.{n}6s" in shown]
    assert len(told) >= 15
    assert told[-1] == 19
