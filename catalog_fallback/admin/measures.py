"""How do lengths of time, moments and icons get into the operations page?"""

from __future__ import annotations

from datetime import UTC, datetime

from django.templatetags.static import static
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog_fallback import clock

#: Units of time in seconds, each for what lasts two of them or more.
_LARGE_UNITS = (
    (86_400, gettext_lazy("{number} d")),
    (3600, gettext_lazy("{number} h")),
    (60, gettext_lazy("{number} min")),
)
#: Moments further ahead than this, in seconds, are no moments.
_DAY = 86_400.0
_NO_BREAK = "\u00a0"


def duration(seconds: float) -> str:
    """Return seconds as people read them, number and unit on one line."""
    return _in_words(seconds).replace(" ", _NO_BREAK)


def _in_words(seconds: float) -> str:
    if 0 < seconds < 0.001:
        return _("< 1 ms")
    if 0 < seconds < 1:
        return _("{number} ms").format(number=number_format(round(seconds * 1000)))
    for size, text in _LARGE_UNITS:
        if seconds >= 2 * size:
            return text.format(number=number_format(seconds // size, 0, force_grouping=True))
    is_round = seconds >= 10 or seconds == round(seconds)
    # number_format() cuts off what it does not show.
    places = 0 if is_round else 1
    return _("{number} s").format(number=number_format(round(seconds, places), places))


def age(seconds: float) -> str:
    """Return how long ago a moment was; clocks of two hosts may differ."""
    return duration(max(0.0, round(clock.wall() - seconds)))


def moment(seconds: float | None) -> datetime | None:
    """Return seconds since the epoch as an aware moment; None for what no clock can have said."""
    if not seconds or not 0 < seconds <= clock.wall() + _DAY:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def icon_url(name: str) -> str:
    """Return the address of one of the admin's own icons."""
    return static(f"admin/img/{name}")
