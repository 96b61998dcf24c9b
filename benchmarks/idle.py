"""What does it cost a process to import us, and what does the import do behind its back?

Each measurement is an interpreter of its own. A site that has requests and Django's own apps is set up there, once
without and once with this package.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

#: Base of the ratios.
BASE = "a site with Django and requests"
_WITHOUT = "import requests and set Django up, without us: floor"
_WITH = "the same with us and catalog_fallback.services"
_THREADS = "import: threads started"
_SOCKETS = "import: sockets opened"
#: Beyond what Django itself reads when it is set up.
_SETTINGS = "import: settings of caches, catalogs and databases read"
#: Interpreters of each kind, at most: one takes half a second.
_MOST_ROUNDS = 9

#: Sockets are seen by an audit hook; Python 3.11 has none for threads, so these are counted where they start.
PROGRAM = """
import _thread, json, sys, threading, time
with_us = sys.argv[1] == "with"
began = time.perf_counter()
import django
import requests
from django.conf import settings
apps = ["django.contrib.auth", "django.contrib.contenttypes"]
settings.configure(INSTALLED_APPS=apps + ["catalog_fallback"] * with_us, SECRET_KEY="x", USE_TZ=True)
seen, read, watched = [], [], {"CACHES", "CATALOG_FALLBACK", "DATABASES", "DATABASE_ROUTERS"}
holder = type(settings._wrapped)
ask = holder.__getattribute__
def listen(event, arguments):
    if event == "socket.__new__":
        seen.append(event)
def counted(start):
    return lambda *given, **named: (seen.append("thread"), start(*given, **named))[1]
threading.Thread.start = counted(threading.Thread.start)
_thread.start_new_thread = counted(_thread.start_new_thread)
def spy(self, name):
    if name in watched:
        read.append(name)
    return ask(self, name)
settings._wrapped.__class__ = type("Watched", (holder,), {"__getattribute__": spy})
sys.addaudithook(listen)
django.setup()
if with_us:
    import catalog_fallback.services
spent = time.perf_counter() - began
threads, sockets = seen.count("thread"), seen.count("socket.__new__")
print(json.dumps({"spent": spent, "threads": threads, "sockets": sockets, "settings": sorted(set(read))}))
"""


def row_names() -> list[str]:
    """The names of the rows."""
    return [_WITHOUT, _WITH, _THREADS, _SOCKETS, _SETTINGS]


def run(around: Surroundings, rounds: int) -> list[Row]:
    """Start interpreters in turn, without us and with us."""
    pairs = [(start("without"), start("with")) for _ in range(min(rounds, _MOST_ROUNDS) + 1)][1:]
    ratio = statistics.median(ours["spent"] / floor["spent"] for floor, ours in pairs)
    floor_seen, seen = pairs[0]
    read = sorted(set(seen["settings"]) - set(floor_seen["settings"]))
    return [
        Row(_WITHOUT, 1.0, BASE, statistics.median(floor["spent"] for floor, _ in pairs) * 1e6),
        Row(_WITH, ratio, BASE, statistics.median(ours["spent"] for _, ours in pairs) * 1e6),
        Row(_THREADS, seen["threads"]),
        Row(_SOCKETS, seen["sockets"]),
        Row(_SETTINGS, len(read), note=", ".join(read)),
    ]


def start(kind: str, program: str = PROGRAM) -> dict[str, Any]:
    """Return what one new interpreter says: seconds, threads, sockets, and which settings were read."""
    done = subprocess.run([sys.executable, "-c", program, kind], check=True, capture_output=True, text=True)
    said: dict[str, Any] = json.loads(done.stdout)
    return said
