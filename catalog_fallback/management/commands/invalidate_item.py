"""``invalidate_item``: which items shall be forgotten, stopped, or released?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations
from django.db import Error as DatabaseError

from catalog_fallback import clock, notices, services, stop_events, stop_list
from catalog_fallback.cache import store_of
from catalog_fallback.configuration import CatalogConfig
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.management import item_lines, missing_tables
from catalog_fallback.management.printing import catalog_or_exit, harmless_pipe, plain
from catalog_fallback.models import StopOrigin, StoppedItem, StopReason
from catalog_fallback.notices import Notice, Refused

#: After how many IDs a line of progress goes to standard error.
PROGRESS = 100_000
#: What was done, for people.
_DONE = {"forget": "forgotten", "stop": "stopped", "release": "released"}


@dataclass(slots=True)
class Tally:
    """What came of it. ``done`` counts IDs, ``changed`` what was stopped or released (None where it is forgotten).

    ``not_stopped`` counts releases of what was not stopped. The rest of ``done`` was left, because of a later event.
    ``not_confirmed_by`` names what failed: the cache, the database, or both.
    """

    catalog: str
    action: str
    dry_run: bool
    done: int = 0
    changed: int | None = None
    not_stopped: int = 0
    invalid: int = 0
    not_confirmed: int = 0
    not_confirmed_by: list[str] = field(default_factory=list)

    def fail(self, count: int, error: Exception) -> None:
        """Count IDs that an error keeps from being confirmed."""
        self.not_confirmed += count
        self.not_confirmed_by = sorted({*self.not_confirmed_by, _what_failed(error)})


class Command(BaseCommand):
    """Exit codes: 0 done, 1 configuration or nothing done, 2 usage, 3 partly failed."""

    help = (
        "Forget items in every language and variant; with --stop put them on the stop list, with --release take them "
        "off it. Lines that are no IDs are reported and the others done."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take IDs in three ways, and at most one of --stop and --release."""
        item_lines.add_arguments(parser)
        parser.add_argument("--catalog", default="default", help="Alias of the catalog (default: default).")
        verb = parser.add_mutually_exclusive_group()
        verb.add_argument("--stop", metavar="REASON", choices=StopReason.values, help=", ".join(StopReason.values))
        verb.add_argument("--release", action="store_true", help="Take the items off the stop list.")
        parser.add_argument("--dry-run", action="store_true", help="Check the IDs, change nothing.")
        parser.add_argument("--json", action="store_true", help="Print the result as JSON.")

    @no_translations  # what is wrong with a notice would be in the site's language, and all else in English
    def handle(self, *args: Any, **options: Any) -> None:
        """Work through the IDs chunk by chunk, then say what came of it."""
        config = catalog_or_exit(options["catalog"])
        action = "stop" if options["stop"] else "release" if options["release"] else "forget"
        tally = Tally(config.alias, action, options["dry_run"], changed=None if action == "forget" else 0)
        if action == "forget":
            self._say_whose_cache_it_is(config)
        is_whole = self._all_chunks(tally, config, options)
        with harmless_pipe():
            self.stdout.write(json.dumps(asdict(tally)) if options["json"] else _text(tally))
        if tally.not_confirmed and (hint := missing_tables.hint()):
            self.stderr.write(hint)
        if not is_whole:
            raise CommandError("Interrupted.", returncode=3)
        _exit(tally)

    def _say_whose_cache_it_is(self, config: CatalogConfig) -> None:
        """Tell a person at a terminal that no other process sees what this one forgets."""
        if self.stderr.isatty() and store_of[config.cache].is_local:
            self.stderr.write(
                f"Catalog {config.alias}: its cache {config.cache!r} belongs to each process alone; what runs already "
                "keeps its copies until they expire. Use Redis for more than one process."
            )

    def _all_chunks(self, tally: Tally, config: CatalogConfig, options: dict[str, Any]) -> bool:
        """Work through all that is given; False when Ctrl-C ended it, as it ends a pipe that never ends by itself."""
        started_at = datetime.fromtimestamp(clock.wall(), UTC)
        try:
            for chunk in item_lines.read(options, config, takes_notices=tally.action == "forget"):
                self._complain(chunk.complaints)
                tally.invalid += len(chunk.complaints)
                self._one_chunk(tally, chunk, options["stop"], started_at)
                self._whole_notices(tally, chunk, config)
        except KeyboardInterrupt:
            return False
        return True

    def _complain(self, complaints: Sequence[str]) -> None:
        for complaint in complaints:
            self.stderr.write(plain(complaint))

    def _one_chunk(self, tally: Tally, chunk: item_lines.Chunk, reason: str | None, event_at: datetime) -> None:
        before = tally.done + tally.not_confirmed
        count = len(chunk.item_ids)
        try:
            changed = 0 if tally.dry_run or not count else _carry_out(tally, chunk.item_ids, reason, event_at)
        except (InvalidationFailed, DatabaseError) as error:
            tally.fail(count, error)
            self._complain([f"{chunk.places}: not confirmed: {_told(error)}"])
        else:
            tally.done += count
            tally.changed = None if tally.changed is None else tally.changed + changed
        if before // PROGRESS != (before + count) // PROGRESS:
            self.stderr.write(f"{before + count} IDs …")

    def _whole_notices(self, tally: Tally, chunk: item_lines.Chunk, config: CatalogConfig) -> None:
        """Do what each notice says, one by one: the moments of their events differ."""
        for notice in chunk.notices:
            if tally.dry_run:
                tally.done += len(notice.item_ids)
            elif (refused := _take(tally, notice, config)) is not None:
                self._complain([f"{chunk.places}: {notice.type}: {refused}"])


def _take(tally: Tally, notice: Notice, config: CatalogConfig) -> str | None:
    """Apply one notice; return why it was not, or not as a whole."""
    taken = notices.apply(config, notice)
    if not isinstance(taken, Refused):
        tally.done += taken.items
        return f"ignored: {taken.type} is no type of notice that is known" if taken.is_ignored else None
    if taken.error is not None:
        tally.fail(len(notice.item_ids), taken.error)
        return f"not confirmed: {_told(taken.error)}"
    tally.done += taken.members.get("items", 0)
    tally.invalid += len(taken.members.get("invalid_ids", ())) or 1
    return taken.detail


def _what_failed(error: Exception) -> str:
    """The stop list is read for a publish, too: the cache is not to blame for that."""
    is_database = isinstance(error, DatabaseError) or isinstance(error.__cause__, DatabaseError)
    return "database" if is_database else "cache"


def _told(error: Exception) -> str:
    return f"the database raised {type(error).__name__}: {error}" if isinstance(error, DatabaseError) else str(error)


def _carry_out(tally: Tally, item_ids: Sequence[str], reason: str | None, event_at: datetime) -> int:
    """Call the service; one moment for all chunks, so that the order of events does not depend on their sizes."""
    if tally.action == "forget":
        return services.invalidate_items(item_ids, catalog=tally.catalog, reason="command")
    how: dict[str, Any] = {"catalog": tally.catalog, "event_at": event_at, "origin": StopOrigin.COMMAND}
    if reason is not None:
        return services.stop_items(item_ids, reason=reason, **how)
    rows = StoppedItem.objects.using(stop_list.database()).filter(catalog=tally.catalog).active()
    stopped = rows.filter(item_id__in=item_ids, event_at__lte=stop_events.storable(event_at)).count()
    written = services.release_items(item_ids, **how)
    tally.not_stopped += max(0, written - stopped)
    return min(stopped, written)


def _text(tally: Tally) -> str:
    done = f"would be {_DONE[tally.action]}" if tally.dry_run else _DONE[tally.action]
    parts = [f"Catalog {tally.catalog}: {tally.done - tally.not_stopped} {done}"]
    if tally.not_stopped:
        parts.append(f"{tally.not_stopped} were not stopped: there was nothing to release")
    if (later := _later(tally)) > 0:
        parts.append(f"{later} of them left as they are, because of a later event")
    if tally.invalid:
        parts.append(f"{tally.invalid} are no IDs of this catalog")
    if tally.not_confirmed:
        parts.append(f"{tally.not_confirmed} not confirmed by the {' and the '.join(tally.not_confirmed_by)}")
    return "; ".join(parts) + "."


def _later(tally: Tally) -> int:
    if tally.changed is None or tally.dry_run:
        return 0
    return tally.done - tally.changed - tally.not_stopped


def _exit(tally: Tally) -> None:
    failed = tally.invalid + tally.not_confirmed
    if not tally.done:
        raise CommandError("Nothing was done." if failed else "Nothing was done: no IDs were given.", returncode=1)
    if failed:
        raise CommandError(f"{failed} of {failed + tally.done} failed.", returncode=3)
