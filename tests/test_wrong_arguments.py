"""Does every public verb say clearly which argument is of the wrong type, and what it should be?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from catalog_fallback import invalidations, services
from catalog_fallback.exceptions import InvalidItemID, UnknownCatalog
from catalog_fallback.models import StoppedItem
from catalog_fallback.services import guarded
from catalog_fallback.templatetags.catalog_fallback import catalog_item
from tests.sites import Site

Verb = Callable[..., Any]


def _run(verb: Callable[..., Coroutine[Any, Any, Any]]) -> Verb:
    return lambda *args, **kwargs: asyncio.run(verb(*args, **kwargs))


def _invalidating(item_id: str, **arguments: Any) -> None:
    with services.invalidating(item_id, **arguments):
        pass


def _guarded(**arguments: Any) -> None:
    with guarded("x", **arguments):
        pass


async def _aguarded(**arguments: Any) -> None:
    async with guarded("x", **arguments):
        pass


def _shared_budget(item_id: str, budget: Any) -> None:
    with services.time_budget(budget):
        services.find_item(item_id)


LOOKING_UP: dict[str, Verb] = {
    "find_item": services.find_item,
    "afind_item": _run(services.afind_item),
    "find_items": lambda item_id="P001", **kwargs: services.find_items([item_id], **kwargs),
    "afind_items": lambda item_id="P001", **kwargs: asyncio.run(services.afind_items([item_id], **kwargs)),
    "explain_item": services.explain_item,
}
STOPPING: dict[str, Verb] = {
    "stop_item": services.stop_item,
    "stop_items": lambda item_id, **kwargs: services.stop_items([item_id], **kwargs),
    "release_item": services.release_item,
    "release_items": lambda item_id, **kwargs: services.release_items([item_id], **kwargs),
}
OF_ONE_ITEM: dict[str, Verb] = {
    **LOOKING_UP,
    **STOPPING,
    "catalog_item": catalog_item,
    "invalidate_item": services.invalidate_item,
    "invalidate_items": lambda item_id, **kwargs: services.invalidate_items([item_id], **kwargs),
    "invalidating": _invalidating,
    "take_notice": lambda item_id, **kwargs: invalidations.take_notice([item_id], **kwargs),
}
OF_MANY: dict[str, Verb] = {
    "find_items": services.find_items,
    "afind_items": _run(services.afind_items),
    "invalidate_items": services.invalidate_items,
    "stop_items": services.stop_items,
    "release_items": services.release_items,
    "take_notice": invalidations.take_notice,
}
OF_A_CATALOG: dict[str, Verb] = {
    **{name: lambda verb=verb, **kwargs: verb("P001", **kwargs) for name, verb in OF_ONE_ITEM.items()},
    "guarded": _guarded,
    "aguarded": _run(_aguarded),
}
BUDGETED = ("find_item", "afind_item", "find_items", "afind_items")


#: What is given → the error, and what its message says: the argument, what was given, what it should be.
CATALOGS: dict[str, tuple[object, str]] = {
    "a list": ([], r"There is no catalog a list of length 0 in CATALOG_FALLBACK\. Known are: default"),
    "a dict": ({}, r"There is no catalog a dict"),
    "a set": ({"default"}, r"There is no catalog a set"),
    "a tuple with a list": (([],), r"There is no catalog a tuple"),
    "a number": (3, r"There is no catalog an int"),
    "None": (None, r"There is no catalog None"),
    "bytes": (b"default", r"There is no catalog a bytes"),
    "an unknown one": ("defualt", r'There is no catalog "defualt" in CATALOG_FALLBACK\. Did you mean .*default'),
}
IDS: dict[str, tuple[object, str]] = {
    "None": (None, r"^A value of type NoneType is no item ID of catalog 'default': .*ID_PATTERN"),
    "bytes": (b"P001", r"^A value of type bytes is no item ID"),
    "a number": (1, r"^A value of type int is no item ID"),
    "a list": (["P001"], r"^A value of type list is no item ID"),
}
LANGUAGES_AND_VARY: dict[str, tuple[str, object, str]] = {
    "language: a number": ("language", 3, r"^language=3 has to be an ASCII string"),
    "language: a list": ("language", [], r"^language=\[\] has to be an ASCII string"),
    "language: bytes": ("language", b"en", r"^language=b'en' has to be an ASCII string"),
    "vary: a string": ("vary", "x", r"^vary='x' has to be a mapping of str to str"),
    "vary: a list": ("vary", [1], r"^vary=\[1\] has to be a mapping of str to str"),
    "vary: an empty list": ("vary", [], r"^vary=\[\] has to be a mapping of str to str"),
    "vary: nought": ("vary", 0, r"^vary=0 has to be a mapping of str to str"),
    "vary: a number": ("vary", 3, r"^vary=3 has to be a mapping of str to str"),
    "vary: an unknown name": ("vary", {"colour": "red"}, r"^vary has colour, which no source of catalog 'default'"),
    "vary: a name that is no string": ("vary", {1: "red"}, r"^vary has 1, which no source"),
    "vary: a value that is no string": ("vary", {"size": 3}, r"^vary\['size'\]=3 has to be a printable string"),
}
BUDGETS: dict[str, tuple[object, str]] = {
    "a string": ("1", r"^budget='1' has to be seconds"),
    "a list": ([], r"^budget=\[\] has to be seconds"),
    "a truth value": (True, r"^budget=True has to be seconds"),
    "NaN": (float("nan"), r"^budget=nan has to be at least"),
    "nothing": (0, r"^budget=0 has to be at least"),
}
EVENTS: dict[str, tuple[str, object, str]] = {
    "event_at: a string": ("event_at", "2026-05-03", r"^event_at='2026-05-03' has to be an aware datetime"),
    "event_at: a number": ("event_at", 3, r"^event_at=3 has to be an aware datetime"),
    "note: a number": ("note", 3, r"^note has to be a string, not a int"),
    "note: a list": ("note", [], r"^note has to be a string, not a list"),
}


@pytest.fixture(autouse=True)
def shop(site: Site) -> Site:
    """A site whose source knows the item."""
    site.simulate(None)
    return site


@pytest.mark.parametrize(("catalog", "message"), CATALOGS.values(), ids=CATALOGS)
@pytest.mark.parametrize("verb", OF_A_CATALOG.values(), ids=OF_A_CATALOG)
def test_a_catalog(verb: Verb, catalog: object, message: str) -> None:
    """Unhashable ones too."""
    with pytest.raises(UnknownCatalog, match=message):
        verb(catalog=catalog)
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize("verb", [each for each in OF_A_CATALOG if each.removeprefix("a") in BUDGETED])
def test_a_catalog_beside_a_budget(verb: str) -> None:
    """The budget of the catalog is then not asked for."""
    with pytest.raises(UnknownCatalog, match=r"There is no catalog a list"):
        OF_A_CATALOG[verb](catalog=[], budget=1.0)


@pytest.mark.parametrize(("item_id", "message"), IDS.values(), ids=IDS)
@pytest.mark.parametrize("verb", OF_ONE_ITEM.values(), ids=OF_ONE_ITEM)
def test_an_id(verb: Verb, item_id: object, message: str) -> None:
    """A value of another type is shown by its type only."""
    with pytest.raises(InvalidItemID, match=message) as caught:
        verb(item_id)
    assert isinstance(caught.value, ValueError)
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize("item_ids", ["P001", b"P001", None, 3], ids=["a string", "bytes", "None", "a number"])
@pytest.mark.parametrize("verb", OF_MANY.values(), ids=OF_MANY)
def test_several_ids(verb: Verb, item_ids: object) -> None:
    """The letters of a string would be IDs."""
    kind = "the string 'P001'" if item_ids == "P001" else f"a {type(item_ids).__name__}"
    with pytest.raises(TypeError, match=f"^item_ids: a list of IDs is needed, .*, not {kind}"):
        verb(item_ids)
    assert not StoppedItem.objects.exists()


@pytest.mark.parametrize(("name", "value", "message"), LANGUAGES_AND_VARY.values(), ids=LANGUAGES_AND_VARY)
@pytest.mark.parametrize("verb", LOOKING_UP.values(), ids=LOOKING_UP)
def test_language_and_vary(shop: Site, verb: Verb, name: str, value: object, message: str) -> None:
    """Whatever is wrong with them is a ValueError, and nobody is asked."""
    shop.configure({"URL": shop.primary.template + "?size={size}"})
    with pytest.raises(ValueError, match=message):
        verb("P001", **{name: value})
    assert shop.calls == (0, 0)


@pytest.mark.parametrize(("budget", "message"), BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("verb", [LOOKING_UP[each] for each in BUDGETED] + [_shared_budget], ids=[*BUDGETED, "shared"])
def test_a_budget(verb: Verb, budget: object, message: str) -> None:
    """Of one lookup, or of several."""
    with pytest.raises(ValueError, match=message):
        verb("P001", budget=budget)


@pytest.mark.parametrize(("name", "value", "message"), EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("verb", STOPPING.values(), ids=STOPPING)
def test_what_is_said_of_a_stop(verb: Verb, name: str, value: object, message: str) -> None:
    """Nothing is written."""
    with pytest.raises(ValueError, match=message):
        verb("P001", **{name: value})
    assert not StoppedItem.objects.exists()
