"""What an agent in a browser is shown, how its reply becomes an action, and how a task is played: without a browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear import too_slow

from lessonbank.errors import MissingExtra, ModelError, UsageError
from lessonbank.testing import ScriptedModel
from lessonbank_bench.environments import Job
from lessonbank_bench.environments.browser_agent import NO_ACTION, PAGE_LIMIT, Browsing, Page, browse, last_action
from lessonbank_bench.environments.chromium import EXECUTABLES, Seen, check_packages, find_chromium
from lessonbank_bench.environments.element_marks import marked
from lessonbank_bench.environments.playwright_thread import DriverGone, Worker

NAMES = frozenset({"click", "fill", "send_msg_to_user"})
TASK = Job("shop/1", 0, "Buy a lamp.", "buy", "shop", None)


@dataclass
class Actions:
    """As much of BrowserGym's action set as a prompt needs."""

    action_set: Mapping[str, None] = field(default_factory=lambda: dict.fromkeys(sorted(NAMES)))

    def describe(self) -> str:
        return "\nclick(bid: str)\n    Description: Click an element.\n"


class Shop:
    """A page that counts its clicks and is content with two of them."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.closed = 0

    def begin(self) -> dict[str, Any]:
        return {"tree": "[1] button 'Buy'"}

    def act(self, action: str, /) -> Seen:
        self.done.append(action)
        over = len(self.done) == 2
        return Seen({"tree": f"clicks: {len(self.done)}"}, float(over), over)

    def close(self) -> None:
        self.closed += 1


def see(observation: Mapping[str, Any]) -> Page:
    return Page(TASK.goal, observation["tree"], url="shop/", answer="bought" if "2" in observation["tree"] else None)


def played(
    replies: list[Any] | Callable[..., Any], *, memory: str = "", most: int = 5
) -> tuple[Any, ScriptedModel, Shop]:
    model, shop = ScriptedModel(replies), Shop()
    agent = Browsing(model, Actions(), temperature=0.7)
    return browse(shop, agent, TASK, memory, most=most, see=see), model, shop  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("I press it.\nclick('12')", "click('12')"),
        ("First click('1'), no: click('2')", "click('2')"),
        ("```\nfill('a7', 'it\\'s (new)')\n```", "fill('a7', 'it\\'s (new)')"),
        ("send_msg_to_user('call click(\"3\") to go on')", "send_msg_to_user('call click(\"3\") to go on')"),
        ("click('1') is what upload_file('/etc/passwd') would need", "click('1')"),
        ("goto('https://example.org')", ""),
        ("There is nothing to do.", ""),
        ("fill('7', 'unfinished", ""),
        ("", ""),
    ],
)
def test_the_last_call_of_a_reply_is_its_action(reply: str, action: str) -> None:
    assert last_action(reply, NAMES) == action


@given(st.text(alphabet="click()'\"\\ a,\n", max_size=200))
def test_whatever_a_reply_is_its_action_is_a_part_of_it(reply: str) -> None:
    action = last_action(reply, NAMES)
    assert action in reply
    assert not action or (action.startswith("click(") and action.endswith(")"))


def test_a_reply_of_megabytes_is_read_in_no_time() -> None:
    for piece in ("click(", "click('", "a"):
        assert last_action(piece * 10_000, NAMES) == ""
    assert too_slow({"last_action": lambda text: last_action(text, NAMES)}, pieces=["click(", "click('", "a"]) == {}


def test_memory_ends_the_instructions_and_the_page_comes_with_what_was_done() -> None:
    memory = "Lamps are in the second aisle.\n"
    finished, model, shop = played(["I buy it.\nclick('1')", "Again.\nclick('2')"], memory=memory)
    assert [call.messages[0].content.endswith(f"\n\n{memory}") for call in model.calls] == [True, True]
    assert model.calls[0].messages[0].content.startswith(finished.run.instructions)
    assert memory not in finished.run.instructions
    first, second = (call.messages[1].content for call in model.calls)
    assert "# What you did so far" not in first
    assert first.endswith("# Page\n[1] button 'Buy'")
    assert "# What you did so far\nStep 1\nI buy it.\nclick('1')" in second
    assert second.endswith("# Page\nclicks: 1")
    assert {call.temperature for call in model.calls} == {0.7}
    assert shop.done == ["click('1')", "click('2')"]


def test_a_run_keeps_thoughts_actions_pages_the_answer_and_what_it_cost() -> None:
    finished, _, shop = played(["I buy it.\nclick('1')", "Again.\nclick('2')"])
    run = finished.run
    assert (finished.success, finished.scores, run.answer, run.error) == (True, {"reward": 1.0}, "bought", None)
    assert [step.thought for step in run.steps] == ["", "I buy it.", "Again."]
    assert [step.action.text for step in run.steps] == ["", "click('1')", "click('2')"]
    assert [step.observations[0].text for step in run.steps] == [
        "shop/\n[1] button 'Buy'",
        "shop/\nclicks: 1",
        "shop/\nclicks: 2",
    ]
    assert run.usage.requests == 2
    assert shop.closed == 1


def test_a_reply_without_an_action_costs_a_step_and_is_told_so() -> None:
    finished, model, shop = played(["Let me think.", "click('1')", "click('1')"])
    assert [step.action.text for step in finished.run.steps] == ["", NO_ACTION, "click('1')", "click('1')"]
    assert "# Error of the last action\nthere was no action" in model.calls[1].prompt
    assert "# Error" not in model.calls[2].prompt
    assert len(shop.done) == 2


def test_a_run_ends_when_its_steps_are_used_up() -> None:
    finished, _, _ = played(lambda _: "click('1')", most=1)
    assert (finished.success, finished.run.error) == (False, "all 1 steps allowed were used")


def test_the_tabs_are_closed_when_the_model_fails() -> None:
    shop = Shop()
    agent = Browsing(ScriptedModel([ModelError("gone")]), Actions())
    with pytest.raises(ModelError):
        browse(shop, agent, TASK, "", most=3, see=see)  # type: ignore[arg-type]
    assert shop.closed == 1


def test_of_large_pages_a_run_keeps_the_last_one_whole_and_the_others_in_part() -> None:
    big = "x" * PAGE_LIMIT
    shop, agent = Shop(), Browsing(ScriptedModel(lambda _: "click('1')"), Actions())
    finished = browse(shop, agent, TASK, "", most=5, see=lambda _: Page(TASK.goal, big))  # type: ignore[arg-type]
    sizes = [len(step.observations[0].text) for step in finished.run.steps]
    assert max(sizes[:-1]) < 5_000
    assert sizes[-1] == PAGE_LIMIT


def node(number: str, role: str, name: str, *children: str, of: int = 0) -> dict[str, Any]:
    return {
        "nodeId": number,
        "role": {"value": role},
        "name": {"value": name},
        "childIds": list(children),
        "backendDOMNodeId": of,
    }


def test_what_a_script_made_clickable_gets_its_mark_back_and_nothing_else_does() -> None:
    nodes = [
        node("1", "RootWebArea", "Shop", "2", "4", "6"),
        node("2", "generic", "", "3", of=20),
        node("3", "StaticText", "more "),
        node("4", "generic", "", "5", of=21),
        node("5", "StaticText", "only text"),
        node("6", "button", "Buy", of=22),
    ]
    strings = ["bid", "7", "8", "9", "class", "plain"]
    seen = {
        "axtree_object": {"nodes": nodes},
        "dom_object": {
            "strings": strings,
            "documents": [
                {"nodes": {"backendNodeId": [20, 21, 22, 23], "attributes": [[4, 5, 0, 1], [0, 2], [0, 3], [4, 5]]}}
            ],
        },
        "extra_element_properties": {"7": {"clickable": True}, "8": {"clickable": False}, "9": {"clickable": True}},
    }
    link, *others = (one for one in marked(seen)["nodes"] if one["nodeId"] != "1")
    assert link["nodeId"] == "2"
    assert (link["role"], link["name"], link["browsergym_id"]) == ({"value": "clickable"}, {"value": "more"}, "7")
    assert [one["role"]["value"] for one in others] == ["StaticText", "generic", "StaticText", "button"]
    assert nodes[1]["role"] == {"value": "generic"}


def test_a_worker_gives_back_what_its_work_returns_or_raises() -> None:
    worker = Worker()

    def late() -> None:
        raise TimeoutError("too late")

    assert worker.do(lambda: threading.current_thread().name, alive=lambda: False) == "lessonbank-browser"
    with pytest.raises(TimeoutError, match="too late"):
        worker.do(late, alive=lambda: True)
    assert worker.do(lambda: 7, alive=lambda: True) == 7
    worker.leave()


def test_work_that_spins_for_a_driver_that_is_gone_is_left_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lessonbank_bench.environments.playwright_thread._LOOK", 0.02)
    worker, ended = Worker(), threading.Event()

    def spin() -> None:
        try:
            while True:
                time.perf_counter()
        finally:
            ended.set()

    with pytest.raises(DriverGone):
        worker.do(spin, alive=lambda: False)
    worker.leave()
    assert ended.wait(60)


def test_a_browser_that_is_not_there_is_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "none"))
    with pytest.raises(
        UsageError, match=r"^environment 'x' needs Chromium: `apt-get install .* chromium = '/path/of/it'$"
    ):
        find_chromium("x", "")
    with pytest.raises(UsageError, match=r"^environment 'x': chromium = 'chrome9' is no program that can be started$"):
        find_chromium("x", "chrome9")


def test_the_fastest_browser_is_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in EXECUTABLES[:3]:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert find_chromium("x", "") == str(tmp_path / EXECUTABLES[0])
    assert find_chromium("x", "chromium") == "chromium"


def test_playwrights_own_browser_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    (tmp_path / "chromium-1117").mkdir()
    assert find_chromium("x", "") is None


def test_a_package_that_is_not_installed_is_named_by_its_extra() -> None:
    check_packages("x", ("json.decoder",))
    for absent in ("no_such_package", "no_such_package.inner"):
        with pytest.raises(MissingExtra, match=r"environment 'x' .*lessonbank-bench\[browser\]"):
            check_packages("x", ("json", absent))
