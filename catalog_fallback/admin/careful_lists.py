"""Which query strings and selections does a list take? Those that a row can have; no error page for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpResponseRedirect
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse, QueryDict

    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin

#: How a filter's link may compare: each of them costs what the filter itself costs, and fails on no value.
_COMPARISONS = frozenset({"", "exact", "isnull"})


class CarefulAdmin(_ModelAdmin):
    """A list that filters by what it offers only, and sends whoever asks for the impossible back to the whole of it.

    Django takes any comparison with any column from the query string. Some read a table of a million rows from end to
    end, some are errors of the database: a regular expression that is none, a NUL on PostgreSQL.
    """

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Whether the query string may filter like this; Django answers 400 where it may not."""
        field, _separator, comparison = lookup.partition("__")
        offered = {getattr(each, "parameter_name", each) for each in self.list_filter} | {*self.search_fields}
        return field in offered and comparison in _COMPARISONS

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, or carry an action out on rows that can be rows."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        if _holds_nul(request.GET):
            messages.warning(request, _("No row has a NUL character anywhere: the filter was left out."))
            return HttpResponseRedirect(request.path)
        if request.method == "POST" and not self._can_be_rows(request.POST.getlist(ACTION_CHECKBOX_NAME)):
            messages.error(request, _("Nothing was changed: the selection named something that is no row."))
            return HttpResponseRedirect(request.get_full_path())
        return super().changelist_view(request, extra_context)

    def _can_be_rows(self, keys: list[str]) -> bool:
        field = self.opts.pk
        assert field is not None  # every model has one
        try:
            for key in keys:
                field.clean(key, None)
        except ValidationError:
            return False
        return True


def _holds_nul(query: QueryDict) -> bool:
    return any("\x00" in text for name, values in query.lists() for text in (name, *values))
