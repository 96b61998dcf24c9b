"""Is a row found by its ID, and without reading a million others?"""

from __future__ import annotations

import sys

import pytest
from django.db import connection, connections
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from catalog_fallback import services
from catalog_fallback.admin import searching
from catalog_fallback.models import StoppedItem

LIST = "/admin/catalog_fallback/stoppeditem/"
ROWS = 20_000
TABLE = StoppedItem._meta.db_table
OTHER_COLUMNS = ", ".join(
    field.column for field in StoppedItem._meta.concrete_fields if field.name not in {"id", "item_id", "published_at"}
)
#: So many seconds after the first one, in the words of each database.
LATER = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', published_at, number || ' seconds')",
    "postgresql": "published_at + number * interval '1 second'",
}


def found(browser: Client, query: str) -> list[str]:
    """The IDs that the list shows, in its order."""
    response = browser.get(f"{LIST}?{query}")
    assert response.status_code == 200
    return [row.item_id for row in response.context["cl"].result_list]


@pytest.mark.django_db(transaction=True)
class TestFound:
    """What a person finds."""

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            pytest.param("q=P001", ["P001", "P001-B", "P0011"], id="exact-first"),
            pytest.param("q=P001-B", ["P001-B"], id="exact"),
            pytest.param("q=+P001-B+", ["P001-B"], id="blanks"),
            pytest.param("q=P00", ["P001", "P001-B", "P0011", "P002"], id="prefix"),
            pytest.param("q=p+002", ["P002"], id="another-spelling"),
            pytest.param("q=P-00+1", ["P001", "P001-B", "P0011"], id="how-it-begins-with-dashes"),
            pytest.param("q=%E2%80%93", [], id="nothing-but-a-dash"),
            pytest.param("q=001", [], id="not-the-middle"),
            pytest.param("q=P_01", [], id="no-wildcard"),
            pytest.param("q=%25", [], id="no-percent"),
            pytest.param("q=%F4%8F%BF%BF", [], id="last-character"),
            pytest.param("q=%ED%9F%BF", [], id="before-the-surrogates"),
            pytest.param("q=%F0%9F%98%80", [], id="beyond-the-surrogates"),
            pytest.param("q=P001&catalog=capitals", [], id="with-catalog"),
            pytest.param("q=P00&is_active__exact=0", ["P0011"], id="released"),
            pytest.param("q=P00&reason__exact=legal", ["P002"], id="reason"),
            pytest.param("q=P00&origin__exact=notice", ["P001-B"], id="origin"),
            pytest.param("q=P00&confirmed=no", ["P002"], id="not-confirmed"),
            pytest.param("q=P00&confirmed=yes", ["P001", "P001-B", "P0011"], id="confirmed"),
            pytest.param("q=P00&confirmed=perhaps", ["P001", "P001-B", "P0011", "P002"], id="unknown-choice"),
            pytest.param("q=P00&o=-1", ["P002", "P0011", "P001-B", "P001"], id="other-order"),
            pytest.param("q=P00&catalog=-", [], id="removed-catalog"),
        ],
    )
    def test_search(self, browser: Client, query: str, expected: list[str]) -> None:
        """Exact or prefix, in any spelling, together with the filters."""
        services.stop_items(["P0011", "P001", "Q001"])
        services.release_item("P0011")
        services.stop_items(["P001-B"], origin="notice")
        services.stop_item("P002", catalog="capitals", reason="legal")
        StoppedItem.objects.filter(item_id="P002").update(published_at=None)
        assert found(browser, query) == expected

    def test_without_a_term_the_latest_come_first(self, browser: Client) -> None:
        """The list begins with what was changed last."""
        for item_id in ("P002", "P001"):
            services.stop_item(item_id)
        assert found(browser, "q=++") == ["P001", "P002"]

    def test_every_character_has_an_end_of_its_range(self) -> None:
        """Whatever may be typed makes a prefix that a database takes."""
        for number in range(sys.maxunicode + 1):
            if chr(number).isprintable():
                assert not 0xD800 <= number + 1 <= 0xDFFF
                assert number < sys.maxunicode

    def test_a_long_list_says_that_it_is_cut(self, browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nobody takes the first rows for all of them."""
        monkeypatch.setattr(searching, "LIMIT", 2)
        services.stop_items(["P001", "P002"])
        assert "Only the first" not in browser.get(LIST).content.decode()
        services.stop_item("P003")
        assert "Only the first 2 rows are listed." in browser.get(LIST).content.decode()


def fill(using: str) -> None:
    """Write a long stop list, past everything that publishes: one row, then its copies under other IDs."""
    QuerySet(StoppedItem, using=using).bulk_create(
        [StoppedItem(catalog="default", item_id="P000000", published_at=timezone.now())]
    )
    with connections[using].cursor() as cursor:
        cursor.execute(f"""
            WITH RECURSIVE numbers(number) AS (
                SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < {ROWS - 1}
            )
            INSERT INTO {TABLE} (item_id, published_at, {OTHER_COLUMNS})
            SELECT 'P' || substr(CAST(1000000 + number AS varchar(7)), 2), {LATER[cursor.db.vendor]}, {OTHER_COLUMNS}
            FROM {TABLE}, numbers
        """)  # noqa: S608  # all names are ours
        cursor.execute("ANALYZE")
    assert StoppedItem.objects.using(using).count() == ROWS


@pytest.fixture
def many(db: None) -> None:
    """A long stop list."""
    fill("default")


@pytest.mark.usefixtures("many")
class TestFast:
    """What the database does for it."""

    @pytest.mark.parametrize("term", ["P012345", "P0123", "P", "p0123"])
    def test_a_search_uses_the_index(self, term: str) -> None:
        """Neither a walk through the table nor a sort."""
        plan = searching.matching(StoppedItem.objects.all(), term)[:100].explain()
        assert "(item_id>? AND item_id<?)" in plan
        assert "SCAN" not in plan
        assert "TEMP B-TREE" not in plan

    def test_the_list_uses_the_index(self) -> None:
        """The first page reads what it shows."""
        plan = StoppedItem.objects.order_by("-updated_at", "-pk")[:100].explain()
        assert "catalog_fallback_recent" in plan
        assert "TEMP B-TREE" not in plan

    def test_what_is_not_confirmed_is_found_through_the_index(self) -> None:
        """Usually there is nothing of the kind, and that must not cost a walk through everything."""
        plan = StoppedItem.objects.filter(published_at=None, catalog="default").order_by().explain()
        assert "catalog_fallback_unpublished" in plan

    def test_counting_stops(self) -> None:
        """The paginator knows at most so many rows, and reads no more."""
        paginator = searching.CappedPaginator(StoppedItem.objects.all(), 100)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert (paginator.count, paginator.is_capped) == (searching.LIMIT, True)
        assert len(queries) == 1
        assert f"LIMIT {searching.LIMIT + 1}" in queries[0]["sql"]

    @pytest.mark.parametrize("query", ["", "q=P01", "confirmed=no&catalog=default", "p=50"])
    def test_no_page_counts_everything(self, query: str, admin_client: Client) -> None:
        """Whatever the list counts, it stops counting; and it reads no more than a page."""
        with CaptureQueriesContext(connection) as queries:
            response = admin_client.get(f"{LIST}?{query}")
        assert len(response.context["cl"].result_list) <= 100
        counting = [each["sql"] for each in queries if "stoppeditem" in each["sql"] and "COUNT(" in each["sql"]]
        assert counting
        assert [sql for sql in counting if "LIMIT" not in sql] == []


@pytest.mark.django_db(databases=["default", "postgres"])
class TestFastOnPostgreSQL:
    """The same plans on a database that has other ways to go wrong: sort orders of a language, bitmaps, sorts."""

    @pytest.fixture(autouse=True)
    def _many(self, postgres: str, db: None) -> None:
        fill(postgres)

    def test_a_search_uses_the_index(self) -> None:
        """A range of the index for the whole ID and for how it begins, in the order of the list."""
        for term in ("P012345", "P0123", "p0123"):
            plan = searching.matching(StoppedItem.objects.using("postgres"), term)[:100].explain()
            assert "Index Scan using catalog_fallback_stopped_id" in plan
            assert "Index Cond" in plan
            assert "Seq Scan" not in plan

    def test_a_search_for_almost_everything_stops_early(self) -> None:
        """No sort of all that it finds."""
        plan = searching.matching(StoppedItem.objects.using("postgres"), "P")[:100].explain()
        assert "Index Scan using catalog_fallback_stopped_id" in plan
        assert "Sort" not in plan

    def test_list_and_unconfirmed_rows_use_their_indexes(self) -> None:
        """The first page, and the filter that somebody under pressure uses."""
        rows = StoppedItem.objects.using("postgres")
        assert "catalog_fallback_recent" in rows.order_by("-updated_at", "-pk")[:100].explain()
        unconfirmed = rows.filter(published_at=None, catalog="default").order_by()
        assert "catalog_fallback_unpublished" in unconfirmed.explain()

    def test_counting_stops(self) -> None:
        """At the limit, which is part of the query."""
        with CaptureQueriesContext(connections["postgres"]) as queries:
            paginator = searching.CappedPaginator(StoppedItem.objects.using("postgres"), 100)
            assert (paginator.count, paginator.is_capped) == (searching.LIMIT, True)
        assert f"LIMIT {searching.LIMIT + 1}" in queries[0]["sql"]
