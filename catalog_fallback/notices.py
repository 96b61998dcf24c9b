"""What does a deletion notice say, and what becomes of it? Verified as it came, then parsed, then applied.

The envelope is that of Standard Webhooks: ``{"type": …, "timestamp": …, "data": {…}}``. Values come back, never
exceptions: whoever took the notice in tells its sender.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from django.db import Error as DatabaseError
from django.utils.translation import gettext as _

from catalog_fallback import clock, conf, invalidations, signatures
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import InvalidationFailed, InvalidItemID
from catalog_fallback.log_events import fields
from catalog_fallback.models import MAX_ID_LENGTH, StopOrigin, StopReason
from catalog_fallback.sources import json_body
from catalog_fallback.told_errors import told

logger = logging.getLogger("catalog_fallback")

#: Longest body in bytes: as many IDs as one notice may name, each as long as the stop list takes.
MAX_BYTES = 4 * 1024 * 1024
#: IDs that one notice may name.
MAX_IDS = 10_000

#: Names that may occur only once in an object: they decide what the notice means.
_UNIQUE: Final = frozenset({"data", "id", "ids", "reason", "timestamp", "type"})
#: An older event would be a broken clock, and not every database could store it.
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Notice:
    """What a sender says: of which items, what happened to them, and when (never later than now)."""

    type: str
    event_at: datetime = _EARLIEST
    item_ids: Sequence[str] = ()
    reason: str = StopReason.WITHDRAWN
    note: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """The notice was taken; ``items`` is the number of different IDs, 0 where its type means nothing to us."""

    type: str
    items: int = 0

    @property
    def is_ignored(self) -> bool:
        """Whether its type is none that this app knows."""
        return self.type not in TYPES


@dataclass(frozen=True, slots=True)
class Refused:
    """The notice was not taken, or only in part: ``problem`` is a name of the table in ``problems``.

    ``error`` is what the cache or the database failed with, for our own eyes.
    """

    problem: str
    detail: str
    members: Mapping[str, Any] = field(default_factory=dict)
    error: Exception | None = None

    @property
    def may_succeed_later(self) -> bool:
        """Whether it is worth sending again: the cache or the database did not take it."""
        return self.problem == "not_applied"


def take(config: CatalogConfig, headers: Mapping[str, str], body: bytes) -> Applied | Refused:
    """Verify a body with its headers, understand it, do what it says."""
    wrong = signatures.complaint(config.notice_secrets, headers, body, clock.wall())
    if wrong is not None:
        about = fields("notice_refused", catalog=config.alias, reason=wrong)
        logger.warning("Catalog %r: a deletion notice was refused: %s.", config.alias, wrong, extra=about)
        return Refused("bad_signature", _("The signature is missing, wrong or too old."))
    notice = parse(body)
    return notice if isinstance(notice, Refused) else apply(config, notice)


def take_unsigned(body: bytes, *, catalog: str = "default") -> Applied | Refused:
    """Do what a body says that came over a channel which lets nobody else in: a message queue, a pipe.

    Raises UnknownCatalog.
    """
    config = conf.catalog(catalog)
    notice = parse(body)
    return notice if isinstance(notice, Refused) else apply(config, notice)


def parse(body: bytes) -> Notice | Refused:
    """Return what a body says. Of an unknown type nothing else is looked at."""
    payload = json_body.decode(body, _UNIQUE)
    if not isinstance(payload, dict) or not isinstance(payload.get("type"), str):
        return _malformed(_('The body has to be a JSON object with a text "type".'))
    if payload["type"] not in TYPES:
        return Notice(payload["type"])
    event_at = _moment(payload.get("timestamp"))
    if event_at is None:
        return _malformed(_('"timestamp" has to be a moment since 1970 in ISO 8601, with a zone.'))
    data = payload.get("data")
    item_ids = _item_ids(data) if isinstance(data, dict) else None
    if not isinstance(data, dict) or item_ids is None:
        text = _('"data" has to hold either a text "id" or a list of 1 to {limit} texts "ids".')
        return _malformed(text.format(limit=MAX_IDS))
    return Notice(payload["type"], event_at, item_ids, *_reason(data.get("reason")))


def apply(config: CatalogConfig, notice: Notice) -> Applied | Refused:
    """Do what a notice says, to every ID that can be one; events that are not the latest ones change nothing."""
    if notice.type not in TYPES:
        return Applied(notice.type)
    is_kept = notice.type in _KEPT or (notice.type == "item.deleted" and config.on_deleted == "stop")
    item_ids, impossible = _sorted_out(config, notice.item_ids, MAX_ID_LENGTH if is_kept else None)
    try:
        done = TYPES[notice.type](config.alias, notice, item_ids) if item_ids else 0
    except (InvalidationFailed, DatabaseError) as error:
        name = type(error).__name__
        about = fields("notice_failed", catalog=config.alias, reason=name)
        logger.error("Catalog %r: a deletion notice was not applied (%s).", config.alias, name, extra=about)
        return Refused("not_applied", _("The notice could not be applied now. Send it again."), error=error)
    except ValueError as error:
        return _malformed(told(error))
    if impossible:
        return _in_part(impossible, done)
    return Applied(notice.type, done)


def _deleted(catalog: str, notice: Notice, item_ids: Sequence[str]) -> int:
    return invalidations.take_notice(
        item_ids, catalog=catalog, reason=notice.reason, note=notice.note, event_at=notice.event_at
    )


def _stopped(catalog: str, notice: Notice, item_ids: Sequence[str]) -> int:
    return invalidations.take_notice(
        item_ids, catalog=catalog, stop=True, reason=notice.reason, note=notice.note, event_at=notice.event_at
    )


def _released(catalog: str, notice: Notice, item_ids: Sequence[str]) -> int:
    invalidations.release_items(item_ids, catalog=catalog, event_at=notice.event_at, origin=StopOrigin.NOTICE)
    return len(item_ids)


def _updated(catalog: str, notice: Notice, item_ids: Sequence[str]) -> int:
    return invalidations.invalidate_items(item_ids, catalog=catalog, reason="updated")


#: What each type of notice does; every other type is taken and ignored.
TYPES: Mapping[str, Callable[[str, Notice, Sequence[str]], int]] = MappingProxyType(
    {"item.deleted": _deleted, "item.updated": _updated, "item.stopped": _stopped, "item.released": _released}
)


def _malformed(detail: str, **members: Any) -> Refused:
    return Refused("malformed_notice", detail, members)


def _in_part(impossible: Sequence[str], done: int) -> Refused:
    some = _("{count} of {total} IDs cannot be IDs of this catalog; the others were done.")
    text = some if done else _("{count} of {total} IDs cannot be IDs of this catalog.")
    detail = text.format(count=len(impossible), total=len(impossible) + done)
    return _malformed(detail, items=done, invalid_ids=[each[:80] for each in impossible[:20]])


#: Types that write every ID into the stop list.
_KEPT = frozenset({"item.stopped", "item.released"})


def _sorted_out(config: CatalogConfig, item_ids: Sequence[str], longest: int | None) -> tuple[list[str], list[str]]:
    """Return the different IDs in their normal form, and those that cannot be any, or cannot be kept."""
    possible: dict[str, None] = {}
    impossible: dict[str, None] = {}
    for item_id in item_ids:
        try:
            clean_id = config.clean_id(item_id)
        except InvalidItemID:
            clean_id = ""
        if clean_id and (longest is None or (len(clean_id) <= longest and "\x00" not in clean_id)):
            possible[clean_id] = None
        else:
            impossible[item_id] = None
    return list(possible), list(impossible)


def _item_ids(data: Mapping[str, Any]) -> list[str] | None:
    """Return the IDs, None where there are none, too many, or something else."""
    if ("id" in data) is ("ids" in data):
        return None
    item_ids = [data["id"]] if "id" in data else data["ids"]
    is_right = isinstance(item_ids, list) and 0 < len(item_ids) <= MAX_IDS
    return item_ids if is_right and all(isinstance(each, str) for each in item_ids) else None


_TOLERANCE = timedelta(seconds=signatures.TOLERANCE)


def _moment(value: object) -> datetime | None:
    """Return when it happened.

    The sender's moments stay as they are, and so does their order, while his clock and ours differ by no more than a
    signature's may. What is dated ahead of that happened now: it must not outdo for hours what comes next.
    """
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None or moment.tzinfo is None or moment.astimezone(UTC) < _EARLIEST:
            return None
        moment, now = moment.astimezone(UTC), datetime.fromtimestamp(clock.wall(), UTC)
        return now if moment - now > _TOLERANCE else moment
    except (ValueError, OverflowError):
        return None


def _reason(value: object) -> tuple[str, str]:
    """Return the reason of a stop and a note. An unknown reason is no reason to go on showing the item."""
    if value is None:
        return StopReason.WITHDRAWN, ""
    if value in StopReason.values:
        return str(value), ""
    return StopReason.OTHER, f"Reason in the notice: {ascii(value)[:200]}"
