"""A minimal kopf operator that copies Secrets: `python kopf_mirror.py CORE APP...` (kubeconfigs).

One handler for the Secrets with the label, one write per app cluster. No drift correction, no
status, no ownership: the minimum that copies a Secret.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kopf

from k8s_ucp.kube import SECRET, Conflict, Kube, read_kubeconfig

APPS = [Kube.from_file(Path(each)) for each in sys.argv[2:]]
POOL = ThreadPoolExecutor(16)


@kopf.on.login()
def login(**_):
    config = read_kubeconfig(Path(sys.argv[1]))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_data=cluster["certificate-authority-data"],
        certificate_data=user["client-certificate-data"],
        private_key_data=user["client-key-data"],
    )


@kopf.on.startup()
def quiet(settings, **_):
    settings.posting.enabled = False


@kopf.on.event("v1", "secrets", labels={"bench": kopf.PRESENT})
async def mirror(event, body, **_):
    if event["type"] == "DELETED":
        return
    item = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": body["metadata"]["name"],
            "namespace": "mirrored",
            "labels": {"k8s-ucp.io/mirror": "kopf"},
        },
        "type": body.get("type"),
        "data": dict(body.get("data") or {}),
    }

    def write(kube):
        try:
            kube.create(item)
        except Conflict:
            kube.apply(item)

    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(POOL, write, each) for each in APPS))


if __name__ == "__main__":
    assert SECRET
    kopf.run(clusterwide=False, namespaces=["crossplane-system"], standalone=True)
