"""How does a Redis Cluster become a cache of Django's? By a client for django-redis that knows the home of each key.

::

    CACHES = {
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": ["redis://node-1:6379", "redis://node-2:6379"],
            "OPTIONS": {
                "CLIENT_CLASS": "catalog_fallback.contrib.redis_cluster.ClusterClient",
                "SOCKET_CONNECT_TIMEOUT": 0.25,
                "SOCKET_TIMEOUT": 0.25,
            },
        },
    }
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django_redis.client import DefaultClient
from django_redis.exceptions import ConnectionInterrupted
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import parse_url
from redis.exceptions import RedisClusterException, RedisError
from redis.retry import Retry

from catalog_fallback.process_lock import ProcessLock

_lock = ProcessLock()
#: One client of redis-py for all threads of the process and all aliases with the same options: it holds the map of the
#: slots and the pools of connections.
_clusters: dict[tuple[tuple[str, ...], str], RedisCluster] = {}


class ClusterClient(DefaultClient):
    """The client of django-redis for a Redis Cluster.

    LOCATION names one node or several; any that answers tells of the others. All reads and writes go to the primaries.
    What redis-py's ``RedisCluster`` takes may stand in ``REDIS_CLIENT_KWARGS``, what its connections take in
    ``CONNECTION_POOL_KWARGS``.
    """

    def get_next_client_index(self, write: bool = True, tried: list[int] | None = None) -> int:
        """Return the only client that there is, however many nodes LOCATION names."""
        return 0

    def connect(self, index: int = 0) -> RedisCluster:
        """Return the client of redis-py that all threads share. Raises what redis-py raises when no node answers."""
        options = self._cluster_options()
        key = (tuple(self._server), repr(sorted(options.items())))
        with _lock.own:
            found = _clusters.get(key)
            if found is None:
                found = _clusters[key] = RedisCluster(**{**_defaults(), **_nodes(self._server), **options})
        return found

    def disconnect(self, index: int = 0, client: RedisCluster | None = None) -> None:
        """Close the connections; the next operation opens new ones."""
        client = self._clients[index] if client is None else client
        if client is not None:
            client.disconnect_connection_pools()

    def get_many(self, keys: Collection[str], version: int | None = None, client: Any = None) -> dict[str, Any]:
        """Return what there is of ``keys``: one MGET a slot, sent to all nodes before the first reply is read."""
        if not keys:
            return {}
        names = {self.make_key(key, version=version): key for key in keys}
        try:
            client = self.get_client(write=False) if client is None else client
            values = client.mget_nonatomic(list(names))
        except (RedisError, RedisClusterException) as error:
            raise ConnectionInterrupted(connection=client) from error
        return {key: self.decode(value) for key, value in zip(names.values(), values, strict=True) if value is not None}

    def _cluster_options(self) -> dict[str, Any]:
        """Return what the site says beside LOCATION."""
        params = self.connection_factory.make_connection_params("")
        del params["url"], params["parser_class"]
        options = self._options
        return {**params, **options.get("CONNECTION_POOL_KWARGS", {}), **options.get("REDIS_CLIENT_KWARGS", {})}


def _defaults() -> dict[str, Any]:
    """Return what holds unless the site says otherwise.

    Nothing is sent twice of its own accord: an ``add`` whose reply was lost would find its own key, and say no.
    Without full coverage the other nodes serve on while one is gone.
    """
    return {"retry": Retry(NoBackoff(), 0), "require_full_coverage": False}


def _nodes(servers: Iterable[str]) -> dict[str, Any]:
    """Return the arguments that name the nodes; user, password and TLS are those of the first URL."""
    first, *others = servers
    places = [parse_url(url) for url in others]
    nodes = [ClusterNode(place.get("host", "localhost"), place.get("port", 6379)) for place in places]
    return {"url": first, "startup_nodes": nodes}
