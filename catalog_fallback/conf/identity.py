"""Which IDs does a catalog take, and in which form? Its own settings, else what all its backends agree on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catalog_fallback.conf import catalog_values
from catalog_fallback.conf.complaints import Place
from catalog_fallback.conf.sources import ParsedSource
from catalog_fallback.sources.base import Source


def id_rules(given: Mapping[str, Any], sources: Sequence[ParsedSource], place: Place) -> dict[str, Any]:
    """Return ``id_pattern`` and ``normalize_id``; complains when the sources disagree and the catalog does not say.

    One item needs one form of its ID, or it would have several keys and a stop of one would leave the others.
    """
    pattern, normalize = given.get("id_pattern"), given.get("normalize_id")
    if pattern is None:
        _must_agree("ID_PATTERN", [source.backend.id_pattern for source in sources], sources, place)
        pattern = catalog_values.id_pattern(sources[0].backend.id_pattern, place.at("ID_PATTERN")) if sources else None
    if normalize is None:
        _must_agree("NORMALIZE_ID", [source.backend.normalize_id for source in sources], sources, place)
        normalize = sources[0].backend.normalize_id if sources else None
    is_identity = normalize is Source.normalize_id
    return {"id_pattern": pattern, "normalize_id": None if is_identity else normalize}


def _must_agree(key: str, values: list[Any], sources: Sequence[ParsedSource], place: Place) -> None:
    if all(value == values[0] for value in values):
        return
    names = ", ".join(f"{source.config.alias} ({source.backend.__name__})" for source in sources)
    place.at(key).complain(
        "E009",
        f"is not set, and the sources have different ones: {names}.",
        f"Set {key} to the one form that all these APIs are asked in, or put the sources into different catalogs.",
    )
