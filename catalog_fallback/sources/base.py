"""What is a source? The base class of every adapter, and the words it speaks in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Item, NoReply, Outcome, Reply, Request, Verdict
from catalog_fallback.sources.http import HTTPTransport
from catalog_fallback.sources.url_template import URLTemplate

__all__ = ["Item", "NoReply", "Outcome", "Reply", "Request", "Source", "Verdict"]


class Source:
    """One catalog API. Subclass it, write ``request`` and ``parse``, name the class as BACKEND.

    ``parse`` is pure: it sees status, headers and body of a complete reply and returns a :class:`Verdict`. What ends
    without a complete reply (time-outs, refused connections, bodies that are cut short) never reaches it.
    """

    #: Full-match pattern and normal form of this API's IDs; the settings ID_PATTERN and NORMALIZE_ID replace them.
    id_pattern: ClassVar[str] = r"[A-Z0-9-]{1,32}"
    #: The API's own address, with ``{id}``; the setting URL replaces it. None: the site has to set one.
    default_url: ClassVar[str | None] = None
    #: Source settings that suit this API (``{"RATE_LIMIT": …, "NEXT_ON": …}``); the site's settings replace them.
    defaults: ClassVar[Mapping[str, Any]] = {}
    #: The API's terms ask for a contact in the User-Agent (catalog setting CONTACT).
    needs_contact: ClassVar[bool] = False
    #: This source goes over HTTP and so needs a URL.
    needs_url: ClassVar[bool] = True
    #: A source for development only; a deploy check names it.
    is_simulated: ClassVar[bool] = False

    #: Names of the caller's ``vary`` that this adapter understands beside the placeholders of its URL.
    vary_names: ClassVar[frozenset[str]] = frozenset()

    #: How many items ``fetch_many`` takes in one call; 1: there is none.
    batch_size: ClassVar[int] = 1

    @classmethod
    def missing_requirement(cls) -> str | None:
        """Return what has to be installed before this adapter can work, in words; None: nothing is missing."""
        return None

    @staticmethod
    def normalize_id(item_id: str) -> str:
        """Return the ID in the one form under which it is kept and stopped; ValueError if there is none."""
        return item_id

    def __init__(self, config: SourceConfig) -> None:
        """Take the configuration; subclasses add keyword arguments, which come from OPTIONS."""
        self.config = config
        self.alias = config.alias
        self._template = URLTemplate(config.url or self.default_url or "")
        self._transport = HTTPTransport(config)

    def request(self, item_id: str, language: str, vary: Mapping[str, str]) -> Request:
        """Return the GET that asks for one item: the URL template, filled in. ``vary`` holds further variants."""
        return Request(self._template.expand(item_id, language, vary))

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means for the item that was asked for."""
        raise NotImplementedError(f"{type(self).__name__} has to define parse()")

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Make one call that ends within ``timeout`` seconds, whatever the other side does."""
        return self._transport.get(self.request(item_id, language, vary), timeout=timeout)

    def fetch_many(
        self, item_ids: Sequence[str], language: str, vary: Mapping[str, str], *, timeout: float
    ) -> Reply | NoReply:
        """Make one call for at most ``batch_size`` items; for APIs that answer many IDs at once."""
        raise NotImplementedError(f"{type(self).__name__} has a batch_size, so it has to define fetch_many()")

    def parse_many(self, reply: Reply, item_ids: Sequence[str]) -> Mapping[str, Verdict]:
        """Return what one reply of ``fetch_many`` means for each of the items."""
        raise NotImplementedError(f"{type(self).__name__} has a batch_size, so it has to define parse_many()")

    def check(self) -> Iterable[str]:
        """Yield complaints about this source's configuration, one sentence each."""
        return ()

    def close(self) -> None:
        """Give back what the source holds (connections); it may be used again afterwards."""
        self._transport.close()
