"""Is the tree of exceptions the one that is drawn, and do they carry what they promise?"""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest

from catalog_fallback import exceptions
from catalog_fallback.exceptions import CatalogError

_LINE = re.compile(r"^(?P<branch>[ │├└─]*)(?P<name>[A-Z]\w+)(?:\((?P<also>\w+)\))?(?:\s{2,}(?P<words>.+))?$")

#: What the drawing does not show: the exceptions of Python that ours are as well.
BUILT_IN = {"ValueError": ValueError, "LookupError": LookupError, None: Exception}


def drawn() -> dict[str, tuple[str | None, str | None]]:
    """Name → parent and built-in base, as drawn in the module's docstring."""
    tree: dict[str, tuple[str | None, str | None]] = {}
    path: list[str] = []
    for line in (exceptions.__doc__ or "").splitlines():
        match = _LINE.match(line[4:]) if line.startswith("    ") else None
        if match is None:
            continue
        depth = len(match["branch"]) // 4
        path[depth:] = [match["name"]]
        tree[match["name"]] = (path[depth - 1] if depth else None, match["also"])
    return tree


def public() -> dict[str, type[Exception]]:
    """The public exceptions of the module."""
    return {
        name: thing
        for name, thing in vars(exceptions).items()
        if inspect.isclass(thing) and issubclass(thing, Exception) and not name.startswith("_")
    }


def test_the_drawing_has_every_exception() -> None:
    """No more and no fewer."""
    assert drawn().keys() == public().keys()
    assert len(drawn()) == 13


@pytest.mark.parametrize("name", drawn())
def test_the_tree_is_the_drawn_one(name: str) -> None:
    """Each has the parent that is drawn, and the built-in base that is named."""
    parent, also = drawn()[name]
    kind = public()[name]
    nearest = next((each for each in kind.__mro__[1:] if each.__name__ in public()), None)
    assert (None if nearest is None else nearest.__name__) == parent
    assert issubclass(kind, BUILT_IN[also])
    others = {base for base in (ValueError, LookupError) if base.__name__ != also}
    inherited = {base for base in others if parent is not None and issubclass(public()[parent], base)}
    assert {base for base in others if issubclass(kind, base)} == inherited


@pytest.mark.parametrize("name", public())
def test_each_says_what_it_means(name: str) -> None:
    """A docstring, a message, and a base that catches all of them."""
    kind = public()[name]
    assert kind.__doc__
    error = kind("the message")
    assert str(error) == "the message"
    assert isinstance(error, CatalogError)


@pytest.mark.parametrize("name", public())
def test_each_can_be_copied_and_pickled(name: str) -> None:
    """Task queues and process pools do that; the attributes survive."""
    kind = public()[name]
    special = {"retry_after": 5.0, "reason": "legal"}
    keywords = {key: value for key, value in special.items() if hasattr(kind("no"), key)}
    error = kind("the message", **keywords)
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(other), str(other), vars(other)) == (kind, "the message", vars(error))
    assert {key: vars(error)[key] for key in keywords} == keywords


@pytest.mark.parametrize(
    "name", ["ItemUnavailable", "CallRejected", "CircuitOpen", "RateLimited", "CoolingDown", "BulkheadFull"]
)
def test_some_know_when_to_try_again(name: str) -> None:
    """Seconds, or None where nobody knows."""
    kind = public()[name]
    assert kind("no").retry_after is None  # type: ignore[attr-defined]
    assert kind("no", retry_after=0.0).retry_after == 0.0  # type: ignore[call-arg, attr-defined]


def test_a_stop_may_have_a_reason() -> None:
    """The reason of the stop list, where it is known."""
    assert exceptions.ItemStopped("no").reason == ""
    assert exceptions.ItemStopped("no", reason="legal").reason == "legal"
