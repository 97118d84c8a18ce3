"""`ucp render`: writes the rendered repositories to a folder, without changing anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from k8s_ucp.cli.app_sources import fetcher_of
from k8s_ucp.cli.command import declare, examples, invocation, option
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.topology_selection import declared_file, declared_topology
from k8s_ucp.components.repositories import render_all
from k8s_ucp.gitops.publish.repositories import render_to
from k8s_ucp.gitops.publish.vendor import commit, vendor
from k8s_ucp.gitops.render.app_manifests import read_manifests
from k8s_ucp.tools.kept_versions import topology_installer
from k8s_ucp.topology.placement import in_pods

app = declare()


@app.command(
    epilog=examples(
        "ucp render --out rendered",
        "ucp render --vendor",
    )
)
def render(
    ctx: typer.Context,
    out: Annotated[
        Path, option("--out", "DIR", "Output folder; the files go to its subfolders core and apps.")
    ] = Path("rendered"),
    file: Annotated[
        Path | None, option("--file", "FILE", "Path of the topology file. Default: ucp.yaml.")
    ] = None,
    vendored: Annotated[
        bool,
        option(
            "--vendor",
            None,
            "Instead, render the add-ons' Helm charts to manifests, commit them to the core "
            "repository and push.",
        ),
    ] = False,
) -> None:
    """Render the files of both repositories to a folder; nothing is started.

    Nothing is committed either, except with --vendor, which writes no folder.
    """
    call = invocation(ctx)
    topology = declared_topology(call, file)
    path = file or declared_file(call)
    manifests = read_manifests(topology, path.parent, fetcher_of(call, topology))
    installer = topology_installer(topology, call.workspace.state(topology.name))
    engines = ("argocd", "crossplane")
    toolbox = installer.find((*engines, "helm") if in_pods(topology) else engines)
    rendered = render_all(call.workspace, topology, path.read_bytes(), manifests, toolbox)
    if vendored:
        helm = installer.install(("helm",)).path("helm")
        charts = vendor(topology, rendered.core, helm, on_progress=call.console.say)
        after = render_all(
            call.workspace, topology, path.read_bytes(), manifests, toolbox, vendored=charts
        )
        changed = commit(
            topology,
            call.workspace.gitops(topology.name),
            rendered.core,
            after.core,
            credential_of(topology, call.workspace),
        )
        call.console.say(f"{len(changed)} files committed to the core repository")
        return
    written = render_to(out, rendered)
    call.console.say(f"wrote {len(written)} files to {out / 'core'} and {out / 'apps'}")
