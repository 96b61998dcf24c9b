"""What can be configured? Frozen values into which ``conf`` parses the settings; no Django here.

Durations are float seconds. Defaults are the documented ones, so that a test or a script can make a configuration
without any settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from catalog_fallback.exceptions import InvalidItemID, gettext_noop

DEFAULT_BACKEND = "catalog_fallback.sources.json_item.JSONItemSource"
HeaderValue = str | Callable[[], str]
#: What survives percent-encoding and climbs out of a URL's path.
DOTS = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class BreakerConfig:
    """The circuit breaker of one source; a rule that is None is off."""

    consecutive_failures: int | None = 5
    failure_rate: float | None = 0.5
    minimum_calls: int = 10
    window: float = 60.0
    open_for: float = 30.0
    half_open_calls: int = 1
    successes_to_close: int = 1
    max_open_for: float = 300.0


@dataclass(frozen=True, slots=True)
class RateLimitConfig:
    """At most ``calls`` calls in any window of ``per`` seconds."""

    calls: int
    per: float


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """Defaults of ``guarded(alias)``; ``counted`` and ``fallback`` are None where not set."""

    alias: str
    breaker: BreakerConfig | None = field(default_factory=BreakerConfig)
    rate_limit: RateLimitConfig | None = None
    max_concurrent: int = 16
    counted: tuple[type[Exception], ...] | None = None
    has_fallback: bool = False
    fallback: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class SourceConfig:
    """One source of one catalog. Secrets (URL, headers, options) never show in a repr."""

    alias: str
    catalog: str = "default"
    backend: str = DEFAULT_BACKEND
    url: str | None = field(default=None, repr=False)
    connect_timeout: float = 1.0
    timeout: float = 2.0
    max_bytes: int = 1_048_576
    trust_env: bool = False
    headers: Mapping[str, HeaderValue] = field(default_factory=dict, repr=False)
    not_found_statuses: frozenset[int] = frozenset()
    temporary_reasons: frozenset[str] = frozenset()
    next_on: frozenset[str] = frozenset({"not_found", "temporary"})
    attempts: int = 1
    breaker: BreakerConfig | None = field(default_factory=BreakerConfig)
    rate_limit: RateLimitConfig | None = None
    max_concurrent: int = 16
    enabled: bool = True
    respect_cache_control: bool = True
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    contact: str = ""
    language: str = ""
    #: Names that a caller's ``vary`` may hold, and those of them that the URL cannot do without.
    vary_names: frozenset[str] = frozenset()
    required_vary: frozenset[str] = frozenset()
    #: The URL has {language} in its path, so that an empty one would ask for something else.
    needs_language: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CatalogConfig:
    """One catalog: where to ask, how long to keep, how long to wait.

    ``sources`` are the enabled ones in the order in which they are asked; ``all_sources`` also has the disabled.
    ``stop_check`` is resolved: ``"auto"`` has become ``"cache"`` or ``"database"``.
    """

    alias: str
    sources: tuple[SourceConfig, ...]
    all_sources: tuple[SourceConfig, ...] = ()
    cache: str = "default"
    state_cache: str = "default"
    key_prefix: str = "catalog"
    version: int | str = 1
    language: str = ""
    id_pattern: re.Pattern[str] = re.compile(r"[A-Z0-9-]{1,32}")
    normalize_id: Callable[[str], str] | None = None
    ttl: float = 60.0
    negative_ttl: float = 0.0
    stale_if_error: float = 0.0
    refresh_ahead: float = 0.0
    ttl_jitter: float = 0.0
    budget: float = 5.0
    outer_timeout: float = 30.0
    contact: str = ""
    max_parallel: int = 8
    fallback: Mapping[str, Any] | Callable[..., Any] | None = field(default=None, repr=False)
    retry_later: bool = False
    stop_check: Literal["cache", "database"] = "cache"
    on_deleted: Literal["invalidate", "stop"] = "invalidate"
    notice_secrets: tuple[str, ...] = field(default=(), repr=False)
    unavailable_status: int = 503
    cdn_tag_header: str | None = None
    guards: Mapping[str, GuardConfig] = field(default_factory=dict)
    vary_names: frozenset[str] = frozenset()
    required_vary: frozenset[str] = frozenset()
    needs_language: bool = False

    def clean_id(self, item_id: str) -> str:
        """Return the ID in its normal form.

        Raises InvalidItemID when it is no string, when ``normalize_id`` refuses it, when the pattern does not match
        the whole of it, or when it is ``.`` or ``..`` (which survive percent-encoding and climb out of a URL's path).
        """
        if self.normalize_id is not None and isinstance(item_id, str):
            item_id = self._normalized(item_id)
        if not isinstance(item_id, str) or self.id_pattern.fullmatch(item_id) is None or item_id in DOTS:
            text = gettext_noop(
                "{item_id} is no item ID of catalog {catalog}: it has to match {pattern} (setting ID_PATTERN)."
            )
            pattern = repr(self.id_pattern.pattern)
            raise InvalidItemID(text, item_id=_shown(item_id), catalog=repr(self.alias), pattern=pattern)
        if not item_id.isascii():
            _refuse_surrogates(item_id, self.alias)
        return item_id

    def _normalized(self, item_id: str) -> str:
        assert self.normalize_id is not None
        try:
            return self.normalize_id(item_id)
        except InvalidItemID:
            raise
        except ValueError as error:
            text = gettext_noop("{item_id} is no item ID of catalog {catalog}: {why}")
            raise InvalidItemID(text, item_id=_shown(item_id), catalog=repr(self.alias), why=str(error)) from error


def _shown(value: object, limit: int = 80) -> str:
    """The value as a message may show it: bounded, and never more than its type where it is no string."""
    if not isinstance(value, str):
        return f"A value of type {type(value).__name__}"
    return ascii(value if len(value) <= limit else value[:limit] + "…")


def _refuse_surrogates(item_id: str, catalog: str) -> None:
    try:
        item_id.encode()
    except UnicodeEncodeError as error:
        text = gettext_noop("{item_id} is no item ID of catalog {catalog}: it holds a lone surrogate.")
        raise InvalidItemID(text, item_id=_shown(item_id), catalog=repr(catalog)) from error
