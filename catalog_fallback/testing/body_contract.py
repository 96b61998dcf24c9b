"""What does an adapter make of bodies, good, bad and damaged? The part of the contract that needs no network."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply, Verdict
from catalog_fallback.sources import text
from catalog_fallback.sources.base import Source
from catalog_fallback.testing.bodies import without_name

JSON = {"content-type": "application/json"}
PAGE = b"<!DOCTYPE html><html><head><title>Log in</title></head><body><form>\xc3\xa9</form></body></html>"
SOFT_404 = (b'{"error": "not found"}', b'{"message": "Not Found"}', b'{"success": false}', b'"not found"', b"false")
#: Neither items nor answers, and some of them hard on a careless reader.
STRANGE = (
    *(b"", b" ", b"null", b"0", b'""', b"[]", b"{}", b"[[]]", b"[{}]", b'{"item": 5}', b"\xff\xfe", b"{'a': 1}"),
    *(b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500, b"NaN", b"[1e999]", b"9" * 5000, b'"\\ud800"'),
)


class BodyContract:
    """Subclass it for a source that makes no HTTP calls; for all others there is SourceContract."""

    #: The adapter, and its OPTIONS.
    source_class: ClassVar[type[Source]]
    options: ClassVar[Mapping[str, Any]] = {}
    #: An ID in its normal form, and the body of a 200 that holds that item.
    item_id: ClassVar[str]
    good_body: ClassVar[bytes]
    #: Bodies of a 200 by which the API says that it has no such item.
    not_found_bodies: ClassVar[tuple[bytes, ...]] = ()
    #: Another ID; by default the last character is changed.
    other_id: ClassVar[str] = ""
    #: The good body without a name, where that cannot be made by blanking the name's texts (no JSON).
    unnamed_body: ClassVar[bytes | None] = None
    #: The URL template below the server's address, and what else the adapter wants to know.
    path: ClassVar[str] = "/items/{id}"
    language: ClassVar[str] = ""
    vary: ClassVar[Mapping[str, str]] = {}

    def make_source(self, address: str = "http://127.0.0.1:1") -> Source:
        """Return the adapter, asked at this address."""
        url = f"{address}{self.path}"
        config = SourceConfig("contract", url=url, contact="contract@example.com", options=dict(self.options))
        return self.source_class(config, **self.options)

    def test_item_can_be_kept(self) -> None:
        """The item is plain JSON, which every cache can keep."""
        item = self._parsed(self.good_body).item
        if json.loads(json.dumps(item)) != item:
            raise AssertionError(f"The item has to be plain JSON: {item!r}")

    def test_not_found_bodies(self) -> None:
        """Each documented signal is "not found"."""
        for body in self.not_found_bodies:
            self._has_to_be(Outcome.NOT_FOUND, self._parsed(body), f"the body {body[:80]!r}")

    def test_wrong_id(self) -> None:
        """A good item is none for somebody who asked for another one."""
        other = self.other_id or self.item_id[:-1] + ("1" if self.item_id[-1] != "1" else "2")
        verdict = self.make_source().parse(Reply(200, JSON, self.good_body), other)
        self._has_to_be(Outcome.STOP, verdict, f"the good body for {other!r}")

    def test_unnamed_item(self) -> None:
        """An item without a name is neither shown nor "not found"."""
        body = self.unnamed_body or without_name(self.good_body, lambda body: self._parsed(body).item)
        self._has_to_be(Outcome.STOP, self._parsed(body), "an item without a name")

    def test_good_body_is_found(self) -> None:
        """A good body is the item that was asked for."""
        self._has_to_be(Outcome.FOUND, self._parsed(self.good_body), "the good body")

    def test_error_statuses(self) -> None:
        """No status but 200 brings an item, and none by itself says "not found" (a route may be gone)."""
        for status in (204, 206, 302, 400, 401, 403, 404, 410, 429, 500):
            for body in (PAGE, b"", self.good_body):
                verdict = self.make_source().parse(Reply(status, {}, body), self.item_id)
                self._has_to_be(Outcome.STOP, verdict, f"status {status} with the body {body[:20]!r}")

    def test_login_page(self) -> None:
        """A captive portal's page with 200 is no answer."""
        self._has_to_be(Outcome.STOP, self._parsed(PAGE), "a login page with 200")

    def test_soft_404(self) -> None:
        """A 200 that says "not found" in words that this API does not use is no answer."""
        for body in SOFT_404:
            if body not in self.not_found_bodies:
                self._has_to_be(Outcome.STOP, self._parsed(body), f"the body {body!r}")

    def test_bom(self) -> None:
        """A byte order mark before the body does not matter."""
        self._has_to_be(Outcome.FOUND, self._parsed(b"\xef\xbb\xbf" + self.good_body), "a body with a BOM")

    def test_strange_bodies(self) -> None:
        """Bodies of any form are no exception, no item and not "not found"."""
        for body in STRANGE:
            if body not in self.not_found_bodies:
                self._has_to_be(Outcome.STOP, self._parsed(body), f"the body {body[:40]!r}")

    def test_damage(self) -> None:
        """A good body that was cut or damaged anywhere is still the right item, or no answer."""
        step = max(1, len(self.good_body) // 60)
        for at in range(0, len(self.good_body), step):
            before, after = self.good_body[:at], self.good_body[at + 1 :]
            for body in (before, before + after, before + b"\xff" + after):
                verdict = self._parsed(body)
                if verdict.outcome is not Outcome.FOUND:
                    self._has_to_be(Outcome.STOP, verdict, f"a body damaged at byte {at}")

    def _parsed(self, body: bytes) -> Verdict:
        return self._sound(self.make_source().parse(Reply(200, JSON, body), self.item_id))

    def _sound(self, verdict: Verdict) -> Verdict:
        """Check what holds for every verdict."""
        if not isinstance(verdict, Verdict):
            raise AssertionError(f"parse() has to return a Verdict, not {verdict!r}.")
        if verdict.outcome is Outcome.FOUND:
            item = verdict.item or {}
            name = item.get("name")
            if item.get("id") != self.item_id or not isinstance(name, str) or text.is_blank(name):
                raise AssertionError(f"A find needs the ID that was asked for and a name: {item!r}")
        return verdict

    def _has_to_be(self, outcome: Outcome, verdict: Verdict, what: str) -> None:
        if verdict.outcome is not outcome:
            shown = dataclasses.asdict(verdict)
            raise AssertionError(f"{self.source_class.__name__}: {what} has to be {outcome!s}, not {shown}.")
