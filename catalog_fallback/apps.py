"""What happens when Django starts? Checks and receivers are connected; no setting is read, nothing is opened."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register
from django.core.signals import setting_changed
from django.utils.translation import gettext_lazy as _


class CatalogFallbackConfig(AppConfig):
    """The app of ``INSTALLED_APPS = ["catalog_fallback"]``."""

    name = "catalog_fallback"
    verbose_name = _("Catalogs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect checks, receivers, and the setting's changes (in tests)."""
        from catalog_fallback import checks, conf, receivers  # noqa: F401, PLC0415  # need the models

        register(checks.check_settings, "catalog_fallback")
        register(checks.check_deployment, "catalog_fallback", deploy=True)
        setting_changed.connect(conf.on_setting_changed, dispatch_uid="catalog_fallback.settings")
