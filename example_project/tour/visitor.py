"""How does the tour use the stage? As people do: over HTTP and with commands. What it saw is a flat set of facts."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

from tour.processes import DemoFailed
from tour.stage import Stage

Facts = dict[str, Any]
TIMEOUT = 20.0


class Visitor:
    """Asks, switches, commands; ``done`` says in the words of a terminal what was done."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.done: list[str] = []

    def look_up(self, item_id: str, catalog: str = "default") -> Facts:
        """Ask the site's own page for programs, which shows the trace."""
        return self._counted(lambda: self._look_up(item_id, catalog))

    def look_up_by_command(self, item_id: str, catalog: str = "default") -> Facts:
        """Ask with ``manage.py lookup_item``."""

        def ask() -> Facts:
            exit_code, output = self.command("lookup_item", item_id, "--catalog", catalog, "--json")
            return {"exit": exit_code, **_facts(output)}

        return self._counted(ask)

    def hammer(self, item_id: str, catalog: str = "default") -> Facts:
        """Press the button "50 callers": how often they called is what the catalogs counted themselves."""
        return self._counted(lambda: _hammer_facts(self._press("hammer", {"catalog": catalog, "id": item_id})))

    def press(self, action: str, item_id: str, catalog: str = "default") -> Facts:
        """Press a button of the page about an item; its answer is not looked at."""
        self._press(action, {"catalog": catalog, "id": item_id})
        return {}

    def switch(self, catalog: str, fault: str) -> None:
        """Give a simulated catalog a fault."""
        self.done.append(f"the catalog {catalog} now: {fault}")
        body = urlencode({"fault": fault}).encode()
        urlopen(f"{self.stage.catalogs}/_faults/{catalog}", data=body, timeout=TIMEOUT).close()

    def command(self, *arguments: str) -> tuple[int, str]:
        """Run a command; its exit code and output."""
        self.done.append(f"$ manage.py {shlex.join(arguments)}")
        result = self.stage.manage(*arguments)
        return result.returncode, result.stdout or result.stderr

    def calls(self) -> Mapping[str, int]:
        """How often each simulated catalog was called so far."""
        with urlopen(f"{self.stage.catalogs}/_faults", timeout=TIMEOUT) as reply:
            return {name: row["calls"] for name, row in json.load(reply).items()}

    def _look_up(self, item_id: str, catalog: str) -> Facts:
        _, _, body = self._get(f"/look-up.json?{urlencode({'catalog': catalog, 'id': item_id})}")
        return _facts(body.decode("utf-8", "replace"))

    def _counted(self, ask: Callable[[], Facts]) -> Facts:
        before, started = self.calls(), time.monotonic()
        facts = ask()
        elapsed, after = time.monotonic() - started, self.calls()
        return {**facts, "calls": sum(after.values()) - sum(before.values()), "seconds": elapsed}

    def _press(self, action: str, fields: Mapping[str, str]) -> bytes:
        """Post a form as a browser does: with the cookie and the token of the page that it is on."""
        self.done.append(f"POST /do/{action}/ {shlex.join(f'{name}={value}' for name, value in fields.items())}")
        jar = CookieJar()
        browser = build_opener(HTTPCookieProcessor(jar))
        try:
            browser.open(f"{self.stage.site}/", timeout=TIMEOUT).close()
            token = next((cookie.value or "" for cookie in jar if cookie.name == "csrftoken"), "")
            body = urlencode({**fields, "csrfmiddlewaretoken": token}).encode()
            form = Request(f"{self.stage.site}/do/{action}/", body, {"Accept": "application/json"})
            with browser.open(form, timeout=TIMEOUT) as reply:
                return bytes(reply.read())
        except HTTPError as error:
            with error:
                return error.read()
        except OSError as error:
            raise DemoFailed(f"the site does not answer: {error}") from error

    def _get(self, path: str) -> tuple[int, str, bytes]:
        self.done.append(f"GET {path}")
        try:
            reply = urlopen(f"{self.stage.site}{path}", timeout=TIMEOUT)
        except HTTPError as error:
            reply = error
        except OSError as error:
            raise DemoFailed(f"the site does not answer: {error}") from error
        with reply:
            return reply.status, reply.headers.get_content_type(), reply.read()


def _facts(text: str) -> Facts:
    """The facts in a lookup that was printed as JSON; where it is none, what was there instead."""
    try:
        lookup = json.loads(text)
        facts = {name: lookup[name] for name in ("state", "reason", "source", "cache", "trace")}
        facts["name"] = (lookup["item"] or {}).get("name")
        facts["asked"] = [f"{attempt['source']} {attempt['outcome']}" for attempt in lookup["trace"]]
    except (ValueError, LookupError, TypeError):
        return {"state": f"no lookup but: {_gist(text)}"}
    return facts


def _hammer_facts(body: bytes) -> Facts:
    """The facts in the report of the hammer; where it is none, what was there instead."""
    text = body.decode("utf-8", "replace")
    try:
        report = json.loads(text)
        return {name: report[name] for name in ("callers", "states", "total")} | {"took": float(report["seconds"])}
    except (ValueError, LookupError, TypeError):
        return {"state": f"no report but: {_gist(text)}"}


def _gist(text: str) -> str:
    """The title of a page, else the end of a text, in one line."""
    title = re.search(r"<title>(.*?)</title>", text, re.DOTALL)
    return " ".join((title[1] if title else text[-300:]).split())
