"""What may BREAKER, RATE_LIMIT and GUARDS hold?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from catalog_fallback.conf.complaints import Place
from catalog_fallback.conf.paths import exceptions, imported, is_dotted
from catalog_fallback.conf.values import Reader, count, duration, fraction, is_slug, keys, optional, table
from catalog_fallback.configuration import BreakerConfig, GuardConfig, RateLimitConfig

_MILLISECOND = 0.001
_DAY = 86_400.0

BREAKER_KEYS: Mapping[str, Reader] = {
    "CONSECUTIVE_FAILURES": optional(count()),
    "FAILURE_RATE": optional(fraction(may_be_one=True)),
    "MINIMUM_CALLS": count(),
    "WINDOW": duration(_MILLISECOND, _DAY),
    "OPEN_FOR": duration(_MILLISECOND, _DAY),
    "HALF_OPEN_CALLS": count(maximum=100),
    "SUCCESSES_TO_CLOSE": count(maximum=100),
    "MAX_OPEN_FOR": duration(_MILLISECOND, _DAY),
}

RATE_LIMIT_KEYS: Mapping[str, Reader] = {"CALLS": count(maximum=1_000_000), "PER": duration(_MILLISECOND, _DAY)}


def breaker(value: object, place: Place) -> BreakerConfig | None:
    """Read BREAKER: None, or a dict that is merged over the defaults."""
    if value is None:
        return None
    given = keys(value, place, BREAKER_KEYS, is_optional=True)
    if given is None:
        return None
    config = BreakerConfig(**given)
    if config.max_open_for >= config.open_for:
        return config
    if "max_open_for" in given:
        place.at("MAX_OPEN_FOR").complain(
            "E019",
            f"is {config.max_open_for:g}, less than the OPEN_FOR of {config.open_for:g} seconds.",
            "Set it to OPEN_FOR or more.",
        )
    return replace(config, max_open_for=config.open_for)


def rate_limit(value: object, place: Place) -> RateLimitConfig | None:
    """Read RATE_LIMIT: None, or a dict with both keys."""
    if value is None:
        return None
    given = keys(value, place, RATE_LIMIT_KEYS, is_optional=True)
    if given is None:
        return None
    missing = [name for name in RATE_LIMIT_KEYS if name.lower() not in given]
    for name in missing:
        place.at(name).complain("E005", "is missing.", 'Set both keys, as in {"CALLS": 100, "PER": 60}.')
    return None if missing else RateLimitConfig(**given)


def _guard_fallback(value: object, place: Place) -> Any:
    """A value, a callable, or the dotted path to one; a text that looks like a path is one."""
    return imported(str(value), place) if is_dotted(value) else value


GUARD_KEYS: Mapping[str, Reader] = {
    "BREAKER": breaker,
    "RATE_LIMIT": rate_limit,
    "MAX_CONCURRENT": count(),
    "COUNTED": optional(exceptions),
    "FALLBACK": _guard_fallback,
}


def guards(value: object, place: Place) -> Mapping[str, GuardConfig]:
    """Read GUARDS: a dict of alias to settings for ``guarded(alias)``."""
    found = {}
    for alias, raw in table(value, place, "a dict of guard alias to settings").items():
        given = keys(raw, place.at(alias), GUARD_KEYS)
        if is_slug(alias, place) and given is not None:
            found[alias] = GuardConfig(alias=alias, has_fallback="fallback" in given, **given)
    return MappingProxyType(found)
