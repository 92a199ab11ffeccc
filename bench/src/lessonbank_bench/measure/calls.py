"""How long the way through our own code is: calls of the package's functions in one warm learn and one warm retrieve.

    python -m lessonbank_bench.measure.calls            # both totals, and who makes most of the calls
    python -m lessonbank_bench.measure.calls --top 40

The first learn and the first retrieve load modules and fill caches, so later ones are counted, in every thread: of
three the one with the fewest calls, since a thread that looks after the file may fall into one of them.
A generator or a coroutine is counted each time it goes on, and a comprehension where Python calls it: up to 3.11. The
second figure leaves both out: how many functions are begun.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import TypeAlias

import lessonbank
from lessonbank import Action, Evidence, Observation, Recall, Step, ToolCall, Trajectory

Calls: TypeAlias = "Counter[tuple[CodeType, int]]"
"""By function, and by the place in it where it went on: the first place is its beginning."""
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
def counted() -> Iterator[Calls]:
    """Count calls of our own functions in all threads while the block runs."""
    calls: Calls = Counter()

    def note(frame: FrameType, event: str, _: object, /) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            calls[frame.f_code, frame.f_lasti] += 1

    threading.setprofile_all_threads(note) if sys.version_info >= (3, 12) else threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile_all_threads(None) if sys.version_info >= (3, 12) else threading.setprofile(None)


def measure(folder: Path, /) -> dict[str, Calls]:
    """The calls of one warm retrieve and one warm learn, by function.

    The profile is set before the bank starts its threads, because before Python 3.12 only new threads take it on.
    """
    found: dict[str, Calls] = {}
    with (
        counted() as calls,
        lessonbank.connect(folder / "bank.db", scope="s", embedder="lexical", evidence=Evidence(holdout=None)) as bank,
    ):

        def spent(name: str, work: Callable[[], Recall | None], *, is_warm: bool) -> Recall | None:
            calls.clear()
            result = work()
            if is_warm and (name not in found or calls.total() < found[name].total()):
                found[name] = Counter(calls)
            return result

        for number, is_warm in ((8812, False), (9127, True), (7345, True), (6270, True)):
            next_run = run(number)
            recall = spent("retrieve", lambda task=next_run.task: bank.retrieve(task), is_warm=is_warm)

            def learn(done: Trajectory = next_run, recall: Recall | None = recall) -> None:
                bank.learn(done, recall=recall, outcome="success")

            spent("learn", learn, is_warm=is_warm)
    return found


def begun(calls: Calls, /) -> Counter[CodeType]:
    """How often each function was begun, without comprehensions."""
    first: dict[CodeType, int] = {}
    for code, place in calls:
        first[code] = min(first.get(code, place), place)
    found: Counter[CodeType] = Counter()
    for (code, place), times in calls.items():
        if place == first[code] and code.co_name not in _COMPREHENSIONS:
            found[code] += times
    return found


def told(name: str, calls: Calls, /, *, top: int) -> str:
    """The totals, and the functions that were begun most often."""
    functions = begun(calls)
    lines = [
        f"{name}: {calls.total():,} calls of our own functions",
        f"  {functions.total():,} functions begun; the rest goes on after a wait, or is a comprehension",
    ]
    for code, times in functions.most_common(top):
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
