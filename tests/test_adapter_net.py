"""Does a lookup stay a lookup, whatever an adapter of a site's own returns?"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache

from catalog_fallback.results import NoReply, Outcome, Reply, Verdict
from catalog_fallback.services import find_item, find_items
from catalog_fallback.sources.base import Source

GOOD = {"id": "P001", "name": "A mug"}
_says: dict[str, Any] = {}


class Says(Source):
    """Returns what the test says."""

    needs_url = False

    def fetch(self, *args: Any, **kwargs: Any) -> Any:
        """A reply, or something else."""
        return _says.get("reply", Reply(200, {}, b"{}"))

    def parse(self, reply: Reply, item_id: str) -> Any:
        """A verdict, or something else."""
        return _says["verdict"]


def circle() -> dict[str, Any]:
    """An item that holds itself."""
    item: dict[str, Any] = dict(GOOD)
    item["self"] = item
    return item


class Breaks(Mapping[str, Any]):
    """A mapping that breaks when it is read through."""

    def __getitem__(self, key: str) -> Any:
        return GOOD[key]

    def __iter__(self) -> Any:
        raise ZeroDivisionError

    def __len__(self) -> int:
        return 2


@pytest.fixture(autouse=True)
def _site(settings: Any, transactional_db: None) -> None:
    cache.clear()
    _says.clear()
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"own": {"BACKEND": f"{__name__}.Says"}}}}


@pytest.mark.parametrize(
    "verdict",
    [
        None,
        Verdict(Outcome.STOP, None),  # type: ignore[arg-type]
        Verdict(Outcome.STOP, "two\nlines"),
        Verdict([], "timeout"),  # type: ignore[arg-type]
        Verdict(Outcome.TEMPORARY, "http_503", retry_after="soon"),  # type: ignore[arg-type]
        Verdict(Outcome.TEMPORARY, "http_503", retry_after=float("inf")),
        Verdict(Outcome.FOUND, "ok", {**GOOD, "price": Decimal(1)}),
        Verdict(Outcome.FOUND, "ok", {**GOOD, "broken": "\ud800"}),
        Verdict(Outcome.FOUND, "ok", {**GOOD, "weight": float("nan")}),
        Verdict(Outcome.FOUND, "ok", circle()),
        Verdict(Outcome.FOUND, "ok", Breaks()),
    ],
    ids=[
        "nothing",
        "no reason",
        "two lines",
        "no outcome",
        "a word to wait",
        "for ever to wait",
        "a Decimal",
        "a lone surrogate",
        "not a number",
        "a circle",
        "a mapping that breaks",
    ],
)
def test_a_verdict_that_is_none(verdict: Any) -> None:
    """It is a fault of the adapter's, and told as one."""
    _says["verdict"] = verdict
    for lookup in (find_item("P001"), find_items(["P001"])["P001"], find_item("P001", refresh=True)):
        assert (lookup.state, lookup.reason) == ("unavailable", "source_error")


def test_what_is_wrong_with_an_adapter_is_told_in_words(caplog: pytest.LogCaptureFixture) -> None:
    """Ours quote nothing, so they are in the log; what the adapter itself raises may hold a secret, and is not."""
    _says["verdict"] = {"id": "P001"}
    find_item("P001")
    assert "Says.parse() has to return a Verdict, not dict." in caplog.text
    caplog.clear()
    _says["verdict"] = Verdict(Outcome.FOUND, "ok", Breaks())
    find_item("P001")
    assert "the message may hold secrets" in caplog.text


@pytest.mark.parametrize(
    "reply",
    [
        None,
        NoReply(None),  # type: ignore[arg-type]
        Reply(200, None, b""),  # type: ignore[arg-type]
        Reply(200, {"age": 7}, b""),  # type: ignore[dict-item]
        Reply(200, {}, "text"),  # type: ignore[arg-type]
    ],
    ids=["nothing", "no reason", "no headers", "a number as header", "text as body"],
)
def test_a_reply_that_is_none(reply: Any) -> None:
    """The same for what ``fetch`` brings."""
    _says.update(reply=reply, verdict=Verdict(Outcome.FOUND, "ok", GOOD))
    assert find_item("P001").reason == "source_error"


def test_what_json_can_say_is_kept_in_its_types() -> None:
    """A tuple becomes a list, once and for all."""
    _says["verdict"] = Verdict(Outcome.FOUND, "ok", {**GOOD, "tags": ("kitchen", "mug")})
    first, second = find_item("P001"), find_item("P001")
    assert first.item == second.item == {**GOOD, "tags": ["kitchen", "mug"]}
    assert second.cache == "hit"
