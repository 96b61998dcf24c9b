"""How does a source's configuration become a source? And what does the source say of it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from catalog_fallback.conf.complaints import Complaint, Place
from catalog_fallback.configuration import SourceConfig
from catalog_fallback.sources.base import Source

#: Shorter texts are left alone: replacing them would only garble the message.
_SECRET_LENGTH = 4


def backend_of(config: SourceConfig) -> type[Source]:
    """Return the class that a source's configuration names."""
    backend: type[Source] = import_string(config.backend)
    return backend


def build_source(config: SourceConfig) -> Source:
    """Return the source that a configuration describes.

    Raises ImproperlyConfigured, without the values of its OPTIONS, when the backend does not take them.
    """
    try:
        return backend_of(config)(config, **config.options)
    except Exception as error:  # noqa: BLE001  # whatever an adapter raises: the settings do not fit it
        raise ImproperlyConfigured(str(_not_built(config, error))) from None


def source_complaints(config: SourceConfig) -> Iterator[Complaint]:
    """Yield what a source says of its own configuration (``Source.check``), or why there is none."""
    try:
        source = backend_of(config)(config, **config.options)
        sentences = list(source.check())
        source.close()
    except Exception as error:  # noqa: BLE001  # whatever an adapter raises is a complaint
        yield _not_built(config, error)
        return
    for sentence in sentences:
        hint = "See this adapter's page in the documentation."
        yield Place.of_source(config).warning("W006", f"is incomplete: {masked(sentence, config)}", hint)


def _not_built(config: SourceConfig, error: Exception) -> Complaint:
    why = f"{type(error).__name__}: {masked(str(error), config)}"
    return Place.of_source(config).error("E017", f"cannot be made ({why}).", "Correct its OPTIONS and URL.")


def masked(text: str, config: SourceConfig) -> str:
    """Return the text without what an adapter may have quoted in it: the URL, values of OPTIONS and HEADERS."""
    for secret in sorted(_secrets([config.url, config.options, config.headers]), key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def _secrets(value: object) -> Iterator[str]:
    """All texts within a value that are long enough to be a secret."""
    if isinstance(value, str) and len(value) >= _SECRET_LENGTH:
        yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    for each in inner:
        yield from _secrets(each)
