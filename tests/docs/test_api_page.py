"""Does docs/reference/api.md name what is public, as it is? Signatures, fields, exceptions, members."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from enum import Enum
from typing import Any

import pytest

from catalog_fallback import cdn, exceptions, models, results, services, testing
from catalog_fallback.sources.base import Source
from tests.docs.pages import DOCS

PAGE = DOCS / "reference" / "api.md"
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
#: Exported beside the verbs: a value, which the text names.
VALUES = {"NOT_SET"}


def first_cells(section: str) -> list[str]:
    """What is written as code in the first column of a section's tables, row by row."""
    rows = re.findall(r"^\| (`.+?) \|", SECTIONS[section], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def written(name: str, function: Any) -> str:
    """A signature as the page writes it: without types and ``self``, texts in double quotes."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_Shown.of(parameter.default))
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]
    return f"{name}{inspect.Signature(parameters)}"


class _Shown:
    """A default as it is written on the page."""

    def __init__(self, value: object) -> None:
        self.value = value

    @classmethod
    def of(cls, value: object) -> object:
        """Leave "no default" as it is."""
        return value if value is inspect.Parameter.empty else cls(value)

    def __repr__(self) -> str:
        if isinstance(self.value, str):
            return f'"{self.value!s}"'
        return self.value.name if isinstance(self.value, Enum) else repr(self.value)


def test_every_verb_has_a_row_with_its_signature() -> None:
    """All that services exports; a changed argument or default changes the page."""
    expected = [written(name, getattr(services, name)) for name in services.__all__ if name not in VALUES]
    assert sorted(first_cells("Verbs")) == sorted(expected)
    assert all(name in SECTIONS["Verbs"] for name in VALUES)


def test_a_changed_default_is_noticed() -> None:
    """The comparison sees defaults, the star, and enums as what they are."""

    def verb(item_id: str, *, catalog: str = "default", fallback: object = services.NOT_SET) -> None:
        """An example."""

    assert written("verb", verb) == 'verb(item_id, *, catalog="default", fallback=NOT_SET)'


def test_a_lookup_has_these_fields_and_properties() -> None:
    """Every public attribute has its row, and no row is made up."""
    public = {name for name in dir(results.Lookup) if not name.startswith("_")}
    assert {cell.removesuffix("()") for cell in first_cells("Lookup")} == public


@pytest.mark.parametrize(
    ("enum", "section"), [(results.State, "Lookup"), (results.CacheStatus, "Lookup"), (results.Outcome, "Lookup")]
)
def test_the_values_of_an_enum_are_named(enum: type[Enum], section: str) -> None:
    """In the row, or the sentence, about it."""
    (sentence,) = re.findall(rf"`{enum.__name__}`: ([^)|.]+)", SECTIONS[section])
    assert re.findall(r"`(\w+)`", sentence) == [str(member) for member in enum]


def test_an_attempt_has_these_fields() -> None:
    """The sentence about it names all of them."""
    (sentence,) = re.findall(r"^`Attempt` has (.+?)\.$", SECTIONS["Lookup"], re.MULTILINE | re.DOTALL)
    assert {field.name for field in dataclasses.fields(results.Attempt)} <= set(re.findall(r"`(\w+)`", sentence))


def test_an_explanation_has_these_fields() -> None:
    """With those of its sources."""
    assert first_cells("Explanation") == [field.name for field in dataclasses.fields(results.Explanation)]
    assert all(f"`{name}`" in SECTIONS["Explanation"] for name in results.SourceExplanation._fields)


def test_the_exceptions_are_those_of_the_tree() -> None:
    """The very tree that the module's docstring draws."""
    (tree,) = re.findall(r"^```\n(.+?)^```", SECTIONS["Exceptions"], re.MULTILINE | re.DOTALL)
    assert [line.strip() for line in tree.splitlines()] == [
        line.strip() for line in (exceptions.__doc__ or "").split("::\n\n")[1].split("\n\n")[0].splitlines()
    ]
    public = {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and value.__module__ == exceptions.__name__ and not name.startswith("_")
    }
    assert "CatalogError" in public
    assert set(re.findall(r"[A-Z]\w+(?=\(|\s|$)", tree)) >= public


def test_the_tree_is_true() -> None:
    """Each class has the parents that it is drawn under."""
    assert issubclass(exceptions.InvalidItemID, ValueError)
    assert issubclass(exceptions.UnknownCatalog, LookupError)
    assert issubclass(exceptions.ItemNotFound, LookupError)
    for name in ("CircuitOpen", "RateLimited", "CoolingDown", "BulkheadFull", "BudgetExhausted"):
        assert issubclass(getattr(exceptions, name), exceptions.CallRejected)


def test_every_member_of_an_adapter_has_its_row() -> None:
    """With its arguments, where it is a method."""
    rows = {cell.partition("(")[0]: cell for cell in first_cells("Adapters")}
    public = {name: value for name, value in vars(Source).items() if not name.startswith("_")}
    values = {"Request", "Reply", "NoReply", "Verdict"}
    assert set(public) == {name for name in rows if name in dir(Source)}
    for name, value in public.items():
        function = getattr(Source, name) if isinstance(value, (staticmethod, classmethod)) else value
        if callable(function):
            assert rows[name] == written(name, function), name
    assert values <= set(rows)


@pytest.mark.parametrize("value", ["Request", "Reply", "NoReply", "Verdict"])
def test_the_values_that_adapters_speak_in_have_these_fields(value: str) -> None:
    """In their order."""
    (cell,) = re.findall(rf"^\| `{value}` \| (.+) \|$", SECTIONS["Adapters"], re.MULTILINE)
    assert re.findall(r"`(\w+)`", cell) == [field.name for field in dataclasses.fields(getattr(results, value))]


def test_everything_for_tests_has_its_row() -> None:
    """All that the testing kit exports."""
    assert sorted(first_cells("For tests of your site")) == sorted(testing.__all__)


def test_what_is_elsewhere_is_there() -> None:
    """Models and tags."""
    text = SECTIONS["Elsewhere"]
    assert all(hasattr(models, name) for name in ("StoppedItem", "UnansweredItem", "CatalogSource"))
    assert all(hasattr(cdn, name) for name in ("item_tag", "catalog_tag"))
    names = re.findall(r"`(catalog_fallback[\w.]+)`", text)
    assert len(names) >= 6
    for name in names:
        assert _is_there(name), name


def _is_there(name: str) -> bool:
    """A module, or a name within one."""
    module, _, attribute = name.rpartition(".")
    for found, wanted in ((name, ""), (module, attribute)):
        try:
            loaded = __import__(found, fromlist=["_"])
        except ImportError:
            continue
        if not wanted or hasattr(loaded, wanted):
            return True
    return False


def test_the_imports_of_the_page_work() -> None:
    """Each `from … import …` that names something."""
    lines = re.findall(r"`(from catalog_fallback[\w.]* import [^`…]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(lines) >= 2
    for line in lines:
        exec(compile(ast.parse(line), str(PAGE), "exec"), {})  # noqa: S102  # our own page
