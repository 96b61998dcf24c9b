"""What does a person see of the lookups that nobody could answer? A list to read, and "try again now"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog_fallback import unanswered
from catalog_fallback.admin.careful_lists import CarefulAdmin
from catalog_fallback.models import UnansweredItem

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.functional import _StrPromise

    _ModelAdmin = admin.ModelAdmin[UnansweredItem]


@admin.action(permissions=["change"], description=gettext_lazy("Try again now"))
def try_again(model_admin: _ModelAdmin, request: HttpRequest, queryset: QuerySet[UnansweredItem]) -> None:
    """Make them due: the next run of the command takes them, those too that were given up, and counts anew."""
    rows = list(queryset)
    moment = unanswered.now()
    chosen = UnansweredItem.objects.using(unanswered.database()).filter(pk__in=[row.pk for row in rows])
    count = chosen.update(next_try_at=moment, created_at=moment, attempts=0, given_up_at=None)
    assert request.user.pk is not None  # the admin has no anonymous users
    LogEntry.objects.log_actions(request.user.pk, rows, CHANGE, _("Try again now."))
    text = ngettext(
        "%(count)d lookup is due. The command retry_unavailable_items makes it.",
        "%(count)d lookups are due. The command retry_unavailable_items makes them.",
        count,
    )
    messages.success(request, text % {"count": count})


class GivenUpFilter(admin.SimpleListFilter):
    """By whether it is still tried."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[UnansweredItem]
    ) -> Iterator[tuple[str, str | _StrPromise]]:
        """Return what can be chosen."""
        yield "waiting", gettext_lazy("is tried again")
        yield "given_up", gettext_lazy("given up")

    def queryset(self, request: HttpRequest, queryset: QuerySet[UnansweredItem]) -> QuerySet[UnansweredItem]:
        """Return the chosen rows."""
        if self.value() not in {"waiting", "given_up"}:
            return queryset
        return queryset.filter(given_up_at__isnull=self.value() == "waiting")


@admin.register(UnansweredItem)
class UnansweredItemAdmin(CarefulAdmin):
    """The rows are written by lookups and by the command; nobody writes them by hand."""

    list_display = ("item_id", "catalog", "language", "reason", "attempts", "next_try_at", "created_at", "given_up_at")
    list_filter = ("catalog", GivenUpFilter, "reason")
    search_fields = ("item_id",)
    search_help_text = gettext_lazy("A whole ID, or how it begins.")
    show_facets = admin.ShowFacets.NEVER
    actions = (try_again,)
    fields = (
        ("catalog", "item_id"),
        ("language", "vary"),
        "reason",
        "attempts",
        ("next_try_at", "created_at", "given_up_at"),
    )
    readonly_fields = (
        "catalog",
        "item_id",
        "language",
        "vary",
        "reason",
        "attempts",
        "next_try_at",
        "created_at",
        "given_up_at",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """A lookup that nobody made cannot be made again."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The permission is for "try again now"; a row itself can only be read."""
        return obj is None and super().has_change_permission(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[UnansweredItem], search_term: str
    ) -> tuple[QuerySet[UnansweredItem], bool]:
        """Search by whole ID or by how it begins, as it is written."""
        term = search_term.strip()
        return queryset.filter(item_id__startswith=term) if term else queryset, False
