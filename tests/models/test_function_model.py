"""Any function can be the model, and no function can hurt the loop."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import Step, Trajectory
from lessonbank.contracts.ports import Completion, LanguageModel, Message
from lessonbank.contracts.records import Usage
from lessonbank.errors import ModelError, ModelTimeout, ModelUnavailable, TransientModelError, UsageError
from lessonbank.providers.models.function import FunctionModel, own_model
from lessonbank.providers.models.wrappers import TimeLimited, standard
from lessonbank.testing.model_contract import ASKED, LanguageModelContract, Shape
from lessonbank.testing.model_server import rubbish

pytestmark = pytest.mark.full

ASYNC = pytest.mark.anyio


def _raise(error: BaseException) -> Any:
    raise error


@ASYNC
class TestASyncFunction(LanguageModelContract):
    def make(self, reply: str, /) -> LanguageModel:
        return FunctionModel(lambda prompt: reply)

    def make_failing(self) -> LanguageModel:
        return FunctionModel(lambda prompt: _raise(RuntimeError("no")))


@ASYNC
class TestAnAsyncFunction(LanguageModelContract):
    def make(self, reply: str, /) -> LanguageModel:
        async def answer(messages: list[dict[str, str]]) -> str:
            return reply

        return FunctionModel(answer)


class _Own:
    """A model of somebody's own."""

    name = "own"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def generate(self, messages: Any, /, *, temperature: float = 0.0, schema: Any = None) -> Any:
        return self._answer if not isinstance(self._answer, Exception) else _raise(self._answer)


@ASYNC
class TestAModelOfOnesOwn(LanguageModelContract):
    def make(self, reply: str, /) -> LanguageModel:
        return own_model(_Own(Completion(text=reply, usage=Usage(input_tokens=3))))

    def make_failing(self) -> LanguageModel:
        return own_model(_Own(RuntimeError("no")))


@pytest.mark.parametrize("answer", [ValueError("boom"), 7, None], ids=str)
def test_whatever_a_model_of_ones_own_does_costs_no_run(answer: Any) -> None:
    run = Trajectory(task="Open the valve", steps=(Step(action="turn", observation="stuck"),))
    with lessonbank.connect(":memory:", scope="t", model=_Own(answer)) as bank:
        assert "own r" in bank.learn(run).notes[0]
        assert bank.runs.pending()


def test_a_model_of_ones_own_may_give_its_text_alone_and_must_be_async() -> None:
    class Plain(_Own):
        def generate(self, messages: Any, /, *, temperature: float = 0.0, schema: Any = None) -> Any:
            return Completion(text="no")

    run = Trajectory(task="Open the valve", steps=(Step(action="turn", observation="stuck"),))
    with lessonbank.connect(":memory:", scope="t", model=_Own("no verdict")) as bank:
        assert bank.learn(run).usage.requests
    with (
        lessonbank.connect(":memory:", scope="t", model=Plain("")) as bank,
        pytest.raises(UsageError, match="not async"),
    ):
        bank.learn(run)


def _by_name(messages: Any) -> str:
    return str(messages)


def _by_string(history: list[dict[str, str]]) -> str:
    return str(history)


def _by_type(history: Any, *, schema: Any = None) -> str:
    return f"{history}"


_by_type.__annotations__["history"] = Sequence[dict]


@ASYNC
@pytest.mark.parametrize("function", [_by_name, _by_string, _by_type])
async def test_a_function_of_messages_gets_role_and_content_dicts(function: Any) -> None:
    text = (await FunctionModel(function).generate(ASKED)).text
    assert text == str([{"role": m.role, "content": m.content} for m in ASKED])


@ASYNC
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda prompt: prompt, "Answer briefly.\n\nWhat is the answer?"),
        (
            lambda prompt, *, system, temperature: f"{system}|{prompt}|{temperature}",
            "Answer briefly.|What is the answer?|0.5",
        ),
        (lambda messages, system: f"{len(messages)} {system}", "1 Answer briefly."),  # as Anthropic wants it
        (lambda prompt, schema=None: schema.__name__, "Shape"),
    ],
    ids=["one text", "system apart", "messages, and system apart", "schema"],
)
async def test_a_function_gets_what_its_parameters_name(function: Any, told: str) -> None:
    assert (await FunctionModel(function).generate(ASKED, temperature=0.5, schema=Shape)).text == told


@ASYNC
async def test_objects_partials_built_ins_and_lambdas_of_coroutines_are_functions_too() -> None:
    class Client:
        async def __call__(self, prompt: str) -> str:
            return "object"

    async def two(model: str, prompt: str) -> str:
        return model

    assert (await FunctionModel(Client()).generate(ASKED)).text == "object"
    assert (await FunctionModel(functools.partial(two, "partial")).generate(ASKED)).text == "partial"
    assert (await FunctionModel(lambda prompt: two("lambda", prompt)).generate(ASKED)).text == "lambda"
    assert (await FunctionModel(str).generate(ASKED)).text.startswith("Answer briefly.")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("gpt-5", "must be callable"),
        (lambda: "ok", "first parameter"),
        (lambda *, messages: "ok", "first parameter"),
        (lambda system, prompt: "ok", "first parameter"),
        (lambda prompt, model: "ok", "needs `model`"),
    ],
)
def test_a_signature_that_fits_no_form_is_refused_at_once(function: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        FunctionModel(function)


def test_the_name_is_the_functions_own_unless_the_caller_chooses() -> None:
    assert FunctionModel(_by_name).name == "function:_by_name"
    assert FunctionModel(_by_name, name="mine").name == "mine"


@ASYNC
@pytest.mark.parametrize(
    "reply",
    [
        {"text": "hi", "usage": {"input_tokens": 3, "output_tokens": 2, "cost": 0.5}},
        {"content": "hi", "usage": {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.5}},
        SimpleNamespace(text="hi", usage=SimpleNamespace(input_tokens=3, output_tokens=2, cost=0.5)),
        Completion(text="hi", usage=Usage(requests=1, input_tokens=3, output_tokens=2, cost=0.5)),
        Completion(text="hi", usage=Usage(input_tokens=3, output_tokens=2, cost=0.5)),
        {"text": "hi", "usage": Usage(input_tokens=3, output_tokens=2, cost=0.5)},
    ],
)
async def test_a_reply_may_carry_its_usage(reply: Any) -> None:
    completion = await FunctionModel(lambda prompt: reply).generate(ASKED)
    assert completion.text == "hi"
    assert completion.usage == Usage(requests=1, input_tokens=3, output_tokens=2, cost=0.5)


@ASYNC
async def test_tokens_that_came_from_a_cache_are_counted_apart() -> None:
    reply = {"text": "hi", "usage": {"input_tokens": 9, "cached_tokens": 4}}
    assert (await FunctionModel(lambda prompt: reply).generate(ASKED)).usage.cached_tokens == 4


class _Blocked:
    @property
    def text(self) -> str:
        raise ValueError("the answer was blocked")


@ASYNC
async def test_a_reply_that_cannot_be_read_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="the answer was blocked"):
        await FunctionModel(lambda prompt: _Blocked()).generate(ASKED)


@ASYNC
@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0, 10**400, "a lot"])
async def test_a_cost_that_is_no_amount_is_not_known(cost: Any) -> None:
    completion = await FunctionModel(lambda prompt: {"text": "hi", "usage": {"cost": cost}}).generate(ASKED)
    assert (completion.text, completion.usage.cost) == ("hi", None)


@ASYNC
@pytest.mark.parametrize("reply", [None, b"bytes", ["a"], 7, {"text": None}, {"usage": {}}, SimpleNamespace(text=3)])
async def test_anything_else_than_a_reply_is_one_clear_error(reply: Any) -> None:
    with pytest.raises(ModelError, match="where a reply was expected"):
        await FunctionModel(lambda prompt: reply).generate(ASKED)


@ASYNC
async def test_a_lone_surrogate_in_a_reply_is_replaced() -> None:
    assert (await FunctionModel(lambda prompt: "a\ud800b").generate(ASKED)).text == "a\ufffdb"


@ASYNC
@pytest.mark.parametrize(
    "error", [RuntimeError("secret\x1b[2J" + "x" * 10_000), KeyError(), StopIteration(), SystemExit(2)]
)
async def test_whatever_a_function_raises_is_a_model_error_with_its_cause(error: BaseException) -> None:
    with pytest.raises(ModelError) as caught:
        await FunctionModel(lambda prompt: _raise(error)).generate(ASKED)
    cause = caught.value.__cause__
    assert cause is not None
    assert error in (cause, cause.__cause__)  # a coroutine wraps StopIteration in its own RuntimeError
    assert len(str(caught.value)) < 500
    assert "\x1b" not in str(caught.value)


@ASYNC
async def test_the_packages_own_errors_pass_unchanged() -> None:
    mine = TransientModelError("later", retry_after=3)
    with pytest.raises(TransientModelError) as caught:
        await FunctionModel(lambda prompt: _raise(mine)).generate(ASKED)
    assert caught.value is mine


class _RateLimitError(Exception):
    status_code = 429
    response = SimpleNamespace(headers={"retry-after": "7"})


@ASYNC
async def test_an_sdks_rate_limit_keeps_its_retry_after() -> None:
    with pytest.raises(TransientModelError) as caught:
        await FunctionModel(lambda prompt: _raise(_RateLimitError("slow down"))).generate(ASKED)
    assert caught.value.retry_after == 7.0


@ASYNC
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"Retry-After": "7"}, 7.0), ({"retry-after": None}, None), ({"retry-after": "soon"}, None)],
)
async def test_a_header_of_any_case_says_how_long_to_wait_and_one_without_a_number_says_nothing(
    headers: dict[str, Any], seconds: float | None
) -> None:
    error = _RateLimitError("slow down")
    error.response = SimpleNamespace(headers=headers)
    with pytest.raises(TransientModelError) as caught:
        await FunctionModel(lambda prompt: _raise(error)).generate(ASKED)
    assert caught.value.retry_after == seconds


@ASYNC
@pytest.mark.parametrize("error", [ConnectionResetError("reset"), TimeoutError("slow")])
async def test_a_lost_connection_is_worth_another_try(error: Exception) -> None:
    with pytest.raises(TransientModelError) as caught:
        await FunctionModel(lambda prompt: _raise(error)).generate(ASKED)
    assert isinstance(caught.value, ModelUnavailable) == isinstance(error, ConnectionError)


@ASYNC
async def test_a_hanging_function_is_left_behind_when_time_is_up() -> None:
    forever = threading.Event()
    model = TimeLimited(FunctionModel(lambda prompt: forever.wait() and "", threads=1), seconds=0.02)
    try:
        for _ in range(3):  # a thread left behind takes no slot with it
            with pytest.raises(ModelTimeout, match=r"no answer within 0\.02 s"):
                await model.generate(ASKED)
    finally:
        forever.set()


@pytest.mark.full
def test_a_hanging_function_does_not_keep_the_process_alive() -> None:
    program = """
import asyncio, threading
from lessonbank.errors import ModelTimeout
from lessonbank.providers.models.function import FunctionModel
from lessonbank.providers.models.wrappers import TimeLimited
from lessonbank.contracts.ports import Message
model = TimeLimited(FunctionModel(lambda prompt: threading.Event().wait()), seconds=0.05)
try:
    asyncio.run(model.generate([Message(role="user", content="hi")]))
except ModelTimeout:
    print("timeout")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "timeout\n"


@ASYNC
async def test_five_megabytes_of_rubbish_are_cut() -> None:
    completion = await standard(FunctionModel(lambda prompt: rubbish())).generate(ASKED)
    assert 0 < len(completion.text) <= 200_000


@ASYNC
async def test_sync_functions_run_at_most_so_many_at_once() -> None:
    lock, running, most = threading.Lock(), 0, 0
    gate = threading.Barrier(2)

    def answer(prompt: str) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(60)
        with lock:
            running -= 1
        return "ok"

    model = FunctionModel(answer, threads=2)
    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(model.generate, [Message(role="user", content="hi")])
    assert most == 2
