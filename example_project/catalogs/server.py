"""How are the simulated catalogs served? One threading HTTP server, with a switchboard for their faults.

=====================================  ==================================================
``GET /primary/items/P001``            the first source of the default catalog
``GET /secondary/items/P001``          the second one
``GET /v1/get?isbn=…``                 openBD
``GET /api/books.json?bibkeys=…``      Open Library
``GET /api/v2/product/3017624010701``  Open Food Facts, and below ``/opf`` its sister for other products
``GET /works/10.1111%2F…``             Crossref
``GET /dois/10.4121%2F…``              DataCite
``GET /_faults``                       each catalog's fault and calls so far, as JSON
``POST /_faults/primary`` fault=slow   switch a fault
``POST /_reset``                       everything healthy, counters at 0
=====================================  ==================================================
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from catalogs.answers import Answer, as_json
from catalogs.faults import FAULTS, Healthy
from catalogs.replies import CATALOGS, healthy_answer, other_id, route

DEFAULT_PORT = 8801
MAX_FORM = 1024


class Switchboard:
    """Which fault does each catalog have, and how often was it called?"""

    def __init__(self, recorded: Mapping[tuple[str, str], Answer] | None = None) -> None:
        self._lock = threading.Lock()
        self._recorded = recorded or {}
        self._faults = dict.fromkeys(CATALOGS, "ok")
        self._calls = dict.fromkeys(CATALOGS, 0)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Fault and calls of each catalog."""
        with self._lock:
            return {name: {"fault": self._faults[name], "calls": self._calls[name]} for name in CATALOGS}

    def switch(self, catalog: str, fault: str) -> bool:
        """Give the catalog this fault; False where one of them does not exist."""
        if catalog not in CATALOGS or fault not in FAULTS:
            return False
        with self._lock:
            self._faults[catalog] = fault
        return True

    def reset(self) -> None:
        """Everything healthy, counters at 0."""
        with self._lock:
            self._faults.update(dict.fromkeys(CATALOGS, "ok"))
            self._calls.update(dict.fromkeys(CATALOGS, 0))

    def answer(self, catalog: str, item_ids: tuple[str, ...]) -> Answer:
        """Count the call and answer as the catalog does at the moment."""
        with self._lock:
            self._calls[catalog] += 1
            fault = FAULTS[self._faults[catalog]]
        healthy = Healthy(
            answer=self._healthy(catalog, item_ids),
            nothing=healthy_answer(catalog, ("NO-SUCH-ITEM",) * len(item_ids)),
            other=healthy_answer(catalog, (other_id(catalog, item_ids),)),
        )
        return fault(healthy)

    def _healthy(self, catalog: str, item_ids: tuple[str, ...]) -> Answer:
        if len(item_ids) == 1 and (recorded := self._recorded.get((catalog, item_ids[0]))):
            return recorded
        return healthy_answer(catalog, item_ids)


class CatalogServer(ThreadingHTTPServer):
    """The server and its switchboard."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], switchboard: Switchboard, *, is_quiet: bool = True) -> None:
        super().__init__(address, _Handler)
        self.switchboard = switchboard
        self.is_quiet = is_quiet
        self.closing = threading.Event()

    def server_close(self) -> None:
        """Stop listening, and end the answers that are being held back."""
        self.closing.set()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that gave up waiting is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def catalogs(self) -> CatalogServer:
        return cast(CatalogServer, self.server)

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/_faults":
            self.send(as_json(self.catalogs.switchboard.as_dict()))
            return
        match route(self.path):
            case (catalog, item_ids) if item_ids:
                self.send(self.catalogs.switchboard.answer(catalog, item_ids))
            case _:
                self.send(Answer(404, b"There is no such route.\n", "text/plain"))

    def do_POST(self) -> None:
        form = self.form()
        match urlsplit(self.path).path.split("/")[1:]:
            case ["_reset"]:
                self.catalogs.switchboard.reset()
                self.send(as_json({"ok": True}))
            case ["_faults", catalog]:
                done = self.catalogs.switchboard.switch(catalog, form.get("fault", ""))
                self.send(as_json({"ok": done}, 200 if done else 400))
            case _:
                self.send(Answer(404, b"There is no such route.\n", "text/plain"))

    def form(self) -> dict[str, str]:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= MAX_FORM:
            self.close_connection = True
            return {}
        return {name: values[-1] for name, values in parse_qs(self.rfile.read(length).decode("utf-8")).items()}

    def send(self, answer: Answer) -> None:
        if answer.hangs_up or self.catalogs.closing.wait(answer.delay):
            self.close_connection = True
            return
        self.send_response_only(answer.status, HTTPStatus(answer.status).phrase)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.drip:
            self.drip(answer)
            return
        self.wfile.write(answer.body[: answer.cut_after])
        self.close_connection = self.close_connection or answer.cut_after is not None

    def drip(self, answer: Answer) -> None:
        for byte in answer.body:
            if self.catalogs.closing.wait(answer.drip):
                self.close_connection = True
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        if not self.catalogs.is_quiet:
            super().log_message(format, *args)
