"""How is the server of the simulated catalogs started beside ``runserver``? ``manage.py run_catalogs``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from catalogs.__main__ import add_arguments, serve


class Command(BaseCommand):
    """Serve the simulated catalogs until Ctrl-C."""

    help = "Serves the simulated catalogs that the example asks, until Ctrl-C."
    requires_system_checks: list[str] = []  # noqa: RUF012  # an attribute of Django's base class

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the options of the server."""
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve."""
        serve(options["port"], options["recorded"], is_quiet=not options["verbose"])
