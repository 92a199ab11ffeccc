"""The bank over HTTP: the same calls, answered by a server."""

from .bank import RemoteBank as RemoteBank
