#!/usr/bin/env python3
"""How do I run this project? ``python3 dev.py`` says it; only Python 3.11 or newer is needed.

Everything runs in ``.venv``, which is made here (with uv where there is one) and made again when the dependencies in
``pyproject.toml`` change.
"""

import sys

OLDEST = (3, 11)
if sys.version_info < OLDEST:
    sys.exit(
        "dev.py needs Python {}.{} or newer; this is Python {}.{} ({}). Start it with a newer one, "
        "for example: python3.{} dev.py".format(*OLDEST, *sys.version_info[:2], sys.executable, OLDEST[1])
    )

import hashlib
import json
import os
import shutil
import subprocess
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
#: Says that this program made ``.venv``, and what is in it. A directory without it is never touched.
MARK = VENV / "made-by-dev.json"
EXTRAS = ("redis", "books")
#: Files that a wheel without them would install broken.
REQUIRED = ("catalog_fallback/py.typed", "catalog_fallback/migrations/0001_initial.py")


class Failed(Exception):
    """What a person has to read; its text is the whole message."""


# ------------------------------------------------------------------------------------------------ .venv


def fingerprint(pyproject: Mapping[str, Any], python: str) -> str:
    """A hash of what decides which packages are installed: dependencies, groups, build system, Python."""
    project = pyproject.get("project", {})
    parts = {
        "build-system": pyproject.get("build-system"),
        "groups": pyproject.get("dependency-groups"),
        "python": python,
        **{key: project.get(key) for key in ("dependencies", "optional-dependencies", "requires-python")},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def groups_to_install(mark: Mapping[str, Any] | None, wanted: str, needed: Iterable[str]) -> tuple[bool, list[str]]:
    """Return (make ``.venv`` anew?, groups to install) for the mark that was found and the hash that is wanted."""
    if mark is None or mark.get("hash") != wanted:
        return True, sorted(needed)
    return False, sorted(set(needed) - set(mark.get("groups", ())))


def install_command(uv: str | None, python: Path, groups: Iterable[str]) -> list[str]:
    """The command that installs the project, editable, with the extras and these groups."""
    chosen = [word for group in groups for word in ("--group", group)]
    project = ["--editable", f".[{','.join(EXTRAS)}]"]
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", str(python), *project, *chosen]
    return [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *project, *chosen]


def program(name: str) -> Path:
    """The path of a program in ``.venv``."""
    return VENV / ("Scripts" if os.name == "nt" else "bin") / (f"{name}.exe" if os.name == "nt" else name)


def read_mark() -> dict[str, Any] | None:
    """What is in ``.venv``, or None where it is not there or unfinished."""
    try:
        mark = json.loads(MARK.read_text())
    except (OSError, ValueError):
        return None
    return mark if isinstance(mark, dict) else None


def ensure_environment(*needed: str) -> None:
    """Make ``.venv`` hold the project and these groups; costs nothing when it does already."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = fingerprint(pyproject, "{}.{}.{}".format(*sys.version_info[:3]))
    mark = read_mark()
    anew, groups = groups_to_install(mark, wanted, needed)
    installed = [] if anew or mark is None else list(mark["groups"])
    if anew:
        make_environment()
    if groups:
        say(f"installing {', '.join(groups)} into {VENV.name} …")
        run(install_command(shutil.which("uv"), program("python"), groups))
        MARK.write_text(json.dumps({"hash": wanted, "groups": sorted({*installed, *groups})}))


def make_environment() -> None:
    """Make an empty ``.venv``, in place of an outdated one of ours."""
    if VENV.exists() and not MARK.exists():
        raise Failed(f"{VENV} was not made by dev.py, so it is left alone. Move it away and try again.")
    say(f"making {VENV.name} with Python {sys.version.split()[0]} …")
    shutil.rmtree(VENV, ignore_errors=True)
    if uv := shutil.which("uv"):
        run([uv, "venv", "--quiet", "--python", sys.executable, str(VENV)])
        MARK.write_text("{}")
        return
    VENV.mkdir()
    MARK.write_text("{}")
    make_with_venv()


def make_with_venv() -> None:
    """Fill ``.venv`` from the standard library; its pip is brought up to date, for an old one knows no ``--group``."""
    try:
        venv.create(VENV, with_pip=True)
    except subprocess.CalledProcessError as error:
        raise Failed("This Python cannot make virtual environments (on Debian: the package python3-venv).") from error
    run([str(program("python")), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", "pip"])


# ------------------------------------------------------------------------------------------------ running


def say(text: str) -> None:
    """Tell what is going on, beside the output of the programs."""
    print(f"dev.py: {text}", file=sys.stderr, flush=True)


def run(command: list[str]) -> None:
    """Run a command in the project's directory; its failure ends this program with a message."""
    code = subprocess.call(command, cwd=ROOT)
    if code != 0:
        raise Failed(f"failed with exit code {code}: {' '.join(command)}")


def become(command: list[str]) -> NoReturn:
    """Run the last command in this program's place, so that signals and the exit code are its own."""
    sys.stdout.flush()
    if os.name == "nt":
        sys.exit(subprocess.call(command, cwd=ROOT))
    os.chdir(ROOT)
    os.execv(command[0], command)  # noqa: S606  # a program of our own .venv, no shell wanted


# ------------------------------------------------------------------------------------------------ commands


def test(arguments: list[str]) -> None:
    """run the tests; what follows goes to pytest (-k, -x, a file …)"""
    ensure_environment("test")
    become([str(program("python")), "-m", "pytest", *spread(arguments)])


def spread(arguments: list[str]) -> list[str]:
    """The arguments for pytest, with one process for each processor unless they say how many or want to look in."""
    is_decided = any(word.startswith(("-n", "--numprocesses", "--pdb", "--trace", "-s")) for word in arguments)
    return arguments if is_decided else ["-n", "auto", *arguments]


def lint(arguments: list[str]) -> None:
    """style, types, layers, missing migrations"""
    takes_nothing("lint", arguments)
    ensure_environment("test", "lint")
    python = str(program("python"))
    checks = {
        "style": [str(program("ruff")), "check", "."],
        "format": [str(program("ruff")), "format", "--check", "."],
        "types": [python, "-m", "mypy"],
        "layers": [str(program("lint-imports"))],
        "migrations": [python, "-m", "django", "makemigrations", "--check", "--dry-run", "--settings=tests.settings"],
    }
    os.environ["PYTHONPATH"] = str(ROOT)
    failed = []
    for name, command in checks.items():
        say(name)
        if subprocess.call(command, cwd=ROOT) != 0:
            failed.append(name)
    if failed:
        raise Failed(f"these checks failed: {', '.join(failed)}")


def wheel(arguments: list[str]) -> None:
    """build the wheel into dist/ and look into it"""
    takes_nothing("wheel", arguments)
    ensure_environment("test")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    if uv := shutil.which("uv"):
        run([uv, "build", "--quiet", "--wheel", "--out-dir", "dist"])
    else:
        run([str(program("python")), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", "."])
    for built in (ROOT / "dist").glob("*.whl"):
        names = zipfile.ZipFile(built).namelist()
        if complaints := complaints_about(names):
            raise Failed(f"{built.name}: {'; '.join(complaints)}")
        say(f"{built.name}: {len(names)} files")


def complaints_about(names: Iterable[str]) -> list[str]:
    """What a wheel with these files has too much or too little."""
    names = set(names)
    strangers = sorted({name.split("/")[0] for name in names if not name.startswith(("catalog_fallback/", "django_"))})
    return [f"should not hold {name}" for name in strangers] + [
        f"lacks {name}" for name in REQUIRED if name not in names
    ]


def demo(arguments: list[str]) -> None:
    """start the example site with its simulated catalogs; --check: a tour that verifies itself"""
    ensure_environment("demo")
    become([str(program("python")), str(ROOT / "example_project" / "demo.py"), *arguments])


def takes_nothing(name: str, arguments: list[str]) -> None:
    """Refuse arguments of a command that has none."""
    if arguments:
        raise Failed(f"{name} takes no arguments: {' '.join(arguments)}")


COMMANDS: dict[str, Callable[[list[str]], None]] = {command.__name__: command for command in (test, lint, wheel, demo)}


def overview() -> str:
    """What this program can do, one command a line."""
    lines = [f"  python3 dev.py {name:<7} {command.__doc__}" for name, command in COMMANDS.items()]
    return "\n".join(["What dev.py can do:", "", *lines])


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit code."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if name in {"help", "-h", "--help"}:
        print(overview())
        return 0
    if name not in COMMANDS:
        print(f"dev.py: there is no command {name!r}.\n\n{overview()}", file=sys.stderr)
        return 2
    try:
        COMMANDS[name](rest)
    except Failed as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
