"""Which ``language`` and ``vary`` may a lookup have, and what is said about the others?"""

from __future__ import annotations

from typing import Any

import pytest

from catalog_fallback import conf
from catalog_fallback.cache import EntryCache

PLAIN = "https://api.example.com/items/{id}"
VARIED = "https://api.example.com/{edition}/items/{id}"
TWICE = "https://api.example.com/{edition}/items/{id}?page={page}"
IN_PATH = "https://api.example.com/{language}/items/{id}"


def entries(url: str, **keys: Any) -> EntryCache:
    """The entry cache of a catalog with one source."""
    found, complaints = conf.parse({"default": {"SOURCES": {"one": {"URL": url}}, **keys}})
    assert not [complaint for complaint in complaints if complaint.is_error]
    return EntryCache(found["default"])


@pytest.mark.parametrize("language", ["", "en", "pt-BR", "x" * 64], ids=["empty", "short", "dash", "longest"])
def test_a_language_is_kept_as_it_is(language: str) -> None:
    """Whatever the catalog's own is."""
    assert entries(PLAIN, LANGUAGE="ja").query("P001", language).language == language


def test_without_a_language_it_is_the_catalog_s() -> None:
    """With ``vary`` or without it."""
    assert entries(PLAIN, LANGUAGE="ja").query("P001").language == "ja"
    assert entries(VARIED, LANGUAGE="ja").query("P001", vary={"edition": "2"}).language == "ja"


@pytest.mark.parametrize(
    "language", ["x" * 65, "日本語", ".", "..", 5, b"en"], ids=["long", "not ASCII", "dot", "dots", "number", "bytes"]
)
def test_a_wrong_language_is_named(language: Any) -> None:
    """With what it should be."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole text is compared
        entries(PLAIN).query("P001", language)
    assert str(caught.value) == (
        f"language={language!r} has to be an ASCII string of at most 64 characters, not '.' or '..'."
    )


def test_a_language_that_is_needed_is_asked_for() -> None:
    """The catalog and the setting are named."""
    assert entries(IN_PATH).query("P001", "en").language == "en"
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole text is compared
        entries(IN_PATH).query("P001")
    assert str(caught.value) == "A language is needed: the URLs of catalog 'default' have it (setting LANGUAGE)."


@pytest.mark.parametrize(
    ("url", "vary"),
    [(VARIED, {"edition": "2"}), (TWICE, {"page": "7", "edition": "first one"}), (VARIED, {"edition": "…"})],
    ids=["one", "two", "not ASCII"],
)
def test_vary_is_kept_and_copied(url: str, vary: dict[str, str]) -> None:
    """What the caller changes later does not change the question."""
    query = entries(url).query("P001", vary=vary)
    assert query.vary == vary
    assert query.vary is not vary


@pytest.mark.parametrize(
    ("url", "vary", "message"),
    [
        pytest.param(VARIED, ["edition"], "vary=['edition'] has to be a mapping of str to str.", id="no mapping"),
        pytest.param(
            TWICE,
            {"edition": "2", "size": "L", "colour": "red"},
            "vary has colour, size, which no source of catalog 'default' knows (edition, page).",
            id="unknown names",
        ),
        pytest.param(
            PLAIN, {"size": "L"}, "vary has size, which no source of catalog 'default' knows (none).", id="none known"
        ),
        pytest.param(
            TWICE, {"page": "1"}, "vary has to give edition: the URLs of catalog 'default' need it.", id="missing"
        ),
        pytest.param(
            TWICE, None, "vary has to give edition, page: the URLs of catalog 'default' need it.", id="nothing"
        ),
        *(
            pytest.param(
                VARIED,
                {"edition": value},
                f"vary['edition']={value!r} has to be a printable string, not empty, '.' or '..'.",
                id=name,
            )
            for name, value in {"number": 2, "empty": "", "line": "a\nb", "dot": ".", "dots": ".."}.items()
        ),
    ],
)
def test_a_wrong_vary_is_named(url: str, vary: Any, message: str) -> None:
    """What is wrong, and what would be right."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole text is compared
        entries(url).query("P001", vary=vary)
    assert str(caught.value) == message
