"""Violations of an environment's guard rails, before its API server rejects them. Pure.

The rules have the ids of the policies in templates/core/policies. Rules for images are in
objects/images.py; operations on a cluster (deletions, `kubectl debug`) can't be checked in a
repository.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from k8s_ucp.check_rules import RuleId
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.objects.hosts import (
    ROUTES,
    TRAEFIK_ROUTES,
    host_patterns,
    hosts,
    other_hosts,
)
from k8s_ucp.gitops.check.objects.item import Object, name_of, of_object
from k8s_ucp.gitops.manifests.yaml_text import maps, part
from k8s_ucp.gitops.render.values import policies
from k8s_ucp.topology import Topology
from k8s_ucp.topology.rules.names import PLATFORM_NAMESPACES

Spec = Mapping[str, Any]

_PODS = {
    "Pod": ("spec",),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(
        ("Deployment", "StatefulSet", "DaemonSet", "Job", "Rollout"), ("spec", "template", "spec")
    ),
}
"""Path to the pod spec in each kind that the policies match."""
_REQUESTS = ("cpu", "memory")
_CAPABILITIES = frozenset(
    [
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    ]
)
_REPEATED = re.compile(r"[*+?{]")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
URL = r"[a-z][a-z0-9+.-]*://[^/\s\x27\x22\x60#?|;&)]*"
"""Scheme and host of a URL in a command, for the API server, which searches in linear time."""
_URL = re.compile(URL.replace("*://", "{0,30}://"))
OWN_URL = r"^[^:]+://([^@]*@)?(localhost|127\.[0-9.]+|\[::1\]|0\.0\.0\.0|\$.*|%2[Ff].*)?(:.*)?$"
"""Matches a URL that points to the container itself, or whose host is known only at runtime."""


class GuardRailRules:
    """Guard rails of all environments. topology: None if it isn't available: no faults then."""

    def __init__(self, topology: Topology | None) -> None:
        self._levels = policies.levels(topology) if topology else {}
        self._rules = frozenset(policies.policies(topology) if topology else ())
        self._owners = policies.host_owners(topology) if topology else {}

    def faults(self, environment: str, home: str, objects: Sequence[Object]) -> Iterator[Fault]:
        """What the guard rails reject or warn about. home: the namespace of the app."""
        level = self._levels.get(environment)
        for item in objects if level else ():
            namespace = str(part(item, "metadata").get("namespace") or home)
            if namespace in PLATFORM_NAMESPACES:
                continue
            for rule, words, field in self._violations(item, namespace):
                if rule in self._rules:
                    title = f"{item.get('kind')} {name_of(item)}: {words}"
                    fault = Fault(rule, title, field=field, denied=level == "deny")
                    yield of_object(item, fault)

    def _violations(self, item: Object, namespace: str) -> Iterator[tuple[RuleId, str, str]]:
        """Yields (rule, message, field)."""
        kind = str(item.get("kind"))
        if kind in ("Ingress", "Service", *ROUTES, *TRAEFIK_ROUTES):
            yield from self._hosts(item, namespace)
        if kind == "Secret" and item.get("type") == "kubernetes.io/service-account-token":
            yield "no-lasting-tokens", "a ServiceAccount token that never expires", "type"
        pod: Spec = item
        for key in (path := _PODS.get(kind, ())):
            pod = part(pod, key)
        if path:
            at = ".".join(path)
            yield from ((rule, words, at) for rule, words in _of_pod(pod))
            for field in ("initContainers", "containers"):
                for index, each in enumerate(maps(pod, field)):
                    found = _of_container(pod, each, sidecar=field == "initContainers")
                    for rule, words in found:
                        name = f"container {each.get('name')}"
                        yield rule, f"{name} {words}", f"{at}.{field}[{index}]"

    def _hosts(self, item: Object, namespace: str) -> Iterator[tuple[RuleId, str, str]]:
        routed = {host for host, _ in hosts(item)}
        claimed, matches = routed | {*other_hosts(item)}, [*_safe_patterns(item)]
        # Traefik prefers a wildcard to a host, since its rule is longer.
        wildcards = routed if item.get("kind") in ("Ingress", *TRAEFIK_ROUTES) else ()
        for host, owners in sorted(self._owners.items()):
            is_claimed = (
                host in claimed
                or f"*.{host.partition('.')[2]}" in wildcards
                or any(each.search(host) for each in matches)
            )
            if is_claimed and namespace not in owners:
                owner = owners[0]
                yield "no-taken-hosts", f"ucp.yaml gives the host {host} to {owner}", "spec"
        if item.get("kind") == "Ingress":
            claims = Counter(
                (str(rule.get("host", "")), str(path.get("path", "/")), path.get("pathType"))
                for rule in maps(part(item, "spec"), "rules")
                for path in maps(part(rule, "http"), "paths")
            )
            for host, path, _ in (claim for claim, count in claims.items() if count > 1):
                yield "no-taken-hosts", f"has the host and path {host}{path} twice", "spec.rules"


def _safe_patterns(item: Object) -> Iterator[re.Pattern[str]]:
    """Patterns for hosts that can't keep Python busy; the others are left to the API server."""
    for each in host_patterns(item):
        if "(" not in each and len(_REPEATED.findall(each)) <= 2:
            with contextlib.suppress(re.error, OverflowError, ValueError):
                yield re.compile(each, re.ASCII)


def _of_pod(pod: Spec) -> Iterator[tuple[RuleId, str]]:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(name) is True:
            yield "no-host-access", f"shares {name} with its node"
    for volume in maps(pod, "volumes"):
        if volume.get("hostPath"):
            yield "no-host-access", f"the volume {volume.get('name')} is a folder of the node"


def _of_container(pod: Spec, each: Spec, *, sidecar: bool) -> Iterator[tuple[RuleId, str]]:
    security = part(each, "securityContext")
    if security.get("privileged") is True:
        yield "no-host-access", "is privileged"
    ports = [str(port["hostPort"]) for port in maps(each, "ports") if port.get("hostPort")]
    if ports:
        yield "no-host-ports", f"takes ports of the node: {', '.join(ports)}"
    added = part(security, "capabilities").get("add") or ()
    if more := [str(name) for name in added if name not in _CAPABILITIES]:
        yield "no-added-capabilities", f"adds capabilities: {', '.join(more)}"
    if not sidecar or each.get("restartPolicy") == "Always":
        missing = [
            name for name in _REQUESTS if not (_has_request(each, name) or _has_request(pod, name))
        ]
        if missing:
            yield "required-requests", f"has no request of {' and '.join(missing)}"
    for name in _PROBES:
        for host in _probed(part(each, name), _LOOPBACK if pod.get("hostNetwork") is True else ()):
            yield "no-remote-probes", f"has a {name} that depends on {host}"


def _has_request(item: Spec, resource: str) -> bool:
    """A limit is enough: the API server uses it as the default of the request."""
    given = part(item, "resources")
    return resource in part(given, "requests") or resource in part(given, "limits")


def _probed(probe: Spec, own: Sequence[str]) -> Iterator[str]:
    """Hosts other than the container itself that a probe connects to."""
    for way in ("httpGet", "tcpSocket"):
        host = part(probe, way).get("host")
        if host and host not in own:
            yield str(host)
    words = part(probe, "exec").get("command")
    for word in words if isinstance(words, list) else ():
        yield from (url for url in _URL.findall(str(word)) if not re.search(OWN_URL, url))
