"""Rules for the files of a repository: references and pinned versions. Pure.

objects/ checks the objects that kustomize builds from them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.check.findings import Fault
from k8s_ucp.gitops.check.objects.images import is_moving, unpinned_image
from k8s_ucp.gitops.check.objects.item import of_object
from k8s_ucp.gitops.check.tree import Tree
from k8s_ucp.gitops.manifests.build_many import Object
from k8s_ucp.gitops.manifests.sources import FIELDS, entries
from k8s_ucp.gitops.manifests.yaml_text import maps, part
from k8s_ucp.names import ENVIRONMENT, ENVIRONMENTS
from k8s_ucp.topology.rules.names import APP_FOLDER, shared_applications, taken_namespace

_PIPELINE = re.compile(r"(\.github/workflows|ci)/[^/]+\.ya?ml")
_LOCAL_TARGET = re.compile(r"^[ \t]*+UCP_PROMOTE_REPO:\s*[\"']?(file:[^\s\"']+)", re.MULTILINE)
_ACTION = re.compile(r"^[ \t]*+(?:-[ \t]++)?uses:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


def _misshapen(path: str, item: Object, *names: str) -> Iterator[Fault]:
    for name in names:
        if item.get(name) is not None and not isinstance(item[name], list | tuple):
            yield Fault("list-invalid", f"{name} is not a list", path, value=name)


def find_file_faults(tree: Tree) -> Iterator[Fault]:
    """Faults visible in a repository's files alone, in either repository."""
    documents = tree.documents
    yield from tree.unreadable
    for path in tree.outward:
        yield Fault(
            "symlink-out-of-bounds",
            "the symbolic link points outside of the repository, so Argo CD renders no app of it",
            path,
        )
    for folder, content in sorted(tree.kustomizations.items()):
        yield from _misshapen(folder, content, *FIELDS, "helmCharts")
        for entry in entries(content):
            if message := _unpinned_base(entry):
                yield Fault("base-unpinned", message, folder, value=entry)
        for chart in maps(content, "helmCharts"):
            if why := _unpinned_chart(chart, "version", "name"):
                yield Fault("chart-unpinned", why, folder, value=str(chart.get("name")))
    for path, text in tree.files.items():
        if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", path):
            for action in _ACTION.findall(text.decode("utf-8", "replace")):
                if not re.search(r"@([0-9a-f]{40}|sha256:[0-9a-f]{64})$|^\./", action):
                    why = f"the action {action} is not pinned to a commit hash"
                    yield Fault("action-unpinned", why, path, value=action)
        if _PIPELINE.fullmatch(path):
            yield from _local_targets(path, text)
    for path, items in documents.items():
        for each in items:
            yield from (of_object(each, fault) for fault in _unpinned_packages(path, each))


def _local_targets(path: str, text: bytes) -> Iterator[Fault]:
    for url in sorted(set(_LOCAL_TARGET.findall(text.decode("utf-8", "replace")))):
        message = f"the pipeline promotes to {url}, which only a runner on that machine can reach"
        yield Fault("pipeline-local-repository", message, path, value=url)


def _unpinned_base(entry: str) -> str | None:
    if "://" not in entry and not re.match(r"[\w.-]+@[\w.-]+:", entry) and "?ref=" not in entry:
        return None
    found = re.search(r"[?&](?:ref|version)=([^&]+)", entry)
    if found is None:
        return f"{entry} is not pinned: add ?ref= with a tag or commit"
    return f"{entry} is not pinned: {found[1]} is a branch" if is_moving(found[1]) else None


def _unpinned_chart(source: Object, key: str, name: str) -> str | None:
    version = str(source.get(key) or "")
    if re.fullmatch(r"v?\d+\.\d+\.\d+([-+][\w.+-]+)?", version):
        return None
    return f"the chart {source.get(name)} has no exact version: {version or 'none'}"


def _unpinned_packages(path: str, item: Object) -> Iterator[Fault]:
    kind, spec = item.get("kind"), item.get("spec")
    if not isinstance(spec, dict):
        return
    if str(item.get("apiVersion", "")).startswith("pkg.crossplane.io/"):
        package = spec.get("package")
        if isinstance(package, str) and (found := unpinned_image(package)):
            message = found.message.replace("the image", "the package")
            yield Fault("package-unpinned", message, path, value=package)
    for source in sources_of(item) if kind == "Application" else ():
        if source.get("chart") and (problem := _unpinned_chart(source, "targetRevision", "chart")):
            yield Fault("chart-unpinned", problem, path, value=str(source["chart"]))


def sources_of(application: Object) -> list[Object]:
    """The sources of an Application, whether it has one or several."""
    spec = part(application, "spec")
    return [each for each in (part(spec, "source"), *maps(spec, "sources")) if each]


def find_environment_faults(tree: Tree) -> Iterator[Fault]:
    """Faults of the app repository: its list of environments, and overlays that don't match it."""
    path = "environments.yaml"
    found = [
        each for content in tree.documents.get(path, []) for each in maps(content, "environments")
    ]
    for content in tree.documents.get(path, []):
        yield from _misshapen(path, content, "environments")
    names = [str(each.get("name")) for each in found]
    for name in sorted({each for each in names if names.count(each) > 1}):
        yield Fault("environment-duplicate", f"duplicate environment {name}", path, value=name)
    for each in found:
        source = each.get("promotesFrom")
        if source is not None and str(source) not in names:
            message = f"{each.get('name')} promotes from {source}, which is not an environment"
            yield Fault("environment-unknown-source", message, path, value=str(source))
    for folder, app, environment in tree.deployed_overlays:
        if names and environment not in names:
            message = f"environments.yaml has no environment {environment}"
            yield Fault("environment-unknown", message, folder)
        if not APP_FOLDER.fullmatch(app):
            message = (
                f"'{app}' can't be the name of an app: at most 63 lowercase letters, digits, '-' "
                "and '.' (RFC 1123)"
            )
            yield Fault("application-name-invalid", message, folder)
        if taken := taken_namespace(app):
            yield Fault("namespace-reserved", taken, folder)
        if folder in tree.directories and f"apps/{app}/base" in tree.kustomizations:
            message = f"it has no kustomization.yaml, so it does not include apps/{app}/base out"
            yield Fault("overlay-without-kustomization", message, folder)
    folders = {(app, environment): folder for folder, app, environment in tree.deployed_overlays}
    for (app, environment), other in shared_applications(sorted(folders)):
        message = (
            f"the Application name '{app}-{environment}' is also used for "
            f"{folders[app, environment]}, and Argo CD would generate neither: "
            "rename an app or an environment"
        )
        yield Fault("application-name-taken", message, folders[other])


def find_core_faults(tree: Tree, apps: Tree | None) -> Iterator[Fault]:
    """Faults of the core repository: its Applications' projects and paths."""
    found = [(path, each) for path, content in tree.documents.items() for each in content]
    projects = {_name(each) for _, each in found if each.get("kind") == "AppProject"}
    applications = [(path, each) for path, each in found if each.get("kind") == "Application"]
    addresses = {
        _name(each): source.get("repoURL")
        for _, each in applications
        for source in sources_of(each)
    }
    trees: dict[Any, Tree] = {addresses.get("root"): tree}
    if apps is not None:
        # The apps' AppProject admits only the app repository.
        admitted = [
            part(each, "spec").get("sourceRepos") or ()
            for _, each in found
            if each.get("kind") == "AppProject" and _name(each) == "applications"
        ]
        trees |= {url: apps for urls in admitted for url in urls}
    for path, application in applications:
        for fault in _application_faults(application, path, projects, trees):
            yield of_object(application, fault)


def _application_faults(
    application: Object, path: str, projects: Collection[str], trees: Mapping[Any, Tree]
) -> Iterator[Fault]:
    """Its project and its paths. trees: {URL of a repository: its files}."""
    name = _name(application)
    project = part(application, "spec").get("project")
    if projects and project not in projects:
        message = f"the Application {name} references the project {project}, which does not exist"
        yield Fault("application-missing-project", message, path, field="spec.project")
    for source in sources_of(application):
        tree = trees.get(source.get("repoURL"))
        folder = str(source.get("path") or ".")
        if tree is not None and not tree.exists(posixpath.normpath(folder)):
            message = f"the Application {name} references the path {folder}, which does not exist"
            yield Fault("application-missing-path", message, path, value=folder)


def find_unlisted_clusters(tree: Tree) -> Iterator[Fault]:
    """Faults of the core repository: clusters of environments that its lists lack."""
    folder = "clusters"
    kustomization = tree.kustomizations.get(folder, {})
    lists = [
        each
        for each in maps(kustomization, "configMapGenerator")
        if each.get("name") == ENVIRONMENTS
    ]
    if not lists or any(not isinstance(each.get("literals"), list) for each in lists):
        return  # Somebody keeps the list in another form, such as `envs`.
    listed = {str(entry).partition("=")[0] for each in lists for entry in each["literals"]}
    for entry in entries(kustomization):
        overlay = posixpath.normpath(posixpath.join(folder, entry))
        for environment in sorted(_environments_in(tree, overlay) - listed):
            message = (
                f"{entry} has the cluster of {environment}, which is not in the list "
                f"{ENVIRONMENTS}: add the literal {environment}="
            )
            yield Fault("environment-unknown", message, folder, value=entry)
    for overlay in tree.roots:
        if overlay.startswith(f"{folder}/"):
            entry = overlay.removeprefix(f"{folder}/")
            # The overlay of a stopped environment is only in the list of environments.
            for environment in sorted(_environments_in(tree, overlay) - listed):
                message = (
                    f"the cluster of {environment} is never created: to create it, add {entry} to "
                    f"`resources` in {folder}/kustomization.yaml, and the literal {environment}= "
                    f"to its list {ENVIRONMENTS}"
                )
                yield Fault("environment-unlisted", message, overlay)


def _environments_in(tree: Tree, overlay: str) -> set[str]:
    """The environments whose clusters an overlay declares."""
    labels = maps(tree.kustomizations.get(overlay, {}), "labels")
    found = (part(each, "pairs").get(ENVIRONMENT) for each in labels)
    return {str(each) for each in found if each is not None}


def find_topology_faults(tree: Tree, parse: Callable[[str], Any]) -> Iterator[Fault]:
    """Faults of ucp.yaml. parse: raises UcpError."""
    text = tree.files.get("ucp.yaml")
    if text is None:
        return
    try:
        parse(text.decode("utf-8"))
    except UnicodeDecodeError:
        yield Fault("topology-invalid", "not valid UTF-8", "ucp.yaml")
    except UcpError as error:
        for line in error.message.splitlines():
            yield Fault("topology-invalid", line.removeprefix("ucp.yaml:"), "ucp.yaml")


def _name(item: Object) -> str:
    return str(part(item, "metadata").get("name"))
