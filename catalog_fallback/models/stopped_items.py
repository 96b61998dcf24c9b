"""Which items must not be shown? The stop list, whose every change is published."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from catalog_fallback import conf, signals
from catalog_fallback.exceptions import InvalidItemID, UnknownCatalog, gettext_noop
from catalog_fallback.models.fields import MAX_ID_LENGTH, ExactCharField, chunks
from catalog_fallback.told_errors import told

#: What an ``update()`` may change without the cache having to know.
_UNPUBLISHED_FIELDS = frozenset({"published_at", "note", "stopped_by"})


class StopReason(models.TextChoices):
    """Why an item was stopped."""

    WITHDRAWN = "withdrawn", _("withdrawn")
    LEGAL = "legal", _("legal")
    QUALITY = "quality", _("quality")
    OTHER = "other", _("other")


class StopOrigin(models.TextChoices):
    """Who said so."""

    ADMIN = "admin", _("admin")
    NOTICE = "notice", _("notice")
    COMMAND = "command", _("command")
    CODE = "code", _("code")


class StoppedItemQuerySet(models.QuerySet["StoppedItem"]):
    """Rows of the stop list; every way to change them publishes the change."""

    def active(self) -> StoppedItemQuerySet:
        """Return the rows that stop their item now; released ones only order later events."""
        return self.filter(is_active=True)

    def update(self, **kwargs: Any) -> int:
        """Change the rows and publish both their old and their new IDs.

        Raises InvalidItemID or UnknownCatalog before anything is written; ValueError for an ID or a catalog that is
        an expression, since it could not be checked.
        """
        if kwargs.keys() <= _UNPUBLISHED_FIELDS:
            return super().update(**kwargs)
        changes: dict[str, set[str]] = defaultdict(set)
        with transaction.atomic(using=self._write_db):
            rows = list(self._for_change().values_list("pk", "catalog", "item_id"))
            pairs = [(catalog, item_id) for _pk, catalog, item_id in rows]
            _clean_update(kwargs, pairs)
            _collect(changes, pairs)
            count = super().update(**{"updated_at": timezone.now(), **kwargs, "published_at": None})
            if kwargs.keys() & {"catalog", "item_id"}:
                _collect(changes, self._pairs(row[0] for row in rows))
        self._announce(changes)
        return count

    update.alters_data = True  # type: ignore[attr-defined]

    def bulk_create(self, objs: Iterable[StoppedItem], *args: Any, **kwargs: Any) -> list[StoppedItem]:
        """Create the rows and publish their IDs; every ID is checked before the first row is written."""
        objs = list(objs)
        for each in objs:
            each.clean_identity()
        if kwargs.get("update_conflicts"):
            kwargs["update_fields"] = {*(kwargs.get("update_fields") or ()), "published_at", "updated_at"}
        created = super().bulk_create(objs, *args, **kwargs)
        changes: dict[str, set[str]] = defaultdict(set)
        _collect(changes, ((each.catalog, each.item_id) for each in objs))
        self._announce(changes)
        return created

    def bulk_update(self, objs: Iterable[StoppedItem], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Change the rows and publish their old and new IDs; every ID is checked before the first row is written."""
        objs, names = list(objs), set(fields)
        for each in objs:
            each.clean_identity()
            each.updated_at = timezone.now()
        changes: dict[str, set[str]] = defaultdict(set)
        # A plain QuerySet, because Django's bulk_update() ends in update(), and ours is for values that it can check.
        rows: models.QuerySet[StoppedItem] = models.QuerySet(self.model, self.query.chain(), self._write_db)
        with transaction.atomic(using=self._write_db):
            _collect(changes, self._pairs(each.pk for each in objs))
            count = rows.bulk_update(objs, names and {*names, "published_at", "updated_at"}, batch_size)
            _collect(changes, ((each.catalog, each.item_id) for each in objs))
        self._announce(changes)
        return count

    bulk_update.alters_data = True  # type: ignore[attr-defined]

    @property
    def _write_db(self) -> str:
        self._for_write = True
        return self.db

    def _for_change(self) -> StoppedItemQuerySet:
        rows = self.using(self._write_db).order_by()
        return rows if rows.query.is_sliced else rows.select_for_update()

    def _pairs(self, keys: Iterable[Any]) -> Iterable[tuple[str, str]]:
        manager = StoppedItem.objects.using(self._write_db)
        for chunk in chunks(list(keys)):
            yield from manager.filter(pk__in=chunk).values_list("catalog", "item_id")

    def _announce(self, changes: dict[str, set[str]]) -> None:
        if changes:
            signals.stop_list_changed.send(
                StoppedItem, changes={k: tuple(sorted(v)) for k, v in changes.items()}, using=self._write_db
            )


class StoppedItem(models.Model):
    """An item that must not be fetched or shown, or one that was released again.

    A release keeps the row with ``is_active=False``: its ``event_at`` orders events that arrive late. Only deleting
    the row forgets it. ``published_at`` is empty while the cache has not confirmed the row's present state.
    """

    catalog = ExactCharField(_("catalog"), max_length=64)
    item_id = ExactCharField(_("item ID"), max_length=MAX_ID_LENGTH)
    reason = models.CharField(_("reason"), max_length=16, choices=StopReason, default=StopReason.WITHDRAWN)
    note = models.TextField(_("note"), blank=True)
    is_active = models.BooleanField(_("stopped"), default=True)
    origin = models.CharField(_("origin"), max_length=16, choices=StopOrigin, default=StopOrigin.CODE)
    event_at = models.DateTimeField(_("event time"), default=timezone.now)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("changed by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    published_at = models.DateTimeField(_("confirmed by the cache"), null=True, blank=True, editable=False)

    objects = StoppedItemQuerySet.as_manager()

    #: Catalog and ID as the database had them before the last save of this object.
    identity_before: tuple[str, str] | None = None

    class Meta:
        verbose_name = _("stopped item")
        verbose_name_plural = _("stopped items")
        ordering = ("-updated_at", "-pk")
        # The ID comes first, so that a search over all catalogs has an index as well.
        constraints = (models.UniqueConstraint(fields=("item_id", "catalog"), name="catalog_fallback_stopped_id"),)
        indexes = (
            models.Index(fields=("published_at", "catalog"), name="catalog_fallback_unpublished"),
            models.Index(fields=("-updated_at", "-id"), name="catalog_fallback_recent"),
        )

    def __str__(self) -> str:
        return f"{self.catalog}:{self.item_id}"

    def save(self, **kwargs: Any) -> None:
        """Save, and publish the item's state to the cache (after the commit, inside a transaction)."""
        fields = kwargs.get("update_fields")
        if fields:
            kwargs["update_fields"] = {*fields, "item_id", "published_at", "updated_at"}
        super().save(**kwargs)

    def clean_identity(self) -> None:
        """Bring the ID into its normal form and mark the row as not published.

        Raises UnknownCatalog and InvalidItemID.
        """
        self.item_id = conf.catalog(self.catalog).clean_id(self.item_id)
        if len(self.item_id) > MAX_ID_LENGTH:
            text = gettext_noop("An ID of {length} characters cannot be stopped; {limit} is the limit.")
            raise InvalidItemID(text, length=len(self.item_id), limit=MAX_ID_LENGTH)
        self.published_at = None

    def clean(self) -> None:
        """Check the identity for forms: the same rules, told as a ValidationError."""
        if not (self.catalog and self.item_id):
            return  # the fields say so themselves
        try:
            self.clean_identity()
        except (InvalidItemID, UnknownCatalog) as error:
            field = "item_id" if isinstance(error, InvalidItemID) else "catalog"
            raise ValidationError({field: told(error)}) from error


def _collect(changes: dict[str, set[str]], pairs: Iterable[tuple[str, str]]) -> None:
    for catalog, item_id in pairs:
        changes[catalog].add(item_id)


def _clean_update(kwargs: dict[str, Any], pairs: Collection[tuple[str, str]]) -> None:
    """Normalise a new ID or catalog of an ``update()`` in place; refuse one that does not fit every row."""
    renamed = kwargs.keys() & {"catalog", "item_id"}
    for name in renamed:
        if not isinstance(kwargs[name], str):
            raise ValueError(
                f"update({name}=…) takes a string, not {type(kwargs[name]).__name__}: it has to be checked."
            )
    if not renamed:
        return
    cleaned = set()
    for old_catalog, old_id in pairs:
        item_id = kwargs.get("item_id", old_id)
        cleaned.add(conf.catalog(kwargs.get("catalog", old_catalog)).clean_id(item_id))
        if "item_id" not in kwargs and old_id not in cleaned:
            raise ValueError(f"update(catalog={kwargs['catalog']!r}) would change the normal form of {old_id!r}.")
    if "item_id" in kwargs and cleaned:
        kwargs["item_id"] = cleaned.pop()
        if cleaned:
            raise ValueError(
                "update(item_id=…) has another normal form in each of the rows' catalogs: change them one by one."
            )
