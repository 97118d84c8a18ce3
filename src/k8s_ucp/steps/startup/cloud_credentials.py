"""Hands credentials of the clouds in use to Crossplane.

The repositories say by which Secret the providers get into a cloud; what is in it comes from the
places that the topology names, at every start, and is in no repository.
"""

from __future__ import annotations

from dataclasses import dataclass

from k8s_ucp.clouds import CLOUDS
from k8s_ucp.components.crossplane import NAMESPACE
from k8s_ucp.context import Context
from k8s_ucp.credentials import load, place_of
from k8s_ucp.engine.pipeline import Report
from k8s_ucp.gitops.render.values.clouds import clouds
from k8s_ucp.names import MANAGED_BY, OURS

KEY = "creds"


@dataclass(frozen=True)
class ApplyCredentials:
    id: str = "apply-credentials"
    title: str = "Write cloud credentials for Crossplane"

    def run(self, context: Context, report: Report) -> None:
        for cloud in clouds(context.topology):
            text = load(cloud, place_of(context.topology, context.workspace, cloud))
            report(cloud)
            context.kube.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {
                        "name": CLOUDS[cloud].secret,
                        "namespace": NAMESPACE,
                        "labels": {MANAGED_BY: OURS},
                    },
                    "type": "Opaque",
                    "stringData": {KEY: text},
                }
            )
