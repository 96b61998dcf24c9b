"""Does an adapter keep what every adapter promises? Tests to subclass, each with an upstream that misbehaves.

::

    class TestMySource(SourceContract):
        source_class = MySource
        item_id = "P001"
        good_body = b'{"data": {"sku": "P001", "title": "Blue teapot"}}'
        not_found_bodies = (b'{"data": []}',)
"""

from __future__ import annotations

import time
from typing import ClassVar

from catalog_fallback import classify
from catalog_fallback.headers import MAX_RETRY_AFTER
from catalog_fallback.results import NoReply, Outcome, Verdict
from catalog_fallback.testing import upstream
from catalog_fallback.testing.body_contract import JSON, PAGE, BodyContract
from catalog_fallback.testing.upstream import Script, Upstream

GARBAGE = ("-5", "1m0s", "soon", "", "Wed, 99 Foo 2026 00:00:00 GMT", "9" * 5000)


class SourceContract(BodyContract):
    """Subclass it in your tests, name your adapter and give a good body; its attributes are in BodyContract."""

    #: Limit of a call in seconds where the upstream never ends, and where it answers.
    short_limit: ClassVar[float] = 0.3
    limit: ClassVar[float] = 10.0

    def test_good_reply_over_http(self) -> None:
        """A call brings what the upstream sends."""
        verdict = self._asked(upstream.reply(200, self.good_body, JSON))
        self._has_to_be(Outcome.FOUND, verdict, "the good body over HTTP")

    def test_drip(self) -> None:
        """An upstream that sends a byte from time to time cannot hold a call past its limit."""
        self._has_to_end_in_time(upstream.drip)

    def test_stall(self) -> None:
        """Nor can one that says nothing."""
        self._has_to_end_in_time(upstream.stall)

    def test_reset(self) -> None:
        """A connection that breaks means "not now"."""
        self._has_to_be(Outcome.TEMPORARY, self._asked(upstream.reset), "a reset")

    def test_cut_body(self) -> None:
        """Half a body is no answer."""
        self._has_to_be(Outcome.STOP, self._asked(upstream.cut(self.good_body)), "half a body")

    def test_gzip_bomb(self) -> None:
        """A body that unpacks to 64 MB is refused."""
        self._has_to_be(Outcome.STOP, self._asked(upstream.bomb(64_000_000)), "64 MB in a small gzip")

    def test_redirect(self) -> None:
        """A redirect is not followed, not even to a good item."""
        good = upstream.reply(200, self.good_body, JSON)
        with Upstream(upstream.reply(302, b"", {"Location": "/elsewhere"}), good) as server:
            self._has_to_be(Outcome.STOP, self._fetched(server, self.limit), "a redirect")
            if server.calls != 1:
                raise AssertionError(f"A lookup is one call, not {server.calls}.")

    def test_html_503(self) -> None:
        """A gateway's page means "not now"."""
        for status in (502, 503, 504):
            verdict = self._asked(upstream.reply(status, PAGE, {"Content-Type": "text/html"}))
            self._has_to_be(Outcome.TEMPORARY, verdict, f"a page with {status}")

    def test_retry_after_garbage(self) -> None:
        """A Retry-After that nobody can read breaks nothing and asks for nothing absurd."""
        for status, outcome in ((429, Outcome.STOP), (503, Outcome.TEMPORARY)):
            for value in GARBAGE:
                verdict = self._asked(upstream.reply(status, PAGE, {"Retry-After": value}))
                self._has_to_be(outcome, verdict, f"status {status} with Retry-After: {value[:20]}")
                if not 0 <= (verdict.retry_after or 0) <= MAX_RETRY_AFTER:
                    raise AssertionError(f"A wait of {verdict.retry_after!r} seconds is absurd.")

    def _asked(self, script: Script) -> Verdict:
        with Upstream(script) as server:
            return self._fetched(server, self.limit)

    def _fetched(self, server: Upstream, limit: float) -> Verdict:
        source = self.make_source(server.url)
        try:
            reply = source.fetch(self.item_id, self.language, self.vary, timeout=limit)
            if isinstance(reply, NoReply):
                return classify.verdict(reply.reason)
            return self._sound(source.parse(reply, self.item_id))
        finally:
            source.close()

    def _has_to_end_in_time(self, script: Script) -> None:
        with Upstream(script) as server:
            started_at = time.monotonic()
            self._has_to_be(Outcome.TEMPORARY, self._fetched(server, self.short_limit), "an upstream without end")
            elapsed = time.monotonic() - started_at
        if elapsed > self.short_limit + 2:
            raise AssertionError(f"A call limited to {self.short_limit:g} seconds took {elapsed:.1f}.")
