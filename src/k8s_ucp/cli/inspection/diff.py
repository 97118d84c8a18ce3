"""`ucp diff`: shows differences between ucp.yaml, the repositories and the clusters."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from k8s_ucp.cli.app_sources import fetcher_of
from k8s_ucp.cli.command import Invocation, Output, OutputOption, declare, invocation
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.inspection.status import collect
from k8s_ucp.cli.topology_selection import STARTED, chosen_view, declared_file
from k8s_ucp.components.repositories import departing_apps, render_all
from k8s_ucp.context import TopologyView
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.publish.repositories import (
    Publication,
    Published,
    RepositoryCredentials,
    prepare,
)
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.inspect.differences import Committed, differences
from k8s_ucp.inspect.overlay_versions import versions_in
from k8s_ucp.tools.kept_versions import topology_installer
from k8s_ucp.topology import load
from k8s_ucp.topology.placement import in_pods

app = declare()

COLUMNS = ("object", "topology", "repository", "cluster", "next")


@app.command("diff")
def show(ctx: typer.Context, output: OutputOption = Output.table) -> None:
    """Compare ucp.yaml with the repositories and the clusters; changes nothing.

    Exits with 1 where they differ. Tags and edits that people committed don't count.
    """
    call = invocation(ctx)
    context = chosen_view(call)
    path = declared_file(call)
    if not path.exists() or load(path).name != context.topology.name:
        path = context.state.root / STARTED
    context.topology = load(path)
    found = differences(context.topology, _committed(call, context, path), collect(context))
    if found or output is not Output.table:
        rows = [[each.data()[name] for name in COLUMNS] for each in found]
        data = {"differences": [each.data() for each in found]}
        call.show_list(output, data, COLUMNS, rows)
    else:
        call.console.data("no differences")
    if found:
        raise typer.Exit(UcpError.exit_code)


def _committed(call: Invocation, context: TopologyView, path: Path) -> Committed:
    """The current content of the remotes, read in temporary clones."""
    topology = context.topology
    engines = ("argocd", "crossplane", *(("helm",) if in_pods(topology) else ()))
    rendered = render_all(
        context.workspace,
        topology,
        path.read_bytes().replace(b"\r\n", b"\n"),
        read_manifests(topology, call.workspace.root, fetcher_of(call, topology)),
        topology_installer(topology, context.state).find(engines),
        departing=departing_apps(topology, context.gitops),
    )
    credential = credential_of(topology, call.workspace)
    with tempfile.TemporaryDirectory(prefix="ucp-diff-") as folder:
        credentials = RepositoryCredentials(credential, credential)
        publication = Publication(topology, rendered, context.gitops, credentials)
        prepared = prepare(publication, scratch=Path(folder))
        core, apps = (
            Published(each.target.name, each.target.clone, each.tip or "", changed=False)
            for each in prepared
        )
        return Committed(
            core.environments() if core.commit else (),
            versions_in(apps.read("apps")) if apps.commit else {},
            {
                f"{each.target.name}: {name}": "delete"
                if content is None
                else ("change" if name in each.there else "create")
                for each in prepared
                for name, content in each.merged.changes.items()
            },
            [
                f"{each.target.name}:{conflict.path}"
                for each in prepared
                for conflict in each.merged.conflicts
            ],
            core.providers() if core.commit else {},
        )
