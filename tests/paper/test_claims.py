"""The manifest is whole: every claim has its tests, every test its claim, every divergence its reason."""

from __future__ import annotations

import claims
import test_claims_after
import test_claims_before
import test_claims_judge
import test_claims_scaling
from claiming import TESTED

CHECKING = (test_claims_before, test_claims_judge, test_claims_after, test_claims_scaling)


def test_every_claim_has_its_tests_and_every_test_its_claim() -> None:
    stated = {c.id: set(c.tests) for c in claims.CLAIMS}
    assert dict(TESTED) == stated
    assert len(stated) == len(claims.CLAIMS), "ids are unique"


def test_every_divergence_says_why_and_nothing_else_does() -> None:
    for stated in claims.CLAIMS:
        published = [stated.paper.startswith(claims.AS_PUBLISHED), stated.default.startswith(claims.AS_PUBLISHED)]
        if stated.ours == "same":
            assert all(published), stated.id
            assert not stated.why, stated.id
        else:
            assert stated.why, stated.id


def test_the_paper_map_is_current() -> None:
    page = claims.PAGE.read_text(encoding="utf-8")
    assert claims.rewritten(page) == page, "run: python tests/paper/claims.py"
