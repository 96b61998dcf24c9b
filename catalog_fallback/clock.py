"""What time is it? The only place that tells time and that waits.

Callers write ``clock.monotonic()``, never ``from clock import monotonic``: a test that installs another clock
replaces the names in this module (``catalog_fallback.testing.FrozenClock``), and nothing else has to know.
"""

from __future__ import annotations

import time

#: Seconds since the epoch, for moments that are kept or shown.
wall = time.time
#: Seconds of a clock that never steps, for every duration and deadline.
monotonic = time.monotonic
#: Wait so many seconds.
sleep = time.sleep
