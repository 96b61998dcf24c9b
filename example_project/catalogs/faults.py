"""What can go wrong with a catalog? One row a fault: what people read, and what it makes of a healthy answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from catalogs.answers import Answer


@dataclass(frozen=True, slots=True)
class Healthy:
    """What a healthy catalog would say: about the ID asked for, about one that it lacks, about another one."""

    answer: Answer
    nothing: Answer
    other: Answer


class Fault(NamedTuple):
    """One way of answering."""

    label: str
    apply: Callable[[Healthy], Answer]


_HTML = "text/html; charset=utf-8"


def _page(status: int, text: str, **headers: str) -> Callable[[Healthy], Answer]:
    body = f"<!doctype html><title>{status}</title><p>{text}</p>".encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda healthy: Answer(status, body, _HTML, names)


def _huge(healthy: Healthy) -> Answer:
    return replace(healthy.answer, body=healthy.answer.body + b" " * 2_000_000)


FAULTS: Mapping[str, Fault] = {
    "ok": Fault("healthy", lambda healthy: healthy.answer),
    "slow": Fault("slow: answers after 10 seconds", lambda healthy: replace(healthy.answer, delay=10.0)),
    "drip": Fault("drips: one byte every half second", lambda healthy: replace(healthy.answer, drip=0.5)),
    "down": Fault("down: hangs up without an answer", lambda healthy: replace(healthy.answer, hangs_up=True)),
    "empty": Fault("says that it has no such item", lambda healthy: healthy.nothing),
    "404": Fault("404 page (route gone)", _page(404, "Not Found")),
    "429": Fault("429, asks to be left alone for 5 seconds", _page(429, "Too Many Requests", Retry_After="5")),
    "503": Fault("503 page (overloaded)", _page(503, "Service Unavailable")),
    "garbage": Fault("garbage instead of JSON", lambda healthy: replace(healthy.answer, body=b'{"item": \xff<oops>')),
    "wrong-id": Fault("another item than the one asked for", lambda healthy: healthy.other),
    "huge": Fault("two megabytes", _huge),
    "redirect": Fault("redirects to another place", _page(302, "Moved", Location="/elsewhere")),
}
