"""Which app do real Celery workers run? As the how-to page shows it."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.contrib.worker_site")

app = Celery("worker_site")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["catalog_fallback.contrib"])
