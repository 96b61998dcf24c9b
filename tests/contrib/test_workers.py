"""Do real workers, in processes of their own, find the tasks and do them?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import servers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

RABBITMQ = "amqp://guest:guest@127.0.0.1:5672//"
#: What a site's own process does: one task of each kind is sent, and only after the commit.
ENQUEUE = """
import os, django; django.setup()
if os.environ["WORKER_QUEUE"] == "celery":
    import tests.contrib.worker_app
from django.db import transaction
from catalog_fallback.contrib.tasks import enqueue_refresh, enqueue_retry, enqueue_warm
from catalog_fallback.services import find_item
from django.utils import timezone
from catalog_fallback.models import UnansweredItem
assert find_item("BUSY").is_unavailable  # noted for later, and that is now
assert UnansweredItem.objects.filter(attempts=0).update(next_try_at=timezone.now()) == 1
with transaction.atomic():
    assert enqueue_warm(["P001", "NONE"]) == 1
    assert enqueue_refresh(["P002"]) == 1
    enqueue_retry()
"""
#: What it sees afterwards; its own lookups would be misses.
SEEN = """
import json, django; django.setup()
from catalog_fallback.models import UnansweredItem
from catalog_fallback.services import find_item
lookups = [find_item(item_id) for item_id in ("P001", "P002")]
print(json.dumps({"cached": [str(each.cache) for each in lookups], "names": [each.item["name"] for each in lookups],
                  "asked_again": list(UnansweredItem.objects.values_list("item_id", "attempts"))}))
"""


class WorkerSite:
    """A site whose processes share a database file and a Redis."""

    def __init__(self, directory: Path, redis: str, queue: str, broker: str = "") -> None:
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.contrib.worker_site",
            "WORKER_QUEUE": queue,
            "WORKER_BROKER": broker,
            "WORKER_REDIS": redis,
            "WORKER_PREFIX": f"worker-{uuid.uuid4().hex}",
            "WORKER_DATABASE": str(directory / "site.sqlite3"),
        }
        self.run("-m", "django", "migrate", "--verbosity", "0")

    def run(self, *arguments: str) -> str:
        """Run Python to its end; what it printed."""
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def enqueue(self) -> None:
        """Send one task of each kind."""
        self.run("-c", ENQUEUE)

    def check(self) -> None:
        """The workers have done all three."""
        seen = json.loads(self.run("-c", SEEN))
        assert seen == {"cached": ["hit", "hit"], "names": ["Tea", "Coffee"], "asked_again": [["BUSY", 1]]}


@contextmanager
def celery_worker(site: WorkerSite) -> Iterator[Callable[..., None]]:
    """A worker with two forked processes; yields what waits until tasks have succeeded."""
    options = ["--pool", "prefork", "-c", "2", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    command = [sys.executable, "-m", "celery", "-A", "tests.contrib.worker_app", "worker", *options]
    with subprocess.Popen(
        command, env=site.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        log: list[str] = []
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()

        def wait_for_ends(*tasks: str) -> None:
            assert process.stderr is not None
            missing = set(tasks)
            while missing:
                line = process.stderr.readline()
                log.append(line)
                assert line, f"the worker ended before {missing} did:\n{''.join(log)}"
                assert "] raised" not in line, "".join(log)
                missing = {
                    each
                    for each in missing
                    if f"Task catalog_fallback.{each}[" not in line or "] succeeded" not in line
                }

        try:
            yield wait_for_ends
        finally:
            watchdog.cancel()
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.parametrize("broker", ["redis", "rabbitmq"])
def test_a_celery_worker(tmp_path: Path, redis_url: str, needs: Callable[[str, str], Any], broker: str) -> None:
    """It finds the tasks as the how-to page says, and its forked processes share what they fetch with the site."""
    needs("celery", "celery")
    needs("django_redis", "django-redis")
    if broker == "rabbitmq" and not servers.is_listening("127.0.0.1", 5672):
        servers.skip_for_want_of("RabbitMQ", "start one on port 5672")
    site = WorkerSite(tmp_path, redis_url, "celery", redis_url if broker == "redis" else RABBITMQ)
    with celery_worker(site) as wait_for_ends:
        site.enqueue()
        wait_for_ends("warm_items", "refresh_items", "retry_unavailable_items")
    site.check()


def test_a_worker_of_djangos_tasks(tmp_path: Path, redis_url: str, needs: Callable[[str, str], Any]) -> None:
    """Tasks that wait in the database."""
    needs("django_tasks_db", "django-tasks-db")
    needs("django_redis", "django-redis")
    site = WorkerSite(tmp_path, redis_url, "database")
    site.enqueue()
    site.run("-m", "django", "db_worker", "--batch", "--no-startup-delay")
    site.check()
