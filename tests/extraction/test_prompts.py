"""The words sent to the extractor are reviewed when they change: `UPDATE_SNAPSHOTS=1 pytest tests/extraction`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lessonbank.contracts.records import Outcome, Run, Step, Trajectory, Verdict
from lessonbank.learning.extraction import LLMExtractor
from lessonbank.testing import ScriptedModel
from lessonbank.text.prompts import Prompt, available, load

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
SLOTS = {
    "agent": "(the fenced instructions)",
    "nonce": "0a1b2c3d",
    "verdict": "(how it ended)",
    "run": "(the fenced run)",
    "limit": "3",
    "known": "",
}
OURS = [
    f"{domain}/{role}"
    for domain in ("general", "web", "code")
    for role in ("extract_failure", "extract_success", "contrast")
]
PAPER = [f"paper/extract_{outcome}_{domain}" for outcome in ("success", "failure") for domain in ("web", "code")]
PAPER = [*PAPER, "paper/contrast"]


def words(prompt: Prompt) -> str:
    messages = prompt.render(**{name: SLOTS[name] for name in prompt.slots})
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in messages) + "\n"


@pytest.mark.parametrize("id", [*OURS, *PAPER])
def test_the_words_are_those_that_were_reviewed(id: str) -> None:
    path = SNAPSHOTS / f"extract_{id.replace('/', '_').replace('_extract', '')}.md"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(words(load(id)), encoding="utf-8")
    assert words(load(id)) == path.read_text(encoding="utf-8"), f"{id} changed: raise its version, then update"


@pytest.mark.parametrize("id", [*OURS, *PAPER])
def test_a_prompt_is_compact(id: str) -> None:
    most = 3_200 if id in PAPER else 4_900  # ours also asks how far a fact goes and what a choice rules out
    assert len(words(load(id))) < most, "about 750 tokens, or 1,150"


def test_every_extraction_prompt_is_under_review() -> None:
    found = [id for id in available() if "extract" in id or id.endswith("contrast")]
    assert sorted([*OURS, *PAPER]) == found


@pytest.mark.parametrize("id", OURS)
@pytest.mark.anyio
async def test_a_provider_is_held_to_the_very_form_that_the_prompt_asks_for(id: str) -> None:
    model, prompt = ScriptedModel(['{"items": []}']), load(id)
    outcome: Outcome = "failure" if id.endswith("failure") else "success"
    run = Trajectory(task="Count the tickets", steps=(Step(action="open", observation="12"),))
    attempts = [Run(trajectory=run, verdict=Verdict(outcome=outcome))] * (2 if id.endswith("contrast") else 1)
    await LLMExtractor(model, success=prompt, failure=prompt, contrast=prompt)(attempts)
    schema = model.calls[0].schema
    assert schema
    (field,) = schema.model_fields
    assert f'{{"{field}": [' in words(load(id))
