"""What differs between two wordings is shown word by word, and no text makes the pages wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from linear import FAR, growth_of

pytest.importorskip("jinja2", reason="needs the extra pages")

from lessonbank.pages.rendering import differences


def test_the_words_of_two_texts_are_told_apart() -> None:
    told = differences("Fill the form first.", "Fill the long form.")
    assert told == [("same", "Fill the "), ("gone", "form first. "), ("new", "long form. ")]


@pytest.mark.parametrize(("before", "after"), [("a b c d ", "d c b a "), ("a ", "a b ")])
def test_words_that_come_again_and_again_are_compared_in_no_time(before: str, after: str) -> None:
    assert {kind for kind, _ in differences(before * 700, after * 700)} == {"gone", "new"}

    def compared(size: int) -> Callable[[], object]:
        return lambda: differences(before * size, after * size)

    assert growth_of(compared, size=250) <= FAR
