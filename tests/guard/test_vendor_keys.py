"""Keys of vendors go by their published form alone: no name stands beside them."""

from __future__ import annotations

import random
import string

import pytest

from lessonbank.guard.redact import redact

_ALNUM, _LOWER, _UPPER, _HEX = (
    string.ascii_letters + string.digits,
    string.ascii_lowercase + string.digits,
    string.ascii_uppercase + string.digits,
    "0123456789abcdef",
)
_UUID = "8a0d4c1e-77b2-4f0a-9d3c-5be1f02a6c94"


def _draw(length: int, letters: str = _ALNUM) -> str:
    chance = random.Random(f"{length} {letters}")
    drawn = "".join(chance.choice(letters) for _ in range(length - 3))
    return drawn + ("7K9" if letters in (_ALNUM, _UPPER) else "7a9")


KEYS = {
    "aiven": f"AVNS_{_draw(19)}",
    "apify": f"apify_api_{_draw(36)}",
    "azure openai": f"{_draw(52)}JQQJ99{_draw(26)}",
    "bitbucket": f"ATBB{_draw(32)}",
    "bedrock": f"bedrock-api-key-{_draw(120)}",
    "brave": f"BSA{_draw(28)}",
    "browserbase": f"bb_live_{_draw(27)}",
    "buildkite": f"bkua_{_draw(40, _HEX)}",
    "cerebras": f"csk-{_draw(48, _LOWER)}",
    "circleci": f"CCIPAT_{_draw(22)}_{_draw(40, _HEX)}",
    "clickup": f"pk_48120377_{_draw(32, _UPPER)}",
    "contentful": f"CFPAT-{_draw(43)}",
    "e2b": f"e2b_{_draw(40, _HEX)}",
    "elevenlabs": f"sk_{_draw(48, _HEX)}",
    "figma": f"figd_{_draw(40)}",
    "firecrawl": f"fc-{_draw(32, _HEX)}",
    "google": f"AQ.{_draw(50)}",
    "hubspot": f"pat-na1-{_UUID}",
    "jina": f"jina_{_draw(32, _HEX)}{_draw(28)}",
    "langfuse": f"sk-lf-{_UUID}",
    "mem0": f"m0-{_draw(40)}",
    "mongodb": f"mdb_sa_sk_{_draw(40)}",
    "neon": f"napi_{_draw(64, _LOWER)}",
    "netlify": f"nfp_{_draw(36)}",
    "nvidia": f"nvapi-{_draw(64)}",
    "pinecone": f"pcsk_{_draw(6)}_{_draw(63)}",
    "posthog": f"phx_{_draw(43)}",
    "render": f"rnd_{_draw(28)}",
    "tavily": f"tvly-dev-{_draw(32)}",
    "voyage": f"pa-{_draw(43)}",
    "wandb": f"wandb_v1_{_draw(40)}",
}


@pytest.mark.parametrize("vendor", KEYS)
def test_the_key_of_a_vendor_goes_whole_wherever_it_stands(vendor: str) -> None:
    key = KEYS[vendor]
    for before, after in (("", ""), ("It said ", " and ended."), ('{"value": "', '"}'), ("[", "]"), ("x=", "\n")):
        left = redact(f"{before}{key}{after}")
        assert left.replace(" 1]", "]").startswith(f"{before}[")
        assert not any(key[at : at + 12] in left for at in range(4, len(key) - 12))


@pytest.mark.parametrize(
    "text",
    [
        "pa-system-for-the-conference-hall-in-the-big-house-of-2026",
        "the branch fc-barcelona-2026-home-and-away-matches",
        "BSA-2026-national-conference-for-analysts",
        "pk_orders_2026 and sk_orders_2026",
        "call_AbCdEfGhIjKlMnOpQrStUvWx",
        "toolu_01A09q90qw90lq917835lq9",
        "chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ01",
        "AQ.md and the other notes",
        "m0-m1-m2",
    ],
)
def test_names_and_ids_of_calls_are_no_keys(text: str) -> None:
    assert redact(text) == text
