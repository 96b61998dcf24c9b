"""Is a deletion notice believed only where it is signed, and does what it says happen, in the order in which it did?"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from catalog_fallback import clock, notices, services, signatures, stop_events
from catalog_fallback.models import StoppedItem
from catalog_fallback.notices import MAX_BYTES, MAX_IDS, Applied, Notice, Refused
from catalog_fallback.results import CacheStatus
from tests import servers
from tests.admin.site import SwitchedCache
from tests.posting import OTHER_SECRET, SECRET, URL, payload, post, signed
from tests.sites import SIMULATED, MovableClock

NOW = 1_800_000_000.0
BODY = b'{"type": "item.deleted"}'


@pytest.fixture
def shop(settings: Any, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A site with items that takes notices; its cache can be switched off."""
    items = {f"P{n:03}": f"Item {n}" for n in range(10)}
    settings.CACHES = {"default": {"BACKEND": "tests.admin.site.SwitchedCache", "LOCATION": "notices"}}
    catalog = {
        "SOURCES": {"only": {"BACKEND": SIMULATED, "OPTIONS": {"items": items}}},
        "STOP_CHECK": "cache",
        "NOTICE_SECRETS": [SECRET],
    }
    settings.CATALOG_FALLBACK = {"default": catalog}
    monkeypatch.setattr("catalog_fallback.clock.sleep", lambda seconds: None)

    def configure(**keys: Any) -> None:
        settings.CATALOG_FALLBACK = {"default": {**catalog, **keys}}

    yield configure
    from django.core.cache import caches  # noqa: PLC0415  # the one of these settings

    caches["default"].clear()


def is_kept(item_id: str = "P001") -> bool:
    """Whether a lookup is answered from the cache."""
    return services.find_item(item_id).cache is CacheStatus.HIT


# ------------------------------------------------------------------------------------------------ signatures


def complaint(body: bytes = BODY, secrets: tuple[str, ...] = (SECRET,), now: float = NOW, **headers: str) -> str | None:
    """What the verifier says to a body that was signed right, with these headers changed."""
    names = {"id": "Webhook-Id", "at": "Webhook-Timestamp", "signature": "Webhook-Signature"}
    changed = {names[name]: value for name, value in headers.items()}
    return signatures.complaint(secrets, {**signatures.signed_headers(SECRET, "m", BODY, NOW), **changed}, body, now)


def test_a_signed_body_is_believed() -> None:
    """The secret, the ID, the moment and the bytes fit together."""
    assert complaint() is None


@pytest.mark.parametrize("secrets", [(OTHER_SECRET, SECRET), (SECRET, OTHER_SECRET)], ids=["old-first", "new-first"])
def test_several_secrets(secrets: tuple[str, ...]) -> None:
    """While one replaces the other, both are good."""
    assert complaint(secrets=secrets) is None


@pytest.mark.parametrize(
    "order", ["{other} {right}", "{right} {other}", "v2,x v1, {right}  v1a,x", "{right},x {right}"]
)
def test_several_signatures(order: str) -> None:
    """One right one among wrong, foreign and broken ones is enough."""
    right = signatures.signed_headers(SECRET, "m", BODY, NOW)["Webhook-Signature"]
    other = signatures.signed_headers(OTHER_SECRET, "m", BODY, NOW)["Webhook-Signature"]
    assert complaint(signature=order.format(right=right, other=other)) is None


@pytest.mark.parametrize("secrets", [(), (OTHER_SECRET,)], ids=["none", "another"])
def test_without_the_secret_nothing_is_believed(secrets: tuple[str, ...]) -> None:
    """No secret is no way in."""
    assert complaint(secrets=secrets) == "no signature is right"


@pytest.mark.parametrize("name", ["id", "at", "signature"])
def test_all_three_headers_are_needed(name: str) -> None:
    """An empty one is none."""
    assert complaint(**{name: ""}) == "it is not signed"


@pytest.mark.parametrize(
    "headers",
    [{"id": "other"}, {"at": str(int(NOW) + 1)}, {"signature": "v1,AAAA"}, {"signature": "v1"}],
    ids=["id", "moment", "signature", "no-signature"],
)
def test_everything_is_under_the_signature(headers: dict[str, str]) -> None:
    """Neither ID nor moment can be changed."""
    assert complaint(**headers) == "no signature is right"


def test_the_bytes_count_and_not_their_meaning() -> None:
    """The same JSON, written differently, is another body."""
    assert complaint(body=BODY.replace(b" ", b"")) == "no signature is right"


@pytest.mark.parametrize(
    ("ahead", "is_fresh"),
    [(-301, False), (-299, True), (299, True), (301, False)],
    ids=["old", "young", "fast", "ahead"],
)
def test_the_replay_window(ahead: int, is_fresh: bool) -> None:
    """Five minutes, either way."""
    assert (complaint(now=NOW - ahead) is None) is is_fresh


def test_the_age_is_told_only_to_those_who_sign() -> None:
    """A stranger learns nothing about our clock."""
    assert complaint(now=NOW + 1000) == "its timestamp is -1000 s from now"
    assert complaint(now=NOW + 1000, signature="v1,AAAA") == "no signature is right"


@pytest.mark.parametrize("at", ["٣", "1e9", "-1", "1_0", "9" * 5000, "now", "1.5", " 1"])
def test_garbage_as_a_moment(at: str) -> None:
    """Only ASCII digits are a moment, and no more of them than one has."""
    assert complaint(at=at) == "its timestamp is no whole number of seconds"


@given(st.text(), st.text(), st.text(), st.binary())
def test_whatever_comes_is_answered(message_id: str, at: str, signature: str, body: bytes) -> None:
    """Nothing that a stranger sends is believed, and nothing breaks the verifier."""
    headers = {"Webhook-Id": message_id, "Webhook-Timestamp": at, "Webhook-Signature": signature}
    assert signatures.complaint((SECRET,), headers, body, NOW) is not None


def test_an_id_that_is_not_ascii() -> None:
    """Header bytes come in the guise of Latin-1, and are signed as they went over the line."""
    headers = signatures.signed_headers(SECRET, "nötice", BODY, NOW)
    headers["Webhook-Id"] = "nötice".encode().decode("latin-1")
    assert signatures.complaint((SECRET,), headers, BODY, NOW) is None


class TestInterop:
    """The library of those who wrote the specification, as the other side."""

    @pytest.fixture
    def library(self) -> Any:
        """The ``standardwebhooks`` package."""
        if "standardwebhooks" not in sys.modules:
            try:
                import standardwebhooks  # noqa: F401, PLC0415  # may be missing
            except ImportError:
                servers.skip_for_want_of("standardwebhooks", "pip install standardwebhooks")
        return sys.modules["standardwebhooks"]

    @pytest.mark.parametrize("message_id", ["msg_2KWPBgLlAfxdpx2AI54pPJ85f4W", "a.b"])
    def test_they_send(self, shop: Any, library: Any, message_id: str) -> None:
        """What they sign, we take."""
        services.find_item("P001")
        body = payload()
        now = datetime.now(UTC)
        headers = {
            "webhook-id": message_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": library.Webhook(SECRET).sign(message_id, now, body.decode()),
        }
        assert post(body, headers).status_code == 200
        assert not is_kept()

    def test_we_send(self, library: Any) -> None:
        """What we sign, they take; what is not signed right, they refuse."""
        body = payload()
        hook = library.Webhook(SECRET)
        assert hook.verify(body, signed(body)) == json.loads(body)
        for wrong in (signed(body, OTHER_SECRET), signed(body, sent_ago=400)):
            with pytest.raises(library.WebhookVerificationError):
                hook.verify(body, wrong)


# ------------------------------------------------------------------------------------------------ what it says


def test_what_a_notice_says() -> None:
    """Type, moment, IDs, reason."""
    said = notices.parse(payload("item.stopped", ["P001", "P002"], at="2024-02-29T12:00:00.5+01:00", reason="legal"))
    moment = datetime(2024, 2, 29, 11, 0, 0, 500_000, UTC)
    assert said == Notice("item.stopped", moment, ["P001", "P002"], "legal", "")


@pytest.mark.parametrize(
    ("reason", "kept", "note"),
    [
        pytest.param(None, "withdrawn", "", id="none"),
        pytest.param("quality", "quality", "", id="known"),
        pytest.param("recall", "other", "Reason in the notice: 'recall'", id="unknown"),
        pytest.param("\ud800\0", "other", r"Reason in the notice: '\ud800\x00'", id="no-text"),
        pytest.param(7, "other", "Reason in the notice: 7", id="number"),
        pytest.param(["legal"], "other", "Reason in the notice: ['legal']", id="list"),
    ],
)
def test_the_reason_of_a_stop(reason: Any, kept: str, note: str) -> None:
    """A reason that nobody knows is no reason to go on showing the item."""
    body = json.dumps(
        {"type": "item.stopped", "timestamp": "2024-01-01T00:00:00Z", "data": {"id": "P", "reason": reason}}
    )
    said = notices.parse(body.encode())
    if isinstance(reason, str) and "\ud800" in reason:
        assert isinstance(said, Refused)  # half a character is no JSON text
    else:
        assert isinstance(said, Notice)
        assert (said.reason, said.note) == (kept, note)


GOOD = {"type": "item.deleted", "timestamp": "2024-01-01T00:00:00Z", "data": {"id": "P001"}}


def body_with(**changes: Any) -> bytes:
    """A good body with some members changed; None takes one away."""
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value is not None}).encode()


MALFORMED = {
    "empty": b"",
    "no-json": b"{",
    "no-utf-8": b'{"type": "\xff"}',
    "deep": b"[" * 100_000,
    "huge-number": b'{"type": ' + b"9" * 10_000 + b"}",
    "list": b"[]",
    "null": b"null",
    "no-type": body_with(type=None),
    "type-is-no-text": body_with(type=7),
    "no-timestamp": body_with(timestamp=None),
    "timestamp-is-a-number": body_with(timestamp=1_700_000_000),
    "timestamp-without-zone": body_with(timestamp="2024-01-01T00:00:00"),
    "timestamp-is-a-day": body_with(timestamp="2024-01-01"),
    "timestamp-before-time": body_with(timestamp="0001-01-01T00:00:00+14:00"),
    "timestamp-after-time": body_with(timestamp="9999-12-31T23:59:59-14:00"),
    "timestamp-before-1970": body_with(timestamp="1969-12-31T23:59:59Z"),
    "no-data": body_with(data=None),
    "data-is-a-list": body_with(data=[]),
    "no-id": body_with(data={}),
    "id-and-ids": body_with(data={"id": "P001", "ids": ["P001"]}),
    "id-is-a-number": body_with(data={"id": 7}),
    "id-is-null": body_with(data={"id": None}),
    "ids-is-a-text": body_with(data={"ids": "P001"}),
    "no-ids": body_with(data={"ids": []}),
    "ids-are-numbers": body_with(data={"ids": ["P001", 7]}),
    "too-many-ids": body_with(data={"ids": ["P001"] * (MAX_IDS + 1)}),
    "two-types": b'{"type": "item.deleted", "type": "x", "timestamp": "2024-01-01T00:00:00Z", "data": {"id": "P001"}}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_what_cannot_be_understood_is_refused(body: bytes) -> None:
    """With a sentence that says what is expected."""
    said = notices.parse(body)
    assert isinstance(said, Refused)
    assert said.problem == "malformed_notice"
    assert said.detail


def test_a_moment_ahead_is_now(moving: MovableClock) -> None:
    """A fast clock must not outdo what really happens next."""
    before = timezone.now()
    said = notices.parse(body_with(timestamp="2999-01-01T00:00:00Z"))
    assert isinstance(said, Notice)
    assert before <= said.event_at <= timezone.now()


#: By how many seconds the sender's clock is before ours; then events in the order of their arrival, each with the age
#: that the sender sees; and whether the item is stopped afterwards.
SKEWS: dict[str, tuple[int, list[tuple[str, int]], bool]] = {
    "our clock is slow, a later stop": (120, [("item.released", 60), ("item.stopped", 10)], True),
    "our clock is slow, a late release": (120, [("item.stopped", 10), ("item.released", 60)], True),
    "the sender is fast, an older release comes late": (60, [("item.stopped", 0), ("item.released", 5)], True),
    "the sender is fast, a release comes next": (60, [("item.stopped", 5), ("item.released", 0)], False),
    "the sender is slow, an older release comes late": (-200, [("item.stopped", 0), ("item.released", 5)], True),
}


@pytest.mark.parametrize("case", SKEWS)
def test_clocks_that_differ_change_no_order(shop: Any, moving: MovableClock, case: str) -> None:
    """The sender's moments are compared with each other, as far as a signature's moment may be from ours."""
    ahead, events, is_stopped = SKEWS[case]
    for kind, age in events:
        said = datetime.fromtimestamp(clock.wall() + ahead - age, UTC).isoformat()
        assert isinstance(notices.take_unsigned(body_with(type=kind, timestamp=said)), Applied)
        moving.move(1)
    assert services.find_item("P001").is_stopped is is_stopped


def test_as_many_ids_as_are_allowed_fit_into_a_body() -> None:
    """Each as long as the stop list takes, however it is written."""
    body = json.dumps({"data": {"ids": ["€" * 60] * MAX_IDS}}).encode()
    longest = json.dumps({"data": {"ids": ["x" * 255] * MAX_IDS}}).encode()
    assert max(len(body), len(longest)) < MAX_BYTES


# ------------------------------------------------------------------------------------------------ what it does


def test_deleted_is_forgotten(shop: Any) -> None:
    """The next lookup asks the sources; other items stay."""
    services.find_items(["P001", "P002"])
    reply = post(payload())
    assert (reply.status_code, json.loads(reply.content)) == (200, {"status": "applied", "items": 1})
    assert (is_kept("P001"), is_kept("P002")) == (False, True)
    assert not StoppedItem.objects.exists()


def test_on_deleted_decides(shop: Any) -> None:
    """With ON_DELETED = "stop" a deleted item is stopped."""
    shop(ON_DELETED="stop")
    assert post(payload(reason="quality")).status_code == 200
    row = StoppedItem.objects.get()
    assert (row.item_id, row.origin, row.reason, row.is_active) == ("P001", "notice", "quality", True)
    assert services.find_item("P001").is_stopped


@pytest.mark.parametrize("on_deleted", ["invalidate", "stop"])
def test_updated_is_forgotten_and_never_stopped(shop: Any, on_deleted: str) -> None:
    """Whatever ON_DELETED says."""
    shop(ON_DELETED=on_deleted)
    services.find_item("P001")
    assert post(payload("item.updated")).status_code == 200
    assert not is_kept()
    assert not StoppedItem.objects.exists()


def test_stopped_and_released(shop: Any) -> None:
    """The item goes and comes back; the row stays and says why."""
    assert post(payload("item.stopped", ["P001", "P002", "P001"], reason="recall")).status_code == 200
    assert services.find_item("P001").is_stopped
    row = StoppedItem.objects.get(item_id="P001")
    assert (row.reason, row.note) == ("other", "Reason in the notice: 'recall'")
    reply = post(payload("item.released", "P001"))
    assert (reply.status_code, json.loads(reply.content)["items"]) == (200, 1)
    assert services.find_item("P001").is_found
    assert services.find_item("P002").is_stopped


def test_an_unknown_type_is_taken_and_ignored(shop: Any) -> None:
    """Whatever else it says: senders invent new types."""
    services.find_item("P001")
    reply = post(b'{"type": "price.changed", "data": 7}')
    assert (reply.status_code, json.loads(reply.content)) == (200, {"status": "ignored", "items": 0})
    assert is_kept()


def test_the_order_of_the_events_counts_and_not_that_of_their_arrival(shop: Any) -> None:
    """A stop that arrives after the later release changes nothing."""
    happened_at = timezone.now() - timedelta(minutes=3)
    assert post(payload("item.released", at=happened_at + timedelta(minutes=1))).status_code == 200
    assert post(payload("item.stopped", at=happened_at)).status_code == 200
    assert services.find_item("P001").is_found
    assert post(payload("item.stopped", at=happened_at + timedelta(minutes=2))).status_code == 200
    assert services.find_item("P001").is_stopped


@pytest.mark.parametrize("type_", list(notices.TYPES))
def test_duplicates_do_no_harm(shop: Any, type_: str) -> None:
    """The same notice, three times, is the same notice."""
    body = payload(type_)
    assert [post(body).status_code for _ in range(3)] == [200, 200, 200]
    assert StoppedItem.objects.count() == (1 if type_ in {"item.stopped", "item.released"} else 0)


def test_ids_that_cannot_be_any_do_not_hold_the_others_up(shop: Any) -> None:
    """The others are done, and the sender learns of the mistake."""
    reply = post(payload("item.stopped", ["P001", "no good", "..", "P002"]))
    told = json.loads(reply.content)
    assert (reply.status_code, told["items"], told["invalid_ids"]) == (400, 2, ["no good", ".."])
    assert services.find_item("P001").is_stopped
    assert services.find_item("P002").is_stopped


def test_only_impossible_ids(shop: Any) -> None:
    """Nothing was done."""
    told = json.loads(post(payload(ids="no good")).content)
    assert (told["status"], told["items"]) == (400, 0)


def test_an_id_that_is_too_long_to_be_stopped(shop: Any) -> None:
    """The catalog may have such IDs, the stop list cannot hold them."""
    shop(ID_PATTERN="x+")
    assert post(payload("item.stopped", "x" * 256)).status_code == 400
    assert post(payload("item.updated", "x" * 256)).status_code == 200


def test_an_id_that_cannot_be_stored_keeps_none_of_the_others_back(shop: Any) -> None:
    """Too long for the stop list, or with a NUL that no database takes: the sender is told, the others are stopped."""
    shop(ID_PATTERN=r"[\x00x]+")
    reply = post(payload("item.stopped", ["x", "x" * 256, "\x00"]))
    assert (reply.status_code, json.loads(reply.content)["items"]) == (400, 1)
    assert services.find_item("x").is_stopped


def test_ten_thousand_ids(shop: Any) -> None:
    """As many as one notice may name."""
    reply = post(payload("item.updated", [f"P{n}" for n in range(MAX_IDS)]))
    assert (reply.status_code, json.loads(reply.content)["items"]) == (200, MAX_IDS)


@pytest.mark.parametrize("type_", ["item.deleted", "item.stopped", "item.released", "item.updated"])
def test_a_cache_that_is_off_is_told_and_the_retry_succeeds(
    shop: Any, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sender has to send it again; then it is done, the same notice as before."""
    services.find_item("P001")
    if type_ == "item.released":
        services.stop_item("P001", event_at=timezone.now() - timedelta(minutes=1))
    body = payload(type_)
    with monkeypatch.context() as off:
        off.setattr(SwitchedCache, "is_on", False)
        reply = post(body)
        assert (reply.status_code, int(reply["Retry-After"]) >= 1) == (503, True)
    assert post(body).status_code == 200
    lookup = services.find_item("P001")
    assert (lookup.is_stopped, lookup.cache) == (type_ == "item.stopped", CacheStatus.MISS)
    assert not StoppedItem.objects.filter(published_at=None).exists()


def test_a_database_that_is_off_is_told_and_the_retry_succeeds(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop could not be written."""
    body = payload("item.stopped")

    def off(*args: Any) -> Any:
        raise OperationalError("no database")

    with monkeypatch.context() as broken:
        broken.setattr(stop_events, "_write", off)
        assert post(body).status_code == 503
    assert post(body).status_code == 200
    assert services.find_item("P001").is_stopped


def test_a_stop_list_that_cannot_be_read_is_told(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publish without it could take a mark away."""

    def off(*args: Any) -> Any:
        raise OperationalError("no database")

    monkeypatch.setattr("catalog_fallback.publishing.rows_of", off)
    assert post(payload()).status_code == 503


def test_another_order_of_secrets_on_the_site(shop: Any) -> None:
    """Rotation: the old secret is good until it is taken out of the list."""
    shop(NOTICE_SECRETS=[OTHER_SECRET, SECRET])
    body = payload()
    assert [post(body, signed(body, each)).status_code for each in (SECRET, OTHER_SECRET)] == [200, 200]
    shop(NOTICE_SECRETS=[OTHER_SECRET])
    assert [post(body, signed(body, each)).status_code for each in (SECRET, OTHER_SECRET)] == [403, 200]


def test_without_secrets_nothing_is_taken(shop: Any) -> None:
    """A deploy check says so (W019)."""
    shop(NOTICE_SECRETS=[])
    assert post(payload()).status_code == 403


def test_what_the_log_says_of_a_refused_notice(shop: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Which catalog and why: no header, no body, no secret."""
    body = payload(ids="P666")
    assert post(body, signed(body, OTHER_SECRET)).status_code == 403
    ours = [record.getMessage() for record in caplog.records if record.name == "catalog_fallback"]
    assert ours == ["Catalog 'default': a deletion notice was refused: no signature is right."]


def test_applied_says_whether_it_was_ignored() -> None:
    """For callers without HTTP."""
    assert Applied("price.changed").is_ignored
    assert not Applied("item.deleted", 1).is_ignored


@pytest.mark.usefixtures("shop")
class TestOdd:
    """Whatever comes in, signed or not, no answer is a 500, a 410 or a redirect."""

    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=10,
    )
    nearly = st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from([*notices.TYPES, "x"]) | json_values,
            "timestamp": st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat) | json_values,
            "data": st.fixed_dictionaries(
                {},
                optional={
                    "id": st.text(max_size=40) | json_values,
                    "ids": st.lists(st.text(max_size=40) | st.just("P001"), max_size=5) | json_values,
                    "reason": st.sampled_from(["legal", "x"]) | json_values,
                },
            )
            | json_values,
        },
    )
    relaxed = hypothesis_settings(
        max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )

    @relaxed
    @given(nearly | json_values, st.booleans())
    def test_odd_notices(self, value: Any, is_signed: bool) -> None:
        """JSON that is nearly right, or not at all."""
        body = json.dumps(value).encode()
        reply = post(body, signed(body) if is_signed else {})
        assert reply.status_code in ({200, 400} if is_signed else {403})

    @relaxed
    @given(
        st.binary(max_size=200),
        st.sampled_from(["application/json", "application/cloudevents+json", "text/plain", "", "a; b=\xff", "\x00"]),
        st.dictionaries(
            st.sampled_from(["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"]), st.text(max_size=30)
        ),
    )
    def test_odd_requests(self, body: bytes, content_type: str, headers: dict[str, str]) -> None:
        """Bytes, kinds and headers of all sorts."""
        reply = post(body, headers, content_type=content_type)
        assert reply.status_code in {400, 403, 415}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("get", URL, 405, id="get"),
        pytest.param("put", URL, 405, id="put"),
        pytest.param("options", URL, 405, id="options"),
        pytest.param("post", "/catalog/nowhere/notices/", 404, id="catalog"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_other_requests(client: Any, method: str, path: str, status: int) -> None:
    """Told as problem details."""
    reply = getattr(client, method)(path)
    assert (reply.status_code, reply["Content-Type"]) == (status, "application/problem+json")
    assert reply.headers.get("Allow") == ("POST" if status == 405 else None)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/cloudevents+json", 200),
        ("text/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ],
)
@pytest.mark.usefixtures("shop")
def test_only_json_is_taken(content_type: str, status: int) -> None:
    """A form, or an unknown kind, is refused before it is read."""
    assert post(payload(), content_type=content_type).status_code == status


def test_without_the_last_slash(shop: Any) -> None:
    """A redirect would lose the notice."""
    assert post(payload(), url=URL.rstrip("/")).status_code == 200


def test_secrets_of_the_tests_are_good_ones() -> None:
    """32 random bytes, as far as the settings can tell."""
    assert len(base64.b64decode(SECRET.removeprefix("whsec_"))) == 32
