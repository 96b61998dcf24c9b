"""Do the adapters read what the real catalogs once said? Served over HTTP, and each reply shown to every adapter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.results import NoReply, Outcome, Reply, Verdict
from catalog_fallback.sources.base import Source
from tests.loopback import Loopback, reply
from tests.sources import recorded

pytestmark = pytest.mark.skipif(not recorded.is_there(), reason=recorded.MISSING)

#: Headers that describe the recorded framing, not the reply.
_FRAMING = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection"})


@pytest.fixture(scope="module")
def upstream() -> Iterator[Loopback]:
    """A server that plays every recorded reply under its file's name."""
    with Loopback() as server:
        for file, one in recorded.replies().items():
            headers = {name: value for name, value in one.headers.items() if name not in _FRAMING}
            server.on(f"/{file}", reply(one.status, one.body, headers))
        yield server


def ask(source: Source, asked: tuple[str, ...]) -> list[Verdict | None]:
    """Return a verdict for each ID, None where the adapter refuses to ask for it."""
    try:
        ids = [source.normalize_id(one) for one in asked]
    except InvalidItemID:
        return [None] * len(asked)
    if len(ids) > 1:
        many: Any = source
        answer = many.fetch_many(ids, "", {}, timeout=10)
        return list(many.parse_many(answer, ids).values())
    answer = source.fetch(ids[0], "", {}, timeout=10)
    assert not isinstance(answer, NoReply), answer
    return [source.parse(answer, ids[0])]


@pytest.mark.parametrize("case", recorded.cases(), ids=str)
def test_recorded_reply_over_the_wire(upstream: Loopback, case: recorded.Case) -> None:
    """Each recorded reply, served by a real server, means what its row says, for the ID as it was typed."""
    source = recorded.source(case.adapter, upstream.url(f"/{case.file}?id={{id}}"))
    try:
        verdicts = ask(source, case.asked)
    finally:
        source.close()
    words = tuple("stop" if one is None else recorded.word(one.outcome, one.reason) for one in verdicts)
    assert words == case.expected, verdicts
    for typed, verdict in zip(case.asked, verdicts, strict=True):
        if verdict is not None and verdict.outcome is Outcome.FOUND:
            assert verdict.item is not None
            assert verdict.item["id"] == source.normalize_id(typed)
            assert verdict.item["name"]


def asked_anywhere(adapter: str) -> list[str]:
    """Return, in normal form, every ID that some row asks this adapter for."""
    source = recorded.source(adapter)
    normal = set()
    for case in recorded.cases():
        for typed in case.asked if case.adapter == adapter else ():
            try:
                normal.add(source.normalize_id(typed))
            except InvalidItemID:
                continue
    return sorted(normal)


@pytest.mark.parametrize("adapter", recorded.ADAPTERS)
@pytest.mark.parametrize("file", recorded.replies())
def test_no_reply_misleads_another_adapter(adapter: str, file: str) -> None:
    """Anybody's reply, given to any adapter: no exception, no item but the one asked for, no "not found" by chance."""
    source, one = recorded.source(adapter), recorded.replies()[file]
    is_own = file.startswith(f"{adapter}/")
    for item_id in asked_anywhere(adapter):
        verdict = source.parse(one, item_id)
        if verdict.outcome is Outcome.FOUND:
            assert verdict.item is not None
            assert verdict.item["id"] == item_id
        assert is_own or verdict.outcome in (Outcome.STOP, Outcome.TEMPORARY), verdict


@pytest.mark.parametrize("adapter", recorded.ADAPTERS)
@pytest.mark.parametrize("file", recorded.replies())
def test_damaged_replies_never_say_not_found(adapter: str, file: str) -> None:
    """Half of a recorded body, or one with a byte changed, is at most the item that was asked for."""
    source, whole = recorded.source(adapter), recorded.replies()[file]
    item_id = asked_anywhere(adapter)[0]
    for body in (whole.body[: len(whole.body) // 2], b"\xff" + whole.body, whole.body.replace(b'"', b"'")):
        if body == whole.body:
            continue
        verdict = source.parse(Reply(whole.status, whole.headers, body), item_id)
        assert verdict.outcome in (Outcome.STOP, Outcome.TEMPORARY)


def test_every_row_of_ours_has_a_reply() -> None:
    """Which rows could not be run is known: their bodies were not recorded."""
    files = {case.file for case in recorded.cases()}
    assert files <= set(recorded.replies())
    assert {case.adapter for case in recorded.cases()} == set(recorded.ADAPTERS)
