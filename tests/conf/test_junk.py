"""Does any junk in the settings end in a complaint or a configuration, and never show a secret?"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback import conf
from catalog_fallback.conf.catalogs import CATALOG_KEYS
from catalog_fallback.conf.guards import BREAKER_KEYS, GUARD_KEYS, RATE_LIMIT_KEYS
from catalog_fallback.conf.sources import SOURCE_KEYS
from tests.conf.adapters import PATH
from tests.conf.making import SECRET, URL, raw_catalog

NAMES = sorted({*CATALOG_KEYS, *SOURCE_KEYS, *BREAKER_KEYS, *RATE_LIMIT_KEYS, *GUARD_KEYS})
TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from([URL, "default", "primary", "http_500", "not_found", "auto", "whsec_", PATH + "Keyed", PATH + "x"]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.binary(max_size=4))
KEYS = st.one_of(st.sampled_from(NAMES), st.sampled_from(["default", "primary"]), SCALARS)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


def is_fine(raw: object) -> None:
    """Each complaint has place, message, remedy and ID; without an error there are catalogs."""
    catalogs, complaints = conf.parse(raw)
    for each in complaints:
        assert each.where.startswith("CATALOG_FALLBACK")
        assert each.message
        assert each.hint
        assert each.id.startswith("catalog_fallback.")
    assert catalogs or any(each.is_error for each in complaints)


@given(JUNK)
def test_junk_as_the_setting(raw: object) -> None:
    """Whatever the setting is, parsing it raises nothing."""
    is_fine(raw)


@given(st.dictionaries(st.sampled_from(sorted(CATALOG_KEYS)), JUNK, max_size=3))
def test_junk_in_a_catalog(keys: dict[str, Any]) -> None:
    """Whatever a catalog's keys hold, parsing them raises nothing."""
    is_fine(raw_catalog(**keys))


@given(st.dictionaries(st.sampled_from(sorted(SOURCE_KEYS)), JUNK, max_size=3))
def test_junk_in_a_source(keys: dict[str, Any]) -> None:
    """Whatever a source's keys hold, parsing them raises nothing."""
    is_fine(raw_catalog(SOURCES={"primary": {"URL": URL, **keys}, "other": {"URL": URL}}))


@given(st.sampled_from(["BREAKER", "RATE_LIMIT"]), st.dictionaries(KEYS, JUNK, max_size=3))
def test_junk_in_a_guard(name: str, keys: dict[Any, Any]) -> None:
    """Whatever BREAKER and RATE_LIMIT hold, parsing them raises nothing."""
    is_fine(raw_catalog(GUARDS={"payment": {name: keys}}))


#: A right setting with a secret wherever one may stand.
FULL: dict[str, Any] = {
    "default": {
        "SOURCES": {
            "primary": {
                "BACKEND": PATH + "Keyed",
                "URL": f"https://api.example.com/items/{{id}}?key={SECRET}",
                "HEADERS": {"X-Key": SECRET},
                "OPTIONS": {"key": SECRET},
            }
        },
        "FALLBACK": {"name": SECRET},
    }
}
SECRET_PLACES = [
    ("SOURCES", "primary", "URL"),
    ("SOURCES", "primary", "HEADERS"),
    ("SOURCES", "primary", "OPTIONS"),
    ("NOTICE_SECRETS",),
]


def test_a_secret_is_in_no_repr() -> None:
    """Configurations may be shown anywhere."""
    catalogs, complaints = conf.parse(FULL)
    assert complaints == []
    assert SECRET not in repr(catalogs)
    assert SECRET not in repr(catalogs["default"].sources[0])


@pytest.mark.parametrize(
    "wrong",
    [
        SECRET,
        [SECRET],
        {SECRET: SECRET},
        {"key": [SECRET]},
        (SECRET, 1),
        f"http://{SECRET}",
        f"https://user:{SECRET}@example.com/{{id}}",
        f"https://example.com/?key={SECRET}",
        f"https://example.com/{{id}}?key={SECRET} #",
        f"whsec_{SECRET}",
        [f"whsec_{SECRET}"],
        [{"secret": SECRET}],
        SECRET.encode(),
        {7: SECRET},
        {"X-Key": f"{SECRET}\n"},
        {f"X Key {SECRET}": ""},
    ],
    ids=range(16),
)
@pytest.mark.parametrize("place", SECRET_PLACES, ids="-".join)
def test_a_secret_is_in_no_complaint(settings: Any, place: tuple[str, ...], wrong: object) -> None:
    """Whatever is wrong about a secret value, the value is not shown: not by checks, not by the runtime."""
    raw = copy.deepcopy(FULL)
    at = raw["default"]
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = wrong
    settings.CATALOG_FALLBACK = raw
    _, complaints = conf.parse(raw)
    assert SECRET not in "".join(map(str, complaints)) + repr(complaints)
    if not complaints:
        assert isinstance(wrong, dict)  # a name of a header, or a value of an option, that is fine
        return
    with pytest.raises(ImproperlyConfigured) as caught:
        conf.catalogs()
    assert SECRET not in str(caught.value)
