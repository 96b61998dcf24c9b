"""How does a limit hold inside TLS inside TLS? The socket to a proxy that is itself reached by https.

urllib3 speaks the inner TLS by itself: for one ``recv`` of the response it reads from the proxy in a loop, and would
give each of these reads the whole time limit. Here a time limit, once set, is one for all that follows until the next.
"""

from __future__ import annotations

import ssl
from typing import Any

from catalog_fallback import clock


class ProxySocket:
    """A TLS socket whose timeout is a moment, not a duration of each operation."""

    def __init__(self, sock: ssl.SSLSocket, seconds: float) -> None:
        self._sock = sock
        self.settimeout(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    @property
    def _io_refs(self) -> int:
        """The open files of the socket, which urllib3 counts for it."""
        return self._sock._io_refs  # type: ignore[attr-defined,no-any-return]  # of socket.socket, without a stub

    @_io_refs.setter
    def _io_refs(self, count: int) -> None:
        self._sock._io_refs = count  # type: ignore[attr-defined]

    def settimeout(self, seconds: float) -> None:
        """Let everything until the next call of this end in so many seconds."""
        self._ends_at = clock.monotonic() + seconds

    def recv(self, size: int) -> bytes:
        """Read what there is."""
        self._set_what_is_left()
        return self._sock.recv(size)

    def sendall(self, data: bytes) -> None:
        """Write all of it."""
        self._set_what_is_left()
        self._sock.sendall(data)

    def _set_what_is_left(self) -> None:
        seconds = self._ends_at - clock.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time limit of the call has passed")
        self._sock.settimeout(seconds)
