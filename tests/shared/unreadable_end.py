"""The end of a run that an adapter cannot read, because the program is of another version: nobody else notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest

from lessonbank.testing import Says
from lessonbank.testing.adapter_contract import Raises

ENDS = ([Says("done")], [Raises("the model is gone")])
"""What the model says: the program answers, or fails."""


def fails(*_: object) -> NoReturn:
    """Stand in the place of what reads the end."""
    raise AttributeError("another version")


def check_nobody_notices(
    run: Callable[[], object], replies: list[Says] | list[Raises], log: pytest.LogCaptureFixture
) -> None:
    """Answer and error of the program are its own, and the log says what memory could not do."""
    if isinstance(replies[0], Says):
        assert run() == "done"
    else:
        with pytest.raises(Exception, match="the model is gone"):
            run()
    assert "the memory failed in the end of a run: AttributeError" in log.text
