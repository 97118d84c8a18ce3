"""Two cores for one topology and one cloud: the cloud's ledger shows who wrote, and when."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import psutil
import pytest

from k8s_ucp.aws.crds import CLUSTER_PROVIDER_CONFIG
from k8s_ucp.aws.kind import GROUP
from k8s_ucp.cli import main
from k8s_ucp.cloud.ledger import CloudLedgerEntry
from k8s_ucp.components.cloud import CloudComponent
from k8s_ucp.components.host.program import Program
from k8s_ucp.errors import UcpError
from k8s_ucp.fence.files import PERIOD
from k8s_ucp.kube import Kind
from k8s_ucp.names import CLUSTERS_NAMESPACE
from tests import evidence
from tests.e2e.conftest import make_world
from tests.e2e.world import Workbench, until
from tests.integration.fence.cores import make_bare

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

VPC = Kind(f"ec2.{GROUP}/v1beta1", "VPC", "vpcs")
TOPOLOGY = """
apiVersion: k8s-ucp.io/v1alpha1
kind: Topology
metadata: {{name: demo}}
spec:
  core: {{provider: embedded}}
  git: {{provider: url, core: '{core}', apps: '{apps}'}}
  environments: [{{name: stage, cluster: {{provider: embedded}}}}]
  clouds: {{aws: {{simulated: true}}}}
"""
FORWARD = """
import asyncio, sys
here, there = map(int, sys.argv[1:])
async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
async def meet(reader, writer):
    other = await asyncio.open_connection("127.0.0.1", there)
    await asyncio.gather(pump(reader, other[1]), pump(other[0], writer), return_exceptions=True)
async def serve():
    server = await asyncio.start_server(meet, "127.0.0.1", here)
    await server.serve_forever()
asyncio.run(serve())
"""


@pytest.fixture
def cores(toolbox: Toolbox, tmp_path: Path) -> Iterator[tuple[Workbench, Workbench]]:
    """Two workspaces, each with its own HOME, for the same repositories outside of both."""
    urls = {name: make_bare(tmp_path / f"{name}.git").as_uri() for name in ("core", "apps")}
    for one in make_world("one"):
        for two in make_world("two"):
            for each in (one, two):
                (each.workspace / "ucp.yaml").write_text(TOPOLOGY.format(**urls))
            yield one, two


def head(world: Workbench) -> str:
    """Head of the core repository, which both share."""
    return world.git(world.gitops / "core", "ls-remote", "origin", "refs/heads/main")


def ledger(world: Workbench) -> list[CloudLedgerEntry]:
    lines = (world.state / "components/cloud/ledger.jsonl").read_text().splitlines()
    return [CloudLedgerEntry(**json.loads(each)) for each in lines]


def epoch(entry: CloudLedgerEntry) -> int:
    found = re.search(r"epoch/(\d+)", entry.caller)
    return int(found[1]) if found else 0


def overlapping(entries: Sequence[CloudLedgerEntry]) -> list[CloudLedgerEntry]:
    highest, found = 0, []
    for each in entries:
        if epoch(each) < highest:
            found.append(each)
        highest = max(highest, epoch(each))
    return found


def ask_for(world: Workbench, number: int) -> None:
    """Declare another network, directly on the core."""
    kube = world.kube("core")
    if kube.find(CLUSTER_PROVIDER_CONFIG, "default") is None:
        kube.create(CLUSTER_PROVIDER_CONFIG.object("default", spec={}))
    parameters = {"region": "eu-west-3", "cidrBlock": f"10.{number}.0.0/16"}
    name = f"of-{world.workspace.name}-{number}".replace(" ", "-")
    kube.create(VPC.object(name, CLUSTERS_NAMESPACE, spec={"forProvider": parameters}))
    kube.close()


def ask_early(world: Workbench, number: int) -> None:
    """Declare one while the start is still running, as early as one from git could arrive."""

    def asked() -> bool:
        try:
            ask_for(world, number)
        except (OSError, UcpError):
            return False
        return True

    until("a network is declared on the taker's core", asked, 300)


def freeze(world: Workbench, number: int) -> None:
    """Signal everything that supervisord runs except for the cloud, which is outside the core."""
    for each in world.processes():
        words = " ".join(each.cmdline())
        if "k8s_ucp.cloud.run" not in words and "/clusters/" not in words:
            os.kill(each.pid, number)


def start_beside(world: Workbench, other: Workbench) -> None:
    """Take over, with the other workspace's cloud."""
    port = cloud_port(other)
    folder = world.state / "components" / "cloud"
    folder.mkdir(parents=True)
    shutil.copy(other.state / "components/cloud/keys.json", folder)
    # A person copies the backup's key to the new workspace.
    (world.workspace / "creds").mkdir()
    shutil.copy(other.workspace / "creds/backup.key", world.workspace / "creds")

    def forwarding(self: CloudComponent) -> list[Program]:
        argv = (sys.executable, "-c", FORWARD, str(self._port), str(port))
        return [Program("cloud", argv, self._folder)]

    words = ["--workspace", str(world.workspace), "start", "--yes", "--takeover"]
    with (
        patch.dict(os.environ, world.env, clear=True),
        patch.object(CloudComponent, "programs", forwarding),
    ):
        assert main.run(words) == 0


def cloud_port(world: Workbench) -> int:
    account = json.loads((world.state / "components/reconciler/aws-account.json").read_text())
    return int(account["endpoint"].rpartition(":")[2])


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_frozen_core_writes_nothing_after_a_takeover(
    cores: tuple[Workbench, Workbench],
) -> None:
    one, two = cores
    one.ucp("start", "--yes", timeout=600)
    ask_for(one, 1)
    until("the first network", lambda: [epoch(each) for each in ledger(one)][-1:] == [1], 300)
    refused = two.ucp("start", "--yes", expect=1).stderr
    assert str(one.workspace) in refused
    assert not (two.state / "clusters/demo-core").exists()

    freeze(one, signal.SIGSTOP)
    ask_for(one, 2)
    began = time.time()
    with ThreadPoolExecutor(1) as beside:
        early = beside.submit(ask_early, two, 3)
        start_beside(two, one)
        early.result()
    until("a network of the taker's", lambda: epoch(ledger(one)[-1]) == 2, 300)
    first = next(each.time for each in ledger(one) if epoch(each) == 2)
    freeze(one, signal.SIGCONT)
    thawed = time.time()
    until("it has lost", lambda: one.status()["fence"]["state"] == "lost", PERIOD)
    ask_for(one, 4)
    ask_for(two, 5)
    names = ("argocd-application-controller", "crossplane")
    until("its writers have ended", lambda: not running(one, names), PERIOD)
    stopped = time.time()
    until("the taker goes on", lambda: ledger(one)[-1].time > thawed, 300)
    time.sleep(PERIOD)
    entries = ledger(one)
    assert overlapping(entries) == []
    assert {epoch(each) for each in entries if each.time > began} == {2}
    assert 2 * PERIOD <= first - began <= 3 * PERIOD
    findings = json.loads(one.ucp("doctor", "-o", "json", expect=1).stdout)["findings"]
    assert [each["id"] for each in findings if each["severity"] == "error"] == ["fence/demo"]
    assert "takeover" in findings[0]["next"]
    assert [each for each in findings if each["fix"]] == [], "the guard has stopped it"
    before = head(one)
    teardowns = (("recreate", "--env", "stage"), ("stop", "--env", "stage"))
    for words in (*teardowns, ("env", "remove", "stage"), ("start",)):
        refused = one.ucp(*words, "--yes", expect=1).stderr
        assert str(two.workspace) in refused
    assert head(one) == before, "nothing was committed that the taker would carry out"
    two.ucp("stop", "--yes", timeout=300)
    one.ucp("start", "--yes", timeout=600)
    until("the first is back", lambda: {2, 4} <= made_by(one, 3), 300)
    one.ucp("stop", "--yes", timeout=300)
    assert overlapping(ledger(one)) == []
    count = len(ledger(one))
    evidence.write(
        "fence",
        "Two cores over one topology and one cloud",
        {
            "Figures": evidence.table(
                ("what", "seen"),
                [
                    ("T", f"{PERIOD:.0f} s"),
                    ("calls that changed the cloud", count),
                    ("overlapping ones", 0),
                    ("takeover: command to first write", f"{first - began:.0f} s"),
                    ("thaw to the end of Argo CD's and Crossplane's", f"{stopped - thawed:.1f} s"),
                ],
            )
        },
        command="make soak ARGS=tests/e2e/test_fence.py",
    )


def made_by(world: Workbench, wanted: int) -> set[int]:
    """Numbers of the networks that were created by calls with this epoch or a later one."""
    late = {each.id for each in ledger(world) if each.kind == "vpc" and epoch(each) >= wanted}
    kube = world.kube("core")
    found = set()
    for each in kube.list_all(VPC):
        name = (each["metadata"].get("annotations") or {}).get("crossplane.io/external-name")
        if name in late:
            found.add(int(each["metadata"]["name"].rpartition("-")[2]))
    kube.close()
    return found


def running(world: Workbench, names: Sequence[str]) -> list[psutil.Process]:
    return [
        each
        for each in world.processes()
        if any(each.environ().get("ARGOCD_BINARY_NAME") == name for name in names)
        or (each.name() == "crossplane" and "core" in each.cmdline())
    ]
