"""`ucp check`: what is wrong with the topology and the repositories, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from k8s_ucp.cli.app_sources import fetcher_of
from k8s_ucp.cli.command import Invocation, declare, invocation
from k8s_ucp.cli.output import Output, OutputOption, notation
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.check.repositories import (
    CheckFinding,
    Checkout,
    check,
    check_rendered,
    transports,
)
from k8s_ucp.process import find_program
from k8s_ucp.tools.installer import Installer
from k8s_ucp.workspace import cache_folder

app = declare()


@app.command("check")
def check_command(
    ctx: typer.Context,
    core: Annotated[
        Path | None,
        typer.Option(
            "--core", metavar="DIR", help="Folder with a checkout of the core repository."
        ),
    ] = None,
    apps: Annotated[
        Path | None,
        typer.Option("--apps", metavar="DIR", help="Folder with a checkout of the app repository."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", metavar="F", help="Path of the topology file (default: ucp.yaml)."),
    ] = None,
    output: OutputOption = Output.table,
) -> None:
    """Find duplicate hosts, dangling references, unpinned versions and unknown fields.

    Without --core or --apps, checks what ucp.yaml renders and the clones in gitops/ with your
    uncommitted edits. Needs no cluster and changes nothing.
    """
    call = invocation(ctx)
    program = kustomize()
    if core or apps:
        for folder in (core, apps):
            if folder is not None and not folder.is_dir():
                raise UsageError(f"{folder} is not a folder", next="ucp check --help")
        findings = check(program, Checkout(core, apps), helm=helm())
    else:
        findings = _check_workspace(call, program, file or call.workspace.topology_file)
    if output is not Output.table:
        data = [
            {"repository": each.repository, "path": each.path, "message": each.message}
            for each in findings
        ]
        call.console.data(notation({"findings": data}, output))
    if findings:
        lines = [str(each) for each in findings]
        count = f"{len(findings)} finding{'s' * (len(findings) > 1)}"
        raise UcpError(
            "\n".join([f"{count}:", *lines]), next="fix these problems, then run ucp check"
        )
    call.console.say("no problems found")


def kustomize() -> Path:
    """The pinned kustomize, else the one on PATH (in a pipeline). Raises UcpError."""
    try:
        return Installer(cache_folder(), lambda _: None).find(("kustomize",)).path("kustomize")
    except UcpError:
        found = find_program("kustomize")
        if found is None:
            raise
        return found


def helm() -> Path | None:
    """The same for helm; None where there is none."""
    try:
        return Installer(cache_folder(), lambda _: None).find(("helm",)).path("helm")
    except UcpError:
        return find_program("helm")


def _check_workspace(call: Invocation, program: Path, path: Path) -> list[CheckFinding]:
    from k8s_ucp.components.repositories import render_all
    from k8s_ucp.gitops.render.app_manifests import read_manifests
    from k8s_ucp.topology import load

    topology = load(path)
    manifests = read_manifests(topology, path.parent, fetcher_of(call, topology))
    rendered = render_all(call.workspace, topology, path.read_bytes(), manifests, None)
    also, charts = transports(topology), helm()
    findings = check_rendered(program, rendered, also=also, helm=charts)
    clones = call.workspace.gitops(topology.name)
    if clones.core.is_dir() and clones.apps.is_dir():
        found = Checkout(clones.core, clones.apps)
        findings += check(program, found, also=also, helm=charts)
    return sorted(set(findings))
