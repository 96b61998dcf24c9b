"""Is a lookup refused whose URL would lack its language?"""

from __future__ import annotations

from typing import Any

import pytest

from catalog_fallback import conf
from catalog_fallback.cache import EntryCache


def _entries(url: str, **keys: Any) -> EntryCache:
    found, complaints = conf.parse({"default": {"SOURCES": {"one": {"URL": url}}, **keys}})
    assert not [complaint for complaint in complaints if complaint.is_error]
    return EntryCache(found["default"])


@pytest.mark.parametrize("arguments", [{}, {"language": ""}], ids=["none given", "an empty one"])
def test_no_language_is_refused_where_the_path_has_it(arguments: dict[str, str]) -> None:
    """Without it the URL would ask for something else."""
    with pytest.raises(ValueError, match=r"A language is needed.*LANGUAGE"):
        _entries("https://api.example.com/{language}/items/{id}").query("P001", **arguments)


@pytest.mark.parametrize(
    ("url", "keys", "arguments"),
    [
        ("https://api.example.com/{language}/items/{id}", {}, {"language": "en"}),
        ("https://api.example.com/{language}/items/{id}", {"LANGUAGE": "ja"}, {}),
        ("https://api.example.com/items/{id}?lang={language}", {}, {}),
        ("https://api.example.com/items/{id}", {}, {"language": ""}),
    ],
    ids=["given", "in the settings", "only in the query", "nowhere"],
)
def test_otherwise_it_is_not(url: str, keys: dict[str, str], arguments: dict[str, str]) -> None:
    """A language that is there, or not needed, is no mistake."""
    assert _entries(url, **keys).query("P001", **arguments).item_id == "P001"
