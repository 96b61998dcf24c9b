"""Is what is confirmed exactly what was shown, to whom it was shown, and not long after?"""

from __future__ import annotations

import secrets
import string
from typing import TYPE_CHECKING

import pytest
from django.core import signing
from hypothesis import given
from hypothesis import strategies as st

from catalog_fallback.admin import plans
from catalog_fallback.admin.id_lists import MAX_LINES
from catalog_fallback.admin.plans import Plan, PlanRefused

if TYPE_CHECKING:
    from pytest_django import Settings

PLAN = Plan(True, "default", "legal", "court order", ("P001", "P002"), 2)


def test_a_plan_survives_the_page() -> None:
    """What is read is what was signed, of a plan that has begun too."""
    begun = Plan(False, "books", "", "", ("P003",), 3, 2, 1, 1, 1_700_000_000.123456, 17)
    for plan in (PLAN, begun):
        assert plans.read(plans.sign(plan, 7), 7) == plan


def test_nobody_else_can_confirm_it() -> None:
    """A plan that somebody else saw is refused."""
    with pytest.raises(PlanRefused, match="somebody else"):
        plans.read(plans.sign(PLAN, 7), 8)


def test_a_changed_plan_is_refused() -> None:
    """Whatever is changed, and wherever."""
    text = plans.sign(PLAN, 7)
    for place in range(len(text)):
        other = "A" if text[place] != "A" else "B"
        with pytest.raises(PlanRefused, match="not the preview"):
            plans.read(text[:place] + other + text[place + 1 :], 7)


@given(st.text(max_size=60))
def test_junk_is_refused(text: str) -> None:
    """A crafted form is no error page."""
    with pytest.raises(PlanRefused):
        plans.read(text, 7)


def test_a_text_signed_for_something_else_is_refused() -> None:
    """Other parts of a site sign with the same key."""
    text = signing.dumps(["7", True, "default", "legal", "", ["P001"], 1, 0, 0, 0, None, None], salt="another")
    with pytest.raises(PlanRefused, match="not the preview"):
        plans.read(text, 7)


def test_an_old_preview_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was true an hour ago need not be what somebody wants now."""
    text = plans.sign(PLAN, 7)
    monkeypatch.setattr(plans, "MAX_AGE", -1)
    with pytest.raises(PlanRefused, match="more than an hour old"):
        plans.read(text, 7)


def test_the_longest_list_of_barcodes_fits_into_a_form() -> None:
    """Django's own limit for a form (2.5 MB) is no obstacle to 100,000 random 13-digit IDs."""
    item_ids = tuple(sorted(f"{secrets.randbelow(10**13):013}" for _ in range(MAX_LINES)))
    plan = Plan(True, "default", "legal", "", item_ids, len(item_ids))
    text = plans.sign(plan, 7)
    assert len(text) < 2_000_000
    assert plans.read(text, 7) == plan


def test_what_no_form_takes_is_refused_with_a_way_out(settings: Settings) -> None:
    """The message says which setting it is, and how many IDs do fit."""
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 50_000
    alphabet = string.ascii_uppercase + string.digits
    item_ids = tuple("".join(secrets.choice(alphabet) for _ in range(32)) for _ in range(5_000))
    plan = Plan(True, "default", "legal", "", item_ids, 5_000)
    with pytest.raises(PlanRefused, match=r"DATA_UPLOAD_MAX_MEMORY_SIZE is 50000 bytes.* about (\d+) IDs") as caught:
        plans.sign(plan, 7)
    share = int(str(caught.value).split("about ")[1].split()[0])
    assert len(plans.sign(Plan(True, "default", "legal", "", item_ids[:share], share), 7)) < 50_000
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = None
    assert plans.read(plans.sign(plan, 7), 7) == plan
