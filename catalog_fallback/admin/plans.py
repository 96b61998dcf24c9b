"""What exactly did a person see and confirm? A plan, which travels signed from the preview to the confirmation.

It is kept in the page itself: no process has to remember it, no session grows, and nothing is left behind by those who
never confirm. The signature (with SECRET_KEY) makes what is confirmed what was shown: IDs, verb, reason, note, and who.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core import signing
from django.utils.translation import gettext as _

_SALT = "catalog_fallback.admin.plans"
#: Seconds after which a preview is too old to be confirmed.
MAX_AGE = 3600
#: Bytes of the confirmation's form that are not the plan.
_REST_OF_FORM = 4096


class PlanRefused(ValueError):
    """A plan that is not what we signed for this person, is too old, or is too large; the message says which."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Stop or release these IDs of one catalog. IDs are in their normal form; those that are done are left out.

    ``total``, ``changed`` and ``idle`` count IDs: all of them, those that were stopped or released so far, and those
    that a release found not stopped. ``started_at`` (seconds since the epoch) is the moment of the first part that is
    carried out, for a release that of the preview; ``log_entry`` is set by the first part.
    """

    is_stop: bool
    catalog: str
    reason: str
    note: str
    item_ids: tuple[str, ...]
    total: int
    done: int = 0
    changed: int = 0
    idle: int = 0
    started_at: float | None = None
    log_entry: Any = None

    @property
    def event_at(self) -> datetime:
        """Return the moment of the stop or release; an aware datetime."""
        assert self.started_at is not None
        return datetime.fromtimestamp(self.started_at, UTC)

    @property
    def later(self) -> int:
        """Return how many IDs were left as they are, because of a later event."""
        return self.done - self.changed - self.idle

    def after(self, count: int, *, changed: int, idle: int) -> Plan:
        """Return what is left once the first ``count`` IDs are done."""
        return replace(
            self,
            item_ids=self.item_ids[count:],
            done=self.done + count,
            changed=self.changed + changed,
            idle=self.idle + idle,
        )


def sign(plan: Plan, user_key: Any) -> str:
    """Return the plan as a text that only this person can send back, for an hour.

    Raises PlanRefused where the site's forms do not take so long a text (DATA_UPLOAD_MAX_MEMORY_SIZE).
    """
    text = signing.dumps([str(user_key), *astuple(plan)], salt=_SALT, compress=True)
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if limit is not None and len(text) + _REST_OF_FORM > limit:
        share = max(1, int(len(plan.item_ids) * 0.9 * (limit - _REST_OF_FORM) / len(text)))
        message = _(
            "This list is too long for a form of this site (DATA_UPLOAD_MAX_MEMORY_SIZE is {limit} bytes). Divide it: "
            "about {share} IDs of this kind fit at once."
        )
        raise PlanRefused(message.format(limit=limit, share=share))
    return text


def read(text: str, user_key: Any) -> Plan:
    """Return the plan that this text holds. Raises PlanRefused."""
    try:
        owner, *values = signing.loads(text, salt=_SALT, max_age=MAX_AGE)
    except signing.SignatureExpired as error:
        raise PlanRefused(
            _("This preview is more than an hour old. Nothing was changed: please look again.")
        ) from error
    except signing.BadSignature as error:
        raise PlanRefused(_("This is not the preview as it was shown. Nothing was changed.")) from error
    if owner != str(user_key):
        raise PlanRefused(_("This preview was made for somebody else. Nothing was changed."))
    plan = Plan(*values)
    return replace(plan, item_ids=tuple(plan.item_ids))
