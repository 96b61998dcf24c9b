"""Where in a JSON document is the item, and which words say that there is none? One envelope, described by paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog_fallback import classify
from catalog_fallback.results import Verdict
from catalog_fallback.sources import json_body, text
from catalog_fallback.sources.json_path import MISSING, Path, follow, path

_ITEM, _ID, _NAME = ("item",), ("id",), ("name",)


@dataclass(frozen=True, slots=True)
class Envelope:
    """The agreed form of a body. The default one is ``{"item": {"id": …, "name": …}}`` or ``{"item": null}``."""

    item: Path = _ITEM
    id: Path = _ID
    name: Path = _NAME
    #: Our field → where it is in the item; None: the item is kept as it comes.
    fields: Mapping[str, Path] | None = None
    #: What all has to be so in a body that says "no such item"; empty: ``null`` in the item's place says it.
    not_found_when: tuple[tuple[Path, Any], ...] = ()
    #: Names that no object may hold twice, because they decide.
    unique: frozenset[str] = field(default=json_body.UNIQUE_NAMES)

    @property
    def is_default(self) -> bool:
        """Whether nothing is said that differs from the default envelope."""
        return self == _DEFAULT

    def says_not_found(self, document: Any) -> bool:
        """Whether the body has everything by which this API says that it has no such item."""
        return bool(self.not_found_when) and all(
            _is_same(follow(document, where), value) for where, value in self.not_found_when
        )

    def judge(self, document: Any, item_id: str) -> Verdict:
        """Return what a decoded body means for the item that was asked for."""
        if self.says_not_found(document):
            return classify.verdict("empty_result")
        item = follow(document, self.item)
        if item is None and self._null_says_not_found(document):
            return classify.verdict("empty_result")
        if not isinstance(item, dict):
            return classify.verdict("invalid_schema")
        name = follow(item, self.name)
        is_named = isinstance(name, str) and not text.is_blank(name)
        if not is_named or not self._is_asked(follow(item, self.id), item_id):
            return classify.verdict("invalid_item")
        return classify.found(self._kept(item, item_id, name))

    def _null_says_not_found(self, document: Any) -> bool:
        """Whether ``null`` in the item's place is a signal: not beside an error, not as the whole body."""
        return not self.not_found_when and isinstance(document, dict) and not _reports_error(document)

    def _is_asked(self, found: Any, item_id: str) -> bool:
        """Whether an ID is the one asked for; whole numbers count as their digits where the site described the form."""
        return found == item_id or (type(found) is int and not self.is_default and str(found) == item_id)

    def _kept(self, item: dict[str, Any], item_id: str, name: Any) -> dict[str, Any]:
        if self.fields is not None:
            found = {ours: follow(item, where) for ours, where in self.fields.items()}
            kept = {ours: value for ours, value in found.items() if value is not MISSING}
            return {"id": item_id, "name": name, **kept}
        return item if self.is_default else {**item, "id": item_id, "name": name}


_DEFAULT = Envelope()


def envelope(
    item_path: str, id_field: str, name_field: str, fields: Mapping[str, str] | None, not_found_when: Mapping[str, Any]
) -> Envelope:
    """Return the envelope that OPTIONS describe. Raises ValueError, which names the option, for what is no path."""
    ours = None if fields is None else {str(name): _path(where, "fields") for name, where in fields.items()}
    if ours is not None and not ours.keys().isdisjoint(("id", "name")):
        raise ValueError('"fields" must not name "id" or "name": use "id_field" and "name_field"')
    signals = tuple((_path(where, "not_found_when"), value) for where, value in not_found_when.items())
    item, id_, name = _path(item_path, "item_path"), _path(id_field, "id_field"), _path(name_field, "name_field")
    deciding = [item, id_, name, *(where for where, _ in signals)]
    return Envelope(item, id_, name, ours, signals, json_body.UNIQUE_NAMES.union(*deciding))


def _path(written: object, option: str) -> Path:
    try:
        return path(written)
    except ValueError as error:
        raise ValueError(f'"{option}": {error}') from None


def _reports_error(document: dict[str, Any]) -> bool:
    """Whether a body without an item names an error: that is no answer to "is there such an item?"."""
    return bool(document.get("error") or document.get("errors"))


def _is_same(found: Any, expected: Any) -> bool:
    """Equal as JSON values: ``true`` is not 1, and ``null`` is not missing."""
    return bool(found == expected) and isinstance(found, bool) == isinstance(expected, bool)
