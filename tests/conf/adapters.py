"""Which backends do the tests name by their dotted paths?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply, Verdict
from catalog_fallback.sources.base import Source

PATH = "tests.conf.adapters."


class Plain(Source):
    """Leaves everything as it is."""

    def parse(self, reply: Reply, item_id: str) -> Verdict:
        """Say that nothing is known."""
        return Verdict(Outcome.STOP, "invalid_schema")


class Keyed(Plain):
    """Takes an option that is a secret, another that is not, and complains about both if asked."""

    complains: ClassVar[bool] = False

    def __init__(self, config: SourceConfig, *, key: str = "", country: str = "") -> None:
        super().__init__(config)
        if country == "nowhere":
            raise ValueError(f"no country for {key}")
        self.key = key

    def check(self) -> Iterable[str]:
        """Complain without a key; quote it where there is one, as a careless adapter would."""
        yield f"the key {self.key!r} is odd" if self.key else "the key is missing."


class NeedsKey(Plain):
    """Cannot do without its option."""

    def __init__(self, config: SourceConfig, key: str) -> None:
        super().__init__(config)


class Fragile(Plain):
    """Its check breaks."""

    def check(self) -> Iterable[str]:
        """Break."""
        raise LookupError("broken check")


class Digits(Plain):
    """An API of its own IDs, address, pace and rules."""

    id_pattern = r"[0-9]{8}"
    default_url = "https://digits.example.com/{id}?lang={language}&size={size}"
    defaults: ClassVar[Mapping[str, Any]] = {
        "RATE_LIMIT": {"CALLS": 15, "PER": 60},
        "NEXT_ON": ["not_found", "temporary", "no_name"],
        "BREAKER": {"WINDOW": 10, "OPEN_FOR": 20},
        "RESPECT_CACHE_CONTROL": False,
    }
    needs_contact = True
    vary_names = frozenset({"country"})

    @staticmethod
    def normalize_id(item_id: str) -> str:
        """Fill up with zeros."""
        return item_id.zfill(8)


class MoreDigits(Digits):
    """Another API of the same IDs."""


class Unruly(Plain):
    """A backend whose pattern is broken."""

    id_pattern = "["


class Pretend(Plain):
    """Makes its items up, without a network."""

    needs_url = False
    is_simulated = True


class Speechless(Source):
    """Says nothing of what a reply means."""


class NoSource:
    """Is no source."""
