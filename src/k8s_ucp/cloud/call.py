"""Parses requests to AWS: service, region, operation, parameters.

Operations are identified with botocore's models of the services, so a new kind of resource needs no
change here. Signature Version 4 contains service and region:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-signing-elements.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote

READS = ("Describe", "Get", "List", "Head", "Lookup", "Simulate", "Search", "Check", "Decode")
_SCOPE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/\d{8}/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request\b"
)


@dataclass(frozen=True)
class HttpRequest:
    """A received request.

    path: without the query, still percent-encoded. headers: lower-case names.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class ApiCall:
    """One operation on a service. parameters: with the names in the service's model."""

    service: str
    region: str
    operation: str
    access_key: str
    caller: str
    """User agent."""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether it may change something in the cloud."""
        return not self.operation.startswith(READS)


@dataclass(frozen=True)
class SignatureScope:
    """What the header of a signed request says before its body is read."""

    access_key: str
    region: str
    service: str


def read_scope(request: HttpRequest) -> SignatureScope | None:
    """The scope of a request's signature; None if it isn't signed."""
    scope = _SCOPE.match(request.headers.get("authorization", ""))
    return SignatureScope(*scope.groups()) if scope else None


def read_call(request: HttpRequest) -> ApiCall | None:
    """The operation of a signed request; None if it is unknown."""
    scope = read_scope(request)
    if not scope:
        return None
    key, region, service = scope.access_key, scope.region, scope.service
    found = _operation(service, request)
    if found is None:
        return None
    operation, parameters = found
    caller = request.headers.get("user-agent", "")
    return ApiCall(service, region, operation, key, caller, parameters)


def _operation(service: str, request: HttpRequest) -> tuple[str, dict[str, Any]] | None:
    model = service_model(service)
    if model is None:
        return None
    if model.resolved_protocol in ("query", "ec2"):
        form = dict(parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True))
        operation = form.pop("Action", "")
        return (operation, form) if operation in model.operation_names else None
    if target := request.headers.get("x-amz-target"):
        operation = target.rpartition(".")[2]
        return (operation, _json(request.body)) if operation in model.operation_names else None
    return _rest_operation(service, request)


def _rest_operation(service: str, request: HttpRequest) -> tuple[str, dict[str, Any]] | None:
    """The most specific operation whose method, path and fixed query keys match."""
    query = dict(parse_qsl(request.query, keep_blank_values=True))
    found: list[tuple[int, str, dict[str, Any]]] = []
    for name, method, path, fixed in _routes(service):
        match = path.fullmatch(request.path)
        fits = match and method == request.method
        if fits and match and all(query.get(key) == value for key, value in fixed.items()):
            labels = {key: unquote(value) for key, value in match.groupdict().items() if value}
            found.append((len(fixed) * 100 - len(labels), name, labels))
    if not found:
        return None
    _, name, labels = max(found, key=lambda each: each[0])
    kind = request.headers.get("content-type", "")
    body = _json(request.body) if "json" in kind else {}
    return name, {**query, **body, **labels}


@cache
def _routes(service: str) -> list[tuple[str, str, re.Pattern[str], dict[str, str]]]:
    """(operation, method, pattern of its path, fixed query) of a REST service."""
    model = service_model(service)
    routes = []
    for name in model.operation_names if model else ():
        http = model.operation_model(name).http
        path, _, query = http["requestUri"].partition("?")
        parts = re.split(r"\{(\w+)(\+?)\}", path)
        pattern = "".join(
            re.escape(text)
            + (f"(?P<{label}>{'.+' if greedy else '[^/]+'})" if label is not None else "")
            for text, label, greedy in zip(
                parts[::3], [*parts[1::3], None], [*parts[2::3], ""], strict=True
            )
        )
        fixed = dict(parse_qsl(query, keep_blank_values=True))
        routes.append((name, http["method"], re.compile(pattern + "/?"), fixed))
    return routes


@cache
def service_model(service: str) -> Any:
    """botocore's model of a service, by its name in signatures; None if unknown."""
    import botocore.exceptions

    try:
        return _session().get_service_model(service)
    except botocore.exceptions.UnknownServiceError:
        return None


@cache
def _session() -> Any:
    import botocore.session

    return botocore.session.get_session()


def _json(body: bytes) -> dict[str, Any]:
    try:
        read = json.loads(body or b"{}")
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}
