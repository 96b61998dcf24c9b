"""Does a secret ever show? Canaries are planted wherever a site keeps one, and searched for wherever somebody looks."""

from __future__ import annotations

import base64
import contextlib
import io
import logging
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core import checks
from django.core.cache import caches
from django.core.management import call_command, get_commands

from catalog_fallback import conf, services, signals
from catalog_fallback.cache import entries_of
from catalog_fallback.exceptions import CatalogError
from catalog_fallback.fallback import chain_of
from catalog_fallback.results import Reply, Request
from tests import loopback as wire
from tests.loopback import Script
from tests.scripted import PATH
from tests.sites import FOUND, NOT_FOUND, Site

HEADER, CALLED, QUERY, OPTION, BODY = (
    f"canary-{name}-8d1f3" for name in ("header", "called", "query", "option", "body")
)
NOTICE = "whsec_" + base64.b64encode(b"canary-notice-8d1f3-0123456789ab").decode()
CANARIES = (HEADER, CALLED, QUERY, OPTION, BODY, NOTICE, NOTICE[6:], "8d1f3")

SCRIPTS: dict[str, Script] = {
    "found": wire.ok({"item": {"id": "P001", "name": "Tea"}}, {"X-Trace": BODY}),
    "temporary": wire.reply(503, BODY.encode(), {"X-Trace": BODY}),
    "stop": wire.reply(403, BODY.encode(), {"WWW-Authenticate": BODY}),
    "redirect": wire.redirect(f"/login?key={BODY}"),
    "no JSON": wire.reply(200, BODY.encode()),
    "no envelope": wire.ok({"error": BODY}),
    "another item": wire.ok({"item": {"id": BODY, "name": BODY}}),
    "bad status line": wire.raw(f"HTTP/1.1 {BODY}\r\n\r\n".encode()),
    "bad header line": wire.raw(f"HTTP/1.1 200 OK\r\n{BODY}\r\n\r\n".encode()),
    "cut body": wire.cut_body(body=f'{{"item": "{BODY}"}}'.encode()),
    "closed": wire.close_before_head,
    "silence": wire.silence,
    "odd Retry-After": wire.reply(503, b"", {"Retry-After": BODY, "Cache-Control": BODY, "Age": BODY}),
}
BACKENDS = ["FailsWithEverything", "FailsToParseLoudly", "FailsToAsk"]


@pytest.fixture
def log() -> Iterator[Callable[[], str]]:
    """Everything that any logger says, at DEBUG, formatted with tracebacks."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream.getvalue
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def secretive(site: Site) -> Site:
    """A site whose settings are full of secrets, all of which reach the server."""
    configure(site)
    return site


def configure(site: Site, **keys: Any) -> None:
    """The settings of that site."""
    source = {
        "URL": site.primary.template + f"?key={QUERY}",
        "HEADERS": {"Authorization": HEADER, "X-Key": lambda: CALLED},
        "TIMEOUT": 0.2,
    }
    site.configure({**source, **keys}, {**source, "URL": site.secondary.template}, NOTICE_SECRETS=[NOTICE])


def hunt(text: str) -> None:
    """No canary is in the text."""
    assert [canary for canary in CANARIES if canary in text] == []


def test_the_canaries_are_planted(secretive: Site) -> None:
    """Otherwise the other tests could not find them."""
    secretive.say(FOUND)
    secretive.find()
    received = secretive.primary.requests[0]
    assert (received.header("Authorization"), received.header("X-Key")) == (HEADER, CALLED)
    assert received.target == f"/items/P001?key={QUERY}"
    assert conf.catalog("default").notice_secrets == (NOTICE,)


@pytest.mark.parametrize("case", SCRIPTS)
def test_h70_a_lookup_shows_no_secret(secretive: Site, case: str, log: Callable[[], str]) -> None:
    """Not in the log, the answer, the trace, a signal, the cache or an exception."""
    heard: list[Any] = []

    def listen(**arguments: Any) -> None:
        heard.append(arguments)

    signals.lookup_finished.connect(listen)
    signals.source_called.connect(listen)
    secretive.say(SCRIPTS[case], SCRIPTS[case])
    try:
        lookup = secretive.find()
    finally:
        signals.lookup_finished.disconnect(listen)
        signals.source_called.disconnect(listen)
    assert heard
    hunt(log())
    for value in (lookup, lookup.trace, lookup.as_dict(), lookup.reason, heard, services.explain_item("P001")):
        hunt(repr(value))
    try:
        lookup.raise_for_state()
    except CatalogError:
        hunt(traceback.format_exc())
    hunt(repr(caches["default"]._cache))  # type: ignore[attr-defined]  # what LocMem holds, pickled


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_traceback_of_a_broken_adapter_shows_no_secret(site: Site, backend: str, log: Callable[[], str]) -> None:
    """Where it broke and with what kind of exception; its message may quote anything and is not logged."""
    configure(site, BACKEND=PATH + backend)
    site.say(wire.reply(200, BODY.encode()))
    lookup = site.find()
    assert lookup.reason == "source_error"
    assert "Traceback" in log()
    assert "scripted.py" in log()
    hunt(log())
    hunt(repr(lookup))


def test_reprs_show_no_secret(secretive: Site) -> None:
    """Configurations, sources, requests and replies."""
    chain = chain_of["default"]
    source = conf.build_source(conf.catalog("default").sources[0])
    request = source.request("P001", "", {})
    assert QUERY in request.url
    values = [
        conf.catalogs(),
        conf.catalog("default"),
        *conf.catalog("default").sources,
        chain,
        vars(chain),
        source,
        vars(source),
        entries_of["default"],
        request,
        Request("http://x", {"A": HEADER}, {"key": QUERY}),
        Reply(200, {"a": HEADER}, BODY.encode()),
    ]
    for value in values:
        hunt(repr(value))
        hunt(f"{value} {value!s}")


WRONG: dict[str, dict[str, Any]] = {
    "nothing": {},
    "header with a line break": {"HEADERS": {"X": HEADER + "\r\n"}},
    "header that is no text": {"HEADERS": {"X": [HEADER]}},
    "password in the URL": {"URL": f"https://user:{QUERY}@example.com/{{id}}"},
    "no placeholder": {"URL": f"https://example.com/?key={QUERY}"},
    "broken URL": {"URL": f"ftp://example.com/{{id}}?key={QUERY}"},
    "unknown option": {"OPTIONS": {"key": OPTION}},
    "unknown key": {"API_KEY": OPTION},
}


@pytest.mark.parametrize("deploy", [False, True])
@pytest.mark.parametrize("case", WRONG)
def test_system_checks_show_no_secret(site: Site, case: str, deploy: bool) -> None:
    """Whatever they complain about."""
    configure(site, **WRONG[case])
    messages = checks.run_checks(tags=["catalog_fallback"], include_deployment_checks=deploy)
    hunt(" ".join(f"{message} {message.hint}" for message in messages))


@pytest.mark.parametrize("case", WRONG)
def test_refused_settings_show_no_secret(site: Site, case: str, log: Callable[[], str]) -> None:
    """The first lookup says what is wrong; a debug page or an error tracker shows it."""
    configure(site, **WRONG[case])
    site.say(FOUND)
    try:
        site.find()
    except Exception:  # noqa: BLE001  # whatever it is: what does it show?
        hunt(traceback.format_exc())
    hunt(log())


@pytest.mark.parametrize("options", [[], ["--json"], ["--explain"], ["--refresh"]], ids=str)
@pytest.mark.parametrize("script", [SCRIPTS["found"], SCRIPTS["stop"], NOT_FOUND], ids=["found", "stop", "not found"])
def test_the_command_shows_no_secret(secretive: Site, script: Script, options: list[str]) -> None:
    """``lookup_item`` prints source, outcome, reason and time."""
    if "lookup_item" not in get_commands():
        pytest.skip("there is no such command")
    secretive.say(script, script)
    out = io.StringIO()
    with contextlib.suppress(SystemExit):
        call_command("lookup_item", "P001", *options, stdout=out, stderr=out)
    assert out.getvalue()
    hunt(out.getvalue())
