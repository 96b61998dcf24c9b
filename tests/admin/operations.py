"""What do the tests of the operations page share? Addresses, people, and a way to read the page."""

from __future__ import annotations

import html
import re
import uuid
from typing import Any

from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.http import HttpResponse
from django.test import Client

PAGE = "/admin/catalog_fallback/catalogsource/"
STATUS = f"{PAGE}status.json"
LOOKUP = f"{PAGE}lookup/"
SIMULATED = "catalog_fallback.sources.simulated.SimulatedSource"


def verb_url(verb: str, source: str = "primary", catalog: str = "default") -> str:
    """The confirmation page of a verb."""
    return f"{PAGE}{catalog}/{source}/{verb}/"


def sign_in(*permissions: str, **options: Any) -> Client:
    """The browser of somebody of the staff with these permissions on sources (``view``, ``operate``)."""
    user = User.objects.create_user(f"user-{uuid.uuid4().hex[:8]}", password="secret", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=[f"{each}_catalogsource" for each in permissions]))
    browser = Client(**options)
    browser.force_login(user)
    return browser


def operator(**options: Any) -> Client:
    """The browser of somebody who may do everything here."""
    return sign_in("view", "operate", **options)


def text_of(response: HttpResponse) -> str:
    """The words of a page, without markup, each run of blanks as one."""
    body = re.sub(r"<(title|svg)\b.*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def row_of(response: HttpResponse, source: str) -> str:
    """The words of one source's row."""
    rows = re.findall(r"<tr>.*?</tr>", response.content.decode(), flags=re.DOTALL)
    row = next(each for each in rows if re.search(rf'<th scope="row">{source}\b', each))
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split())


def told(response: HttpResponse) -> list[str]:
    """The messages that the next page will show, each with its level."""
    return [f"{message.level_tag}: {message}" for message in get_messages(response.wsgi_request)]
