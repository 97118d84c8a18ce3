"""The whole of leaving and coming back, in the simulated cloud, with the figures of each.

Counts come from the cloud's ledger, which ucp doesn't write.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from k8s_ucp.aws.account import read_account
from k8s_ucp.aws.client import AwsAccount
from k8s_ucp.cloud.ledger import CloudLedgerEntry, remaining
from k8s_ucp.kube import SECRET
from k8s_ucp.names import CLUSTERS_NAMESPACE
from tests.e2e.world import World, until
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
"""What stands for AWS itself in a core's state folder, and would outlive it: the cloud's records,
and what runs behind its clusters.
"""


@dataclass
class Cloud:
    """Of one world: its ledger, and what others do in it."""

    world: World
    others: AwsAccount = field(init=False)

    def __post_init__(self) -> None:
        account = read_account(self.world.state / "components/reconciler/aws-account.json")
        assert account
        self.others = replace(account, caller="others")

    def entries(self, since: int = 0) -> list[CloudLedgerEntry]:
        """Those that changed something."""
        file = self.world.state / "components/cloud/ledger.jsonl"
        found = [CloudLedgerEntry(**json.loads(line)) for line in file.read_text().splitlines()]
        return [each for each in found if each.succeeded and each.number > since]

    def ids(self) -> set[tuple[str, str, str]]:
        return set(remaining(self.entries()))

    def last(self) -> int:
        return max((each.number for each in self.entries()), default=0)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_core_that_lost_everything_finds_its_clouds_again(world: World) -> None:
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
        command="make soak ARGS=tests/e2e/test_leaving.py",
    )
    assert again <= 1.5 * first


def start(world: World) -> float:
    began = time.monotonic()
    world.ucp("start", "--yes", timeout=900)
    return time.monotonic() - began


def wait_until_well(world: World, environments: int = 2) -> None:
    until(
        "everything is well",
        lambda: world.is_well(clusters="registered", applications=8 + environments),
        600,
    )


def backup_behind(world: World) -> list[Any]:
    found = json.loads(world.ucp("doctor", "-o", "json").stdout)["findings"]
    return [each for each in found if each["id"].startswith("backup/")]


def secrets(world: World) -> dict[str, str]:
    """Generated passwords on the core."""
    core = world.kube("core")
    found = core.list_all(SECRET, CLUSTERS_NAMESPACE, labels="k8s-ucp.io/generate=password")
    core.close()
    return {each["metadata"]["name"]: each["data"]["password"] for each in found}


def lose_core(world: World) -> None:
    """A machine that went: all but what is AWS's."""
    world.kill_everything()
    with tempfile.TemporaryDirectory(prefix="ucp-kept-") as folder:
        kept = []
        for pattern in KEPT:
            for each in world.state.glob(pattern):
                place = Path(folder) / str(len(kept))
                shutil.move(each, place)
                kept.append((place, each))
        shutil.rmtree(world.state.parent)
        for place, each in kept:
            each.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.move(place, each)


def journal_times(world: World) -> dict[str, float]:
    """When each step of the last run ended, in seconds since the epoch."""
    journal = json.loads((world.state / "journal.json").read_text())
    began = time.mktime(time.strptime(journal["began"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    return {each["id"]: began + each["began"] + each["seconds"] for each in journal["steps"]}


def names(items: Iterable[tuple[str, str, str]]) -> list[str]:
    return sorted(f"{kind} {id}" for _, kind, id in items)
