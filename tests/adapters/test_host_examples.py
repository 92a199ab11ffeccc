from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from examples_of import load

pytestmark = [
    pytest.mark.full,
    # What frameworks warn about is theirs.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSWEA_SILENT_STARTUP", "1")
    monkeypatch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_a_site_of_webarena_has_its_own_lessons() -> None:
    assert load("webarena").main() == [0.0, 1.0]


def test_a_task_of_mind2web_is_shown_what_the_one_before_taught() -> None:
    first, second = load("mind2web").main()
    assert first < second == 1.0


def test_an_issue_of_swe_bench_is_shown_what_the_one_before_taught() -> None:
    pytest.importorskip("minisweagent", reason="mini-swe-agent is not installed")
    assert load("swe_bench").main() == [0, 1]


def test_a_sample_of_inspect_ai_is_shown_what_the_one_before_taught() -> None:
    pytest.importorskip("inspect_ai", reason="Inspect AI is not installed")
    assert load("inspect_eval").main() == ["I", "C"]


def test_what_one_run_of_smolagents_taught_stands_in_the_next() -> None:
    pytest.importorskip("smolagents", reason="smolagents is not installed")
    assert taught(load("smolagents_agent").main())


def test_what_one_run_of_llama_index_taught_stands_in_the_next() -> None:
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    assert taught(asyncio.run(load("llama_index_agent").main()))


def test_what_one_run_of_dspy_taught_stands_in_the_next() -> None:
    pytest.importorskip("dspy", reason="DSPy is not installed")
    assert taught(load("dspy_program").main())


def taught(shown: Any) -> bool:
    (text,) = shown
    return "make changelog" in text
