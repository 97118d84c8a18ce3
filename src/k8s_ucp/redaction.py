"""Redacts secrets from text that leaves the machine or that others can read.

Two methods: patterns for text that looks like a credential, and exact values that are known to be
secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

USERINFO = r"(?:[^/@\s]*+@)++"
"""User and password before the host in a URL, up to the last @, since a password may contain
one."""

_NAME = (
    r"(?:\b(?:(?=\w*?(?:password|passphrase|token|secret|api_?key))\w++|\w*?key-data\w*+)"
    r"|\bapi-key)"
)
_QUOTE = r"\\*+['\"]"
"""In a log, quotes are escaped: {\"password\":\"a b\"}."""
_VALUE = rf"(?:(?P<quote>{_QUOTE})(?:(?!(?P=quote))[^\n]){{0,2000}}+(?P=quote)\S*+|\S++)"
"""Up to a space; in quotes, spaces belong to it."""

# Each pattern starts at a word boundary and uses possessive quantifiers (++, *+): otherwise a line
# of 20,000 characters without a space would take many seconds.
_CREDENTIALS = (
    (re.compile(rf"(\b\w++://){USERINFO}"), r"\1…@"),
    (
        re.compile(r"(?i)(bearer|authorization\W{1,6}(?:basic|token))\s++[\w.~+/=-]++"),
        r"\1 …",
    ),
    (re.compile(r"\b(?:gh[oprsu]_|github_pat_|glpat-)[\w-]{10,}+"), "…"),
    (re.compile(r"(?<![\w-])eyJ[\w-]++\.[\w-]++\.[\w-]*+"), "…"),
    (re.compile(r"-----BEGIN [^-]+-----.*?(-----END [^-]+-----|\Z)", re.DOTALL), "…"),
)
_SECRETS = (
    *_CREDENTIALS,
    (re.compile(r"(?i)(basic)\s++[\w.~+/=-]++"), r"\1 …"),
    (re.compile(rf"(?i)({_NAME}{_QUOTE}?+\s*+[:=]\s*+){_VALUE}"), r"\1…"),
    (re.compile(r"[A-Za-z0-9+/_=-]{64,}+"), "…"),
)

HIDDEN = "…"
_SHORTEST = 8
"""Minimum length of a value to search for; shorter ones would match everywhere."""
_SHORTEST_PASSWORD = 4
_WORD = re.compile(r"[^\s\"'\[\]{},:]+")
"""A word of a document that can't be parsed."""
_LARGEST_DOCUMENT = 64 * 1024
"""Characters; of a longer document, every line is a value."""
_DEEPEST = 32
"""Levels of brackets in a document that is parsed: with hundreds, a kilobyte takes seconds."""
_BRACKET = re.compile(r"[\[{]|[\]}]")
_PASSWORD = re.compile(r"(?i)pass|token|secret|key|credential")
_SECRET_KEY = re.compile(
    r"(?i)(pass(word|phrase|wd)|token|client_?secret|(api|secret|private)[_-]?key)$"
)
"""Keys of secret values in objects; `secretName` and the like only refer to one."""
_PLAIN = (
    "apiVersion kind name namespace namespaces server url type project username user cluster "
    "clusterResources current-context context region host port database"
)
_HARMLESS = frozenset(_PLAIN.split(" "))
"""Keys with public values, which are common in other texts."""


def without_secrets(text: str) -> str:
    """The text with everything that looks like a credential replaced."""
    return _replaced(_SECRETS, text)


def without_credentials(text: str) -> str:
    """Only tokens, private keys, and users and passwords in URLs are replaced.

    For conditions, which must keep their names and digests.
    """
    return _replaced(_CREDENTIALS, text)


def _replaced(patterns: Iterable[tuple[re.Pattern[str], str]], text: str) -> str:
    for pattern, instead in patterns:
        text = pattern.sub(instead, text)
    return text


def holds_credential(url: str) -> bool:
    """Whether a URL has a credential: over http(s) and oci, any user is a token or password."""
    try:
        parts = urlsplit(url)
        return bool(parts.password) or (
            parts.scheme in ("http", "https", "oci") and "@" in parts.netloc
        )
    except ValueError:
        return False


class Redaction:
    """Redacts known values and everything that looks like a credential."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # Longest first, since a value may contain another one.
        self._values = sorted(set(values) - {""}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The redacted text."""
        return without_secrets(self.exact(text))

    def exact(self, text: str) -> str:
        """The text without the known values only: names and digests in it are kept."""
        for each in self._values:
            if each in text:
                text = text.replace(each, HIDDEN)
        return text

    def data(self, value: Any) -> Any:
        """JSON-like data with every text redacted; keys are kept."""
        if isinstance(value, Mapping):
            named = value.get("name")  # such as {name: db.password, value: …}
            return {
                name: HIDDEN
                if _is_secret(named if name == "value" and named else name, each)
                else self.data(each)
                for name, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.data(each) for each in value]
        return self.text(value) if isinstance(value, str) else value


def _is_secret(name: Any, value: Any) -> bool:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return plain and bool(_SECRET_KEY.search(str(name)))


def secret_values(data: Mapping[str, str]) -> Iterator[str]:
    """Values of a Secret's `data` (base64) to redact: decoded, their lines, and encoded."""
    for name, encoded in data.items():
        try:
            text = base64.b64decode(encoded).decode()
        except (binascii.Error, ValueError):
            yield encoded
            continue
        for value in values_of(name, text):
            yield value
            yield base64.b64encode(value.encode()).decode()


def values_of(name: str, text: str) -> Iterator[str]:
    """Values to redact in one text with its key; the text may be a whole document."""
    from k8s_ucp import yaml_io

    readable = ":" in text and len(text) <= _LARGEST_DOCUMENT
    try:
        if readable and _is_deep(text):
            raise ValueError("it is nested too deeply")
        document = yaml_io.load(text) if readable else None
    except (yaml_io.YAMLError, ValueError):
        document = None
        for word in _WORD.findall(text):
            yield from _single(name, word)
    if isinstance(document, dict | list):
        yield text
        yield from _leaves(name, document)
    else:
        yield from _single(name, text)


def _is_deep(text: str) -> bool:
    depth = 0
    for each in _BRACKET.finditer(text):
        depth += 1 if each[0] in "[{" else -1
        if depth > _DEEPEST:
            return True
    return False


def _leaves(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(str(key), each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(name, each)
    elif value is not None and not isinstance(value, bool):
        yield from _single(name, str(value))


def _single(name: str, text: str) -> Iterator[str]:
    if name in _HARMLESS:
        return
    shortest = _SHORTEST_PASSWORD if _PASSWORD.search(name) else _SHORTEST
    # Lines too, because logs split texts there.
    for each in {text, *map(str.strip, text.splitlines())}:
        if len(each) >= shortest:
            yield each
