"""Apps in folders that Flux's Kustomizations deploy: their names and namespaces. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from k8s_ucp.gitops.imports.findings import ArgoDocument, DiscoveredApp, app_name
from k8s_ucp.gitops.imports.flux.beside_releases import unfilled
from k8s_ucp.gitops.imports.flux.builds import LAID_OVER
from k8s_ucp.gitops.imports.trees import RepositoryTree
from k8s_ucp.gitops.manifests.forms import USUAL
from k8s_ucp.gitops.manifests.reachable import resolve
from k8s_ucp.gitops.manifests.yaml_text import part

_NO_APP = frozenset([*USUAL, "apps", "flux-system"])
"""Names of Kustomizations that deploy more than one app in most repositories."""


def as_deployed(
    app: DiscoveredApp, kustomizations: Iterable[ArgoDocument], tree: RepositoryTree
) -> DiscoveredApp:
    """An app found by its folder, with the name and the namespace that Flux deploys it with.

    kustomizations: those of Flux that deploy folders of this repository. If they differ, the app is
    unchanged. A note lists what else they would change.
    """
    folders = [*app.overlays.values(), *([] if app.path is None else [app.path])]
    own = [each for each in kustomizations if _folder_of(each) in folders]
    if not own or app.remote:
        return app
    names = {app_name(each.name) for each in own}
    spaces = {str(part(each.content, "spec").get("targetNamespace") or "") for each in own}
    name = names.pop() if len(names) == 1 else app.name
    return replace(
        app,
        name=app.name if name in _NO_APP else name,
        namespace=(spaces.pop() if len(spaces) == 1 else "") or app.namespace,
        notes=(*app.notes, *_notes(own, folders, tree)),
    )


def _folder_of(kustomization: ArgoDocument) -> str | None:
    """The folder that Flux's Kustomization deploys; None if it names none of the repository."""
    path = part(kustomization.content, "spec").get("path")
    # One without a path is most often a patch for others.
    return resolve("", str(path)) if path else None


def _notes(
    kustomizations: Sequence[ArgoDocument], folders: Sequence[str], tree: RepositoryTree
) -> Iterator[str]:
    for each in kustomizations:
        spec = part(each.content, "spec")
        if changes := [key for key in LAID_OVER if spec.get(key) and key != "targetNamespace"]:
            yield f"{', '.join(changes)} of {each.where} are not applied: add them to its overlays"
    if any(part(each.content, "spec").get("postBuild") for each in kustomizations):
        used = [each for each in folders if each in tree.kustomizations]
        files = tree.closure(used).values() if used else ()
        if variables := unfilled(each.decode(errors="replace") for each in files):
            yield f"Flux would fill {variables} in it: write what they stand for"
