"""Does a URL mean the same to everybody who reads it? The only shapes in which a source may be asked.

Parsers disagree about user names, backslashes, blanks, dot segments and stray percent signs, and that is how a request
ends at another host or path than the one that was meant. So none of them is allowed here.
"""

from __future__ import annotations

import re

#: http(s), a host name, IPv4 address or bracketed IPv6 address, and perhaps a port; never a user name.
ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.IGNORECASE
)
_PATH = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
_QUERY = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?|\[\]-]|%[0-9A-Fa-f]{2})*"
#: A path from its first slash (or nothing at all), and perhaps a query; never a fragment.
TARGET = re.compile(rf"(?P<path>(?:/{_PATH})?)(?:\?(?P<query>{_QUERY}))?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DOTS = frozenset({".", ".."})

Origin = tuple[str, str, int]


def split(url: str) -> tuple[str, str]:
    """Return what names the server and what names the resource, in the characters of the URL.

    Raises ValueError, which does not show the URL, where the two cannot be told apart beyond doubt.
    """
    origin = ORIGIN.match(url)
    if origin is None or not has_possible_port(origin):
        raise ValueError("the URL of a source has to begin with http(s):// and a plain host name")
    target = TARGET.fullmatch(url, origin.end())
    if target is None:
        raise ValueError("the URL of a source holds characters that have to be percent-encoded")
    if has_dot_segment(target["path"]):
        raise ValueError("the path of a source's URL holds a '.' or '..' segment")
    return origin[0], url[origin.end() :]


def origin_of(url: str) -> Origin | None:
    """Return scheme, host and port in one form; None where the URL does not begin in a plain way."""
    match = ORIGIN.match(url)
    if match is None:
        return None
    scheme = match["scheme"].lower()
    return scheme, match["host"].lower(), int(match["port"] or _DEFAULT_PORTS[scheme])


def has_possible_port(origin: re.Match[str]) -> bool:
    """Tell whether the port of an origin is absent, or one of TCP's."""
    return 0 < int(origin["port"] or 1) < 65_536


def has_dot_segment(path: str) -> bool:
    """Tell whether a part of the path is ``.`` or ``..``, percent-encoded or not: servers climb out along it."""
    if "/." not in path and "%2" not in path:
        return False
    return any(part.lower().replace("%2e", ".") in _DOTS for part in path.split("/"))
