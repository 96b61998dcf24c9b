"""Which sources do lookup tests name by their dotted paths? Ones that break the rules, or run what the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Outcome, Reply, Request, Verdict
from catalog_fallback.sources.base import Source
from catalog_fallback.sources.json_item import JSONItemSource

PATH = "tests.scripted."
GOOD = b'{"item": {"id": "P001", "name": "Tea"}}'


class FailsToAsk(JSONItemSource):
    """Cannot even say what it wants to ask."""

    def request(self, item_id: str, language: str, vary: Mapping[str, str]) -> Request:
        """Break."""
        raise LookupError(f"no request for {item_id}")


class FailsToParse(JSONItemSource):
    """Breaks on a good reply."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Break."""
        raise ZeroDivisionError("broken adapter")


class SaysNothing(JSONItemSource):
    """Forgets to return a verdict."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the type forbids."""
        return None  # type: ignore[return-value]


class Careless(Source):
    """Takes every item for the one that was asked for."""

    def __init__(self, config: SourceConfig, *, item: Any = None) -> None:
        super().__init__(config)
        self.item = item

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Say found."""
        from catalog_fallback import classify  # noqa: PLC0415  # the only user of it here

        return classify.found(self.item)


class Programmed(JSONItemSource):
    """Runs what the test programmed instead of a call: ``Programmed.program = lambda timeout: Reply(…)``."""

    needs_url: ClassVar[bool] = False
    program: ClassVar[Callable[..., Reply | NoReply]] = staticmethod(lambda timeout: Reply(200, {}, GOOD))
    timeouts: ClassVar[list[float]] = []

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Note the limit of the call and run the program."""
        type(self).timeouts.append(timeout)
        return type(self).program(timeout)


class FailsWithEverything(JSONItemSource):
    """Breaks with URL and headers in its message, and in that of the exception behind it, as clients do."""

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Break while a request is at hand."""
        request = self.request(item_id, language, vary)
        try:
            raise LookupError(f"no luck with {request.url}")
        except LookupError as error:
            raise RuntimeError(f"403 for {request.url} {dict(self.config.headers)}") from error


class FailsToParseLoudly(JSONItemSource):
    """Breaks with the reply's body in its message, as ``int("…")`` does."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Break on the body."""
        raise ValueError(f"no number: {reply.body!r} {reply.headers}")


class Unkeepable(JSONItemSource):
    """Finds an item that no serializer takes: a number of 5,000 digits, and a generator."""

    needs_url: ClassVar[bool] = False

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Answer without a call."""
        return Reply(200, {}, GOOD)

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Add to the item what JSON would not have."""
        item = {"id": item_id, "name": "Tea", "price": 10**5000, "offers": (each for each in ())}
        return Verdict(Outcome.FOUND, "ok", item)
