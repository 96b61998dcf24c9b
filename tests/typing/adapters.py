"""Which types does a site see that writes an adapter, listens to signals, and tests with our tools?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, assert_type

from django.dispatch import receiver

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Attempt, Lookup
from catalog_fallback.signals import deletion_notice, lookup_finished, source_called
from catalog_fallback.sources.base import Outcome, Reply, Request, Source, Verdict
from catalog_fallback.sources.json_item import JSONItemSource
from catalog_fallback.testing import FrozenClock, fake_source, override_catalog


class ShopSource(Source):
    """An adapter of the site's own, with an option."""

    id_pattern: ClassVar[str] = r"[0-9]{8}"
    default_url: ClassVar[str | None] = "https://shop.example.com/v1/{id}"

    def __init__(self, config: SourceConfig, *, currency: str = "EUR") -> None:
        super().__init__(config)
        self.currency = currency

    def request(self, item_id: str, language: str, vary: Mapping[str, str]) -> Request:
        """The base class's request, with a parameter."""
        asked = super().request(item_id, language, vary)
        assert_type(asked, Request)
        return Request(asked.url, headers=asked.headers, params={"currency": self.currency})

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """A verdict from status and body."""
        assert_type(reply.status, int)
        assert_type(reply.body, bytes)
        if reply.status == 404:
            return Verdict(Outcome.NOT_FOUND, "http_404")
        return Verdict(Outcome.FOUND, "ok", {"id": item_id, "name": reply.body.decode()})

    def check(self) -> Iterable[str]:
        """A complaint."""
        if len(self.currency) != 3:
            yield "currency is a code of three letters."


class TidySource(JSONItemSource):
    """One of ours, changed a little."""

    @staticmethod
    def normalize_id(item_id: str) -> str:
        """Upper case."""
        return item_id.upper()


@receiver(lookup_finished)
def count(sender: object, lookup: Lookup, elapsed: float, **kwargs: Any) -> None:
    """A listener."""
    assert_type(lookup.is_found, bool)


def listen(sender: object, *, catalog: str, attempt: Attempt, **kwargs: Any) -> None:
    """Another one."""


def send_and_connect() -> None:
    """Signals are Django's."""
    source_called.connect(listen)
    deletion_notice.send(sender=None, item_ids=["P001"], catalog="books", stop=True)


def fallback_data(lookup: Lookup) -> Mapping[str, Any] | None:
    """What the setting FALLBACK may name."""
    return {"name": "?"} if lookup.catalog == "books" else None


def tools_for_tests() -> None:
    """What a site's tests use."""
    asked: list[str] = []
    with override_catalog(SOURCES={"fake": fake_source(items={"P001": "Tea"}, asked=asked)}), FrozenClock() as clock:
        assert_type(clock, FrozenClock)
        clock.advance(61)
