"""What may each source key hold, and what is said of anything else?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from catalog_fallback.configuration import BreakerConfig, RateLimitConfig
from tests.conf.adapters import PATH
from tests.conf.making import (
    SECRET,
    SOURCE,
    URL,
    complaints_of,
    only_complaint,
    raw_catalog,
    raw_source,
    read,
    read_source,
)


def a_header() -> str:
    """Stands for a site's own function that makes a header."""
    return "x"


GOOD: list[tuple[str, Any, Any]] = [
    ("URL", "http://127.0.0.1:8000/{language}/{id}?k=1", "http://127.0.0.1:8000/{language}/{id}?k=1"),
    ("CONNECT_TIMEOUT", 0.25, 0.25),
    ("TIMEOUT", timedelta(seconds=3), 3.0),
    ("MAX_BYTES", 1, 1),
    ("TRUST_ENV", True, True),
    ("NOT_FOUND_STATUSES", [404, 410, 204], frozenset({204, 404, 410})),
    ("NOT_FOUND_STATUSES", (), frozenset()),
    ("TEMPORARY_REASONS", ["http_500", "cooling_down"], frozenset({"http_500", "cooling_down"})),
    ("NEXT_ON", [], frozenset()),
    ("NEXT_ON", {"not_found", "temporary", "stop"}, frozenset({"not_found", "temporary", "stop"})),
    ("NEXT_ON", ["no_name", "http_404", "timeout"], frozenset({"no_name", "http_404", "timeout"})),
    ("ATTEMPTS", 3, 3),
    ("BREAKER", None, None),
    ("BREAKER", {}, BreakerConfig()),
    ("BREAKER", {"OPEN_FOR": 5}, BreakerConfig(open_for=5.0)),
    ("BREAKER", {"CONSECUTIVE_FAILURES": None}, BreakerConfig(consecutive_failures=None)),
    ("BREAKER", {"FAILURE_RATE": 1}, BreakerConfig(failure_rate=1.0)),
    ("BREAKER", {"OPEN_FOR": 600}, BreakerConfig(open_for=600.0, max_open_for=600.0)),
    ("RATE_LIMIT", None, None),
    ("RATE_LIMIT", {"CALLS": 100, "PER": timedelta(minutes=1)}, RateLimitConfig(100, 60.0)),
    ("MAX_CONCURRENT", 1, 1),
    ("RESPECT_CACHE_CONTROL", False, False),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "expected"), GOOD, ids=[f"{key}-{n}" for n, (key, _, _) in enumerate(GOOD)])
def test_a_good_value_is_read(key: str, value: Any, expected: Any) -> None:
    """A value that the contract allows becomes the configuration's."""
    found = getattr(read_source(**{key: value}), key.lower())
    assert (found, type(found)) == (expected, type(expected))


#: Key, value, ID, how the complaint shows it, and a word of the remedy.
BAD: list[tuple[str, Any, str, str, str]] = [
    ("BACKEND", "JSONItemSource", "E003", "'JSONItemSource'", "dotted path"),
    ("BACKEND", None, "E003", "None", "subclass of"),
    ("BACKEND", "catalog_fallback.json_itme.JSONItemSource", "E007", "ModuleNotFoundError", "Check the spelling"),
    ("BACKEND", PATH + "Kyed", "E007", "ImportError", 'Did you mean "Keyed"?'),
    ("BACKEND", PATH + "NoSource", "E007", "NoSource", "subclass of"),
    ("BACKEND", PATH + "Speechless", "E007", "Speechless", "Define it"),
    ("BACKEND", PATH + "PATH", "E007", "adapters.PATH", "subclass of"),
    ("URL", None, "E003", "None", "{id}"),
    ("URL", "", "E003", "a str of length 0", "{id}"),
    ("URL", "https://api.example.com/items", "E006", "{id}", "https://"),
    ("URL", "ftp://api.example.com/{id}", "E006", "http", "https://"),
    ("URL", "https://{id}.example.com/{id}", "E006", "placeholder", "https://"),
    ("URL", f"https://me:{SECRET}@example.com/{{id}}", "E006", "user name or password", "https://"),
    ("CONNECT_TIMEOUT", 0, "E003", "0", "0.001"),
    ("TIMEOUT", None, "E003", "None", "seconds"),
    ("TIMEOUT", False, "E003", "False", "seconds"),
    ("TIMEOUT", 3601, "E003", "3601", "to 3600"),
    ("MAX_BYTES", 0, "E003", "0", "whole number"),
    ("MAX_BYTES", 1e6, "E003", "1000000.0", "whole number"),
    ("TRUST_ENV", 0, "E003", "0", "True or False"),
    ("HEADERS", f"Authorization: {SECRET}", "E003", "a str of length", "dict of header name"),
    ("HEADERS", {f"Authorization: {SECRET}": ""}, "E003", "a str of length", "X-Api-Key"),
    ("HEADERS", {3: "x"}, "E003", "an int", "X-Api-Key"),
    ("NOT_FOUND_STATUSES", 404, "E003", "404", "list of HTTP statuses"),
    ("NOT_FOUND_STATUSES", "404", "E003", "'404'", "list of HTTP statuses"),
    ("NOT_FOUND_STATUSES", ["404"], "E010", "'404'", "never 401"),
    ("NOT_FOUND_STATUSES", [None], "E010", "None", "never 401"),
    ("TEMPORARY_REASONS", "http_500", "E003", "'http_500'", "list of texts"),
    ("TEMPORARY_REASONS", ["http500"], "E011", "'http500'", 'Did you mean "http_500"?'),
    ("TEMPORARY_REASONS", ["timeout"], "E011", '"timeout"', "stop by default"),
    ("TEMPORARY_REASONS", ["http_503"], "E011", "temporary already", "stop by default"),
    ("TEMPORARY_REASONS", ["empty_result"], "E011", "not_found already", "stop by default"),
    ("TEMPORARY_REASONS", ["other_type"], "E011", "not_found already", "stop by default"),
    ("TEMPORARY_REASONS", ["deadline"], "E011", "always a stop", "stop by default"),
    ("TEMPORARY_REASONS", ["stop"], "E011", "'stop'", "Known are"),
    ("TEMPORARY_REASONS", [["http_500"]], "E011", "a list of length 1", "Known are"),
    ("NEXT_ON", ["found"], "E011", "'found'", "Did you mean"),
    ("NEXT_ON", ["ok"], "E011", "'ok'", "Known are"),
    ("NEXT_ON", ["http_200"], "E011", "'http_200'", "Did you mean"),
    ("NEXT_ON", ["http_0404"], "E011", "'http_0404'", 'Did you mean "http_404"?'),
    ("NEXT_ON", None, "E003", "None", "list of texts"),
    ("ATTEMPTS", 0, "E003", "0", "from 1 to 10"),
    ("BREAKER", False, "E003", "a bool", "None or a dict with keys of CONSECUTIVE_FAILURES"),
    ("RATE_LIMIT", 60, "E003", "an int", "None or a dict with keys of CALLS, PER"),
    ("MAX_CONCURRENT", None, "E003", "None", "whole number"),
    ("ENABLED", "no", "E003", "'no'", "True or False"),
    ("RESPECT_CACHE_CONTROL", None, "E003", "None", "True or False"),
    ("OPTIONS", [SECRET], "E003", "a list of length 1", "keyword arguments"),
    ("OPTIONS", {"kee": SECRET}, "E008", "JSONItemSource: got an unexpected keyword argument 'kee'", ""),
    ("RATELIMIT", 1, "E002", "not a known key", 'Did you mean "RATE_LIMIT"?'),
    ("url", 1, "E002", "not a known key", 'Did you mean "URL"?'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "value", "check_id", "shown", "remedy"), BAD, ids=[f"{row[0]}-{row[1]!r:.30}" for row in BAD]
)
def test_a_bad_value_is_named_with_place_and_remedy(
    key: str, value: Any, check_id: str, shown: str, remedy: str
) -> None:
    """The complaint says where, what is there (no secret), and what would be right."""
    complaint = only_complaint(raw_source(**{key: value}))
    assert complaint.id == f"catalog_fallback.{check_id}"
    assert complaint.where == f'{SOURCE}["{key}"]'
    assert shown in complaint.message
    assert remedy in complaint.hint
    assert SECRET not in str(complaint)


@pytest.mark.parametrize("status", [200, 301, 302, 401, 403, 407, 408, 425, 429, 500, 502, 503, 504, 999, 0, True])
def test_no_status_that_means_could_not_find_out_becomes_not_found(status: int) -> None:
    """NOT_FOUND_STATUSES takes only what an API can say about an item."""
    complaint = only_complaint(raw_source(NOT_FOUND_STATUSES=[404, status]))
    assert complaint.id == "catalog_fallback.E010"
    assert f"holds {status}, which cannot mean" in complaint.message


def test_headers_may_be_texts_and_callables() -> None:
    """A callable is kept as it is: it is asked at each call."""
    given = {"X-Api-Key": SECRET, "X-Now": a_header, "X-Empty": "", "X-Latin": "café"}
    config = read_source(HEADERS=given)
    assert dict(config.headers) == given
    with pytest.raises(TypeError):
        config.headers["X-Other"] = "1"  # type: ignore[index]


@pytest.mark.parametrize("value", [f"{SECRET}\r\nX-Evil: 1", f" {SECRET}", f"{SECRET} ", "\x00", "→", 7, None, b"x"])
def test_a_header_that_cannot_be_sent_is_not_shown(value: object) -> None:
    """Line breaks, outer blanks, other types and other characters are refused, by name of the header only."""
    complaint = only_complaint(raw_source(HEADERS={"X-Key": value}))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E003", f'{SOURCE}["HEADERS"]["X-Key"]')
    assert "line breaks" in complaint.hint
    assert SECRET not in str(complaint)


#: Key of BREAKER or RATE_LIMIT, value, word of the remedy.
INNER: list[tuple[str, dict[str, Any], str, str]] = [
    ("BREAKER", {"CONSECUTIVE_FAILURES": 0}, "E003", "whole number from 1"),
    ("BREAKER", {"CONSECUTIVE_FAILURES": True}, "E003", "whole number from 1"),
    ("BREAKER", {"FAILURE_RATE": 0}, "E003", "above 0"),
    ("BREAKER", {"FAILURE_RATE": 1.1}, "E003", "to 1"),
    ("BREAKER", {"MINIMUM_CALLS": None}, "E003", "whole number"),
    ("BREAKER", {"WINDOW": 0}, "E003", "seconds"),
    ("BREAKER", {"OPEN_FOR": 0}, "E003", "seconds"),
    ("BREAKER", {"HALF_OPEN_CALLS": 0}, "E003", "whole number"),
    ("BREAKER", {"SUCCESSES_TO_CLOSE": 0.5}, "E003", "whole number"),
    ("BREAKER", {"MAX_OPEN_FOR": 29}, "E019", "OPEN_FOR or more"),
    ("BREAKER", {"MAX_OPENFOR": 29}, "E002", 'Did you mean "MAX_OPEN_FOR"?'),
    ("RATE_LIMIT", {"CALLS": 0, "PER": 1}, "E003", "whole number from 1"),
    ("RATE_LIMIT", {"PER": 0, "CALLS": 1}, "E003", "seconds"),
]


@pytest.mark.parametrize(("key", "value", "check_id", "remedy"), INNER, ids=[f"{row[1]}" for row in INNER])
def test_a_bad_value_within_a_dict_is_named_with_its_place(
    key: str, value: dict[str, Any], check_id: str, remedy: str
) -> None:
    """The complaint names the key within BREAKER or RATE_LIMIT."""
    inner = next(iter(value))
    complaint = only_complaint(raw_source(**{key: value}))
    assert (complaint.id, complaint.where) == (f"catalog_fallback.{check_id}", f'{SOURCE}["{key}"]["{inner}"]')
    assert remedy in complaint.hint


@pytest.mark.parametrize(("given", "missing"), [({"CALLS": 5}, "PER"), ({"PER": 5}, "CALLS")])
def test_a_rate_limit_needs_both_keys(given: dict[str, int], missing: str) -> None:
    """Half a limit is none."""
    complaint = only_complaint(raw_source(RATE_LIMIT=given))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E005", f'{SOURCE}["RATE_LIMIT"]["{missing}"]')


def test_opossum_825_zero_is_not_unset() -> None:
    """0 and None are never replaced by a default: they are taken, or refused by name."""
    assert read_source(BREAKER={"CONSECUTIVE_FAILURES": None}).breaker == BreakerConfig(consecutive_failures=None)
    assert read_source(BREAKER=None).breaker is None
    assert read(raw_catalog(TTL=0)).ttl == 0.0
    for key in ("CONNECT_TIMEOUT", "TIMEOUT", "MAX_BYTES", "ATTEMPTS", "MAX_CONCURRENT"):
        for nothing in (0, None, "", False):
            assert only_complaint(raw_source(**{key: nothing})).where == f'{SOURCE}["{key}"]'


def test_a_missing_url_is_named() -> None:
    """An HTTP source needs an address."""
    complaint = only_complaint(raw_catalog(SOURCES={"primary": {}}))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E005", f'{SOURCE}["URL"]')
    assert "https://" in complaint.hint


def test_a_source_without_network_needs_no_url() -> None:
    """A simulated source has no address."""
    assert read(raw_catalog(SOURCES={"primary": {"BACKEND": PATH + "Pretend"}})).sources[0].url is None


def test_a_missing_option_names_the_known_ones() -> None:
    """An adapter's required option is asked for when the settings are read."""
    complaint = only_complaint(raw_source(BACKEND=PATH + "NeedsKey"))
    assert complaint.id == "catalog_fallback.E008"
    assert "NeedsKey: missing a required argument: 'key'" in complaint.message
    assert complaint.hint == "Known are: key."


def test_a_misspelt_option_is_an_error_with_did_you_mean() -> None:
    """OPTIONS are the keyword arguments of the backend."""
    complaint = only_complaint(raw_source(BACKEND=PATH + "Keyed", OPTIONS={"contry": SECRET}))
    assert complaint.hint == 'Did you mean "country"?'
    assert SECRET not in str(complaint)


def test_an_option_whose_name_is_no_text_is_named() -> None:
    """Keyword arguments have names."""
    complaint = only_complaint(raw_source(OPTIONS={7: 1}))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E003", f'{SOURCE}["OPTIONS"]')


def test_a_connect_limit_above_the_calls_limit_is_a_warning() -> None:
    """Only where the site set it: the default of 1 second under a shorter TIMEOUT is fine."""
    complaint = only_complaint(raw_source(CONNECT_TIMEOUT=5))
    assert (complaint.id, complaint.is_error) == ("catalog_fallback.W003", False)
    assert read_source(TIMEOUT=0.5).connect_timeout == 1.0


def test_one_status_that_is_both_not_found_and_temporary_is_a_warning() -> None:
    """The temporary wins, and the site is told."""
    complaint = only_complaint(raw_source(NOT_FOUND_STATUSES=[404], TEMPORARY_REASONS=["http_404"]))
    assert (complaint.id, complaint.is_error) == ("catalog_fallback.W004", False)
    assert "[404]" in complaint.message


def test_all_complaints_of_all_places_come_at_once() -> None:
    """Nobody has to correct the settings one error at a time."""
    raw = raw_catalog(TTL=-1, SOURCES={"primary": {"URL": URL, "TIMEOUT": 0, "BACKEND": "x"}, "other": {"URLL": URL}})

    assert sorted(each.where.removeprefix("CATALOG_FALLBACK") for each in complaints_of(raw)) == [
        '["default"]["SOURCES"]["other"]["URLL"]',
        '["default"]["SOURCES"]["primary"]["BACKEND"]',
        '["default"]["SOURCES"]["primary"]["TIMEOUT"]',
        '["default"]["TTL"]',
    ]
