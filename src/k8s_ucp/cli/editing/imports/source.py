"""The repository of `ucp app import`: a folder, or a commit of a git repository."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.cli.editing.adding.app_source import SSH
from k8s_ucp.cli.editing.adding.items import parsed_item
from k8s_ucp.errors import UcpError, UsageError

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.git.environment import Credential
    from k8s_ucp.gitops.imports.argocd.application_drafts import Fetch
    from k8s_ucp.gitops.imports.argocd.application_sets import FillGo
    from k8s_ucp.gitops.imports.argocd.declared import Render
    from k8s_ucp.gitops.imports.flux.builds import Build
    from k8s_ucp.gitops.manifests.reachable import FolderTree
    from k8s_ucp.topology import Topology

RENDER_SECONDS = 60.0


@dataclass(frozen=True)
class ImportSource:
    """The repository to import from."""

    folder_tree: FolderTree
    title: str
    """Name of the repository."""
    urls: tuple[str, ...]
    """Its URLs, as far as known."""
    folder: Path | None = None
    """Its folder on this machine; None: a commit."""
    url: str = ""
    commit: str = ""
    credential: Credential | None = None


def open_source(
    call: Invocation, topology: Topology, source: str, revision: str | None, auth: str | None
) -> ImportSource:
    """Open a repository. source: a URL or folder; a folder with a revision is a git repository.

    Raises UcpError, UsageError.
    """
    from k8s_ucp.git.command import is_bare
    from k8s_ucp.gitops.render.app_manifests import folder_tree_of

    folder = Path(source).expanduser()
    address = "://" in source or (SSH.fullmatch(source) and not folder.exists())
    if not address and not folder.is_dir():
        raise UsageError(
            f"{source} is neither a folder nor the URL of a git repository",
            next="ucp app import URL, or ucp app import DIR",
        )
    if not address and revision is None and not is_bare(folder):
        folder = folder.resolve()
        return ImportSource(folder_tree_of(folder), folder.name, _remotes(folder), folder)
    return _of_commit(
        call, topology, source if address else folder.resolve().as_uri(), revision, auth
    )


def _of_commit(
    call: Invocation, topology: Topology, url: str, revision: str | None, auth: str | None
) -> ImportSource:
    from k8s_ucp.cli.app_sources import credential_for
    from k8s_ucp.git.local_refs import local_folder
    from k8s_ucp.gitops.manifests.git_source import find_commit, open_commit
    from k8s_ucp.topology import App
    from k8s_ucp.workspace import cache_folder

    # Checks `auth`, which requires http(s) and a credential in ucp.yaml, as for any app.
    app = App.model_validate({"name": "import", "repo": url, "revision": "HEAD", "auth": auth})
    credential = credential_for(call, topology, app)
    commit = find_commit(url, revision, credential)
    if revision != commit:
        call.console.say(f"{revision or 'the default branch'} of {url} is commit {commit}")
    title = url.rstrip("/").removesuffix("/.git").rpartition("/")[2].removesuffix(".git")
    folder = local_folder(url)
    urls = (url, *(_remotes(folder) if folder else ()))
    folder_tree = open_commit(url, commit, cache_folder(), credential)
    return ImportSource(folder_tree, title, urls, url=url, commit=commit, credential=credential)


def fetcher(call: Invocation, topology: Topology) -> Fetch:
    """Fetches other repositories, if they are public or on the host of the topology's own."""
    from k8s_ucp.cli.app_sources import credential_for
    from k8s_ucp.gitops.manifests.git_source import find_commit, open_commit
    from k8s_ucp.workspace import cache_folder

    silent: dict[str, UcpError] = {}

    def fetch(url: str, revision: str | None) -> FolderTree:
        if url.startswith("http://"):
            raise UcpError(f"{url} is not encrypted: use https or ssh")
        if url in silent:
            raise silent[url]
        try:
            return opened(url, revision)
        except UcpError as error:
            silent[url] = error
            raise

    @cache
    def opened(url: str, revision: str | None) -> FolderTree:
        app = parsed_item({"name": "import", "repo": url, "revision": "HEAD"})
        credential = credential_for(call, topology, app)
        commit = find_commit(url, revision, credential)
        if revision != commit:
            call.console.say(f"{revision or 'the default branch'} of {url} is commit {commit}")
        return open_commit(url, commit, cache_folder(), credential)

    return fetch


def _remotes(folder: Path) -> tuple[str, ...]:
    """URLs of a clone's remotes; empty if it isn't a clone."""
    from k8s_ucp.git.command import run_git
    from k8s_ucp.git.failures import GitFailed

    arguments = ("-C", str(folder), "config", "--local", "--get-regexp", r"^remote\..*\.url$")
    try:
        found = run_git(arguments, where=str(folder)).decode("utf-8", "replace")
    except GitFailed:
        return ()
    return tuple(line.partition(" ")[2] for line in found.splitlines() if " " in line)


def renderer(folder_tree: FolderTree, helm: Callable[[], Path]) -> Render:
    """Renders charts whose templates are Applications, with helm."""
    from k8s_ucp.gitops.manifests.build_charts import schema_options
    from k8s_ucp.gitops.manifests.chart_source import write_files
    from k8s_ucp.gitops.manifests.helm import template, values_from

    def render(chart: str, values: str | bytes | None) -> str:
        with tempfile.TemporaryDirectory(prefix="ucp-import-") as home:
            root = Path(home, "chart")
            write_files(root, folder_tree.below(chart))
            arguments = schema_options(root)
            if isinstance(values, bytes):
                write_files(Path(home), {"values.yaml": values})
                arguments += values_from(Path(home, "values.yaml"))
            elif values:
                arguments += values_from(root / values)
            timeout = RENDER_SECONDS
            return template(helm(), "import", root, arguments, home=Path(home), timeout=timeout)

    return render


def filler(helm: Callable[[], Path]) -> FillGo:
    """Fills Go templates of ApplicationSets, with helm."""
    from k8s_ucp.gitops.imports.argocd.go_templates import chart_of, filled_by
    from k8s_ucp.gitops.manifests.chart_source import write_files
    from k8s_ucp.gitops.manifests.helm import template

    def fill(texts: Sequence[str], sets: Sequence[Mapping[str, Any]]) -> Sequence[Sequence[str]]:
        with tempfile.TemporaryDirectory(prefix="ucp-import-") as home:
            root = Path(home, "chart")
            write_files(root, chart_of(texts, sets))
            output = template(helm(), "import", root, home=Path(home), timeout=RENDER_SECONDS)
        return filled_by(output, texts)

    return fill


def builder(kustomize: Callable[[], Path]) -> Build:
    """Builds kustomizations that Flux deploys."""
    from k8s_ucp.gitops.manifests.chart_source import write_files
    from k8s_ucp.gitops.manifests.kustomize import build
    from k8s_ucp.gitops.manifests.sources import find_outside

    def built(files: Mapping[str, bytes], folder: str) -> str:
        with tempfile.TemporaryDirectory(prefix="ucp-import-") as home:
            write_files(Path(home), files)
            try:
                if found := find_outside(Path(home, folder), Path(home)):
                    raise UsageError(
                        f"{found[0].name} includes {found[1]}, which is outside of the repository",
                        next=f"remove {found[1]} from it",
                    )
                return build(kustomize(), Path(home, folder), timeout=RENDER_SECONDS)
            except UcpError as error:
                error.message = error.message.replace(f"{home}/", "")
                raise

    return built
