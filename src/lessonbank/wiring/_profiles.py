"""The two ways to run the loop: the published method as it is, and the default with its defects mended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lessonbank._base.checks import display_name
from lessonbank.contracts.ports import Extractor, Judge
from lessonbank.contracts.records import Trajectory, Verdict
from lessonbank.contracts.settings import Learning, chosen
from lessonbank.learning import extraction
from lessonbank.learning.judging import LLMJudge, PaperJudge
from lessonbank.learning.judging.llm import BUDGET, SECOND_LOOK
from lessonbank.learning.judging.paper import BUDGET as PAPER_JUDGE_BUDGET
from lessonbank.matts.scaler import Scaler
from lessonbank.search.injection import Injector
from lessonbank.text.prompts import for_domain, load
from lessonbank.text.rendering import View

from ._models import Roles

PAPER_BUDGET = 40_000
"""Tokens of the runs that the paper's extractor reads."""


@dataclass(frozen=True, slots=True)
class Components:
    """The parts a profile decides, and a description of each."""

    judge: Judge
    extractor: Extractor
    injector: Injector
    scaler: Scaler
    description: Mapping[str, str]


def build_parts(
    profile: str,
    /,
    *,
    learning: Learning,
    roles: Roles,
    budget: int,
    preface: str | None = None,
) -> Components:
    """The parts of `profile`.

    Raises:
        UsageError: no such profile or domain.
    """
    paper, domain = profile == "paper", learning.domain
    judge = _judge(roles, learning, paper=paper)
    extractor = _extractor(roles, domain, paper=paper, additions=chosen(learning.additions, not paper))
    words = injector(preface, domain, budget, paper=paper)
    described = {"judge": _of(judge, roles.judge), "extractor": _of(extractor, roles.extractor)}
    published: View = "recorded" if domain == "code" else "thoughts"
    scaler = Scaler(roles.judge or roles.extractor, view=published if paper else "full")
    return Components(judge, extractor, words, scaler, described)


def injector(preface: str | None, domain: str, budget: int, /, *, paper: bool) -> Injector:
    """What words the text of a recall; `preface`: as `Retrieval` has it, `None` for the profile's."""
    style = "paper" if paper else "full"
    if preface is None and paper:
        return Injector(load("paper/inject"), style, budget)
    named = {None: "inject", "silent": "inject", "cite": "inject_cite"}.get(preface)
    if named is None:
        return Injector(load("general/inject_own"), style, budget, preface or "")
    return Injector(for_domain(domain, named), style, budget)


class NoJudge:
    """The judge of a bank without a model: it cannot tell."""

    asks_model = False

    async def __call__(self, trajectory: Trajectory, /) -> Verdict:
        """Unknown, whatever the run."""
        reason = "there is no model to judge with: pass outcome= or reward="
        return Verdict(outcome="unknown", confidence=0.0, reason=reason)


def _judge(roles: Roles, learning: Learning, *, paper: bool) -> Judge:
    if roles.judge is None:
        return NoJudge()
    if paper:
        budget = chosen(learning.judge_budget, PAPER_JUDGE_BUDGET)
        return PaperJudge(roles.judge, domain="code" if learning.domain == "code" else "web", budget=budget)
    return LLMJudge(
        roles.judge,
        prompt=for_domain(learning.domain, "judge"),
        budget=chosen(learning.judge_budget, BUDGET),
        second_look=chosen(learning.second_look, SECOND_LOOK) or 0,
    )


def _extractor(roles: Roles, domain: str, *, paper: bool, additions: bool) -> Extractor:
    if roles.extractor is None:
        return extraction.ExtractiveExtractor()
    if not paper:
        return extraction.LLMExtractor(
            roles.extractor,
            success=for_domain(domain, "extract_success"),
            failure=for_domain(domain, "extract_failure"),
            contrast=for_domain(domain, "contrast"),
            contrast_model=roles.contrast,
            additions=additions,
        )
    kind = "code" if domain == "code" else "web"
    return extraction.LLMExtractor(
        roles.extractor,
        success=load(f"paper/extract_success_{kind}"),
        failure=load(f"paper/extract_failure_{kind}"),
        contrast=load("paper/contrast"),
        contrast_model=roles.contrast,
        budget=PAPER_BUDGET,
        contrast_budget=PAPER_BUDGET,
        view="messages" if kind == "code" else "thoughts",
        show_labels=False,
        grounding=False,
        structured=False,
    )


def _of(part: object, model: object) -> str:
    name = display_name(part)
    return f"{name} with {getattr(model, 'name', model)}" if model else name
