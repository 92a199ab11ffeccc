"""What a bank can be told, grouped in frozen objects: a setting that is left open is decided by the profile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, get_args

from lessonbank._base.checks import (
    a_call,
    a_count,
    a_flag,
    a_number,
    a_place,
    a_share,
    argument_error,
    copy_mapping,
    is_async,
    is_instance,
    maybe_count,
    maybe_one_of,
    one_of,
    safe_getattr,
    set_frozen,
    some_days,
    some_seconds,
)
from lessonbank.errors import UsageError

if TYPE_CHECKING:
    from .events import Hook
    from .ports import Admission, Consolidator, Extractor, Judge, LanguageModel, Redactor, Retriever, Store
    from .withholding import Withholding

T = TypeVar("T")
Profile = Literal["default", "paper"]
Domain = Literal["general", "web", "code"]
Search = Literal["dense", "lexical", "hybrid"]
Level = Literal["experience", "lesson"]
Fit = Literal["none", "select", "rewrite"]
TrustPolicy = Literal["open", "corroborated", "reviewed"]
Consolidation = Literal["recognise", "append"]
TopicsBy = Literal["words", "model"]
Submit = Literal["here", "worker"]


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "left to the profile"

    def __repr__(self) -> str:
        return "UNSET"


OFF: Final = "memory is switched off (LESSONBANK_OFF): nothing is recalled, learned or written"
"""What every call of a bank says where the environment variable `LESSONBANK_OFF` is set."""
UNSET: Final = Unset.UNSET
"""The value of a setting that is left to the profile."""


@dataclass(frozen=True, slots=True)
class File:
    """A bank in a file. `connect("bank.db")` is short for `connect(File("bank.db"))`."""

    path: str | Path
    """The file, or `:memory:` for a bank that ends with the process. `~` is your home folder."""
    read_only: bool = False
    """Whether to open the bank without writing to it: every call that would write raises an error."""

    def __post_init__(self) -> None:
        takes = "needs a file path for the bank, or ':memory:'"
        path = a_place(self.path, "connect", takes)
        path = path if path.startswith("sqlite://") else a_place(path.removeprefix("sqlite:"), "connect", takes)
        set_frozen(self, path=path)
        a_flag(self.read_only, "File(read_only=)")

    def __repr__(self) -> str:
        """Show no address, for it can hold a password."""
        kind, is_address, _ = str(self.path).partition("://")
        return f"File({f'{kind}://…' if is_address else self.path!r}, read_only={self.read_only})"


@dataclass(frozen=True, slots=True)
class Server:
    """A bank behind a URL: `https://…` or `postgresql://…`."""

    url: str = field(repr=False)
    """The address: `https://…` or `postgresql://…`."""
    api_key: str | None = field(default=None, repr=False)
    """The key of a server over HTTP. `None`: the environment variable `LESSONBANK_API_KEY`."""
    timeout: float = 120.0
    """Seconds for which a call over HTTP is tried: then it fails. A call with `patience` fails after that."""

    def __post_init__(self) -> None:
        some_seconds(self.timeout, "Server(timeout=)")
        _check_secret(self.url, "Server(url=)", "takes an address, such as https://HOST")
        if self.api_key is not None:
            _check_secret(self.api_key, "Server(api_key=)")


@dataclass(frozen=True, slots=True)
class Model:
    """A language model and how to reach it. `connect(model="openai:gpt-5-mini")` is short for `Model(…)`."""

    name: str | LanguageModel | Callable[..., Any] | Mapping[str, Any]
    """`provider:model`; the name of a model on `base_url`; a function from a prompt to a text; a `LanguageModel`; or a
    mapping of the roles `judge`, `extractor` and `contrast` to any of these."""
    base_url: str | None = field(default=None, repr=False)
    """An OpenAI-compatible server. It is not shown, because a URL can hold a key."""
    api_key: str | None = field(default=None, repr=False)
    """The provider's key. `None`: its environment variable."""
    timeout: float = 120.0
    """Seconds for one call, above 0."""
    concurrency: int = 8
    """How many calls a bank makes to one model at once."""
    rate: float | None = None
    """How many calls a bank begins to one model in a minute at most, evenly spaced. `None`: as many as come."""
    max_tokens: int | None = None
    """Tokens of one reply at most, those that the model thinks with included. `None`: as many as the bank's questions
    need. A function or a `LanguageModel` of your own bounds its replies itself."""
    batch: bool = False
    """Ask through the provider's batch API: it costs about half and answers within a day, so it is for workers.
    `timeout`, `concurrency` and `rate` bound live calls only."""

    def __post_init__(self) -> None:
        a_count(self.concurrency, "Model(concurrency=)")
        maybe_count(self.max_tokens, "Model(max_tokens=)")
        if self.rate is not None:
            a_number(self.rate, "Model(rate=)", "is a number of calls a minute above 0", above=0.0)
        if is_instance(self.name, Mapping):
            set_frozen(self, name=copy_mapping(cast("Mapping[str, Any]", self.name), "model="))
        some_seconds(self.timeout, "Model(timeout=)")
        a_flag(self.batch, "Model(batch=)")
        for name in ("base_url", "api_key"):
            if getattr(self, name) is not None:
                _check_secret(getattr(self, name), f"Model({name}=)")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How a bank searches, and how what it finds is shown.

    Raises:
        UsageError: a value is wrong.
    """

    by: Search | Unset | None = UNSET
    """`dense` (cosine between task embeddings), `lexical` (BM25), `hybrid` (both, fused by rank). `None`: dense where
    the bank has an embedder, otherwise lexical."""
    limit: int | Unset = UNSET
    """How many experiences a recall draws on (the paper's k). Default 3; the paper's profile: 1."""
    budget: int | Unset = UNSET
    """The largest number of tokens (estimated) in a recall's text. Default 1500."""
    floor: float | Unset | None = UNSET
    """The lowest score, from 0 to 1, at which an experience is shown. `None`: the default for this kind of search.
    0: no floor. The paper's profile has none."""
    relative_floor: float | None = None
    """The lowest score at which an experience is shown, as a share of the best one's, from 0 to 1: only as many are
    shown as stand out like the best. `None`: as many as `limit` says."""
    preface: str | Unset = UNSET
    """What the text says before the lessons: `silent` (default) asks the agent for nothing, `cite` asks it to name the
    lessons it uses by number, and any other text is used as it is."""
    level: Level = "experience"
    """What is searched and shown: `experience` compares tasks and shows all lessons of those found, as in the paper.
    `lesson` compares the text of each lesson by cosine, shows only what it finds, and `limit` counts lessons."""
    fit: Fit = "none"
    """Whether the model reads the task and the lessons that were found (12 at most) before they are shown. `select`: it
    keeps those that will matter, in order. `rewrite`: it also words them for this task, in 120 words at most. It has
    1.5 seconds. Hooks never fit."""

    def __post_init__(self) -> None:
        one_of(self.fit, "Retrieval(fit=)", get_args(Fit))
        _asked(maybe_one_of, self.by, "Retrieval(by=)", get_args(Search))
        one_of(self.level, "Retrieval(level=)", get_args(Level))
        if self.level == "lesson" and self.by not in (UNSET, None, "dense"):
            raise UsageError(
                f"level='lesson' works with by='dense' only, because the word index holds tasks; got {self.by!r}"
            )
        _asked(a_count, self.limit, "Retrieval(limit=)")
        _asked(a_count, self.budget, "Retrieval(budget=)", least=100)
        if self.floor is not None:
            _asked(a_share, self.floor, "Retrieval(floor=)")
        if self.relative_floor is not None:
            a_share(self.relative_floor, "Retrieval(relative_floor=)")
        if not is_instance(self.preface, Unset) and not _is_preface(self.preface):
            raise argument_error("preface", "is 'silent', 'cite' or a text of at least two words", self.preface)


@dataclass(frozen=True, slots=True)
class Learning:
    """How a bank learns from runs.

    Raises:
        UsageError: a value is wrong.
    """

    domain: Domain = "general"
    """Which prompts: `general`, `web` or `code`."""
    consolidation: Consolidation | Unset = UNSET
    """`recognise` keeps a lesson once, however often runs teach it, also in other words. `append` keeps every lesson.
    Default: `recognise`; the paper's profile appends."""
    additions: bool | Unset = UNSET
    """Whether a lesson that comes again with one fact more leaves that fact beside the held lesson, as a line of its
    own. A model is asked for it in the same call, with about 50 tokens more. Default: yes; the paper's profile: no."""
    topics: TopicsBy | Unset | None = UNSET
    """How a new lesson gets its topic. `words`: by the words that its task shares with others. `model`: where these do
    not decide it, by one short call of the model. `None`: no topics. Default: `model` where there is one and effects
    are measured."""
    abstain: float = 0.0
    """A judge that is less sure than this (0 to 1) says `unknown`: the run stays pending and teaches nothing."""
    judge_budget: int | Unset = UNSET
    """The largest number of tokens (estimated) of a run that the judge is shown, the agent's instructions among them.
    Default: 6,000."""
    second_look: int | Unset | None = UNSET
    """Tokens of the steps that the judge is shown when it asks to see them whole. `None`: it is never shown more.
    Default: 8,000."""
    success_at: float = 1.0
    """The reward from which on a run is a success (above 0, at most 1). It decides which prompts are used, and nothing
    else: the evidence counts rewards as they are."""
    reflect_every: int | None = None
    """Look back over a topic (`bank.reflect`) whenever the scope has so many experiences more. `None`: never."""
    submit: Submit = "here"
    """Who learns from a run that is submitted: this process, in the background, or a `worker` (`lessonbank worker`)."""
    keep_runs: float | None = None
    """Days after which runs and recalls are erased. Lessons and counts stay. `None`: they are kept."""
    keep_lessons: int | None = None
    """How many lessons a scope shows. Once a day what is too much is removed, which can be undone: first what is shown
    to do nothing, then what no run met for longest; never what a person approved. `None`: as many as come."""
    sleep_after: float | None = None
    """Days after which a lesson that no run met sleeps, so that it is not shown. A run of a like task wakes it. What a
    person approved does not sleep. `None`: no lesson sleeps."""

    def __post_init__(self) -> None:
        one_of(self.domain, "Learning(domain=)", get_args(Domain))
        if callable(self.consolidation):
            raise UsageError(
                "Learning(consolidation=) takes a name: a function of your own goes into Parts(consolidator=)"
            )
        _asked(one_of, self.consolidation, "Learning(consolidation=)", get_args(Consolidation))
        _asked(a_flag, self.additions, "Learning(additions=)")
        if self.topics is not None:
            _asked(one_of, self.topics, "Learning(topics=)", get_args(TopicsBy))
        a_share(self.abstain, "Learning(abstain=)")
        _asked(a_count, self.judge_budget, "Learning(judge_budget=)", least=500)
        one_of(self.submit, "Learning(submit=)", get_args(Submit))
        if self.second_look is not None:
            _asked(a_count, self.second_look, "Learning(second_look=)", least=500)
        a_number(self.success_at, "Learning(success_at=)", "is above 0 and at most 1", above=0.0, most=1.0)
        maybe_count(self.reflect_every, "Learning(reflect_every=)")
        maybe_count(self.keep_lessons, "Learning(keep_lessons=)")
        for name in ("keep_runs", "sleep_after"):
            if getattr(self, name) is not None:
                some_days(getattr(self, name), f"Learning({name}=)")


@dataclass(frozen=True, slots=True)
class Evidence:
    """How a bank measures whether its lessons help.

    Raises:
        UsageError: a value is wrong.
    """

    holdout: float | Withholding | Unset | None = UNSET
    """The probability with which each lesson, and each whole recall, is withheld so that effects can be measured; a
    policy of `lessonbank.evidence`; `None` for never. Default: `AdaptiveHoldout()`. It leaves memory out of 15 % of
    tasks and a lesson that is not alone out of 30 %, of less as it turns out to help, and of more as it turns out to
    harm. It also orders lessons by their effect."""
    act: bool = True
    """Whether a lesson that is shown to harm is retired automatically, and one that is shown to help is trusted."""
    observe: bool = False
    """Whether to learn and record everything and show nothing: a start without risk."""

    def __post_init__(self) -> None:
        rate = safe_getattr(self.holdout, "base_rate")
        is_policy = callable(self.holdout) and is_instance(rate, (int, float)) and not is_instance(rate, bool)
        takes = "is a probability from 0 to below 1, a policy such as lessonbank.evidence.AdaptiveHoldout(), or None"
        if not (is_policy or self.holdout is None):
            _asked(a_share, self.holdout, "holdout", takes, below=1.0)
        a_flag(self.act, "Evidence(act=)")
        a_flag(self.observe, "Evidence(observe=)")


@dataclass(frozen=True, slots=True)
class Caps:
    """How many lessons a scope takes in an hour, and how many it holds; `None`: as many as come.

    Raises:
        UsageError: a bound below 1.
    """

    hour: int | None = 5000
    """Far more than runs bring, and an end to a loop that writes lessons."""
    scope: int | None = None

    def __post_init__(self) -> None:
        for name in ("hour", "scope"):
            maybe_count(getattr(self, name), f"Caps({name}=)")


@dataclass(frozen=True, slots=True)
class Safety:
    """What may be remembered and shown.

    Raises:
        UsageError: a value is wrong.
    """

    trust: TrustPolicy = "open"
    """What a lesson needs before it is shown. `open`: nothing. `corroborated`: an independent run that taught the same;
    where its writer has a key, one of another writer. `reviewed`: a person's approval, which also satisfies the other.
    `witnessed`, of earlier versions, is `corroborated`, with a note."""
    redact: Redactor | Unset | None = UNSET
    """A function of text that removes secrets and personal data before anything else sees a run; `None` for nothing.
    Default: the built-in redactor."""
    admission: Admission | Unset | None = UNSET
    """A gate that rejects drafts that are not lessons; `None` for no gate, which is the paper's default."""
    caps: Caps | Unset | None = UNSET
    """How many lessons a scope takes in an hour and holds: `Caps(hour=…, scope=…)`; `None` for no bound."""

    def __post_init__(self) -> None:
        trust: object = self.trust
        if is_instance(trust, str) and str.__str__(trust) == _WITNESSED:
            _note_witnessed()
            object.__setattr__(self, "trust", "corroborated")
        one_of(self.trust, "trust", get_args(TrustPolicy))
        takes = {
            "redact": "a function of text that returns text and is not async, or None to keep every text as it is",
            "admission": "a gate such as LessonGate() that is not async, or None to keep every lesson",
        }
        for name, what in takes.items():
            part = getattr(self, name)
            if not (part is None or part is UNSET or (callable(part) and not is_async(part))):
                raise argument_error(f"{name}=", f"takes {what}", part)
        if not (self.caps is None or self.caps is UNSET or is_instance(self.caps, Caps)):
            raise argument_error("caps=", "takes Caps(hour=…, scope=…), or None for no bound", self.caps)


_WITNESSED: Final = "witnessed"


@cache
def _note_witnessed() -> None:
    logging.getLogger("lessonbank").warning(
        'trust="witnessed" is "corroborated" now, which asks for two writers where writers have keys'
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of your own in the place of the standard ones. Each takes what its protocol in `contracts.ports` says.

    Raises:
        UsageError: a part that cannot be called.
    """

    judge: Judge | None = None
    """A judge in place of the model's."""
    extractor: Extractor | None = None
    """An extractor in place of the model's, or of the rules."""
    retriever: Retriever | None = None
    """A retriever over the bank's store."""
    consolidator: Consolidator | Callable[[Store], Consolidator] | None = None
    """A consolidator; or a class or function whose one argument is called `store`, which makes it over the bank's."""
    hooks: Sequence[Hook] = ()
    """Functions that are called with each event, after it happened."""

    def __post_init__(self) -> None:
        for name in ("judge", "extractor", "retriever", "consolidator"):
            a_call(getattr(self, name), f"Parts({name}=)")
        if (own := self.retriever) is not None and not (
            is_instance(safe_getattr(own, "name"), str)
            and is_instance(safe_getattr(own, "space", UNSET), (str, type(None)))
            and all(callable(safe_getattr(own, name)) for name in ("index", "catch_up"))
        ):
            takes = "takes an object with name (text), space (text or None), index and catch_up"
            raise argument_error("Parts(retriever=)", takes, own)
        hooks = cast("tuple[object, ...]", self.hooks) if is_instance(self.hooks, (list, tuple)) else (None,)
        if not all(callable(hook) and not is_async(hook) for hook in hooks):
            takes = "takes a list of functions of one event that are not async, as in hooks=[print]"
            raise argument_error("Parts(hooks=)", takes, self.hooks)


def chosen(value: T | Unset, default: T, /) -> T:
    """`value`, or the profile's `default` where it was left open."""
    return default if is_instance(value, Unset) else value


def _is_preface(value: object) -> bool:
    """Whether a text can stand before lessons. A single ASCII word is more likely a mistyped name."""
    text = str.__str__(value) if is_instance(value, str) else ""
    return text in ("silent", "cite") or len(text.split()) > 1 or not text.isascii()


def _check_secret(value: object, name: str, takes: str = "takes a text of one line that is not blank, or None") -> None:
    """Refuse what is no line of text. The error does not show it."""
    text = str.__str__(value) if is_instance(value, str) else ""
    if not (text.strip() and text.isprintable()):
        raise UsageError(f"{name} {takes}")


def _asked(check: Callable[..., Any], value: object, /, *arguments: Any, **bounds: Any) -> None:
    """Check a setting that is not left to the profile."""
    if not is_instance(value, Unset):
        check(value, *arguments, **bounds)
