"""The bank as an MCP server: any agent that speaks the Model Context Protocol can recall, record and ask why.

`lessonbank.mcp.http` serves the same over HTTP.
"""

from __future__ import annotations

import importlib

from lessonbank.errors import MissingExtra

try:
    importlib.import_module("mcp.server.mcpserver")
except ImportError as missing:
    raise MissingExtra("an MCP server (the official SDK, mcp 2.x)", extra="mcp") from missing

from .app import serve_stdio as serve_stdio
from .app import server as server
