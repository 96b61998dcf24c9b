"""Which fixtures do the tests of the example have? The server of the simulated catalogs, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from catalogs.server import CatalogServer, Switchboard


@pytest.fixture
def catalogs() -> Iterator[CatalogServer]:
    """The running server of the simulated catalogs, all healthy."""
    with CatalogServer(("127.0.0.1", 0), Switchboard()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def catalogs_url(catalogs: CatalogServer) -> str:
    """Its address."""
    return f"http://127.0.0.1:{catalogs.server_address[1]}"
