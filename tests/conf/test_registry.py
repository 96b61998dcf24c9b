"""Are the settings read lazily, once, and anew when they change?"""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import threading
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from catalog_fallback import conf
from catalog_fallback.conf import registry
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import UnknownCatalog
from tests.conf.adapters import PATH, Keyed
from tests.conf.making import SECRET, raw_catalog, raw_source, read_source


def test_importing_reads_no_settings() -> None:
    """The module can be imported before, and without, any settings."""
    code = "import catalog_fallback.conf; from django.conf import settings; assert not settings.configured"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={"PYTHONPATH": ":".join(sys.path)})


def test_a_catalog_is_parsed_once() -> None:
    """Everybody in the process has the same object."""
    assert conf.catalog("default") is conf.catalog("default")
    assert conf.catalogs()["default"] is conf.catalog("default")


def test_two_threads_never_parse_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second thread waits for what the first one parses."""
    calls: list[object] = []
    second: list[object] = []

    def parse(raw: object) -> Any:
        calls.append(raw)
        if len(calls) == 1:
            threads[0].start()
            threads[0].join(0.05)  # it cannot end before this returns
        return conf.parse(raw)

    threads = [threading.Thread(target=lambda: second.append(conf.catalogs()))]
    conf.forget()
    monkeypatch.setattr(registry, "parse", parse)
    first = conf.catalogs()
    threads[0].join(10)
    assert second[0] is first
    assert len(calls) == 1


def test_the_catalogs_cannot_be_changed() -> None:
    """What was parsed is frozen."""
    with pytest.raises(TypeError):
        conf.catalogs()["default"] = conf.catalog("default")  # type: ignore[index]


@pytest.mark.parametrize(
    ("alias", "words"),
    [
        ("defualt", 'no catalog "defualt" in CATALOG_FALLBACK. Did you mean "default"?'),
        ("zzz", "Known are: default."),
        (["default"], "no catalog a list of length 1"),
        (None, "no catalog None"),
    ],
    ids=["typo", "unknown", "list", "none"],
)
def test_an_unknown_catalog_is_named(alias: Any, words: str) -> None:
    """The error says what was meant, or what there is."""
    with pytest.raises(UnknownCatalog) as caught:
        conf.catalog(alias)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["CATALOG_FALLBACK", "CACHES"])
def test_a_changed_setting_is_read_anew(settings: Any, name: str) -> None:
    """``override_settings`` in a site's tests works, for the setting and for what it depends on."""
    before = conf.catalog("default")
    setattr(settings, name, copy.copy(getattr(settings, name)))
    assert conf.catalog("default") is not before


def test_changed_databases_are_a_reason_to_read_anew() -> None:
    """Django itself warns of overriding DATABASES; its signal is enough here."""
    before = conf.catalog("default")
    conf.on_setting_changed(setting="DATABASES", value={}, enter=True)
    assert conf.catalog("default") is not before


def test_another_setting_changes_nothing(settings: Any) -> None:
    """Breakers and caches live on when a test changes something else."""
    before = conf.catalog("default")
    settings.LANGUAGE_CODE = "de"
    assert conf.catalog("default") is before


def test_wrong_settings_are_refused_with_all_complaints(settings: Any) -> None:
    """The runtime is never half configured: a right catalog beside a wrong one is not used either."""
    settings.CATALOG_FALLBACK = {**raw_catalog(), "other": {"SOURCES": {}, "TTL": -1}}
    with pytest.raises(ImproperlyConfigured) as caught:
        conf.catalog("default")
    assert 'CATALOG_FALLBACK["other"]["SOURCES"] holds no source. Add one' in str(caught.value)
    assert 'CATALOG_FALLBACK["other"]["TTL"] is -1. Set it to seconds' in str(caught.value)


def test_missing_settings_are_refused(settings: Any) -> None:
    """Without the setting the error shows how to write it."""
    del settings.CATALOG_FALLBACK
    conf.forget()  # deleting a setting sends no signal
    with pytest.raises(ImproperlyConfigured, match=r'is not set\. Set it to \{"default": \{"SOURCES"'):
        conf.catalogs()


def test_warnings_do_not_keep_a_site_from_running(settings: Any) -> None:
    """What is only odd is for the system checks."""
    settings.CATALOG_FALLBACK = raw_source(CONNECT_TIMEOUT=5)
    assert conf.catalog("default").sources[0].connect_timeout == 5.0


def test_per_catalog_builds_one_object_for_each_alias() -> None:
    """The object is built from the catalog's configuration, when first asked for."""
    built: list[CatalogConfig] = []
    per = conf.PerCatalog(lambda config: built.append(config) or object())
    assert built == []
    assert per["default"] is per["default"]
    assert built == [conf.catalog("default")]
    with pytest.raises(UnknownCatalog):
        per["other"]


def test_per_catalog_costs_one_plain_lookup() -> None:
    """A known alias is looked up by dict itself."""
    assert conf.PerCatalog.__getitem__ is dict.__getitem__


def test_two_threads_never_build_two_objects() -> None:
    """A second thread waits for the first one's object."""
    second: list[object] = []

    def build(config: CatalogConfig) -> object:
        if not threads:
            threads.append(threading.Thread(target=lambda: second.append(per["default"])))
            threads[0].start()
            threads[0].join(0.05)  # it cannot end before this returns
        return object()

    threads: list[threading.Thread] = []
    per: conf.PerCatalog[object] = conf.PerCatalog(build)
    first = per["default"]
    threads[0].join(10)
    assert second == [first]


def test_one_object_may_ask_for_another_while_it_is_built() -> None:
    """Chains are built from caches, caches from stores."""
    inner = conf.PerCatalog(lambda config: config.alias)
    outer = conf.PerCatalog(lambda config: [inner[config.alias]])
    assert outer["default"] == ["default"]


def test_a_failed_build_leaves_nothing_behind() -> None:
    """The next one tries again."""
    answers = iter([ValueError("not yet"), None])

    def build(config: CatalogConfig) -> str:
        if (error := next(answers)) is not None:
            raise error
        return "built"

    per = conf.PerCatalog(build)
    with pytest.raises(ValueError, match="not yet"):
        per["default"]
    assert per["default"] == "built"


def test_a_changed_setting_drops_and_disposes_of_the_objects(settings: Any) -> None:
    """Pools of connections are closed; the next use builds from the new settings."""
    disposed: list[float] = []
    per = conf.PerCatalog(lambda config: config.ttl, disposed.append)
    other = conf.PerCatalog(lambda config: config.ttl)
    assert (per["default"], other["default"], disposed) == (60.0, 60.0, [])
    settings.CATALOG_FALLBACK = raw_catalog(TTL=7)
    assert disposed == [60.0]
    assert (per["default"], other["default"]) == (7.0, 7.0)


def test_a_per_catalog_that_nobody_holds_goes_away() -> None:
    """Tests that make many of them keep none."""
    disposed: list[object] = []
    per = conf.PerCatalog(lambda config: object(), disposed.append)
    per["default"]
    del per
    gc.collect()
    conf.forget()
    assert disposed == []


def test_a_source_is_built_from_its_configuration() -> None:
    """BACKEND with its OPTIONS as keyword arguments."""
    source = conf.build_source(read_source(BACKEND=PATH + "Keyed", OPTIONS={"key": SECRET}))
    assert isinstance(source, Keyed)
    assert (source.key, source.alias) == (SECRET, "primary")


def test_a_source_that_refuses_its_options_is_named_without_them() -> None:
    """The error names the place and what the adapter said, without the secrets that it quoted."""
    config = read_source(BACKEND=PATH + "Keyed", OPTIONS={"key": SECRET, "country": "nowhere"})
    with pytest.raises(ImproperlyConfigured) as caught:
        conf.build_source(config)
    assert 'CATALOG_FALLBACK["default"]["SOURCES"]["primary"] cannot be made (ValueError: no country' in str(
        caught.value
    )
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
