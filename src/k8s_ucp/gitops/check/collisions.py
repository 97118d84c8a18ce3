"""Rules for what can be there only once: hosts, node ports, an object in a directory. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.objects.hosts import ROUTES, hosts, node_ports
from k8s_ucp.gitops.check.objects.item import Object, misshapen, named, of_object
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.gitops.manifests.build_many import Built
from k8s_ucp.gitops.manifests.yaml_text import maps, part

_ANY_HOST = "*"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_ENTRY_POINTS = "traefik.ingress.kubernetes.io/router.entrypoints"
_GATEWAY = ("namespace", "name", "sectionName", "port")
_Entrance = tuple[str, ...]


@dataclass(frozen=True)
class _Claim:
    """Of a host and path, by an overlay."""

    folder: str
    entrances: frozenset[_Entrance]


def find_repeated_faults(tree: Tree) -> Iterator[Fault]:
    """Objects that are twice in an overlay without a kustomization, also in different files."""
    overlays = {folder for folder, _, _ in tree.deployed_overlays}
    seen: dict[tuple[str, str, str, object], str] = {}
    for path, item in sorted(tree.plain(), key=lambda each: each[0]):
        folder = "/".join(path.split("/")[:4])
        if folder not in overlays or misshapen(item) or not part(item, "metadata").get("name"):
            continue
        namespace = part(item, "metadata").get("namespace")
        group = str(item.get("apiVersion")).rpartition("/")[0]
        identity = (folder, group, named(item), namespace)
        if identity in seen:
            message = f"{named(item)} is twice in this directory, also in {seen[identity]}"
            yield of_object(item, Fault("object-repeated", message, path))
        seen.setdefault(identity, path)


def find_host_faults(tree: Tree, built: Built) -> Iterator[Fault]:
    """A host used by two apps in one environment is a fault of the second app."""
    owners: dict[tuple[str, str], str] = {}
    routes: dict[str, dict[tuple[str, str], list[_Claim]]] = {}
    for folder, _, environment in sorted(tree.deployed_overlays):
        routed = routes.setdefault(environment, {})
        for item in _objects_of(tree, built, folder):
            try:
                claimed, entrances = set(hosts(item)), _entrances(item)
            except (TypeError, ValueError, AttributeError):
                message = f"failed to read the hosts of a {item.get('kind')}"
                yield Fault("check-failed", message, folder)
                continue
            # Without a host, no app owns what arrives: their paths may differ.
            for host in sorted({host for host, _ in claimed} - {_ANY_HOST}):
                other = owners.setdefault((environment, host), folder)
                if other != folder:
                    message = f"the host {host} is already used by {other}"
                    yield of_object(item, Fault("host-taken", message, folder, value=host))
            if built.objects.get(folder) is None:
                continue
            for host, path in sorted(claimed):
                claims = routed.setdefault((host, path), [])
                others = [each.folder for each in claims if _meet(each.entrances, entrances)]
                claims.append(_Claim(folder, entrances))
                if others:
                    other = others[0]
                    where = "" if other == folder else f", which {other} claims, too"
                    message = f"duplicate host and path {host}{path}{where}"
                    fault = Fault("host-path-duplicate", message, folder, value=host)
                    if other != folder and host != _ANY_HOST:
                        fault = replace(fault, included_in="host-taken")
                    yield of_object(item, fault)


def _entrances(item: Object) -> frozenset[_Entrance]:
    """Where requests for an object arrive; an empty text stands for any value."""
    spec, metadata = part(item, "spec"), part(item, "metadata")
    annotations = part(metadata, "annotations")
    found: set[_Entrance]
    match item.get("kind"):
        case "Ingress":
            name = spec.get("ingressClassName") or annotations.get(_INGRESS_CLASS)
            points = str(annotations.get(_ENTRY_POINTS) or "").split(",")
            found = {("Ingress", str(name or ""), each.strip()) for each in points}
        case kind if kind in ROUTES:
            found = {
                ("Route", *(str(ref.get(key) or "") for key in _GATEWAY))
                for ref in maps(spec, "parentRefs")
            }
        case _:
            listed = spec.get("entryPoints")
            points = listed if isinstance(listed, list) else []
            found = {("Traefik", str(each)) for each in points}
    return frozenset(found)


def _meet(some: frozenset[_Entrance], others: frozenset[_Entrance]) -> bool:
    """A request may arrive at both; an object that names no entrance may have any."""
    return not (some and others) or any(
        one[0] != other[0]
        or all(a == b or not (a and b) for a, b in zip(one[1:], other[1:], strict=True))
        for one in some
        for other in others
    )


def find_node_port_faults(tree: Tree, built: Built) -> Iterator[Fault]:
    """A node port used by two Services in one environment is a fault of the second one."""
    owners: dict[tuple[str, int, str], tuple[str, str, str]] = {}
    for folder, _, environment in sorted(tree.deployed_overlays):
        for item in _objects_of(tree, built, folder):
            here = folder, named(item), str(part(item, "metadata").get("namespace"))
            for number, protocol in node_ports(item):
                other = owners.setdefault((environment, number, protocol), here)
                if other != here:
                    other_folder, service, _ = other
                    where = "" if other_folder == folder else f" of {other_folder}"
                    message = f"the node port {number} is already used by {service}{where}"
                    fault = Fault("node-port-taken", message, folder, value=str(number))
                    yield of_object(item, fault)


def _objects_of(tree: Tree, built: Built, folder: str) -> Sequence[Object]:
    """Objects of an overlay; if it was not built this time, those of its own files."""
    items = built.objects.get(folder)
    if items is not None:
        return items
    start = f"{folder}/"
    found = (content for path, content in tree.documents.items() if path.startswith(start))
    return [each for content in found for each in content]
