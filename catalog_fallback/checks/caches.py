"""Can the caches hold what the site relies on?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.conf import settings

from catalog_fallback.conf import CacheFacts, Complaint, Place, cache_facts
from catalog_fallback.configuration import CatalogConfig

#: A cache that culls has room for gates, entries and guards of a small site from here on.
ENOUGH_ENTRIES = 10_000


def always(catalogs: Iterable[CatalogConfig]) -> Iterator[Complaint]:
    """Complaints about caches, wherever the site runs."""
    for facts, place in _used(catalogs):
        yield from _replicas(facts, place)
        yield from _shared_location(facts, place)


def deployed(catalogs: Iterable[CatalogConfig]) -> Iterator[Complaint]:
    """Complaints about caches that matter where there are several processes."""
    catalogs = list(catalogs)
    for facts, place in _used(catalogs):
        for check in _DEPLOYED:
            yield from check(facts, place)
    for catalog in catalogs:
        yield from _state_in_database(catalog)


def _used(catalogs: Iterable[CatalogConfig]) -> Iterator[tuple[CacheFacts, Place]]:
    """Each cache that a catalog uses, once."""
    aliases = dict.fromkeys(alias for catalog in catalogs for alias in (catalog.cache, catalog.state_cache))
    for facts in filter(None, map(cache_facts, aliases)):
        yield facts, Place("CACHES").at(facts.alias)


def _replicas(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    if facts.is_cluster and facts.reads_replicas:
        yield place.at("OPTIONS").error(
            "E016",
            "let replicas of the cluster be read: an invalidated or stopped item comes back from one that lags.",
            'Remove "read_from_replicas" and "load_balancing_strategy".',
        )
    elif facts.reads_replicas:
        yield place.at("LOCATION").error(
            "E016",
            f"names several servers: {facts.name} writes to the first and reads from the others at random, so that an "
            "invalidated or stopped item comes back from one that lags.",
            "Name one server.",
        )


def _shared_location(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    """Two aliases at one place with different options: the options of one of them win silently."""
    for alias in settings.CACHES:
        other = cache_facts(alias)
        if other is None or alias == facts.alias or other.options == facts.options:
            continue
        if facts.shares_options_with(other):
            yield place.at("LOCATION").warning(
                "W010",
                f'is also that of CACHES["{alias}"], with other OPTIONS: one alias silently gets those of the other '
                "(time-outs, MAX_ENTRIES).",
                "Give both the same OPTIONS, or different LOCATIONs (another database number is enough on Redis).",
            )


def _per_process(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    if facts.is_dummy:
        yield place.warning("W011", "is a DummyCache: nothing is kept, no item, no breaker.", "Use Redis or Memcached.")
    elif facts.is_per_process:
        yield place.warning(
            "W011",
            f"is a {facts.name}: each process has its own, so an invalidation, a breaker and a rate limit in one do "
            "not reach the others.",
            "Use a cache that all processes share (Redis, Memcached), or run a single process.",
        )


def _not_atomic(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    if not facts.is_atomic:
        yield place.warning(
            "W012",
            f"is a {facts.name}, whose add and incr are not atomic: rate limits and breakers miscount, and several "
            "processes may fetch the same item.",
            "Use Redis or Memcached.",
        )
    elif facts.is_unanswered:
        yield place.at("OPTIONS").warning(
            "W012",
            'has "default_noreply": add says yes to everybody, so that rate limits and breakers miscount, and several '
            "processes may fetch the same item.",
            "Remove it.",
        )


def _culling(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    if facts.is_culling and facts.max_entries < ENOUGH_ENTRIES:
        yield (
            place.at("OPTIONS")
            .at("MAX_ENTRIES")
            .warning(
                "W013",
                f"is {facts.max_entries}: above that, {facts.name} throws keys away at random, breakers too.",
                f"Set it to {ENOUGH_ENTRIES} or more, or use Redis.",
            )
        )


def _rolled_back(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    if facts.is_database and any(each.get("ATOMIC_REQUESTS") for each in settings.DATABASES.values()):
        yield place.warning(
            "W014",
            "is a DatabaseCache, and ATOMIC_REQUESTS is on: what a request writes to it, an invalidation too, is seen "
            "by others only after the commit, and never after a rollback.",
            "Use Redis or Memcached, or switch ATOMIC_REQUESTS off.",
        )


def _socket_timeouts(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    missing = facts.missing_socket_timeouts
    if missing:
        example = ", ".join(f'"{name}": 0.25' for name in missing)
        yield place.at("OPTIONS").warning(
            "W015",
            f"has no {' and no '.join(missing)}: while the server hangs, an operation takes as long as the client's "
            "default (seconds, or for ever).",
            f"Add {{{example}}}.",
        )


def _servers_that_stand_in(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    if facts.is_memcached and len(facts.servers) > 1:
        yield place.at("LOCATION").warning(
            "W021",
            "names several Memcached servers: a process that loses one keeps its keys in the others meanwhile, and "
            "goes back to what the first one held, so that an invalidated or stopped item comes back.",
            'Name one server, use Redis, or set STOP_CHECK to "database" to be sure of stops.',
        )


def _mixed_up(facts: CacheFacts, place: Place) -> Iterator[Complaint]:
    if facts.mixes_up_after_fork:
        yield place.warning(
            "W022",
            "is a PyLibMCCache: where a server forks after the first use, processes share a connection and read each "
            "other's answers; lookups notice, the counters of guards do not.",
            "Use PyMemcacheCache or Redis, or silence this if nothing is forked after the first use.",
        )


_DEPLOYED = (
    _per_process,
    _not_atomic,
    _culling,
    _rolled_back,
    _socket_timeouts,
    _servers_that_stand_in,
    _mixed_up,
)


def _state_in_database(catalog: CatalogConfig) -> Iterator[Complaint]:
    facts = cache_facts(catalog.state_cache)
    if facts is not None and facts.is_database:
        yield (
            Place.of_catalog(catalog.alias)
            .at("STATE_CACHE")
            .warning(
                "W020",
                f'is "{catalog.state_cache}", a DatabaseCache: each miss reads and writes rows for the guards, '
                "and those of a request that is rolled back are lost.",
                "Set STATE_CACHE to a Redis or Memcached alias.",
            )
        )
