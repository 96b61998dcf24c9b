"""Are ``Retry-After``, ``Cache-Control`` and ``Age`` read as they are meant, and is garbage harmless?"""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback import headers
from catalog_fallback.headers import Directives

NOW = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT


def wait(value: str, **others: str) -> float | None:
    """Return what a ``Retry-After`` of this value asks for at NOW."""
    return headers.retry_after({"retry-after": value, **others}, NOW)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("007", 7.0),
        ("0.493", 1.0),
        ("1.0", 1.0),
        ("1.0001", 2.0),
        ("3599.5", 3600.0),
        ("3600", 3600.0),
        ("3601", 3600.0),
        ("9999999999", 3600.0),
        ("9" * 20, 3600.0),
        ("9" * 4300, 3600.0),
        ("9" * 5000, None),
    ],
)
def test_seconds(value: str, expected: float | None) -> None:
    """Whole and decimal seconds count, rounded up and clamped to an hour (urllib3#3743, spacetraders#24)."""
    assert wait(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "-5",
        "-1.5",
        "+5",
        "1m0s",
        "120s",
        "1,5",
        "120, 60",
        "1e3",
        "0x10",
        "1_0",
        "६०",
        "²",
        "inf",
        "nan",
        "soon",
        "Mon",
        "Sun, ",
        "Sun, 99 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:61:61 GMT",
    ],
)
def test_nab_596_garbage_is_absent(value: str) -> None:
    """What is neither seconds nor a date counts as absent: no wait in the past, no exception."""
    assert wait(value) is None


def test_absent_header() -> None:
    """No header, no wait."""
    assert headers.retry_after({}, NOW) is None


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:50:37 GMT",
        "Sunday, 06-Nov-94 08:50:37 GMT",
        "Sun Nov  6 08:50:37 1994",
        "Sun, 06 Nov 1994 08:50:37 -0000",
        "Sun, 06 Nov 1994 08:50:37",
        "Sun, 06 Nov 1994 09:50:37 +0100",
    ],
)
def test_vane_170_every_form_of_an_http_date(value: str) -> None:
    """IMF-fixdate, RFC 850 and asctime are understood; a date without a zone is UTC."""
    assert wait(value) == 60.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0),
        ("Sun, 06 Nov 2094 08:00:00 GMT", 3600.0),
        ("Sun, 06 Nov 9999 08:00:00 GMT", 3600.0),
        ("Sun, 06 Nov 10000 08:00:00 GMT", None),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
        ("Sun, 06 Nov 1994 08:50:37 +9999999999", None),
    ],
)
def test_anthropic_sdk_1827_dates_out_of_range(value: str, expected: float | None) -> None:
    """A past date is 0, a far one an hour, an impossible one absent."""
    assert wait(value) == expected


def test_urllib3_1896_dates_do_not_depend_on_the_local_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In New York a date in GMT is still sixty seconds away."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert wait("Sun, 06 Nov 1994 08:50:37 GMT") == 60.0
        assert wait("Sun Nov  6 08:50:37 1994") == 60.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("skew", [-86_400, -3600, 3600, 86_400])
def test_h80_date_skew(skew: int) -> None:
    """A server whose clock is an hour off asks for a minute by its own ``Date``, and gets a minute."""
    server_now = NOW + skew
    value = formatdate(server_now + 60, usegmt=True)
    assert wait(value, date=formatdate(server_now, usegmt=True)) == 60.0


def test_date_that_cannot_be_read_does_not_count() -> None:
    """A ``Date`` that is garbage leaves our own clock."""
    assert wait("Sun, 06 Nov 1994 08:50:37 GMT", date="yesterday") == 60.0


TEXT = st.one_of(
    st.text(max_size=60),
    st.from_regex(r"(Mon|Sunday),? [0-9]{1,3}[ -](Nov|Dec)[ -][0-9]{1,6} [0-9:]{1,9} ?[A-Z+-]{0,5}[0-9]{0,12}"),
    st.text('0123456789.,-+eE =";', max_size=5000),
)


@given(TEXT, TEXT, st.floats(0, 4e9))
def test_pydantic_ai_7073_retry_after_never_raises(value: str, date: str, now: float) -> None:
    """Any header at all gives None or something between 0 and an hour."""
    seconds = headers.retry_after({"retry-after": value, "date": date}, now)
    assert seconds is None or 0.0 <= seconds <= headers.MAX_RETRY_AFTER


# ------------------------------------------------------------------------------------------------ Cache-Control


def told(value: str, **others: str) -> Directives:
    """Return what a ``Cache-Control`` of this value allows."""
    return headers.directives({"cache-control": value, **others})


@pytest.mark.parametrize(
    "value",
    [
        "no-store",
        "NO-STORE",
        "private",
        "no-cache",
        'private="x-user, x-team"',
        'no-cache="set-cookie"',
        "max-age=60, no-store",
        "public,no-store",
        "no-store; max-age=60",
        ' , ,"", no-store',
        'ext="unterminated, no-store',
        'max-age="60"no-store',
        "max-age=60" + ", public" * 1000,
    ],
)
def test_reply_that_may_not_be_kept(value: str) -> None:
    """``no-store``, ``private`` and ``no-cache`` in any spelling mean "not kept"; so does a header that is too long."""
    assert told(value).may_store is False


@pytest.mark.parametrize("value", ["", "public", "max-age=60", 'ext="no-store, private"', "x-no-store", "no-storage"])
def test_reply_that_may_be_kept(value: str) -> None:
    """Other directives, and quoted text that only looks like one, forbid nothing."""
    assert told(value).may_store is True


@pytest.mark.parametrize(
    ("value", "ttl"),
    [
        ("", None),
        ("public", None),
        ("max-age=10", 10.0),
        ("MAX-AGE=10", 10.0),
        ("max-age = 10", 10.0),
        ('max-age="10"', 10.0),
        ("s-maxage=10", 10.0),
        ("max-age=600, s-maxage=10", 10.0),
        ("s-maxage=600, max-age=10", 600.0),
        ("max-age=600, max-age=10", 10.0),
        ("max-age=10, max-age=600", 10.0),
        ("max-age=0", 0.0),
        ("max-age", 0.0),
        ("max-age=", 0.0),
        ("max-age=-1", 0.0),
        ("max-age=1.5", 0.0),
        ("max-age=ten", 0.0),
        ("max-age=1_0", 0.0),
        ("max-age=६०", 0.0),
        ("max-age=10, max-age=ten", 0.0),
        ("max-age=" + "9" * 3000, 10_000_000_000.0),
    ],
    ids=lambda value: str(value)[:30],
)
def test_lifetime(value: str, ttl: float | None) -> None:
    """ASCII digits only; of duplicates the shortest; a bad value is 0; ``s-maxage`` is for caches like ours."""
    assert told(value).ttl == ttl


@pytest.mark.parametrize(
    ("age", "ttl"),
    [
        ("0", 60.0),
        ("20", 40.0),
        ("60", 0.0),
        ("90", 0.0),
        ("x", 60.0),
        ("-5", 60.0),
        ("10, 20", 40.0),
        ("9" * 5000, 0.0),
    ],
    ids=lambda value: str(value)[:10],
)
def test_age_is_taken_off(age: str, ttl: float) -> None:
    """A reply that a proxy has held for a while lives the rest of its life here; garbage counts as new."""
    assert told("max-age=60", age=age).ttl == ttl


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("must-revalidate", False),
        ("Proxy-Revalidate, max-age=5", False),
        ("max-age=5", True),
        ("stale-if-error=600", True),
    ],
)
def test_symfony_35305_never_stale_where_the_upstream_forbids_it(value: str, *, expected: bool) -> None:
    """``must-revalidate`` and ``proxy-revalidate`` forbid serving stale."""
    assert told(value).may_serve_stale is expected


def test_no_headers_no_limits() -> None:
    """Without ``Cache-Control`` the site's own settings are the only ones."""
    assert headers.directives({}) == Directives(may_store=True, ttl=None, may_serve_stale=True)


@given(TEXT, TEXT)
def test_directives_never_raise(value: str, age: str) -> None:
    """Any header at all gives directives, with a lifetime that is a finite number from 0."""
    ttl = told(value, age=age).ttl
    assert ttl is None or 0.0 <= ttl <= 10_000_000_000.0
