"""Reads what other programs remembered, out of the files they keep it in, as lessons that nobody trusts yet."""

from __future__ import annotations

from ._read import FORMATS as FORMATS
from ._read import ORIGIN as ORIGIN
from ._read import Memories as Memories
from ._read import read as read
