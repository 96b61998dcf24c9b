"""Under which names is a guard's state kept?"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from typing import Literal

#: Version of the guards' keys and of what they hold; part of every key.
FORMAT = 1
#: What begins a key may be so long; with the longest rest it stays below 200 bytes.
_LONGEST_BASE, _LONGEST_ALIAS = 90, 40
_PLAIN = re.compile(r"[!-z|~]+")


def token() -> str:
    """Return a new random name: of a generation, of the owner of a slot."""
    return secrets.token_urlsafe(12)


@dataclass(frozen=True, slots=True)
class Names:
    """The keys of one guard. All guards of one catalog share the hash tag, so one ``get_many`` reads them on a cluster.

    ``kind`` keeps sources apart from guards of the same alias.
    """

    catalog: str
    alias: str
    key_prefix: str = "catalog"
    version: int | str = 1
    kind: Literal["source", "guard"] = "source"
    head: str = field(init=False)

    def __post_init__(self) -> None:
        base = f"{self.key_prefix}:{FORMAT}:{self.version}:r:{{{self.catalog}}}"
        texts = (self.key_prefix, str(self.version), self.catalog)
        if len(base) > _LONGEST_BASE or ":" in texts[1] or not all(_is_plain(text) for text in texts):
            base = f"catalog:{FORMAT}:r:{{{_digest(*texts)}}}"
        alias = self.alias
        if len(alias) > _LONGEST_ALIAS or not _is_plain(alias) or ":" in alias:
            alias = f":{_digest(alias)}"
        object.__setattr__(self, "head", f"{base}:{self.kind[:1]}:{alias}")

    def key(self, *parts: str | int) -> str:
        """Return the key of one piece of state."""
        return ":".join((self.head, *map(str, parts)))

    @property
    def isolated(self) -> str:
        """The key for a copy of the operator's decision, read together with the guard's own."""
        return self.key("isolated")

    def as_fields(self) -> dict[str, str]:
        """Return whose guard it is, as a line of the log says it."""
        return {"catalog": self.catalog, "source": self.alias, "kind": self.kind}

    def __str__(self) -> str:
        return f"{self.catalog}/{self.alias}"


def _is_plain(text: str) -> bool:
    return not text or _PLAIN.fullmatch(text) is not None


def _digest(*texts: str) -> str:
    packed = "".join(f"{len(text)}:{text}" for text in texts)
    return hashlib.sha256(packed.encode("utf-8", "surrogatepass")).hexdigest()[:32]
