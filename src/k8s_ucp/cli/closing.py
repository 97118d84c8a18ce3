"""What `ucp start` says in the end: what runs where, how to look, what to try next."""

from __future__ import annotations

from k8s_ucp.cli.console import table
from k8s_ucp.steps.context import Context


def closing_table(context: Context, seconds: float) -> str:
    """Everything is well by now: the start has waited for it."""
    topology = context.topology
    rows = [["core cluster", topology.core_cluster, topology.spec.core.provider]]
    rows += [["component", name, "host process"] for name in ("argocd", "crossplane", "reconciler")]
    for name in context.published.core.environments():
        rows.append([f"environment {name}", topology.app_cluster(name), "embedded, simulated"])
    apps = sorted(
        {
            path.split("/")[1]
            for path in context.published.apps.clone.listing(context.published.apps.commit, "apps")
        }
    )
    environments = ", ".join(context.published.core.environments())
    rows += [[f"app {name}", environments, "simulated"] for name in apps]
    clone = context.gitops.apps
    lines = [
        "",
        table(("what", "where", "how"), rows),
        "",
        f"{topology.name} is up, {seconds:.1f} s.",
        "",
        "look        ucp status",
        "passwords   ucp get secrets",
    ]
    if environments:
        first = context.published.core.environments()[0]
        lines.append(f"kubectl     ucp kubeconfig {first} > {first}.yaml")
    if apps and environments:
        file = f"apps/{apps[0]}/overlays/{context.published.core.environments()[0]}"
        lines.append(
            f"new tag     edit newTag in '{clone}/{file}/kustomization.yaml', commit, push"
        )
    lines.append("end         ucp stop")
    return "\n".join(lines)
