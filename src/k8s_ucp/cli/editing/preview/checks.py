"""Checks the repositories as an edit would change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from k8s_ucp.cli.editing.preview.app_objects import files_of, has_own_manifests
from k8s_ucp.cli.editing.preview.rendering import edited, render_repositories
from k8s_ucp.cli.topology_selection import declared_file
from k8s_ucp.errors import UcpError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.preview.app_objects import AppObjects
    from k8s_ucp.cli.editing.topology_edit import Edit
    from k8s_ucp.gitops.check.findings import CheckFinding
    from k8s_ucp.gitops.check.repositories import CheckResult
    from k8s_ucp.gitops.render.inputs import Rendered
    from k8s_ucp.topology import Topology

GRANTED_BY_FLAGS = ("cluster-kind-not-allowed", "namespace-not-allowed", "reference-missing-object")
"""Rules whose findings are settled by flags of the command."""


def findings_of(
    call: Invocation, after: Rendered, topology: Topology, built: Mapping[str, AppObjects]
) -> list[CheckFinding]:
    """Findings in the folders of apps. built: what each of them creates."""
    starts = tuple(f"apps/{each}/" for each in built)
    found = _checked(call, after, topology, built).findings
    return [each for each in found if each.path.startswith(starts)]


def blocking(findings: Sequence[CheckFinding]) -> list[CheckFinding]:
    """The errors that no flag of the command settles."""
    return [each for each in findings if each.blocks and each.rule not in GRANTED_BY_FLAGS]


def refuse_new_errors(call: Invocation, edit: Edit, built: Mapping[str, AppObjects]) -> None:
    """Check people's manifests before the first start, which would otherwise fail halfway.

    Apps given by an image can break a rule only together with other manifests, such as an Ingress
    with the same host. If the topology was started, the push of the edit is checked. Raises
    UcpError.
    """
    from k8s_ucp.gitops.check.findings import apps_of
    from k8s_ucp.gitops.check.repositories import shown
    from k8s_ucp.topology import load

    text, topology = edited(call, edit)
    if (
        not any(map(has_own_manifests, topology.spec.apps))
        or call.workspace.gitops(topology.name).core.exists()
    ):
        return
    rendered = render_repositories(call, text.encode(), topology)
    after = _checked(call, rendered, topology, built).errors
    if not after:
        return
    path = declared_file(call)
    known = load(path)
    before = _checked(call, render_repositories(call, path.read_bytes(), known), known, {}).errors
    if new := [each for each in after if each not in before]:
        raise UcpError(
            "\n".join(["`ucp check` would refuse it:", *shown(new)]),
            next="fix it, then run the command again; each rule is explained in docs/checks.md, "
            f"and what may be ignored goes to spec.checks.ignore in {path.name}",
            apps=apps_of(new),
        )


def _checked(
    call: Invocation, rendered: Rendered, topology: Topology, built: Mapping[str, AppObjects]
) -> CheckResult:
    from k8s_ucp.cli.app_sources import pinned_helm
    from k8s_ucp.cli.check import kustomize
    from k8s_ucp.gitops.check.repositories import check_rendered
    from k8s_ucp.gitops.manifests.sources import transports

    return check_rendered(
        kustomize(),
        rendered,
        also=transports(topology),
        helm=pinned_helm(call, topology),
        charts={
            overlay: found for each in built.values() for overlay, found in each.charts.items()
        },
        overlays={
            overlay: found
            for name, each in built.items()
            if each.files == files_of(rendered, name)
            for overlay, found in each.overlays.items()
        },
    )
