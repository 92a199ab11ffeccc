"""Where a judge meets its model: a failure of either, or a reply nobody can read, becomes an `unknown` verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from lessonbank._base.aio import read_reply
from lessonbank.contracts.ports import CUT, Completion, Judge, LanguageModel, Message
from lessonbank.contracts.records import Trajectory, Verdict
from lessonbank.errors import ModelError, ModelTimeout, OutputError
from lessonbank.guard.quote import quoted
from lessonbank.text.prompts import Prompt

from .parsing import Reading


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict, and the reply it was read from."""

    verdict: Verdict
    text: str = ""
    steps: tuple[int, ...] = ()
    """Those that the model would like to see whole."""


async def ask(
    model: LanguageModel,
    messages: Sequence[Message],
    /,
    *,
    prompt: Prompt,
    read: Callable[[str], Reading],
    decide: Callable[[Reading], Verdict],
    temperature: float,
    schema: type[BaseModel] | None = None,
) -> Answer:
    """What a model replied, and its verdict with the model, the prompt and the usage on it.

    What a `LanguageModel` may raise as its port says is caught; a `UsageError` (no key, no such model) is the caller's
    to fix and passes through.
    """
    reply, steps = Completion(text=""), ()
    try:
        reply = await model.generate(messages, temperature=temperature, schema=schema)
        reading = await read_reply(read, reply.text)
        verdict, steps = decide(reading), reading.steps
        if reply.is_cut:
            verdict = verdict.model_copy(update={"reason": f"{verdict.reason} ({CUT})".strip()})
    except OutputError as error:
        verdict = unknown(str(error), error=error.code)
    except (ModelTimeout, TimeoutError):
        verdict = unknown("The judge's model did not answer in time.", error=ModelTimeout.code)
    except ModelError as error:
        verdict = unknown(f"The judge's model failed: {quoted(error) or type(error).__name__}", error=error.code)
    name = reply.model or model.name
    verdict = verdict.model_copy(update={"model": name, "prompt": prompt.ref, "usage": reply.usage})
    return Answer(verdict, reply.text, steps)


async def judged(judge: Judge, run: Trajectory, /) -> Verdict:
    """What `judge` says of `run`; `unknown`, with the reason, where its model failed: that costs nobody the run."""
    try:
        return await judge(run)
    except ModelError as error:
        return unknown(f"the judge's model failed: {quoted(error)}", error=error.code)


def unknown(reason: str, /, *, error: str | None = None) -> Verdict:
    """No verdict, and why; `error` is the code of the error that kept the model from one."""
    return Verdict(outcome="unknown", confidence=0.0, reason=reason, error=error)


def is_blank(trajectory: Trajectory, /) -> bool:
    """Whether the agent did nothing that could be judged."""
    acted = any(step.thought or step.action.text or step.action.calls for step in trajectory.steps)
    return not acted and not (trajectory.answer or "").strip()
