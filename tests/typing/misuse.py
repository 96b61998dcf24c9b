"""What does the type checker refuse? Each line is an error on purpose: mypy complains about an ignore without one."""

from __future__ import annotations

from collections.abc import Mapping

from catalog_fallback.results import Lookup
from catalog_fallback.services import afind_item, find_item, guarded, invalidating, stop_item, time_budget
from catalog_fallback.sources.base import Reply, Source


@guarded("payments")
def pay(order: int) -> str:
    """Guarded, and still a function of one number."""
    return str(order)


@guarded("prices", fallback=None)
def price(item_id: str) -> int:
    """May return None instead."""
    return len(item_id)


class WrongSource(Source):
    """An adapter that answers with something else."""

    def parse(self, reply: Reply, item_id: str) -> bool:  # type: ignore[override]
        """Not a verdict."""
        return reply.status == 200


def wrong_arguments() -> None:
    """Arguments of another type, or in the wrong place."""
    find_item(9784063879179)  # type: ignore[arg-type]
    find_item("P001", "books")  # type: ignore[call-arg]
    find_item("P001", budget="1s")  # type: ignore[arg-type]
    find_item("P001", vary={"page": 2})  # type: ignore[dict-item]
    find_item("P001", timeout=1)  # type: ignore[call-arg]
    stop_item("P001", event_at="2026-05-03")  # type: ignore[arg-type]
    time_budget("1s")  # type: ignore[arg-type]
    guarded("payments", counted=KeyboardInterrupt)  # type: ignore[arg-type]
    guarded(pay)  # type: ignore[call-overload]
    pay("first")  # type: ignore[arg-type]


def wrong_use_of_results(lookup: Lookup) -> int:
    """What may be None, and what cannot be changed."""
    lookup.item["name"]  # type: ignore[index]
    lookup.state = "found"  # type: ignore[assignment]
    total: int = price("P001")  # type: ignore[assignment]
    return total


def forgotten_await() -> Mapping[str, object]:
    """A coroutine is no lookup."""
    return afind_item("P001").raise_for_state()  # type: ignore[attr-defined, no-any-return]


def forgotten_with() -> None:
    """A context manager is not the thing that it manages."""
    done: bool = invalidating("P001")  # type: ignore[assignment]
    assert done
