"""Transforms of patches, compatible with function-patch-and-transform.

Pure. Formats are Go's; a verb that doesn't match its value is an error here, while Go would write
`%!d(string=…)` into the result.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from k8s_ucp.compositions.function import CompositionError
from k8s_ucp.compositions.go_regexp import search

_VERB = re.compile(r"%(?P<flags>[-+# 0]*+\d{0,6}(?:\.\d{1,6})?)(?P<verb>[a-zA-Z%])")
"""Go takes widths below a million, too."""
_QUANTITY = re.compile(r"([+-]?[0-9.]+)([numkMGTPE]?|[KMGTPE]i)")
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def transformed(value: Any, transforms: Sequence[Mapping[str, Any]]) -> Any:
    """Apply transforms in order. Raises CompositionError."""
    for number, each in enumerate(transforms):
        kind = str(each.get("type"))
        if kind not in _TRANSFORMS:
            raise CompositionError(f"transform {number}: type {kind!r} is not supported")
        try:
            value = _TRANSFORMS[kind](value, each.get(kind) or {})
        except CompositionError as error:
            raise CompositionError(f"transform {number} ({kind}): {error}") from error
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise CompositionError(f"transform {number} ({kind}): {reason}") from error
    return value


def formatted(pattern: str, values: Sequence[Any]) -> str:
    """Go's fmt.Sprintf for strings, numbers and booleans. Raises CompositionError."""
    left = list(values)

    def filled(found: re.Match[str]) -> str:
        flags, verb = found["flags"], found["verb"]
        if verb == "%":
            return "%"
        if not left:
            raise CompositionError(f"format {pattern!r} has more verbs than values")
        value = left.pop(0)
        if verb == "v":
            return f"%{flags}s" % text(value)
        if verb in "sq" and isinstance(value, str):
            return f"%{flags}s" % (json.dumps(value, ensure_ascii=False) if verb == "q" else value)
        if verb == "t" and isinstance(value, bool):
            return f"%{flags}s" % text(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if verb in "doxX" and is_number and isinstance(value, int):
            return str(f"%{flags}{verb}" % value)
        if verb in "feEgG" and is_number:
            return str(f"%{flags}{verb}" % value)
        raise CompositionError(f"format {pattern!r}: %{verb} does not go with {value!r}")

    result = _VERB.sub(filled, pattern)
    if left:
        raise CompositionError(f"format {pattern!r} has fewer verbs than values")
    return result


def text(value: Any) -> str:
    """A scalar in Go's notation; anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _map(value: Any, pairs: Mapping[str, Any]) -> Any:
    if not isinstance(value, str):
        raise CompositionError(f"{value!r} is not a string")
    if value not in pairs:
        raise CompositionError(f"key {value!r} is not found in map")
    return pairs[value]


def _match(value: Any, match: Mapping[str, Any]) -> Any:
    for pattern in match.get("patterns") or ():
        if pattern.get("type", "literal") == "literal":
            matches = value == pattern["literal"]
        else:
            matches = isinstance(value, str) and bool(search(pattern["regexp"], value))
        if matches:
            return pattern.get("result")
    return value if match.get("fallbackTo") == "Input" else match.get("fallbackValue")


def _math(value: Any, math: Mapping[str, Any]) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CompositionError(f"{value!r} is not a number")
    number: int | float = value
    match math.get("type", "Multiply"):
        case "Multiply":
            return number * int(math["multiply"])
        case "ClampMin":
            return max(number, int(math["clampMin"]))
        case "ClampMax":
            return min(number, int(math["clampMax"]))
        case other:
            raise CompositionError(f"math type {other!r} is not supported")


def _string(value: Any, string: Mapping[str, Any]) -> str:
    match string.get("type", "Format"):
        case "Format":
            return formatted(string["fmt"], [value])
        case "Convert":
            return _converted(value, string["convert"])
        case "TrimPrefix":
            return text(value).removeprefix(string["trim"])
        case "TrimSuffix":
            return text(value).removesuffix(string["trim"])
        case "Join":
            if not isinstance(value, list):
                raise CompositionError(f"{value!r} is not a list")
            return str(string["join"]["separator"]).join(map(text, value))
        case "Replace":
            replace = string["replace"]
            return text(value).replace(replace["search"], replace["replace"])
        case "Regexp":
            wanted = string["regexp"]
            found = search(wanted["match"], text(value))
            group = int(wanted.get("group", 0))
            if not found or group > found.re.groups:
                raise CompositionError(f"{wanted['match']!r} does not match {value!r}")
            return found[group] or ""
        case other:
            raise CompositionError(f"string type {other!r} is not supported")


def _converted(value: Any, how: str) -> str:
    match how:
        case "ToUpper":
            return text(value).upper()
        case "ToLower":
            return text(value).lower()
        case "ToJson":
            return _json(value)
        case "ToBase64":
            return base64.b64encode(text(value).encode()).decode()
        case "FromBase64":
            return base64.b64decode(text(value), validate=True).decode()
        case "ToSha1" | "ToSha256" | "ToSha512":
            return hashlib.new(how[2:].lower(), _hashed(value)).hexdigest()
        case "ToAdler32":
            return str(zlib.adler32(_hashed(value)))
        case other:
            raise CompositionError(f"conversion {other!r} is not supported")


def _hashed(value: Any) -> bytes:
    return (value if isinstance(value, str) else _json(value)).encode()


def _json(value: Any) -> str:
    """As Go writes it, byte by byte, since names in clouds may be hashes of it."""
    written = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", written)


def _convert(value: Any, convert: Mapping[str, Any]) -> Any:
    wanted, form = convert["toType"], convert.get("format", "none")
    if form == "quantity":
        return quantity(value)
    if form == "json":
        return json.loads(value)
    match wanted:
        case "string":
            return text(value)
        case "bool" if isinstance(value, str):
            if value.lower() not in ("true", "false", "t", "f", "1", "0"):
                raise CompositionError(f"{value!r} is not a boolean")
            return value.lower() in ("true", "t", "1")
        case "bool":
            return bool(value == 1)
        case "int" | "int64":
            return int(value)
        case "float64":
            return float(value)
        case "object" | "array" if isinstance(value, dict if wanted == "object" else list):
            return value
    raise CompositionError(f"{value!r} can't become {wanted!r}")


def quantity(value: str) -> float:
    """Parse a Kubernetes quantity, such as 10Gi or 500m. Raises CompositionError."""
    found = _QUANTITY.fullmatch(value)
    if not found:
        raise CompositionError(f"{value!r} is not a quantity")
    number, suffix = float(found[1]), found[2]
    if suffix in _BINARY:
        return number * float(1024 ** _BINARY[suffix])
    return number * 1000.0 ** _DECIMAL[suffix]


_TRANSFORMS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "map": _map,
    "match": _match,
    "math": _math,
    "string": _string,
    "convert": _convert,
}
