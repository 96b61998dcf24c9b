"""Which catalogs are there? Settings read lazily, parsed once, and read anew when they change."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from catalog_fallback.conf.catalogs import read_catalog
from catalog_fallback.conf.complaints import SETTING, Complaint, Place, did_you_mean, sized
from catalog_fallback.conf.values import is_slug, table
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import UnknownCatalog, gettext_noop

T = TypeVar("T")

#: Settings whose change makes everything here out of date.
_WATCHED = frozenset({SETTING, "CACHES", "DATABASES"})
_EXAMPLE = '{"default": {"SOURCES": {"primary": {"URL": "https://api.example.com/items/{id}"}}}}'

#: Held while the settings are parsed and while an object of a PerAlias is built; one for all, since building one
#: object may ask for another.
_lock = threading.RLock()


def _free_the_lock() -> None:
    """A forked child has none of the threads that may have held it."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which knows no fork
    os.register_at_fork(after_in_child=_free_the_lock)


def parse(raw: object) -> tuple[dict[str, CatalogConfig], list[Complaint]]:
    """Return the catalogs that are right, and everything that is wrong. The only parser of the setting."""
    place = Place(SETTING)
    if raw is None or raw == {}:
        place.complain("E001", "is not set." if raw is None else "holds no catalog.", f"Set it to {_EXAMPLE}.")
        return {}, place.complaints
    if _has_no_alias(raw):
        place.complain("E001", "holds a catalog's own keys, and no alias around them.", f"Set it to {_EXAMPLE}.")
        return {}, place.complaints
    found = {}
    for alias, settings_of_one in table(raw, place, f"a dict, as in {_EXAMPLE}").items():
        config = read_catalog(str(alias), settings_of_one, place.at(alias))
        if is_slug(alias, place) and config is not None:
            found[alias] = config
    return found, place.complaints


def _has_no_alias(raw: object) -> bool:
    """Whether the settings of one catalog stand where a dict of catalogs has to be."""
    sources = raw.get("SOURCES") if isinstance(raw, Mapping) else None
    return isinstance(sources, Mapping) and "SOURCES" not in sources


def configured() -> object:
    """Return the setting as it is written, None when it is not set."""
    return getattr(settings, SETTING, None)


class _Parsed:
    """The catalogs as they were parsed last; None before that, and after a change."""

    catalogs: Mapping[str, CatalogConfig] | None = None


def catalogs() -> Mapping[str, CatalogConfig]:
    """Return all catalogs. Raises ImproperlyConfigured, with all complaints, when anything is wrong."""
    known = _Parsed.catalogs
    return _parse_once() if known is None else known


def _parse_once() -> Mapping[str, CatalogConfig]:
    with _lock:
        if _Parsed.catalogs is None:
            found, complaints = parse(configured())
            refuse_errors(complaints)
            _Parsed.catalogs = MappingProxyType(found)
        return _Parsed.catalogs


def refuse_errors(complaints: list[Complaint]) -> None:
    """Raise ImproperlyConfigured with all complaints when one of them is an error."""
    if any(complaint.is_error for complaint in complaints):
        lines = "\n".join(f"- {complaint}" for complaint in complaints)
        raise ImproperlyConfigured(f"The setting {SETTING} cannot be used:\n{lines}")


def catalog(alias: str) -> CatalogConfig:
    """Return one catalog. Raises UnknownCatalog, and ImproperlyConfigured when the settings are wrong."""
    known = catalogs()
    if isinstance(alias, str) and alias in known:
        return known[alias]
    shown = f'"{alias}"' if isinstance(alias, str) else sized(alias)
    text = gettext_noop("There is no catalog {catalog} in {setting}. {hint}")
    raise UnknownCatalog(text, catalog=shown, setting=SETTING, hint=did_you_mean(alias, known))


class PerAlias(dict[str, T]):
    """One object per alias and process, built when first asked for, dropped when the settings change.

    Once it is there, asking costs one lookup in a dict. ``dispose`` is called with each object that is dropped.
    """

    def __init__(self, build: Callable[[str], T], dispose: Callable[[T], None] | None = None) -> None:
        super().__init__()
        self._build = build
        self._dispose = dispose
        _made[id(self)] = self

    def __missing__(self, alias: str) -> T:
        with _lock:
            if alias not in self:
                self[alias] = self._build(alias)
            return self[alias]

    def forget(self) -> None:
        """Drop all objects."""
        with _lock:
            dropped = list(self.values())
            self.clear()
        if self._dispose is not None:
            for each in dropped:
                self._dispose(each)


class PerCatalog(PerAlias[T]):
    """The same for each catalog, built from its configuration.

    ``chain_of = PerCatalog(Chain)`` makes ``chain_of["default"]`` the chain of that catalog. Raises UnknownCatalog.
    """

    def __init__(self, build: Callable[[CatalogConfig], T], dispose: Callable[[T], None] | None = None) -> None:
        super().__init__(lambda alias: build(catalog(alias)), dispose)


#: Every PerAlias there is, as long as somebody else holds it.
_made: weakref.WeakValueDictionary[int, PerAlias[Any]] = weakref.WeakValueDictionary()


def forget() -> None:
    """Forget what was parsed and built: the next use reads the settings anew."""
    with _lock:
        _Parsed.catalogs = None
        everything = list(_made.values())
    for each in everything:
        each.forget()


def on_setting_changed(*, setting: str, **_kwargs: Any) -> None:
    """Forget everything when a setting changes that it depends on (``override_settings`` in tests)."""
    if setting in _WATCHED:
        forget()
