"""Asks a judge about every run of a draw, or an extractor for its lessons; a judge is never told the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, cast

from lessonbank import AsyncReasoningBank, Learning, Model, Parts, Run, Verdict, connect_async, wiring
from lessonbank._base.aio import gather
from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.settings import UNSET
from lessonbank.errors import ExtractionError, ModelError, UsageError
from lessonbank.learning.extraction import LLMExtractor
from lessonbank.learning.judging import LLMJudge
from lessonbank.text.prompts import Prompt, for_domain, load, load_file
from lessonbank_bench.cassette import Recorded

from .kept import Kept, Setting
from .labelled import Labelled
from .lessons import Drawn, Told
from .opinions import Opinion

Tell = Callable[[int], None]
_ROLES = ("extract_success", "extract_failure", "contrast")


@dataclass(frozen=True, slots=True)
class Asked:
    """Who is asked, and how."""

    model: Model
    name: str = ""
    """How tables call the setting."""
    profile: Literal["default", "paper"] = "default"
    prompt: Path | None = None
    """A prompt file for a judge, or a folder with prompts of each domain, such as `web/judge.md`."""
    judge_budget: int | None = None
    second_look: bool = True
    cassette: Path | None = None
    """Where answers are kept and, when a request comes again, taken from."""
    concurrency: int = 8

    def setting(self, domains: Sequence[str], roles: Sequence[str], /) -> Setting:
        """What a file keeps of it."""
        if self.prompt is not None and self.profile == "paper":
            raise UsageError("--prompt is for the default profile: the paper's prompts stay as they were published")
        told = {
            f"{role} for {domain}": f"{prompt.id} {prompt.version} {prompt.digest[:8]}"
            for domain in sorted(set(domains))
            for role in roles
            if (prompt := self.prompt_of(domain, role))
        }
        return Setting(
            name=self.name or ", ".join((str(self.model.name), *dict.fromkeys(told.values()))),
            asked={
                "model": str(self.model.name),
                "profile": self.profile,
                "judge budget": self.judge_budget,
                "second look": self.second_look,
                **told,
            },
        )

    def prompt_of(self, domain: str, role: str, /) -> Prompt | None:
        """What a model is told about runs of a domain; `None` where the profile decides it."""
        if self.prompt is not None:
            return load_file(self.prompt / domain / f"{role}.md" if self.prompt.is_dir() else self.prompt)
        if self.profile == "paper":
            return load(f"paper/judge_{'code' if domain == 'code' else 'web'}") if role == "judge" else None
        return for_domain(domain, role)

    def with_cassette(self) -> Model:
        """The model; with a cassette, one that answers out of it where it can."""
        if self.cassette is None:
            return self.model
        bare = wiring.bare_model(self.model.name, self.model.base_url, self.model.api_key)
        return Model(Recorded(bare, cassette=self.cassette), timeout=self.model.timeout)

    def parts(self, domain: str, model: LanguageModel, roles: Sequence[str], /) -> Parts:
        """A judge or an extractor with the caller's prompts; none of them where the bank's own are measured."""
        own = {role: prompt for role in roles if self.prompt and (prompt := self.prompt_of(domain, role))}
        if "judge" in own:
            budget = {} if self.judge_budget is None else {"budget": self.judge_budget}
            look = {} if self.second_look else {"second_look": 0}
            return Parts(judge=LLMJudge(model, prompt=own["judge"], **budget, **look))
        if own:
            success, failure, contrast = (own[role] for role in _ROLES)
            return Parts(extractor=LLMExtractor(model, success=success, failure=failure, contrast=contrast))
        return Parts()


async def ask(runs: Sequence[Labelled], file: Kept[Opinion], asked: Asked, /, *, tell: Tell) -> str:
    """Have every run judged that the file has no verdict of; why some were not, or nothing."""
    known = {opinion.run for opinion in file.rows}
    todo = [one for one in runs if one.run.id not in known]

    async def one(bank: AsyncReasoningBank, labelled: Labelled) -> str:
        verdict = await bank.judge(labelled.hidden)
        if verdict.error is not None and verdict.error != "judge_output":
            return verdict.reason
        file.add(_opinion(labelled, verdict))
        tell(len(file.rows))
        return ""

    return _told(await _each(todo, asked, ("judge",), one), "judged")


async def draw(runs: Sequence[Labelled], file: Kept[Drawn], asked: Asked, /, *, tell: Tell) -> str:
    """Have lessons drawn from every run that the file has none of, its outcome told; why some failed, or nothing."""
    known = {row.run for row in file.rows}
    todo = [one for one in runs if one.run.id not in known]

    async def one(bank: AsyncReasoningBank, labelled: Labelled) -> str:
        outcome = "success" if labelled.success else "failure"
        verdict = Verdict(outcome=outcome, source="ground_truth")
        try:
            drawn = await bank.extract([Run(trajectory=labelled.hidden, verdict=verdict)])
        except ExtractionError as error:
            file.add(_drawn(labelled, usage=error.usage))
        except ModelError as error:
            return str(error)
        else:
            told = tuple(Told(title=x.title, description=x.description, content=x.content) for x in drawn.lessons)
            file.add(_drawn(labelled, lessons=told, usage=drawn.usage))
        tell(len(file.rows))
        return ""

    return _told(await _each(todo, asked, _ROLES, one), "learned from")


def _told(failures: Sequence[str], done: str) -> str:
    failed = [reason for reason in failures if reason]
    return f"{len(failed)} runs were not {done}: {failed[0]}" if failed else ""


async def _each(
    todo: Sequence[Labelled],
    asked: Asked,
    roles: Sequence[str],
    one: Callable[[AsyncReasoningBank, Labelled], object],
) -> list[str]:
    """What `one` says of each run, given a bank: what a model is shown is what it would be shown in use."""
    model, told = asked.with_cassette(), list[str]()
    roled = wiring.resolve_models(model).judge
    if roled is None:
        raise UsageError("give --model: who is asked")
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
                second_look=UNSET if asked.second_look else None,
            ),
            parts=asked.parts(domain, roled, roles),
        ) as bank:
            calls = [partial(one, bank, labelled) for labelled in todo if labelled.domain == domain]
            told += await gather(cast("list[Callable[..., object]]", calls), limit=asked.concurrency)
    return told


def _opinion(one: Labelled, verdict: Verdict) -> Opinion:
    prompt = verdict.prompt
    return Opinion(
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


def _drawn(one: Labelled, **told: object) -> Drawn:
    return Drawn(run=one.run.id, source=one.source, domain=one.domain, success=one.success, **told)
