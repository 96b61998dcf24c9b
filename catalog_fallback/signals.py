"""Which events does this app send and receive?

Inbound, sent by the site: :data:`deletion_notice`. Outbound, always through ``send_robust``, so that a broken listener
breaks nothing: the others. Without a listener an outbound signal costs one attribute read.
"""

from __future__ import annotations

from django.dispatch import Signal

#: A site learnt that items were deleted or changed. Arguments: ``item_id`` or ``item_ids``, ``catalog``,
#: ``stop`` (True stops, False invalidates, None does what ON_DELETED says), ``event_at`` (aware datetime or None).
deletion_notice = Signal()

#: A lookup has its answer. Arguments: ``lookup``, ``elapsed`` (seconds).
lookup_finished = Signal()
#: A source was called, or a guard refused the call. Arguments: ``catalog``, ``attempt``.
source_called = Signal()
#: A circuit breaker changed its state. Arguments: ``catalog``, ``source``, ``old``, ``new``, ``reason``.
breaker_changed = Signal()
#: The cache confirmed an invalidation. Arguments: ``catalog``, ``item_ids`` (tuple), ``reason``.
items_invalidated = Signal()

#: Within this app: rows of the stop list changed. Arguments: ``changes`` (catalog → item IDs), ``using``.
stop_list_changed = Signal()
