"""How long the way through our own code is: calls of the package's functions in one warm learn and one warm retrieve.

    python -m lessonbank_bench.measure.calls            # both totals, and who makes most of the calls
    python -m lessonbank_bench.measure.calls --top 40

The first learn and the first retrieve load modules and fill caches, so the second ones are counted, in every thread.
A generator or a coroutine is counted each time it goes on, and a comprehension where Python calls it: up to 3.11.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import lessonbank
from lessonbank import Action, Evidence, Observation, Recall, Step, ToolCall, Trajectory

_GOES_ON = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>")
OURS = str(Path(lessonbank.__file__).parent)


def run(number: int, /) -> Trajectory:
    """A short run with tools, different for each number."""
    steps = (
        _step("find_order", f"O-{number}", '{"status": "open", "items": 2}'),
        _step("check_policy", "refund", "refunds are allowed within 30 days"),
        _step("refund", f"O-{number}", '{"refunded": true}'),
    )
    return Trajectory(task=f"Refund order O-{number} of the customer, and confirm the amount", steps=steps)


def _step(tool: str, value: str, seen: str) -> Step:
    call = ToolCall(id=f"{tool}-1", name=tool, arguments={"id": value})
    return Step(action=Action(calls=(call,)), observations=(Observation(text=seen, call_id=call.id),))


@contextmanager
def counted() -> Iterator[Counter[CodeType]]:
    """Count calls of our own functions in all threads while the block runs."""
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: object, /) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            calls[frame.f_code] += 1

    threading.setprofile_all_threads(note) if sys.version_info >= (3, 12) else threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile_all_threads(None) if sys.version_info >= (3, 12) else threading.setprofile(None)


def measure(folder: Path, /) -> dict[str, Counter[CodeType]]:
    """The calls of one warm retrieve and one warm learn, by function.

    The profile is set before the bank starts its threads, because before Python 3.12 only new threads take it on.
    """
    found: dict[str, Counter[CodeType]] = {}
    with (
        counted() as calls,
        lessonbank.connect(folder / "bank.db", scope="s", embedder="lexical", evidence=Evidence(holdout=None)) as bank,
    ):

        def spent(name: str, work: Callable[[], Recall | None]) -> Recall | None:
            calls.clear()
            result = work()
            found[name] = Counter(calls)
            return result

        for number in (8812, 9127):
            next_run = run(number)
            recall = spent("retrieve", lambda task=next_run.task: bank.retrieve(task))

            def learn(done: Trajectory = next_run, recall: Recall | None = recall) -> None:
                bank.learn(done, recall=recall, outcome="success")

            spent("learn", learn)
    return found


def told(name: str, calls: Counter[CodeType], /, *, top: int) -> str:
    """The total, and the functions that were called most."""
    steps = sum(times for code, times in calls.items() if code.co_flags & _GOES_ON)
    inside = sum(times for code, times in calls.items() if code.co_name in _COMPREHENSIONS)
    lines = [
        f"{name}: {calls.total():,} calls of our own functions",
        f"  {steps:,} of them start or go on with a generator or a coroutine, {inside:,} are comprehensions",
    ]
    for code, times in calls.most_common(top):
        place = Path(code.co_filename).relative_to(OURS)
        lines.append(f"  {times:6,}  {place}:{code.co_firstlineno} {code.co_qualname}")
    return "\n".join(lines)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=int, default=15, help="how many functions are listed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder))
    print("\n\n".join(told(name, calls, top=asked.top) for name, calls in found.items()))


if __name__ == "__main__":
    main()
