"""How good a judge is, measured on a command line: the truth is hidden, kept, and compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from running import lessonbank_cli

from lessonbank.errors import FormatError
from lessonbank.testing import ModelServer
from lessonbank_bench.measure.judging.figures import calibration, coverage, figures, paired
from lessonbank_bench.measure.judging.kept import Kept, Setting
from lessonbank_bench.measure.judging.opinions import Opinion

pytestmark = pytest.mark.full
_CODE = re.compile(r'"check": "([0-9a-f]{8})"')


def _rows(count: int, source: str = "shop") -> list[dict[str, Any]]:
    """Runs that tell by a word ("sold" or "lost") what a fair reader would say; every fifth misleads."""
    return [
        {
            "source": source,
            "run_id": f"{source}{n}",
            "task_id": f"t{n}",
            "task": f"Sell parcel {n}",
            "messages": [
                {"role": "user", "content": f"Sell parcel {n}"},
                {"role": "assistant", "content": "It is sold." if (n % 2 == 0) != (n % 5 == 4) else "It is lost."},
            ],
            "success": n % 2 == 0,
            "reward": float(n % 2 == 0),
            "label_source": "TRUTH-MARK",
            "error": "TRUTH-MARK" if n % 2 else None,
        }
        for n in range(count)
    ]


def _file(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def _reads(sure: float) -> Any:
    """A reader that believes the agent's last word."""

    def reply(body: dict[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        found = _CODE.search(asked)
        assert found is not None
        outcome = "success" if "is sold" in asked else "failure"
        return json.dumps({"check": found[1], "reason": "step 1", "outcome": outcome, "confidence": sure})

    return reply


def test_a_judge_is_measured_without_being_told_the_truth(tmp_path: Path) -> None:
    runs = _file(tmp_path / "shop.jsonl", _rows(20))
    with ModelServer(default=_reads(0.95)) as server:
        words = ("--model", "openai-chat:reader", "--base-url", server.base_url, "--out", "a.jsonl", "--size", 20)
        done = lessonbank_cli("bench", "judge", runs, *words, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 20
        assert not any("TRUTH-MARK" in json.dumps(request.body) for request in server.requests)
    row = json.loads(done.stdout)["rows"][0]
    assert row["decided"] == {"count": 20, "of": 20}
    assert row["right"] == {"count": 16, "of": 20}
    assert row["covered"]["count"] == 20
    assert row["input_tokens"] > 0


def test_verdicts_are_kept_and_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    runs = _file(tmp_path / "shop.jsonl", _rows(8))
    with ModelServer(default=_reads(0.9)) as server:
        words = ("--model", "openai-chat:reader", "--base-url", server.base_url, "--out", "a.jsonl")
        assert lessonbank_cli("bench", "judge", runs, *words, cwd=tmp_path).returncode == 0
        torn = (tmp_path / "a.jsonl").read_text(encoding="utf-8").rstrip("\n")[:-10]
        (tmp_path / "a.jsonl").write_text(torn, encoding="utf-8")  # as a process leaves it that was killed
        again = lessonbank_cli("bench", "judge", runs, *words, cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        assert len(server.requests) == 9
        other = lessonbank_cli("bench", "judge", runs, *words, "--judge-budget", 700, cwd=tmp_path)
        assert "was made with another judge budget" in other.stderr
    alone = lessonbank_cli("bench", "judge", "--out", "a.jsonl", "--html", "page.html", cwd=tmp_path)
    assert "8/8" in alone.stdout
    assert "Reliability" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_file_of_somebody_else_is_left_as_it_is_and_a_line_cut_short_is_dropped(tmp_path: Path) -> None:
    notes, kept = tmp_path / "notes.md", tmp_path / "kept.jsonl"
    notes.write_text("first line\nlast line without an end", encoding="utf-8")
    with pytest.raises(FormatError, match=r"notes\.md.* name another file"):
        Kept(notes, Opinion)
    assert notes.read_text(encoding="utf-8") == "first line\nlast line without an end"
    Kept(kept, Opinion, Setting(name="one"))
    with kept.open("a", encoding="utf-8") as file:
        file.write('{"run": "cut sh')
    assert Kept(kept, Opinion).rows == []
    assert kept.read_text(encoding="utf-8").count("\n") == len(kept.read_text(encoding="utf-8").splitlines()) == 1


def test_a_model_that_fails_costs_no_verdict_and_the_command_goes_on_later(tmp_path: Path) -> None:
    runs = _file(tmp_path / "shop.jsonl", _rows(4))
    words = ("--model", "openai-chat:reader", "--out", "a.jsonl", "--timeout", 5)
    with ModelServer(default=lambda _: pytest.fail("closed")) as server:
        gone = server.base_url
    failed = lessonbank_cli("bench", "judge", runs, *words, "--base-url", gone, cwd=tmp_path)
    assert failed.returncode == 3
    assert "4 runs were not judged" in failed.stderr
    with ModelServer(default=_reads(0.9)) as server:
        done = lessonbank_cli("bench", "judge", runs, *words, "--base-url", server.base_url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "4/4" in done.stdout


def test_answers_of_a_cassette_are_read_again_although_every_request_has_new_codes(tmp_path: Path) -> None:
    runs = _file(tmp_path / "shop.jsonl", _rows(6))
    with ModelServer(default=_reads(0.9)) as server:
        words = ("--model", "openai-chat:reader", "--base-url", server.base_url, "--cassette", "c.jsonl")
        first = lessonbank_cli("bench", "judge", runs, *words, "--out", "a.jsonl", "--json", cwd=tmp_path)
        second = lessonbank_cli("bench", "judge", runs, *words, "--out", "b.jsonl", "--json", cwd=tmp_path)
        assert len(server.requests) == 6
    assert json.loads(first.stdout)["rows"][0]["right"] == json.loads(second.stdout)["rows"][0]["right"]


def test_two_prompts_are_compared_on_the_same_runs(tmp_path: Path) -> None:
    runs = [_file(tmp_path / f"{name}.jsonl", _rows(10, name)) for name in ("shop", "desk")]
    (tmp_path / "own.md").write_text(
        "id: own/judge\nversion: 7\nslots: run, check\nsource: a test\n---\n"
        '# User\n{{run}}\nPLAIN "check": "{{check}}"\n',
        encoding="utf-8",
    )
    both = (runs[0], f"web={runs[1]}")
    with ModelServer(default=_reads(0.9)) as server:
        words = ("--model", "openai-chat:reader", "--base-url", server.base_url)
        assert lessonbank_cli("bench", "judge", *both, *words, "--out", "a.jsonl", cwd=tmp_path).returncode == 0
        assert any("web agent" in request.body["messages"][0]["content"] for request in server.requests)
    with ModelServer(default=lambda body: re.sub("sold|lost", "lost", _reads(0.9)(body))) as server:
        words = ("--model", "openai-chat:reader", "--base-url", server.base_url, "--prompt", "own.md")
        done = lessonbank_cli(
            "bench", "judge", *both, *words, "--out", "b.jsonl", "--name", "own", "--against", "a.jsonl", cwd=tmp_path
        )
        assert all("PLAIN" in request.body["messages"][-1]["content"] for request in server.requests)
    assert done.returncode == 0, done.stderr
    assert "20 runs in common" in done.stdout
    assert "| shop |" in done.stdout
    assert "| desk |" in done.stdout


def _said(n: int, *, right: bool, sure: float, outcome: str = "success") -> Opinion:
    truth = (outcome == "success") == right
    return Opinion(run=f"r{n}", source="s", domain="general", success=truth, outcome=outcome, confidence=sure)  # type: ignore[arg-type]


def test_confidence_is_compared_with_what_it_turned_out_to_be_worth() -> None:
    sure = [_said(n, right=n != 0, sure=0.96) for n in range(10)]
    unsure = [_said(10 + n, right=n < 2, sure=0.65) for n in range(4)]
    undecided = [_said(20, right=False, sure=0.5, outcome="unknown")]
    known = [*sure, *unsure, *undecided]
    assert [(one.low, one.right.count, one.right.of) for one in calibration(known)] == [(0.6, 2, 4), (0.95, 9, 10)]
    told = coverage(known, 0.9)
    assert (told.threshold, told.covered.count, told.covered.of) == (0.96, 10, 15)
    assert coverage(known, 0.95).threshold is None
    row = figures(known)[0]
    assert (row.decided.count, row.decided.of, row.right.count) == (14, 15, 11)


def test_a_run_that_one_setting_left_undecided_is_not_right_for_it() -> None:
    first = [_said(n, right=True, sure=0.9) for n in range(6)]
    second = [*(_said(n, right=False, sure=0.9, outcome="unknown") for n in range(5)), _said(5, right=True, sure=0.9)]
    found = paired(first, second)
    assert (found.only_first, found.only_second, found.both, found.decided_by_both) == (5, 0, 1, 1)
    assert found.p == pytest.approx(2 / 2**5)


def _draws(title: str) -> Any:
    """An extractor with one lesson for every run."""
    lesson = {
        "evidence": ["step 1"],
        "cause": "the parcel was sold",
        "title": title,
        "description": "When a parcel is offered.",
        "content": f"{title} before the counter closes, and read the receipt.",
    }
    return lambda _: json.dumps({"items": [lesson]})


def _reader(body: dict[str, Any]) -> str:
    """A reader that likes one wording, wherever it stands, and calls the other false."""
    asked = body["messages"][-1]["content"]
    code = _CODE.search(asked)
    assert code is not None
    good = "A" if "Weigh the parcel" in asked.split("<<<set B")[0].split("<<<set A")[1] else "B"
    bad = "B" if good == "A" else "A"
    told = {f"false_in_{bad}": 1, f"false_in_{good}": 0, "restated_in_A": 0, "restated_in_B": 0}
    return json.dumps({"check": code[1], "reason": "truer", "better": good, **told})


def test_two_sets_of_lessons_are_read_blind_on_random_sides(tmp_path: Path) -> None:
    runs = _file(tmp_path / "shop.jsonl", _rows(10))
    for out, title in (("a.jsonl", "Weigh the parcel"), ("b.jsonl", "Stamp the parcel")):
        with ModelServer(default=_draws(title)) as server:
            words = ("--model", "openai-chat:writer", "--base-url", server.base_url, "--out", out, "--name", out)
            done = lessonbank_cli("bench", "lessons", runs, *words, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert f"| {out} | all | 10 | 10 |" in done.stdout
    with ModelServer(default=_reader) as server:
        words = ("--reader", "openai-chat:reader", "--base-url", server.base_url, "--readings", "r.jsonl")
        pair = ("bench", "lessons", runs, "--out", "a.jsonl", "--against", "b.jsonl", *words)
        done = lessonbank_cli(*pair, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["readings"] == {"first": 10, "second": 0, "tie": 0}
        sent = [request.body["messages"][-1]["content"] for request in server.requests]
        assert not any("a.jsonl" in text or "writer" in text for text in sent)
        assert 0 < sum("Weigh" in text.split("<<<set B")[0] for text in sent) < 10, "the sides are drawn"
        again = lessonbank_cli(*pair, cwd=tmp_path)
        assert len(server.requests) == 10
    assert "all: preferred 10, lost 0, tie 0" in again.stdout
    assert "false: 0 against 10" in again.stdout


def test_a_reader_that_does_not_give_the_code_back_is_not_believed(tmp_path: Path) -> None:
    runs = _file(tmp_path / "shop.jsonl", _rows(2))
    with ModelServer(default=_draws("Weigh the parcel")) as server:
        for out in ("a.jsonl", "b.jsonl"):
            words = ("--model", "openai-chat:writer", "--base-url", server.base_url, "--out", out)
            assert lessonbank_cli("bench", "lessons", runs, *words, cwd=tmp_path).returncode == 0
    with ModelServer(default='{"check": "00000000", "better": "A"}') as server:
        words = ("--reader", "openai-chat:reader", "--base-url", server.base_url, "--readings", "r.jsonl")
        done = lessonbank_cli(
            "bench", "lessons", runs, "--out", "a.jsonl", "--against", "b.jsonl", *words, cwd=tmp_path
        )
    assert done.returncode == 3
    assert "2 pairs were not read" in done.stderr
