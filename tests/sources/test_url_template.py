"""Does a URL template ask for the item that was meant, and for nothing else?"""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.sources.url_template import URLTemplate

TEMPLATE = URLTemplate("https://api.example.com/items/{id}")


@pytest.mark.parametrize(
    ("item_id", "segment"),
    [
        ("P001", "P001"),
        ("a/b", "a%2Fb"),
        ("a?x=1", "a%3Fx%3D1"),
        ("a#f", "a%23f"),
        ("%2e%2e", "%252e%252e"),
        ("%2F", "%252F"),
        ("a b", "a%20b"),
        ("a\r\nX: y", "a%0D%0AX%3A%20y"),
        ("a\0b", "a%00b"),
        ("a\\b", "a%5Cb"),
        ("@evil.example", "%40evil.example"),
        ("...", "..."),
        ("ü", "%C3%BC"),
        ("10.1890/0012(1999)069[0569:E]2.0.CO;2", "10.1890%2F0012%281999%29069%5B0569%3AE%5D2.0.CO%3B2"),
    ],
)
def test_h69_an_id_stays_one_segment(item_id: str, segment: str) -> None:
    """Nothing in an ID is safe: it becomes exactly one segment of the path."""
    assert TEMPLATE.expand(item_id, "", {}) == "https://api.example.com/items/" + segment


@pytest.mark.parametrize("item_id", [".", "..", "", "\ud800"])
@pytest.mark.parametrize("template", ["https://h.example/items/{id}", "https://h.example/items?id={id}"])
def test_h69_ids_that_no_url_can_hold_are_refused(item_id: str, template: str) -> None:
    """Dots survive percent-encoding, and an empty ID would ask for the whole list."""
    with pytest.raises(InvalidItemID):
        URLTemplate(template).expand(item_id, "", {})


@given(st.text(min_size=1))
def test_every_id_is_one_segment_or_refused(item_id: str) -> None:
    """Whatever the text: refused, or it comes back from one segment of the path unchanged."""
    try:
        url = TEMPLATE.expand(item_id, "", {})
    except InvalidItemID:
        return
    segment = url.removeprefix("https://api.example.com/items/")
    assert not set(segment) & set("/?#\\")
    assert unquote(segment) == item_id


def test_language_and_variants_are_filled_in_and_encoded() -> None:
    """Placeholders may stand in path and query, each any number of times."""
    template = URLTemplate("https://h.example/{language}/{shop}/{id}?l={language}&q=isbn:{id}&fields=a,b(c)")
    url = template.expand("P/1", "de", {"shop": "a&b", "unused": "x"})
    assert url == "https://h.example/de/a%26b/P%2F1?l=de&q=isbn:P%2F1&fields=a,b(c)"
    assert template.placeholders == {"id", "language", "shop"}


@pytest.mark.parametrize(
    ("language", "vary", "named"),
    [
        ("..", {"shop": "x"}, "language"),
        (".", {"shop": "x"}, "language"),
        ("", {"shop": "x"}, "language"),
        ("de", {"shop": ".."}, "shop"),
        ("de", {"shop": "\ud800"}, "shop"),
        ("de", {}, "shop"),
        ("de", {"other": "x"}, "shop"),
    ],
)
def test_a_missing_or_climbing_value_is_refused_by_name(language: str, vary: dict[str, str], named: str) -> None:
    """Every placeholder in the path needs a value that stays in its segment, and the message names it."""
    with pytest.raises(ValueError, match=rf"\{{{named}\}}") as caught:
        URLTemplate("https://h.example/{language}/{shop}/{id}").expand("P001", language, vary)
    assert not isinstance(caught.value, InvalidItemID)


def test_dots_and_nothing_are_fine_in_the_query() -> None:
    """A query has no segments to climb."""
    url = URLTemplate("https://h.example/i/{id}?l={language}&v={v}").expand("P001", "", {"v": ".."})
    assert url == "https://h.example/i/P001?l=&v=.."


def test_the_id_wins_over_a_variant_of_that_name() -> None:
    """A caller's ``vary`` cannot replace the ID that was checked."""
    assert TEMPLATE.expand("P001", "", {"id": "P002"}).endswith("/P001")


@pytest.mark.parametrize("value", [".", "..", ""])
def test_values_cannot_climb_together_with_a_literal(value: str) -> None:
    """A dot of the template and one of a value, or nothing, would make a dot segment."""
    with pytest.raises(ValueError, match="cannot stand for"):
        URLTemplate("https://h.example/items/.{part}/{id}").expand("P001", "", {"part": value})


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("ftp://h.example/{id}", "http:// or https://"),
        ("h.example/{id}", "http:// or https://"),
        ("//h.example/{id}", "http:// or https://"),
        ("", "http:// or https://"),
        ("file:///etc/{id}", "http:// or https://"),
        ("https:///{id}", "no host"),
        ("https://:80/{id}", "no host"),
        ("https://user:secret@h.example/{id}", "user name"),
        ("https://user@h.example/{id}", "user name"),
        ("https://h.example\\@evil.example/{id}", "user name"),
        ("https://h.example:99999/{id}", "host or port"),
        ("https://h.example:x/{id}", "host or port"),
        ("https://bücher.example/{id}", "xn--"),
        ("https://[::1/{id}", "host or port"),
        ("{scheme}://h.example/{id}", "only in path and query"),
        ("https://{id}.example/x", "only in path and query"),
        ("https://h.example:{port}/{id}", "only in path and query"),
        ("https://h.example/{id}#{id}", "fragment"),
        ("https://h.example/#{id}", "fragment"),
        ("https://h.example/items/", "no {id}"),
        ("https://h.example/{ID}", "no {id}"),
        ("https://h.example/{id}/{", "brace"),
        ("https://h.example/{id}}", "brace"),
        ("https://h.example/{id}/{}", "brace"),
        ("https://h.example/{id}/{a.b}", "brace"),
        ("https://h.example/{id:>9}", "brace"),
        ("https://h.example/a b/{id}", "percent-encoded"),
        ("https://h.example/{id}\n", "percent-encoded"),
        ("https://h.example/100%/{id}", "percent-encoded"),
        ("https://h.example/büch/{id}", "percent-encoded"),
        ("https://h.example/a\\b/{id}", "percent-encoded"),
        ("https://h.example/a/../{id}", "segment"),
        ("https://h.example/%2E%2e/{id}", "segment"),
        ("https://h.example/./{id}", "segment"),
    ],
)
def test_complaints_name_what_is_wrong(template: str, words: str) -> None:
    """A template that could be led astray is refused when the settings are read, in words without the template."""
    complaints = list(URLTemplate(template).complaints())
    assert any(words in complaint for complaint in complaints), complaints
    assert not any("secret" in complaint for complaint in complaints)


@pytest.mark.parametrize(
    "template",
    [
        "https://api.example.com/items/{id}",
        "HTTPS://API.example.com:8443/items/{id}",
        "http://127.0.0.1:8000/{id}",
        "http://[::1]:8000/{language}/{id}",
        "http://my_service:80/{id}",
        "https://h.example?isbn={id}",
        "https://h.example/v1/volumes?q=isbn:{id}&fields=items(id,volumeInfo(title))&filter[a]=b&key=%20",
        "https://h.example/a/.../.well-known/{id}.json",
    ],
)
def test_good_templates_have_no_complaints(template: str) -> None:
    """Real APIs' URLs pass as they are."""
    assert list(URLTemplate(template).complaints()) == []


@pytest.mark.parametrize(
    ("template", "is_plain"),
    [("http://h.example/{id}", True), ("HTTP://h.example/{id}", True), ("https://h.example/{id}", False), ("", False)],
)
def test_plain_http_is_seen(template: str, is_plain: bool) -> None:
    """A deploy check warns of sources that are asked without TLS."""
    assert URLTemplate(template).is_plain_http is is_plain


def test_the_repr_hides_the_url() -> None:
    """The URL may hold a key."""
    assert "canary" not in repr(URLTemplate("https://h.example/{id}?key=canary"))
