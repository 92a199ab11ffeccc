"""tau-bench (the first one) as an environment: shops and airlines with a customer that a second model plays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Observation, Step, Trajectory
from lessonbank.errors import UsageError
from lessonbank.guard import clean

from .interface import Finished, Job, Settings
from .memories import ArmMemories
from .settings import refuse_others, told
from .tool_calls import FULL, SEEN, Call, Caller, read_call, step_of, tools_as_text
from .user_clones import module_of, version_of

PROMPT = "1"
"""Names the words below. Numbers of two versions are never compared."""
_RULES = (
    "You serve a customer of a company: look things up and change them with the tools, and keep to the policy. End "
    'every reply with one call as a JSON object, {"name": "...", "arguments": {...}}; you are told what it returned. '
    'To speak to the customer call {"name": "respond", "arguments": {"content": "..."}}; the answer is what the '
    "customer says next. Invent nothing that neither the customer nor a tool told you."
)
_RESPOND = "respond"
_NOT_SAID = "Error: respond needs the argument content, a text"
_SPLITS = {
    ("airline", "test"): ("airline.tasks_test", "TASKS"),
    ("retail", "test"): ("retail.tasks_test", "TASKS_TEST"),
    ("retail", "train"): ("retail.tasks_train", "TASKS_TRAIN"),
    ("retail", "dev"): ("retail.tasks_dev", "TASKS_DEV"),
}
_STRATEGIES = ("llm", "react", "verify", "reflection")
_KNOWN = ("domain", "split", "user_model", "user_provider", "user_strategy", "temperature", "max_steps")
_INSTALL = "run `pip install -e .` in a clone of github.com/sierra-research/tau-bench"
_needed = partial(module_of, environment="tau-bench", needs="tau-bench", install=_INSTALL)


class _Place(NamedTuple):
    """A task and where it is in its list."""

    domain: str
    at: int
    task: Any


class TauBenchEnvironment:
    """Airline and retail service, with a simulated customer.

    Settings: `domain` (`airline`, `retail`, or `both`), `split` (`test`; retail has `train` and `dev` too),
    `user_model` and `user_provider` (who plays the customer, as litellm names them; both are needed),
    `user_strategy`, `temperature`, `max_steps`.

    A task's goal is the customer's script, as in the published results. The agent never sees it: it hears what the
    customer says. A memory is asked with it, and so knows more of the task than an agent would at its beginning.
    """

    name = "tau-bench"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _KNOWN)
        domain = told(self.name, settings, "domain", "retail")
        self._split = told(self.name, settings, "split", "test")
        self._user = tuple(told(self.name, settings, key, "") for key in ("user_model", "user_provider"))
        self._strategy = told(self.name, settings, "user_strategy", "llm")
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._most = told(self.name, settings, "max_steps", 30)
        if model is None:
            raise UsageError("environment 'tau-bench' needs a model to act: name one, such as model = 'openai:gpt-4.1'")
        self._check_user()
        self._model = model
        self._tasks = [place for one in _domains(domain, self._split) for place in _places(one, self._split)]
        self._action = _needed("tau_bench.types").Action
        self._worlds: dict[str, Any] = {}
        self.version = (
            f"tau-bench {version_of('tau_bench')}, {domain} {self._split}, {self._most} calls, "
            f"customer {'/'.join(reversed(self._user))} ({self._strategy}), "
            f"agent {model.name} at {self._temperature}, prompt {PROMPT}"
        )
        self.memories = ArmMemories(self.name, model)

    def _check_user(self) -> None:
        if not all(self._user):
            raise UsageError(
                "environment 'tau-bench' needs a model that plays the customer: "
                'set user_model and user_provider, such as "gpt-4o" and "openai"'
            )
        if self._strategy not in _STRATEGIES:
            raise UsageError(f"environment 'tau-bench' has no user_strategy {self._strategy!r}: {_either(_STRATEGIES)}")

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """A family is a customer, whose tasks are about the same orders or flights; a group is a domain."""
        order = list(self._tasks)
        random.Random(f"tau-bench {seed}").shuffle(order)
        return [_job(seed, self._split, place) for place in order[:n]]

    def agent(self, seed: int, /, *, anew: bool) -> Caller:
        """The model; only its own temperature, and the customer's, make two of them differ."""
        return Caller(self._model, temperature=self._temperature)

    def attempt(self, task: Job, agent: Caller, memory: str, /) -> Finished:
        """One or two seconds beside the two models; the reward is tau-bench's own."""
        world = self._world(task.group)
        first = clean(world.reset(task_index=task.content.at).observation, limit=SEEN)
        instructions = f"{_RULES}\n\n# Policy\n{world.wiki}"
        agent.start(f"{instructions}\n\n# Tools\n{tools_as_text(world.tools_info)}", memory)
        steps = [Step(observation=Observation(text=first, source="user"))]
        ended = self._play(world, agent, first, steps)
        run = Trajectory(
            task=task.goal,
            instructions=instructions,
            steps=tuple(steps),
            error=None if ended else f"all {self._most} calls allowed were used",
            usage=agent.usage,
            metadata={"template": task.family},
        )
        return Finished(run, ended is not None and float(ended.reward) >= FULL, _scores(ended))

    def close(self) -> None:
        """Nothing stays open between tasks."""

    def _play(self, world: Any, agent: Caller, first: str, steps: list[Step]) -> Any:
        """The answer that ended the conversation, if one did; the turns are added to `steps`."""
        seen = first
        for _ in range(self._most):
            reply = agent.reply(seen)
            call = read_call(reply) or Call(_RESPOND, {"content": reply})
            speaks = call.name == _RESPOND
            if speaks and not isinstance(call.arguments.get("content"), str):
                seen = _NOT_SAID
                steps.append(step_of(reply, call, seen, source="tool"))
                continue
            answer = world.step(self._action(name=call.name, kwargs=call.arguments))
            seen = clean(answer.observation, limit=SEEN)
            steps.append(step_of(reply, call, seen, source="user" if speaks else "tool"))
            if answer.done:
                return answer
        return None

    def _world(self, domain: str) -> Any:
        """Kept, because making one asks the customer's model, and loads the company's records."""
        if domain not in self._worlds:
            model, provider = self._user
            self._worlds[domain] = _needed("tau_bench.envs").get_env(
                env_name=domain,
                user_strategy=self._strategy,
                user_model=model,
                task_split=self._split,
                user_provider=provider,
                task_index=0,
            )
        return self._worlds[domain]


def _scores(ended: Any) -> dict[str, float]:
    if ended is None:
        return {"reward": 0.0}
    cost = ended.info.user_cost
    return {"reward": float(ended.reward)} | ({} if cost is None else {"user_cost": float(cost)})


def _job(seed: int, split: str, place: _Place) -> Job:
    goal = clean(place.task.instruction).strip()
    id = f"tau-bench/{seed}/{place.domain}/{split}/{place.at}"
    return Job(id, seed, goal, f"{place.domain}: {place.task.user_id}", place.domain, place)


def _domains(domain: str, split: str) -> Sequence[str]:
    """Raises:
    UsageError: there is no such domain, or it has no such split.
    """
    chosen = ("airline", "retail") if domain == "both" else (domain,)
    for one in chosen:
        splits = [of for name, of in _SPLITS if name == one]
        if not splits:
            raise UsageError(
                f"environment 'tau-bench' has no domain {domain!r}: {_either(('airline', 'retail', 'both'))}"
            )
        if split not in splits:
            raise UsageError(f"environment 'tau-bench' has no split {split!r} of {one}: {_either(splits)}")
    return chosen


def _either(names: Sequence[str]) -> str:
    return f"set one of {', '.join(names)}" if len(names) > 1 else f"set {names[0]}"


def _places(domain: str, split: str) -> list[_Place]:
    place, name = _SPLITS[domain, split]
    tasks = getattr(_needed(f"tau_bench.envs.{place}"), name)
    return [_Place(domain, at, task) for at, task in enumerate(tasks)]
