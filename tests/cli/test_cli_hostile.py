"""The command line under wrong input, narrow screens, closed pipes and interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from running import COMMAND, RUNS, learn, lessonbank_cli, lessonbank_process
from waiting import until

import lessonbank
from lessonbank import importers
from lessonbank.testing import ModelServer
from lessonbank.testing.model_server import refusal

pytestmark = pytest.mark.full

posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write(tmp_path / "runs.jsonl", RUNS)


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_file_nobody_can_read_costs_no_other_file_its_runs(runs: Path) -> None:
    (runs.parent / "cut.json").write_text('[{"task": "x", "mess', encoding="utf-8")
    more = write(runs.parent / "more.jsonl", [{**r, "run_id": f"again {r['run_id']}"} for r in RUNS])
    done = lessonbank_cli(
        "learn", runs, runs.parent / "cut.json", more, "--bank", "bank.db", "--scope", "t", "--json", cwd=runs.parent
    )
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert report["runs"] == 8
    assert len(report["skipped"]) == 1
    assert "cut.json" in report["skipped"][0]


def test_files_in_a_folder_that_cannot_be_read_are_counted_and_named_and_the_exit_code_says_so(runs: Path) -> None:
    folder = runs.parent / "folder"
    folder.mkdir()
    runs.rename(folder / "runs.jsonl")
    (folder / "settings.json").write_text('{"verbose": true}', encoding="utf-8")
    sound = learn(folder)
    assert sound.returncode == 0, sound.stderr
    assert "no runs in" in sound.stderr
    assert "settings.json" in sound.stderr
    (folder / "cut.json").write_text('[{"task": "x", "mess', encoding="utf-8")
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    done = learn(folder)
    assert done.returncode == 3, done.stderr
    assert "cut.json:1: not valid JSON" in done.stderr
    assert "gone.jsonl:1: the file cannot be read further: No such file" in done.stderr
    report = json.loads(learn(folder, "--json").stdout)
    assert report["runs"] == 4
    assert [Path(line.split(":")[0]).name for line in report["skipped"]] == ["cut.json", "gone.jsonl"]
    assert [Path(name).name for name in report["passed_over"]] == ["settings.json"]
    assert {Path(row["file"]).name: row["skipped"] for row in report["files"]} == {
        "runs.jsonl": 0,
        "cut.json": 1,
        "gone.jsonl": 1,
    }


def test_graded_rewards_are_counted_and_the_threshold_can_be_set(runs: Path) -> None:
    write(runs, [{**r, "success": None, "reward": reward} for r, reward in zip(RUNS, (0.9, 0.4, 1.0, 0), strict=True)])
    done = learn(runs)
    assert done.returncode == 0, done.stderr
    assert "3 failure, 1 success" in done.stdout
    assert "2 rewards are neither 0 nor 1 and were taken 2 for failure: --success-at changes that" in done.stderr
    (runs.parent / "bank.db").unlink()
    done = learn(runs, "--success-at", "0.5")
    assert "2 failure, 2 success" in done.stdout
    assert "taken 1 for failure and 1 for success" in done.stderr


def many(path: Path, count: int) -> Path:
    row = {**RUNS[0], "success": None, "reward": None}
    return write(path, [{**row, "run_id": f"many {n}"} for n in range(count)])


@pytest.mark.parametrize("how", [("--judge",), ("--outcome", "failure")], ids=["judge", "extractor"])
def test_a_model_that_refuses_the_key_stops_the_import_after_three_runs_and_they_wait(
    runs: Path, how: tuple[str, ...]
) -> None:
    many(runs, 40)
    with ModelServer(default=refusal("no such key", status=401)) as server:
        asked = ("--model", "desk", "--base-url", server.base_url, "--jobs", "1", *how)
        done = learn(runs, *asked)
        requests = len(server.requests)
    assert done.returncode == 1
    assert requests == 3
    (sentence,) = [line for line in done.stderr.splitlines() if line.strip()]
    assert sentence.startswith("lessonbank: stopped, because the model cannot be used (")
    assert "HTTP 401 (check the API key" in sentence
    assert sentence.endswith("3 runs are kept and wait: the same command goes on from there [model_unavailable]")
    with lessonbank.connect(runs.parent / "bank.db", scope="t") as bank:
        assert len(bank.runs.pending(limit=10_000)) == 3


def test_an_answer_in_between_keeps_an_import_going(runs: Path) -> None:
    many(runs, 8)
    no = refusal("no such key", status=401)
    with ModelServer(no, no, "nothing readable", no, no, "nothing readable", default=no) as server:
        done = learn(runs, "--model", "desk", "--base-url", server.base_url, "--jobs", "1", "--judge")
        assert len(server.requests) == 8
    assert done.returncode == 3


def test_other_failures_of_a_model_stop_nothing(runs: Path) -> None:
    many(runs, 5)
    with ModelServer(default=refusal("too long", status=400)) as server:
        done = learn(runs, "--model", "desk", "--base-url", server.base_url, "--judge", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["waiting"] == 5


def test_no_readable_file_at_all_is_an_error(runs: Path) -> None:
    for name in ("one.json", "two.json"):
        (runs.parent / name).write_text("nothing", encoding="utf-8")
    done = lessonbank_cli("learn", "one.json", "two.json", "--bank", "bank.db", "--scope", "t", cwd=runs.parent)
    assert done.returncode == 2
    assert "one.json" in done.stderr


def test_the_report_says_what_each_file_gave(runs: Path) -> None:
    unlabelled = write(runs.parent / "open.jsonl", [{**RUNS[0], "run_id": "open", "success": None, "reward": None}])
    done = lessonbank_cli("learn", runs, unlabelled, "--bank", "bank.db", "--scope", "t", cwd=runs.parent)
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if ".jsonl" in line}
    lessons = [words.pop() for words in rows.values()]
    assert rows == {"runs.jsonl": ["4", "2", "2", "0"], "open.jsonl": ["1", "0", "0", "1"]}
    assert int(lessons[0]) >= 4
    assert lessons[1] == "0"
    (as_json,) = json.loads(learn(runs, "--json").stdout)["files"]
    none = dict.fromkeys(("success", "failure", "unknown", "lessons", "skipped"), 0)
    assert as_json == {"file": str(runs), "runs": 4, "known": 4, **none}


def test_files_of_different_folders_are_told_apart_in_a_table_that_fits(runs: Path) -> None:
    for name in ("first", "second"):
        (runs.parent / f"a-long-name-of-a-folder-{name}").mkdir()
        write(runs.parent / f"a-long-name-of-a-folder-{name}" / "runs.jsonl", [{**RUNS[0], "run_id": name}])
    done = lessonbank_cli("learn", ".", "--bank", "bank.db", "--scope", "t", cwd=runs.parent, COLUMNS="70")
    rows = [line for line in done.stdout.splitlines() if "runs.jsonl" in line]
    assert len(rows) == len(set(rows)) == 3
    *table, command = done.stdout.splitlines()
    assert command.startswith("to read it in the browser"), "a command to copy stays on one line"
    assert all(len(line) <= 70 for line in table)
    assert sum("-first" in row or "-second" in row for row in rows) == 2


def test_lessons_of_one_title_are_counted_and_not_repeated(tmp_path: Path) -> None:
    same = [{**RUNS[1], "run_id": f"r{n}"} for n in range(3)]
    done = learn(write(tmp_path / "runs.jsonl", same))
    titles = [line for line in done.stdout.splitlines() if "What worked" in line]
    assert len(titles) == 1
    assert titles[0].split()[0] == "strategy"  # three runs taught it in the same words: it is one lesson


def test_the_bound_on_runs_counts_new_ones(runs: Path) -> None:
    learn(runs, "--most", 3)
    report = json.loads(learn(runs, "--most", 3, "--json").stdout)
    assert (report["runs"], report["known"], sum(report["outcomes"].values())) == (4, 3, 1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--judge",), "--model"),
        (("--judge", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--outcome", "success"), "--outcome"),
        (("--timeout", -1), "--timeout"),
        (("--timeout", "nan"), "--timeout"),
        (("--format", "nope"), "tau_bench"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_a_bank_is_made(
    runs: Path, words: tuple[object, ...], sentence: str
) -> None:
    done = learn(runs, *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (runs.parent / "bank.db").exists()


def test_an_import_of_no_file_makes_no_bank(tmp_path: Path) -> None:
    done = lessonbank_cli("import", "missing.jsonl", "--bank", "new.db", "--scope", "t", cwd=tmp_path)
    assert done.returncode == 2
    assert "missing.jsonl" in done.stderr
    assert not (tmp_path / "new.db").exists()


def test_a_terminal_that_knows_few_letters_gets_the_others_replaced(tmp_path: Path) -> None:
    row = {**RUNS[1], "task": "Ship 包裹 … 🚀 abroad"}
    learn(write(tmp_path / "runs.jsonl", [row]))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = ("lessons", "list", "--bank", "bank.db", "--scope", "t")
    done = lessonbank_process(*words, cwd=tmp_path, encoding="ascii", env=environment)
    assert done.returncode == 0, done.stderr
    assert "What worked: Ship <name>" in done.stdout
    assert "?" in done.stdout


def test_a_narrow_terminal_loses_neither_ids_nor_titles(runs: Path) -> None:
    learn(runs)
    base = ("lessons", "list", "--bank", "bank.db", "--scope", "t")
    ids = [lesson["id"] for lesson in json.loads(lessonbank_cli(*base, "--json", cwd=runs.parent).stdout)]
    done = lessonbank_cli(*base, cwd=runs.parent, COLUMNS="40")
    assert all(one[-8:] in done.stdout for one in ids)
    assert "What worked: Ship box 1 abroad" in done.stdout


def test_what_goes_to_a_pipe_is_one_line_a_lesson(runs: Path) -> None:
    learn(runs)
    base = ("lessons", "list", "--bank", "bank.db", "--scope", "t")
    listed = json.loads(lessonbank_cli(*base, "--json", cwd=runs.parent).stdout)
    lines = lessonbank_cli(*base, cwd=runs.parent).stdout.splitlines()
    assert all(any(lesson["id"][-8:] in line and lesson["title"] in line for line in lines) for lesson in listed)


@posix
def test_a_reader_that_leaves_early_is_no_error(runs: Path) -> None:
    learn(runs)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = lessonbank_process("lessons", "list", "--bank", "bank.db", "--scope", "t", cwd=runs.parent, stdout=gone)
    assert (done.returncode, done.stderr) == (0, "")


@posix
@pytest.mark.parametrize("words", ["--help", "--version"])
def test_a_reader_of_a_help_that_leaves_early_is_no_error(tmp_path: Path, words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = lessonbank_process(*words.split(), cwd=tmp_path, stdout=gone)
    assert (done.returncode, done.stderr) == (0, "")


@posix
def test_an_interrupt_reports_what_was_learned_and_keeps_it(runs: Path) -> None:
    go = threading.Event()
    with ModelServer(default=lambda _: str(go.wait(60))) as server:
        command = [
            *(*COMMAND, "learn", "runs.jsonl", "--bank", "bank.db", "--scope", "t"),
            *("--model", "m", "--base-url", server.base_url, "--jobs", "1", "--judge"),
        ]
        ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=runs.parent, encoding="utf-8"
        )
        signal.signal(signal.SIGINT, ignored)
        until(lambda: server.requests or started.poll() is not None)
        assert started.poll() is None
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
        go.set()
    assert started.returncode == 130
    assert "0 runs read" in out
    assert "stopped" in err
    assert "Traceback" not in err


def test_formats_lists_every_format_there_is(tmp_path: Path) -> None:
    told = lessonbank_cli("learn", "--formats", cwd=tmp_path)
    assert told.returncode == 0
    assert all(name in told.stdout for name, _ in importers.FORMATS)
    as_json = lessonbank_cli("learn", "--formats", "--json", cwd=tmp_path)
    assert json.loads(as_json.stdout) == [{"name": name, "what": what} for name, what in importers.FORMATS]


def test_a_run_without_a_terminal_prints_nothing_but_warnings_on_stderr(runs: Path) -> None:
    assert learn(write(runs, RUNS[:2])).stderr == ""
