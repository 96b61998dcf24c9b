"""Who vouches for the loopback servers? A certificate authority of this process."""

from __future__ import annotations

import functools
import ssl
import tempfile
from pathlib import Path

import trustme


@functools.cache
def _authority() -> trustme.CA:
    return trustme.CA()


@functools.cache
def ca_file() -> str:
    """A PEM file with the certificate authority of every loopback server of this process."""
    with tempfile.NamedTemporaryFile(suffix=".pem", delete=False) as file:
        file.write(_authority().cert_pem.bytes())
    return str(Path(file.name))


@functools.cache
def tls_context(names: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _authority().issue_cert(*names).configure_cert(context)
    return context
