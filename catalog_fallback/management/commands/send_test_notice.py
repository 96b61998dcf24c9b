"""``send_test_notice``: does the address for deletion notices work, and does it take this site's secret?"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import requests
from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog_fallback import clock, signatures
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.management.printing import catalog_or_exit, harmless_pipe, plain
from catalog_fallback.models import StopReason
from catalog_fallback.notices import TYPES

#: What makes a secret; the how-to about deletion notices says the same.
HOW_TO_MAKE_ONE = (
    """python -c "import base64, secrets; print('whsec_' + base64.b64encode(secrets.token_bytes(32)).decode())\""""
)
_NOTHING_TO_SIGN_WITH = (
    "Catalog {catalog} has no NOTICE_SECRETS: there is nothing to sign with. Make a secret:\n"
    "  {new_secret}\n"
    'Set CATALOG_FALLBACK["{catalog}"]["NOTICE_SECRETS"] to a list with it, read from the environment of the site, and '
    "give it to the provider."
)
_TIMEOUT = 10.0
_SHOWN = 300


class Command(BaseCommand):
    """Exit codes: 0 the notice was taken, 1 configuration or it was not taken, 2 usage."""

    help = "Sign a deletion notice with the catalog's first secret and post it. It is a real one: the item goes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take where to, about what, and what is said about it."""
        parser.add_argument("url", metavar="URL", help="Where notices are taken, as in https://…/default/notices/.")
        parser.add_argument("item_id", metavar="ID", help="The item that the notice is about.")
        parser.add_argument("--catalog", default="default", help="Alias of the catalog (default: default).")
        parser.add_argument("--type", choices=tuple(TYPES), default="item.deleted", help="Default: item.deleted.")
        parser.add_argument("--reason", choices=StopReason.values, help="Reason of a stop.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sign, post, show what came back."""
        config = catalog_or_exit(options["catalog"])
        if not config.notice_secrets:
            raise CommandError(_NOTHING_TO_SIGN_WITH.format(catalog=config.alias, new_secret=HOW_TO_MAKE_ONE))
        if not options["url"].startswith(("http://", "https://")):
            raise CommandError("URL has to begin with http:// or https://.", returncode=2)
        reply = _post(config, options["url"], _body(options))
        with harmless_pipe():
            self.stdout.write(f"{reply.status_code} {plain(reply.reason)}: {plain(reply.text[:_SHOWN])}")
        if reply.status_code != requests.codes.ok:
            raise CommandError("The notice was not taken.")


def _body(options: dict[str, Any]) -> bytes:
    data = {"id": options["item_id"], **({"reason": options["reason"]} if options["reason"] else {})}
    sent_at = datetime.fromtimestamp(clock.wall(), UTC).isoformat()
    return json.dumps({"type": options["type"], "timestamp": sent_at, "data": data}).encode()


def _post(config: CatalogConfig, url: str, body: bytes) -> requests.Response:
    signed = signatures.signed_headers(config.notice_secrets[0], f"msg_{uuid.uuid4().hex}", body, clock.wall())
    headers = {"Content-Type": "application/json", **signed}
    try:
        return requests.post(url, data=body, headers=headers, timeout=_TIMEOUT, allow_redirects=False)
    except requests.RequestException as error:
        raise CommandError(f"Nothing came back from {plain(url)} ({type(error).__name__}).") from error
