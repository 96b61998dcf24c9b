"""What does ``manage.py check`` say of the settings? Two checks: always, and with ``--deploy``.

Each ID, ``catalog_fallback.E…`` for errors and ``W…`` for warnings, has one meaning and a row in
``docs/reference/checks.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.checks import CheckMessage

from catalog_fallback import conf
from catalog_fallback.checks import caches, deployment, sources, times
from catalog_fallback.conf import Complaint

__all__ = ["check_deployment", "check_settings"]


def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """Say what is wrong or odd in CATALOG_FALLBACK, wherever the site runs."""
    catalogs, complaints = conf.parse(conf.configured())
    configs = list(catalogs.values())
    for check in (sources.always, times.always, caches.always):
        complaints.extend(check(configs))
    return _messages(complaints)


def check_deployment(**_kwargs: Any) -> list[CheckMessage]:
    """Say what is fine on a developer's machine and wrong on a server."""
    catalogs, _ = conf.parse(conf.configured())
    configs = list(catalogs.values())
    return _messages([*caches.deployed(configs), *deployment.deployed(configs)])


def _messages(complaints: Iterable[Complaint]) -> list[CheckMessage]:
    return [CheckMessage(each.level, each.text, hint=each.hint, id=each.id) for each in complaints]
