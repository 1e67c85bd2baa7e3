"""Between a client and a server, it loses the connection where a transaction commits an entry."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

NAME = ".s.PGSQL.5432"


class Proxy:
    """A Unix socket in front of another. It cuts one connection, and lets all others through.

    ``cut`` is the number of the entry whose commit is not answered, or, unless ``delivered``, does
    not even reach the server.
    """

    def __init__(self, server: Path, cut: int, *, delivered: bool) -> None:
        self.cut, self.delivered, self.has_cut = cut, delivered, False
        self._server = server
        self.folder = Path(tempfile.mkdtemp(prefix="labeldp-proxy-"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / NAME))
        self._listener.listen()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *arguments: socket.socket) -> None:
        self._threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self._threads[-1].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / NAME))
                self._sockets += [client, server]
                self._start(self._up, client, server)
                self._start(self._down, client, server)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        inserts = False
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                inserts |= b".entries VALUES" in data and b"INSERT" in data
                if inserts and b"COMMIT" in data and not self.has_cut:
                    self.cut -= 1
                    if not self.cut:
                        self.has_cut = True
                        with contextlib.suppress(OSError):
                            client.shutdown(socket.SHUT_RDWR)
                        if self.delivered:  # the server does all that it was told
                            server.sendall(data)
                            server.shutdown(socket.SHUT_WR)
                        else:
                            server.shutdown(socket.SHUT_RDWR)
                        return
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
