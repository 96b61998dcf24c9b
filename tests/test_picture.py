"""Is the picture of a lookup, at the top of the package and of the README, still true of the code?"""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

import catalog_fallback
from catalog_fallback import results

PACKAGE = Path(catalog_fallback.__file__).parent
ROOT = PACKAGE.parent
_PLACE = re.compile(r"(?<=\s)(?:[a-z_]+/)*[a-z_]+(?:\.py|/)(?=\s|$)")


def of_package() -> str:
    """The picture in the package's docstring."""
    _, _, block = (catalog_fallback.__doc__ or "").partition("::\n\n")
    return textwrap.dedent(block).strip()


def of_page(page: str) -> str:
    """The picture in a page: its first block."""
    match = re.search(r"^```\w*\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return match[1].strip() if match else ""


def places() -> list[str]:
    """Every file and folder that the picture names, in its order."""
    return _PLACE.findall(of_package())


def test_the_picture_is_there() -> None:
    """From the call to the answer."""
    assert of_package().startswith('find_item("P001")')
    assert len(places()) >= 6


@pytest.mark.parametrize("page", ["README.md", "docs/explanation/picture.md"])
def test_the_readme_and_the_docs_have_the_same_picture(page: str) -> None:
    """One of them would be wrong otherwise."""
    if not (ROOT / page).exists():
        pytest.skip("not in a source tree")
    assert of_page(page) == of_package()


@pytest.mark.parametrize("place", places())
def test_it_names_only_what_is_there(place: str) -> None:
    """Files and folders of this package, each with a first line that says which question it answers."""
    path = PACKAGE / place
    assert path.exists()
    source = (path / "__init__.py" if path.is_dir() else path).read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(source))


def test_the_functions_of_the_picture_are_there() -> None:
    """What it writes as a call can be called."""
    services = importlib.import_module("catalog_fallback.services")
    calls = set(re.findall(r"\b([a-z_]+)\(", of_package()))
    assert calls == {"find_item"}
    assert all(callable(getattr(services, name)) for name in calls)


def test_the_answer_of_the_picture_has_these_fields() -> None:
    """``Lookup(state, reason, item, …)`` names attributes."""
    match = re.search(r"Lookup\((.*?)\)", of_package())
    assert match is not None
    lookup = results.Lookup("P001", "default", results.State.NOT_FOUND, "all_not_found")
    assert all(hasattr(lookup, name) for name in match[1].split(", "))


def _imports(module: ModuleType) -> set[str]:
    """The modules of this package that a module imports."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("catalog_fallback"):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _reached(name: str) -> set[str]:
    """Everything that a module imports, directly or not."""
    todo, done = [name], set()
    while todo:
        one = todo.pop()
        try:
            module = importlib.import_module(one)
        except ImportError:
            continue  # a name within a module
        if module.__name__ not in done and module.__file__:
            done.add(module.__name__)
            todo += _imports(module)
    return done


@pytest.mark.parametrize("place", places())
def test_a_lookup_gets_there(place: str) -> None:
    """Every file of the picture is one that ``find_item`` reaches."""
    module = "catalog_fallback." + place.removesuffix(".py").strip("/").replace("/", ".")
    assert any(each == module or each.startswith(module + ".") for each in _reached("catalog_fallback.services"))


# --- importing does nothing -----------------------------------------------------------------------------------------

QUIET = """
import socket, sys, threading

def refuse(*args, **kwargs):
    raise AssertionError("importing did something")

socket.socket.connect = socket.getaddrinfo = threading.Thread.start = refuse

import django
from django.conf import LazySettings, settings

settings.configure(INSTALLED_APPS=[{apps}], USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
                   DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}},
                   CACHES={{"default": {{"BACKEND": "no.such.Backend"}}}}, CATALOG_FALLBACK="unreadable")
read = []
get = LazySettings.__getattr__
LazySettings.__getattr__ = lambda self, name: (read.append(name), get(self, name))[1]
django.setup()
import catalog_fallback.services
from django.core.cache import caches
from django.db import connection

assert "CATALOG_FALLBACK" not in read, read
assert "CACHES" not in read, read
assert caches.all(initialized_only=True) == []
assert connection.connection is None
assert threading.active_count() == 1
print("quiet")
"""
APPS = '"django.contrib.auth", "django.contrib.contenttypes", "catalog_fallback"'


def test_h45_importing_starts_nothing_and_reads_no_settings() -> None:
    """No thread, no socket, no cache, no connection, not even our setting: a server may fork afterwards."""
    code = QUIET.format(apps=APPS)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert (done.stdout.strip(), done.stderr) == ("quiet", "")


LOUD = """
import json, sys

seen, sockets, read = [], [], []

def listen(event, arguments):
    if event in {{"_thread.start_new_thread", "os.fork", "socket.bind", "socket.connect", "subprocess.Popen"}}:
        seen.append([event, repr(arguments)])
    elif event == "socket.__new__":
        sockets.append(arguments[0])

sys.addaudithook(listen)
import django
from django.conf import LazySettings, settings

settings.configure(INSTALLED_APPS=[{apps}], USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
get = LazySettings.__getattr__
LazySettings.__getattr__ = lambda self, name: (read.append(name), get(self, name))[1]
django.setup()
{then}
quiet = [event for event in seen if "socket.bind" not in event[0] or "'::1', 0" not in event[1]]
print(json.dumps([quiet, [one.fileno() for one in sockets], sorted(set(read))]))
"""


def test_importing_the_services_does_nothing_that_django_does_not() -> None:
    """Heard from the interpreter itself: no thread, no process, no socket left open, no setting read.

    urllib3 tries once, when it is imported, whether this machine has IPv6, with a socket that it closes.
    """
    heard = []
    for apps, then in (
        (APPS, "import catalog_fallback.services"),
        (APPS.replace(', "catalog_fallback"', ""), ""),
    ):
        code = LOUD.format(apps=apps, then=then)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
        heard.append(json.loads(done.stdout))
    (events, sockets, read), (_, _, read_by_django) = heard
    assert events == []
    assert set(sockets) <= {-1}
    assert read == read_by_django


def test_importing_the_package_itself_needs_no_django() -> None:
    """``catalog_fallback.__version__`` can be read by a build tool."""
    code = "import catalog_fallback, sys; assert 'django' not in sys.modules; print(catalog_fallback.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == catalog_fallback.__version__
