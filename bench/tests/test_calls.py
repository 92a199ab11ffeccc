"""The count of calls has a command, and it counts both ways through the loop."""

from __future__ import annotations

import re
import subprocess
import sys

MOST, MOST_OF_A_RETRIEVE = 503, 282
"""Functions that a warm learn and a warm retrieve begin, a little more than there are: whoever makes a way longer says
why here: two load what a search needs with the first one."""


def test_a_warm_retrieve_and_a_warm_learn_are_counted() -> None:
    """In a process of its own: a thread that is there already would not be counted before Python 3.12."""
    command = [sys.executable, "-m", "lessonbank_bench.measure.calls", "--top", "3"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    totals = {name: int(count.replace(",", "")) for name, count in re.findall(r"(?m)^(\w+): ([\d,]+) calls", said)}
    assert list(totals) == ["retrieve", "learn"]
    assert 50 < totals["retrieve"] < totals["learn"] < 1.85 * MOST
    begun = [int(count.replace(",", "")) for count in re.findall(r"(?m)^ +([\d,]+) functions begun", said)]
    assert 50 < begun[0] < MOST_OF_A_RETRIEVE
    assert begun[0] < begun[1] < MOST
    assert len(re.findall(r"(?m)^ +[\d,]+  \S+\.py:\d+ ", said)) == 6
