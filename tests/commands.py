"""How does a test run a command of this package, and what does it see of it?"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    code: int
    out: str
    err: str
    message: str = ""


Runner = Callable[..., Run]


def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run a command in this process; ``stdin`` is what it reads, in bytes or as a stream of its own."""

    def call(name: str, *args: str, stdin: object = b"") -> Run:
        if isinstance(stdin, bytes):
            stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii")
        monkeypatch.setattr(sys, "stdin", stdin)
        out, err = io.StringIO(), io.StringIO()
        try:
            call_command(name, *args, stdout=out, stderr=err)
        except CommandError as error:
            return Run(error.returncode, out.getvalue(), err.getvalue(), str(error))
        except SystemExit as error:
            return Run(int(error.code or 0), out.getvalue(), err.getvalue())
        return Run(0, out.getvalue(), err.getvalue())

    return call
