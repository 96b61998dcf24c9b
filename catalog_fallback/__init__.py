"""Look one item of a public catalog up in several HTTP catalogs, tell "no such item" from "could not find out".

::

    find_item("P001")                                    services.py
       ▼
     read gate + entry: same token? fresh? ── yes ─► Lookup   cache.py
       │ no (a stale entry is kept in hand)
       ▼
     may any source be called at all? ── no ─► UNAVAILABLE    resilience/
       ▼
     one flight per item, then read again                 flights.py
       ▼
     stop list in the database? ── yes ─► STOPPED         stop_list.py
       ▼
     ask each source in order, inside one budget          fallback.py
       ├─ may we call it?  cool-down · bulkhead · rate · breaker   resilience/
       ├─ one call with a hard limit                      sources/
       └─ what did the reply mean?                        classify.py
       ▼
     gate unchanged? write the entry ─ or serve stale     filling.py
       ▼
     Lookup(state, reason, item, source, cache, trace) → signals
"""

__version__ = "0.1.0"
