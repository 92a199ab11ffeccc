"""Turns recorded runs of other programs into trajectories, whatever file they were kept in."""

from typing import TYPE_CHECKING

from lessonbank._base.first_use import on_first_use

if TYPE_CHECKING:
    from ._account import Account as Account
    from ._cures import error_in as error_in
    from ._cures import failure_of as failure_of
    from ._cures import failures_in as failures_in
    from ._cures import opens_with_error as opens_with_error
    from ._evidence import WENT_ON as WENT_ON
    from ._evidence import has_reverts as has_reverts
    from ._evidence import replaced_by as replaced_by
    from ._evidence import reverted_by as reverted_by
    from ._failures import Failure as Failure
    from ._files import Skipped as Skipped
    from ._files import Source as Source
    from ._formats import EXTENSIONS as EXTENSIONS
    from ._formats import FORMATS as FORMATS
    from ._formats import detect as detect
    from ._formats import read as read
    from ._reading import Entry as Entry
    from ._reading import Format as Format
    from ._reading import Imported as Imported
    from ._reading import Run as Run
    from ._reading import entries as entries
    from ._reading import tool_call as tool_call
    from ._reading import tool_result as tool_result
    from ._sessions import sessions as sessions
    from ._shell import calls_of as calls_of
    from ._shell import doing as doing
    from ._shell import doing_of as doing_of

_NAMES = {
    "._account": ("Account",),
    "._cures": ("error_in", "failure_of", "failures_in", "opens_with_error"),
    "._evidence": ("WENT_ON", "has_reverts", "replaced_by", "reverted_by"),
    "._failures": ("Failure",),
    "._files": ("Skipped", "Source"),
    "._formats": ("EXTENSIONS", "FORMATS", "detect", "read"),
    "._reading": ("Entry", "Format", "Imported", "Run", "entries", "tool_call", "tool_result"),
    "._sessions": ("sessions",),
    "._shell": ("calls_of", "doing", "doing_of"),
}
"""The readers of all formats, and the rules by which runs are judged, are loaded by who reads runs."""

__getattr__ = on_first_use(__name__, {name: module for module, names in _NAMES.items() for name in names})
