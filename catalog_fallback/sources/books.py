"""What do all sources of books share? ISBN-13 as the one form of an ID, and answers for many IDs in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from catalog_fallback.results import NoReply, Reply, Request, Verdict
from catalog_fallback.sources import identifiers
from catalog_fallback.sources.base import Source


class BookSource(Source):
    """A catalog that is asked by ISBN. IDs are ISBN-13 in digits, whatever form was typed or stored."""

    id_pattern: ClassVar[str] = identifiers.ISBN13_PATTERN
    normalize_id = staticmethod(identifiers.isbn13)
    needs_contact: ClassVar[bool] = True

    @classmethod
    def missing_requirement(cls) -> str | None:
        """Say so when ISBNs cannot be checked for want of python-stdnum."""
        return identifiers.missing_extra()


class BatchBookSource(BookSource):
    """A catalog of books that answers up to ``batch_size`` ISBNs in one call."""

    batch_size: ClassVar[int]
    #: What stands between two ISBNs in the place of ``{id}``.
    separator: ClassVar[str] = ","

    def request_many(self, item_ids: Sequence[str], language: str, vary: Mapping[str, str]) -> Request:
        """Return the GET that asks for several items."""
        return self.request(self.separator.join(item_ids), language, vary)

    def fetch_many(
        self, item_ids: Sequence[str], language: str, vary: Mapping[str, str], *, timeout: float
    ) -> Reply | NoReply:
        """Make one call for at most ``batch_size`` items."""
        return self._transport.get(self.request_many(item_ids, language, vary), timeout=timeout)

    def parse_many(self, reply: Reply, item_ids: Sequence[str]) -> dict[str, Verdict]:
        """Return what one reply means for each of the items that were asked for in that one call."""
        raise NotImplementedError(f"{type(self).__name__} has to define parse_many()")

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Return what the reply means for the one item that was asked for."""
        return self.parse_many(reply, (item_id,))[item_id]
