"""Which source answers as a test tells it to? One without HTTP, scripted call by call, that notes what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from catalog_fallback.configuration import SourceConfig
from catalog_fallback.results import NoReply, Reply
from catalog_fallback.sources.simulated import SimulatedSource


class FakeSource(SimulatedSource):
    """A :class:`~catalog_fallback.sources.simulated.SimulatedSource` with a script. Make it with :func:`fake_source`.

    ``replies``
        What the first calls end with, one each: a Reply, a NoReply, a status or a reason. Later calls answer as the
        simulated source does.
    ``asked``
        A list of the test's own, to which the ID of each call is added.
    """

    def __init__(
        self,
        config: SourceConfig,
        *,
        replies: Iterable[Reply | NoReply | int | str] = (),
        asked: list[str] | None = None,
        **scenario: Any,
    ) -> None:
        """Take script and scenario from OPTIONS."""
        super().__init__(config, **scenario)
        self._replies = iter(list(replies))
        self.asked = [] if asked is None else asked

    def fetch(self, item_id: str, language: str, vary: Mapping[str, str], *, timeout: float) -> Reply | NoReply:
        """Note the call, and answer as the script says."""
        self.asked.append(item_id)
        scripted = next(self._replies, None)
        if isinstance(scripted, int):
            return Reply(scripted)
        if isinstance(scripted, str):
            return NoReply(scripted)
        return super().fetch(item_id, language, vary, timeout=timeout) if scripted is None else scripted


def fake_source(
    items: Mapping[str, str | Mapping[str, Any]] | None = None,
    *,
    failure: int | str | None = None,
    failing: Mapping[str, int | str] | None = None,
    replies: Iterable[Reply | NoReply | int | str] = (),
    asked: list[str] | None = None,
    **keys: Any,
) -> dict[str, Any]:
    """Return what stands in SOURCES for a fake source; ``keys`` are further source keys (NEXT_ON, …).

    ``items``: ID → name or further fields; all others are not found. ``failure``: what every call ends with, a status
    (503) or a reason ("timeout"); ``failing``: the same for single IDs. ``replies`` and ``asked``: see FakeSource.
    """
    scenario = {"items": items, "failure": failure, "failing": failing, "replies": replies, "asked": asked}
    options = {name: value for name, value in scenario.items() if value is not None}
    return {"BACKEND": f"{FakeSource.__module__}.{FakeSource.__qualname__}", "OPTIONS": options, **keys}
