"""Rules for the objects that an overlay renders: fields, references, pins, hosts. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from k8s_ucp.gitops.check.created import created_by, group_of
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.kinds import find_misfits
from k8s_ucp.gitops.check.metadata import find_invalid_containers, find_invalid_metadata
from k8s_ucp.gitops.manifests.yaml_text import maps, part
from k8s_ucp.gitops.render.values import databases, policies

Object = Mapping[str, Any]

MOVING = frozenset(
    {"canary", "current", "dev", "develop", "edge", "head", "latest", "main", "master"}
    | {"nightly", "rolling", "snapshot", "stable"}
)
"""Tags and branches that move."""
ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute")
"""Kinds of the Gateway API that claim hosts."""
TRAEFIK_ROUTES = ("IngressRoute", "IngressRouteTCP")
"""Traefik's own kinds; their matches are expressions: Host(`a.example.org`) && Path(`/x`)."""
_HOST_MATCHER = re.compile(r"\bHost(?:SNI)?\(([^()]*)\)", re.IGNORECASE)
_QUOTED = re.compile(r"`([^`]*)`|\"([^\"]*)\"")
OUTSIDE = "k8s-ucp.io/from-outside"
IGNORE = "k8s-ucp.io/ignore"
"""Annotation that lists findings of the object to ignore: `<rule>: <reason>`, one per line."""
_POD_MAKERS = frozenset(
    {"pods", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "*"}
)
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?|\[[0-9a-fA-F:]+\](?::\d+)?"
_PATH = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    rf"(?:(?:{_HOST})/)?{_PATH}(?:/{_PATH})*(?::\w[\w.-]{{0,127}})?"
    r"(?:@[A-Za-z][\w+.-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
_PLACEHOLDER = re.compile(r"\$[({]?\w|\{\{|<\w|%\w")
_POD_TEMPLATES = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"), ())

_ACTION = "use-annotation"
"""The port of a backend that is an action in the annotations, for the ALB controller of AWS.

Source: https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/ingress/annotations/
"""


@dataclass(frozen=True)
class _Overlay:
    """The objects of an overlay, and the (kind, name) of those that controllers create for them."""

    objects: Sequence[Object]
    known: Mapping[tuple[str, str], Sequence[Object]]
    """Those with the same kind and name differ by namespace."""
    created: Set[tuple[str, str]]
    neighbors: Sequence[Object] = ()
    """Objects of other apps in the same namespaces."""

    @classmethod
    def of(cls, objects: Sequence[Object], neighbors: Sequence[Object] = ()) -> _Overlay:
        known: dict[tuple[str, str], list[Object]] = {}
        for each in objects:
            known.setdefault((_kind_of(each), name_of(each)), []).append(each)
        created = {("ConfigMap", "kube-root-ca.crt")} | created_by(objects)
        return cls(objects, known, created | created_by(neighbors), neighbors)

    def find(self, kind: str, name: str, user: Object) -> Object | None:
        """The object that `user` means: the one in its namespace, if several have the name."""
        found = self.known.get((kind, name), ())
        beside = (each for each in found if _namespace_of(each) == _namespace_of(user))
        return next(beside, found[-1] if found else None)

    def is_of_neighbor(self, kind: str, name: str) -> bool:
        """Another app creates it in a namespace of this app."""
        return any((_kind_of(each), name_of(each)) == (kind, name) for each in self.neighbors)


def _namespace_of(item: Object) -> str:
    return str(part(item, "metadata").get("namespace") or "")


def _kind_of(item: Object) -> str:
    """The kind; of a Service that isn't Kubernetes' own, such as Knative's, with its group."""
    kind, group = str(item.get("kind")), group_of(item)
    return f"{kind}.{group}" if kind == "Service" and group else kind


@dataclass(frozen=True)
class Mirrored:
    """Secrets and ConfigMaps that Syncers copy to a namespace: {(kind, name): keys}."""

    keys: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def and_also(self, objects: Iterable[str]) -> Mirrored:
        """Add objects that something else creates there, as `Kind/name`; their keys are unknown."""
        others = [each.split("/", 1) for each in objects]
        return Mirrored({(kind, name): frozenset[str]() for kind, name in others} | {**self.keys})


def find_faults(
    objects: Sequence[Object],
    mirrored: Mirrored | None,
    *,
    whole: bool = True,
    deployed: bool = True,
    neighbors: Sequence[Object] = (),
) -> Iterator[Fault]:
    """Faults of the objects of one overlay.

    mirrored: Secrets and ConfigMaps from outside the overlay; None if they aren't known. whole: the
    objects are complete, so a reference to any other object is a fault. deployed: Argo CD applies
    them; other files may be a tool's configuration. neighbors: objects of other apps in the same
    namespaces, none misshapen, to which an autoscaler, route or Service may lead.
    """
    sound = []
    for item in objects:
        if message := misshapen(item):
            yield Fault("object-invalid", f"{item.get('kind')}: {message}")
        else:
            sound.append(item)
    overlay = _Overlay.of(sound, neighbors)
    seen = set()
    for each in sound:
        title = f"{each.get('kind') or 'object'} {name_of(each)}"
        identity = (each.get("apiVersion"), title, each.get("metadata", {}).get("namespace"))
        if identity in seen and "name" in (each.get("metadata") or {}):
            yield of_object(each, Fault("object-duplicate", f"duplicate object {title}"))
        seen.add(identity)
        for fault in _faults_of(each, overlay, mirrored, whole=whole, deployed=deployed):
            yield of_object(each, replace(fault, message=f"{title}: {fault.message}"))


def _faults_of(
    item: Object, overlay: _Overlay, mirrored: Mirrored | None, *, whole: bool, deployed: bool
) -> Iterator[Fault]:
    yield from find_misfits(item)
    yield from find_invalid_metadata(item, deployed=deployed)
    for pod in _pods(item):
        yield from find_invalid_containers(_containers(pod))
        for image in images(pod):
            if fault := invalid_image(image) or unpinned_image(image):
                yield fault
        yield from _accounts(pod)
        yield from _dangling_of_pod(item, pod, overlay, mirrored)
        if whole:
            yield from _dangling_account(item, pod, overlay)
    if whole:
        yield from _dangling(item, overlay)


def of_object(item: Object, fault: Fault) -> Fault:
    """The fault, with the object's name added."""
    return replace(fault, object=named(item))


def named(item: Object) -> str:
    """`Kind/name`."""
    return f"{item.get('kind')}/{name_of(item)}"


def misshapen(item: Object) -> str | None:
    """Why any API server would reject the object's outer form, or None; other rules rely on it."""
    metadata = item.get("metadata", {})
    if not isinstance(metadata, dict):
        return "metadata must be a mapping"
    for name in ("apiVersion", "kind"):
        if not isinstance(item.get(name, ""), str):
            return f"{name} must be a string"
    for name in ("labels", "annotations"):
        if not isinstance(metadata.get(name) or {}, dict):
            return f"metadata.{name} must be a mapping"
    return None


def _from_outside(item: Object) -> frozenset[str]:
    """What the workload's annotation declares as created elsewhere: `Secret/a, ConfigMap/b`."""
    return frozenset(each.strip() for each in _annotation(item, OUTSIDE).split(","))


def _annotation(item: Object, name: str) -> str:
    return str(part(part(item, "metadata"), "annotations").get(name, ""))


def name_of(item: Object) -> str:
    """The object's name, or a pattern for the one that the API server generates: `upgrade-*`."""
    metadata = part(item, "metadata")
    prefix = metadata.get("generateName")
    return str(metadata.get("name") or (f"{prefix}*" if prefix else None))


def _pods(item: Object) -> Iterator[Mapping[str, Any]]:
    """The pod spec of a workload of any kind."""
    for path in _POD_TEMPLATES:
        part: Any = item
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        spec = part.get("spec") if isinstance(part, dict) else None
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield spec


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    return [each for each in found if isinstance(each, dict)]


def images(pod: Mapping[str, Any]) -> list[str]:
    """Images of a pod's containers, init containers included."""
    return [each["image"] for each in _containers(pod) if isinstance(each.get("image"), str)]


def _accounts(pod: Mapping[str, Any]) -> Iterator[Fault]:
    """Source: the conversion of PodSpec in Kubernetes' pkg/apis/core/v1/conversion.go."""
    name, deprecated = pod.get("serviceAccountName"), pod.get("serviceAccount")
    if name and deprecated and name != deprecated:
        message = f"serviceAccountName is {name}, but serviceAccount is {deprecated}"
        yield Fault("service-account-conflict", message, value=f"serviceAccount: {deprecated}")


def _dangling_account(item: Object, pod: Mapping[str, Any], overlay: _Overlay) -> Iterator[Fault]:
    """The operator of a custom resource with its name may create it."""
    kind, deprecated = "ServiceAccount", pod.get("serviceAccount")
    name = str(pod.get("serviceAccountName") or deprecated or "default")
    if name == "default" or overlay.find(kind, name, item):
        return
    around = (*overlay.objects, *overlay.neighbors)
    if not overlay.is_of_neighbor(kind, name) and not any(
        name_of(each) == name and _is_custom(each) for each in around
    ):
        message = f"uses the {kind} {name}, which neither the overlay nor another app has"
        yield Fault("reference-missing-account", message, value=name)


def _is_custom(item: Object) -> bool:
    group = group_of(item)
    return "." in group and not group.endswith(".k8s.io")


def invalid_image(image: str) -> Fault | None:
    """Why the image name is invalid. Source: reference/regexp.go of distribution/reference."""
    if not image or _IMAGE.fullmatch(image):
        return None
    why = ", a placeholder that nothing replaces" if _PLACEHOLDER.search(image) else ""
    return Fault("image-invalid", f"the image {image} is not a valid name{why}", value=image)


def unpinned_image(image: str) -> Fault | None:
    """Why the image can change without a change of its name."""
    if re.search(r"@sha256:[0-9a-f]{64}$", image):
        return None
    name, colon, tag = image.rpartition(":")
    if not colon or "/" in tag:
        return Fault("image-untagged", f"the image {image} has no tag", value=image)
    if not is_moving(tag):
        return None
    return Fault("image-moving-tag", f"the image {name} has the mutable tag {tag}", value=image)


def is_moving(tag: str) -> bool:
    """True also for `latest-alpine` and `alpine-latest`; false for a version or a commit."""
    words = re.split(r"[._-]", tag.lower())
    return bool(MOVING & set(words)) and not re.search(r"\d", tag)


def _dangling_of_pod(
    item: Object, pod: Mapping[str, Any], overlay: _Overlay, mirrored: Mirrored | None
) -> Iterator[Fault]:
    for kind, name, key, keys in _unmet(item, pod, overlay, mirrored):
        if keys is None:
            message = (
                f"references the {kind} {name}, which neither the overlay nor a mirror "
                f"provides; if it is created elsewhere, add {kind}/{name} to `fromOutside` of "
                "the app in ucp.yaml (--from-outside)"
            )
            yield Fault("reference-missing-object", message, value=name)
        else:
            there = ", ".join(sorted(keys))
            message = f"references the key {key} of the {kind} {name}, which has {there}"
            yield Fault("reference-missing-key", message, value=str(key))


def _unmet(
    item: Object, pod: Mapping[str, Any], overlay: _Overlay, mirrored: Mirrored | None
) -> Iterator[tuple[str, str, str | None, frozenset[str] | None]]:
    """Unresolved references of a workload's pod: (kind, name, key, existing keys).

    The existing keys are None if the object doesn't exist.
    """
    outside = _from_outside(item)
    for kind, reference, key in _references(pod):
        name = reference.get("name") or reference.get("secretName")
        if reference.get("optional") or not isinstance(name, str):
            continue
        found, keys = overlay.find(kind, name, item), None
        if found is not None:
            keys = frozenset({**(found.get("data") or {}), **(found.get("stringData") or {})})
            keys |= frozenset(found.get("binaryData") or {})
        elif mirrored is None or f"{kind}/{name}" in outside or (kind, name) in overlay.created:
            continue
        elif (kind, name) in mirrored.keys:
            keys = mirrored.keys[kind, name]
        if keys is None or (key is not None and keys and key not in keys):
            yield kind, name, key, keys


def missing(objects: Iterable[Object], mirrored: Mirrored | None) -> set[str]:
    """`Kind/name` of objects that pods reference and that nothing provides.

    mirrored: as in `find_faults`. Leaves out workloads that ignore findings of this rule.
    """
    sound = [each for each in objects if not misshapen(each)]
    overlay = _Overlay.of(sound)
    return {
        f"{kind}/{name}"
        for each in sound
        if "reference-missing-object" not in _annotation(each, IGNORE)
        for pod in _pods(each)
        for kind, name, _, keys in _unmet(each, pod, overlay, mirrored)
        if keys is None
    }


def _references(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str | None]]:
    """(kind, reference, key) of every Secret and ConfigMap that a pod reads."""
    for container in _containers(pod):
        for variable in container.get("env") or ():
            source = (variable.get("valueFrom") if isinstance(variable, dict) else None) or {}
            for field_name, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
                if isinstance(reference := source.get(field_name), dict):
                    yield kind, reference, reference.get("key")
        for from_source in container.get("envFrom") or ():
            for field_name, kind in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")):
                if isinstance(from_source, dict) and isinstance(from_source.get(field_name), dict):
                    yield kind, from_source[field_name], None
    for volume in pod.get("volumes") or ():
        for field_name, kind in (("secret", "Secret"), ("configMap", "ConfigMap")):
            if isinstance(volume, dict) and isinstance(volume.get(field_name), dict):
                yield kind, volume[field_name], None
    for each in pod.get("imagePullSecrets") or ():
        if isinstance(each, dict):
            yield "Secret", each, None


def _dangling(item: Object, overlay: _Overlay) -> Iterator[Fault]:
    kind = item.get("kind")
    if kind == "Ingress":
        for service, port in _backends(item):
            yield from _dangling_backend(item, service, port, overlay)
    if kind in ROUTES:
        yield from _dangling_of_route(item, overlay)
    if kind == "HorizontalPodAutoscaler":
        target = (item.get("spec") or {}).get("scaleTargetRef") or {}
        known = (str(target.get("kind")), str(target.get("name")))
        if known not in overlay.known and not overlay.is_of_neighbor(*known):
            message = (
                f"scales {target.get('kind')} {target.get('name')}, which does not exist "
                "in the overlay"
            )
            yield Fault("reference-missing-target", message, field="spec.scaleTargetRef")
    if _kind_of(item) == "Service" and (selector := (item.get("spec") or {}).get("selector")):
        pods = [each for each in overlay.objects if any(True for _ in _pods(each))]
        around = (*overlay.objects, *overlay.neighbors)
        selected = any(_selects(selector, each) for each in around)
        if pods and not selected and not any(_makes_pods(each, selector) for each in around):
            labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
            yield Fault(
                "selector-without-pods",
                f"selects the labels {labels}, which no pod in the overlay has",
                field="spec.selector",
            )


def _makes_pods(item: Object, selector: Mapping[str, Any]) -> bool:
    """The object may lead to pods with these labels, which an operator creates.

    It grants permission to create pods, or is a custom resource whose name operators write to a
    label of their own (`cnpg.io/cluster: NAME`, `strimzi.io/cluster: NAME`).
    """
    domain, name = _domain(group_of(item)), name_of(item)
    labels = {_domain(str(key).partition("/")[0]) for key, each in selector.items() if each == name}
    if domain in labels:
        return True
    if item.get("kind") == "ClusterRoleBinding":
        return part(item, "roleRef").get("name") == "cluster-admin"
    return item.get("kind") in ("Role", "ClusterRole") and any(
        not {"create", "*"}.isdisjoint(rule.get("verbs") or ())
        and not _POD_MAKERS.isdisjoint(rule.get("resources") or ())
        for rule in maps(item, "rules")
    )


def _domain(host: str) -> tuple[str, ...]:
    return tuple(host.split(".")[-2:])


def _dangling_of_route(route: Object, overlay: _Overlay) -> Iterator[Fault]:
    spec = route.get("spec") or {}
    if not spec.get("parentRefs"):
        yield Fault(
            "route-without-gateway",
            "has no Gateway (parentRefs), so it is not served",
            field="spec",
        )
    for rule in spec.get("rules") or ():
        for each in (rule or {}).get("backendRefs") or ():
            if each.get("kind", "Service") != "Service" or each.get("namespace"):
                continue
            yield from _dangling_backend(route, str(each.get("name")), each.get("port"), overlay)


def _dangling_backend(item: Object, service: str, port: Any, overlay: _Overlay) -> Iterator[Fault]:
    if port == _ACTION or ("Service", service) in overlay.created:
        return
    found = overlay.find("Service", service, item)
    if found is None and overlay.is_of_neighbor("Service", service):
        return
    if found is None:
        message = f"references the Service {service}, which does not exist in the overlay"
        yield Fault("reference-missing-service", message, value=service)
    elif port not in _ports(found):
        message = f"references the port {port}, which the Service {service} does not have"
        yield Fault("reference-missing-port", message, value=str(port))


def _backends(ingress: Object) -> Iterator[tuple[str, Any]]:
    spec = ingress.get("spec") or {}
    paths: list[Mapping[str, Any]] = [
        path
        for rule in spec.get("rules") or ()
        for path in ((rule or {}).get("http") or {}).get("paths") or ()
    ]
    for backend in [spec.get("defaultBackend"), *(each.get("backend") for each in paths)]:
        if service := (backend or {}).get("service"):
            port = service.get("port") or {}
            yield str(service.get("name")), port.get("name", port.get("number"))


def _ports(service: Object) -> set[Any]:
    ports = (service.get("spec") or {}).get("ports") or ()
    return {each.get(key) for each in ports for key in ("name", "port")}


def _selects(selector: Mapping[str, Any], workload: Object) -> bool:
    for path in _POD_TEMPLATES:
        part: Any = workload
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        labels = ((part or {}).get("metadata") or {}).get("labels") or {}
        if all(labels.get(key) == value for key, value in selector.items()):
            return True
    return False


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


_KINDS = {"secret": "Secret", "configmap": "ConfigMap"}


def mirrored_in(core: Iterable[Object], app: str, environment: str) -> Mirrored | None:
    """Secrets and ConfigMaps that Syncers copy to an app's namespace in an environment.

    None if a Syncer selects its sources by labels, since the result is then known only at runtime.
    """
    keys: dict[tuple[str, str], frozenset[str]] = {}
    for item in core:
        if item.get("kind") != "Syncer":
            continue
        for entry in (item.get("spec") or {}).get("data") or ():
            if not _concerns(entry, app, environment):
                continue
            source = entry.get("sourceName")
            name = entry.get("targetName") or source
            if source is None or "{" in str(name):
                return None
            kind = _KINDS.get(str(entry.get("kinds", "secret")), "Secret")
            known = frozenset(entry.get("keys") or ())
            if not known and str(source).endswith(databases.SUFFIX):
                known = frozenset(databases.KEYS)
            keys[kind, str(name)] = known
    return Mirrored(keys)


def _concerns(entry: Mapping[str, str], app: str, environment: str) -> bool:
    cluster = entry.get("targetCluster")
    if cluster is not None and not str(cluster).endswith(f"-{environment}"):
        return False
    namespace = str(entry.get("targetNamespace"))
    return namespace == app or "{" in namespace
