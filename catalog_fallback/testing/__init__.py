"""What does a site's test suite need? A clock to move, sources that answer as told, settings for one test, a contract.

::

    from catalog_fallback.testing import FrozenClock, fake_source, override_catalog

    asked = []
    with override_catalog(SOURCES={"fake": fake_source(items={"P001": "Tea"}, asked=asked)}), FrozenClock() as clock:
        find_item("P001")          # found
        clock.advance(61)          # TTL is 60
        find_item("P001")          # found again, and asked == ["P001", "P001"]

:class:`SourceContract` tries an adapter of your own against everything that goes wrong: see "Add a source".
"""

from catalog_fallback.testing.body_contract import BodyContract
from catalog_fallback.testing.clock import FrozenClock
from catalog_fallback.testing.contract import SourceContract
from catalog_fallback.testing.fakes import FakeSource, fake_source
from catalog_fallback.testing.overriding import override_catalog

__all__ = ["BodyContract", "FakeSource", "FrozenClock", "SourceContract", "fake_source", "override_catalog"]
