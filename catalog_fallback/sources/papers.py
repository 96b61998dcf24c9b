"""What do all sources of papers and data sets share? DOIs in lower case, and works without a title."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from catalog_fallback.sources import identifiers
from catalog_fallback.sources.base import Source


class PaperSource(Source):
    """A catalog that is asked by DOI. IDs are DOIs with their ASCII letters in lower case."""

    id_pattern: ClassVar[str] = identifiers.DOI_PATTERN
    normalize_id = staticmethod(identifiers.doi)
    needs_contact: ClassVar[bool] = True
    #: A work without a usable title does exist: another agency may know the title.
    defaults: ClassVar[Mapping[str, Any]] = {"NEXT_ON": ["not_found", "temporary", "no_name"]}


def what_is_wrong_with(doi: object, asked: str) -> str | None:
    """Return why a reply's DOI is not the one that was asked for, None when it is."""
    if not isinstance(doi, str) or not doi:
        return "unverifiable"
    return None if identifiers.ascii_lower(doi) == identifiers.ascii_lower(asked) else "invalid_item"
