"""Which lookups could nobody answer? Remembered where RETRY_LATER asks for it, to be tried again later."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from catalog_fallback.models.fields import MAX_ID_LENGTH, ExactCharField


class UnansweredItem(models.Model):
    """One question that ended ``unavailable``; the row goes when it is answered.

    ``vary`` is the mapping as canonical JSON text: it takes part in the identity, which a JSON field cannot on every
    database.
    """

    catalog = ExactCharField(_("catalog"), max_length=64)
    item_id = ExactCharField(_("item ID"), max_length=MAX_ID_LENGTH)
    language = ExactCharField(_("language"), max_length=64, blank=True)
    vary = ExactCharField(_("variant"), max_length=255, blank=True)
    reason = models.CharField(_("reason"), max_length=64)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    next_try_at = models.DateTimeField(_("next try"), default=timezone.now)
    created_at = models.DateTimeField(_("created"), default=timezone.now)
    given_up_at = models.DateTimeField(_("given up"), null=True, blank=True)

    class Meta:
        verbose_name = _("unanswered lookup")
        verbose_name_plural = _("unanswered lookups")
        ordering = ("next_try_at", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("item_id", "catalog", "language", "vary"), name="catalog_fallback_unanswered_id"
            ),
        )
        indexes = (models.Index(fields=("catalog", "given_up_at", "next_try_at"), name="catalog_fallback_due"),)

    def __str__(self) -> str:
        return f"{self.catalog}:{self.item_id}"
