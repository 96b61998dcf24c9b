"""How are the simulated catalogs started? ``python -m catalogs --port 8801``, ended by SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from catalogs.recorded import load
from catalogs.server import DEFAULT_PORT, CatalogServer, Switchboard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options, shared with ``manage.py run_catalogs``."""
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port on 127.0.0.1 (default: %(default)s)")
    parser.add_argument("--recorded", type=Path, help="directory of recorded replies (index.json, checks.json)")
    parser.add_argument("--verbose", action="store_true", help="print a line a request")


def serve(port: int, recorded: Path | None, *, is_quiet: bool = True) -> None:
    """Serve until SIGTERM or SIGINT."""
    switchboard = Switchboard(load(recorded) if recorded else None)
    with CatalogServer(("127.0.0.1", port), switchboard, is_quiet=is_quiet) as server:

        def stop(number: int, frame: FrameType | None) -> None:
            threading.Thread(target=server.shutdown).start()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        print(f"Simulated catalogs at http://127.0.0.1:{server.server_address[1]}/_faults", flush=True)
        server.serve_forever(poll_interval=0.1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m catalogs", description=sys.modules[__name__].__doc__)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    serve(options.port, options.recorded, is_quiet=not options.verbose)
    return 0


if __name__ == "__main__":
    sys.exit(main())
