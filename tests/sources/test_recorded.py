"""Do the adapters read what the real catalogs once said? Served over HTTP, and each reply shown to every adapter."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.results import NoReply, Outcome, Reply, Verdict
from catalog_fallback.sources import json_body
from catalog_fallback.sources.base import Source
from tests.loopback import Loopback, reply
from tests.sources import recorded
from tests.sources.contract import FUZZ, VALUES, json_reply, places

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


@functools.cache
def asked_anywhere(adapter: str) -> list[str]:
    """Return, in normal form, every ID of this adapter's kind that some row asks for; its own ones first."""
    source, own, others = recorded.source(adapter), set(), set()
    for case in recorded.cases():
        for typed in case.asked:
            try:
                (own if case.adapter == adapter else others).add(source.normalize_id(typed))
            except InvalidItemID:
                continue
    return [*sorted(own), *sorted(others - own)]


@pytest.mark.parametrize("adapter", recorded.ADAPTERS)
@pytest.mark.parametrize("file", recorded.replies())
def test_no_reply_misleads_an_adapter(adapter: str, file: str) -> None:
    """Anybody's reply, given to any adapter: no exception, no item but the one asked for, no "not found" by chance."""
    source, one = recorded.source(adapter), recorded.replies()[file]
    says_not_found = file.startswith(f"{adapter}/") and recorded.meanings()[file].startswith("not_found")
    finds = set()
    for item_id in asked_anywhere(adapter):
        verdict = source.parse(one, item_id)
        assert verdict.outcome is not Outcome.NOT_FOUND or says_not_found, verdict
        if verdict.outcome is Outcome.FOUND:
            assert verdict.item is not None
            assert verdict.item["id"] == item_id
            finds.add(item_id)
    assert len(finds) <= 1
    assert not finds or file.startswith(f"{adapter}/")


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


def own_documents(adapter: str) -> list[Any]:
    """Return what was recorded of an adapter's API and is JSON."""
    own = (one.body for file, one in recorded.replies().items() if file.startswith(f"{adapter}/"))
    decoded = (json_body.decode(body) for body in own)
    return [document for document in decoded if document is not json_body.INVALID_JSON]


@pytest.mark.parametrize("adapter", recorded.ADAPTERS)
@FUZZ
@given(data=st.data())
def test_mutated_replies_are_never_an_exception(adapter: str, data: st.DataObject) -> None:
    """A recorded document of which one value became anything else is at most the item that was asked for."""
    source = recorded.source(adapter)
    wrapped = [copy.deepcopy(data.draw(st.sampled_from(own_documents(adapter))))]
    container, key = data.draw(st.sampled_from(list(places(wrapped))[:400]))
    container[key] = data.draw(VALUES)
    item_id = data.draw(st.sampled_from(asked_anywhere(adapter)))
    verdict = source.parse(json_reply(wrapped[0], data.draw(st.sampled_from([200, 404, 429]))), item_id)
    assert verdict.outcome is not Outcome.FOUND or (verdict.item or {})["id"] == item_id


def test_every_row_of_ours_has_a_reply() -> None:
    """Which rows could not be run is known: their bodies were not recorded."""
    files = {case.file for case in recorded.cases()}
    assert files <= set(recorded.replies())
    assert {case.adapter for case in recorded.cases()} == set(recorded.ADAPTERS)
