"""Types of the strings in a topology, each with a pattern and its description."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, GetCoreSchemaHandler, StringConstraints

from k8s_ucp.topology.problems import means, unknown_value


class OneOf:
    """One of the names that a table has when the file is read."""

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return BeforeValidator(self._checked).__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        return {"enum": list(self._names()), "type": "string"}

    def _checked(self, value: Any) -> str:
        names = list(self._names())
        if isinstance(value, str) and value in names:
            return value
        raise ValueError(unknown_value(value, names))


def _fits(pattern: str, words: str, most: int | None = None) -> StringConstraints:
    """A string with a pattern, described by `words` in errors, of at most `most` characters."""
    return StringConstraints(max_length=most, pattern=means(pattern, words))


NAME_PATTERN = means(
    r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$",
    "a name: lower-case letters, digits and '-', a letter or digit first and last, "
    "at most 40 characters (RFC 1123)",
)
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""An RFC 1123 label that is short enough for `<topology>-<environment>`."""

ObjectName = Annotated[
    str,
    _fits(
        r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
        "the name of an object: lower-case letters, digits, '-' and '.' (RFC 1123)",
    ),
]

Namespace = Annotated[
    str,
    _fits(
        r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        "a namespace: lower-case letters, digits and '-', at most 63 characters (RFC 1123)",
    ),
]

Kind = Annotated[
    str,
    _fits(
        r"^[A-Z][A-Za-z0-9]{0,62}(\.[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?)?$",
        "a kind such as ClusterRole, or with its API group ClusterIssuer.cert-manager.io",
    ),
]

ObjectKey = Annotated[
    str, _fits(r"^[A-Z][A-Za-z0-9]{0,62}/[^\s/]{1,253}$", "an object as Kind/name: Deployment/web")
]

Reason = Annotated[str, _fits(r"^\S.*$", "a single line of text", 300)]

Tag = Annotated[
    str,
    _fits(
        r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$",
        "an image tag: letters, digits, '_', '.' and '-', at most 128 characters",
    ),
]
"""An OCI tag."""

_REPOSITORY = (
    r"([a-z0-9][a-z0-9.-]*(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
)
Image = Annotated[
    str,
    _fits(
        f"^{_REPOSITORY}$",
        "an image name without a tag, such as ealen/echo-server; set the tag with the key 'tag'",
    ),
]

PinnedImage = Annotated[
    str,
    _fits(
        f"^{_REPOSITORY}(:[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}})?@sha256:[0-9a-f]{{64}}$",
        "an image by digest, such as registry.example.org/ucp@sha256:<64 digits>",
    ),
]

Package = Annotated[
    str,
    _fits(
        f"^{_REPOSITORY}(:v?[0-9]+\\.[0-9]+\\.[0-9]+([-+][A-Za-z0-9.+-]{{1,40}})?"
        "|@sha256:[0-9a-f]{64})$",
        "a Crossplane package with version or digest, such as xpkg.example.org/a/b:v1.2.3",
    ),
]

Quantity = Annotated[
    str,
    _fits(
        r"^[0-9]{1,6}(\.[0-9]{1,3})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$",
        "a quantity such as 500m or 2Gi, in quotes where it is a plain number",
    ),
]

NodeImage = Annotated[
    str,
    _fits(
        f"^{_REPOSITORY}(:[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}})?(@sha256:[0-9a-f]{{64}})?$",
        "an image with its tag or digest, such as kindest/node:v1.35.0",
    ),
]

TaggedImage = Annotated[
    str,
    StringConstraints(
        pattern=means(
            f"^{_REPOSITORY}(:[A-Za-z0-9_][A-Za-z0-9._-]{{0,127}}(@sha256:[0-9a-f]{{64}})?"
            "|@sha256:[0-9a-f]{64})$",
            "an image with its tag or digest, such as postgres:17.7",
        )
    ),
]

HOST_LENGTH = 253
"""Longest RFC 1123 subdomain: the API server refuses an Ingress with a longer host."""


def _host(value: str) -> str:
    if len(value) > HOST_LENGTH:
        raise ValueError(
            f"a DNS name has {len(value)} characters, but at most {HOST_LENGTH} are "
            "allowed (RFC 1123)"
        )
    return value


Host = Annotated[
    str,
    _fits(
        r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$",
        "a DNS name in lower case",
    ),
    AfterValidator(_host),
]

Registry = Annotated[
    str,
    _fits(
        r"^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._/-]+)?$",
        "the address of a registry, such as registry.example.org:5000/mirror",
    ),
]

DURATION_PATTERN = r"^([1-9][0-9]*(s|m|h))+$"
Duration = Annotated[str, _fits(DURATION_PATTERN, "a duration such as 30s, 1m or 1h30m")]

_UNITS = {"s": 1, "m": 60, "h": 3600}


def _between(least: str, most: str) -> Callable[[str], str]:
    """Check the bounds of a duration; outside of them it can't work, or is a mistake."""

    def check(value: str) -> str:
        if not in_seconds(least) <= in_seconds(value) <= in_seconds(most):
            raise ValueError(f"'{value}' is out of range: {least} to {most}")
        return value

    return check


def in_seconds(duration: str) -> int:
    """Seconds of a duration that matches its pattern."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smh])", duration))


Interval = Annotated[Duration, AfterValidator(_between("1s", "168h"))]
"""Polling interval: a week at most."""

Lifetime = Annotated[Duration, AfterValidator(_between("10m", "8760h"))]
"""Lifetime of tokens: API servers grant ten minutes or more; over a year is unsafe."""

Word = Annotated[
    str,
    _fits(
        r"^[A-Za-z0-9]([A-Za-z0-9._@:/-]{0,126}[A-Za-z0-9])?$",
        "one word of letters, digits, '.', '-', '_', '@', ':' and '/'",
    ),
]
"""A name chosen by others: regions, machine types, networks, kubeconfig contexts."""

ZoneLetter = Annotated[str, _fits(r"^[a-z]$", "the letter of an availability zone, such as a")]

Version = Annotated[
    str, _fits(r"^v?[0-9]+(\.[0-9]+){0,2}([-+][A-Za-z0-9.+-]{1,40})?$", "a version such as 1.35.4")
]

PostgresVersion = Annotated[
    str, _fits(r"^[0-9]{2}(\.[0-9]{1,2})?$", "a version of Postgres such as 16")
]

_LABEL_WORD = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
LabelKey = Annotated[
    str,
    _fits(
        rf"^([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_LABEL_WORD}$",
        "the key of a label, such as app or example.org/team",
    ),
]
LabelValue = Annotated[
    str,
    _fits(
        rf"^({_LABEL_WORD})?$",
        "the value of a label: letters, digits, '-', '_' and '.', at most 63 characters",
    ),
]

DataKey = Annotated[
    str,
    _fits(
        r"^[A-Za-z0-9._-]{1,253}$",
        "a key of a Secret or ConfigMap: letters, digits, '-', '_' and '.'",
    ),
]


def _without_dot(value: Any) -> Any:
    """The path as rendered: people also write ./services/quote/."""
    return value.removeprefix("./").removesuffix("/") if isinstance(value, str) else value


_NOT_IN_PATH = r"""/:"'{}?#$`<>|;&*^\\%\x00-\x1f\x7f-\x9f"""
Path = Annotated[
    str,
    _fits(
        rf"^(ucp:[a-z0-9-]+|[^\s~{_NOT_IN_PATH}][^{_NOT_IN_PATH}]*"
        rf"(/[^\s~{_NOT_IN_PATH}][^{_NOT_IN_PATH}]*)*/?)$",
        "a path relative to the folder of ucp.yaml, or to the repository, such as services/quote, "
        "without ' & # % : and other special characters",
        300,
    ),
    BeforeValidator(_without_dot),
]
"""In any language. Without characters that are special to git, kustomize or shells."""


def _url(value: str) -> str:
    """Check brackets and port. Raises ValueError without the URL, which may contain a password."""
    try:
        parts = urlsplit(value)
        _ = parts.hostname, parts.port
    except ValueError as error:
        # Some messages quote a part of the URL.
        reason = "invalid host or port" if "'" in str(error) else str(error).partition(":")[0]
        raise ValueError(f"invalid URL: {reason}") from None
    return value


_NO_URL = r"""\s"'{}?#$`<>|;&*()^\\"""
GitUrl = Annotated[
    str,
    _fits(
        rf"^((https?|ssh|git|file)://[^-{_NO_URL}][^{_NO_URL}]*"
        rf"|[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^{_NO_URL}]+)$",
        "the URL of a git repository: https://, ssh://, file:// or user@host:path, "
        "other characters than -._~/:@+%= and so on as %XX",
        500,
    ),
    AfterValidator(_url),
]
"""Without characters that are special to git, kustomize, shells or pipelines, which read it."""


def _exact(value: str) -> str:
    if "[" in value or "]" in value:
        raise ValueError("the URL of a team's repository can't contain [ or ]")
    return value


TeamUrl = Annotated[GitUrl, AfterValidator(_exact)]
"""Argo CD's projects take patterns: brackets could match the repositories of others."""

ChartRepository = Annotated[
    str,
    _fits(
        rf"^(https?|oci)://[^-{_NO_URL}][^{_NO_URL}]*$",
        "a repository of Helm charts: https://… with an index.yaml, or oci://registry/path",
        500,
    ),
    AfterValidator(_url),
]

ChartName = Annotated[
    str, _fits(r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$", "the name of a chart")
]

ChartVersion = Annotated[
    str,
    _fits(
        r"^v?[0-9]+(\.[0-9]+){0,2}([-+][A-Za-z0-9.+-]{1,100})?$",
        "the exact version of a chart, such as 1.2.3",
    ),
]

ChartDigest = Annotated[
    str,
    StringConstraints(
        pattern=means(r"^sha256:[0-9a-f]{64}$", "the digest of a packed chart: sha256:<64 digits>")
    ),
]


def _ref(value: str) -> str:
    """Check what the patterns don't: the rules of `git check-ref-format`.

    Raises ValueError.
    """
    parts = value.split("/")
    for wrong, why in (
        (any(each.endswith(".lock") for each in parts), "a component ends with .lock"),
        (any(each.startswith(".") for each in parts), "a component begins with a dot"),
        ("" in parts, "a component between two '/' is empty"),
        (".." in value, "it contains '..'"),
        (value.endswith("."), "it ends with a dot"),
    ):
        if wrong:
            raise ValueError(
                f"'{value}' is not a valid git branch name: {why} (git check-ref-format)"
            )
    return value


def _branch(value: str) -> str:
    if value.startswith("refs/"):
        short = value.removeprefix("refs/").removeprefix("heads/")
        raise ValueError(f"'{value}' is a full ref: use the branch name, such as '{short}'")
    if re.fullmatch(r"HEAD|[A-Z]+_HEAD|[0-9a-f]{40}|[0-9a-f]{64}", value):
        raise ValueError(f"'{value}' is not a valid branch: git interprets it differently")
    return _ref(value)


Branch = Annotated[
    str,
    _fits(
        r"^[A-Za-z0-9_][A-Za-z0-9_+@-]*([./][A-Za-z0-9_+@-]+)*$",
        "a branch: letters, digits, '_', '+', '@', '-', with '.' and '/' between them",
        200,
    ),
    AfterValidator(_branch),
]

Revision = Annotated[
    str,
    _fits(r"^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$", "a tag or a commit of a git repository"),
    AfterValidator(_ref),
]

Variable = Annotated[str, _fits(r"^[A-Za-z_][A-Za-z0-9_]*$", "the name of an environment variable")]

OnePassword = Annotated[
    str,
    _fits(
        r"^op://[^/\s]+( [^/\s]+)*(/[^/\s]+( [^/\s]+)*){2,3}$",
        "a 1Password reference, such as op://vault/item/field",
    ),
]

CloudEndpoint = Annotated[
    str,
    _fits(
        r"^(https://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?"
        r"|http://(localhost|127\.[0-9.]*[0-9]|\[::1\]))(:[0-9]{1,5})?/?$",
        "https://host[:port], or http:// on the loopback",
        300,
    ),
    AfterValidator(_url),
]
"""Credentials are sent there, so plain http is allowed on the loopback only."""

PinnedUrl = Annotated[
    str,
    _fits(
        r"^https://[A-Za-z0-9.-]+(:[0-9]+)?/[A-Za-z0-9._~/%+-]*#sha256=[0-9a-f]{64}$",
        "a URL with a sha256 checksum: https://…/k8s_ucp-….whl#sha256=<64 digits>",
        1000,
    ),
]
