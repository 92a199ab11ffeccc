"""Where the corpora lie, and the modules beside them, which the report shares with the tests."""

from __future__ import annotations

import json
import sys
from typing import Any

from lessonbank_bench.measure import checkout
from lessonbank_bench.measure.checkout import ROOT as ROOT
from lessonbank_bench.measure.checkout import SHARED as SHARED

TESTS = checkout.TESTS / "security"
CORPUS = TESTS / "corpus"

for folder in (TESTS, CORPUS):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def cases(name: str, /, *kinds: str, every: int = 1) -> list[dict[str, Any]]:
    """Each `every`-th case of a corpus, or of some kinds of it."""
    read = [json.loads(line) for line in (CORPUS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [case for case in read if not kinds or case["kind"] in kinds][::every]
