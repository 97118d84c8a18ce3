"""Applies what Argo CD can't: namespaces, CRDs, its own settings, its projects.

Manifests are read at the tip of the core repository, which includes people's commits. A digest of
them is recorded in the core cluster, so that a rerun without changes writes nothing. Credentials
are read at every start from the sources that the topology names, and are in no repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from k8s_ucp.aws.installation import configuration
from k8s_ucp.clouds import CLOUDS
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.components.manifests import (
    Manifest,
    apply_all,
    digest,
    only_yaml,
    read,
    wait_served,
    written,
)
from k8s_ucp.components.ownership.tracking import keepers, tracked
from k8s_ucp.components.pods import argocd_pods
from k8s_ucp.context import StartContext, persistent
from k8s_ucp.credentials import credential_ref, load
from k8s_ucp.engine.pipeline import Report, step
from k8s_ucp.engine.planned_change import PlannedChange
from k8s_ucp.errors import DeadlineExceeded
from k8s_ucp.gitops.publish.addresses import read_addresses
from k8s_ucp.gitops.render.values.clouds import clouds_with_accounts
from k8s_ucp.kube import APPLICATION, CONFIG_MAP, SECRET, Kube, Object
from k8s_ucp.names import (
    ARGOCD_NAMESPACE,
    CLUSTERS_NAMESPACE,
    MANAGED_BY,
    OURS,
    ROOT_APPLICATION,
)
from k8s_ucp.steps.startup.seed import is_seeded, keep_seed, platform_crds

APPLIED = "k8s-ucp-applied"
"""ConfigMap in the clusters' namespace with a digest of the last applied manifests, by step."""

_CRDS = "apply-crds"
"""Key of the digest of the CRDs alone, which take longest to apply."""
_OF_TEAMS = ("/core/namespace.yaml", "/core/access.yaml")


def _foundation(
    context: StartContext,
) -> tuple[list[Manifest], list[Manifest], list[Manifest]]:
    """(namespaces and CRDs, settings, manifests that need both)"""
    files = {
        path: text
        for path, text in context.published.core.read("platform").items()
        if "workloads" not in path
    }
    later = read(only_yaml(context.published.core.read("projects")))
    # Including Crossplane's: each CRD that is added later makes Argo CD's controller fetch and
    # parse the schema of the whole API again.
    kinds = read_marked(
        context,
        _only(
            files,
            "platform/reconciler/",
            f"platform/{argocd.NAME}/engine/crds.yaml",
            f"platform/{crossplane.NAME}/engine/",
        ),
    )
    # The reconciler watches the teams' namespaces from the beginning; Argo CD applies them later.
    teams = context.published.core.read("teams")
    kinds += read({path: text for path, text in teams.items() if path.endswith(_OF_TEAMS)})
    if context.topology.spec.clouds.simulated:
        from k8s_ucp.aws.installation import manifests

        kinds += [written(each, "the cloud on this machine") for each in manifests()]
        kinds += platform_crds(context)
    settings = read_marked(
        context,
        _only(
            files,
            f"platform/{argocd.NAME}/config/",
            f"platform/{argocd.NAME}/engine/config.yaml",
            f"platform/{crossplane.NAME}/config/",
        ),
    )
    return kinds, settings, later


def _preview_foundation(context: StartContext) -> Iterator[PlannedChange]:
    what = "namespaces, CRDs, settings and projects of the core cluster"
    if not context.core_responds() or context.planned is None:
        yield PlannedChange("change", what, "the core is not running yet; what it lacks is applied")
        return
    kinds, settings, later = _foundation(context)
    current = digest([*kinds, *settings, *later])
    if is_applied(context.kube, "apply-foundation", current, kinds):
        yield PlannedChange("keep", what, "they are up to date with the core repository")
    else:
        yield PlannedChange(
            "change", what, "they changed in the core repository since they were applied"
        )


@step("Apply namespaces, CRDs and settings", preview=_preview_foundation)
@persistent
def apply_foundation(context: StartContext, report: Report) -> None:
    """Apply everything that Argo CD and the reconciler need at their start."""
    kinds, settings, later = _foundation(context)
    current = digest([*kinds, *settings, *later])
    if is_applied(context.kube, "apply-foundation", current, kinds):
        return
    report("kinds")
    crds = [each for each in kinds if each.is_crd]
    current_crds = digest(crds)
    seeded = noted(context.kube, "apply-foundation") is None and is_seeded(context, crds)
    # Most changes are of other objects, such as the AppProject of a new app.
    known = seeded or is_applied(context.kube, _CRDS, current_crds, crds)
    everything = [each for each in (*kinds, *settings) if not (known and each.is_crd)]
    apply_all(context.kube, [each for each in everything if each.kind == "Namespace"])
    apply_all(context.kube, [each for each in everything if each.kind != "Namespace"])
    if context.adopts(argocd.NAME):
        pass  # Configured by its owners.
    elif context.in_pods:
        argocd_pods.prepare(context.kube)
    else:
        context.argocd.prepare(context.kube)
    wait_served(context.kube, kinds)
    report("projects")
    apply_all(context.kube, later)
    note_applied(context.kube, _CRDS, current_crds)
    note_applied(context.kube, "apply-foundation", current)
    if not known:
        keep_seed(context, crds)


def read_marked(context: StartContext, files: Mapping[str, bytes]) -> list[Manifest]:
    """Objects of core repository files, with the tracking ids of their Applications."""
    repository = context.published.core
    bootstrap = f"bootstrap/{context.topology.spec.core.provider}"
    around = repository.read(bootstrap) | repository.read("platform")
    url = read_addresses(context.topology, context.gitops).core
    return tracked(read(files), keepers(around, bootstrap, url))


def is_applied(kube: Kube, step: str, current: str, kinds: Sequence[Manifest]) -> bool:
    """Whether exactly these manifests were applied, and their CRDs are served."""
    return noted(kube, step) == current and are_served(kube, kinds)


def are_served(kube: Kube, kinds: Sequence[Manifest]) -> bool:
    """Whether the API server serves the kinds of all CRDs among the manifests now."""
    try:
        wait_served(kube, kinds, timeout=0)
    except DeadlineExceeded:
        return False
    return True


def noted(kube: Kube, step: str) -> str | None:
    """The digest that a step recorded last; None if it never did."""
    found = kube.find(CONFIG_MAP, APPLIED, CLUSTERS_NAMESPACE) or {}
    return (found.get("data") or {}).get(step)


def note_applied(kube: Kube, step: str, current: str) -> None:
    """Record a digest; with a field manager per step, so that steps keep each other's records."""
    note = CONFIG_MAP.object(APPLIED, CLUSTERS_NAMESPACE, data={step: current})
    kube.apply(note, manager=f"k8s-ucp-{step}")


def apply_root(context: StartContext, report: Report) -> None:
    """Apply the first Applications, if they are missing or may have changed."""
    root = context.kube.find(APPLICATION, ROOT_APPLICATION, ARGOCD_NAMESPACE)
    if root is None or context.published.core.changed or not reads_here(context, root):
        report("root application")
        apply_all(context.kube, first_applications(context))


def reads_here(context: StartContext, application: Object) -> bool:
    """Whether an Application reads the core repository at its current address.

    Another command may have published a new one, such as after the workspace was moved. Argo CD,
    which reads the old one, would never see it.
    """
    source = (application.get("spec") or {}).get("source") or {}
    address = read_addresses(context.topology, context.gitops).core
    return bool(source.get("repoURL") == address)


def apply_repository_secrets(context: StartContext) -> None:
    """Apply Argo CD's credentials for the repositories; its namespace must exist."""
    for secret in context.repository_secrets():
        context.kube.apply(secret)


def first_applications(context: StartContext) -> list[Manifest]:
    """The root Application and the slowest one that it manages.

    Root takes over the latter when it syncs; meanwhile, app clusters are being created.
    """
    folder = f"bootstrap/{context.topology.spec.core.provider}"
    files = context.published.core.read(folder)
    wanted = (f"{folder}/{name}.yaml" for name in (ROOT_APPLICATION, "clusters"))
    return read({path: files[path] for path in wanted if path in files})


def _preview_credentials(context: StartContext) -> Iterator[PlannedChange]:
    for cloud in clouds_with_accounts(context.topology):
        name = f"Secret {crossplane.NAMESPACE}/{CLOUDS[cloud].secret}"
        yield PlannedChange("change", name, f"it is updated with the credential of {cloud}")


@step("Write cloud credentials for Crossplane", preview=_preview_credentials)
@persistent
def apply_credentials(context: StartContext, report: Report) -> None:
    """Give Crossplane the clouds' credentials, and configure the simulated cloud's account."""
    if context.simulates_cloud:
        context.kube.apply(configuration())
    for cloud in clouds_with_accounts(context.topology):
        text = load(cloud, credential_ref(context.topology, context.workspace, cloud))
        report(cloud)
        secret = SECRET.object(
            CLOUDS[cloud].secret,
            crossplane.NAMESPACE,
            labels={MANAGED_BY: OURS},
            type="Opaque",
            stringData={"creds": text},
        )
        context.kube.apply(secret)


def _only(files: Mapping[str, bytes], *prefixes: str) -> dict[str, bytes]:
    return only_yaml({path: text for path, text in files.items() if path.startswith(prefixes)})
