"""Finds the conflict with people's commits for which the push of an edit would fail."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from k8s_ucp.cli.editing.preview.rendering import edited
from k8s_ucp.cli.editing.topology_edit import context_of

if TYPE_CHECKING:
    from k8s_ucp.cli.command import Invocation
    from k8s_ucp.cli.editing.topology_edit import Edit


def find_conflict(call: Invocation, edit: Edit) -> str | None:
    """The conflict, with what to do; None if there is none, or nothing to merge with yet.

    The repositories are merged in a temporary folder. Raises UcpError.
    """
    from k8s_ucp.context import PublishOptions
    from k8s_ucp.git.failures import GitFailed
    from k8s_ucp.gitops.publish.merge import MergeConflict
    from k8s_ucp.steps.preparation.publish_repositories import refuse_conflicts
    from k8s_ucp.steps.preparation.tools_and_images import install_tools

    text, topology = edited(call, edit)
    if not call.workspace.gitops(topology.name).core.exists():
        return None
    context = context_of(call, topology, text)
    with tempfile.TemporaryDirectory(prefix="ucp-preview-") as folder:
        context.publishing = PublishOptions(whole=True, scratch=Path(folder))
        try:
            # Finds the programs, whose manifests are part of the render.
            list(install_tools.preview(context))
            if context.toolbox.programs:
                refuse_conflicts(context)
        except MergeConflict as error:
            return str(error)
        except GitFailed as error:
            call.console.say(f"note: conflicts with new commits aren't known: {error.message}")
    return None
