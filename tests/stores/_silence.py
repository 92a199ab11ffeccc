"""A way to the server that can fall silent: what is sent arrives nowhere, and nobody hears of it."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from contextlib import suppress


class SilentLine:
    """A socket before the server's. Once `silent`, it takes everything and hands nothing on, in either direction."""

    def __init__(self, server: str, /) -> None:
        self._server = server
        self.folder = tempfile.mkdtemp(prefix="lb-silence-")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(f"{self.folder}/.s.PGSQL.5432")
        self._door.listen(64)
        self._open = list[socket.socket]()
        self.silent = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, server = self._door.accept()[0], socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._open += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 20):
                if not self.silent.is_set():
                    other.sendall(data)
        if not self.silent.is_set():
            with suppress(OSError):
                other.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End every connection."""
        for one in (self._door, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        shutil.rmtree(self.folder)
