"""Teardown and restore in the simulated cloud, with figures.

Counts come from the cloud's ledger, which ucp doesn't write.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.aws.account import read_account
from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.cloud.ledger import CloudLedgerEntry, remaining
from k8s_ucp.kube import SECRET, SERVICE, Kube
from k8s_ucp.names import CLUSTERS_NAMESPACE
from tests.e2e.interruption_points import repeatedly
from tests.e2e.world import Workbench, until
from tests.evidence import table, write

TOPOLOGY = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  clouds: {aws: {simulated: true}}
  environments:
    - {name: stage, cluster: {provider: eks}}
    - {name: prod, cluster: {provider: eks}, promotesFrom: stage}
  apps:
    - {name: echo, image: ealen/echo-server, tag: 0.9.2, hosts: [echo]}
  databases:
    - {name: quotes, provider: aws, environments: [stage, prod]}
"""
KEPT = ("components/cloud", "clusters/eks-*")
"""Parts of a core's state folder that stand for AWS itself, so they survive the core: the cloud's
records, and what runs behind its clusters.
"""


@dataclass
class Cloud:
    """The simulated cloud of a world: its ledger, and resources of another owner."""

    world: Workbench
    others: AwsAccount = field(init=False)

    def __post_init__(self) -> None:
        account = read_account(self.world.state / "components/reconciler/aws-account.json")
        assert account
        self.others = replace(account, caller="others")

    def entries(self, since: int = 0) -> list[CloudLedgerEntry]:
        """Ledger entries of calls that changed something."""
        file = self.world.state / "components/cloud/ledger.jsonl"
        found = [CloudLedgerEntry(**json.loads(line)) for line in file.read_text().splitlines()]
        return [each for each in found if each.succeeded and each.number > since]

    def ids(self) -> set[tuple[str, str, str]]:
        return set(remaining(self.entries()))

    def foreign(self, count: int) -> set[tuple[str, str, str]]:
        """Create networks of another owner in both regions."""
        before = self.ids()
        for number in range(count):
            region = ("eu-west-3", "us-east-1")[number % 2]
            block = f"10.{number // 250 + 100}.{number % 250}.0/24"
            self.others.call("ec2", region, "CreateVpc", CidrBlock=block)
        return self.ids() - before

    def last(self) -> int:
        return max((each.number for each in self.entries()), default=0)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_new_core_finds_the_existing_cloud_resources_again(world: Workbench) -> None:
    (world.workspace / "ucp.yaml").write_text(TOPOLOGY)
    first = start(world)
    wait_until_well(world)
    cloud = Cloud(world)
    ids, passwords, number = cloud.ids(), secrets(world), cloud.last()
    until("the backup has all names", lambda: not backup_behind(world))
    lose_core(world)
    began = time.monotonic()
    said = world.ucp("recreate", "--yes", timeout=900).stderr
    again = time.monotonic() - began
    wait_until_well(world)
    assert cloud.ids() == ids, "the same ids, nothing made twice"
    since = cloud.entries(number)
    steps = journal_times(world)
    observing = [each for each in since if each.time < steps["adopt-resources"]]
    assert observing == []
    assert secrets(world) == passwords
    assert "were found and adopted" in said
    write(
        "recreate",
        "A core cluster that lost everything",
        {
            "What was counted": table(
                ("", ""),
                [
                    ("resources in the cloud before and after", f"{len(ids)}, the same ids"),
                    ("made twice", 0),
                    ("mutating calls while observing", len(observing)),
                    ("mutating calls afterwards", len(since)),
                    ("passwords that differ", 0),
                    ("first start", f"{first:.0f} s"),
                    ("recreate", f"{again:.0f} s ({again / first:.2f} of the first start)"),
                ],
            ),
            "How": (
                "Two environments on EKS with a database each, in the simulated cloud. All "
                "processes are killed and `.ucp` is removed but for what stands for AWS itself: "
                "its records and the control planes behind its clusters. `ucp recreate` follows. "
                "Mutating calls are those of the cloud's own ledger."
            ),
        },
        command="make soak ARGS=tests/e2e/test_cloud_teardown.py",
    )
    assert again <= 1.5 * first


LEAVING = """\
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {name: demo}
spec:
  clouds: {aws: {simulated: true}}
  environments:
    - {name: stage, cluster: {provider: eks}}
    - {name: prod, cluster: {provider: eks}, promotesFrom: stage}
    - {name: far, cluster: {provider: eks, region: us-east-1}, promotesFrom: prod}
  apps:
    - {name: web, path: web}
  databases:
    - {name: quotes, provider: aws, environments: [stage]}
    - {name: orders, provider: aws, environments: [far]}
"""
WEB = {
    "kustomization.yaml": "resources: [service.yaml]\n",
    "service.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{port: 80}]
""",
}
FOREIGN = 500
MOST_RUNS = 8
WAIT = "60"
"""Timeout in seconds for each step of a teardown here: nothing in this cloud takes minutes."""


@pytest.mark.soak
@pytest.mark.timeout(5400)
def test_exactly_the_resources_that_can_not_be_deleted_are_reported(world: Workbench) -> None:
    (world.workspace / "ucp.yaml").write_text(LEAVING)
    (world.workspace / "web").mkdir()
    for name, text in WEB.items():
        (world.workspace / "web" / name).write_text(text)
    with giving_addresses(world, ("stage", "prod", "far")):
        start(world)
        wait_until_well(world, 3)
    cloud = Cloud(world)
    mine = cloud.ids()
    theirs = {id for _, _, id in cloud.foreign(FOREIGN)}
    hold_finalizer(world, "Subnet", "stage")
    world.ucp("cloud", "fault", "add", "unavailable", "--region", "us-east-1")
    destroy = ("destroy", "--yes", "--delete-data", "--wait", WAIT)
    said: list[tuple[list[str], int, str]] = []
    plan = json.loads(world.ucp(*destroy, "--plan", "-o", "json").stdout)
    with dead(world, "prod"):
        given_up: list[str] = []
        for _ in range(MOST_RUNS):
            flags = [word for each in given_up for word in ("--abandon", each)]
            done = world.ucp_any(*destroy, *flags, timeout=900)
            said.append((given_up, done.returncode, done.stderr))
            print(said[-1], flush=True)
            if done.returncode == 0:
                break
            given_up = proposed(done.stderr)
    assert said[-1][1] == 0, said
    assert len(said) > 1, "what is stuck was named first"
    reported = json.loads((world.state / "abandoned.json").read_text())
    words = {word for each in reported for word in each["what"].split()}
    left = {place for place in cloud.ids() if place[2] not in theirs}
    assert {id for _, _, id in left} <= words, "nothing is left that was not reported"
    assert {region for region, _, _ in left} <= {"us-east-1"}, "only what could not be deleted"
    touched = [
        each for each in cloud.entries() if each.id in theirs and not each.caller.endswith("others")
    ]
    assert touched == []
    assert theirs <= {id for _, _, id in cloud.ids()}
    shown = world.ucp("status").stdout
    assert "may still be billed" in shown.casefold()
    snapshot = re.search("database snapshots that were kept; .*: (.*)", said[-1][2])
    assert snapshot, "the database that was deleted has left one"
    write(
        "destroy",
        "The end of a topology, with what can't be deleted",
        {
            "What was counted": table(
                ("", ""),
                [
                    ("resources of the topology before", len(mine)),
                    ("lines of `ucp destroy --plan` that delete", deletions(plan)),
                    ("left in the cloud by its ledger", f"{len(left)}, all of them reported"),
                    ("of these in regions that answer", 0),
                    ("final snapshots of databases, told at the end", len(snapshot[1].split(","))),
                    ("others' resources beside ours", len(theirs)),
                    ("touched of these", len(touched)),
                ],
            ),
            "Runs": table(
                ("run", "names given up", "exit code", "says"),
                [
                    (number, len(names), code, f"`{outcome(words)}`")
                    for number, (names, code, words) in enumerate(said, 1)
                ],
            ),
            "How": (
                "Three environments on EKS, one in a region that refuses every call, one whose API "
                "server is killed whenever it starts; two databases, a load balancer in each "
                "environment, and a finalizer of somebody else's on a subnet. `ucp destroy` runs "
                f"with `--delete-data --wait {WAIT}`, and again with the `--abandon` flags that it "
                "proposes, until it ends well. The service that has the roles of all environments "
                "is called in the region that refuses. "
                "Counts are the cloud's own ledger's."
            ),
        },
        command="make soak ARGS=tests/e2e/test_cloud_teardown.py",
    )


def deletions(plan: dict[str, Any]) -> int:
    return sum(each["action"] == "delete" for each in plan["steps"])


def proposed(said: str) -> list[str]:
    """Names that a failed run proposes to abandon."""
    advice = re.split("give up what can't be deleted: |give it up: ", said)[-1]
    words = shlex.split(advice.partition("; then ")[0])
    return [name for flag, name in pairwise(words) if flag == "--abandon"]


def outcome(said: str) -> str:
    """Last part of a run's output."""
    lines = [each for each in said.splitlines() if each.startswith(("ucp: ", "demo is destroyed"))]
    return re.sub("[|`]", " ", lines[-1].removeprefix("ucp: "))[:200]


def hold_finalizer(world: Workbench, kind: str, environment: str) -> None:
    """Add a foreign finalizer to one managed resource of an environment."""
    core = world.kube("core")
    found = core.kind_of("ec2.aws.m.upbound.io/v1beta1", kind)
    labels = f"k8s-ucp.io/environment={environment}"
    item = core.list_all(found, CLUSTERS_NAMESPACE, labels=labels)[0]["metadata"]
    finalizers = [*(item.get("finalizers") or ()), "example.org/hold"]
    core.patch(found, item["name"], CLUSTERS_NAMESPACE, {"metadata": {"finalizers": finalizers}})
    core.close()


def dead(world: Workbench, environment: str) -> AbstractContextManager[None]:
    """Kill the API server of a cluster in the cloud whenever it starts."""

    def kill() -> None:
        for each in world.processes():
            words = " ".join(each.cmdline())
            if f"eks-demo-{environment}-" in words and "kube-apiserver" in words.split()[0]:
                each.kill()

    kill()
    return repeatedly(kill, 1.0)


def giving_addresses(world: Workbench, environments: Sequence[str]) -> AbstractContextManager[None]:
    """Assign an address to each load balancer, as a cloud's controller does."""

    def give() -> None:
        for each in environments:
            kube = Kube(json.loads(world.ucp("kubeconfig", each).stdout))
            address = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}}
            for item in kube.list_all(SERVICE):
                given = (item.get("status") or {}).get("loadBalancer") or {}
                if item["spec"].get("type") == "LoadBalancer" and not given.get("ingress"):
                    about = item["metadata"]
                    kube.patch(
                        SERVICE, about["name"], about["namespace"], address, subresource="status"
                    )
            kube.close()

    return repeatedly(give, 5.0)


def start(world: Workbench) -> float:
    began = time.monotonic()
    world.ucp("start", "--yes", timeout=900)
    return time.monotonic() - began


def wait_until_well(world: Workbench, environments: int = 2) -> None:
    until(
        "everything is well",
        lambda: world.is_well(clusters="registered", applications=8 + environments),
        600,
    )


def backup_behind(world: Workbench) -> list[Any]:
    found = json.loads(world.ucp("doctor", "-o", "json").stdout)["findings"]
    return [each for each in found if each["id"].startswith("backup/")]


def secrets(world: Workbench) -> dict[str, str]:
    """Generated passwords on the core."""
    core = world.kube("core")
    found = core.list_all(SECRET, CLUSTERS_NAMESPACE, labels="k8s-ucp.io/generate=password")
    core.close()
    return {each["metadata"]["name"]: each["data"]["password"] for each in found}


def lose_core(world: Workbench) -> None:
    """Simulate the loss of the machine: everything except for AWS's own state."""
    world.kill_everything()
    with tempfile.TemporaryDirectory(prefix="ucp-kept-") as folder:
        kept: list[tuple[Path, Path]] = []
        for pattern in KEPT:
            for each in world.state.glob(pattern):
                place = Path(folder) / str(len(kept))
                shutil.move(each, place)
                kept.append((place, each))
        shutil.rmtree(world.state.parent)
        for place, each in kept:
            each.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.move(place, each)


def journal_times(world: Workbench) -> dict[str, float]:
    """When each step of the last run ended, in seconds since the epoch."""
    journal = json.loads((world.state / "journal.json").read_text())
    began = time.mktime(time.strptime(journal["began"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    return {each["id"]: began + each["began"] + each["seconds"] for each in journal["steps"]}
