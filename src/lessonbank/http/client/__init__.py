"""The bank over HTTP: the same calls, answered by a server."""
