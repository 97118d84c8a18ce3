"""Wait until the ingress controller of the core leads to Argo CD. A commit brings it."""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.components.pods import argocd_pods
from k8s_ucp.context import Context
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.engine.waiting import wait_until
from k8s_ucp.kube import KubeError
from k8s_ucp.steps.waiting.await_applications import POD_SECONDS, not_yet

PAUSE = 0.5
ADDONS = "platform-"
"""How the Applications of add-ons begin."""


@dataclass(frozen=True)
class AwaitIngress:
    id: str = "await-ingress"
    title: str = "Wait until Argo CD is reachable"

    def run(self, context: Context, report: Report) -> None:
        if argocd_pods.FORWARD in context.placement.states():
            context.placement.remove([argocd_pods.FORWARD])
        report(context.argocd_url)

        def look() -> str:
            found = context.argocd_answers()
            return "" if found.ready else "; ".join([found.message, *_addons(context)])

        wait_until(
            f"Argo CD at {context.argocd_url}",
            look,
            seconds=POD_SECONDS,
            cancel=context.cancel,
            pause=PAUSE,
            next="see `ucp status`",
        )


def _addons(context: Context) -> list[str]:
    """What Argo CD says of add-ons that are not well: the controller is one of them."""
    try:
        items = context.applications()
    except KubeError as error:
        return [error.message]
    return not_yet([], [each for each in items if each["metadata"]["name"].startswith(ADDONS)])
