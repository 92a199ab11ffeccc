"""What every language model must do: subclass it, say how to make one, and run it with pytest."""

from __future__ import annotations

import json

from pydantic import BaseModel

from lessonbank._base.aio import gather
from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.errors import ModelError

ASKED = (Message(role="system", content="Answer briefly."), Message(role="user", content="What is the answer?"))


class Shape(BaseModel):
    """A schema to ask for."""

    answer: int


class LanguageModelContract:
    """Subclass it under `@pytest.mark.anyio` and override `make`, and `make_failing` where a model can fail."""

    def make(self, reply: str, /) -> LanguageModel:
        """A model that answers every request with `reply`."""
        raise NotImplementedError

    def make_failing(self) -> LanguageModel | None:
        """A model whose every request fails; `None` skips the check."""
        return None

    async def test_it_has_a_name_that_does_not_change(self) -> None:
        model = self.make("42")
        before = model.name
        await model.generate(ASKED)
        assert before
        assert model.name == before

    async def test_the_reply_arrives_as_it_was_given(self) -> None:
        reply = 'Zwölf – 12\n\n```json\n{"a": [1, 2,]}\n```'
        assert (await self.make(reply).generate(ASKED)).text == reply

    async def test_one_request_is_counted(self) -> None:
        usage = (await self.make("42").generate(ASKED)).usage
        assert usage.requests == 1
        assert usage.input_tokens >= 0
        assert usage.output_tokens >= 0

    async def test_a_schema_and_a_temperature_are_welcome(self) -> None:
        completion = await self.make('{"answer": 42}').generate(ASKED, temperature=1.0, schema=Shape)
        assert json.loads(completion.text) == {"answer": 42}

    async def test_earlier_answers_may_be_among_the_messages(self) -> None:
        more = (*ASKED, Message(role="assistant", content="41"), Message(role="user", content="Look again."))
        assert (await self.make("42").generate(more)).text == "42"

    async def test_several_requests_run_at_once(self) -> None:
        model = self.make("42")
        completions = await gather([lambda: model.generate(ASKED) for _ in range(5)])
        assert [completion.text for completion in completions] == ["42"] * 5

    async def test_a_failure_is_a_model_error_that_says_something(self) -> None:
        model = self.make_failing()
        if model is None:
            return
        message = ""
        try:
            await model.generate(ASKED)
        except ModelError as error:
            message = str(error)
        assert message, "the failing model answered, or said nothing"
