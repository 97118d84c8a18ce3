"""`ucp check`: finds problems in the topology and the repositories, without a cluster."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from k8s_ucp.check_rules import RULES
from k8s_ucp.cli.app_sources import fetcher_of
from k8s_ucp.cli.command import Invocation, Output, declare, examples, invocation, notation, option
from k8s_ucp.cli.topology_selection import declared_file, declared_topology
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.check.findings import CheckFinding, lines_of
from k8s_ucp.gitops.check.repositories import (
    Checkout,
    CheckResult,
    check,
    check_rendered,
)
from k8s_ucp.gitops.manifests.sources import transports
from k8s_ucp.process import find_program
from k8s_ucp.tools.installer import Installer
from k8s_ucp.tools.recipe import ProgramSource
from k8s_ucp.workspace import cache_folder

app = declare()


class CheckOutput(StrEnum):
    """-o"""

    table = "table"
    json = "json"
    yaml = "yaml"
    sarif = "sarif"


@app.command(
    "check",
    epilog=examples(
        "ucp check",
        "ucp check --apps . -o sarif > ucp.sarif",
    ),
)
def check_command(
    ctx: typer.Context,
    core: Annotated[
        Path | None, option("--core", "DIR", "Folder with a checkout of the core repository.")
    ] = None,
    apps: Annotated[
        Path | None, option("--apps", "DIR", "Folder with a checkout of the app repository.")
    ] = None,
    file: Annotated[
        Path | None, option("--file", "FILE", "Path of the topology file. Default: ucp.yaml.")
    ] = None,
    show_ignored: Annotated[
        bool, option("--show-ignored", None, "List ignored findings with their reasons.")
    ] = False,
    output: Annotated[
        CheckOutput,
        typer.Option("-o", "--output", help="Output format: table, json, yaml or sarif."),
    ] = CheckOutput.table,
) -> None:
    """Find duplicate hosts, dangling references, unpinned versions and unknown fields.

    Errors break this app or another one: exit code 1. Warnings are bad practice. docs/checks.md
    lists the rules and how to deny or ignore them.

    Without --core or --apps, checks what ucp.yaml renders and the clones in gitops/ with your
    uncommitted edits. Needs no cluster and changes nothing.
    """
    call = invocation(ctx)
    program = kustomize()
    if core or apps:
        for folder in (core, apps):
            if folder is not None and not folder.is_dir():
                raise UsageError(f"{folder} is not a folder", next="ucp check --help")
        checked = check(program, Checkout(core, apps), helm=helm())
    else:
        checked = _check_workspace(call, program, file)
    if output is CheckOutput.sarif:
        from k8s_ucp.gitops.check.sarif import documentation, sarif

        folders = {"core": core, "apps": apps}
        names = [name for name, folder in folders.items() if folder or not (core or apps)]
        found = sarif(checked.findings, checked.ignored, names, pages=documentation())
        call.console.data(json.dumps(found, indent=2))
    elif output is not CheckOutput.table:
        call.console.data(notation(_data(checked), Output(output.value)))
    lines = _lines(checked, show_ignored=show_ignored)
    if checked.errors:
        raise UcpError(
            "\n".join([f"{checked.summary}:", *lines]), next="fix the errors, then run ucp check"
        )
    for each in lines:
        call.console.say(each)
    call.console.say(checked.summary)


def _lines(checked: CheckResult, *, show_ignored: bool) -> list[str]:
    """Lines for people: findings with their places, then how to fix each kind."""
    lines = lines_of(checked.findings, located=True)
    if show_ignored:
        lines += [str(each) for each in checked.ignored]
    lines += [f"note: {each}" for each in (*checked.notes, *checked.unused)]
    rules = dict.fromkeys(each.rule for each in checked.findings)
    lines += [f"{RULES[each].id}: {RULES[each].fix} ({RULES[each].page})" for each in rules]
    return lines


def _data(checked: CheckResult) -> dict[str, Any]:
    return {
        "findings": [_entry(each) for each in checked.findings],
        "ignored": [
            {**_entry(each.finding), "reason": each.reason, "where": each.where}
            for each in checked.ignored
        ],
        "notes": [*checked.notes, *checked.unused],
        "summary": {
            "errors": len(checked.errors),
            "warnings": len(checked.warnings),
            "ignored": len(checked.ignored),
        },
    }


def _entry(finding: CheckFinding) -> dict[str, Any]:
    return {
        "repository": finding.repository,
        "path": finding.path,
        "message": finding.message,
        "rule": finding.rule,
        "severity": finding.severity,
        "object": finding.object or None,
        "file": finding.file,
        "line": finding.line,
        "next": finding.about.fix,
        "help": finding.about.page,
    }


def kustomize() -> Path:
    """The pinned kustomize, or else the one on PATH (in a pipeline). Raises UcpError."""
    try:
        return _installed("kustomize")
    except UcpError:
        found = find_program("kustomize")
        if found is None:
            raise
        return found


def helm() -> Path | None:
    """The pinned helm, or else the one on PATH; None if there is none."""
    try:
        return _installed("helm")
    except UcpError:
        return find_program("helm")


def _installed(program: str) -> Path:
    """The pinned program, downloaded or built. Raises UcpError."""
    installer = Installer(cache_folder(), lambda _: None, source=ProgramSource.AUTO)
    return installer.find((program,)).path(program)


def _check_workspace(call: Invocation, program: Path, file: Path | None) -> CheckResult:
    from k8s_ucp.components.repositories import render_all
    from k8s_ucp.gitops.render.app_manifests import read_manifests

    topology = declared_topology(call, file)
    path = file or declared_file(call)
    manifests = read_manifests(topology, path.parent, fetcher_of(call, topology))
    rendered = render_all(call.workspace, topology, path.read_bytes(), manifests, None)
    also, charts = transports(topology), helm()
    checked = check_rendered(program, rendered, also=also, helm=charts)
    clones = call.workspace.gitops(topology.name)
    if clones.core.is_dir() and clones.apps.is_dir():
        found = Checkout(clones.core, clones.apps)
        checks = topology.spec.checks
        committed = check(program, found, also=also, helm=charts, checks=checks)
        return committed.over(checked)
    return checked
