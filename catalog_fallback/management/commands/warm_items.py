"""``warm_items``: which items shall be in the cache before anybody asks for them?"""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog_fallback.cache import store_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.management import item_lines
from catalog_fallback.management.interrupting import Interruption
from catalog_fallback.management.printing import catalog_or_exit, harmless_pipe, plain
from catalog_fallback.management.progress import Progress, duration
from catalog_fallback.management.resuming import ResumeFile
from catalog_fallback.warming import Counts, Pace, Warming, pace_of

#: For how many items the time is told where nobody knows how many there are.
_EXAMPLE = 1000
_READ_AT_ONCE = 1 << 20


class Command(BaseCommand):
    """Exit codes: 0 done, 1 configuration or nothing done, 2 usage, 3 partly failed or ended before the end."""

    help = (
        "Fetch items into the cache, inside the first source's RATE_LIMIT. What is fresh is skipped. The first Ctrl-C "
        "finishes the batch and says how to go on, the second ends at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take IDs in three ways, and how fast, how, and from where."""
        item_lines.add_arguments(parser)
        parser.add_argument("--catalog", default="default", help="Alias of the catalog (default: default).")
        parser.add_argument("--language", help="Language of the items (default: the catalog's LANGUAGE).")
        parser.add_argument(
            "--limit-rate", metavar="N", type=_rate, help="At most N items a second (fractions are possible)."
        )
        parser.add_argument("--resume-file", metavar="F", type=Path, help="Remember in F how far it has come.")
        parser.add_argument("--tasks", action="store_true", help="Let workers do it, 500 IDs a task (contrib.tasks).")
        parser.add_argument("--json", action="store_true", help="Print the result as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Tell how long it will take, then work through the list."""
        config = catalog_or_exit(options["catalog"])
        if options["tasks"] and options["limit_rate"] is not None:
            raise CommandError("--limit-rate is for this process, --tasks for workers: one of them.", returncode=2)
        resume = ResumeFile(options["resume_file"], config.alias, options["language"])
        run = _Run(self, config, options, resume)
        if not options["tasks"] and store_of[config.cache].is_local:
            self.stderr.write(_in_vain(config))
        self.stderr.write(_outlook(pace_of(config, options["limit_rate"]), config, run.left))
        is_whole = run.through_workers() if options["tasks"] else run.here()
        with harmless_pipe():
            self.stdout.write(run.as_json() if options["json"] else run.as_text())
        if not is_whole:
            raise CommandError(run.how_to_go_on(), returncode=3)
        resume.remove()
        _exit(run)


class _Run:
    """One pass through a list."""

    def __init__(self, command: Command, config: CatalogConfig, options: dict[str, Any], resume: ResumeFile) -> None:
        self.options = options
        self.counts = Counts()
        self.enqueued = 0
        self.invalid = 0
        self.why = "Interrupted"
        self.done = resume.read()
        self.total = _count_lines(options["file"])
        self._stderr = command.stderr
        self._config = config
        self._resume = resume

    @property
    def left(self) -> int | None:
        """Lines that are not done yet, None where nobody knows."""
        return None if self.total is None else max(0, self.total - self.done)

    def here(self) -> bool:
        """Fetch in this process; False when it ended before the list did."""
        progress = Progress(self._stderr, self.total, self.done)
        begun_at = self.done

        def show(counts: Counts) -> None:
            progress.show(begun_at + counts.total + self.invalid, details(counts))

        try:
            with Interruption() as interruption:
                return self._fetch(self._warming(interruption, show), interruption)
        except KeyboardInterrupt:
            return False
        except ValueError as error:  # a language that cannot be, a URL that needs names this command does not take
            raise CommandError(plain(error), returncode=2) from error
        finally:
            progress.end()

    def _warming(self, interruption: Interruption, show: Callable[[Counts], None]) -> Warming:
        return Warming(
            self._config,
            language=self.options["language"],
            limit_rate=self.options["limit_rate"],
            is_over=interruption.is_asked,
            after_slice=show,
        )

    def _fetch(self, warming: Warming, interruption: Interruption) -> bool:
        self.counts = warming.counts
        for chunk in self._chunks(interruption, item_lines.CHUNK):
            if not warming.run(chunk.item_ids):
                self.why = "No source can be called" if warming.nobody_answers else self.why
                return False
            self._settle(chunk)
        return True

    def through_workers(self) -> bool:
        """Hand the list over to the workers of a task queue, who skip what is fresh; False when it ended early."""
        from catalog_fallback.contrib import tasks  # noqa: PLC0415  # imports Celery where that is installed

        try:
            with Interruption() as interruption:
                for chunk in self._chunks(interruption, tasks.IDS_A_TASK):
                    tasks.enqueue_warm(chunk.item_ids, catalog=self._config.alias, language=self.options["language"])
                    self.enqueued += len(chunk.item_ids)
                    self._settle(chunk)
                    if interruption.is_asked():
                        return False
        except KeyboardInterrupt:
            return False
        except ImproperlyConfigured as error:  # there is no queue
            raise CommandError(str(error)) from error
        return True

    def _chunks(self, interruption: Interruption, size: int) -> Iterator[item_lines.Chunk]:
        chunks = item_lines.read(self.options, self._config, size, after=self.done)
        while True:
            with interruption.while_waiting():
                chunk = next(chunks, None)
            if chunk is None:
                return
            for complaint in chunk.complaints:
                self._stderr.write(plain(complaint))
            yield chunk

    def _settle(self, chunk: item_lines.Chunk) -> None:
        self.invalid += len(chunk.complaints)
        self.done = chunk.until
        self._resume.write(self.done)

    def as_json(self) -> str:
        """The result for a program."""
        return json.dumps({"catalog": self._config.alias, **self._numbers(), "invalid": self.invalid})

    def as_text(self) -> str:
        """The result for people."""
        parts = [details(self.counts)] if not self.enqueued else [f"{self.enqueued:,} given to the workers"]
        parts += [f"{self.invalid:,} are no IDs of this catalog"] if self.invalid else []
        return f"Catalog {self._config.alias}: {'; '.join(parts)}."

    def _numbers(self) -> dict[str, int]:
        return {"enqueued": self.enqueued} if self.options["tasks"] else asdict(self.counts)

    def how_to_go_on(self) -> str:
        """What to do after it ended before the end."""
        again = "Run the same command again: "
        if self._resume.path is not None:
            return f"{self.why} after line {self.done:,}. {again}it goes on there ({self._resume.path})."
        return f"{self.why} after line {self.done:,}. {again}what is fresh is skipped, or use --resume-file."


def details(counts: Counts) -> str:
    """What became of the items, in words."""
    return (
        f"{counts.found:,} found, {counts.fresh:,} fresh already, {counts.not_found:,} not found, "
        f"{counts.unavailable:,} unavailable, {counts.stopped:,} stopped"
    )


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0.0 < rate < float("inf"):
        raise ArgumentTypeError(f"{text!r} has to be a number above 0.")
    return rate


def _count_lines(path: Path | None) -> int | None:
    """Return the number of lines of a file, None where there is none to count."""
    if path is None:
        return None
    try:
        with path.open("rb") as stream:
            return sum(piece.count(b"\n") for piece in iter(lambda: stream.read(_READ_AT_ONCE), b""))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}.") from error


def _in_vain(config: CatalogConfig) -> str:
    """That nobody else will see what this process fetches."""
    return (
        f"Catalog {config.alias}: its cache {config.cache!r} belongs to each process alone; what this command fetches "
        "ends with it. Use a cache that all processes share."
    )


def _outlook(pace: Pace, config: CatalogConfig, total: int | None) -> str:
    """How long it will take at the first source's limit."""
    if not pace.interval:
        return f"Source {pace.source} of catalog {config.alias} has no RATE_LIMIT: as fast as it answers."
    count = _EXAMPLE if total is None else total
    return (
        f"At most {pace.per_second:,.3g} items a second, because of source {pace.source} (RATE_LIMIT) or --limit-rate: "
        f"{count:,} that are not fresh take {duration(pace.seconds_for(count))} or more."
    )


def _exit(run: _Run) -> None:
    failed = run.invalid + run.counts.unavailable
    done = run.counts.total - run.counts.unavailable + run.enqueued
    if not done:
        raise CommandError("Nothing was done." if failed else "Nothing was done: no IDs were given.", returncode=1)
    if failed:
        raise CommandError(f"{failed:,} of {failed + done:,} failed.", returncode=3)
