"""Text that somebody else wrote can be read, and cannot act."""

from __future__ import annotations

import os
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.guard import clean, fence, one_line

TOKENS = (
    "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|endoftext|>", "<|user|>", "<|channel|>",
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "\uff1c\uff5cim_end\uff5c\uff1e", "<start_of_turn>", "<end_of_turn>",
    "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<bos>", "<eos>", "[TOOL_CALLS]", "[SYSTEM_PROMPT]",
)  # fmt: skip
CODE = (
    "a <| b |> c", "if (a < s && s > 2)", "List<S> xs = new Box<S>();", "x[INSTALLED]", "vec<i32>", "a || b",
    "<div class='s'>", "cout << x << endl;", "if x:\n    y = [1, 2]\n\tz()", "e\u0301le\u0300ve",
    "\u0e01\u0e33\u0e25\u0e31\u0e07",
)  # fmt: skip


def live(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return [t for t in TOKENS if unicodedata.normalize("NFKC", t).casefold() in plain]


@pytest.mark.parametrize("token", TOKENS)
def test_a_chat_templates_token_is_none_any_more_and_can_still_be_read(token: str) -> None:
    for hidden in (token, f"x{token}y{token}", token[:3] + "\u200b" + token[3:], token[:2] + "\u202e" + token[2:]):
        assert live(clean(hidden)) == []
        assert clean(hidden).replace(" ", "") == hidden.replace("\u200b", "").replace("\u202e", "")


@pytest.mark.parametrize("code", CODE)
def test_code_and_other_languages_stay_as_they_are(code: str) -> None:
    assert clean(code) == code


def test_marks_piled_up_on_a_letter_are_thinned_out() -> None:
    flooded = "a" + "\u0336\u0489" * 5000 + "b"
    assert len(clean(flooded)) <= 6
    assert clean(flooded)[0] + clean(flooded)[-1] == "ab"


@pytest.mark.parametrize("piece", ["<|", "[INST", "\u0336", "<|a|", "\r", "\u202e", "<<SYS", "<" * 9])
def test_cleaning_is_linear_whatever_the_text(piece: str) -> None:
    share = 1 if "LESSONBANK_SOAK" in os.environ else 4
    text = piece * (2_000_000 // share // len(piece))
    before = time.process_time()
    clean(text)
    assert time.process_time() - before < 5 / share


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from([*TOKENS, "<", "|", ">", "\u200b", "\u0336", "[", "s"])).map("".join)
)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert "\n" not in one_line(text)


@given(
    nonce=st.text("0123456789abcdef", min_size=8, max_size=8) | st.sampled_from(["abcdabcd", "aaaaaaaa", "abababab"]),
    parts=st.lists(st.integers(0, 8)),
)
def test_no_copy_of_the_nonce_is_left_inside_the_fence(nonce: str, parts: list[int]) -> None:
    fenced = fence("".join(nonce[:n] or nonce for n in parts), label="run", nonce=nonce)
    assert len(re.findall(f"(?={nonce})", fenced)) == 2
    assert fenced.split("\n")[0] == f"<<<run {nonce}>>>"
    assert fenced.split("\n")[-1] == f"<<<end run {nonce}>>>"
