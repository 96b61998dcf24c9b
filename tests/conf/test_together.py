"""What follows from several settings together, and from the backends that they name?"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.cache.backends.locmem import LocMemCache

from catalog_fallback.configuration import BreakerConfig, GuardConfig, RateLimitConfig
from tests.conf.adapters import PATH, Digits
from tests.conf.making import CATALOG, URL, complaints_of, only_complaint, raw_catalog, raw_source, read, read_source

REDIS = "django.core.cache.backends.redis.RedisCache"


class OurLocMem(LocMemCache):
    """A site's own class over the memory of one process."""


def sources(**by_alias: dict[str, Any]) -> dict[str, Any]:
    """The setting with these sources."""
    return raw_catalog(SOURCES=by_alias)


def digits(**keys: Any) -> dict[str, Any]:
    """A source with the backend that has defaults of its own."""
    return {"BACKEND": PATH + "Digits", **keys}


def test_sources_are_asked_in_the_order_of_the_settings() -> None:
    """Insertion order counts, without ORDER."""
    config = read(sources(b={"URL": URL}, a={"URL": URL}))
    assert [source.alias for source in config.sources] == ["b", "a"]


def test_order_replaces_the_order_of_the_settings() -> None:
    """ORDER is for settings that are merged from several files."""
    config = read(raw_catalog(SOURCES={"b": {"URL": URL}, "a": {"URL": URL}}, ORDER=("a", "b")))
    assert [source.alias for source in config.sources] == ["a", "b"]
    assert read(raw_catalog(ORDER=None)).sources


@pytest.mark.parametrize(
    ("order", "words", "remedy"),
    [
        (["primary", "other", "othre"], "holds 'othre', which is not in SOURCES", 'Did you mean "other"?'),
        (["primary"], "leaves out other", '"ENABLED": False'),
        (["primary", "other", {}], "holds a dict of length 0", "Known are: primary, other."),
    ],
    ids=["unknown", "left-out", "no-text"],
)
def test_an_order_that_is_not_of_these_sources_is_an_error(order: list[Any], words: str, remedy: str) -> None:
    """A source that ORDER forgot would make "every source said so" a lie."""
    complaint = only_complaint(raw_catalog(SOURCES={"primary": {"URL": URL}, "other": {"URL": URL}}, ORDER=order))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E015", f'{CATALOG}["ORDER"]')
    assert words in complaint.message
    assert remedy in complaint.hint


def test_an_order_that_repeats_a_source_is_an_error() -> None:
    """A source is asked once."""
    complaints = complaints_of(raw_catalog(ORDER=["primary", "primary"]))
    assert {(each.id, each.message) for each in complaints} == {
        ("catalog_fallback.E015", 'names "primary" more than once.')
    }


def test_a_disabled_source_is_kept_apart() -> None:
    """It is read and checked, and not asked."""
    config = read(sources(a={"URL": URL, "ENABLED": False}, b={"URL": URL}))
    assert [source.alias for source in config.sources] == ["b"]
    assert [source.alias for source in config.all_sources] == ["a", "b"]


def test_a_catalog_without_an_enabled_source_is_an_error() -> None:
    """Nobody asked is not "every source said that there is no such item"."""
    complaint = only_complaint(raw_source(ENABLED=False))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E018", f'{CATALOG}["SOURCES"]')


def test_a_backend_brings_its_defaults() -> None:
    """Address, pace, NEXT_ON and the rules of its IDs come from the adapter."""
    config = read(sources(a=digits()))
    source = config.sources[0]
    assert source.backend == PATH + "Digits"
    assert source.url == Digits.default_url
    assert source.rate_limit == RateLimitConfig(15, 60.0)
    assert source.next_on == {"not_found", "temporary", "no_name"}
    assert source.breaker == BreakerConfig(window=10.0, open_for=20.0)
    assert source.respect_cache_control is False
    assert config.id_pattern == re.compile(r"[0-9]{8}")
    assert config.clean_id("123") == "00000123"


def test_the_sites_keys_win_over_the_backends_defaults() -> None:
    """Each key is replaced, BREAKER is merged."""
    source = read(
        sources(a=digits(URL=URL, RATE_LIMIT=None, BREAKER={"OPEN_FOR": 5}, RESPECT_CACHE_CONTROL=True))
    ).sources[0]
    assert source.url == URL
    assert source.rate_limit is None
    assert source.breaker == BreakerConfig(window=10.0, open_for=5.0)
    assert source.respect_cache_control is True
    assert read(sources(a=digits(BREAKER=None))).sources[0].breaker is None


def test_a_source_inherits_from_its_catalog() -> None:
    """CONTACT, LANGUAGE and RESPECT_CACHE_CONTROL reach each source; its own key wins."""
    raw = raw_catalog(
        SOURCES={"a": {"URL": URL}, "b": {"URL": URL, "RESPECT_CACHE_CONTROL": True}},
        CONTACT="me@example.com",
        LANGUAGE="de",
        RESPECT_CACHE_CONTROL=False,
    )
    first, second = read(raw).sources
    assert (first.catalog, first.contact, first.language) == ("default", "me@example.com", "de")
    assert (first.respect_cache_control, second.respect_cache_control) == (False, True)


def test_vary_names_are_the_urls_placeholders_and_the_backends() -> None:
    """What the URL cannot do without is required; id and language are no variants."""
    config = read(sources(a=digits(), b=digits(URL="https://b.example.com/{id}?region={region}")))
    assert config.sources[0].vary_names == {"size", "country"}
    assert config.sources[0].required_vary == {"size"}
    assert config.vary_names == {"size", "country", "region"}
    assert config.required_vary == {"size", "region"}


def test_the_identity_costs_nothing() -> None:
    """Where no backend and no setting normalises IDs, the hot path has nothing to call."""
    assert read(raw_source(BACKEND=PATH + "Plain")).normalize_id is None


def test_sources_that_agree_on_ids_need_no_catalog_setting() -> None:
    """Two APIs of the same IDs share pattern and normal form."""
    config = read(sources(a=digits(), b=digits(BACKEND=PATH + "MoreDigits")))
    assert config.normalize_id is Digits.normalize_id


def test_sources_that_disagree_on_ids_are_an_error() -> None:
    """One item, one key, one stop: the catalog has to say which form is the one."""
    raw = sources(a=digits(), b={"URL": URL})
    complaints = complaints_of(raw)
    assert [(each.id, each.where) for each in complaints] == [
        ("catalog_fallback.E009", f'{CATALOG}["ID_PATTERN"]'),
        ("catalog_fallback.E009", f'{CATALOG}["NORMALIZE_ID"]'),
    ]
    assert "a (Digits), b (JSONItemSource)" in complaints[0].message
    raw["default"].update(ID_PATTERN="[0-9]+", NORMALIZE_ID="tests.conf.adapters.Digits.normalize_id")
    assert complaints_of(raw)[0].id == "catalog_fallback.E007"  # a method is not found by a dotted path
    raw["default"]["NORMALIZE_ID"] = str.strip
    assert read(raw).normalize_id is str.strip


def test_a_disabled_source_has_no_say_in_ids() -> None:
    """Only the sources that are asked have to agree."""
    assert read(sources(a=digits(), b={"URL": URL, "ENABLED": False})).normalize_id is Digits.normalize_id


def test_a_backend_with_a_broken_pattern_is_a_complaint() -> None:
    """An adapter's mistake does not break the parser."""
    assert only_complaint(raw_source(BACKEND=PATH + "Unruly")).where == f'{CATALOG}["ID_PATTERN"]'


def test_guards_are_read() -> None:
    """GUARDS has the same keys as a source's guards; dotted paths are imported."""
    raw = raw_catalog(
        GUARDS={
            "plain": {},
            "payment": {
                "BREAKER": {"CONSECUTIVE_FAILURES": 2},
                "RATE_LIMIT": {"CALLS": 1, "PER": 1},
                "MAX_CONCURRENT": 4,
                "COUNTED": [OSError, "requests.Timeout"],
                "FALLBACK": None,
            },
            "list": {"BREAKER": None, "COUNTED": None, "FALLBACK": "builtins.list"},
            "text": {"FALLBACK": "none at all"},
        }
    )
    guards = read(raw).guards
    payment = guards["payment"]
    assert guards["plain"] == GuardConfig("plain")
    assert (payment.has_fallback, payment.fallback, payment.max_concurrent) == (True, None, 4)
    assert payment.breaker == BreakerConfig(consecutive_failures=2)
    assert payment.counted is not None
    assert [each.__name__ for each in payment.counted] == ["OSError", "Timeout"]
    assert (guards["list"].breaker, guards["list"].counted, guards["list"].fallback) == (None, None, list)
    assert guards["text"].fallback == "none at all"


@pytest.mark.parametrize(
    ("key", "value", "check_id"),
    [
        ("COUNTED", OSError, "E003"),
        ("COUNTED", [KeyboardInterrupt], "E007"),
        ("COUNTED", ["requests.Tiemout"], "E007"),
        ("COUNTED", ["requests.get"], "E007"),
        ("COUNTED", [3], "E007"),
        ("FALLBACK", "no.such.thing", "E007"),
        ("MAX_CONCURRENT", 0, "E003"),
        ("ATTEMPTS", 2, "E002"),
    ],
)
def test_a_bad_guard_is_named(key: str, value: object, check_id: str) -> None:
    """A guard is never retried, so it has no ATTEMPTS; BaseException is never counted."""
    complaint = only_complaint(raw_catalog(GUARDS={"payment": {key: value}}))
    assert (complaint.id, complaint.where) == (
        f"catalog_fallback.{check_id}",
        f'{CATALOG}["GUARDS"]["payment"]["{key}"]',
    )


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("django.core.cache.backends.locmem.LocMemCache", "database"),
        ("django.core.cache.backends.dummy.DummyCache", "database"),
        ("tests.conf.test_together.OurLocMem", "database"),
        ("django.core.cache.backends.filebased.FileBasedCache", "cache"),
        ("django.core.cache.backends.db.DatabaseCache", "cache"),
        (REDIS, "cache"),
    ],
)
def test_auto_stop_check_asks_the_database_where_the_cache_is_per_process(
    settings: Any, backend: str, expected: str
) -> None:
    """A publish in one process cannot reach another's memory."""
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "/tmp/x"}}  # noqa: S108  # nothing is opened
    assert read(raw_catalog()).stop_check == expected


def test_the_state_cache_is_the_cache_unless_set(settings: Any) -> None:
    """One alias for both is the rule."""
    settings.CACHES = {alias: {"BACKEND": REDIS, "LOCATION": "redis://x"} for alias in ("default", "items", "state")}
    assert read(raw_catalog(CACHE="items")).state_cache == "items"
    assert read(raw_catalog(CACHE="items", STATE_CACHE="state")).state_cache == "state"


@pytest.mark.parametrize("key", ["CACHE", "STATE_CACHE"])
def test_an_unknown_cache_alias_is_an_error(settings: Any, key: str) -> None:
    """The alias has to be in CACHES."""
    settings.CACHES = {**settings.CACHES, "sessions": settings.CACHES["default"]}
    complaint = only_complaint(raw_catalog(**{key: "sesions"}))
    assert (complaint.id, complaint.where) == ("catalog_fallback.E012", f'{CATALOG}["{key}"]')
    assert "'sesions', which is not in CACHES" in complaint.message
    assert complaint.hint == 'Did you mean "sessions"?'


@pytest.mark.parametrize("backend", ["no.such.Cache", "math.pi", None])
def test_a_cache_backend_that_is_not_there_is_an_error(settings: Any, backend: str | None) -> None:
    """django-redis that is not installed is named before the first lookup."""
    settings.CACHES = {**settings.CACHES, "other": {"BACKEND": backend}}
    complaint = only_complaint(raw_catalog(CACHE="other"))
    assert complaint.id == "catalog_fallback.E012"
    assert "cannot be imported" in complaint.message


@pytest.mark.parametrize(
    ("prefix", "django_prefix", "is_fine"), [("x" * 64, "", True), ("x" * 64, "y" * 20, False), ("x", "y" * 80, False)]
)
def test_a_prefix_that_makes_keys_too_long_for_memcached_is_an_error(
    settings: Any, prefix: str, django_prefix: str, is_fine: bool
) -> None:
    """Django's own prefix and version count."""
    settings.CACHES = {"default": {"BACKEND": REDIS, "LOCATION": "redis://x", "KEY_PREFIX": django_prefix}}
    raw = raw_catalog(KEY_PREFIX=prefix)
    if is_fine:
        assert read(raw).key_prefix == prefix
        return
    complaint = only_complaint(raw)
    assert (complaint.id, complaint.where) == ("catalog_fallback.E013", f'{CATALOG}["KEY_PREFIX"]')
    assert "Memcached takes 250" in complaint.message


def test_source_keys_have_no_effect_on_other_sources() -> None:
    """Each source has its own values."""
    config = read(sources(a={"URL": URL, "TIMEOUT": 9}, b={"URL": URL}))
    assert [source.timeout for source in config.sources] == [9.0, 2.0]
    assert read_source().timeout == 2.0
