"""What differs between two wordings is shown word by word, and no text makes the pages wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from linear import FAR, growth_of

pytest.importorskip("jinja2", reason="needs the extra pages")

from lessonbank.pages.rendering import differences


def test_each_wording_can_be_read_by_itself_with_its_own_line_breaks() -> None:
    old, new = differences("Fill the form.\nThen send it.", "Fill the long form.\nThen send it.")
    assert old == [(False, "Fill the "), (False, "form.\nThen send it.")]
    assert new == [(False, "Fill the "), (True, "long"), (False, " "), (False, "form.\nThen send it.")]
    assert differences("a b", "c d") == ([(True, "a b")], [(True, "c d")])


@pytest.mark.parametrize(("before", "after"), [("a b c d ", "d c b a "), ("a ", "a b ")])
def test_words_that_come_again_and_again_are_shown_whole(before: str, after: str) -> None:
    for side in differences(before * 700, after * 700):
        assert [text.strip() != "" for is_marked, text in side if is_marked] == [True]

    def compared(size: int) -> Callable[[], object]:
        return lambda: differences(before * size, after * size)

    assert growth_of(compared, size=250) <= FAR
