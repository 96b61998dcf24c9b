"""Does send_test_notice post a notice that the site takes, and say so when it does not?"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catalog_fallback import conf, services
from catalog_fallback.management.commands.send_test_notice import HOW_TO_MAKE_ONE
from catalog_fallback.models import StoppedItem
from catalog_fallback.results import CacheStatus
from tests.commands import Runner
from tests.posting import OTHER_SECRET, SECRET
from tests.servers import free_port
from tests.test_body_limit import under_wsgi

ROOT = Path(__file__).parents[2]


@pytest.fixture
def url(settings: Any, transactional_db: None) -> Iterator[str]:
    """Where the site takes notices: a real server in this process."""
    for catalog in settings.CATALOG_FALLBACK.values():
        catalog["NOTICE_SECRETS"] = [SECRET, OTHER_SECRET]
    with under_wsgi() as port:
        yield f"http://127.0.0.1:{port}/catalog/default/notices/"


def test_it_is_a_real_notice(run: Runner, url: str) -> None:
    """The item is forgotten; the answer is shown."""
    services.find_item("P001")
    done = run("send_test_notice", url, "P001")
    assert (done.code, done.out) == (0, '200 OK: {"status": "applied", "items": 1}\n')
    assert services.find_item("P001").cache is CacheStatus.MISS


def test_a_stop(run: Runner, url: str) -> None:
    """Type and reason are those that were given."""
    assert run("send_test_notice", url, "P001", "--type", "item.stopped", "--reason", "legal").code == 0
    assert StoppedItem.objects.get().reason == "legal"


def test_another_catalog_has_its_own_secret(run: Runner, url: str, settings: Any) -> None:
    """And its own address."""
    settings.CATALOG_FALLBACK["other"]["NOTICE_SECRETS"] = [OTHER_SECRET]
    done = run("send_test_notice", url.replace("default", "other"), "123", "--catalog", "other")
    assert done.code == 0


@pytest.mark.parametrize(
    ("path", "item_id", "status"),
    [
        ("default/notices/", "no good", "400"),
        ("nowhere/notices/", "P001", "404"),
        ("default/items/P001/", "P001", "403"),
    ],
    ids=["bad-id", "catalog", "address"],
)
def test_what_is_not_taken(run: Runner, url: str, path: str, item_id: str, status: str) -> None:
    """Exit code 1, and the answer."""
    done = run("send_test_notice", url.replace("default/notices/", path), item_id)
    assert (done.code, done.out[:3]) == (1, status)
    assert done.message == "The notice was not taken."


def test_a_redirect_is_not_followed(run: Runner, url: str, settings: Any) -> None:
    """No sender of notices would follow it."""
    settings.SECURE_SSL_REDIRECT = True
    settings.MIDDLEWARE = ["django.middleware.security.SecurityMiddleware"]
    with under_wsgi() as port:
        done = run("send_test_notice", f"http://127.0.0.1:{port}/catalog/default/notices/", "P001")
    assert (done.code, done.out[:3]) == (1, "301")


def test_nobody_answers(run: Runner, url: str) -> None:
    """Exit code 1, and who did not."""
    done = run("send_test_notice", f"http://127.0.0.1:{free_port()}/", "P001")
    assert done.code == 1
    assert "Nothing came back from http://127.0.0.1" in done.message


def test_without_a_secret(run: Runner) -> None:
    """There is nothing to sign with."""
    done = run("send_test_notice", "https://example.com/", "P001")
    assert (done.code, "has no NOTICE_SECRETS" in done.message) == (1, True)
    assert f"  {HOW_TO_MAKE_ONE}\n" in done.message
    assert 'CATALOG_FALLBACK["default"]["NOTICE_SECRETS"]' in done.message


def test_what_makes_a_secret_makes_one(settings: Any) -> None:
    """As it is printed and as the how-to has it; the settings take what it prints."""
    page = ROOT / "docs" / "how-to" / "deletion-notices.md"
    assert not page.exists() or f"$ {HOW_TO_MAKE_ONE}\n" in page.read_text(encoding="utf-8")
    _python, *arguments = shlex.split(HOW_TO_MAKE_ONE)
    made = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout.strip()
    settings.CATALOG_FALLBACK["default"]["NOTICE_SECRETS"] = [made]
    assert conf.catalog("default").notice_secrets == (made,)


@pytest.mark.parametrize("url_", ["example.com", "file:///etc/passwd", ""])
def test_a_url_that_is_none(run: Runner, url: str, url_: str) -> None:
    """Wrong usage."""
    assert run("send_test_notice", url_, "P001").code == 2
