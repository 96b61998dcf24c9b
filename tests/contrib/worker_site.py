"""Which site do real workers work for? Settings for processes of their own; what differs comes from the environment."""

from __future__ import annotations

import os

from tests.settings import *  # noqa: F403  # they are the rest

_KIND = os.environ["WORKER_QUEUE"]
_PREFIX = os.environ["WORKER_PREFIX"]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["WORKER_DATABASE"],
        "OPTIONS": {"timeout": 20},
    }
}
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": os.environ["WORKER_REDIS"],
        "KEY_PREFIX": _PREFIX,
    }
}
CATALOG_FALLBACK = {
    "default": {
        "SOURCES": {
            "only": {
                "BACKEND": "catalog_fallback.sources.simulated.SimulatedSource",
                "OPTIONS": {"items": {"P001": "Tea", "P002": "Coffee"}, "failing": {"BUSY": 503}},
            }
        },
        "STOP_CHECK": "cache",
        "RETRY_LATER": True,
    }
}

if _KIND == "celery":
    from kombu import Queue

    CELERY_BROKER_URL = os.environ["WORKER_BROKER"]
    CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
    CELERY_TASK_DEFAULT_QUEUE = _PREFIX
    CELERY_TASK_QUEUES = [Queue(_PREFIX, expires=60)]  # RabbitMQ forgets it by itself
else:
    INSTALLED_APPS = [*INSTALLED_APPS, "django_tasks_db"]  # noqa: F405  # of tests.settings
    TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
