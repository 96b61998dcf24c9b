"""Which tables does the first version have? The stop list."""

from __future__ import annotations

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import catalog_fallback.models


class Migration(migrations.Migration):
    """Create the stop list."""

    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="StoppedItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("catalog", catalog_fallback.models.ExactCharField(max_length=64, verbose_name="catalog")),
                ("item_id", catalog_fallback.models.ExactCharField(max_length=255, verbose_name="item ID")),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("withdrawn", "withdrawn"),
                            ("legal", "legal"),
                            ("quality", "quality"),
                            ("other", "other"),
                        ],
                        default="withdrawn",
                        max_length=16,
                        verbose_name="reason",
                    ),
                ),
                ("note", models.TextField(blank=True, verbose_name="note")),
                ("is_active", models.BooleanField(default=True, verbose_name="stopped")),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("admin", "admin"),
                            ("notice", "notice"),
                            ("command", "command"),
                            ("code", "code"),
                        ],
                        default="code",
                        max_length=16,
                        verbose_name="origin",
                    ),
                ),
                ("event_at", models.DateTimeField(default=django.utils.timezone.now, verbose_name="event time")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="changed")),
                (
                    "published_at",
                    models.DateTimeField(blank=True, editable=False, null=True, verbose_name="confirmed by the cache"),
                ),
                (
                    "stopped_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="changed by",
                    ),
                ),
            ],
            options={
                "verbose_name": "stopped item",
                "verbose_name_plural": "stopped items",
                "ordering": ("-updated_at", "-pk"),
                "indexes": [
                    models.Index(fields=["published_at", "catalog"], name="catalog_fallback_unpublished"),
                    models.Index(fields=["-updated_at", "-id"], name="catalog_fallback_recent"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("item_id", "catalog"), name="catalog_fallback_stopped_id"),
                ],
            },
        ),
    ]
