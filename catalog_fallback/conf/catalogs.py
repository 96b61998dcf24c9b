"""What may one catalog's settings hold, and what do they mean together?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from catalog_fallback.conf import catalog_values
from catalog_fallback.conf.caches import cache_facts, check_cache
from catalog_fallback.conf.complaints import Place, did_you_mean, shown
from catalog_fallback.conf.guards import guards
from catalog_fallback.conf.identity import id_rules
from catalog_fallback.conf.paths import function
from catalog_fallback.conf.sources import Inherited, ParsedSource, read_source
from catalog_fallback.conf.values import (
    Reader,
    as_it_is,
    boolean,
    choice,
    count,
    duration,
    fraction,
    is_slug,
    keys,
    optional,
    secret,
    table,
    text,
)
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.sources import identifiers

CATALOG_KEYS: Mapping[str, Reader] = {
    "SOURCES": as_it_is,
    "ORDER": as_it_is,
    "CACHE": text(r".+", "an alias of CACHES"),
    "STATE_CACHE": text(r".+", "an alias of CACHES"),
    "KEY_PREFIX": text(r"[!-z|~]{0,64}", "up to 64 visible ASCII characters without blanks and braces"),
    "VERSION": catalog_values.version,
    "LANGUAGE": text(r"[A-Za-z0-9@_-]{0,35}", 'a language code, as in "en" or "pt-br", or ""'),
    "ID_PATTERN": catalog_values.id_pattern,
    "NORMALIZE_ID": optional(function),
    "TTL": duration(),
    "NEGATIVE_TTL": duration(),
    "STALE_IF_ERROR": duration(),
    "REFRESH_AHEAD": fraction(may_be_zero=True),
    "TTL_JITTER": fraction(may_be_zero=True),
    "RESPECT_CACHE_CONTROL": boolean,
    "BUDGET": duration(0.001, 3600),
    "OUTER_TIMEOUT": duration(0.001, 86_400),
    "CONTACT": catalog_values.contact,
    "MAX_PARALLEL": count(maximum=1000),
    "FALLBACK": catalog_values.fallback,
    "RETRY_LATER": boolean,
    "STOP_CHECK": choice("auto", "cache", "database"),
    "ON_DELETED": choice("invalidate", "stop"),
    "NOTICE_SECRETS": secret(catalog_values.notice_secrets),
    "UNAVAILABLE_STATUS": choice(503, 504),
    "CDN_TAG_HEADER": optional(choice("Surrogate-Key", "Cache-Tag")),
    "GUARDS": guards,
}


def read_catalog(alias: str, raw: object, place: Place) -> CatalogConfig | None:
    """Read one catalog; None, and complaints, when something in it is wrong."""
    own = place.apart()
    given = keys(raw, own, CATALOG_KEYS)
    if isinstance(raw, Mapping):
        sources = _read_sources(raw, own, _inherited(alias, given or {}))
        ordered = _ordered(raw, sources, own)
        if given is not None and not own.has_errors:
            _check_caches(alias, given, own)
            _check_requirement(given.get("normalize_id"), own.at("NORMALIZE_ID"))
            given = _resolved(given, ordered, own)
    place.complaints.extend(own.complaints)
    return None if own.has_errors or given is None else CatalogConfig(alias=alias, **given)


def _inherited(alias: str, given: Mapping[str, Any]) -> Inherited:
    return Inherited(
        alias, given.get("contact", ""), given.get("language", ""), given.get("respect_cache_control", True)
    )


def _read_sources(raw: Mapping[Any, Any], place: Place, inherited: Inherited) -> dict[str, ParsedSource | None]:
    """The sources by alias, None for one that is wrong."""
    at = place.at("SOURCES")
    if "SOURCES" not in raw:
        at.complain("E005", "is missing.", 'Set it to {"primary": {"URL": "https://api.example.com/items/{id}"}}.')
        return {}
    given = table(raw["SOURCES"], at, "a dict of source alias to settings")
    if raw["SOURCES"] == {}:
        at.complain("E005", "holds no source.", 'Add one: "primary": {"URL": "https://api.example.com/items/{id}"}.')
    return {
        alias: read_source(alias, settings, at.at(alias), inherited)
        for alias, settings in given.items()
        if is_slug(alias, at)
    }


def _ordered(raw: Mapping[Any, Any], sources: dict[str, ParsedSource | None], place: Place) -> list[ParsedSource]:
    """The usable sources in the order in which they are asked."""
    order = list(sources)
    if raw.get("ORDER") is not None:
        order = _read_order(raw["ORDER"], list(sources), place.at("ORDER"))
    return [source for alias in order if (source := sources.get(alias)) is not None]


def _read_order(value: object, known: list[str], place: Place) -> list[str]:
    """ORDER names every source exactly once: one that it forgot would make a lookup's "not found" a lie."""
    if not isinstance(value, (list, tuple)):
        place.refuse(value, "a list of source aliases")
        return known
    order = list(value)
    for alias in order:
        if alias not in known:
            place.complain("E015", f"holds {shown(alias)}, which is not in SOURCES.", did_you_mean(alias, known))
        elif order.count(alias) > 1:
            place.complain("E015", f'names "{alias}" more than once.', "Name each source once.")
    left_out = [alias for alias in known if alias not in order]
    if left_out:
        place.complain(
            "E015", f"leaves out {', '.join(left_out)}.", 'Name every source; switch one off with "ENABLED": False.'
        )
    return [alias for alias in order if isinstance(alias, str)]


def _resolved(given: dict[str, Any], sources: list[ParsedSource], place: Place) -> dict[str, Any]:
    """The arguments of CatalogConfig: what was given, and what follows from the sources and caches."""
    enabled = [source for source in sources if source.config.enabled]
    if not enabled:
        place.at("SOURCES").complain(
            "E018", "has no source that is enabled.", 'Set "ENABLED": True for one: nobody could ever answer.'
        )
    cache = given.get("cache", "default")
    unused = ("sources", "order", "respect_cache_control")
    return {
        **{name: value for name, value in given.items() if name not in unused},
        **id_rules(given, enabled, place),
        "sources": tuple(source.config for source in enabled),
        "all_sources": tuple(source.config for source in sources),
        "state_cache": given.get("state_cache", cache),
        "stop_check": _stop_check(given.get("stop_check", "auto"), cache),
        "vary_names": _union(enabled, lambda source: source.config.vary_names),
        "required_vary": _union(enabled, lambda source: source.config.required_vary),
        "needs_language": any(source.config.needs_language for source in enabled),
    }


def _check_requirement(normalize_id: object, place: Place) -> None:
    if normalize_id is identifiers.isbn13 and (missing := identifiers.missing_extra()) is not None:
        place.complain("E020", f"cannot work here: {missing}.", "Install what it names.")


def _check_caches(alias: str, given: Mapping[str, Any], place: Place) -> None:
    cache = given.get("cache", "default")
    key_head = f"{given.get('key_prefix', 'catalog')}{given.get('version', 1)}{alias}"
    check_cache("CACHE", cache, place, key_head)
    if given.get("state_cache", cache) != cache:
        check_cache("STATE_CACHE", given["state_cache"], place, key_head)


def _stop_check(chosen: str, cache: str) -> str:
    """``auto``: the database is asked on every hit where a publish in one process cannot reach the others' cache."""
    if chosen != "auto":
        return chosen
    facts = cache_facts(cache)
    return "database" if facts is None or facts.is_per_process else "cache"


def _union(sources: Iterable[ParsedSource], names: Callable[[ParsedSource], frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*map(names, sources))
