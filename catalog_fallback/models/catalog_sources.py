"""Which sources did an operator take out?"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from catalog_fallback.models.fields import ExactCharField


class CatalogSource(models.Model):
    """A source that an operator isolated; there is a row only for as long as it is."""

    catalog = ExactCharField(_("catalog"), max_length=64)
    source = ExactCharField(_("source"), max_length=64)
    reason = models.TextField(_("reason"), blank=True)
    isolated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("isolated by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    isolated_at = models.DateTimeField(_("isolated since"), auto_now_add=True)

    class Meta:
        # In the admin this is the page of all sources, isolated or not.
        verbose_name = _("source")
        verbose_name_plural = _("sources")
        ordering = ("catalog", "source")
        constraints = (models.UniqueConstraint(fields=("catalog", "source"), name="catalog_fallback_source"),)
        permissions = (("operate_catalogsource", _("Can isolate, restore and reset sources")),)

    def __str__(self) -> str:
        return f"{self.catalog}:{self.source}"
