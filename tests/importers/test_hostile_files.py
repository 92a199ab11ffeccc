"""Whatever lies where runs are looked for, reading ends soon, in little memory, and inside of the folder."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from linear import too_slow

from lessonbank.errors import FormatError
from lessonbank.importers import Entry, Imported, Skipped, claude_code, detect, gemini_cli, qwen_code, read
from lessonbank.importers._reading import without_blocks, without_memory, without_trailer
from lessonbank.importers.memories import awm

ROW = json.dumps({"task": "t", "messages": [{"role": "user", "content": "x"}]}) + "\n"
LIMIT = "lessonbank.importers._files.RECORD_LIMIT"
_posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices lie in folders of POSIX systems")


def reasons(entries: list[Entry]) -> dict[str, str]:
    return {entry.path.name: entry.reason for entry in entries if isinstance(entry, Skipped)}


def tasks(entries: list[Entry]) -> list[str]:
    return [entry.trajectory.task for entry in entries if isinstance(entry, Imported)]


@_posix
def test_pipes_and_devices_in_a_folder_are_named_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(ROW)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "results.json").symlink_to("/dev/zero")
    (tmp_path / "noise.json").symlink_to("/dev/urandom")
    (tmp_path / "folder.json").mkdir()
    entries = list(read(tmp_path))
    assert tasks(entries) == ["t"]
    told = reasons(entries)
    assert "not a regular file" in told["pipe.jsonl"]
    assert "leads out of the folder" in told["results.json"]
    assert told.keys() == {"pipe.jsonl", "results.json", "noise.json"}
    followed = reasons(list(read(tmp_path, follow_links=True)))
    assert "not a regular file" in followed["results.json"]


@_posix
@pytest.mark.parametrize("name", ["pipe.jsonl", "zero.json"])
def test_a_pipe_or_a_device_that_is_named_is_refused(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for call in (read, detect):
        with pytest.raises(FormatError, match="is not a regular file"):
            call(tmp_path / name)


@_posix
def test_a_report_beside_a_run_that_is_a_device_a_pipe_or_a_link_to_nothing_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMIT, 2**14)
    run: dict[str, object] = {"trajectory": [{"action": "ls", "observation": "a"}], "history": [], "info": {}}
    (tmp_path / "x.traj").write_text(json.dumps(run))
    (tmp_path / "results.json").symlink_to("/dev/zero")
    (tmp_path / "b_report.json").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "report.json")
    (tmp_path / "a_report.json").write_bytes(gzip.compress(b" " * 10**6))
    for place in (tmp_path, tmp_path / "x.traj"):
        assert len(tasks(list(read(place)))) == 1


@_posix
def test_the_log_of_a_result_folder_may_not_be_a_pipe_or_lie_elsewhere(tmp_path: Path) -> None:
    folder, secret = tmp_path / "runs" / "a_on_shop.7_1", tmp_path / "secret.log"
    folder.mkdir(parents=True)
    secret.write_text("2030-01-01 00:00:00,000 - 1 - x.experiments.loop - INFO - action: SECRET")
    (folder / "experiment.log").symlink_to(secret)
    (folder / "summary_info.json").write_text('{"n_steps": 1}')
    for place in (folder, tmp_path / "runs"):
        [entry] = read(place)
        assert isinstance(entry, Skipped)
        assert "leads out of the folder" in entry.reason
    [entry] = read(folder, follow_links=True)
    assert isinstance(entry, Imported)
    (folder / "experiment.log").unlink()
    os.mkfifo(folder / "experiment.log")
    [entry] = read(folder)
    assert isinstance(entry, Skipped)


@_posix
def test_a_link_that_leads_out_of_the_folder_is_read_only_when_it_was_asked_for(tmp_path: Path) -> None:
    inner, outer = tmp_path / "runs", tmp_path / "elsewhere"
    for folder in (inner, outer):
        folder.mkdir()
    (outer / "secret.jsonl").write_text(ROW.replace('"t"', '"secret"'))
    (inner / "a.jsonl").write_text(ROW)
    (inner / "b.jsonl").symlink_to(inner / "a.jsonl")
    (inner / "c.jsonl").symlink_to(outer / "secret.jsonl")
    (inner / "d").symlink_to(outer)
    entries = list(read(inner))
    assert tasks(entries) == ["t", "t"]
    assert reasons(entries).keys() == {"c.jsonl", "d"}
    assert tasks(list(read(inner, follow_links=True))) == ["t", "t", "secret", "secret"]
    assert tasks(list(read(inner / "c.jsonl"))) == ["secret"]  # its name was said


@_posix
def test_folders_that_link_to_each_other_are_walked_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "b").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "a").symlink_to(tmp_path / "a")
    (tmp_path / "b" / "loop.jsonl").symlink_to(tmp_path / "b" / "loop.jsonl")
    (tmp_path / "b" / "x.jsonl").write_text(ROW)
    for follow_links in (False, True):
        assert tasks(list(read(tmp_path, follow_links=follow_links))) == ["t"]


def test_a_file_that_grows_is_read_as_long_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    path.write_text(ROW * 3)
    seen = 0
    for _ in read(path):
        with path.open("a") as file:
            file.write(ROW * 3)
        seen += 1
    assert seen == 3


def test_a_record_is_measured_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMIT, 2**20)
    monkeypatch.setattr("lessonbank.importers._files._MOST_TIMES", 10**6)
    whole, lines = tmp_path / "whole.json.gz", tmp_path / "lines.jsonl.gz"
    whole.write_bytes(gzip.compress(b'{"messages":\n[' + b"1,\n" * 2**20 + b"1]}"))
    lines.write_bytes(gzip.compress(b"[" * 2**21 + b"\n" + ROW.encode()))
    with pytest.raises(FormatError, match=r"more than 1 MB \(unpacked\)"):
        detect(whole)
    bad, good = read(lines)
    assert isinstance(bad, Skipped)
    assert bad.reason == "the line is longer than 1 MB"
    assert isinstance(good, Imported)


@pytest.mark.full
def test_an_archive_out_of_proportion_and_lines_without_end_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMIT, 2**14)
    monkeypatch.setattr("lessonbank.importers._files._PASSED_OVER", 2**20)
    monkeypatch.setattr("lessonbank.importers._formats._MOST_IN_VAIN", 2**20)
    monkeypatch.setattr("lessonbank.importers._files._MOST_BLANK", 2**14)
    noise = b'"%s"\n' % random.Random(0).randbytes(512).hex().encode()  # some Pythons unpack 128 KB at once
    wide = b"[]" + b" " * 13 + b"\n"
    files = {
        "bomb.jsonl.gz": (gzip.compress(ROW.encode() + noise + wide * 2**16), "more than 250 times"),
        "blank.jsonl": (ROW.encode() + b" \n" * 2**14, "blank lines"),
        "endless.jsonl": (ROW.encode() + b"x" * 2**21, "a line is longer than 1 MB"),
    }
    for name, (content, why) in files.items():
        (tmp_path / name).write_bytes(content)
        *first, last = read(tmp_path / name)
        assert isinstance(first[0], Imported), name
        assert isinstance(last, Skipped)
        assert why in last.reason


@_posix
@pytest.mark.full
def test_bombs_of_every_kind_take_little_memory_and_time(tmp_path: Path) -> None:
    """In a process of its own that may take 1.2 GB of memory: the file of 58 KB took 1.7 GB."""
    lists = gzip.compress(b"[]," * 10**6) * 21
    (tmp_path / "values.json").write_bytes(gzip.compress(b"[") + lists + gzip.compress(b"[]]"))
    (tmp_path / "zeros.json").write_bytes(gzip.compress(b"\0" * 10**7) * 40)
    with (tmp_path / "sparse.jsonl").open("wb") as file:
        file.truncate(10**13)
    (tmp_path / "good.jsonl").write_text(ROW)
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (12 * 10**8,) * 2)\n"
        "from lessonbank.importers import read\n"
        "for entry in read(sys.argv[1]): print(entry.path.name, getattr(entry, 'reason', 'run'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert told["good.jsonl"] == "run"
    assert "values in one record" in told["values.json"]
    assert "cannot be read further" in told["zeros.json"]
    assert "cannot be read further" in told["sparse.jsonl"]


@pytest.mark.parametrize("whole", ["[" * 900 + "]" * 900, '{"messages":' * 450 + "1" + "}" * 450])
def test_a_file_that_is_nested_too_deep_costs_no_other_file_its_runs(whole: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(whole)
    (tmp_path / "b.jsonl").write_text(ROW)
    assert tasks(list(read(tmp_path))) == ["t"]
    with pytest.raises(FormatError):
        detect(tmp_path / "a.json")


def test_names_in_capitals_and_the_database_of_opencode_are_met_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "A.JSONL").write_text(ROW)
    (tmp_path / "B.Json.GZ").write_bytes(gzip.compress(ROW.encode()))
    (tmp_path / "opencode.db").write_bytes(b"no database")
    entries = list(read(tmp_path))
    assert tasks(entries) == ["t", "t"]
    assert "no database of opencode" in reasons(entries)["opencode.db"]


OPENED = ("<lessonbank>", "\n<lessonbank>", "<hook_context>", "<qwen:user-prompt-submit-context>", "<command-args>")
SPOKEN = ("\nExit Code: 0", "\nError: (none)", "\n", " ", "\t")


@pytest.mark.full
def test_what_programs_add_to_a_text_is_taken_out_in_linear_time() -> None:
    calls = {
        "memory": lambda text: without_memory(f"lessonbank{text}"),
        "trailer": lambda text: without_trailer(f"{text}x"),
        "gemini": lambda text: without_blocks(text, *gemini_cli._HOOK, blanks=""),
        "qwen": lambda text: without_blocks(text, *qwen_code._HOOK, blanks=None),
        "claude": lambda text: claude_code._typed(
            f"<command-name>/x</command-name>{text}", [], [{"role": "assistant"}]
        ),
        "awm": lambda text: awm.FORMAT.of_text(text),
    }
    assert not too_slow(calls, pieces=(*OPENED, *SPOKEN), size=20_000)
