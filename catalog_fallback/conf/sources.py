"""What may one source's settings hold, and what do they mean together with its backend?"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from catalog_fallback.conf import paths, source_values
from catalog_fallback.conf.complaints import Place, did_you_mean, shown
from catalog_fallback.conf.guards import breaker, rate_limit
from catalog_fallback.conf.values import Reader, as_it_is, boolean, count, duration, keys, secret
from catalog_fallback.configuration import DEFAULT_BACKEND, SourceConfig
from catalog_fallback.sources.base import Source
from catalog_fallback.sources.url_template import URLTemplate

SOURCE_KEYS: Mapping[str, Reader] = {
    "BACKEND": as_it_is,
    "URL": secret(source_values.url),
    "CONNECT_TIMEOUT": duration(0.001, 3600),
    "TIMEOUT": duration(0.001, 3600),
    "MAX_BYTES": count(maximum=2**30),
    "TRUST_ENV": boolean,
    "HEADERS": secret(source_values.headers),
    "NOT_FOUND_STATUSES": source_values.not_found_statuses,
    "TEMPORARY_REASONS": source_values.temporary_reasons,
    "NEXT_ON": source_values.next_on,
    "ATTEMPTS": count(maximum=10),
    "BREAKER": breaker,
    "RATE_LIMIT": rate_limit,
    "MAX_CONCURRENT": count(),
    "ENABLED": boolean,
    "RESPECT_CACHE_CONTROL": boolean,
    "OPTIONS": secret(source_values.options),
}


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a source takes over from its catalog."""

    catalog: str
    contact: str = ""
    language: str = ""
    respect_cache_control: bool = True


class ParsedSource(NamedTuple):
    """A source's configuration and the class that it names."""

    config: SourceConfig
    backend: type[Source]


def read_source(alias: str, raw: object, place: Place, inherited: Inherited) -> ParsedSource | None:
    """Read one source; None, and complaints, when something in it is wrong."""
    if not isinstance(raw, Mapping):
        keys(raw, place, SOURCE_KEYS)
        return None
    own = place.apart()
    path = raw.get("BACKEND", DEFAULT_BACKEND)
    backend = paths.backend(path, own.at("BACKEND"))
    given = keys(raw if backend is None else _over_defaults(raw, backend), own, SOURCE_KEYS)
    config = None
    if backend is not None and (missing := backend.missing_requirement()) is not None:
        own.at("BACKEND").complain("E020", f"cannot work here: {missing}.", "Install what it names.")
    if backend is not None and backend.parse is Source.parse:
        own.at("BACKEND").complain(
            "E007", f"is {shown(path)}, which has no parse().", "Define it: it says what a reply means."
        )
    if backend is not None and given is not None:
        given = {"respect_cache_control": inherited.respect_cache_control, **given, "backend": path}
        config = _configuration(alias, given, inherited, backend)
        _check_together(config, raw, own, backend)
    place.complaints.extend(own.complaints)
    return None if config is None or backend is None or own.has_errors else ParsedSource(config, backend)


def _over_defaults(raw: Mapping[Any, Any], backend: type[Source]) -> dict[Any, Any]:
    """The site's keys over the backend's; BREAKER is merged, as it is over our own defaults."""
    merged = {**backend.defaults, **raw}
    theirs, ours = backend.defaults.get("BREAKER"), raw.get("BREAKER")
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        merged["BREAKER"] = {**theirs, **ours}
    return merged


def _configuration(alias: str, given: dict[str, Any], inherited: Inherited, backend: type[Source]) -> SourceConfig:
    address = given.pop("url", None) or backend.default_url
    template = URLTemplate(address or "")
    placeholders = template.placeholders - {"id", "language"}
    return SourceConfig(
        alias=alias,
        catalog=inherited.catalog,
        url=address,
        contact=inherited.contact,
        language=inherited.language,
        vary_names=placeholders | backend.vary_names,
        required_vary=placeholders,
        needs_language="language" in template.in_path,
        **given,
    )


def _check_together(config: SourceConfig, raw: Mapping[Any, Any], place: Place, backend: type[Source]) -> None:
    """What each key allows by itself but not together with the others."""
    if config.url is None and backend.needs_url:
        place.at("URL").complain("E005", "is missing.", 'Set it to "https://api.example.com/items/{id}".')
    _check_options(config, place.at("OPTIONS").hidden(), backend)
    if "CONNECT_TIMEOUT" in raw and config.connect_timeout > config.timeout:
        place.at("CONNECT_TIMEOUT").warn(
            "W003",
            f"is {config.connect_timeout:g} and has no effect: TIMEOUT ({config.timeout:g}) ends the call first.",
            "Set it below TIMEOUT.",
        )
    both = sorted(status for status in config.not_found_statuses if f"http_{status}" in config.temporary_reasons)
    if both:
        place.at("NOT_FOUND_STATUSES").warn(
            "W004", f"holds {both}, which TEMPORARY_REASONS makes temporary.", "Name each status in one of the two."
        )


def _check_options(config: SourceConfig, place: Place, backend: type[Source]) -> None:
    signature = inspect.signature(backend)
    try:
        signature.bind(config, **config.options)
    except TypeError as error:
        known = list(signature.parameters)[1:]
        wrong = next((name for name in config.options if name not in known), "")
        place.complain("E008", f"does not fit the backend {backend.__name__}: {error}.", did_you_mean(wrong, known))
