"""Is this a complete and well-formed response? What ``http.client`` lets pass, and we do not.

To ``http.client`` a head that is cut off is a reply with an empty body, an early hint is the answer, and a chunked body
whose last line is missing is complete.
"""

from __future__ import annotations

import http
import http.client
import io
import re
from typing import Any, Protocol, cast

from urllib3.exceptions import HeaderParsingError
from urllib3.util.response import assert_header_parsing

_LONGEST_LINE = 65_536
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")


class _MakesFiles(Protocol):
    def makefile(self, mode: str) -> io.BufferedReader: ...


class MalformedHead(http.client.HTTPException):
    """A response head that breaks the rules of HTTP/1.1."""


class DeadlineResponse(http.client.HTTPResponse):
    """One response, read from a :class:`~catalog_fallback.sources.deadline_connection.DeadlineReader`."""

    def __init__(self, sock: _MakesFiles, *args: Any, **kwargs: Any) -> None:
        super().__init__(cast("Any", sock), *args, **kwargs)
        self._reader: Any = self.fp.raw

    def begin(self) -> None:
        """Read the head: all of it, and nothing that two readers could understand in two ways."""
        try:
            super().begin()
        except http.client.BadStatusLine as error:
            if self._reader.has_ended and "HTTP/".startswith(str(error).strip("'")[:5]):
                raise http.client.RemoteDisconnected("the connection ended in the status line") from error
            raise
        if self._reader.has_ended:
            raise http.client.RemoteDisconnected("the connection ended in the head")
        if self.status == http.HTTPStatus.SWITCHING_PROTOCOLS:
            raise MalformedHead("a switch of protocols that was not asked for")
        self._check_head()

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]  # without a stub
        # Interim replies, early hints for one, come before the answer; http.client skips only "100 Continue".
        return version, 100 if 101 < status < 200 else status, reason

    def _check_head(self) -> None:
        try:
            assert_header_parsing(self.msg)
        except HeaderParsingError as error:
            raise MalformedHead("malformed header line") from error
        codings, lengths = self._framing()
        if codings and (len(codings) > 1 or not self.chunked):
            raise MalformedHead("a transfer coding that was not asked for")
        if codings and lengths:
            raise MalformedHead("a length beside a transfer coding")
        if len(lengths) > 1 or not all(_is_length(length) for length in lengths):
            raise MalformedHead("more than one length, or one that is no number")

    def _framing(self) -> tuple[list[str], set[str]]:
        """Return all that the head says of transfer codings, and of the body's length."""
        codings: list[str] = []
        lengths: set[str] = set()
        for name, value in self.msg.items():
            match name.lower():
                case "transfer-encoding":
                    codings.append(value)
                case "content-length":
                    lengths.update(part.strip() for part in value.split(","))
        return codings, lengths

    def _read_next_chunk_size(self) -> int:
        """Read the size of the next chunk; http.client would also take "+d", "0xd" and "0_d" for a number."""
        line = self.fp.readline(_LONGEST_LINE + 1)
        size = line.split(b";", 1)[0].strip()
        if len(line) > _LONGEST_LINE or _CHUNK_SIZE.fullmatch(size) is None:
            self._close_conn()  # type: ignore[attr-defined]  # without a stub
            raise ValueError("no size of a chunk")
        return int(size, 16)

    def _safe_read(self, amt: int) -> bytes:
        """Read exactly so many bytes; where the end of a chunk is due, nothing else will do."""
        data: bytes = super()._safe_read(amt)  # type: ignore[misc]  # without a stub
        if amt == 2 and self.chunked and self.chunk_left == 0 and data != b"\r\n":
            raise http.client.IncompleteRead(b"")
        return data

    def _read_and_discard_trailer(self) -> None:
        super()._read_and_discard_trailer()  # type: ignore[misc]  # without a stub
        if self._reader.has_ended:
            raise http.client.IncompleteRead(b"")


def _is_length(text: str) -> bool:
    """Whether it is a number of bytes; a longer one than any body has would be read as none at all."""
    return text.isascii() and text.isdigit() and len(text) <= 18
