"""A pattern and a list of words have a fast form for ASCII: it finds what the form for any text finds."""

from __future__ import annotations

from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.records import Step, Trajectory
from lessonbank.guard.gate import _named_entities
from lessonbank.guard.gate._run_texts import PAIR_OR_WORDS, nfc
from lessonbank.guard.gate.run_values import RunValues, tokens, words

PATTERNS = [
    PAIR_OR_WORDS,
    *(found for found in vars(_named_entities).values() if isinstance(found, _named_entities.Sought)),
]
PARTS = (
    *("Jane Roe", "O'Brien", "von der", "JSON", "my name is ", "I'm ", "dr. ", "$", "5", "12,50", " usd", "jan 5"),
    *(
        " May 2020",
        "#",
        "_",
        "-",
        ".",
        "'",
        '"',
        "=",
        ":",
        " ",
        "\n",
        "\x1c",
        "\x1f",
        "a",
        "Z",
        "9a",
        "x=1",
        '"k": "v"',
    ),
)
ASCII = st.lists(st.sampled_from(PARTS) | st.characters(max_codepoint=127)).map("".join)


@given(ASCII)
def test_a_pattern_finds_the_same_in_ascii_as_its_form_for_any_text_does(text: str):
    assert len(PATTERNS) > 5
    for sought in PATTERNS:
        general = [(found.span(), found.lastindex) for found in sought.general.finditer(text)]
        assert [(found.span(), found.lastindex) for found in _named_entities.sought_in(text, sought)[0]] == general


@given(ASCII | any_text())
def test_the_words_of_a_text_are_its_tokens_without_their_places(text: str):
    assert words(text) == [token for token, _, _ in tokens(nfc(text))]


def test_a_result_that_repeats_the_request_is_read_as_a_result_too():
    said = '[{"holder": "Zbynek Novak", "ref": "ZORBLAX"}]'
    run = Trajectory(task=said, steps=(Step(action="look up", observation=said),))
    assert RunValues.of([run]).mask("Use zorblax first") == "Use <ref> first"
