"""Repositories with hidden conventions: what the verifier takes, what the script knows, and what memory is worth."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from lessonbank.contracts.ports import Message
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments import environment
from lessonbank_bench.environments.mini_loading import mini
from lessonbank_bench.environments.mini_shell import can_be_alone, scrubbed
from lessonbank_bench.environments.repo_desk import RepoDeskEnvironment
from lessonbank_bench.environments.repo_desk.player import RULES, SUBMIT, Player
from lessonbank_bench.environments.repo_desk.repository import blob, defined, lay_out, source, take, verified
from lessonbank_bench.environments.repo_desk.world import KINDS, ORGANISATIONS, PREFIXES, Task, stream, truth, world

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
needs_mini = pytest.mark.skipif(find_spec("minisweagent") is None, reason="mini-swe-agent is not installed")
ALL = {"change": 1.0, "note": 1.0, "generated": 1.0, "prefix": 1.0}


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders: dict[str, Path] = {}
    for name, repository in world(3).items():
        folders[name] = tmp_path_factory.mktemp("ready")
        lay_out(repository, folders[name])
    return folders


def of_kind(kind: str) -> Task:
    return next(task for task in stream(3, 60) if task.kind == kind)


def commands(task: Task, seed: int = 3) -> list[str]:
    """What a perfect agent does: the script with a perfect memory."""
    scripts, folders = "\n".join(task.repository.scripts), "\n".join(task.repository.folders)
    listed = f"dev:\ncheck\n{scripts}\n\ndocs:\n{folders}\n</output>"
    messages = [
        Message(role="system", content=f"{RULES.format(steps=9)}\n\n{truth(seed, task.goal)}"),
        Message(role="user", content=task.goal),
    ]
    done: list[str] = []
    while SUBMIT not in done:
        reply = Player(0)(messages).text
        done.append(reply.split("\n")[1])
        seen = "" if len(done) > 1 else listed
        messages += [Message(role="assistant", content=reply), Message(role="user", content=seen)]
    return done


def work(ready: Path, task: Task, folder: Path, lines: Sequence[str]) -> dict[str, float]:
    take(ready, task, folder)
    for line in lines:
        subprocess.run(["bash", "-c", line], cwd=folder, env=scrubbed(folder), check=False, capture_output=True)
    return dict(verified(task, folder))


def test_a_seed_is_a_world_and_a_stream_that_begins_the_same() -> None:
    assert world(5) == world(5) != world(6)
    assert stream(5, 40)[:10] == stream(5, 10)
    kinds = {(task.repository.name, task.kind) for task in stream(5, 400)}
    assert len(kinds) == len(KINDS) * sum(map(len, ORGANISATIONS.values()))


def test_conventions_are_shared_as_far_as_they_should_be() -> None:
    shown = [world(seed) for seed in range(30)]
    for repositories in shown:
        for names in ORGANISATIONS.values():
            assert len({repositories[name].folder for name in names}) == 1
        for repository in repositories.values():
            assert repository.folder in repository.folders
            assert set(repository.script.values()) <= set(repository.scripts)
    assert len({places["Tide Tables"].prefix for places in shown}) == len(PREFIXES)
    assert any(len({repo.prefix for repo in places.values() if repo.organisation == "Marlow"}) > 1 for places in shown)


def test_a_goal_tells_what_is_wanted_and_no_convention() -> None:
    for task in stream(7, 50):
        repository = task.repository
        assert task.goal.startswith(f"In {repository.organisation}'s {repository.name}, ")
        assert task.goal.endswith(f", for task {task.id}.")
        words = set(task.goal.replace(",", " ").split())
        assert not words & {repository.folder, *repository.script.values(), *PREFIXES}


def test_the_code_on_disk_is_the_code_of_the_world() -> None:
    for repository in world(9).values():
        assert defined(source(repository.name, repository.code)) == repository.code


@pytest.mark.parametrize(
    "text", ["def f(:", "\0", "(" * 5000, "x = 1\n" * 100_000, "a" * 10 + " = " + "-" * 5000 + "1"]
)
def test_code_that_cannot_be_read_is_no_change_and_no_error(text: str) -> None:
    code = defined(text)
    assert code is None or not code.functions


@needs_git
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_change_in_one_commit_is_accepted(kind: str, laid_out: dict[str, Path], tmp_path: Path) -> None:
    task = of_kind(kind)
    assert work(laid_out[task.repository.name], task, tmp_path / "r", commands(task)) == ALL


@needs_git
def test_each_convention_alone_decides(laid_out: dict[str, Path], tmp_path: Path) -> None:
    task = of_kind("set a constant")
    listing, edit, note, script, commit, _ = commands(task)
    repository = task.repository
    other_folder = next(name for name in repository.folders if name != repository.folder)
    other_script = next(name for name in repository.scripts if name != task.script)
    other_prefix = next(name for name in PREFIXES if name != repository.prefix)
    broken = {
        "change": [listing, "true", note, script, commit],
        "note": [listing, edit, note.replace(f"docs/{repository.folder}", f"docs/{other_folder}"), script, commit],
        "generated": [listing, edit, note, f"dev/{other_script}", commit],
        "prefix": [listing, edit, note, script, commit.replace(repository.prefix, other_prefix)],
    }
    for number, (what, lines) in enumerate(broken.items()):
        scores = work(laid_out[repository.name], task, tmp_path / str(number), lines)
        assert scores == {**ALL, what: 0.0}, what


@needs_git
def test_a_generated_file_that_is_older_than_the_change_is_not_accepted(
    laid_out: dict[str, Path], tmp_path: Path
) -> None:
    task = of_kind("rename a function")
    listing, edit, note, script, commit, _ = commands(task)
    scores = work(laid_out[task.repository.name], task, tmp_path / "r", [listing, note, script, edit, commit])
    assert scores == {**ALL, "generated": 0.0}


@needs_git
def test_more_than_was_asked_for_is_not_accepted(laid_out: dict[str, Path], tmp_path: Path) -> None:
    task = of_kind("remove an option")
    listing, edit, note, script, commit, _ = commands(task)
    lines = [listing, edit, "echo 'k_1 = 1' >> core.py", note, script, commit]
    assert work(laid_out[task.repository.name], task, tmp_path / "r", lines) == {**ALL, "change": 0.0}


@needs_git
def test_what_an_agent_leaves_behind_is_not_run_and_breaks_nothing(laid_out: dict[str, Path], tmp_path: Path) -> None:
    task = stream(3, 1)[0]
    nothing = dict.fromkeys(ALL, 0.0)
    trap = tmp_path / "ran"
    ready = laid_out[task.repository.name]
    names = ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external")
    left = [f"git config {name} 'touch {trap}'" for name in names] + [f"git config alias.log '!touch {trap}'"]
    assert work(ready, task, tmp_path / "a", left) == nothing
    assert work(ready, task, tmp_path / "b", ["rm -rf .git"]) == nothing
    assert work(ready, task, tmp_path / "c", ["rm -rf .git/objects; echo x > .git/HEAD"]) == nothing
    assert not trap.exists()


@needs_git
def test_hashes_are_gits_own_and_commits_are_the_same_everywhere(laid_out: dict[str, Path], tmp_path: Path) -> None:
    repository = world(3)["Tide Tables"]
    lay_out(repository, tmp_path)
    heads = {
        subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, env=scrubbed(tmp_path))
        for folder in (tmp_path, laid_out["Tide Tables"])
    }
    assert len(heads) == 1
    told = subprocess.check_output(["git", "hash-object", "--stdin"], input=b"caf\xc3\xa9\n", env=scrubbed(tmp_path))
    assert told.decode().strip() == blob("café\n")


def test_the_script_is_given_messages_and_nothing_else() -> None:
    assert list(inspect.signature(Player).parameters) == ["seed"]
    assert list(inspect.signature(Player.__call__).parameters) == ["self", "messages"]
    task = stream(3, 1)[0]
    begun = [Message(role="system", content=RULES.format(steps=9)), Message(role="user", content=task.goal)]
    assert Player(1)(begun) == Player(1)(begun) == Player(2)(begun)


def third(memory: str, seed: int, task: Task) -> str:
    listed = "dev:\ncheck\npin\n\ndocs:\nnews\nledger\ndigest\n"
    return Player(seed)(
        [
            Message(role="system", content=f"{RULES.format(steps=9)}\n\n{memory}"),
            Message(role="user", content=task.goal),
            Message(role="assistant", content="```mswea_bash_command\nls dev docs\n```"),
            Message(role="user", content=listed),
            Message(role="assistant", content="```mswea_bash_command\ntrue\n```"),
            Message(role="user", content=""),
        ]
    ).text.split("\n")[1]


def test_without_memory_it_tries_in_an_order_of_its_seed_and_with_memory_it_follows() -> None:
    task = stream(3, 1)[0]
    assert len({third("", seed, task) for seed in range(30)}) == 3
    about = f"{task.repository.organisation}'s {task.repository.name}"
    for memory in (f"For {about}: step 3: write to docs/ledger.", f"# {about}\nNotes go into `docs/ledger`."):
        assert all("docs/ledger" in third(memory, seed, task) for seed in range(12))
    against = f"{about}: docs/news had no effect. docs/digest had no effect."
    assert all("docs/ledger" in third(against, seed, task) for seed in range(12))


def test_rules_that_every_agent_is_given_are_no_memory() -> None:
    task = replace(stream(3, 1)[0], kind="set a constant")
    orders = {third("", seed, task) for seed in range(30)}
    assert len(orders) == 3


def test_without_mini_swe_agent_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minisweagent", None)
    mini.cache_clear()
    with pytest.raises(MissingExtra, match=r"lessonbank-bench\[mini\]"):
        environment("repo-desk")
    mini.cache_clear()


@needs_mini
def test_without_git_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="'repo-desk' needs git"):
        RepoDeskEnvironment()


@needs_mini
@needs_git
def test_the_truth_is_enough_and_nothing_of_an_attempt_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    desk = RepoDeskEnvironment()
    oracle = desk.memories.make("oracle", 4, limit=3)
    for job in desk.tasks(4, 4):
        done = desk.attempt(job, desk.agent(4, anew=False), oracle.recall(job.goal))
        assert done.success, done.scores
        assert len(done.run.steps) == 7
        assert done.run.error is None
    assert [path.name.startswith("repo-desk-") for path in tmp_path.iterdir()] == [True]
    desk.close()
    desk.close()
    assert not list(tmp_path.iterdir())


@needs_mini
@needs_git
def test_attempts_side_by_side_do_not_meet() -> None:
    desk = RepoDeskEnvironment()
    job = desk.tasks(6, 1)[0]
    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: desk.attempt(job, desk.agent(6, anew=False), truth(6, job.goal)), range(4)))
    desk.close()
    assert all(done.success for done in runs)
    assert len({done.run.steps for done in runs}) == 1


@needs_mini
@needs_git
def test_another_draw_of_the_agent_does_other_work() -> None:
    desk = RepoDeskEnvironment()
    jobs = desk.tasks(2, 2)
    draws = [desk.agent(2, anew=anew) for anew in (False, True)]
    first, other = ([desk.attempt(job, agent, "").run.steps for job in jobs] for agent in draws)
    desk.close()
    assert first != other


@needs_mini
@needs_git
@pytest.mark.skipif(not can_be_alone(), reason="commands cannot be cut off here: it takes Linux and unshare")
def test_a_model_acts_in_the_same_place_under_its_settings() -> None:
    task = stream(4, 1)[0]
    replies = [f"Step.\n\n```mswea_bash_command\n{command}\n```" for command in commands(task, 4)]
    model = ScriptedModel(replies)
    desk = RepoDeskEnvironment(model, {"temperature": 0.7, "max_steps": 12})
    done = desk.attempt(desk.tasks(4, 1)[0], desk.agent(4, anew=False), "{{ memory }}")
    desk.close()
    assert done.success, done.scores
    assert {call.temperature for call in model.calls} == {0.7}
    assert model.calls[0].messages[0].content == f"{RULES.format(steps=12)}\n\n{{{{ memory }}}}"
    assert done.run.usage.requests == len(replies)
    assert desk.version.startswith("repo-desk, agent scripted, temperature 0.7, 12 commands")


@needs_mini
def test_without_isolation_a_model_is_refused_where_it_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lessonbank_bench.environments.repo_desk.can_be_alone", lambda: False)
    with pytest.raises(UsageError, match=r"off the network here .* isolated = false"):
        RepoDeskEnvironment(ScriptedModel(["x"]))
    RepoDeskEnvironment(ScriptedModel(["x"]), {"isolated": False}).close()


def test_loading_the_module_loads_no_third_party() -> None:
    code = "import sys, lessonbank_bench.environments.repo_desk; assert 'minisweagent' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
