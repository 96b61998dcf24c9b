"""What does every adapter promise, whatever API it speaks? The kit that users get, and much more of what parses JSON.

class TestMySource(SourceContract):
    source_class = MySource
    item_id, other_id = "P001", "P002"
    def document(self, item_id, name): return {"item": {"id": item_id, "name": name}}
    not_found = (Reply(200, {}, b'{"item": null}'),)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Outcome, Reply, Verdict
from catalog_fallback.sources.base import Source
from catalog_fallback.testing import BodyContract
from catalog_fallback.testing import SourceContract as ShippedContract

JSON_TYPE = {"content-type": "application/json"}
#: The same test runs for each subclass, so Hypothesis sees one function with many executors: that is meant.
FUZZ = settings(
    suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow],
    deadline=None,
    max_examples=int(os.environ.get("CATALOG_FUZZ_EXAMPLES", "100")),
)

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SOFT_NOT_FOUND = [
    {"error": "not found"},
    {"message": "Not Found", "statusCode": 404},
    {"detail": "Not found."},
    {"success": False},
    {"errors": ["no such item"]},
    "not found",
    404,
    False,
    None,
]
LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Log in</title></head><body><form>\xc3\xa9</form></body></html>"


def json_reply(document: Any, status: int = 200, headers: Mapping[str, str] = JSON_TYPE) -> Reply:
    """Return a reply with this JSON document as its body."""
    return Reply(status, headers, json.dumps(document).encode())


class ParseContract(BodyContract):
    """What needs no network; see the module for the attributes that a subclass sets."""

    url: ClassVar[str | None] = None
    other_id: ClassVar[str]
    #: Every documented way to say "no such item".
    not_found: ClassVar[tuple[Reply, ...]]
    #: Statuses whose body the adapter reads; every other one but 200 is decided by itself.
    body_statuses: ClassVar[frozenset[int]] = frozenset()
    no_name: ClassVar[str] = "no_name"
    wrong_id: ClassVar[str] = "invalid_item"
    cleans_names: ClassVar[bool] = True

    def document(self, item_id: str, name: str) -> Any:
        """Return the JSON document of a find."""
        raise NotImplementedError

    @property
    def good_body(self) -> bytes:
        """What the shipped contract wants to have."""
        return self.body()

    @property
    def not_found_bodies(self) -> tuple[bytes, ...]:
        """The same."""
        return tuple(reply.body for reply in self.not_found if reply.status == 200)

    def source(self) -> Source:
        """Return the source under test."""
        config = SourceConfig("contract", url=self.url, contact="mail@example.com", options=self.options)
        return self.source_class(config, **self.options)

    def parse(self, reply: Reply) -> Verdict:
        """Return what the source makes of a reply to a request for ``item_id``."""
        return self.source().parse(reply, self.item_id)

    def body(self, name: str = "Tea") -> bytes:
        """Return the body of a find."""
        return json.dumps(self.document(self.item_id, name), ensure_ascii=False).encode()

    def judge(self, body: bytes) -> tuple[Outcome, str]:
        """Return outcome and reason of a 200 with this body."""
        verdict = self.parse(Reply(200, JSON_TYPE, body))
        return verdict.outcome, verdict.reason

    # --- what an item is

    def test_found(self) -> None:
        """A valid item with the ID that was asked for is found, under that ID."""
        verdict = self.parse(Reply(200, JSON_TYPE, self.body("Tea & Cake")))
        assert (verdict.outcome, verdict.reason) == (Outcome.FOUND, "ok")
        assert verdict.item is not None
        assert (verdict.item["id"], verdict.item["name"]) == (self.item_id, "Tea & Cake")

    def test_item_is_plain_json(self) -> None:
        """What is found can be kept by any serializer."""
        item = self.parse(Reply(200, JSON_TYPE, self.body("Tëa 茶"))).item
        assert json.loads(json.dumps(item)) == item

    def test_not_found(self) -> None:
        """Each of the API's own ways to say so is "not found"."""
        for reply in self.not_found:
            assert self.parse(reply).outcome is Outcome.NOT_FOUND, reply

    def test_wrong_item(self) -> None:
        """An item with another ID than the one asked for is a stop."""
        verdict = self.parse(json_reply(self.document(self.other_id, "Tea")))
        assert (verdict.outcome, verdict.reason) == (Outcome.STOP, self.wrong_id)

    @pytest.mark.parametrize("name", ["", "   ", "\u3000\t\n", "\u200b\ufeff", "\u0000\u0007"])
    def test_no_name(self, name: str) -> None:
        """An item whose name is empty, blank or invisible is a stop."""
        verdict = self.parse(json_reply(self.document(self.item_id, name)))
        assert (verdict.outcome, verdict.reason) == (Outcome.STOP, self.no_name)

    def test_name_with_markup_and_controls(self) -> None:
        """A stranger's names are cleaned once; those of the site's own API are kept as they are."""
        name = "  <b>Cafe\u0301</b>\n\u0007 &amp; H<sub>2</sub>O \u202e&lt;i&gt;x&lt;/i&gt; &amp;lt;y&amp;gt;"
        item = self.parse(Reply(200, JSON_TYPE, self.body(name))).item
        assert item is not None
        assert item["name"] == ("Café & H2O x &lt;y&gt;" if self.cleans_names else name)

    # --- status before body

    @pytest.mark.parametrize("status", [100, 201, 204, 206, 299, 301, 302, 304, 307, 308])
    def test_other_successes_and_redirects(self, status: int) -> None:
        """Nothing but a 200 is an answer, even with a good body; redirects are not followed."""
        verdict = self.parse(Reply(status, {"location": "https://example.com/login"}, self.body()))
        assert (verdict.outcome, verdict.reason) == (Outcome.STOP, f"http_{status}")

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 418, 429, 451, 500, 501, 505, 999])
    @pytest.mark.parametrize("body", [b"", LOGIN_PAGE, b"null", b"{}", b"[]"], ids=["none", "html", "null", "{}", "[]"])
    def test_statuses_that_stop(self, status: int, body: bytes) -> None:
        """An error status is a stop by itself: a bare 404 never says that there is no such item."""
        verdict = self.parse(Reply(status, {}, body))
        assert verdict.outcome is Outcome.STOP
        assert status in self.body_statuses or verdict.reason == f"http_{status}"

    @pytest.mark.parametrize("status", [502, 503, 504])
    def test_html_on_a_temporary_status(self, status: int) -> None:
        """A gateway's HTML page is temporary, with the wait that it asks for."""
        verdict = self.parse(Reply(status, {"content-type": "text/html", "retry-after": "7"}, LOGIN_PAGE))
        assert (verdict.outcome, verdict.reason) == (Outcome.TEMPORARY, f"http_{status}")
        assert verdict.retry_after == (7.0 if status == 503 else None)

    @pytest.mark.parametrize(
        ("value", "expected"), [("30", 30.0), ("1m0s", None), ("-5", None), ("", None), ("9" * 5000, None)]
    )
    def test_429_with_any_retry_after(self, value: str, expected: float | None) -> None:
        """A busy source is a stop; a wait that cannot be read is none."""
        verdict = self.parse(Reply(429, {"retry-after": value}, LOGIN_PAGE))
        assert (verdict.outcome, verdict.reason) == (Outcome.STOP, "http_429")
        assert expected is None or verdict.retry_after == expected

    # --- bodies that are no answer

    def test_login_page_with_200(self) -> None:
        """A captive portal's page is no JSON."""
        assert self.judge(LOGIN_PAGE) == (Outcome.STOP, "invalid_json")

    @pytest.mark.parametrize("document", SOFT_NOT_FOUND, ids=str)
    def test_soft_404_documents(self, document: Any) -> None:
        """A 200 that says "not found" in words of its own is not this API's signal."""
        assert self.parse(json_reply(document)).outcome is Outcome.STOP

    def test_requests_4976_bom(self) -> None:
        """A UTF-8 byte order mark is accepted."""
        assert self.judge(b"\xef\xbb\xbf" + self.body()) == (Outcome.FOUND, "ok")

    @pytest.mark.parametrize("charset", ["utf-16", "utf-32", "latin-1"])
    def test_other_charsets(self, charset: str) -> None:
        """JSON is UTF-8; anything else is damage, not text."""
        body = self.body("Café").decode().encode(charset, "replace")
        assert self.judge(body) == (Outcome.STOP, "invalid_json")

    @pytest.mark.parametrize(
        "value",
        [
            "NaN",
            "Infinity",
            "-Infinity",
            "1e999",
            "-1e999",
            "9" * 5000,
            "9" * 400,
            '"\\ud800"',
            '"\\udc00x"',
            '"\\u00"',
            "[" * 100_000,
            "[" * 500 + "]" * 500,
            '{"a":' * 500 + "1" + "}" * 500,
            '{"id": 1, "id": 1}',
            '"a\nb"',
            "01",
        ],
        ids=lambda value: value[:12],
    )
    @pytest.mark.parametrize("place", ['{"x": %s}', "[%s]"])
    def test_absurd_values(self, value: str, place: str) -> None:
        """Numbers that nothing can hold, bottomless nesting, half characters: invalid JSON, wherever they are."""
        assert self.judge((place % value).encode()) == (Outcome.STOP, "invalid_json")

    @pytest.mark.parametrize("body", [b"", b" ", b"\xff", b"{", b"{}x", b"{'a': 1}", b"\x00", b"None", b"\xef\xbb\xbf"])
    def test_no_json(self, body: bytes) -> None:
        """What does not parse is invalid JSON."""
        assert self.judge(body) == (Outcome.STOP, "invalid_json")

    @pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
    def test_open_library_4500_truncated_json(self, cut: float) -> None:
        """Part of a good document is invalid JSON."""
        body = self.body()
        assert self.judge(body[: int(len(body) * cut)]) == (Outcome.STOP, "invalid_json")

    # --- anything at all

    @FUZZ
    @given(status=st.sampled_from([200, 200, 404, 400, 403, 503]), body=st.binary(max_size=200))
    def test_any_bytes(self, status: int, body: bytes) -> None:
        """Random bytes are never an item, never "not found" and never an exception.

        Unless they are what the API says itself: Hypothesis tries texts that it finds in the code.
        """
        verdict = self.parse(Reply(status, {}, body))
        says_so = {(reply.status, reply.body.strip()) for reply in self.not_found}
        is_said = body.strip() == b"{}" or (status, body.strip()) in says_so
        assert verdict.outcome in (Outcome.STOP, Outcome.TEMPORARY) or is_said

    @FUZZ
    @given(status=st.sampled_from([200, 200, 404, 400, 403, 503]), document=VALUES)
    def test_any_json(self, status: int, document: Any) -> None:
        """Random documents are never an exception, and never an item with another ID."""
        self.assert_sound(self.parse(json_reply(document, status)))

    @FUZZ
    @given(st.data())
    def test_any_mutation_of_a_find(self, data: st.DataObject) -> None:
        """A find of which one value became anything else is still an item with this ID and a name, or none."""
        wrapped = [self.document(self.item_id, "Tea")]
        container, key = data.draw(st.sampled_from(list(places(wrapped))))
        container[key] = data.draw(VALUES)
        self.assert_sound(self.parse(json_reply(wrapped[0])))

    def assert_sound(self, verdict: Verdict) -> None:
        """Check what holds for every verdict."""
        if verdict.outcome is not Outcome.FOUND:
            assert verdict.item is None
            return
        assert verdict.item is not None
        assert verdict.item["id"] == self.item_id
        assert isinstance(verdict.item["name"], str)
        assert verdict.item["name"].strip()
        assert json.loads(json.dumps(verdict.item)) == verdict.item


class SourceContract(ParseContract, ShippedContract):
    """All of it."""


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key) below a node."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from places(node[key])
