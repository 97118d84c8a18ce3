"""Hosts, paths and node ports that an object claims. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from k8s_ucp.gitops.check.objects.item import Object
from k8s_ucp.gitops.manifests.yaml_text import maps, part
from k8s_ucp.gitops.render.values import policies

ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute")
"""Kinds of the Gateway API that claim hosts."""
TRAEFIK_ROUTES = ("IngressRoute", "IngressRouteTCP")
"""Traefik's own kinds; their matches are expressions: Host(`a.example.org`) && Path(`/x`)."""
_HOST_MATCHER = re.compile(r"\bHost(?:SNI)?\(([^()]*)\)", re.IGNORECASE)
_QUOTED = re.compile(r"`([^`]*)`|\"([^\"]*)\"")


def node_ports(item: Object) -> Iterator[tuple[int, str]]:
    """(node port, protocol) that a Service asks for."""
    if item.get("kind") != "Service" or item.get("apiVersion") != "v1":
        return
    for each in maps(part(item, "spec"), "ports"):
        if isinstance(number := each.get("nodePort"), int) and number:
            yield number, str(each.get("protocol") or "TCP")


def hosts(item: Object) -> Iterator[tuple[str, str]]:
    """(host, path) that an Ingress or a route claims."""
    spec = item.get("spec") or {}
    if item.get("kind") == "Ingress":
        for rule in spec.get("rules") or ():
            paths: list[Any] = (rule.get("http") or {}).get("paths") or [{}]
            for path in paths:
                # Charts often leave them empty, which means the same as leaving them out.
                yield str(rule.get("host") or "*"), str(path.get("path") or "/")
    if item.get("kind") in ROUTES:
        # Without hostnames, the route uses those of its Gateway, which isn't known here.
        for host in spec.get("hostnames") or ():
            for path in sorted(set(_route_paths(spec))):
                yield str(host), path
    for route in maps(spec, "routes") if item.get("kind") in TRAEFIK_ROUTES else ():
        match = str(route.get("match"))
        for matcher in _HOST_MATCHER.findall(match):
            for host in _QUOTED.findall(matcher):
                # A dot at the end changes nothing.
                yield "".join(host).lower().removesuffix("."), f" by {match}"


def host_patterns(item: Object) -> Iterator[str]:
    """Regular expressions of traefik's routes that match hosts."""
    for route in maps(part(item, "spec"), "routes") if item.get("kind") in TRAEFIK_ROUTES else ():
        for matcher in re.findall(policies.HOST_PATTERN, str(route.get("match"))):
            yield matcher.split(matcher[-1])[1]


def other_hosts(item: Object) -> Iterator[str]:
    """Hosts besides those with routes, for which certificates and DNS records are made, too."""
    for entry in maps(part(item, "spec"), "tls") if item.get("kind") == "Ingress" else ():
        yield from map(str, entry.get("hosts") or ())
    annotations = part(part(item, "metadata"), "annotations")
    for name in policies.HOST_ANNOTATIONS:
        for host in str(annotations.get(name) or "").lower().split(","):
            yield host.strip().removesuffix(".")


def _route_paths(spec: Mapping[str, Any]) -> Iterator[str]:
    """The match conditions of a route: the path, followed by other conditions if there are any."""
    rules: list[Any] = spec.get("rules") or [{}]
    for rule in rules:
        matches: list[Any] = (rule or {}).get("matches") or [{}]
        for match in matches:
            more = {key: value for key, value in match.items() if key != "path"}
            path = str((match.get("path") or {}).get("value", "/"))
            yield f"{path} {json.dumps(more, sort_keys=True)}" if more else path
