"""Requirements of a core that doesn't run on this machine: image and reachable repositories.

An existing cluster must not contain any of the components that ucp installs.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from k8s_ucp.components import argocd, crossplane, reconciler
from k8s_ucp.context import StartContext
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import CRD, NAMESPACE
from k8s_ucp.loopback import is_loopback
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.preflight.adoption import AdoptedCore, opened_core
from k8s_ucp.topology.parts import ADOPTABLE
from k8s_ucp.topology.placement import can_load_images, core_is_existing, in_pods

COMPONENTS = {
    argocd.NAME: ("Argo CD", argocd.NAMESPACE, "applications.argoproj.io"),
    crossplane.NAME: (
        "Crossplane",
        crossplane.NAMESPACE,
        "compositions.apiextensions.crossplane.io",
    ),
    reconciler.NAME: (
        "the reconciler of another topology",
        CLUSTERS_NAMESPACE,
        "localclusters.k8s-ucp.io",
    ),
}
"""Components that ucp installs: (title, namespace, CRD); the last two reveal an installation."""


def check_image(context: StartContext) -> None:
    """Check that nodes on other machines can pull the reconciler's image from a registry."""
    topology = context.topology
    if not in_pods(topology) or can_load_images(topology) or topology.spec.reconciler.image:
        return
    raise UcpError(
        "spec.reconciler.image is required for a core with provider "
        f"{topology.spec.core.provider}: its nodes pull the reconciler image from a "
        "registry",
        next="make image ARGS='--tag REGISTRY/k8s-ucp-reconciler:1' && docker push "
        "REGISTRY/k8s-ucp-reconciler:1; then, with the digest that the push shows, in ucp.yaml: "
        "reconciler: {image: REGISTRY/k8s-ucp-reconciler@sha256:...}",
    )


def check_git_reach(context: StartContext) -> None:
    """Check that Argo CD in pods can reach the repositories, without the user's SSH keys."""
    git = context.topology.spec.git
    if not context.in_pods or git.provider != "url":
        return
    for key, url in (("core", git.core or ""), ("apps", git.apps or "")):
        if _is_here_only(url):
            raise UcpError(
                f"spec.git.{key} is {url}, which pods of the core cluster can't reach",
                next="use URLs that are reachable from the cluster, such as https://",
            )
        # An adopted Argo CD may have its own SSH keys.
        ours = argocd.NAME not in context.topology.spec.core.adopt
        if ours and not url.lower().startswith(("http://", "https://", "git://")):
            raise UcpError(
                f"spec.git.{key} is {url}, but Argo CD in pods has no SSH key for it",
                next=(
                    "use its https:// URL, and git: {auth: NAME} with the token in creds/NAME.token"
                ),
            )


def check_git_rights(context: StartContext) -> None:
    """Note if the credential that Argo CD stores in Secrets of the core may also push."""
    git = context.topology.spec.git
    pushing = context.git_credential if context.git_read_credential is None else None
    urls = [url for url in (git.core, git.apps) if git.provider == "url" and url]
    if pushing and any(url.lower().startswith(("http://", "https://")) for url in urls):
        context.notes.append(
            "Argo CD reads the repositories with the credential that also pushes to "
            "them: set a read-only credential in spec.git.readAuth"
        )


def check_no_components(context: StartContext) -> None:
    """Check that an existing core has no components of ours, except our own and adopted ones."""
    core = context.topology.spec.core
    if not core_is_existing(context.topology):
        return
    with opened_core(context) as cluster:
        found = {
            component: title
            for component, (title, *where) in COMPONENTS.items()
            if component not in core.adopt and _is_installed_by_others(cluster, *where)
        }
    if found:
        use = ",".join(each for each in ADOPTABLE if each in (*found, *core.adopt))
        adoptable = set(found) <= set(ADOPTABLE)
        raise UcpError(
            f"the cluster of context {core.context} already runs "
            f"{', '.join(found.values())}, which ucp would overwrite",
            next=(
                f"ucp start --adopt {use} (uses the existing installation unchanged), or "
                "use another cluster"
            )
            if adoptable
            else "use another cluster, or remove the existing installation first",
        )


def _is_installed_by_others(cluster: AdoptedCore, namespace: str, crd: str) -> bool:
    """Whether it exists and isn't ours."""
    objects = (cluster.kube.find(kind, name) for kind, name in ((NAMESPACE, namespace), (CRD, crd)))
    return any(each and not cluster.is_ours(each) for each in objects)


def _is_here_only(url: str) -> bool:
    """Whether it is a path, or a name for this machine."""
    parts = urlsplit(url)
    if parts.scheme == "file" or url.startswith(("/", ".", "~")):
        return True
    host = parts.hostname or url.rpartition("@")[2].partition(":")[0]
    return is_loopback(host)
