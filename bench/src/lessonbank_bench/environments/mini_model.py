"""Whoever answers messages, as mini-swe-agent wants its models: one command in a text block a turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast, get_args

from lessonbank.contracts.ports import Completion, Message, Role
from lessonbank.contracts.records import Usage

from .mini_loading import Mini

Answers: TypeAlias = Callable[[Sequence[Message]], Completion]
ACTION = r"```(?:mswea_bash_command|bash)[ \t]*\n(.*?)\n```"
"""The block of version 2, and the one of version 1."""
MALFORMED = (
    "That held {{ actions|length }} commands. Give exactly one, in a block that opens with ```mswea_bash_command and "
    "closes with ```."
)
PRINTED = 10_000
"""Characters of what a command printed that are shown."""


class MiniModel:
    """The protocol of mini-swe-agent around somebody who answers.

    Args:
        mini: mini-swe-agent.
        name: who answers.
        answers: takes the messages so far.
        observed: the template for what a command printed; without one, in the usual form, which takes less time.
        malformed: the template for a reply without exactly one command.
        most: characters of what a command printed that are shown; of a longer text the middle is left out.
    """

    def __init__(
        self,
        mini: Mini,
        name: str,
        answers: Answers,
        /,
        *,
        observed: str = "",
        malformed: str = MALFORMED,
        most: int = PRINTED,
    ) -> None:
        self.config = {"model_name": name}
        self.usage = Usage()
        self._mini, self._answers, self._most = mini, answers, most
        self._observed, self._malformed = observed, malformed

    def query(self, messages: Sequence[dict[str, Any]], **_: Any) -> dict[str, Any]:
        """The next reply; mini-swe-agent's `FormatError` where it holds no command."""
        completion = self._answers([_message(told) for told in messages])
        self.usage += completion.usage
        text = completion.text
        cost = completion.usage.cost or 0.0
        return {"role": "assistant", "content": text, "extra": {"actions": self._commands(text, cost), "cost": cost}}

    def _commands(self, text: str, cost: float) -> list[dict[str, Any]]:
        try:
            return self._mini.parse(text, action_regex=ACTION, format_error_template=self._malformed)
        except Exception as wrong:
            told = cast("list[dict[str, Any]]", getattr(wrong, "messages", []))
            for message in told:  # the agent keeps what is in the error, and the reply is part of the run
                message["extra"] = {**message.get("extra", {}), "cost": cost}
            raise

    def format_message(self, **told: Any) -> dict[str, Any]:
        """A message as it is kept."""
        return told

    def format_observation_messages(
        self, message: dict[str, Any], outputs: Sequence[dict[str, Any]], template_vars: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """What commands printed, and not too much of it."""
        shown = [{**output, "output": bounded(str(output.get("output", "")), self._most)} for output in outputs]
        if not self._observed:
            return [{"role": "user", "content": _seen(output)} for output in shown]
        return self._mini.observed(shown, observation_template=self._observed, template_vars=template_vars)

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        """Nothing that a template needs."""
        return {}

    def serialize(self) -> dict[str, Any]:
        """What the record of a run says of the model."""
        return {"info": {"config": {"model": self.config, "model_type": f"{__name__}.MiniModel"}}}


def bounded(text: str, most: int, /) -> str:
    """`text`, or its head and its tail."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[{len(text) - most} characters left out]\n{text[-(most // 2) :]}"


def _seen(output: dict[str, Any]) -> str:
    wrong = f"<exception>{output['exception_info']}</exception>\n" if output.get("exception_info") else ""
    return f"{wrong}<returncode>{output['returncode']}</returncode>\n<output>\n{output['output']}</output>"


def _message(told: dict[str, Any]) -> Message:
    role = told.get("role")
    return Message(role=cast("Role", role if role in get_args(Role) else "user"), content=str(told.get("content", "")))
