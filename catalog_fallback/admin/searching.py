"""How does a person find a row among a million? Nothing here reads the whole table to show a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from catalog_fallback import conf
from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.models import StoppedItem
from catalog_fallback.sources.identifiers import squeezed

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.functional import _StrPromise

    _Paginator = Paginator[StoppedItem]
else:
    _Paginator = Paginator

#: How many rows a list counts and pages through; whoever needs the others searches.
LIMIT = 10_000


class CappedPaginator(_Paginator):
    """Pages through the first rows only, so that counting costs the same however long the table is."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, LIMIT if there are more."""
        return min(self._counted, LIMIT)

    @property
    def is_capped(self) -> bool:
        """Whether there are more rows than are listed."""
        return self._counted > LIMIT

    @property
    def limit(self) -> int:
        """Return how many rows are listed at most."""
        return LIMIT

    @cached_property
    def _counted(self) -> int:
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        return rows.order_by()[: LIMIT + 1].count()


def matching(rows: QuerySet[StoppedItem], term: str) -> QuerySet[StoppedItem]:
    """Return the rows whose ID is the term or begins with it, the shortest ID first.

    The term may be written in any way that a catalog's NORMALIZE_ID understands ("978-4-00-310101-8"); of an ID that is
    not whole, only dashes and blanks are left out.
    """
    forms = [form for form in _forms(term) if rows.filter(_begins_with(form)).order_by().exists()]
    if not forms:
        return rows.none()
    wanted = Q()
    for form in forms:
        wanted |= _begins_with(form)
    return rows.filter(wanted).order_by("item_id", "catalog")


def _forms(term: str) -> set[str]:
    """The term as it was typed, without dashes, and in the normal form of every catalog that takes it for an ID."""
    forms = {term.strip()}
    with suppress(InvalidItemID):
        forms.add(squeezed(term))
    for catalog in conf.catalogs().values():
        try:
            forms.add(catalog.clean_id(term.strip()))
        except InvalidItemID:
            continue
    return {form for form in forms if form and form.isprintable()}


def _begins_with(prefix: str) -> Q:
    """A range of the index; LIKE would read the whole of it on SQLite. A printable character always has a next one."""
    return Q(item_id__gte=prefix, item_id__lt=prefix[:-1] + chr(ord(prefix[-1]) + 1))


class CatalogFilter(admin.SimpleListFilter):
    """By catalog; those of the settings, and the rows that a removed catalog has left behind."""

    title = _("catalog")
    parameter_name = "catalog"
    _REMOVED = "-"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[StoppedItem]
    ) -> Iterator[tuple[str, str | _StrPromise]]:
        """Return what can be chosen, without asking the table."""
        yield from ((alias, alias) for alias in conf.catalogs())
        yield self._REMOVED, _("not in the settings")

    def queryset(self, request: HttpRequest, queryset: QuerySet[StoppedItem]) -> QuerySet[StoppedItem]:
        """Return the chosen rows."""
        alias = self.value()
        if alias is None:
            return queryset
        if alias == self._REMOVED:
            return queryset.exclude(catalog__in=list(conf.catalogs()))
        return queryset.filter(catalog=alias)


class ConfirmedFilter(admin.SimpleListFilter):
    """By whether the cache has confirmed the row's present state."""

    title = _("confirmation")
    parameter_name = "confirmed"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[StoppedItem]
    ) -> Iterator[tuple[str, str | _StrPromise]]:
        """Return what can be chosen."""
        yield "no", _("not confirmed")
        yield "yes", _("confirmed")

    def queryset(self, request: HttpRequest, queryset: QuerySet[StoppedItem]) -> QuerySet[StoppedItem]:
        """Return the chosen rows."""
        if self.value() not in {"no", "yes"}:
            return queryset
        return queryset.filter(published_at__isnull=self.value() == "no")
