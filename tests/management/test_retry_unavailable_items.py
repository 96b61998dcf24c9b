"""Does ``retry_unavailable_items`` say what became of the lookups, and end with the code that a scheduler needs?"""

from __future__ import annotations

import json

import pytest
from django.db.utils import OperationalError

from catalog_fallback import unanswered
from catalog_fallback.management.commands import retry_unavailable_items
from catalog_fallback.models import UnansweredItem
from tests.commands import Runner


def note(*item_ids: str, catalog: str = "default") -> None:
    """Note these as due."""
    for item_id in item_ids:
        UnansweredItem.objects.create(
            catalog=catalog, item_id=item_id, reason="incomplete_search", next_try_at=unanswered.now()
        )


def test_all_are_answered(run: Runner) -> None:
    """Code 0, one line a catalog."""
    note("P001", "P002", "NONE")
    done = run("retry_unavailable_items")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "Catalog default: 2 found, 1 not found, 0 stopped, 0 still unavailable.",
            "Catalog other: 0 found, 0 not found, 0 stopped, 0 still unavailable.",
        ],
    )


def test_nothing_is_due(run: Runner) -> None:
    """Also code 0: it runs every minute."""
    assert run("retry_unavailable_items").code == 0


def test_some_are_unanswered(run: Runner) -> None:
    """Code 3."""
    note("P001", "BUSY")
    done = run("retry_unavailable_items", "--catalog", "default")
    assert (done.code, done.message) == (3, "1 have no answer yet.")
    assert done.out == "Catalog default: 1 found, 0 not found, 0 stopped, 1 still unavailable.\n"


def test_none_is_answered(run: Runner) -> None:
    """Code 1: nothing was done."""
    note("BUSY", "BROKEN")
    assert run("retry_unavailable_items").code == 1


def test_given_up_and_left(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named where there are any; a limit is no failure."""
    note("no id", "P001", "P002")
    done = run("retry_unavailable_items", "--limit", "2", "--catalog", "default")
    assert done.code == 0
    assert "1 given up, 1 left." in done.out


def test_nobody_may_be_called(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says why it ended."""
    note("P001")
    monkeypatch.setattr("catalog_fallback.retrying._is_nobody_there", lambda config: True)
    done = run("retry_unavailable_items", "--catalog", "default")
    assert done.code == 1
    assert done.out.endswith("1 left; no source may be called now.\n")


def test_json(run: Runner) -> None:
    """One object a line."""
    note("P001")
    note("123", catalog="other")
    done = run("retry_unavailable_items", "--json")
    first, second = map(json.loads, done.out.splitlines())
    assert (first["catalog"], first["found"], first["left"]) == ("default", 1, 0)
    assert (second["catalog"], second["not_found"], second["nobody_answers"]) == ("other", 1, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--catalog", "nowhere"], "There is no catalog"),
        (["--limit", "0"], "whole number above 0"),
        (["--limit", "x"], "whole number above 0"),
        (["--limit", "²"], "whole number above 0"),
        (["--limit", "-1"], "whole number above 0"),
    ],
    ids=["catalog", "zero", "word", "superscript", "negative"],
)
def test_wrong_arguments(run: Runner, arguments: list[str], message: str) -> None:
    """Said, and nothing is tried."""
    note("P001")
    done = run("retry_unavailable_items", *arguments)
    assert (done.code != 0, message in done.message) == (True, True)
    assert UnansweredItem.objects.get().attempts == 0


def test_wrong_settings(run: Runner, settings: object) -> None:
    """Said as text, code 1."""
    settings.CATALOG_FALLBACK = {}  # type: ignore[attr-defined]
    done = run("retry_unavailable_items")
    assert (done.code, "holds no catalog" in done.message) == (1, True)


def test_the_database_fails(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code 1, without a traceback and without what the database says."""

    def fail(*_: object) -> None:
        raise OperationalError("secret DSN")

    monkeypatch.setattr(retry_unavailable_items, "retry", fail)
    done = run("retry_unavailable_items")
    assert (done.code, done.message) == (1, "Catalog default: the database failed (OperationalError).")
