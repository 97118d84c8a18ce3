"""Rules for references to other objects, which must exist in the overlay. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from k8s_ucp.gitops.check.created import created_by, group_of
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.objects.hosts import ROUTES
from k8s_ucp.gitops.check.objects.item import (
    IGNORE,
    OUTSIDE,
    POD_TEMPLATES,
    Object,
    annotation,
    containers_of,
    misshapen,
    name_of,
    pods_of,
)
from k8s_ucp.gitops.check.objects.mirrored import Mirrored
from k8s_ucp.gitops.manifests.yaml_text import maps, part

_POD_MAKERS = frozenset(
    {"pods", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "*"}
)
_ACTION = "use-annotation"
"""The port of a backend that is an action in the annotations, for the ALB controller of AWS.

Source: https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/ingress/annotations/
"""


@dataclass(frozen=True)
class RenderedOverlay:
    """The objects of an overlay, and the (kind, name) of those that controllers create for them."""

    objects: Sequence[Object]
    known: Mapping[tuple[str, str], Sequence[Object]]
    """Those with the same kind and name differ by namespace."""
    created: Set[tuple[str, str]]
    neighbors: Sequence[Object] = ()
    """Objects of other apps in the same namespaces."""

    @classmethod
    def of(cls, objects: Sequence[Object], neighbors: Sequence[Object] = ()) -> RenderedOverlay:
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


def _from_outside(item: Object) -> frozenset[str]:
    """What the workload's annotation declares as created elsewhere: `Secret/a, ConfigMap/b`."""
    return frozenset(each.strip() for each in annotation(item, OUTSIDE).split(","))


def find_dangling_account(
    item: Object, pod: Mapping[str, Any], overlay: RenderedOverlay
) -> Iterator[Fault]:
    """A ServiceAccount that nothing creates; an operator may, for a custom resource of its name."""
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


def find_dangling_of_pod(
    item: Object, pod: Mapping[str, Any], overlay: RenderedOverlay, mirrored: Mirrored | None
) -> Iterator[Fault]:
    """Secrets, ConfigMaps and their keys that a pod reads and that nothing provides."""
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
    item: Object, pod: Mapping[str, Any], overlay: RenderedOverlay, mirrored: Mirrored | None
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
    overlay = RenderedOverlay.of(sound)
    return {
        f"{kind}/{name}"
        for each in sound
        if "reference-missing-object" not in annotation(each, IGNORE)
        for pod in pods_of(each)
        for kind, name, _, keys in _unmet(each, pod, overlay, mirrored)
        if keys is None
    }


def _references(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str | None]]:
    """(kind, reference, key) of every Secret and ConfigMap that a pod reads."""
    for container in containers_of(pod):
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


def find_dangling(item: Object, overlay: RenderedOverlay) -> Iterator[Fault]:
    """What routes, autoscalers and Services lead to and that does not exist."""
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
        pods = [each for each in overlay.objects if any(True for _ in pods_of(each))]
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


def _dangling_of_route(route: Object, overlay: RenderedOverlay) -> Iterator[Fault]:
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


def _dangling_backend(
    item: Object, service: str, port: Any, overlay: RenderedOverlay
) -> Iterator[Fault]:
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
    for path in POD_TEMPLATES:
        part: Any = workload
        for key in path:
            part = part.get(key) if isinstance(part, dict) else None
        labels = ((part or {}).get("metadata") or {}).get("labels") or {}
        if all(labels.get(key) == value for key, value in selector.items()):
            return True
    return False
