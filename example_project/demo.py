#!/usr/bin/env python
"""How is the demo started? ``python3 dev.py demo``, or this file where everything is installed."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    from tour.main import main

    sys.exit(main(sys.argv[1:]))
