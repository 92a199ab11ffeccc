"""The command line under wrong input, narrow screens, closed pipes and interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from running import COMMAND, RUNS, learn, lessonbank_cli, lessonbank_process

from lessonbank import importers
from lessonbank.testing import ModelServer

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
    as_json = json.loads(learn(runs, "--json").stdout)["files"]
    assert as_json == [
        {
            "file": str(runs),
            "runs": 4,
            "success": 0,
            "failure": 0,
            "unknown": 0,
            "known": 4,
            "lessons": 0,
            "skipped": 0,
        }
    ]


def test_files_of_different_folders_are_told_apart_in_a_table_that_fits(runs: Path) -> None:
    for name in ("first", "second"):
        (runs.parent / f"a-long-name-of-a-folder-{name}").mkdir()
        write(runs.parent / f"a-long-name-of-a-folder-{name}" / "runs.jsonl", [{**RUNS[0], "run_id": name}])
    done = lessonbank_cli("learn", ".", "--bank", "bank.db", "--scope", "t", cwd=runs.parent, COLUMNS="70")
    rows = [line for line in done.stdout.splitlines() if "runs.jsonl" in line]
    assert len(rows) == len(set(rows)) == 3
    assert all(len(line) <= 70 for line in done.stdout.splitlines())
    assert sum("-first" in row or "-second" in row for row in rows) == 2


def test_lessons_of_one_title_are_counted_and_not_repeated(tmp_path: Path) -> None:
    same = [{**RUNS[1], "run_id": f"r{n}"} for n in range(3)]
    done = learn(write(tmp_path / "runs.jsonl", same))
    titles = [line for line in done.stdout.splitlines() if "What worked" in line]
    assert len(titles) == 1
    assert titles[0].split()[0] == "3"


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


@pytest.mark.parametrize("target", ["bank.db", "./bank.db", "bank.db-wal", "."])
def test_an_export_never_overwrites_a_bank_or_a_folder(runs: Path, target: str) -> None:
    learn(runs)
    done = lessonbank_cli("export", target, "--bank", "bank.db", "--scope", "t", cwd=runs.parent)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert lessonbank_cli("lessons", "--bank", "bank.db", "--scope", "t", cwd=runs.parent).returncode == 0


@posix
def test_a_pipe_is_refused_with_the_reason(runs: Path) -> None:
    pipe = runs.parent / "pipe"
    os.mkfifo(pipe)
    done = lessonbank_cli("learn", "pipe", "--bank", "bank.db", "--scope", "t", cwd=runs.parent)
    assert done.returncode == 2
    assert "is not a regular file" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_knows_few_letters_gets_the_others_replaced(tmp_path: Path, encoding: str) -> None:
    row = {**RUNS[1], "task": "Ship 包裹 … 🚀 abroad"}
    learn(write(tmp_path / "runs.jsonl", [row]))
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    words = ("lessons", "--bank", "bank.db", "--scope", "t")
    done = lessonbank_process(*words, cwd=tmp_path, encoding=encoding, env=environment)
    assert done.returncode == 0, done.stderr
    assert "What worked: Ship <name>" in done.stdout
    assert "?" in done.stdout


def test_a_narrow_terminal_loses_neither_ids_nor_titles(runs: Path) -> None:
    learn(runs)
    base = ("lessons", "--bank", "bank.db", "--scope", "t")
    ids = [lesson["id"] for lesson in json.loads(lessonbank_cli(*base, "--json", cwd=runs.parent).stdout)]
    done = lessonbank_cli(*base, cwd=runs.parent, COLUMNS="40")
    assert all(one in done.stdout for one in ids)
    assert "What worked: Ship parcel 1 abroad" in done.stdout


def test_what_goes_to_a_pipe_is_one_line_an_lesson(runs: Path) -> None:
    learn(runs)
    base = ("lessons", "--bank", "bank.db", "--scope", "t")
    listed = json.loads(lessonbank_cli(*base, "--json", cwd=runs.parent).stdout)
    lines = lessonbank_cli(*base, cwd=runs.parent).stdout.splitlines()
    assert all(any(lesson["id"] in line and lesson["title"] in line for line in lines) for lesson in listed)


@posix
@pytest.mark.parametrize("words", [("lessons",), ("lessons", "--json"), ("retrieve", "Ship parcel 1 abroad")])
def test_a_reader_that_leaves_early_is_no_error(runs: Path, words: tuple[str, ...]) -> None:
    learn(runs)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = lessonbank_process(*words, "--bank", "bank.db", "--scope", "t", cwd=runs.parent, stdout=gone)
    assert (done.returncode, done.stderr) == (0, "")


@posix
def test_an_interrupt_reports_what_was_learned_and_keeps_it(runs: Path) -> None:
    with ModelServer(default=lambda _: slow()) as server:
        command = [
            *(*COMMAND, "learn", "runs.jsonl", "--bank", "bank.db", "--scope", "t"),
            *("--model", "m", "--base-url", server.base_url, "--jobs", "1", "--judge"),
        ]
        ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=runs.parent, encoding="utf-8"
        )
        signal.signal(signal.SIGINT, ignored)
        while not server.requests:
            assert started.poll() is None
            time.sleep(0.02)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "0 runs read" in out
    assert "stopped" in err
    assert "Traceback" not in err


def slow() -> str:
    time.sleep(1)
    return "too late"


def test_formats_lists_every_format_there_is(tmp_path: Path) -> None:
    told = lessonbank_cli("formats", cwd=tmp_path)
    assert told.returncode == 0
    assert all(name in told.stdout for name, _ in importers.FORMATS)
    as_json = lessonbank_cli("formats", "--json", cwd=tmp_path)
    assert json.loads(as_json.stdout) == [{"name": name, "what": what} for name, what in importers.FORMATS]


def test_a_run_without_a_terminal_prints_nothing_but_warnings_on_stderr(runs: Path) -> None:
    assert learn(runs).stderr == ""
