"""A thread that does much lets others have the interpreter within every millisecond."""

from __future__ import annotations

import asyncio
import resource
import threading
import time
from collections.abc import Callable

import pytest

from lessonbank._concurrency import breathing, let_go, portions


def test_all_things_come_in_their_order_and_none_early() -> None:
    asked = list[int]()

    def numbers() -> list[int]:
        return list(range(5))

    for number in breathing(numbers()):
        asked.append(number)
    assert asked == [0, 1, 2, 3, 4]
    assert list(breathing(())) == []


def test_another_thread_has_its_turn_while_much_is_done() -> None:
    def much(until: float) -> None:
        for _ in breathing(iter(lambda: time.thread_time() > until, True)):
            sum(number % 7 for number in range(100))

    assert turns_beside(much) >= 100


@pytest.mark.full
def test_many_short_loops_pause_as_often_as_a_long_one() -> None:
    def much(until: float) -> None:
        while time.thread_time() < until:
            for _ in breathing(range(3)):
                sum(number % 7 for number in range(100))

    assert turns_beside(much) >= 100


def test_a_loop_around_another_and_the_one_inside_pause_as_often_as_one() -> None:
    def much(until: float) -> None:
        for _ in breathing(iter(lambda: time.thread_time() > until, True)):
            for _ in breathing(range(3)):
                sum(number % 7 for number in range(100))

    assert turns_beside(much) >= 100


@pytest.mark.skipif(not hasattr(resource, "RUSAGE_THREAD"), reason="this system does not count for a thread")
def test_an_event_loop_is_not_made_to_pause() -> None:
    """It is what others pause for. A pause is a voluntary switch of its thread: there would be a hundred."""

    async def switches() -> int:
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        until = time.thread_time() + 0.05
        for _ in breathing(iter(lambda: time.thread_time() > until, True)):
            sum(number % 7 for number in range(100))
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before

    assert asyncio.run(switches()) < 20


def turns_beside(much: Callable[[float], None]) -> int:
    """How often another thread has its turn while 0.3 seconds are worked.

    Without a pause it would have one in five milliseconds: less than a tenth of those the tests ask for.
    """
    turns, done = 0, threading.Event()

    def wait() -> None:
        nonlocal turns
        while not done.is_set():
            time.sleep(0.000_2)
            turns += 1

    other = threading.Thread(target=wait)
    other.start()
    much(time.thread_time() + 0.3)
    done.set()
    other.join()
    return turns


def test_portions_are_short_and_lose_nothing() -> None:
    found = list(portions(iter(range(2000))))
    assert [number for some in found for number in some] == list(range(2000))
    assert max(map(len, found)) <= 1024
    assert list(portions(())) == []


def test_what_is_let_go_is_empty() -> None:
    one, other = dict.fromkeys(range(2000)), {"a": 1}
    let_go(one, other)
    assert (one, other) == ({}, {})
