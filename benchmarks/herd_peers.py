"""How do others share one call? What a site would write with them, in the process of a herd."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.peers import dogpile
from benchmarks.site import DATABASES_OF_PEERS

Ask = Callable[[str], str]

NAIVE, LOCK = "naive get and set", "django-redis lock"
MUTEX, DISTRIBUTED = "dogpile.cache, mutex in the process", "dogpile.cache, distributed lock"
CASHEWS = "cashews, lock=True"
#: Who shares calls between threads → the module that has to be installed.
OF_THREADS = {NAIVE: "django_redis", LOCK: "django_redis", MUTEX: "dogpile.cache", DISTRIBUTED: "dogpile.cache"}


def ask_of(kind: str, redis: str, url: str) -> Ask:
    """Return what a thread calls with an ID that the slow catalog understands."""
    load = _loader(url)
    if kind in {NAIVE, LOCK}:
        return _by_hand(load, has_lock=kind == LOCK)
    lock = {"distributed_lock": True, "thread_local_lock": False, "lock_timeout": 30}
    get = dogpile(redis, load, **(lock if kind == DISTRIBUTED else {}))
    return lambda item_id: _state(get(item_id))


def cashews(redis: str, url: str) -> Callable[[str], Awaitable[str]]:
    """Return what a task awaits: a decorated function, with a lock for each key. Good for one event loop."""
    import httpx  # noqa: PLC0415  # optional
    from cashews import Cache  # noqa: PLC0415  # optional

    cache = Cache()
    cache.setup(f"{redis}/{DATABASES_OF_PEERS['cashews']}", max_connections=1000)
    client = httpx.AsyncClient(timeout=10, trust_env=False)

    @cache(ttl="1h", key="item:{item_id}", lock=True)  # type: ignore[untyped-decorator,unused-ignore]
    async def load(item_id: str) -> Any:
        return (await client.get(f"{url}/items/{item_id}")).json()["item"]

    async def ask(item_id: str) -> str:
        return _state(await load(item_id))

    return ask


def _loader(url: str) -> Callable[[str], Any]:
    import requests  # noqa: PLC0415  # only needed by who measures
    from requests.adapters import HTTPAdapter  # noqa: PLC0415

    session = requests.Session()
    session.trust_env = False
    session.mount("http://", HTTPAdapter(pool_maxsize=200))
    return lambda item_id: session.get(f"{url}/items/{item_id}", timeout=10).json()["item"]


def _by_hand(load: Callable[[str], Any], *, has_lock: bool) -> Ask:
    """``get``, the call, ``set``; with a lock around the call, and a second look once it is ours."""
    from django.core.cache import caches  # noqa: PLC0415  # needs settings

    cache: Any = caches["herd"]

    def fetch(item_id: str) -> Any:
        item = load(item_id)
        cache.set(item_id, item, 3600)
        return item

    def ask(item_id: str) -> str:
        item = cache.get(item_id)
        if item is None and has_lock:
            with cache.lock(f"lock:{item_id}", timeout=10):
                item = cache.get(item_id) or fetch(item_id)
        return _state(item or fetch(item_id))

    return ask


def _state(item: Any) -> str:
    return "found" if item["id"] else "?"
