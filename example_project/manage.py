#!/usr/bin/env python
"""How are the commands run? ``python example_project/manage.py lookup_item 9784063879179 --catalog books``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    # The project is found wherever it was started from, and the package even where it is not installed.
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
