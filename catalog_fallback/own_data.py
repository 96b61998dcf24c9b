"""What has the site itself to say of an item that nobody could answer for? FALLBACK, in plain JSON types.

Whatever else it gives is dropped with an error in the log, which names the catalog and the place and quotes no value:
the lookup stays what it was. So every cache, view and template may rely on an item, wherever it is from.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping

from django.core.serializers.json import DjangoJSONEncoder

from catalog_fallback.calling import without_message
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.plain_json import to_plain
from catalog_fallback.results import Lookup

logger = logging.getLogger("catalog_fallback")

#: Steps that the name of a place in the data has at most, and characters of one of them.
_DEEPEST, _LONGEST = 4, 40


def of(config: CatalogConfig, lookup: Lookup) -> dict[str, object] | None:
    """Return what FALLBACK gives for this lookup, nobody else's object; None when it has nothing, or fails.

    Dates, numbers and translatable texts that Django writes in JSON become what it writes.
    """
    given = config.fallback if isinstance(config.fallback, Mapping) else _called(config, lookup)
    if given is None:
        return None
    try:
        return to_plain(given, DjangoJSONEncoder)
    except Exception:  # noqa: BLE001 - a site's own objects may raise anything; the message could quote the data
        logger.error(
            "FALLBACK of catalog %r is left out: JSON cannot say what it holds at %s.", config.alias, _place(given)
        )
        return None


def _called(config: CatalogConfig, lookup: Lookup) -> Mapping[str, object] | None:
    assert config.fallback is not None
    assert not isinstance(config.fallback, Mapping)
    try:
        given = config.fallback(lookup)
    except Exception as error:
        logger.error("FALLBACK of catalog %r raised.", config.alias, exc_info=without_message(error))
        return None
    if given is None or isinstance(given, Mapping):
        return given
    logger.error("FALLBACK of catalog %r returned %s, no mapping.", config.alias, type(given).__name__)
    if inspect.iscoroutine(given):
        given.close()
    return None


def _place(value: object, path: str = "", steps: int = 0) -> str:
    """Return where the first value is that JSON cannot say, and its type."""
    for name, child in _children(value) if steps < _DEEPEST else ():
        if not isinstance(name, (str, int)):
            return f"{path or 'the top'} (a key of type {type(name).__name__})"
        if not _can_be_said(child):
            shown = ascii(name[:_LONGEST] if isinstance(name, str) else name)
            return _place(child, f"{path}[{shown}]", steps + 1)
    return f"{path or 'the top'} ({type(value).__name__})"


def _children(value: object) -> Iterable[tuple[object, object]]:
    if type(value) is dict:  # a site's own kind of dict may raise here, too
        return value.items()
    return enumerate(value) if type(value) in (list, tuple) else ()  # type: ignore[arg-type]


def _can_be_said(value: object) -> bool:
    try:
        to_plain({"": value}, DjangoJSONEncoder)
    except Exception:  # noqa: BLE001 - see above
        return False
    return True
