"""Is a time limit on the socket to a proxy one limit for all that follows?"""

from __future__ import annotations

import socket
from typing import Any, cast

import pytest

from catalog_fallback import clock
from catalog_fallback.sources.proxy_socket import ProxySocket


def test_each_operation_gets_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the next limit is set; with nothing left, nothing is read or written."""
    now = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        proxy = ProxySocket(cast("Any", ours), 10)
        proxy.sendall(b"x")
        assert (theirs.recv(9), ours.gettimeout()) == (b"x", 10)
        now[0] += 4
        theirs.sendall(b"y")
        assert (proxy.recv(9), ours.gettimeout()) == (b"y", 6)
        now[0] += 6
        with pytest.raises(TimeoutError):
            proxy.recv(9)
        with pytest.raises(TimeoutError):
            proxy.sendall(b"x")
        proxy.settimeout(1)
        proxy.sendall(b"z")
        assert (theirs.recv(9), ours.gettimeout()) == (b"z", 1)
