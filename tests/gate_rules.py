"""What must hold of every lookup, whatever else happened meanwhile? The rules I1 to I8 over what an :class:`Actor` did.

The history of one run: who stopped, released or invalidated what and when that was confirmed, which fetch sent its
request when and what came back. Moments are counts of events (``Stage.now``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from catalog_fallback import clock, entry_form
from catalog_fallback.cache import entries_of
from catalog_fallback.exceptions import InvalidationFailed
from catalog_fallback.results import Lookup, State
from tests.staging import Actor, Stage

#: The longest lives that the settings of the stage ask for: of a published gate, of what an unknown ID leaves behind.
LONGEST, LONGEST_UNKNOWN = 3600, 360
NEVER_FOUND = "NONE"
#: Of a lookup, in seconds; after that, others need not wait for it.
BUDGET = 60
_decode = entry_form.decode


@dataclass(frozen=True)
class Fetch:
    """One reply: when its request was sent, when it came (by the clock), and what it said of what."""

    sent: int
    came_at: float
    outcome: str
    item_id: str
    language: str


def _sent(fetch: Fetch) -> int:
    return fetch.sent


@dataclass
class History:
    """Everything that happened to one cache and one stop list."""

    stage: Stage
    #: ID → (moment, is stopped) of each commit.
    commits: dict[str, list[tuple[int, bool]]] = field(default_factory=dict)
    #: Confirmed publishes: ID, kind, began, committed, ended.
    publishes: list[tuple[str, str, int, int, int]] = field(default_factory=list)
    #: Every reply, in the order in which they came.
    fetches: list[Fetch] = field(default_factory=list)
    #: No accident has happened yet, so that a lease is as exclusive as a flight.
    is_calm: bool = True

    # -------------------------------------------------------------------------------------------- noting

    def commit(self, actor: Actor, *, is_stopped: bool) -> None:
        """The actor's change of the stop list is committed now."""
        now = self.stage.tick()
        self.stage.rows[actor.item_id] = (is_stopped, now)
        self.commits.setdefault(actor.item_id, []).append((now, is_stopped))
        actor.facts["committed"] = now

    def ended(self, actor: Actor) -> None:
        """The actor is at its end: note a publish, judge a lookup."""
        now = self.stage.tick()
        if actor.kind == "lookup":
            self.judge(actor)
        elif actor.error is None:
            began = actor.facts["began"]
            self.publishes.append((actor.item_id, actor.kind, began, actor.facts.get("committed", began), now))
        else:
            assert isinstance(actor.error, (InvalidationFailed, KeyboardInterrupt)), repr(actor.error)

    # -------------------------------------------------------------------------------------------- looking

    def usable(self, actor: Actor) -> object:
        """The value of a fresh, checked entry under the present gate that the actor could be answered with."""
        shelf, query = self.stage.shelf, actor.facts["query"]
        try:
            gate, value = (shelf.read(f":1:{key}") for key in (query.gate_key, query.entry_key))
        except Exception:  # noqa: BLE001 - poison
            return None
        fields = _decode(value, query.name, gate, clock.wall()) if isinstance(gate, str) else None
        return value if fields is not None and fields[2] > clock.wall() and fields[6] else None

    def is_marked(self, item_id: str) -> bool:
        """The gate in the cache says "stopped"."""
        try:
            return entry_form.is_marked(self.stage.shelf.read(f":1:{entries_of['default'].gate_key(item_id)}"))
        except Exception:  # noqa: BLE001 - poison
            return False

    def holds_since(self, actor: Actor, kind: str) -> bool:
        """A publish of that kind was confirmed before the actor began, and nothing contrary was committed since."""
        is_stop = kind == "stop"
        return any(
            ended < actor.facts["began"]
            and not any(at > committed and stopped is not is_stop for at, stopped in self.commits.get(item_id, ()))
            for item_id, its_kind, _began, committed, ended in self.publishes
            if item_id == actor.item_id and its_kind == kind
        )

    # -------------------------------------------------------------------------------------------- judging

    def judge(self, actor: Actor) -> None:
        """A lookup has ended: does its answer hold?"""
        if isinstance(actor.error, KeyboardInterrupt):
            return
        assert actor.error is None, f"a lookup raised {actor.error!r}"
        lookup = actor.result
        fetch = self._fetch_of(actor, lookup)
        assert len(actor.facts.get("sent", ())) <= 1, "I3: a lookup costs at most one fetch"
        if lookup.state is State.NOT_FOUND:
            assert fetch is not None, "UNKNOWN became NOT_FOUND"
        if lookup.item is not None:
            assert fetch is not None, "an item from nowhere"
            assert (fetch.item_id, fetch.language) == (actor.item_id, actor.language), "I7: of another question"
            self._judge_item(actor, fetch)
        if fetch is not None:
            ended = [p for p in self.publishes if p[0] == actor.item_id and p[4] < actor.facts["began"]]
            assert fetch.sent > max((began for _, _, began, _, _ in ended), default=0), (
                "I2: from before the invalidation"
            )
        if lookup.state is State.STOPPED and actor.snapshot is None:
            assert not self.holds_since(actor, "release"), "I4: released, and still stopped"

    def _fetch_of(self, actor: Actor, lookup: Lookup) -> Fetch | None:
        """The fetch that a definite answer comes from: an item says so itself, a not_found can only be the last one."""
        if lookup.item is not None:
            return next((each for each in self.fetches if each.sent == lookup.item["sent"]), None)
        if lookup.state is not State.NOT_FOUND:
            return None
        asked = (actor.item_id, actor.language, "not_found")
        fitting = [each for each in self.fetches if (each.item_id, each.language, each.outcome) == asked]
        return max((each for each in fitting if each.came_at <= lookup._fetched_at), key=_sent, default=None)

    def _judge_item(self, actor: Actor, fetch: Fetch) -> None:
        lookup = actor.result
        believes_mark = actor.facts.get("saw_mark", False)
        if self.holds_since(actor, "stop") and (actor.snapshot is None or believes_mark):
            raise AssertionError("I1: a stopped item was shown")
        life = 60 + 120 if lookup.is_stale else 60
        assert actor.facts["wall"] < lookup._fetched_at + life, "an item that is too old was shown"
        assert fetch.came_at <= lookup._fetched_at, "an item that is older than it says"

    def judge_send(self, actor: Actor) -> None:
        """A request is sent: nobody else may be asking the same, and no usable entry may have been there before."""
        facts = actor.facts
        if actor.snapshot is not None or facts.get("had_trouble") or "flight" not in facts:
            return
        for other in self.stage.actors:
            is_beside = other is not actor and other.at == "source.body" and other.snapshot is None
            is_beside = is_beside and clock.wall() < other.facts["wall"] + BUDGET
            if is_beside and other.facts.get("flight") == facts["flight"]:
                assert other.process != actor.process, "two fetches of one flight"
                assert not self.is_calm, "two fetches under one lease"
        if facts["usable"] is not None and not actor.is_refresh:
            assert self.usable(actor) != facts["usable"], "a second fetch although the first one's entry was there"

    def judge_marks(self) -> None:
        """All is quiet: where nothing went wrong, what the gates say of a stop is what the database says."""
        if self.is_calm:
            for item_id, *_ in self.publishes:
                is_stopped = self.stage.rows.get(item_id, (False, 0))[0]
                assert self.is_marked(item_id) is is_stopped, "the mark is not what the stop list says"

    def judge_lives(self, operation: str) -> None:
        """I5: every key was given a bounded life."""
        lives, self.stage.shelf.lives = self.stage.shelf.lives, []
        for key, life in lives:
            limit = LONGEST_UNKNOWN if NEVER_FOUND in key and operation != "set_many" else LONGEST
            assert life is not None, f"I5: {key} lives for ever"
            assert 1 <= life <= limit, f"I5: {key} lives for {life} s"
