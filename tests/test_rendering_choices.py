"""Each choice of the rendering keeps what decides, on runs in the shapes that agents' programs record."""

from __future__ import annotations

import json
import re

import pytest

from lessonbank.contracts.records import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.text.rendering import estimate_tokens, incomplete_steps, render, render_instructions

GOAL = 'Order 6 "Loaner Laptop" for one month'
FILLER = "\n".join(f"\t[{n}] link 'Entry {n} of the menu', url='https://shop.example/{n}'" for n in range(100, 300))


def page(title: str, *nodes: str) -> Observation:
    """A page as BrowserGym's agents record it: the goal, the tabs, the accessibility tree."""
    tree = "\n".join(f"\t{node}" for node in nodes)
    navigation = f"\t[40] navigation 'Primary'\n{FILLER.replace(chr(9), chr(9) * 2)}"
    text = f"# Goal\n{GOAL}\n# Current page Accessibility Tree\nRootWebArea '{title}', focused\n{navigation}\n{tree}"
    return Observation(text=text, source="user")


def form(*, quantity: str = "1", order: str = "[a9] button 'Order Now'") -> Observation:
    """The order form, with a quantity."""
    options = [f"[b{n}] option '{n}', selected={n == int(quantity)}" for n in range(1, 8)]
    return page(
        "Loaner Laptop",
        "[a1] heading 'Loaner Laptop'",
        "StaticText 'Short term loans while a computer is repaired'",
        "[a4] radio 'One month', checked='true'",
        "[a5] radio 'One week', checked='false'",
        f"[a7] combobox 'Quantity' value='{quantity}', hasPopup='menu', expanded=False",
        *(f"\t{option}" for option in options),
        order,
    )


def shop() -> Trajectory:
    """A run that sets a quantity and orders."""
    done = page("Order Status: REQ0010029", "StaticText 'Thank you, your request has been submitted'")
    steps = (
        Step(observations=(form(),)),
        Step(action="I set it.\n\n```select_option('a7', '6')```", observations=(form(quantity="6"),)),
        Step(action="I order.\n\n```click('a9')```", observations=(done,)),
        Step(action="```send_msg_to_user('Ordered.')```"),
    )
    return Trajectory(task=GOAL, steps=steps)


def told(text: str, number: int) -> str:
    """One step of a rendered run."""
    found = re.search(
        rf"^\[step {number}(?:, in brief, [\d,]+ characters cut)?\]\n(.*?)(?=^\[(?:steps? |not |the |no |final )|\Z)",
        text,
        re.DOTALL | re.MULTILINE,
    )
    assert found, f"step {number} is not told"
    return found[1]


def test_a_page_is_told_by_what_changed_with_what_it_held_before() -> None:
    text = told(render(shop(), budget=3_000), 2)
    assert "+  combobox 'Quantity' value='6' (before: value='1')" in text
    assert "what changed since step 1" in text
    assert "Short term loans" not in text


def test_the_last_look_at_a_page_tells_its_whole_state() -> None:
    text = told(render(shop(), budget=3_000), 2)
    assert "radio 'One month' checked=true" in text
    assert "radio 'One week' checked=false" in text


def test_a_page_that_is_emptied_while_the_next_one_loads_is_told_so_and_not_as_the_form_again() -> None:
    filled = page("Loaner Laptop", *(f"[b{n}] textbox 'Field {n}' value='{n}'" for n in range(40)))
    loading = page("Loaner Laptop", "[a1] region 'Announcement'")
    steps = (Step(observations=(filled,)), Step(action="```click('a9')```", observations=(loading,)))
    text = render(Trajectory(task=GOAL, steps=steps), budget=3_000)
    assert re.search(r"\(the page is nearly empty, with \d lines of the 4\d in step 1\)", told(text, 2))
    assert 2 in incomplete_steps(text), "it may be seen whole"


def test_navigation_and_the_goal_are_not_told_on_every_page() -> None:
    text = render(shop(), budget=3_000)
    assert "of the menu" not in text
    assert text.count(GOAL) == 1


def test_the_element_an_action_touched_is_told_by_its_name() -> None:
    text = render(shop(), budget=3_000)
    assert "```select_option('a7', '6')``` (combobox 'Quantity')" in text
    assert "```click('a9')``` (button 'Order Now')" in text


def test_a_snapshot_with_references_is_read_as_a_page_too() -> None:
    nodes = [f'  - link "Entry {n}" [ref=e{n}]' for n in range(10)]
    before = "\n".join(("- main [ref=m1]:", *nodes, '  - checkbox "I agree" [ref=e77]'))
    after = before.replace('"I agree" [ref=e77]', '"I agree" [checked] [ref=e77]')
    call = ToolCall(name="browser_click", arguments={"element": "box", "ref": "e77"})
    run = Trajectory(
        task="Agree",
        steps=(
            Step(observations=(Observation(text=before, source="tool"),)),
            Step(action=Action(calls=(call,)), observations=(Observation(text=after, source="tool"),)),
        ),
    )
    text = told(render(run, budget=2_000), 2)
    assert "(checkbox 'I agree')" in text
    assert "checkbox 'I agree' checked=true (before: nothing)" in text
    assert "Entry" not in text


DIFF = """diff --git a/shop/cart.py b/shop/cart.py
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -41,3 +41,3 @@ def total(lines):
     amounts = [line.amount for line in lines]
-    return sum(amounts) - rebate(amounts)
+    return max(sum(amounts) - rebate(amounts), 0)
"""


def bash(command: str, output: str) -> Step:
    """A command and its output, as mini-swe-agent records them."""
    call = ToolCall(name="bash", arguments={"command": command})
    text = f"<returncode>0</returncode>\n<output>\n{output}\n</output>"
    return Step(
        thought="", action=Action(calls=(call,)), observations=(Observation(text=text, source="tool", name="bash"),)
    )


def source(first: str) -> str:
    """A long file, in which `first` stands in the middle."""
    lines = [f"def other_{n}(value): return value + {n}  # unrelated" for n in range(400)]
    lines[200:200] = ["def total(lines):", "    amounts = [line.amount for line in lines]", first, "# after the place"]
    return "\n".join(lines)


def coding(*, tests: int = 90) -> Trajectory:
    """A run that reads, reproduces, edits, tests and submits."""
    passed = "\n".join(f"tests/test_cart.py::test_case_{n} PASSED [{n}%]" for n in range(tests))
    noise = "\n".join(f"Requirement already satisfied: part-{n}" for n in range(200))
    steps = (
        bash("ls -la", "\n".join(f"-rw-r--r-- 1 root root 10 file_{n}.txt" for n in range(200))),
        bash("pip install -e .", f"{noise}\nSuccessfully installed shop"),
        bash("cat shop/cart.py", source("    return sum(amounts) - rebate(amounts)")),
        bash("cat > repro.py << 'EOF'\nfrom shop.cart import total\nprint(total([]))\nEOF", ""),
        bash("python repro.py", "total is -5"),
        bash(
            "python -m pytest tests", f"{passed}\nFAILED tests/test_cart.py::test_negative\n1 failed, 89 passed in 3s"
        ),
        bash("sed -i 's/return sum(.*)/return max(sum(amounts) - rebate(amounts), 0)/' shop/cart.py", ""),
        bash("git diff", DIFF),
        bash("python repro.py", "total is 0"),
        bash("python -m pytest tests", f"{passed}\n90 passed in 4s"),
        bash("git diff -- shop/cart.py > patch.txt && cat patch.txt", DIFF),
    )
    return Trajectory(task="A total is never negative", steps=steps)


def test_the_final_diff_is_whole_and_stands_once() -> None:
    text = render(coding(), budget=1_500)
    assert all(f"| {line}" in text for line in DIFF.strip().split("\n"))
    assert text.count("+    return max(") == 1


def test_the_code_around_the_change_is_kept_from_where_it_was_read() -> None:
    text = told(render(coding(), budget=1_500), 3)
    assert "|     return sum(amounts) - rebate(amounts)" in text
    assert "| # after the place" in text
    assert "other_150" not in text


def test_fifteen_lines_on_both_sides_of_a_hunk_are_told_before_other_output() -> None:
    start, *rest = coding().steps
    noisy = [bash(f"python probe.py {n}", f"Error: probe {n} failed\n" * 40) for n in range(20)]
    run = Trajectory(task="A total is never negative", steps=(start, *rest[:-1], *noisy, rest[-1]))
    text = told(render(run, budget=4_000), 3)
    assert all(f"def other_{n}(value)" in text for n in (186, 199, 200, 213))


def test_a_line_of_the_hunk_that_stands_elsewhere_alone_draws_no_place() -> None:
    start, *rest = coding().steps
    elsewhere = "\n".join(
        [f"# note {n}" for n in range(300)] + ["    amounts = [line.amount for line in lines]"] + ["# far"] * 300
    )
    other = bash("cat shop/report.py", elsewhere)
    text = render(
        Trajectory(task="A total is never negative", steps=(start, *rest[:2], other, *rest[2:])), budget=1_500
    )
    assert "| # after the place" in told(text, 3)
    assert "note 299" not in text


def test_tests_after_the_last_edit_are_told_by_their_counts() -> None:
    text = render(coding(), budget=1_000)
    assert "90 passed in 4s" in told(text, 10)
    assert "PASSED" not in text


def test_the_reproduction_is_told_before_and_after() -> None:
    text = render(coding(), budget=1_500)
    assert "total is -5" in told(text, 5)
    assert "total is 0" in told(text, 9)


def test_what_was_installed_and_listed_goes_first() -> None:
    text = render(coding(), budget=1_500)
    assert "Requirement already" not in text
    assert text.count("-rw-r--r--") < 20


DOTS = "\n".join(f"creating table number {n} of the test database, please wait" for n in range(60))
TRACE = "\n".join(f'  File "/testbed/shop/deep_{n}.py", line {n}, in call\n    return step_{n}()' for n in range(30))


COMMANDS = [
    (
        "python -m pytest -q tests",
        f"{DOTS}\nFAILED tests/test_cart.py::test_rebate - assert 4 == 5\n{DOTS}\n== 1 failed, 89 passed in 3s ==",
        ("FAILED tests/test_cart.py::test_rebate", "1 failed, 89 passed"),
    ),
    (
        "python tests/runtests.py cart",
        f"{DOTS}\nERROR: test_rebate (cart.Rebates)\n{TRACE}\nRan 12 tests in 0.3s\n\nFAILED (errors=1)\n{DOTS}",
        ("ERROR: test_rebate (cart.Rebates)", "Ran 12 tests", "FAILED (errors=1)"),
    ),
    (
        "python -m django test cart",
        f"Traceback (most recent call last):\n{TRACE}\nshop.errors.ImproperlyConfigured: no settings\n{DOTS}",
        ("shop.errors.ImproperlyConfigured: no settings",),
    ),
    ("python repro.py", f"{DOTS}\ntotal is -5\n", ("total is -5",)),
    (
        "python check.py",
        f"{DOTS}\n  FAILED: an empty cart\n  SUCCESS: a rebate is kept\n{DOTS}\nTest completed!\n",
        ("FAILED: an empty cart", "SUCCESS: a rebate is kept"),
    ),
    (
        "python check.py",
        f"{DOTS}\n✗ an empty cart\n✓ a rebate is kept\n{DOTS}\nTest completed!\n",
        ("✗ an empty cart", "✓ a rebate is kept"),
    ),
    (
        "go test ./...",
        f"{DOTS}\n--- FAIL: TestCart (0.00s)\n{DOTS}\nFAIL\tshop/cart\t0.01s",
        ("TestCart", "shop/cart"),
    ),
]


@pytest.mark.parametrize(
    ("command", "output", "kept"),
    [pytest.param(*case, marks=[pytest.mark.full] * (n not in (0, 3))) for n, case in enumerate(COMMANDS)],
)
def test_a_command_told_in_brief_keeps_how_it_went(command: str, output: str, kept: tuple[str, ...]) -> None:
    start, *rest = coding().steps
    later = (bash(f"sed -n '{n}p' shop/cart.py", source(f"# look {n}")) for n in range(30))
    run = Trajectory(task="A total is never negative", steps=(start, *rest[1:3], bash(command, output), *later, *rest))
    text = render(run, budget=2_200)
    assert "[step 4, in brief, " in text
    assert all(any(part in line for line in told(text, 4).splitlines() if line.startswith("| → ")) for part in kept)
    assert "please wait" not in text
    assert len(told(text, 4)) < 420


def test_what_commands_said_leaves_room_for_the_final_change() -> None:
    start, *rest = coding().steps
    failed = "\n".join(f"FAILED tests/test_cart.py::test_{n}_{'x' * 60}" for n in range(40))
    many = (bash(f"python -m pytest -q tests -k {n}", f"{failed}\n40 failed in {n}s") for n in range(80))
    text = render(Trajectory(task="Mend it", steps=(start, *many, *rest)), budget=2_000)
    assert all(f"| {line}" in text for line in DIFF.strip().split("\n"))


@pytest.mark.parametrize("budget", [1_000, 2_000])
def test_every_action_is_told_in_one_line(budget: int) -> None:
    text = render(coding(), budget=budget)
    for step in coding().steps:
        (call,) = step.action.calls
        command = call.arguments["command"] if isinstance(call.arguments, dict) else call.arguments
        assert f"| bash {str(command).splitlines()[0][:60]}" in text


FLIGHTS = [
    {"flight": f"HAT{n:03}", "date": "2024-05-21", "note": "n" * 300, "prices": {"economy": 500 - n if n != 77 else 9}}
    for n in range(120)
]


def test_a_long_list_keeps_its_first_row_and_says_how_many_it_has() -> None:
    steps = (
        Step(
            action=Action(calls=(ToolCall(name="search", arguments={"to": "EWR"}),)),
            observations=(Observation(text=json.dumps(FLIGHTS), source="tool", name="search"),),
        ),
        Step(
            action=Action(calls=(ToolCall(name="book", arguments={"flight": "HAT042"}),)),
            observations=(Observation(text="booked", source="tool", name="book"),),
        ),
        *(Step(action=f"talk {n}", observations=(Observation(text="m" * 900, source="tool"),)) for n in range(6)),
    )
    text = told(render(Trajectory(task="Book a flight", steps=steps), budget=1_500), 1)
    rows = re.findall(r'"flight": "(HAT\d+)"', text)
    assert rows[0] == "HAT000"
    assert len(rows) < 20
    assert "120 rows" in text


def test_the_short_fields_of_a_record_stay_together() -> None:
    record = {"id": "NM1", "cabin": "basic_economy", "insurance": "no", "flights": FLIGHTS[:3], "history": FLIGHTS[3:6]}
    steps = (
        Step(
            action=Action(calls=(ToolCall(name="get", arguments={"id": "NM1"}),)),
            observations=(Observation(text=json.dumps(record), source="tool", name="get"),),
        ),
        *(Step(action=f"talk {n}", observations=(Observation(text="m" * 400, source="tool"),)) for n in range(6)),
    )
    text = told(render(Trajectory(task="Change it", steps=steps), budget=800), 1)
    assert '{"id": "NM1", "cabin": "basic_economy", "insurance": "no", "flights": "… 3 rows, 1,152 characters"' in text


def test_the_end_of_a_run_is_told() -> None:
    call = Action(calls=(ToolCall(name="submit"),))
    endings = {
        "[the record ends with step 1: what it led to was not recorded]": Trajectory(
            task="t", steps=(Step(action=call),)
        ),
        "[what stopped the run]\n| limit of 50 steps": Trajectory(
            task="t", steps=(Step(action=call),), error="limit of 50 steps"
        ),
        "[final answer]\n| 42": Trajectory(task="t", steps=(Step(action=call, observation="ok"),), answer="42"),
    }
    for ending, run in endings.items():
        assert ending in render(run, budget=500)


SYSTEM = """Act on pages.

click(bid: str)
    Examples:
        click('a51')

noop()
    Examples:
        noop(500)

Answer with one action."""


def test_the_instructions_are_the_same_text_in_every_run_of_an_agent() -> None:
    frame = "<pr>\n{task}\n</pr>\n" + "Work in /repo. Do not change tests. " * 20
    runs = [
        Trajectory(
            task=task,
            instructions=SYSTEM,
            steps=(Step(observations=(Observation(text=frame.format(task=task), source="user"),)), Step(action=task)),
        )
        for task in ("Mend the cart", "Mend the till\nand its drawer")
    ]
    first, second = map(render_instructions, runs)
    assert first == second
    assert "| click(bid: str)" in first
    assert "Do not change tests." in first
    assert "a51" not in first
    assert "Do not change tests." not in render(runs[0], budget=2_000, instructions=False)


def test_a_second_look_shows_the_named_steps_whole() -> None:
    run = coding()
    first = render(run, budget=800)
    assert 3 in incomplete_steps(first)
    assert "other_150" not in first
    second = render(run, budget=9_000, steps=[3])
    assert "other_150" in second
    assert re.findall(r"^\[step (\d+)", second, re.MULTILINE) == ["3"]
    assert estimate_tokens(second) <= 9_000


def searching(steps: int) -> Trajectory:
    """A long run in a shell that ends with a change: more actions than there is room for, each with its result."""
    looking = "cd /repo && grep -n"
    looks = [
        Step(
            action=Action(calls=(ToolCall(name="bash", arguments={"command": f"{looking} 'part {n}' {'-x ' * 30}"}),)),
            observations=(Observation(text="\n".join(f"{n}:{line}: part" for line in range(60)), source="tool"),),
        )
        for n in range(2, steps + 1)
    ]  # fmt: skip
    diff = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n def a():\n-    return 1\n+    return 2\n"
    )
    last = Step(
        action=Action(calls=(ToolCall(name="bash", arguments={"command": "git diff"}),)),
        observations=(Observation(text=diff, source="tool"),),
    )
    return Trajectory(task="Fix the parts", steps=(Step(action="I look."), *looks, last))


@pytest.mark.parametrize(("steps", "budget"), [(60, 2_500), (120, 4_000)])
def test_every_action_of_a_long_run_is_told_in_one_line_at_least(steps: int, budget: int) -> None:
    text = render(searching(steps), budget=budget)
    assert estimate_tokens(text) <= budget
    assert "left out]" not in text
    assert all(f"grep -n 'part {n}" in text for n in range(2, steps + 1))
    assert "| +    return 2" in text
    assert 2 in incomplete_steps(text), "a second look may show it"


@pytest.mark.full
def test_of_more_actions_than_there_is_room_for_the_last_are_told_and_the_others_named() -> None:
    text = render(searching(300), budget=4_000)
    assert estimate_tokens(text) <= 4_000
    (first, last) = re.findall(r"^\[steps (\d+)–(\d+) left out\]$", text, re.MULTILINE)[0]
    assert all(f"grep -n 'part {n}" in text for n in range(int(last) + 1, 301))
    assert {int(first), int(last)} <= set(incomplete_steps(text)), "a second look may show them"


def test_steps_that_are_left_out_or_told_in_brief_are_incomplete() -> None:
    brief = "[step 5, in brief, 1,200 characters cut]\n| b"
    shown = f"[step 1]\nagent:\n| a\n\n[steps 2–4 left out]\n\n{brief}\n\n[not told whole: steps 1, 7–8]"
    assert incomplete_steps(shown) == (1, 2, 3, 4, 5, 7, 8)
    assert incomplete_steps("[step 1]\nagent:\n| [steps 2–4 left out]") == ()


def table(*rows: tuple[str, ...], role: str = "cell") -> list[str]:
    """The rows of a table as an accessibility tree has them, cells under nameless groups."""
    lines: list[str] = []
    for n, cells in enumerate(rows):
        lines.append(f"[r{n}] row 'https://shop.example/product/{n}'")
        for m, cell in enumerate(cells):
            lines += [f"\t[c{n}{m}] {role} '{cell}'", f"\t\tStaticText '{cell}'"]
    return lines


@pytest.mark.parametrize("role", ["cell", "gridcell"])
def test_a_row_of_a_table_is_told_with_its_cells(role: str) -> None:
    seen = page("Bestsellers", *table(("Month", "Product", "Sold"), ("May", "Red lamp", "7"), role=role))
    text = render(Trajectory(task="Which sold best?", steps=(Step(observations=(seen,)),)), budget=3_000)
    assert "row 'Month' | 'Product' | 'Sold'" in text
    assert "row 'May' | 'Red lamp' | '7'" in text
    assert text.count("Red lamp") == 1


def test_text_in_a_cell_without_a_name_belongs_to_the_row() -> None:
    nodes = ("[r1] row ''", "\t[c1] cell ''", "\t\tStaticText 'Ada'", "\t[c2] cell ''", "\t\t[l1] link 'Edit'")
    seen = page("Customers", *nodes)
    text = render(Trajectory(task="Who?", steps=(Step(observations=(seen,)),)), budget=3_000)
    assert "row 'Ada'\n" in text
    assert "link 'Edit'" in text


def test_a_part_of_the_page_that_is_laid_out_as_a_table_is_told_by_its_lines() -> None:
    words = "Red lamp Add to cart " * 12
    nodes = ("[r1] row ''", f"\t[c1] cell '{words}'", "\t\t[l1] link 'Red lamp'", "\t\t[b1] button 'Add to cart'")
    text = render(Trajectory(task="Buy", steps=(Step(observations=(page("Shop", *nodes),)),)), budget=3_000)
    assert "|  link 'Red lamp'\n|  button 'Add to cart'" in text
    assert words not in text


def test_a_changed_cell_shows_the_new_row() -> None:
    before, after = (page("Orders", *table(("1001", state))) for state in ("Open", "Shipped"))
    run = Trajectory(task="Ship it", steps=(Step(observations=(before,)), Step(action="ship", observations=(after,))))
    assert "+  row '1001' | 'Shipped'" in told(render(run, budget=3_000), 2)


def test_a_field_of_a_record_that_is_left_out_is_named_with_its_size() -> None:
    record = {"flights": FLIGHTS[:3], "passengers": FLIGHTS[3:6]}
    get = Action(calls=(ToolCall(name="get", arguments={"id": "NM1"}),))
    steps = (
        Step(action=get, observations=(Observation(text=json.dumps(record), source="tool", name="get"),)),
        *(Step(action=f"talk {n}", observations=(Observation(text="m" * 900, source="tool"),)) for n in range(6)),
    )
    text = told(render(Trajectory(task="Change it", steps=steps), budget=500), 1)
    assert '"flights": "… 3 rows, 1,152 characters", "passengers": "… 3 rows, 1,152 characters"' in text


def busy(step: Step) -> str:
    """A run in which little of the fourth step can be told: a bug is fixed after many looks."""
    start, *rest = coding().steps
    later = (bash(f"sed -n '{n}p' shop/cart.py", source(f"# look {n}")) for n in range(30))
    return render(
        Trajectory(task="A total is never negative", steps=(start, *rest[1:3], step, *later, *rest)), budget=2_200
    )


@pytest.mark.full
def test_a_step_told_in_brief_says_how_much_of_it_was_cut() -> None:
    cut = re.search(
        r"^\[step 4, in brief, ([\d,]+) characters cut\]$", busy(bash("python show.py", DOTS)), re.MULTILINE
    )
    assert cut
    assert 0 < len(DOTS) - int(cut[1].replace(",", "")) < 200


@pytest.mark.full
def test_a_long_command_told_in_brief_shows_that_it_goes_on() -> None:
    text = busy(bash(f"grep -n '{'a' * 900}' shop/cart.py", DOTS))
    assert re.search(r"^\| bash grep -n 'a+…$", told(text, 4), re.MULTILINE)


@pytest.mark.full
@pytest.mark.parametrize("command", ["cat fix.patch", "git diff HEAD~1", "python -c 'print(total)'"])
def test_what_a_command_printed_is_not_hidden_in_brief(command: str) -> None:
    text = busy(bash(command, f"{DOTS}\n+    return max(0, total)"))
    assert "[step 4, in brief, " in text
    assert told(text, 4).endswith("| → +    return max(0, total)\n\n")


@pytest.mark.full
def test_a_short_output_is_told_in_brief_as_a_whole() -> None:
    text = busy(bash("python show.py # " + "a long comment " * 60, "total -3\nitems 2\nok"))
    assert "| → total -3\n| → items 2\n| → ok" in told(text, 4)


def test_a_page_told_by_what_changed_may_be_seen_whole() -> None:
    run = shop()
    first = render(run, budget=3_000)
    assert 2 in incomplete_steps(first)
    assert "Short term loans" not in told(first, 2)
    assert "Short term loans" in render(run, budget=3_000, steps=[2])
