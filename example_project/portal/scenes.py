"""What can be seen with one press? Scenes: which catalogs have which fault, what is asked, what is to be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog_fallback import conf
from catalog_fallback.operating import reset_source
from catalog_fallback.services import explain_item, invalidate_item, release_item, stop_item
from portal import switchboard


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene. ``faults`` are those of the simulated catalogs; all others are healthy."""

    title: str | Promise
    point: str | Promise
    item_id: str
    faults: Mapping[str, str] = field(default_factory=dict)
    catalog: str = "default"
    is_stopped: bool = False


SCENES: Mapping[str, Scene] = {
    "healthy": Scene(_("Everything works"), _("The first catalog answers, so nobody else is asked."), "P001"),
    "second": Scene(
        _("The first catalog lacks it"), _("It says so, and the second catalog is asked: it has the item."), "P002"
    ),
    "outage": Scene(
        _("The first catalog is down"),
        _("It hangs up. That says nothing about the item: the second catalog is asked, and has it."),
        "P004",
        {"primary": "down"},
    ),
    "drip": Scene(
        _("One byte every half second"),
        _("The call is cut off at its limit, whatever trickles in; the second catalog answers within the budget."),
        "P001",
        {"primary": "drip"},
    ),
    "gone": Scene(_("Nobody has it"), _("Every catalog said so. Only then the answer is “not found”."), "P404"),
    "unsure": Scene(
        _("Nobody has it, but one is down"),
        _("The same item, the same answer of the second catalog, but the first one could not be asked: nobody knows."),
        "P404",
        {"primary": "down"},
    ),
    "garbage": Scene(
        _("The first catalog talks nonsense"),
        _("Something is broken that the second catalog must not paper over: it is not even asked."),
        "P001",
        {"primary": "garbage"},
    ),
    "own": Scene(
        _("Both are down, the shop helps itself"),
        _("The answer stays “could not find out”; the shop's own data are shown, and marked as such."),
        "P001",
        {"primary": "down", "secondary": "down"},
        catalog="shop",
    ),
    "withdrawn": Scene(
        _("The item is withdrawn"),
        _("Both catalogs still have it, and nobody asks them: the item is on the stop list."),
        "P001",
        is_stopped=True,
    ),
}


def play(scene: Scene) -> bool:
    """Set the scene; False where the simulated catalogs do not run.

    Breakers are closed, the item is forgotten, and stopped or released; a cool-down that a catalog asked for goes on.
    """
    if not switchboard.reset():
        return False
    for source, fault in scene.faults.items():
        switchboard.switch(source, fault)
    close_breakers(scene.catalog)
    if scene.is_stopped:
        stop_item(scene.item_id, catalog=scene.catalog, note="demo")
    elif explain_item(scene.item_id, catalog=scene.catalog).is_stopped:
        release_item(scene.item_id, catalog=scene.catalog)
    invalidate_item(scene.item_id, catalog=scene.catalog, reason="demo")
    return True


def close_breakers(catalog: str) -> None:
    """Close the circuit breakers of a catalog's sources."""
    for source in conf.catalog(catalog).sources:
        reset_source(catalog, source.alias)
