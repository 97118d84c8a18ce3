"""Claims for databases in the simulated cloud; cloud and reconciler run as separate processes."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from k8s_ucp.aws.account import account_file, write_account
from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.cloud.admin import CloudAdmin
from k8s_ucp.components.cloud import CloudComponent
from k8s_ucp.components.host.program import Program
from k8s_ucp.kube import CONFIG_MAP, SECRET, Kube, Object
from k8s_ucp.names import CLUSTERS_NAMESPACE, RESTORED
from tests.contracts.provider_harness import config
from tests.control_planes import eventually
from tests.integration.reconciler.conftest import furnish
from tests.unit.compositions.platform import claim

from .platform_api import POSTGRES, define_platform
from .stack import Stack

ROOT = Path(__file__).parents[3]
TEAM = "team-a"
PROGRAMS = ("cloud", "reconciler")


@dataclass
class Claims:
    """Claims on a running stack. seconds: from each claim's declaration until it was Ready."""

    running: Stack
    cloud: CloudAdmin
    declared: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)

    def compose(self, number: int, *, within: float, pause: float = 1.0) -> None:
        """Declare all claims at once, and wait until each has its database and connection Secret.

        within: timeout in seconds; pause: seconds between two checks of all claims.
        """
        kube = self.running.kube
        began: dict[str, float] = {}
        for each in range(number):
            name = f"db-{each}"
            began[name] = time.monotonic()
            kube.apply(claim(name=name, namespace=TEAM))
        self.declared = time.monotonic() - min(began.values())

        def ready() -> bool:
            items = kube.list_all(POSTGRES, TEAM)
            now = time.monotonic()
            for each in items:
                name = each["metadata"]["name"]
                if name in began and name not in self.seconds and is_ready(each):
                    self.seconds[name] = now - began[name]
            time.sleep(pause)
            return len(self.seconds) == number

        eventually(ready, lambda: unready(kube), within)
        made = self.made()
        assert made["db-instance"] == made["db-subnet-group"] == number, made
        for name in began:
            secret = kube.get(SECRET, f"{name}-connection", TEAM)["data"]
            found = {key: b64decode(value).decode() for key, value in secret.items()}
            assert sorted(found) == ["database", "endpoint", "password", "port", "username"]
            assert found["password"] == generated(kube, name)

    def made(self) -> Counter[str]:
        """Number of created resources by kind, according to the cloud's ledger."""
        return Counter(
            each.kind for each in self.cloud.ledger() if each.made and each.succeeded and each.kind
        )


@contextlib.contextmanager
def claims(running: Stack) -> Iterator[Claims]:
    """Run the cloud and a reconciler for the core's managed resources; create stage's network."""
    kube = running.kube
    furnish(kube, running.host.toolbox)
    define_platform(kube)
    kube.apply(config())
    # As `ucp start` records it: passwords are generated from here on.
    kube.apply(CONFIG_MAP.object(RESTORED, CLUSTERS_NAMESPACE, data={"passwords": "yes"}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        ports = {**running.host.ports, "cloud": free.getsockname()[1]}
    host = replace(running.host, ports=ports)
    cloud = CloudComponent(host, "demo")
    running.placement.start(cloud.programs())
    eventually(lambda: cloud.ready().ready, cloud.ready)
    account = account_file(host.state)
    write_account(account, cloud.account())
    argv = (
        *(sys.executable, "-m", "tests.integration.components.reconciler_process"),
        *(str(host.kubeconfig), str(account), TEAM),
    )
    env = {"MALLOC_ARENA_MAX": "2", "PYTHONUNBUFFERED": "1", **host.cluster_environment()}
    running.placement.start([Program("reconciler", argv, ROOT, env)])
    try:
        make_network(kube)
        yield Claims(running, cloud.admin())
    finally:
        running.placement.remove(PROGRAMS)


def make_network(kube: Kube) -> None:
    """Create the network of stage's cluster, and wait until it is ready."""
    metadata = {"labels": {"k8s-ucp.io/environment": "stage"}}
    kinds = {name: KINDS[f"{name}.ec2.aws.m.upbound.io"].kind for name in ("VPC", "Subnet")}
    parts = [("VPC", "demo-stage", {"cidrBlock": "10.2.0.0/16"})] + [
        ("Subnet", f"demo-stage-{zone}", {"cidrBlock": f"10.2.{number}.0/24"})
        for number, zone in enumerate("ab")
    ]
    for kind, name, fields in parts:
        given: Object = {"region": "eu-west-3", **fields}
        if kind == "Subnet":
            zone = f"eu-west-3{name[-1]}"
            given |= {"vpcIdRef": {"name": "demo-stage"}, "availabilityZone": zone}
        item = kinds[kind].object(name, CLUSTERS_NAMESPACE, spec={"forProvider": given})
        item["metadata"] |= metadata
        kube.apply(item)
    for kind, name, _ in parts:

        def found(kind: str = kind, name: str = name) -> Object:
            return kube.get(kinds[kind], name, CLUSTERS_NAMESPACE)

        eventually(lambda found=found: is_ready(found()), found)  # type: ignore[misc]


def is_ready(item: Object) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def unready(kube: Kube) -> object:
    """(number of unready claims, one of them, its children)"""
    items = [each for each in kube.list_all(POSTGRES, TEAM) if not is_ready(each)]
    name = items[0]["metadata"]["name"] if items else ""
    children = [
        (each["kind"], each.get("status"))
        for kind in KINDS.values()
        for each in kube.list_all(kind.kind, TEAM)
        if each["metadata"]["labels"].get("crossplane.io/composite") == name
    ]
    return len(items), items[:1], children


def generated(kube: Kube, name: str) -> str:
    return b64decode(kube.get(SECRET, f"{name}-password", TEAM)["data"]["password"]).decode()
