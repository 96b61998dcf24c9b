"""What does an error of a cache mean: too slow, not reachable, or just a value that nobody understands?"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable

#: What serializers raise over bytes that they do not understand; the cache itself is well.
VALUE_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    pickle.PickleError,
    zlib.error,
)


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    """The error and what it was raised from: django-redis wraps the real one."""
    for _ in range(5):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def is_timeout(error: Exception) -> bool:
    """Whether somebody waited for the cache in vain."""
    return any(isinstance(each, TimeoutError) or "Timeout" in type(each).__name__ for each in _chain(error))


def is_about_a_value(error: Exception) -> bool:
    """Whether the cache is well, and only this one value cannot be decoded, encoded, or is too large for it."""
    return (isinstance(error, VALUE_ERRORS) or _is_too_large(error)) and not is_connection_trouble(error)


def _is_too_large(error: Exception) -> bool:
    """Memcached takes a megabyte: in the words of the server, as pymemcache passes them on, or by pylibmc's class."""
    return "too large" in str(error) or type(error).__name__ == "TooBig"


def is_connection_trouble(error: Exception) -> bool:
    """Whether the cache did not answer at all."""
    return is_timeout(error) or any(
        isinstance(each, OSError) or "Connection" in type(each).__name__ for each in _chain(error)
    )
