"""What do sources of books have in common?"""

from __future__ import annotations

import pytest

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import Reply
from catalog_fallback.sources.books import BatchBookSource, BookSource
from catalog_fallback.sources.open_library import OpenLibrarySource
from catalog_fallback.sources.openbd import OpenBDSource


def test_sources_of_one_catalog_agree_on_ids() -> None:
    """All of them ask for, compare and keep the same form of an ID."""
    for source in (OpenLibrarySource, OpenBDSource):
        assert source.normalize_id is BookSource.normalize_id
        assert source.id_pattern == BookSource.id_pattern
    assert BookSource.normalize_id("ISBN 0-306-40615-2") == "9780306406157"


def test_parse_many_is_what_a_subclass_writes() -> None:
    """Forgetting it is said with the name of the class."""
    with pytest.raises(NotImplementedError, match="BatchBookSource has to define parse_many"):
        BatchBookSource(SourceConfig("books", url="https://example.com/{id}")).parse(Reply(200), "9780306406157")
