"""What does a hit of another library look like? Each over Redis, with the item that the catalog server has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import peers
from benchmarks.hit import ITEM_ID
from benchmarks.measuring import Case
from benchmarks.site import DATABASES_OF_PEERS
from benchmarks.surroundings import Surroundings


def _dogpile(around: Surroundings) -> Case:
    return partial(peers.dogpile(around.redis, around.an_item), ITEM_ID)


def _cacheops(around: Surroundings) -> Case:
    from cacheops import cached  # noqa: PLC0415  # optional

    return partial(cached(timeout=3600)(around.an_item), ITEM_ID)


class _Cashews:
    """One turn of an event loop that is already there for each hit: what a task pays, and little else."""

    def __init__(self, around: Surroundings) -> None:
        from cashews import Cache  # noqa: PLC0415  # optional

        self._loop = asyncio.new_event_loop()
        cache = Cache()
        cache.setup(f"{around.redis}/{DATABASES_OF_PEERS['cashews']}")

        @cache(ttl="1h", key="hit:{item_id}")  # type: ignore[untyped-decorator,unused-ignore]
        async def load(item_id: str) -> Any:
            return around.an_item(item_id)

        self._load = load

    def __call__(self) -> object:
        return self._loop.run_until_complete(self._load(ITEM_ID))


def _requests_cache(around: Surroundings) -> Case:
    return partial(peers.requests_cache(around.redis, around.catalog), ITEM_ID)


def _cachecontrol(around: Surroundings) -> Case:
    import requests  # noqa: PLC0415  # only needed by who measures
    from cachecontrol import CacheControl  # noqa: PLC0415  # optional
    from cachecontrol.caches.redis_cache import RedisCache  # noqa: PLC0415

    session: Any = CacheControl(requests.Session(), cache=RedisCache(_server(around, "cachecontrol")))
    session.get(around.item_url(ITEM_ID))
    assert session.get(around.item_url(ITEM_ID)).from_cache
    return lambda: session.get(around.item_url(ITEM_ID)).json()


def _hishel(around: Surroundings) -> Case:
    import requests  # noqa: PLC0415  # only needed by who measures
    from hishel import RedisStorage  # noqa: PLC0415  # optional
    from hishel.requests import CacheAdapter  # noqa: PLC0415

    session = requests.Session()
    session.mount("http://", CacheAdapter(storage=RedisStorage(_server(around, "hishel"))))
    session.get(around.item_url(ITEM_ID))
    assert session.get(around.item_url(ITEM_ID)).headers["X-Hishel-From-Cache"] == "true"
    return lambda: session.get(around.item_url(ITEM_ID)).json()


def _server(around: Surroundings, peer: str) -> Any:
    from redis import Redis  # noqa: PLC0415  # only needed by who measures

    return Redis.from_url(f"{around.redis}/{DATABASES_OF_PEERS[peer]}")


#: Row → the module that has to be installed, and what makes the case.
HITS: dict[str, tuple[str, Callable[[Surroundings], Case]]] = {
    "dogpile.cache, get_or_create": ("dogpile.cache", _dogpile),
    "cacheops, @cached": ("cacheops", _cacheops),
    "cashews, @cache, from a running loop": ("cashews", _Cashews),
    "requests-cache, get and json": ("requests_cache", _requests_cache),
    "CacheControl, get and json": ("cachecontrol", _cachecontrol),
    "hishel, get and json": ("hishel", _hishel),
}
