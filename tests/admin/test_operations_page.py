"""Does the how-to about the operations page say what the page says, and is the JSON as it is documented?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from catalog_fallback import operating
from catalog_fallback.services import find_item
from catalog_fallback.testing import fake_source
from tests.admin.operations import STATUS, sign_in

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "operate-sources.md"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not PAGE.exists(), reason="not in a source tree"),
]


def shape(value: Any) -> Any:
    """Names at every depth; of a list, those of its first element; a value that may be null has none."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


def documented() -> dict[str, Any]:
    """The example of the page."""
    block = re.search(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert block is not None
    return dict(json.loads(block[1]))


def test_the_json_has_the_documented_shape(settings: Any) -> None:
    """Every name, and no other, in the documented order."""
    source = fake_source(failure=503, RATE_LIMIT={"CALLS": 100, "PER": 60}, BREAKER={"CONSECUTIVE_FAILURES": 1})
    guards = {"payments": {"RATE_LIMIT": {"CALLS": 100, "PER": 60}}}
    settings.CATALOG_FALLBACK = {"default": {"SOURCES": {"primary": source}, "STOP_CHECK": "cache", "GUARDS": guards}}
    find_item("P001")
    found = sign_in("view").get(STATUS).json()
    assert json.dumps(shape(found)) == json.dumps(shape(documented()))


def test_what_is_said_of_isolation_in_json_holds(settings: Any) -> None:
    """Reason, since when, by whom."""
    operating.isolate_source("default", "only", "because")
    source = sign_in("view").get(STATUS).json()["catalogs"][0]["sources"][0]
    assert (source["state"], source["refusal"]) == ("isolated", "isolated")
    assert list(source["isolated"]) == ["reason", "since", "by"]


@pytest.mark.parametrize("word", ["closed", "open", "half-open", "isolated", "switched off", "cool-down"])
def test_the_words_of_the_page_are_explained(word: str) -> None:
    """Each has a row."""
    assert re.search(rf"^\| {word} \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
