"""How do the tests make settings, and look at what was read?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from catalog_fallback import conf
from catalog_fallback.conf import Complaint
from catalog_fallback.configuration import CatalogConfig, SourceConfig

URL = "https://api.example.com/items/{id}"
SECRET = "s3cr3t-canary-9f8e7d"
CATALOG = 'CATALOG_FALLBACK["default"]'
SOURCE = f'{CATALOG}["SOURCES"]["primary"]'


def raw_catalog(**keys: Any) -> dict[str, Any]:
    """The setting with one catalog of one source, and these catalog keys."""
    return {"default": {"SOURCES": {"primary": {"URL": URL}}, **keys}}


def raw_source(**keys: Any) -> dict[str, Any]:
    """The setting with one catalog of one source, and these source keys."""
    return raw_catalog(SOURCES={"primary": {"URL": URL, **keys}})


def read(raw: object) -> CatalogConfig:
    """The default catalog of a setting in which nothing is wrong."""
    catalogs, complaints = conf.parse(raw)
    assert [str(each) for each in complaints] == []
    return catalogs["default"]


def read_source(**keys: Any) -> SourceConfig:
    """The source of a setting in which nothing is wrong."""
    return read(raw_source(**keys)).sources[0]


def complaints_of(raw: object) -> list[Complaint]:
    """What is wrong in a setting."""
    return conf.parse(raw)[1]


def only_complaint(raw: object) -> Complaint:
    """The one thing that is wrong in a setting; an error keeps the catalog from being used."""
    catalogs, complaints = conf.parse(raw)
    assert len(complaints) == 1, [str(each) for each in complaints]
    assert bool(catalogs) is not complaints[0].is_error
    return complaints[0]


def plain(value: Any) -> Any:
    """A configuration as plain values that can be compared, whatever its repr hides."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value
