"""The bank as an MCP server: any agent that speaks the Model Context Protocol can recall, record and ask why.

`serve_stdio` needs no other package; the rest is on the official SDK, and raises MissingExtra without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lessonbank._base.first_use import on_first_use
from lessonbank.errors import importing

from .stdio import serve_stdio as serve_stdio

if TYPE_CHECKING:
    from .app import server as server
    from .http import Keys as Keys
    from .http import serve_http as serve_http

_load: Final = on_first_use(__name__, {"server": ".app", "serve_http": ".http", "Keys": ".http"})


def __getattr__(name: str) -> object:
    with importing("an MCP server over HTTP or in process (the official SDK, mcp 2.x)", extra="mcp"):
        return _load(name)
