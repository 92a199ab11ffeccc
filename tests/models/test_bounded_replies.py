"""Every reply of a model is bounded as it is asked for and as it is read. One that was cut counts as far as it goes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import lessonbank
from lessonbank import Evidence, Model, Step, Trajectory
from lessonbank.contracts.ports import CUT, Completion, Message
from lessonbank.contracts.settings import Learning
from lessonbank.errors import UsageError
from lessonbank.providers.models.wrappers import Clipped
from lessonbank.testing import ModelServer
from lessonbank.text.bounded_json import shallow

pytestmark = pytest.mark.anyio
ASKED = [Message(role="user", content="go")]
LESSON = {"evidence": ["step 2"], "title": "Rebuild first", "content": "Rebuild the index before you search again."}
RUN = Trajectory(
    task="find the invoice",
    steps=(
        Step(action="search", observation="error: 0 results"),
        Step(action="rebuild index", observation="rebuilt"),
        Step(action="search again", observation="found 3"),
    ),
    answer="ok",
)


class Says:
    """A model that gives the same reply to each request."""

    name = "tests:says"

    def __init__(self, text: str, *, is_cut: bool = False) -> None:
        self.reply = Completion(text=text, is_cut=is_cut)

    async def generate(
        self, messages: Sequence[Message], /, *, temperature: float = 0.0, schema: type[BaseModel] | None = None
    ) -> Completion:
        return self.reply


@pytest.mark.parametrize(("given_limit", "most"), [(None, 30_000), (500, 500)])
async def test_a_request_to_a_provider_bounds_the_reply(given_limit: int | None, most: int) -> None:
    with ModelServer(default="[]") as server:
        model = Model("desk", base_url=server.base_url, api_key="k", max_tokens=given_limit)
        async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical", model=model) as bank:
            await bank.learn(RUN)
    assert server.requests
    for request in server.requests:
        limit = request.body.get("max_completion_tokens") or request.body.get("max_tokens")
        assert limit is not None
        assert 0 < limit <= most


@pytest.mark.parametrize("wrong", [0, -1, "many", 1.5])
def test_a_limit_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="max_tokens"):
        Model("openai:x", max_tokens=wrong)


async def test_the_lessons_before_the_cut_are_kept_and_a_note_says_that_it_was_cut() -> None:
    whole = json.dumps({"items": [LESSON, {**LESSON, "title": "Ask for the number"}]})
    cut = whole[: whole.index("Ask for")]
    async with await lessonbank.connect_async(
        ":memory:",
        scope="t",
        embedder="lexical",
        model={"extractor": Says(cut, is_cut=True)},
        evidence=Evidence(holdout=None),
        learning=Learning(),
    ) as bank:
        learned = await bank.learn(RUN, outcome="success")
    assert [lesson.title for lesson in learned.lessons] == ["Rebuild first"]
    assert CUT in learned.notes


@pytest.mark.parametrize("pattern", ["{", "[", "{[", '{"a":[', "{}", '{"', "[]"])
async def test_ten_megabytes_of_brackets_are_cut_before_anybody_reads_them(pattern: str) -> None:
    text = (await Clipped(Says(pattern * (10_000_000 // len(pattern)))).generate(ASKED)).text
    assert sum(map(text.count, "[]{}")) <= 4_001


@given(
    st.recursive(st.none() | any_text(), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text(), inner))
)
def test_json_that_somebody_asked_for_is_left_as_it_is(value: object) -> None:
    text = json.dumps(value)
    if text.count("[") + text.count("{") < 50:
        assert shallow(text) == text
