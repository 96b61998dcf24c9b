"""Can the catalogs be asked? A check for django-health-check that only reads state: no call, no permit.

It says that sources rest, not that this process is ill: show it to people, do not let it restart anything.
"""

from __future__ import annotations

import dataclasses

from health_check.base import HealthCheck
from health_check.exceptions import ServiceUnavailable, ServiceWarning

from catalog_fallback import aio, conf
from catalog_fallback.fallback import chain_of


@dataclasses.dataclass
class CatalogSources(HealthCheck):
    """A warning where some sources of a catalog would refuse a call, an error where all of one would."""

    catalog: str | None = None

    async def run(self) -> None:
        """Look at the guards; raises ServiceWarning or ServiceUnavailable."""
        await aio.in_thread(self.look)

    def look(self) -> None:
        """The same without asyncio."""
        aliases = conf.catalogs() if self.catalog is None else (self.catalog,)
        resting = {alias: _resting(alias) for alias in aliases}
        dead = [alias for alias, sources in resting.items() if len(sources) == len(chain_of[alias].callers)]
        told = "; ".join(f"{alias}: {', '.join(sources)}" for alias, sources in resting.items() if sources)
        if dead:
            raise ServiceUnavailable(f"No source can be called ({told})")
        if told:
            raise ServiceWarning(f"Some sources rest ({told})")


def _resting(alias: str) -> list[str]:
    """Return the sources that would not be called now, each with the reason."""
    chain = chain_of[alias]
    outlook = chain.look()
    refusals = [(caller.config.alias, caller.refusal(outlook)) for caller in chain.callers]
    return [f"{source} ({refusal.reason})" for source, refusal in refusals if refusal is not None]
