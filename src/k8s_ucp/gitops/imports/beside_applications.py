"""Objects that are declared beside Applications of Argo CD, and that no app contains. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from k8s_ucp.errors import some_of
from k8s_ucp.gitops.imports.findings import ArgoDocument, NotImportable
from k8s_ucp.gitops.imports.trees import RepositoryTree, read_documents
from k8s_ucp.gitops.manifests.reachable import resolve
from k8s_ucp.gitops.manifests.yaml_text import maps, part
from k8s_ucp.names import SECRET_TYPE

_OF_ARGOCD = frozenset(["Application", "ApplicationSet", "AppProject"])
_MAY_BE_OF_ARGOCD = re.compile(
    rb"\bkind[\"']?[ \t]*:[ \t]*[\"']?(?:Application(?:Set)?|AppProject)\b|"
    + re.escape(SECRET_TYPE.encode())
)
_GENERATORS = {"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"}


def declares_applications(content: bytes, path: str) -> bool:
    """Whether a file has Applications, or other objects that only Argo CD reads."""
    # Most files have none, and parsing them takes long: CRDs of other Argo projects are megabytes.
    if b"argoproj.io/" not in content or not _MAY_BE_OF_ARGOCD.search(content):
        return False
    return any(map(_is_of_argocd, read_documents(content, path)))


def projects_alone(files: Mapping[str, bytes]) -> list[str]:
    """The files with AppProjects, if files have nothing else that only Argo CD reads."""
    declaring = [path for path, content in files.items() if declares_applications(content, path)]
    found = (
        each
        for path in declaring
        for each in read_documents(files[path], path)
        if _is_of_argocd(each)
    )
    return declaring if all(each.kind == "AppProject" for each in found) else []


def objects_beside(documents: Iterable[ArgoDocument]) -> list[str]:
    """The objects that belong to no Application. Not Namespaces: Argo CD creates those of apps."""
    return [
        f"{each.kind}/{part(each.content, 'metadata').get('name')}"
        for each in documents
        if "kind" in each.content and each.kind != "Namespace" and not _is_of_argocd(each)
    ]


def objects_in(content: bytes, path: str) -> list[str]:
    """The objects in a file that belong to no Application."""
    return objects_beside(read_documents(content, path))


def objects_of_kustomizations(tree: RepositoryTree, folders: Collection[str]) -> list[str]:
    """The objects of kustomizations and what they include that belong to no Application.

    With the URLs that they include, and without folders that Applications deploy.
    """
    deployed = {path for each in tree.documents_of_argocd for path in each.folders}
    found: list[str] = []
    waiting, seen = list(folders), set[str]()
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        content = tree.kustomization(folder)
        for entry in _included(content):
            path = resolve(folder, entry)
            if path in tree.kustomizations:
                waiting += {path} - deployed
            elif path is not None and tree.has(path):
                found += objects_in(tree.read(path), path)
            elif "://" in entry:
                found.append(entry)
        for field, kind in _GENERATORS.items():
            found += [f"{kind}/{each.get('name')}" for each in maps(content, field)]
        found += [f"the chart {each.get('name')}" for each in maps(content, "helmCharts")]
    return list(dict.fromkeys(found))


def has_projects(files: Collection[str], advice: str) -> NotImportable:
    """Why manifests with an AppProject are not imported. files: those that have one."""
    shown = some_of(sorted(files), 3)
    return NotImportable(
        f"each app gets its own AppProject, and its manifests have one ({shown})", advice
    )


def not_added(objects: list[str], advice: str) -> NotImportable:
    """Why these objects are not imported. advice: what makes them an app."""
    return NotImportable(
        "its Applications are listed separately, and what is beside them is not added: "
        f"{some_of(objects, 3)}",
        advice,
        for_many="move that to a folder of its own, and add it by `ucp app add`",
    )


def _included(kustomization: Mapping[str, object]) -> Iterator[str]:
    for field in ("resources", "bases", "components"):
        listed = kustomization.get(field)
        yield from (
            (each for each in listed if isinstance(each, str)) if isinstance(listed, list) else ()
        )


def _is_of_argocd(document: ArgoDocument) -> bool:
    group = str(document.content.get("apiVersion")).partition("/")[0]
    if document.kind == "Secret":
        # A registered cluster or repository.
        return SECRET_TYPE in part(part(document.content, "metadata"), "labels")
    return group == "argoproj.io" and document.kind in _OF_ARGOCD
