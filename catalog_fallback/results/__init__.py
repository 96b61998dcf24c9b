"""What do sources and the verbs answer? Frozen values without Django."""

from catalog_fallback.results.explanation import Explanation, SourceExplanation
from catalog_fallback.results.lookup import CacheStatus, Lookup, State, make_lookup
from catalog_fallback.results.replies import Attempt, Item, NoReply, Outcome, Reply, Request, Verdict

__all__ = [
    "Attempt",
    "CacheStatus",
    "Explanation",
    "Item",
    "Lookup",
    "NoReply",
    "Outcome",
    "Reply",
    "Request",
    "SourceExplanation",
    "State",
    "Verdict",
    "make_lookup",
]
