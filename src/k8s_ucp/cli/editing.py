"""Commands that edit ucp.yaml: the file, then the repositories, in one go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.cli.chosen import remember
from k8s_ucp.cli.command import Invocation
from k8s_ucp.cli.git_credentials import credential_of
from k8s_ucp.cli.running import run_plan
from k8s_ucp.errors import UcpError, UsageError
from k8s_ucp.gitops.git_failures import GitFailed
from k8s_ucp.gitops.merge import NOBODY, Known
from k8s_ucp.gitops.repository import Repository
from k8s_ucp.workspace import replace_file

if TYPE_CHECKING:
    from k8s_ucp.topology import Topology

Edit = Callable[[str, Path], tuple[str, "Topology"]]
"""(text, path) of ucp.yaml to (text, what it says). Raises UsageError."""


def edit_topology(call: Invocation, edit: Edit, *, leaving: Known = NOBODY) -> Topology:
    """Change ucp.yaml; where the topology was started, render, commit and push too.

    The file is written once everything that can be checked was; a push that failed is made up for
    by the next `ucp start`. leaving: environments and apps whose folders in the repositories go
    with all that is in them. Returns the new topology. Raises UcpError, UsageError.
    """
    from k8s_ucp import plans
    from k8s_ucp.gitops.manifests import read_manifests
    from k8s_ucp.steps.context import Context

    path = call.workspace.topology_file
    try:
        before = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"there is no topology file {path}", next="ucp start") from error
    text, topology = edit(before, path)

    def write() -> None:
        try:
            replace_file(path, text)
        except OSError as error:
            raise UcpError(f"can't write {path}: {error.strerror}") from error

    if not call.workspace.gitops(topology.name).core.exists():
        write()
        call.console.say(f"{path.name} is written; `ucp start` makes it so")
        return topology
    context = Context(
        workspace=call.workspace,
        topology=topology,
        topology_file=text.encode(),
        manifests=read_manifests(topology, path.parent),
        leaving=leaving,
        git_credential=credential_of(topology, call.workspace),
    )

    def write_both() -> None:
        write()
        remember(call.workspace, topology.name, text)

    run_plan(plans.publish(), context, call.console, before=write_both)
    return topology


def up_to_date(call: Invocation, topology: Topology, folder: Path) -> Repository:
    """The working clone with what its remote has now; where that is away, with what it had."""
    clone = Repository(folder, credential=credential_of(topology, call.workspace))
    try:
        clone.fetch()
    except GitFailed as error:
        call.console.say(f"note: {error.message}; this is what was seen last")
    return clone
