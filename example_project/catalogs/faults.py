"""What can go wrong with a catalog? One row a fault: what it makes of a healthy answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from catalogs.answers import Answer


@dataclass(frozen=True, slots=True)
class Healthy:
    """What a healthy catalog would say: about the ID asked for, about one that it lacks, about another one."""

    answer: Answer
    nothing: Answer
    other: Answer


Fault = Callable[[Healthy], Answer]

#: Seconds that the catalogs ask to be left alone.
RETRY_AFTER = 5
_HTML = "text/html; charset=utf-8"


def _page(status: int, text: str, **headers: str) -> Fault:
    body = f"<!doctype html><title>{status}</title><p>{text}</p>".encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda healthy: Answer(status, body, _HTML, names)


def _huge(healthy: Healthy) -> Answer:
    return replace(healthy.answer, body=healthy.answer.body + b" " * 2_000_000)


def _cut(healthy: Healthy) -> Answer:
    return replace(healthy.answer, cut_after=len(healthy.answer.body) // 2)


def _unkept(healthy: Healthy) -> Answer:
    return replace(healthy.answer, headers={**healthy.answer.headers, "Cache-Control": "no-store"})


FAULTS: Mapping[str, Fault] = {
    "ok": lambda healthy: healthy.answer,
    "no-store": _unkept,
    "empty": lambda healthy: healthy.nothing,
    "lag": lambda healthy: replace(healthy.answer, delay=0.3),
    "slow": lambda healthy: replace(healthy.answer, delay=10.0),
    "drip": lambda healthy: replace(healthy.answer, drip=0.5),
    "down": lambda healthy: replace(healthy.answer, hangs_up=True),
    "cut": _cut,
    "503": _page(503, "Service Unavailable"),
    "503-wait": _page(503, "Service Unavailable", Retry_After=str(RETRY_AFTER)),
    "429": _page(429, "Too Many Requests", Retry_After=str(RETRY_AFTER)),
    "500": _page(500, "Internal Server Error"),
    "401": _page(401, "Unauthorized"),
    "404": _page(404, "Not Found"),
    "redirect": _page(302, "Moved", Location="/elsewhere"),
    "login": _page(200, "Please sign in to this network"),
    "garbage": lambda healthy: replace(healthy.answer, body=b'{"item": \xff<oops>'),
    "wrong-id": lambda healthy: healthy.other,
    "huge": _huge,
}
