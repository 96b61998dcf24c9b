"""What may each catalog key hold, and what is said of anything else?"""

from __future__ import annotations

import base64
import re
import sys
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from catalog_fallback import conf
from tests.conf.making import CATALOG, SECRET, only_complaint, raw_catalog, read

DAY = 86_400
SECRET_24 = "whsec_" + base64.b64encode(bytes(24)).decode()


def a_function(value: str) -> str:
    """Stands for a function of the site."""
    return value


HERE = "tests.conf.test_catalog_keys.a_function"

GOOD: list[tuple[str, Any, Any]] = [
    ("KEY_PREFIX", "my-site:books", "my-site:books"),
    ("KEY_PREFIX", "", ""),
    ("VERSION", 0, 0),
    ("VERSION", "2026.1", "2026.1"),
    ("LANGUAGE", "pt-br", "pt-br"),
    ("LANGUAGE", "", ""),
    ("ID_PATTERN", r"[0-9]{4}", re.compile(r"[0-9]{4}")),
    ("ID_PATTERN", re.compile(r"[a-z]+", re.IGNORECASE), re.compile(r"[a-z]+", re.IGNORECASE)),
    ("ID_PATTERN", None, re.compile(r"[A-Z0-9-]{1,32}")),
    ("NORMALIZE_ID", HERE, a_function),
    ("NORMALIZE_ID", str.upper, str.upper),
    ("NORMALIZE_ID", None, None),
    ("TTL", 0, 0.0),
    ("TTL", 1.5, 1.5),
    ("TTL", timedelta(days=1), float(DAY)),
    ("NEGATIVE_TTL", 60, 60.0),
    ("STALE_IF_ERROR", DAY, float(DAY)),
    ("REFRESH_AHEAD", 0, 0.0),
    ("REFRESH_AHEAD", 0.8, 0.8),
    ("TTL_JITTER", 0.1, 0.1),
    ("BUDGET", 0.001, 0.001),
    ("BUDGET", timedelta(milliseconds=1500), 1.5),
    ("OUTER_TIMEOUT", 60, 60.0),
    ("CONTACT", "catalog@example.com", "catalog@example.com"),
    ("CONTACT", "https://example.com/about", "https://example.com/about"),
    ("CONTACT", "", ""),
    ("MAX_PARALLEL", 1, 1),
    ("FALLBACK", None, None),
    ("FALLBACK", {"name": "?"}, {"name": "?"}),
    ("FALLBACK", HERE, a_function),
    ("FALLBACK", a_function, a_function),
    ("RETRY_LATER", True, True),
    ("STOP_CHECK", "auto", "database"),
    ("STOP_CHECK", "cache", "cache"),
    ("STOP_CHECK", "database", "database"),
    ("ON_DELETED", "stop", "stop"),
    ("NOTICE_SECRETS", [SECRET_24], (SECRET_24,)),
    ("NOTICE_SECRETS", (), ()),
    ("UNAVAILABLE_STATUS", 504, 504),
    ("CDN_TAG_HEADER", None, None),
    ("CDN_TAG_HEADER", "Cache-Tag", "Cache-Tag"),
]


@pytest.mark.parametrize(("key", "value", "expected"), GOOD, ids=[f"{key}-{value!r:.20}" for key, value, _ in GOOD])
def test_a_good_value_is_read(key: str, value: Any, expected: Any) -> None:
    """A value that the contract allows becomes the configuration's, durations as float seconds."""
    found = getattr(read(raw_catalog(**{key: value})), key.lower())
    assert (found, type(found)) == (expected, type(expected))


#: Key, value, how the complaint shows it, and a word of the remedy.
BAD: list[tuple[str, Any, str, str]] = [
    ("KEY_PREFIX", "a b", "'a b'", "without blanks"),
    ("KEY_PREFIX", "a\n", r"'a\n'", "without blanks"),
    ("KEY_PREFIX", "{a}", "'{a}'", "braces"),
    ("KEY_PREFIX", "é", r"'\xe9'", "ASCII"),
    ("KEY_PREFIX", "x" * 65, "'xxx", "up to 64"),
    ("KEY_PREFIX", None, "None", "visible ASCII"),
    ("VERSION", True, "True", "whole number"),
    ("VERSION", -1, "-1", "whole number"),
    ("VERSION", 10**40, "an int of 133 bits", "whole number"),
    ("VERSION", "a:b", "'a:b'", "A-Z"),
    ("VERSION", "", "''", "1 to 32"),
    ("LANGUAGE", None, "None", "language code"),
    ("LANGUAGE", "en us", "'en us'", "language code"),
    ("ID_PATTERN", "[", "'['", "Correct the expression"),
    ("ID_PATTERN", ".*", "'.*'", "{1,32}"),
    ("ID_PATTERN", b"[A-Z]+", "a bytes of length 6", "regular expression"),
    ("ID_PATTERN", re.compile(b"a"), "a Pattern", "regular expression"),
    ("ID_PATTERN", "a{99999999999999999999}", "a{9", "Correct the expression"),
    ("NORMALIZE_ID", "upper", "'upper'", "dotted path"),
    ("NORMALIZE_ID", 3, "3", "callable"),
    ("TTL", -1, "-1", "seconds from 0"),
    ("TTL", True, "True", "seconds"),
    ("TTL", None, "None", "seconds"),
    ("TTL", "60", "'60'", "int, float or timedelta"),
    ("TTL", float("nan"), "nan", "seconds"),
    ("TTL", float("inf"), "inf", "seconds"),
    ("TTL", timedelta(seconds=-1), "datetime.timedelta(days=-1, seconds=86399)", "seconds"),
    ("TTL", 10**400, "an int of 1329 bits", "seconds"),
    ("TTL", [60], "a list of length 1", "seconds"),
    ("NEGATIVE_TTL", -0.5, "-0.5", "seconds from 0"),
    ("STALE_IF_ERROR", None, "None", "seconds from 0"),
    ("REFRESH_AHEAD", 1, "1", "below 1"),
    ("REFRESH_AHEAD", -0.1, "-0.1", "from 0"),
    ("REFRESH_AHEAD", True, "True", "number"),
    ("TTL_JITTER", 1.0, "1.0", "below 1"),
    ("RESPECT_CACHE_CONTROL", 1, "1", "True or False"),
    ("BUDGET", 0, "0", "0.001"),
    ("BUDGET", None, "None", "seconds"),
    ("OUTER_TIMEOUT", 0, "0", "seconds"),
    ("CONTACT", "me", "'me'", "mail address or URL"),
    ("CONTACT", "a@b\r\nX: y", r"'a@b\r\nX: y'", "mail address"),
    ("CONTACT", None, "None", "mail address"),
    ("MAX_PARALLEL", 0, "0", "from 1 to 1000"),
    ("MAX_PARALLEL", True, "True", "whole number"),
    ("MAX_PARALLEL", 1.0, "1.0", "whole number"),
    ("FALLBACK", "nothing", "'nothing'", "dotted path"),
    ("FALLBACK", [], "a list of length 0", "callable"),
    ("RETRY_LATER", "yes", "'yes'", "True or False"),
    ("STOP_CHECK", "always", "'always'", '"auto" or "cache" or "database"'),
    ("STOP_CHECK", ["auto"], "a list of length 1", '"auto"'),
    ("ON_DELETED", None, "None", '"invalidate" or "stop"'),
    ("UNAVAILABLE_STATUS", 500, "500", "503 or 504"),
    ("UNAVAILABLE_STATUS", "503", "'503'", "503 or 504"),
    ("CDN_TAG_HEADER", "X-Tag", "'X-Tag'", '"Surrogate-Key" or "Cache-Tag"'),
    ("CACHE", 1, "1", "alias of CACHES"),
    ("NOTICE_SECRETS", SECRET, "a str of length", "list of secrets"),
    ("GUARDS", [], "a list of length 0", "dict of guard alias"),
    ("ORDER", {"primary"}, "a set of length 1", "list of source aliases"),
    ("TTL", Decimal(60), "a Decimal", "seconds"),
]


@pytest.mark.parametrize(("key", "value", "shown", "remedy"), BAD, ids=[f"{row[0]}-{row[2]:.20}" for row in BAD])
def test_a_bad_value_is_named_with_place_and_remedy(key: str, value: Any, shown: str, remedy: str) -> None:
    """The complaint says where, what is there, and what would be right; the catalog is not used."""
    complaint = only_complaint(raw_catalog(**{key: value}))
    assert complaint.id == "catalog_fallback.E003"
    assert complaint.where == f'{CATALOG}["{key}"]'
    assert shown in complaint.message
    assert remedy in complaint.hint


def test_the_defaults_of_a_minimal_catalog() -> None:
    """URL templates alone are enough to run, with what the contract says as defaults."""
    config = read({"default": {"SOURCES": {"a": {"URL": "https://a.example.com/{id}"}}}})
    assert (config.ttl, config.negative_ttl, config.budget, config.outer_timeout) == (60.0, 0.0, 5.0, 30.0)
    assert (config.cache, config.state_cache, config.key_prefix, config.version) == ("default", "default", "catalog", 1)
    assert [source.alias for source in config.sources] == ["a"]
    assert config.sources == config.all_sources


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("TLL", "TTL"),
        ("ttl", "TTL"),
        ("NEGATIVE-TTL", "NEGATIVE_TTL"),
        ("SOURCE", "SOURCES"),
        ("STALEIFERROR", "STALE_"),
    ],
)
def test_an_unknown_key_is_an_error_with_did_you_mean(key: str, meant: str) -> None:
    """A misspelt key is never ignored."""
    complaint = only_complaint(raw_catalog(**{key: 1}))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E002", f'{CATALOG}["{key}"]')
    assert f'Did you mean "{meant}' in complaint.hint


@pytest.mark.parametrize("key", ["XYZZY", 7, None, ("a",), b"TTL"], ids=repr)
def test_a_key_that_resembles_nothing_lists_the_known_ones(key: object) -> None:
    """Where nothing is close, the known keys are named."""
    raw = raw_catalog()
    raw["default"][key] = 1
    complaint = only_complaint(raw)
    assert complaint.id == "catalog_fallback.E002"
    assert "Known are: SOURCES, ORDER, CACHE" in complaint.hint


@pytest.mark.parametrize(
    ("raw", "check_id", "words"),
    [
        (None, "E001", "is not set"),
        ({}, "E001", "holds no catalog"),
        ({"SOURCES": {"a": {"URL": "https://a.example.com/{id}"}}, "TTL": 60}, "E001", "no alias around them"),
        ([], "E003", "is a list of length 0"),
        (SECRET, "E003", "is a str of length 20"),
        ({"default": None}, "E003", "is None"),
        ({"default": {}}, "E005", "is missing"),
        ({"default": {"SOURCES": {}}}, "E005", "holds no source"),
        ({"default": {"SOURCES": [SECRET]}}, "E003", "is a list of length 1"),
        ({"default": {"SOURCES": {"primary": SECRET}}}, "E003", "is a str of length 20"),
    ],
    ids=[
        "unset",
        "empty",
        "no-alias",
        "list",
        "str",
        "none",
        "no-sources",
        "empty-sources",
        "listed-sources",
        "source-str",
    ],
)
def test_a_wrong_shape_is_one_clear_complaint(raw: object, check_id: str, words: str) -> None:
    """A setting that is no dict of dicts says so, without showing what it holds."""
    complaint = only_complaint(raw)
    assert complaint.id == f"catalog_fallback.{check_id}"
    assert words in complaint.message
    assert complaint.hint
    assert SECRET not in str(complaint)


def test_a_catalog_may_be_named_like_a_key() -> None:
    """Only a dict of sources there means that the alias is missing."""
    catalogs, complaints = conf.parse({"SOURCES": {"SOURCES": {"a": {"URL": "https://a.example.com/{id}"}}}})
    assert (list(catalogs), complaints) == (["SOURCES"], [])


def test_what_normalize_id_needs_is_missed_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the first lookup, whose visitor could do nothing about it."""
    path = "catalog_fallback.sources.identifiers.isbn13"
    assert read(raw_catalog(NORMALIZE_ID=path)).alias == "default"
    monkeypatch.setitem(sys.modules, "stdnum", None)
    complaint = only_complaint(raw_catalog(NORMALIZE_ID=path))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E020", f'{CATALOG}["NORMALIZE_ID"]')
    assert 'pip install "django-catalog-fallback[books]"' in complaint.message


@pytest.mark.parametrize("alias", ["", "a b", "a/b", "é", "x" * 65, "a:b", 1, None, "a\n"], ids=repr)
@pytest.mark.parametrize("kind", ["catalog", "source", "guard"])
def test_an_alias_is_a_slug(alias: Any, kind: str) -> None:
    """Aliases are parts of URLs and of cache keys."""
    raw: dict[Any, Any] = raw_catalog()
    if kind == "catalog":
        raw = {alias: raw["default"]}
    elif kind == "source":
        raw["default"]["SOURCES"] = {
            alias: raw["default"]["SOURCES"]["primary"],
            "other": {"URL": "https://x.org/{id}"},
        }
    else:
        raw["default"]["GUARDS"] = {alias: {}}
    complaint = only_complaint(raw)
    assert complaint.id == "catalog_fallback.E004"
    assert "A-Z, a-z, 0-9, _ and -" in complaint.hint


def test_a_wrong_catalog_does_not_hide_a_right_one() -> None:
    """The parser returns what is right, so that checks can look at it; the runtime uses nothing of it."""
    catalogs, complaints = conf.parse({**raw_catalog(), "other": {"SOURCES": {}}})
    assert list(catalogs) == ["default"]
    assert [each.where for each in complaints] == ['CATALOG_FALLBACK["other"]["SOURCES"]']


@pytest.mark.parametrize(
    ("path", "words", "remedy"),
    [
        ("tests.conf.test_catalog_keys.a_functoin", "cannot be imported (ImportError", 'Did you mean "a_function"?'),
        ("no_such_package.thing", "cannot be imported (ModuleNotFoundError", "Check the spelling"),
        ("tests.conf.test_catalog_keys.zzzz", "cannot be imported", "Check the spelling"),
        ("tests.conf.test_catalog_keys.HERE", "'tests.conf.test_catalog_keys.HERE'", "a callable"),
    ],
    ids=["typo", "no-module", "no-name", "no-callable"],
)
@pytest.mark.parametrize("key", ["NORMALIZE_ID", "FALLBACK"])
def test_a_dotted_path_has_to_lead_to_a_callable(key: str, path: str, words: str, remedy: str) -> None:
    """A path that leads nowhere is named when the settings are read, not in the first outage."""
    complaint = only_complaint(raw_catalog(**{key: path}))
    assert complaint.id == "catalog_fallback.E007"
    assert words in complaint.message
    assert remedy in complaint.hint


@pytest.mark.parametrize(
    "text", [SECRET, "whsec_", "whsec_" + SECRET, "whsec_ab=c", "WHSEC_" + SECRET, 7, None], ids=range(7)
)
def test_a_malformed_notice_secret_is_not_shown(text: object) -> None:
    """A secret that is none is named by its place, type and length only."""
    complaint = only_complaint(raw_catalog(NOTICE_SECRETS=[SECRET_24, text]))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E014", f'{CATALOG}["NOTICE_SECRETS"][1]')
    assert "base64" in complaint.hint
    assert not isinstance(text, str) or text not in complaint.message


@pytest.mark.parametrize("length", [8, 23, 65])
def test_a_notice_secret_of_odd_length_is_a_warning(length: int) -> None:
    """Standard Webhooks asks for 24 to 64 bytes; others work."""
    complaint = only_complaint(raw_catalog(NOTICE_SECRETS=["whsec_" + base64.b64encode(bytes(length)).decode()]))
    assert (complaint.id, complaint.is_error) == ("catalog_fallback.W005", False)
    assert f"{length} bytes" in complaint.message
