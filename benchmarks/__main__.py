"""The command: ``python -m benchmarks [name …]`` measures, prints tables, and keeps them in files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import (
    batch,
    budget,
    growth,
    guards,
    hit,
    idle,
    invalidate,
    miss,
    others,
    outage,
    report,
    servers,
    simulation,
    site,
    soak,
    stampede,
)
from benchmarks.report import Row
from benchmarks.surroundings import Surroundings

#: Name on the command line → what it answers, and what does the measuring.
BENCHMARKS: dict[str, tuple[str, Callable[[Surroundings, int], list[Row]]]] = {
    "hit": ("A hit", hit.run),
    "miss": ("A miss", miss.run),
    "guards": ("Guards", guards.run),
    "batch": ("Many items", batch.run),
    "stampede": ("Many who ask for one item at once", stampede.run),
    "growth": ("A hit while something grows", growth.run),
    "outage": ("Redis is gone", outage.run),
    "budget": ("A budget is kept", budget.run),
    "invalidate": ("Many items are forgotten", invalidate.run),
    "idle": ("Importing and doing nothing", idle.run),
    "simulation": ("A large site on paper, a small one for real", simulation.run),
    "peers": ("Other libraries in the same places", others.run),
    "soak": ("Memory while the number of IDs grows", soak.run),
}

#: What is measured only when it is named, or with ``--large``: waiting for the locks of others takes minutes.
_ONLY_BY_NAME = frozenset({"peers"})


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument("names", nargs="*", metavar="name", help="what to measure; nothing means everything")
    made.add_argument("--list", action="store_true", help="say what there is, and measure nothing")
    made.add_argument("--check", action="store_true", help="exit with 1 if a figure misses its bar")
    made.add_argument("--rounds", type=int, default=31, help="rounds of each benchmark (default: %(default)s)")
    made.add_argument("--large", action="store_true", help="also measure what takes minutes (a million stopped IDs)")
    made.add_argument("--json", type=Path, metavar="FILE", default=report.RESULTS / "latest.json")
    made.add_argument("--markdown", type=Path, metavar="FILE", default=report.RESULTS / "latest.md")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; return the exit code."""
    reader = parser()
    options = reader.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        reader.error(f"unknown: {', '.join(unknown)} (there are {', '.join(BENCHMARKS)})")
    if options.list:
        for name, (title, _) in BENCHMARKS.items():
            print(f"{name:10} {title}")
        return 0
    processor = servers.pin()
    tables = _measure(options.names or _default(is_large=options.large), options.rounds, is_large=options.large)
    facts = report.facts(options.rounds, processor)
    report.write(options.markdown, report.markdown(tables, facts))
    report.write(options.json, report.as_json(tables, facts))
    print(f"Kept in {options.markdown} and {options.json}.")
    return _say_what_was_missed(tables) if options.check else 0


def _default(*, is_large: bool) -> list[str]:
    """What is measured when nothing is named."""
    return [name for name in BENCHMARKS if is_large or name not in _ONLY_BY_NAME]


def _measure(names: Sequence[str], rounds: int, *, is_large: bool) -> dict[str, list[Row]]:
    tables = {}
    with servers.valkey() as redis, servers.catalog() as catalog, TemporaryDirectory() as directory:
        site.set_up(redis, catalog, Path(directory))
        around = Surroundings(redis, catalog, is_large=is_large)
        for name in names:
            title, run = BENCHMARKS[name]
            tables[title] = run(around, rounds)
            print(f"\n## {title}\n\n{report.table(tables[title])}\n", flush=True)
    return tables


def _say_what_was_missed(tables: dict[str, list[Row]]) -> int:
    missed = [row for rows in tables.values() for row in rows if row.is_missed]
    for row in missed:
        print(f"MISSED: {row.name}: {row.value:.3f}, bar {row.bar}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
