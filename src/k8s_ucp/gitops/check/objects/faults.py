"""Applies all rules to the objects of an overlay. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.kinds import find_misfits
from k8s_ucp.gitops.check.metadata import find_invalid_containers, find_invalid_metadata
from k8s_ucp.gitops.check.objects.images import images, invalid_image, unpinned_image
from k8s_ucp.gitops.check.objects.item import (
    Object,
    containers_of,
    misshapen,
    name_of,
    of_object,
    pods_of,
)
from k8s_ucp.gitops.check.objects.mirrored import Mirrored
from k8s_ucp.gitops.check.objects.references import (
    RenderedOverlay,
    find_dangling,
    find_dangling_account,
    find_dangling_of_pod,
)


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
    overlay = RenderedOverlay.of(sound, neighbors)
    seen: dict[tuple[Any, ...], Object] = {}
    for each in sound:
        title = f"{each.get('kind') or 'object'} {name_of(each)}"
        identity = (each.get("apiVersion"), title, each.get("metadata", {}).get("namespace"))
        # A chart that another one depends on twice, by aliases, brings its CRDs twice.
        is_same_crd = each.get("kind") == "CustomResourceDefinition" and seen.get(identity) == each
        if identity in seen and "name" in (each.get("metadata") or {}) and not is_same_crd:
            yield of_object(each, Fault("object-duplicate", f"duplicate object {title}"))
        seen[identity] = each
        for fault in _faults_of(each, overlay, mirrored, whole=whole, deployed=deployed):
            yield of_object(each, replace(fault, message=f"{title}: {fault.message}"))


def _faults_of(
    item: Object,
    overlay: RenderedOverlay,
    mirrored: Mirrored | None,
    *,
    whole: bool,
    deployed: bool,
) -> Iterator[Fault]:
    yield from find_misfits(item)
    yield from find_invalid_metadata(item, deployed=deployed)
    for pod in pods_of(item):
        yield from find_invalid_containers(containers_of(pod))
        for image in images(pod):
            if fault := invalid_image(image) or unpinned_image(image):
                yield fault
        yield from _accounts(pod)
        yield from find_dangling_of_pod(item, pod, overlay, mirrored)
        if whole:
            yield from find_dangling_account(item, pod, overlay)
    if whole:
        yield from find_dangling(item, overlay)


def _accounts(pod: Mapping[str, Any]) -> Iterator[Fault]:
    """Source: the conversion of PodSpec in Kubernetes' pkg/apis/core/v1/conversion.go."""
    name, deprecated = pod.get("serviceAccountName"), pod.get("serviceAccount")
    if name and deprecated and name != deprecated:
        message = f"serviceAccountName is {name}, but serviceAccount is {deprecated}"
        yield Fault("service-account-conflict", message, value=f"serviceAccount: {deprecated}")
