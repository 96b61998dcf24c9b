"""How does a person work with the stop list? The list, one row, and who may do what."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import display_for_value, unquote
from django.contrib.admin.views.main import ORDER_VAR
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.templatetags.static import static
from django.urls import NoReverseMatch, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from catalog_fallback.admin import actions, bulk_pages, bulk_work
from catalog_fallback.admin.bulk_forms import catalog_choices
from catalog_fallback.admin.careful_lists import CarefulAdmin
from catalog_fallback.admin.row_verbs import RELEASE, REPUBLISH, STOP
from catalog_fallback.admin.searching import CappedPaginator, CatalogFilter, ConfirmedFilter, matching
from catalog_fallback.admin.telling import tell_after_deletion, tell_whether_confirmed
from catalog_fallback.models import StopOrigin, StoppedItem

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    _ModelForm = forms.ModelForm[StoppedItem]
else:
    _ModelForm = forms.ModelForm


#: The page that says what a lookup of an ID would meet now.
LOOK_UP = "admin:catalog_fallback_catalogsource_lookup"


class StoppedItemForm(_ModelForm):
    """A new row's catalog is one of the settings; what is wrong with an ID is said by the model."""

    catalog = forms.ChoiceField(
        label=_("Catalog"), choices=catalog_choices, help_text=_("The catalog that the ID belongs to.")
    )

    class Meta:
        model = StoppedItem
        fields = ("catalog", "item_id", "is_active", "reason", "note")
        widgets: ClassVar[dict[str, Any]] = {"note": forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"})}
        help_texts: ClassVar[dict[str, Any]] = {
            "item_id": _("In any spelling that the catalog takes; it is stored in its normal form."),
            "is_active": _("Ticked: the item is neither fetched nor shown. Unticked: it is released."),
            "reason": _("Visitors may be told: “legal” answers with status 451, the others with 410."),
            "note": _("Why, for your colleagues. Visitors never see it."),
        }
        error_messages: ClassVar[dict[str, Any]] = {
            NON_FIELD_ERRORS: {
                "unique_together": _(
                    "This item has a row already, stopped or released. Search for it, and change that."
                )
            }
        }

    def add_error(self, field: Any, error: Any) -> None:
        """Tell above the form what is wrong with a field that cannot be edited."""
        named = getattr(error, "error_dict", {}).keys() - self.fields.keys() - {NON_FIELD_ERRORS}
        super().add_error(field, ValidationError(error.messages) if named else error)


@admin.register(StoppedItem)
class StoppedItemAdmin(CarefulAdmin):
    """The stop list. An ID cannot be changed into another one: its row also orders the events of that ID."""

    form = StoppedItemForm
    # The most telling columns first: a narrow window shows only them until it is scrolled.
    list_display = ("item_id", "catalog", "state", "confirmed", "reason", "event_at", "stopped_by", "origin")
    list_filter = (CatalogFilter, "is_active", "reason", "origin", ConfirmedFilter)
    list_select_related = ("stopped_by",)
    sortable_by = ("item_id",)
    search_fields = ("item_id",)
    search_help_text = _("A whole ID, or how it begins.")
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    actions = (actions.stop, actions.release, actions.republish_selected, actions.delete_selected)
    fields = (
        "catalog",
        "item_id",
        "is_active",
        "confirmed",
        "reason",
        "note",
        "event_at",
        "stopped_by",
        "origin",
        "created_at",
        "updated_at",
    )
    readonly_fields = ("origin", "stopped_by", "event_at", "created_at", "updated_at", "confirmed")

    @admin.display(description=_("state"), ordering="is_active")
    def state(self, row: StoppedItem) -> SafeString:
        """Show by icon and word whether the item is stopped now."""
        return _with_icon("icon-no.svg", _("stopped")) if row.is_active else _with_icon("icon-yes.svg", _("released"))

    @admin.display(description=_("confirmed by the cache"), ordering="published_at")
    def confirmed(self, row: StoppedItem) -> Any:
        """Show when the cache confirmed the row's state, or that it has not."""
        if row.published_at is None:
            return _with_icon("icon-alert.svg", _("not confirmed"))
        return display_for_value(row.published_at, "")

    @admin.display(description=_("now"))
    def look_up(self, row: StoppedItem) -> SafeString:
        """Link to the page that says what a lookup would meet now."""
        query = urlencode({"catalog": row.catalog, "item_id": row.item_id})
        label = _("Look up {item_id}").format(item_id=row.item_id)
        address = f"{reverse(LOOK_UP, current_app=self.admin_site.name)}?{query}"
        return format_html('<a href="{}" aria-label="{}">{}</a>', address, label, _("look it up"))

    def get_list_display(self, request: HttpRequest) -> Any:
        """Whoever may look at the sources may look an ID up."""
        columns = list(self.list_display)
        if _may_look_up(request):
            columns.insert(columns.index("confirmed") + 1, "look_up")
        return columns

    def get_fields(self, request: HttpRequest, obj: StoppedItem | None = None) -> Any:
        """A row that does not exist yet has nothing to show but the form."""
        if obj is None:
            return StoppedItemForm.Meta.fields
        return (*self.fields, "look_up") if _may_look_up(request) else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: StoppedItem | None = None) -> Any:
        """Catalog and ID are chosen once."""
        return (*self.readonly_fields, "look_up", "catalog", "item_id") if obj else self.readonly_fields

    def get_form(
        self, request: HttpRequest, obj: StoppedItem | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """How an ID may be spelled is of interest only where one is typed."""
        texts = {**StoppedItemForm.Meta.help_texts, **({"catalog": "", "item_id": ""} if obj else {})}
        return super().get_form(request, obj, change, help_texts=texts, **kwargs)

    def get_urls(self) -> list[Any]:
        """Add the page for lists of IDs."""
        page = self.admin_site.admin_view(bulk_pages.page(self))
        return [path("bulk/", page, name=bulk_pages.URL_NAME), *super().get_urls()]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[StoppedItem], search_term: str
    ) -> tuple[QuerySet[StoppedItem], bool]:
        """Search by exact ID or prefix, through the index; the exact one comes first."""
        if not search_term.strip():
            return queryset, False
        found = matching(queryset, search_term)
        return (found.order_by(*queryset.query.order_by) if ORDER_VAR in request.GET else found), False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Refuse an action that the person may not take, instead of showing the list as if nothing had happened."""
        for name in actions.PERMISSIONS.keys() & set(request.POST.getlist("action")):
            if not getattr(self, f"has_{actions.PERMISSIONS[name]}_permission")(request):
                raise PermissionDenied
        may_bulk = bulk_pages.may_open(self, request)
        return super().changelist_view(request, {"may_bulk": may_bulk, **(extra_context or {})})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Offer the actions on the row's own page too."""
        verbs = [STOP, RELEASE, REPUBLISH] if self.has_change_permission(request) else []
        return super().change_view(request, object_id, form_url, {"verbs": verbs, **(extra_context or {})})

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list as well that the row's last stop or release came with: it has one entry for all its rows."""
        row = self.get_object(request, unquote(object_id))
        entry = row and bulk_work.entry_of(row)
        return super().history_view(request, object_id, {"bulk_entry": entry, **(extra_context or {})})

    def save_model(self, request: HttpRequest, obj: StoppedItem, form: Any, change: bool) -> None:
        """Note who changed it; all but a new note is an event of now."""
        if not change or set(form.changed_data) - {"note"}:
            obj.event_at = max(obj.event_at, timezone.now())
            obj.origin = StopOrigin.ADMIN
        obj.stopped_by_id = request.user.pk
        super().save_model(request, obj, form, change)
        tell_whether_confirmed(request, [obj.pk])

    def delete_model(self, request: HttpRequest, obj: StoppedItem) -> None:
        """Delete, and tell when the cache did not hear of it."""
        super().delete_model(request, obj)
        tell_after_deletion(request, [(obj.catalog, obj.item_id)])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[StoppedItem]) -> None:
        """Delete, and tell when the cache did not hear of it."""
        items: Collection[tuple[str, str]] = list(queryset.values_list("catalog", "item_id"))
        super().delete_queryset(request, queryset)
        tell_after_deletion(request, items)


def _may_look_up(request: HttpRequest) -> bool:
    """Whether there is a page for it, and this person may open it."""
    if not request.user.has_perm("catalog_fallback.view_catalogsource"):
        return False
    try:
        reverse(LOOK_UP)
    except NoReverseMatch:
        return False
    return True


def _with_icon(icon: str, word: Any) -> SafeString:
    """The word says it too: nobody has to tell colours apart, and a screen reader skips the icon."""
    return format_html('<img src="{}" alt=""> {}', static(f"admin/img/{icon}"), word)
