"""Is a cache key one question's alone, legal in every cache, and beside the item's other keys in a Redis Cluster?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache.backends.base import memcache_key_warnings
from hypothesis import example, given
from hypothesis import strategies as st

from catalog_fallback import conf
from catalog_fallback.cache import EntryCache
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.entry_form import new_token
from tests.conf.making import raw_catalog

ANYTHING = re.compile(r".+", re.DOTALL)
NAMES = frozenset({"size", "region"})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)
IDS = st.one_of(st.text("AZ09", min_size=1, max_size=3), st.text("a:~{}/. -", min_size=1, max_size=4), TEXT)
LANGUAGES = st.one_of(
    st.none(), st.sampled_from(["", "de", "de-AT"]), st.text(st.characters(max_codepoint=127), max_size=64)
)
PRINTABLE = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=10)
VARY = st.dictionaries(st.sampled_from(sorted(NAMES)), st.one_of(st.sampled_from(["a", "b"]), PRINTABLE), max_size=2)
PREFIXES = st.one_of(
    st.sampled_from(["catalog", "a", "a:1", "a:1:1", ""]), st.from_regex(r"[!-z|~]{0,20}", fullmatch=True)
)
VERSIONS = st.one_of(st.integers(0, 3), st.from_regex(r"[A-Za-z0-9._-]{1,8}", fullmatch=True))
ALIASES = st.one_of(st.sampled_from(["default", "d", "books"]), st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True))
#: Site and question: prefix, version, catalog, ID, language, vary.
QUESTIONS = st.tuples(PREFIXES, VERSIONS, ALIASES, IDS, LANGUAGES, VARY)
Question = tuple[str, Any, str, str, str | None, dict[str, str]]


def keys_of(question: Question, token: str = "o" + "0" * 32) -> tuple[str, list[str], str]:
    """The gate's key; those of entry, lease and record; and what the entry says of itself."""
    prefix, version, alias, item_id, language, vary = question
    config = CatalogConfig(alias, (), key_prefix=prefix, version=version, id_pattern=ANYTHING, vary_names=NAMES)
    entries = EntryCache(config)
    query = entries.query(item_id, language, vary)
    return query.gate_key, [query.entry_key, entries.lease_key(query, token), entries.record_key(query)], query.name


def asked(question: Question) -> tuple[Any, ...]:
    """What makes one question differ from another."""
    prefix, version, alias, item_id, language, vary = question
    return prefix, str(version), alias, item_id, language or "", sorted(vary.items())


def usable(question: Question) -> bool:
    """Not one that is refused before there is a key."""
    return not {question[3], question[4], *question[5].values()} & {".", ".."}


def slot_tag(key: str) -> str:
    """What Redis Cluster hashes of a key: what is between its first pair of braces."""
    tag = re.search(r"\{([^}]+)\}", key)
    assert tag is not None
    return tag[1]


@given(IDS.filter(lambda item_id: item_id not in {".", ".."}))
@example("P001")
@example("10.1000/182")
@example("9" * 64)
@example("9" * 65)
@example("a b")
def test_who_publishes_writes_the_gate_that_who_looks_up_reads(item_id: str) -> None:
    """An invalidation knows the ID alone; whatever the question is, its gate is that one."""
    entries = EntryCache(CatalogConfig("default", (), id_pattern=ANYTHING, vary_names=NAMES))
    gates = {entries.query(item_id, language, vary).gate_key for language in ("", "de") for vary in ({}, {"size": "L"})}
    assert gates == {entries.gate_key(item_id)}


@given(QUESTIONS.filter(usable), QUESTIONS.filter(usable))
@example(("a", 1, "d", "X", '["de", [["size", "a"]]]', {}), ("a", 1, "d", "X", "de", {"size": "a"}))
@example(("a", 1, "d", "X", "", {"size": "a"}), ("a", 1, "d", "X", "", {"region": "a"}))
@example(("a:1", 1, "d", "X", None, {}), ("a", "1", "d", "X", None, {}))
@example(("a", 1, "d", "A B", None, {}), ("a", 1, "d", "A:B", None, {}))
def test_e7_two_questions_never_share_a_key(one: Question, other: Question) -> None:
    """Whatever differs, ID, variant, catalog or site, the keys differ; what an entry says of itself differs too."""
    (gate, keys, name), (other_gate, other_keys, other_name) = keys_of(one), keys_of(other)
    assert (gate == other_gate) is (asked(one)[:4] == asked(other)[:4])
    assert (keys == other_keys) is (asked(one) == asked(other))
    assert not {gate, *keys} & {other_gate, *other_keys} or asked(one)[:4] == asked(other)[:4]
    assert (name == other_name) is (asked(one) == asked(other))


@given(QUESTIONS.filter(usable))
def test_e7_every_key_is_legal_in_memcached(question: Question) -> None:
    """No blanks, no controls, nothing beyond ASCII, and of bounded length."""
    gate, keys, _ = keys_of(question)
    for key in (gate, *keys):
        assert list(memcache_key_warnings(f":1:{key}")) == []
        assert key.isascii()


@given(QUESTIONS.filter(usable), LANGUAGES.filter(lambda language: language not in {".", ".."}), VARY)
def test_the_keys_of_an_item_are_in_one_cluster_slot(question: Question, language: str | None, vary: Any) -> None:
    """In every variant: so that gate and entry can be read, and many written, in one command."""
    if not usable((*question[:4], language, vary)):
        return
    gate, keys, _ = keys_of(question)
    _, other_keys, _ = keys_of((*question[:4], language, vary))
    assert {slot_tag(f":1:{key}") for key in (gate, *keys, *other_keys)} == {slot_tag(gate)}


def longest_allowed(settings: Any) -> Iterator[tuple[str, str]]:
    """Pairs of a cache's KEY_PREFIX and a catalog's: the longest that the checks let through, for each share."""
    for site in range(0, 70, 10):
        settings.CACHES = {"default": {"BACKEND": settings.CACHES["default"]["BACKEND"], "KEY_PREFIX": "s" * site}}
        fitting = [n for n in range(65) if not conf.parse(raw_catalog(KEY_PREFIX="p" * n))[1]]
        if fitting:
            yield "s" * site, "p" * max(fitting)


def test_the_longest_settings_that_pass_the_checks_fit_into_memcached(settings: Any) -> None:
    """Django's own prefix and version included, for the longest ID, variant and token."""
    pairs = list(longest_allowed(settings))
    assert len(pairs) > 1
    for site, prefix in pairs:
        language = "l" * 64
        for item_id, vary in (("I" * 64, {}), ("I" * 255, {}), ("I" * 64, {"size": "x"})):
            gate, keys, _ = keys_of((prefix, 1, "default", item_id, language, vary), new_token())
            lengths = [len(f"{site}:1:{key}") for key in (gate, *keys)]
            assert max(lengths) <= 250, (site, prefix, lengths)


def test_invalidating_a_variant_needs_no_variant() -> None:
    """All variants of an ID have one gate."""
    plain = keys_of(("catalog", 1, "default", "P001", None, {}))
    german = keys_of(("catalog", 1, "default", "P001", "de", {"size": "L"}))
    assert plain[0] == german[0]
    assert plain[1] != german[1]


@pytest.mark.parametrize("item_id", ["P 1", "P\n1", "P\x001", "Ä" * 300, "x" * 4000, "{a}", "a:b", "é", "~" + "0" * 32])
def test_an_id_that_is_no_key_becomes_a_digest(item_id: str) -> None:
    """It stays short and plain, and the entry itself names the ID in full."""
    gate, keys, name = keys_of(("catalog", 1, "default", item_id, None, {}))
    assert re.fullmatch(r"catalog:1:1:g:\{default:~[0-9a-f]{32}\}", gate)
    assert item_id in name
    assert all(len(key) < 120 for key in keys)
