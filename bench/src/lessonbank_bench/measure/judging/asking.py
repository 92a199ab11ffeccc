"""Asks a judge about every run of a draw; the truth stays here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, cast

from lessonbank import AsyncReasoningBank, Learning, Model, Parts, connect_async, wiring
from lessonbank._concurrency import gather
from lessonbank.config import UNSET
from lessonbank.errors import UsageError
from lessonbank.learning.judging import LLMJudge
from lessonbank.models.recorded import Recorded
from lessonbank.prompts import Prompt, for_domain, load, load_file
from lessonbank.protocols import Judge

from .labelled import Labelled
from .opinions import Opinion, OpinionFile, Setting


@dataclass(frozen=True, slots=True)
class Asked:
    """Who judges, and how."""

    model: Model
    name: str = ""
    """How tables call the setting."""
    profile: Literal["default", "paper"] = "default"
    prompt: Path | None = None
    """A prompt file, or a folder with `general/judge.md`, `web/judge.md` and `code/judge.md`."""
    judge_budget: int | None = None
    cassette: Path | None = None
    """Where answers are kept and, when a request comes again, taken from."""
    concurrency: int = 8

    def setting(self, domains: Sequence[str], /) -> Setting:
        """What a file of opinions keeps of it."""
        prompts = {domain: self.prompt_of(domain) for domain in sorted(set(domains))}
        told = {domain: f"{prompt.id} {prompt.version} {prompt.digest[:8]}" for domain, prompt in prompts.items()}
        return Setting(
            name=self.name or ", ".join((str(self.model.name), *told.values())),
            asked={
                "model": str(self.model.name),
                "profile": self.profile,
                "judge budget": self.judge_budget,
                **{f"prompt for {domain}": ref for domain, ref in told.items()},
            },
        )

    def prompt_of(self, domain: str, /) -> Prompt:
        """What the judge is told about runs of a domain."""
        if self.prompt is not None:
            return load_file(self.prompt / domain / "judge.md" if self.prompt.is_dir() else self.prompt)
        paper = f"paper/judge_{'code' if domain == 'code' else 'web'}"
        return load(paper) if self.profile == "paper" else for_domain(domain, "judge")

    def with_cassette(self) -> Model:
        """The model; with a cassette, one that answers out of it where it can."""
        if self.cassette is None:
            return self.model
        bare = wiring.bare_model(self.model.name, self.model.base_url, self.model.api_key)
        return Model(Recorded(bare, cassette=self.cassette), timeout=self.model.timeout)

    def judge(self, domain: str, model: Model, /) -> Judge | None:
        """A judge with a prompt of the caller's; `None` for the one that a bank has."""
        asked = wiring.resolve_models(model).judge
        if self.prompt is None or asked is None:
            return None
        budget = {} if self.judge_budget is None else {"budget": self.judge_budget}
        return LLMJudge(asked, prompt=self.prompt_of(domain), **budget)


async def ask(runs: Sequence[Labelled], file: OpinionFile, asked: Asked, /, *, tell: Callable[[int], None]) -> str:
    """Have every run judged that the file has no verdict of; why some were not, or nothing.

    Each run goes through a bank's own door, so that the judge is shown what it would be shown in use.
    """
    known = {opinion.run for opinion in file.opinions}
    todo = [one for one in runs if one.run.id not in known]
    model = asked.with_cassette()
    failures: list[str] = []
    for domain in sorted({one.domain for one in todo}):
        async with await connect_async(
            ":memory:",
            scope="bench/judge",
            profile=asked.profile,
            embedder="lexical",
            model=model,
            learning=Learning(
                domain=cast("Literal['general', 'web', 'code']", domain),
                judge_budget=UNSET if asked.judge_budget is None else asked.judge_budget,
            ),
            parts=Parts(judge=asked.judge(domain, model)),
        ) as bank:
            own = [one for one in todo if one.domain == domain]
            calls = [partial(_one, bank, one, file, failures, tell) for one in own]
            await gather(calls, limit=asked.concurrency)
    return f"{len(failures)} runs were not judged: {failures[0]}" if failures else ""


async def _one(
    bank: AsyncReasoningBank, one: Labelled, file: OpinionFile, failures: list[str], tell: Callable[[int], None]
) -> None:
    verdict = await bank.judge(one.hidden)
    if verdict.error is not None and verdict.error != "judge_error":
        failures.append(verdict.reason)
        return
    prompt = verdict.prompt
    file.add(
        Opinion(
            run=one.run.id,
            source=one.source,
            domain=one.domain,
            success=one.success,
            outcome=verdict.outcome,
            confidence=verdict.confidence,
            reason=verdict.reason,
            prompt=f"{prompt.id} {prompt.version}" if prompt else "",
            usage=verdict.usage,
        )
    )
    tell(len(file.opinions))


def check(asked: Asked, /) -> None:
    """Refuse what cannot go together.

    Raises:
        UsageError: a prompt of the caller's beside the paper's profile.
    """
    if asked.prompt is not None and asked.profile == "paper":
        raise UsageError("--prompt is for the default profile: the paper's prompts stay as they were published")
