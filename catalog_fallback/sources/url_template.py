"""Which URL asks for an item? A template such as ``https://api.example.com/{language}/items/{id}``, filled in.

Values are percent-encoded with nothing "safe", so none of them can change host, path or query. The literal parts of the
template stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

from catalog_fallback.exceptions import InvalidItemID
from catalog_fallback.sources import url_shape

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ORIGIN = re.compile(r"[^/?#]*//[^/?#]*")
_DOTS = frozenset({".", ".."})


class URLTemplate:
    """A URL with placeholders: ``{id}``, ``{language}``, and names of the caller's ``vary``.

    Making one never fails; ``complaints()`` tells what is wrong with it. Its repr shows nothing: it may hold a key.
    """

    __slots__ = ("_parts", "_template", "in_path", "placeholders")

    def __init__(self, template: str) -> None:
        self._template = template
        #: Literals at the even places, names of placeholders at the odd ones.
        self._parts = tuple(_PLACEHOLDER.split(template))
        self.placeholders = frozenset(self._parts[1::2])
        #: Those that stand in the path, where nothing can be left out.
        self.in_path = frozenset(_PLACEHOLDER.findall(re.split(r"[?#]", template, maxsplit=1)[0]))

    def complaints(self) -> Iterator[str]:
        """Yield what is wrong with the template, in words that do not show it."""
        origin, rest = self._origin_and_rest()
        yield from _about_origin(origin)
        yield from _about_rest(rest)
        if "id" not in self.placeholders:
            yield "it has no {id}, so that every item would have the same URL"

    @property
    def is_plain_http(self) -> bool:
        """The source is asked without TLS."""
        return self._template[:7].lower() == "http://"

    def expand(self, item_id: str, language: str, vary: Mapping[str, str]) -> str:
        """Return the URL that asks for an item.

        Raises InvalidItemID for an ID that no URL can hold, ValueError for a missing or unusable other value.
        """
        values = {**vary, "id": item_id, "language": language}
        _refuse_id(item_id)
        pieces = list(self._parts)
        for at in range(1, len(pieces), 2):
            pieces[at] = self._encoded(pieces[at], values)
        return "".join(pieces)

    def _encoded(self, name: str, values: Mapping[str, str]) -> str:
        value = values.get(name)
        if not isinstance(value, str):
            raise ValueError(f"the URL needs a value for {{{name}}}: pass it as vary={{{name!r}: …}}")
        if name in self.in_path and (not value or value in _DOTS):
            raise ValueError(f"{value!r} cannot stand for {{{name}}} in the path of a URL")
        try:
            return quote(value, safe="")
        except UnicodeEncodeError as error:
            kind = InvalidItemID if name == "id" else ValueError
            raise kind(f"the value of {{{name}}} holds a lone surrogate, which no URL can hold") from error

    def _origin_and_rest(self) -> tuple[str, str]:
        match = _ORIGIN.match(self._template)
        end = match.end() if match else 0
        return self._template[:end], self._template[end:]


def _refuse_id(item_id: str) -> None:
    if not item_id or item_id in _DOTS:
        raise InvalidItemID(f"{item_id!r} cannot be an item ID: it would climb out of the URL's path")


def _about_origin(origin: str) -> Iterable[str]:
    scheme, _, host = origin.partition("://")
    if "{" in origin or "}" in origin:
        yield "placeholders may stand only in path and query, not in scheme, host or port"
        return
    if scheme.lower() not in {"http", "https"}:
        yield "it has to begin with http:// or https://"
    elif "@" in host:
        yield "it holds a user name or password; put credentials into HEADERS"
    elif not host or host.startswith(":"):
        yield "it has no host"
    elif (match := url_shape.ORIGIN.fullmatch(origin)) is None or not url_shape.has_possible_port(match):
        yield "its host or port is malformed (write an international host name in its xn-- form)"


def _about_rest(rest: str) -> Iterable[str]:
    target, has_fragment, _ = rest.partition("#")
    if has_fragment:
        yield "it has a fragment (#…), which is never sent"
    filled = _PLACEHOLDER.sub("x", target)
    if "{" in filled or "}" in filled:
        yield "it has a brace that is no placeholder; write names such as {id}, and literal braces as %7B and %7D"
    elif url_shape.TARGET.fullmatch(filled) is None:
        yield "it holds blanks or other characters that have to be percent-encoded"
    elif url_shape.has_dot_segment(filled.partition("?")[0]):
        yield "its path holds a '.' or '..' segment"
