"""WebArena's adapter: tasks in the published format, what has to be there, and one site of our own for real."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.ports import Message
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.testing import ScriptedModel
from lessonbank_bench.environments.webarena import WebArenaEnvironment
from lessonbank_bench.environments.webarena_tasks import (
    ADDRESSES,
    BrowserTask,
    addressed,
    check_addresses,
    check_grader,
    of_site,
    published,
    read_tasks,
)

INSTALLED = all(find_spec(name) is not None for name in ("browsergym", "webarena"))


def record(number: int, *sites: str, template: int = 0, **grading: Any) -> dict[str, Any]:
    """A task of our own, in the published format."""
    return {
        "sites": list(sites),
        "task_id": number,
        "require_login": False,
        "storage_state": None,
        "start_url": f"__{sites[0].upper()}__/lamps",
        "geolocation": None,
        "intent_template": "What does the {{colour}} lamp cost?",
        "instantiation_dict": {"colour": "blue"},
        "intent": f"What does lamp {number} cost?",
        "require_reset": False,
        "eval": {
            "eval_types": ["string_match"],
            "reference_answers": {"exact_match": "12 euros"},
            "reference_url": "",
            "program_html": [],
            **grading,
        },
        "intent_template_id": template,
    }


def written(path: Path, *tasks: object) -> Path:
    path.write_text(json.dumps(list(tasks)), encoding="utf-8")
    return path


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ADDRESSES:
        monkeypatch.setenv(f"WA_{name}", "todo")


def test_tasks_come_by_ascending_number_and_by_site(tmp_path: Path) -> None:
    shop, both, mapped = record(9, "shopping", template=4), record(2, "reddit", "gitlab"), record(5, "map", "wikipedia")
    tasks = read_tasks(written(tmp_path / "tasks.json", shop, both, mapped, record(1, "shopping")))
    assert [task.id for task in tasks] == [1, 2, 5, 9]
    assert [task.id for task in of_site(tasks, "shopping")] == [1, 9]
    assert [task.id for task in of_site(tasks, "multi")] == [2]
    assert of_site(tasks, "map") == ()
    assert (tasks[3].template, tasks[3].intent, tasks[3].spoken, tasks[3].fuzzy) == (4, shop["intent"], True, False)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"task_id": "7"}, "task 0 in .* is not in WebArena's format: '7' should be a whole number"),
        ({"intent": " "}, "the intent ' ' should be text"),
        ({"eval": None}, "is not in WebArena's format"),
        ({"sites": None}, "is not in WebArena's format"),
        ({"intent_template_id": ...}, r"format: no 'intent_template_id'$"),
    ],
)
def test_what_is_no_task_is_told_in_one_sentence(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    task = {key: value for key, value in {**record(1, "map"), **change}.items() if value is not ...}
    with pytest.raises(UsageError, match=told):
        read_tasks(written(tmp_path / "tasks.json", task))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "cannot be read: No such file"),
        ("tasks", "is not JSON"),
        ("{}", "should hold a list of tasks"),
    ],
)
def test_a_file_that_is_none_is_told_in_one_sentence(tmp_path: Path, text: str | None, told: str) -> None:
    if text is not None:
        (tmp_path / "tasks.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=told):
        read_tasks(tmp_path / "tasks.json")


def test_sites_have_their_addresses_put_in_and_nothing_else_changes() -> None:
    task = {**record(1, "shopping"), "start_url": "__SHOPPING__/a |AND| __SHOPPING_ADMIN__/b"}
    told = addressed(task, {"SHOPPING": "http://shop", "SHOPPING_ADMIN": 'http://admin"quoted'})
    assert told["start_url"] == 'http://shop/a |AND| http://admin"quoted/b'
    assert {**told, "start_url": task["start_url"]} == task


def test_every_address_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, addresses: None) -> None:
    check_addresses(reset=False)
    with pytest.raises(UsageError, match=r"reset = true needs .* WA_FULL_RESET"):
        check_addresses(reset=True)
    monkeypatch.delenv("WA_MAP")
    monkeypatch.setenv("WA_REDDIT", "")
    with pytest.raises(
        UsageError, match=r"^environment 'webarena' needs the address .* in WA_REDDIT and WA_MAP, such as"
    ):
        check_addresses(reset=False)


def test_the_model_that_grades_is_asked_for_where_a_task_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzzy = record(2, "map", reference_answers={"fuzzy_match": ["cheap"]})
    tasks = read_tasks(written(tmp_path / "tasks.json", record(1, "map"), fuzzy))
    check_grader(tasks[:1], "map")
    with pytest.raises(
        UsageError, match=r"1 of the 2 tasks of 'map' are graded by fuzzy_match.*OPENAI_API_KEY.*fuzzy = false"
    ):
        check_grader(tasks, "map")
    monkeypatch.setenv("OPENAI_API_KEY", "present")
    check_grader(tasks, "map")


def test_what_an_experiment_forgot_is_told_before_anything_is_looked_for() -> None:
    model = ScriptedModel([])
    with pytest.raises(UsageError, match=r"needs site in \[settings\], one of shopping, .* multi; got ''"):
        WebArenaEnvironment(model)
    if not INSTALLED:
        with pytest.raises(MissingExtra, match=r"environment 'webarena' .*lessonbank-bench\[webarena\]"):
            WebArenaEnvironment(model, {"site": "map"})


def test_the_published_tasks_are_all_read() -> None:
    if not INSTALLED:
        pytest.skip("WebArena is not installed: pip install browsergym-webarena")
    tasks = read_tasks(published())
    sites = ("shopping", "shopping_admin", "gitlab", "reddit", "map", "multi")
    assert [len(of_site(tasks, site)) for site in sites] == [187, 182, 180, 106, 109, 29]
    assert (len(tasks), len({task.template for task in tasks}), sum(task.fuzzy for task in tasks)) == (812, 190, 118)


class Graded:
    """The part of the adapter's task that grades: whatever it is asked, as often as it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.config_file: str | None = None
        self.evaluator = self._grade

    def _grade(self) -> float:
        self.asked += 1
        return 1.0

    def validate(self, page: Any, chat_messages: Any) -> tuple[float, bool, str, dict[str, Any]]:
        score = self.evaluator()
        return score, score > 0, "", {}


class Task(BrowserTask, Graded):
    spoken = True


def test_an_answer_is_graded_once_it_is_given_and_not_at_every_step() -> None:
    task = Task()
    asked = {"role": "user", "message": "What does it cost?"}
    assert task.validate(None, [asked])[:2] == (0.0, False)
    assert task.asked == 0
    for role in ("assistant", "infeasible"):
        assert task.validate(None, [asked, {"role": role, "message": "12 euros"}])[:2] == (1.0, True)
    assert task.asked == 2
    task.spoken = False
    assert task.validate(None, [asked])[:2] == (1.0, True)


def test_the_file_that_the_adapter_writes_for_a_task_is_removed(tmp_path: Path) -> None:
    task = Task()
    task.teardown()
    task.config_file = str(tmp_path / "config")
    Path(task.config_file).touch()
    task.teardown()
    task.teardown()
    assert list(tmp_path.iterdir()) == []


class _Lamps(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(
            b"<title>Lamps</title><p id=p>The price is secret.</p><span id=s>Ask</span><script>"
            b"s.addEventListener('click', () => { p.textContent = 'It costs 12 euros.' })</script>"
        )

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Lamps)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _asks_then_answers(messages: Sequence[Message]) -> str:
    page = messages[-1].content
    if "12 euros" in page:
        return "There it is.\nsend_msg_to_user('12 euros')"
    mark = page.partition("] clickable 'Ask'")[0].rpartition("[")[2]
    return f"I ask.\nclick('{mark}')"


@pytest.mark.filterwarnings("ignore")  # of beartype, in the adapter
def test_an_answer_is_graded_by_webarenas_own_grader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addresses: None, site: str
) -> None:
    if not INSTALLED:
        pytest.skip("WebArena is not installed: pip install browsergym-webarena")
    monkeypatch.setenv("WA_MAP", site)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    right, wrong = record(4, "map"), record(6, "map", reference_answers={"exact_match": "13 euros"})
    path = written(tmp_path / "tasks.json", wrong, right)
    model = ScriptedModel(_asks_then_answers)
    try:
        place = WebArenaEnvironment(model, {"site": "map", "configs": str(path)})
    except UsageError as error:
        pytest.skip(str(error))
    try:
        jobs = place.tasks(1, 10)
        done = [place.attempt(job, place.agent(1, anew=False), "Ask for prices.") for job in jobs]
    finally:
        place.close()
    assert [(job.id, job.family, job.group) for job in jobs] == [
        ("webarena/1/4", "template 0", "map"),
        ("webarena/1/6", "template 0", "map"),
    ]
    assert [one.success for one in done] == [True, False]
    assert [one.run.answer for one in done] == ["12 euros", "12 euros"]
    assert [step.action.text.partition("(")[0] for step in done[0].run.steps] == ["", "click", "send_msg_to_user"]
    assert model.calls[0].messages[0].content.endswith("Ask for prices.")
    assert os.listdir(tmp_path) == ["tasks.json"]  # noqa: PTH208 - names, not paths
