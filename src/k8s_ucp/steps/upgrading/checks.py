"""Checks before a topology is upgraded, to find problems in advance."""

from __future__ import annotations

import time

from k8s_ucp.components.manifests import Manifest, read, refused
from k8s_ucp.components.repositories import engine_manifests
from k8s_ucp.context import AWAY_SECONDS, StartContext
from k8s_ucp.errors import UcpError, UsageError, some_of
from k8s_ucp.gitops.manifests.yaml_text import documents
from k8s_ucp.inspect.api_usage import DeprecatedUse, KindVersions, deprecated_uses, minor_of
from k8s_ucp.kube import Kube, KubeError
from k8s_ucp.steps.preparation.tools_and_images import find_tools
from k8s_ucp.steps.upgrading.parts import CORE, UpgradePart, chosen, moves
from k8s_ucp.tools.catalogue import CATALOGUE
from k8s_ucp.tools.required import relied_on

METRICS = "/metrics"


def check_running(context: StartContext) -> None:
    """Require a running topology, since its health has to be compared. Raises UcpError."""
    topology = context.topology
    if context.in_pods:
        raise UcpError(
            f"the components of {topology.name} are pods of its core cluster: the core repository "
            "has their versions",
            next="ucp start --plan, which shows the newer manifests; then: ucp start",
        )
    if not context.placement.is_running() or not _core_responds(context):
        raise UcpError(
            f"{topology.name} is not running", next="ucp start, then run the command again"
        )
    check_programs(context)


def _core_responds(context: StartContext) -> bool:
    """Now, or soon after an interrupted upgrade, since the watcher restarts the core."""
    until = time.monotonic() + (AWAY_SECONDS if context.journal.resumed else 0)
    while not (responds := context.core_responds()) and time.monotonic() < until:
        context.cancel.pause(1.0)
    return responds


def check_programs(context: StartContext) -> None:
    """Check that the programs that it keeps are installed. Raises UcpError."""
    context.toolbox, pins = find_tools(context)
    context.upgrade.pins = pins or context.upgrade.pins


def check_declared_versions(context: StartContext) -> None:
    """Versions in ucp.yaml are what a person wants, so they must agree. Raises UsageError."""
    spec = context.topology.spec
    engines = relied_on(context.topology).items()
    declared = {
        name: (f"spec.{name}.version", declared_version) for name, declared_version in engines
    }
    declared[CORE] = ("spec.core.version", spec.core.version)
    for each in spec.environments:
        declared[each.name] = (f"cluster.version of environment {each.name}", each.cluster.version)
    for part in chosen(context):
        key, version = declared.get(part.name, ("", None))
        for move in moves(context, part) if version else ():
            after = f"{CATALOGUE[move.tool].version}."
            wanted = str(version).removeprefix("v")
            if move.tool in (part.name, "kubernetes") and not after.startswith(f"{wanted}."):
                raise UsageError(
                    f"{key} is {version}, but ucp upgrades {part.title} to {move.after}",
                    next=f"set it to {move.after}, or remove the key; then run the command again",
                )


def check_kubernetes(context: StartContext) -> None:
    """No API in use is removed, and no minor version is skipped. Raises UcpError."""
    for part in chosen(context):
        for move in moves(context, part) if part.cluster else ():
            if move.tool != "kubernetes":
                continue
            if minor_of(move.after)[1] - minor_of(move.before)[1] > 1:
                raise UcpError(
                    f"{part.cluster} runs Kubernetes {move.before}: from there to {move.after} "
                    "skips a minor version",
                    next="upgrade to the minor version in between first, with an older ucp",
                )
            removed = [
                each.name
                for each in kubernetes_findings(context, part)
                if each.is_removed_in(move.after)
            ]
            if removed:
                raise UcpError(
                    f"APIs in use on {part.cluster} were removed in Kubernetes {move.after}: "
                    f"{some_of(removed)}",
                    next="move what uses them to a newer version of these APIs; the API server "
                    "counts uses since it started, so ucp stop and ucp start reset the count",
                )


def kubernetes_findings(context: StartContext, part: UpgradePart) -> list[DeprecatedUse]:
    """Deprecated APIs in use on a cluster since its API server started. Raises KubeError."""
    kube = Kube.from_file(context.state.kubeconfig(part.cluster))
    try:
        return deprecated_uses(str(kube.request("GET", METRICS, text=True)))
    finally:
        kube.close()


def check_kinds(context: StartContext) -> None:
    """Check that the core accepts the newer CRDs: they must have all stored versions.

    Only if the newer programs, which contain the CRDs, are installed. Raises UcpError.
    """
    for part in chosen(context):
        if part.cluster or not moves(context, part):
            continue
        try:
            against = refused(context.kube, newer_kinds(context, part))
        except KubeError as error:
            raise UcpError(f"failed to try the newer kinds: {error.message}") from error
        if against:
            raise UcpError(
                f"{context.topology.core_cluster} refuses the kinds of the newer {part.title}: "
                f"{some_of(against, 2)}",
                next="store their objects in a newer version and remove the old one from "
                "status.storedVersions; then run the command again",
            )


def newer_kinds(context: StartContext, part: UpgradePart) -> list[Manifest]:
    """CRDs of a component's newer version; none if that isn't installed."""
    if part.tools[0] not in context.upgrade.pins.modules:
        return []
    toolbox = context.toolbox.with_tools(part.tools, context.upgrade.pins)
    files = engine_manifests(context.topology, toolbox).get(part.name, {})
    return [each for each in read(files) if each.is_crd]


def versions_of(kinds: list[Manifest]) -> dict[str, KindVersions]:
    """Versions of CRDs by name."""
    return {
        each.name: KindVersions.of(documents(each.text.encode(), each.source)[0]["spec"])
        for each in kinds
    }
