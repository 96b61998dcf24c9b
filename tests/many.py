"""Which sources do tests of batches use? One that answers many IDs in one call, and one that knows every ID."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from catalog_fallback import classify
from catalog_fallback.results import NoReply, Reply, Verdict
from catalog_fallback.sources.json_item import JSONItemSource

MANY, ANY = "tests.many.Many", "tests.many.Any_"


class Many(JSONItemSource):
    """Answers a batch with an object of ID → name; null is not found, a number a status of its own."""

    needs_url: ClassVar[bool] = False
    batch_size: ClassVar[int] = 10
    names: ClassVar[dict[str, Any]] = {}
    #: The IDs of each call.
    calls: ClassVar[list[list[str]]] = []
    #: What ends a whole call.
    failure: ClassVar[Reply | NoReply | None] = None

    @classmethod
    def begin(cls, **names: Any) -> None:
        """What it knows in this test."""
        cls.names, cls.calls, cls.failure = names, [], None

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """One item is a batch of one."""
        return self.fetch_many((item_id,), language, vary, timeout=timeout)

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """As in a batch."""
        return self.parse_many(reply, (item_id,))[item_id]

    def fetch_many(
        self, item_ids: Sequence[str], language: str, vary: Mapping[str, str], *, timeout: float
    ) -> Reply | NoReply:
        """One call."""
        type(self).calls.append(list(item_ids))
        known = {item_id: self.names[item_id] for item_id in item_ids if item_id in self.names}
        return self.failure or Reply(200, {}, json.dumps(known).encode())

    def parse_many(self, reply: Reply, item_ids: Sequence[str]) -> Mapping[str, Verdict]:
        """A verdict for each that the reply speaks of."""
        if reply.status != 200:
            return dict.fromkeys(item_ids, classify.verdict(f"http_{reply.status}"))
        names = json.loads(reply.body)
        return {item_id: _verdict(item_id, names[item_id]) for item_id in item_ids if item_id in names}


def _verdict(item_id: str, name: Any) -> Verdict:
    if name is None:
        return classify.verdict("empty_result")
    if isinstance(name, int):
        return classify.verdict(f"http_{name}")
    return classify.found({"id": item_id, "name": name})


class Any_(JSONItemSource):  # noqa: N801  # "Any" is taken
    """Knows every ID, without a connection; a test may watch and hold its calls."""

    needs_url: ClassVar[bool] = False
    #: Called in the worker with the ID; may wait, and may return what the call ends with.
    during: ClassVar[Callable[[str], Reply | NoReply | None]] = staticmethod(lambda item_id: None)
    lock: ClassVar[threading.Lock] = threading.Lock()
    asked: ClassVar[list[str]] = []
    running: ClassVar[int] = 0
    most: ClassVar[int] = 0

    @classmethod
    def begin(cls, during: Callable[[str], Reply | NoReply | None] = lambda item_id: None) -> None:
        """Forget what was, and do this in each call."""
        cls.during, cls.asked, cls.running, cls.most = staticmethod(during), [], 0, 0

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Answer with an item of that ID."""
        kind = type(self)
        with self.lock:
            kind.asked.append(item_id)
            kind.running += 1
            kind.most = max(kind.most, kind.running)
        try:
            return kind.during(item_id) or Reply(200, {}, _item(item_id))
        finally:
            with self.lock:
                kind.running -= 1


def _item(item_id: str) -> bytes:
    return json.dumps({"item": {"id": item_id, "name": f"Item {item_id}"}}).encode()
