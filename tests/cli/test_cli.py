"""The command line, as a user runs it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from running import RUNS, learn, lessonbank_cli

import lessonbank


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in RUNS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank that learned the runs."""
    path = tmp_path_factory.mktemp("learned") / "runs.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in RUNS), encoding="utf-8")
    assert learn(path).returncode == 0
    return path.with_name("bank.db")


@pytest.fixture
def learned(once: Path, runs: Path) -> Path:
    """The file of runs, beside a bank that learned them."""
    shutil.copy(once, runs.parent)
    return runs


def test_learning_recorded_runs_reports_what_was_learned(runs: Path) -> None:
    done = lessonbank_cli("learn", runs, "--bank", "bank.db", "--scope", "t", cwd=runs.parent)
    assert done.returncode == 0, done.stderr
    assert "4 runs read: 2 failure, 2 success; 0 known already" in done.stdout
    assert "strategy" in done.stdout
    assert "guardrail" in done.stdout


@pytest.mark.full
def test_what_was_learned_ends_with_how_a_person_reads_it(runs: Path) -> None:
    done = lessonbank_cli("learn", runs, "--bank", "my bank.db", "--scope", "t", cwd=runs.parent)
    assert (
        done.stdout.splitlines()[-1] == "to read it in the browser and decide: lessonbank review 'my bank.db' --scope t"
    )
    again = lessonbank_cli("learn", runs, "--bank", "my bank.db", "--scope", "t", "--json", cwd=runs.parent)
    assert json.loads(again.stdout)["known"] == 4


@pytest.mark.full
def test_the_address_of_a_database_is_not_printed_because_it_can_hold_a_password(
    tmp_path: Path, postgres: Callable[[], str]
) -> None:
    path, address = tmp_path / "runs.jsonl", postgres()
    names = ("amber", "basalt", "cedar", "dune", "ember", "fjord", "grove", "harbor", "island", "kelp", "onyx", "moss")
    told = [{**RUNS[1], "task": f"Ship the {n}", "run_id": n} for n in names]
    path.write_text("".join(json.dumps(run) + "\n" for run in told), encoding="utf-8")
    done = lessonbank_cli("learn", path, "--bank", address, "--scope", "t", cwd=tmp_path)
    assert "more: lessonbank lessons list --bank BANK --scope t lists them" in done.stdout
    assert address not in done.stdout + done.stderr


@pytest.mark.full
def test_a_malformed_line_is_reported_with_its_number_and_the_rest_is_learned(runs: Path) -> None:
    lines = runs.read_text("utf-8").splitlines()
    runs.write_text("\n".join([lines[0], "{oops", *lines[1:]]) + "\n", encoding="utf-8")
    done = learn(runs)
    assert done.returncode == 3
    assert "runs.jsonl:2" in done.stderr
    assert "4 runs read" in done.stdout


def test_runs_without_a_label_wait_and_say_so(runs: Path) -> None:
    unlabelled = [{**r, "reward": None, "success": None} for r in RUNS]
    runs.write_text("".join(json.dumps(r) + "\n" for r in unlabelled), encoding="utf-8")
    done = learn(runs)
    assert done.returncode == 3
    assert "4 unknown" in done.stdout
    assert "no model to judge with" in done.stderr
    labelled = learn(runs, "--outcome", "failure")
    assert "4 failure" in labelled.stdout


def test_retrieve_prints_the_very_text_an_agent_gets_and_why(learned: Path) -> None:
    shown = lessonbank_cli("retrieve", "Ship box 9 abroad", "--bank", "bank.db", "--scope", "t", cwd=learned.parent)
    assert shown.returncode == 0, shown.stderr
    assert "<<<lessons " in shown.stdout
    assert "its task scored" in shown.stdout
    as_json = lessonbank_cli(
        "retrieve", "Ship box 9 abroad", "--bank", "bank.db", "--scope", "t", "--json", cwd=learned.parent
    )
    assert json.loads(as_json.stdout)["shown"]


@pytest.mark.full
def test_retrieve_prints_the_id_of_the_recall_it_keeps_and_says_on_stderr_why_its_text_is_empty(learned: Path) -> None:
    words = ("--bank", "bank.db", "--scope", "t", "--keep")
    shown = lessonbank_cli("retrieve", "Ship box 9 abroad", *words, cwd=learned.parent)
    told = lessonbank_cli("explain", shown.stdout.split()[-1], *words[:4], cwd=learned.parent)
    assert told.returncode == 0, told.stderr
    assert "Ship box 9 abroad" in told.stdout
    nothing = lessonbank_cli("retrieve", "Quarterly tax statements", *words, cwd=learned.parent)
    assert nothing.returncode == 0
    assert "no past task in scope 't' is like this one" in nothing.stderr
    assert nothing.stdout.split()[-2] == "recall"


def test_a_look_with_retrieve_is_no_task_and_keeps_nothing(learned: Path) -> None:
    words = ("--bank", "bank.db", "--scope", "t")
    seen = lessonbank_cli("retrieve", "Ship box 9 abroad", *words, cwd=learned.parent)
    assert (seen.returncode, "<<<lessons " in seen.stdout) == (0, True), seen.stderr
    assert "no recall was kept" in seen.stdout
    nothing = lessonbank_cli("retrieve", "Quarterly tax statements", *words, cwd=learned.parent)
    assert "no past task in scope 't' is like this one" in nothing.stderr
    with lessonbank.connect(learned.parent / "bank.db", scope="t") as bank:
        assert (bank.admin.counts().recalls, bank.recalls.list()) == (0, ())
        lift = bank.lift()
    assert (lift.recalls, lift.empty) == (0, 0)


@pytest.mark.full
def test_lessons_lists_lessons_and_shows_one_with_its_provenance(learned: Path) -> None:
    base: Sequence[object] = ("lessons", "list", "--bank", "bank.db", "--scope", "t")
    listed = json.loads(lessonbank_cli(*base, "--json", cwd=learned.parent).stdout)
    assert {i["kind"] for i in listed} == {"strategy", "guardrail"}
    whole = lessonbank_cli("explain", listed[0]["id"][1:], *base[2:], cwd=learned.parent)
    assert "rules, without a model" in whole.stdout
    assert "ground_truth" in whole.stdout


@pytest.mark.full
def test_export_and_import_carry_a_scope_over(learned: Path) -> None:
    out = lessonbank_cli("export", "all.jsonl", "--bank", "bank.db", "--scope", "t", cwd=learned.parent)
    assert out.returncode == 0, out.stderr
    back = lessonbank_cli("import", "all.jsonl", "--bank", "new.db", "--scope", "copy", "--json", cwd=learned.parent)
    assert json.loads(back.stdout)["added"] == 8
    with lessonbank.connect(learned.parent / "new.db", scope="copy") as copy:
        assert copy.retrieve("Ship box 9 abroad").lessons


@pytest.mark.full
def test_a_backup_is_a_bank_that_doctor_finds_sound(learned: Path) -> None:
    done = lessonbank_cli("backup", "copy.db", "--bank", "bank.db", cwd=learned.parent)
    assert done.returncode == 0, done.stderr
    assert "'bank.db' is copied to 'copy.db'" in done.stdout
    again = lessonbank_cli("backup", "copy.db", "--bank", "bank.db", "--json", cwd=learned.parent)
    assert json.loads(again.stdout) == {"bytes": (learned.parent / "copy.db").stat().st_size, "file": "copy.db"}
    seen = lessonbank_cli("doctor", "--bank", "copy.db", "--verify", "--json", cwd=learned.parent)
    assert seen.returncode == 0, seen.stderr
    assert json.loads(seen.stdout)["scopes"]["t"]["experiences"] == 4


@pytest.mark.full
def test_doctor_says_what_is_active_and_what_fell_back(learned: Path) -> None:
    seen = lessonbank_cli("doctor", "--bank", "bank.db", "--json", cwd=learned.parent)
    assert seen.returncode == 0, seen.stderr
    report = json.loads(seen.stdout)
    assert report["settings"]["embedder"].startswith("lexical")
    assert set(report["settings"]) == {"store", "embedder"}, "an agent brings its own model"
    assert report["used"]["lessons drawn by"] == ["extractive"]
    assert report["scopes"]["t"]["experiences"] == 4
    assert report["versions"]["lessonbank"] == lessonbank.__version__
    assert report["problems"] == []


@pytest.mark.full
def test_doctor_embeds_again_after_a_change_of_embedder(learned: Path) -> None:
    seen = lessonbank_cli(
        "doctor", "--bank", "bank.db", "--embedder", "hashing", "--reindex", "--json", cwd=learned.parent
    )
    assert json.loads(seen.stdout)["reindexed"] == {"t": 4}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("lessons", "list", "--bank", "missing.db", "--scope", "t"), 2, "there is no bank at 'missing.db'"),
        pytest.param(
            ("retrieve", "x", "--bank", "bank.db", "--scope", "../../etc"),
            2,
            "cannot be a scope",
            marks=pytest.mark.full,
        ),
        (("learn", "missing.jsonl", "--bank", "bank.db", "--scope", "t"), 2, "there is no file 'missing.jsonl'"),
        pytest.param(
            ("learn", "runs.jsonl", "--bank", "bank.db", "--scope", "t", "--model", "nobody:x"),
            2,
            "nobody",
            marks=pytest.mark.full,
        ),
        (("import", "runs.jsonl", "--bank", "bank.db", "--scope", "t"), 2, "not a lessonbank export"),
        (("learn", "runs.jsonl", "--bank", "no/such/dir/bank.db", "--scope", "t"), 1, "[store_unavailable]"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_an_exit_code(
    learned: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    done = lessonbank_cli(*words, cwd=learned.parent)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


@pytest.mark.full
@pytest.mark.parametrize("words", [("lessons", "list"), ("retrieve", "Ship box 9 abroad")])
def test_a_mistyped_scope_is_told_apart_from_an_empty_one(learned: Path, words: tuple[str, ...]) -> None:
    done = lessonbank_cli(*words, "--bank", "bank.db", "--scope", "tt", cwd=learned.parent)
    assert done.returncode == 0
    assert "nothing in scope tt; this bank has: t" in done.stderr


def run_of(number: int, thing: str) -> dict[str, Any]:
    """A run that teaches another lesson than those about other things."""
    text = json.dumps({**RUNS[1], "run_id": f"r{number}", "task": f"Ship the {thing} abroad"})
    return json.loads(text.replace("print label", f"seal {thing}").replace("customs form", f"{thing} list"))


@pytest.mark.full
def test_the_command_named_for_the_rest_of_the_lessons_is_whole(tmp_path: Path) -> None:
    things = ("parcel", "box", "bag", "can", "table", "door", "window", "paper", "book", "letter", "picture", "chair")
    rows = [run_of(number, thing) for number, thing in enumerate(things)]
    runs = tmp_path / "runs.jsonl"
    runs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    line = next(line for line in learn(runs).stdout.splitlines() if "lists them" in line)
    words = line.partition("lessonbank ")[2].partition(" lists them")[0].split()
    assert lessonbank_cli(*words, cwd=tmp_path).returncode == 0
