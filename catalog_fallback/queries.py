"""How is a question put in its normal form, and under which keys is its answer kept?"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from catalog_fallback.configuration import DOTS, CatalogConfig

#: Version of the keys and of the entry's form; part of every key.
FORMAT = 1

_SHORT = 64
_PLAIN = re.compile(rf"[A-Za-z0-9._/-]{{1,{_SHORT}}}")
_DIGEST_LENGTH = 32
_NOTHING: Mapping[str, str] = {}


class Query:
    """One question in its normal form, with the keys under which its answer is kept."""

    __slots__ = ("catalog", "entry_key", "gate_key", "item_id", "language", "name", "vary")

    def __init__(
        self,
        catalog: CatalogConfig,
        item_id: str,
        language: str,
        vary: Mapping[str, str],
        gate_key: str,
        entry_key: str,
        name: str,
    ) -> None:
        self.catalog = catalog
        self.item_id = item_id
        self.language = language
        self.vary = vary
        self.gate_key = gate_key
        self.entry_key = entry_key
        #: What the entry says of itself: nothing in it is shortened.
        self.name = name


class Keys:
    """The questions that one catalog may be asked, and their keys in the cache.

    All keys of one item name it in braces, and so are in one slot of a Redis Cluster.
    """

    def __init__(self, config: CatalogConfig) -> None:
        self.config = config
        head = f"{config.key_prefix}:{FORMAT}:{config.version}"
        self._gate_head = f"{head}:g:{{{config.alias}:"
        self._entry_head = f"{head}:e:{{{config.alias}:"
        self._lease_head = f"{head}:l:{{{config.alias}:"
        self._record_head = f"{head}:f:{{{config.alias}:"
        self._variant = _variant(config.language, {})
        self._takes_defaults = not config.required_vary and (config.language != "" or not config.needs_language)

    def query(self, item_id: str, language: str | None = None, vary: Mapping[str, str] | None = None) -> Query:
        """Return the question in its normal form.

        Raises InvalidItemID, and ValueError when ``vary`` does not hold exactly what the sources' URLs need.
        """
        config = self.config
        item_id = config.clean_id(item_id)
        if language is None and (vary is None or vary == _NOTHING) and self._takes_defaults:
            language, vary, variant = config.language, _NOTHING, self._variant
        else:
            language = _checked_language(config, config.language if language is None else language)
            vary = _checked_vary(config, _NOTHING if vary is None else vary)
            variant = _variant(language, vary)
        if item_id.isalnum() and len(item_id) <= _SHORT and item_id.isascii():
            name = entry_key = f"{self._entry_head}{item_id}}}{variant}"
            return Query(config, item_id, language, vary, f"{self._gate_head}{item_id}}}", entry_key, name)
        name = f"{self._entry_head}{item_id}}}{variant}"
        entry_key = f"{self._entry_head}{_short(item_id)}}}{variant}"
        return Query(config, item_id, language, vary, self.gate_key(item_id), entry_key, name)

    def gate_key(self, item_id: str) -> str:
        """Return the key of the gate of an ID in its normal form."""
        return f"{self._gate_head}{_short(item_id)}}}"

    def lease_key(self, query: Query, gate: str) -> str:
        """Return the key of the lease for fetching this very query under this gate."""
        return f"{self._lease_head}{query.entry_key[len(self._entry_head) :]}:{gate[1:17]}"

    def record_key(self, query: Query) -> str:
        """Return the key of the record of how a flight for this query ended."""
        return f"{self._record_head}{query.entry_key[len(self._entry_head) :]}"


def _digest(text: str) -> str:
    return "~" + hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def _short(text: str) -> str:
    """The text itself where it is short and legal in every cache's keys, else a digest that no plain text equals."""
    return text if _PLAIN.fullmatch(text) else _digest(text)


def _variant(language: str, vary: Mapping[str, str]) -> str:
    if not vary and (not language or _PLAIN.fullmatch(language)):
        return language
    return _digest(json.dumps([language, sorted(vary.items())]))


def _checked_language(config: CatalogConfig, language: object) -> str:
    if not language and config.needs_language:
        raise ValueError(f"A language is needed: the URLs of catalog {config.alias!r} have it (setting LANGUAGE).")
    if isinstance(language, str) and language.isascii() and len(language) <= 64 and language not in DOTS:
        return language
    raise ValueError(f"language={language!r} has to be an ASCII string of at most 64 characters, not '.' or '..'.")


def _checked_vary(config: CatalogConfig, vary: Mapping[str, str]) -> Mapping[str, str]:
    """Return ``vary`` if every name is known and needed ones are there; ValueError names what is wrong."""
    if not isinstance(vary, Mapping):
        raise ValueError(f"vary={vary!r} has to be a mapping of str to str.")
    if unknown := sorted(map(str, vary.keys() - config.vary_names)):
        known = ", ".join(sorted(config.vary_names)) or "none"
        raise ValueError(f"vary has {', '.join(unknown)}, which no source of catalog {config.alias!r} knows ({known}).")
    if missing := sorted(config.required_vary - vary.keys()):
        raise ValueError(f"vary has to give {', '.join(missing)}: the URLs of catalog {config.alias!r} need it.")
    for name, value in vary.items():
        if not isinstance(value, str) or not value or not value.isprintable() or value in DOTS:
            raise ValueError(f"vary[{name!r}]={value!r} has to be a printable string, not empty, '.' or '..'.")
    return dict(vary)
