"""How is a confirmed plan carried out? Part by part, with one entry in the admin's log for all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog_fallback import clock, conf, services, stop_events, stop_list
from catalog_fallback.admin.plans import Plan, PlanRefused
from catalog_fallback.admin.telling import tell_left, tell_whether_event_is_confirmed
from catalog_fallback.exceptions import CatalogError
from catalog_fallback.models import StopOrigin, StoppedItem, StopReason, chunks
from catalog_fallback.told_errors import told

if TYPE_CHECKING:
    from django.http import HttpRequest

#: IDs that are written, published and logged at once.
PART = 2000
#: Share of the web server's time limit (OUTER_TIMEOUT) after which no further part begins.
SHARE = 1 / 3


def carry_out(request: HttpRequest, plan: Plan) -> Plan:
    """Do as many parts as fit into a request, one at least; return the plan with what is left.

    Raises PlanRefused when the settings no longer know the catalog or take the IDs; the parts before that are done.
    """
    try:
        until = clock.monotonic() + conf.catalog(plan.catalog).outer_timeout * SHARE
        if plan.log_entry is None:
            plan = _begun(request, plan)
        while plan.item_ids:
            plan = _one_part(request, plan)
            if clock.monotonic() >= until:
                break
    except CatalogError as error:
        text = _("{done} of {total} are done, the others are not: {error}")
        raise PlanRefused(text.format(done=plan.done, total=plan.total, error=told(error))) from error
    return plan


def tell(request: HttpRequest, plan: Plan) -> None:
    """Say what came of a plan that is carried out, and, after the commit, what the cache has not confirmed."""
    messages.success(request, _summary(plan))
    tell_left(request, idle=plan.idle, later=plan.later)
    tell_whether_event_is_confirmed(request, plan.catalog, stop_events.storable(plan.event_at))


def entry_of(row: StoppedItem) -> LogEntry | None:
    """Return the log's entry of the list that the row's last stop or release came with, None when it came alone."""
    if row.origin != StopOrigin.ADMIN:
        return None
    entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(StoppedItem), object_id=None)
    return entries.filter(action_time=row.event_at).select_related("user").first()


def _begun(request: HttpRequest, plan: Plan) -> Plan:
    """Write the one entry of the log; its time is that of the event, by which the rows' histories find it."""
    assert request.user.pk is not None  # the admin has no anonymous users
    started = plan if plan.started_at is not None else replace(plan, started_at=clock.wall())
    entry = LogEntry.objects.create(
        action_time=stop_events.storable(started.event_at),
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(StoppedItem),
        object_id=None,
        object_repr=_list_text(plan)[:200],
        action_flag=CHANGE,
        change_message=_log_text(started),
    )
    return replace(started, log_entry=entry.pk)


def _one_part(request: HttpRequest, plan: Plan) -> Plan:
    """Stop or release the next IDs and say in the log how far it is; published once that is committed."""
    item_ids = plan.item_ids[:PART]
    stopped = 0 if plan.is_stop else _count_stopped(plan, item_ids)
    with transaction.atomic(using=stop_list.database()):
        written = _write(plan, item_ids, stopped_by_id=request.user.pk)
        changed = written if plan.is_stop else min(stopped, written)
        after = plan.after(len(item_ids), changed=changed, idle=written - changed)
        LogEntry.objects.filter(pk=plan.log_entry).update(change_message=_log_text(after))
    return after


def _count_stopped(plan: Plan, item_ids: Sequence[str]) -> int:
    """Return how many of them a release takes off the list. Asked before the transaction, which begins by writing."""
    event_at = stop_events.storable(plan.event_at)
    rows = StoppedItem.objects.using(stop_list.database()).filter(catalog=plan.catalog, event_at__lte=event_at).active()
    return sum(rows.filter(item_id__in=some).count() for some in chunks(item_ids))


def _write(plan: Plan, item_ids: Sequence[str], *, stopped_by_id: Any) -> int:
    """Call the service; return for how many IDs this is the last event now."""
    how: dict[str, Any] = {
        "catalog": plan.catalog,
        "note": plan.note,
        "event_at": plan.event_at,
        "origin": StopOrigin.ADMIN,
        "stopped_by_id": stopped_by_id,
    }
    if plan.is_stop:
        return services.stop_items(item_ids, reason=plan.reason, **how)
    return services.release_items(item_ids, **how)


def _list_text(plan: Plan) -> str:
    text = ngettext(
        "a list of %(count)d ID of catalog %(catalog)s", "a list of %(count)d IDs of catalog %(catalog)s", plan.total
    )
    return text % {"count": plan.total, "catalog": plan.catalog}


def _log_text(plan: Plan) -> str:
    stopped, released = _("Stopped {changed} of {total}. Reason: {reason}."), _("Released {changed} of {total}.")
    text = stopped if plan.is_stop else released
    reason = dict(StopReason.choices).get(plan.reason, "")
    return f"{text.format(changed=plan.changed, total=plan.total, reason=reason)} {plan.note}".strip()


def _summary(plan: Plan) -> str:
    if plan.is_stop:
        text = ngettext("%(count)d item is stopped.", "%(count)d items are stopped.", plan.changed)
    else:
        text = ngettext("%(count)d item is released.", "%(count)d items are released.", plan.changed)
    return text % {"count": plan.changed}
