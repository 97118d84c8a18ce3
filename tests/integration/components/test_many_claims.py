"""Duration and CPU time of 200 simultaneous claims for databases in the simulated cloud."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

import psutil
import pytest

from k8s_ucp.tools.toolbox import Toolbox
from tests import evidence
from tests.control_planes import control_planes, eventually

from .broken_claims import both_tell, declare_broken, told
from .claims import PROGRAMS, Claims, claims
from .stack import Stack, stack

pytestmark = [pytest.mark.engines, pytest.mark.soak]

CLAIMS = int(os.environ.get("UCP_CLAIMS", "200"))
SECONDS = 1200.0


@pytest.fixture
def running(tmp_path: Path, toolbox: Toolbox) -> Iterator[Stack]:
    runtime = Path(f"/tmp/ucp-test-{os.getpid()}/stack")
    with control_planes(tmp_path, toolbox) as planes, stack(planes, runtime, toolbox) as found:
        yield found
    runtime.parent.rmdir()


@pytest.mark.timeout(1800)
def test_every_claim_becomes_a_database_with_its_connection(running: Stack, tmp_path: Path) -> None:
    with claims(running) as made:
        processes = processes_of(running, tmp_path)
        before = {name: cpu_seconds(each) for name, each in processes.items()}
        made.compose(CLAIMS, within=SECONDS)
        used = {name: cpu_seconds(each) - before[name] for name, each in processes.items()}
        found_out = seconds_until_told(running)
    write(made, used, found_out)


def seconds_until_told(running: Stack) -> dict[str, float]:
    """{message: seconds from the claim's declaration until status and doctor both show it}"""
    began, left = time.monotonic(), declare_broken(running.kube)
    found: dict[str, float] = {}

    def all_told() -> bool:
        said = told(running)
        for name, reason in left.items():
            if name not in found and both_tell(said, name, reason):
                found[name] = time.monotonic() - began
        return found.keys() == left.keys()

    eventually(all_told, lambda: {name: told(running)[name] for name in left}, 120)
    return {left[name]: seconds for name, seconds in found.items()}


def processes_of(running: Stack, root: Path) -> dict[str, psutil.Process]:
    """The core's processes that take part in composing claims, by name."""
    found = {
        name: psutil.Process(running.pid(name)) for name in ("crossplane", "function", *PROGRAMS)
    }
    for each in psutil.process_iter():
        if each.name() in ("kube-apiserver", "etcd") and str(root) in " ".join(each.cmdline()):
            found[each.name()] = each
    return found


def cpu_seconds(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:2]))


def write(made: Claims, used: dict[str, float], found_out: dict[str, float]) -> None:
    took = sorted(made.seconds.values())
    cuts = quantiles(took, n=100)
    rows = [
        ("claims, all declared at once", CLAIMS),
        ("until the last was declared", f"{made.declared:.1f} s"),
        ("from claim to Ready, p50", f"{cuts[49]:.1f} s"),
        ("from claim to Ready, p99", f"{cuts[98]:.1f} s"),
        ("until all were Ready", f"{took[-1]:.1f} s"),
        ("CPU, all together", f"{sum(used.values()):.1f} s"),
        ("load of the machine, the last 15 minutes", f"{os.getloadavg()[2]:.1f}"),
    ]
    cpu = [
        (name, f"{seconds:.1f} s", f"{1000 * seconds / CLAIMS:.0f} ms")
        for name, seconds in used.items()
    ]
    evidence.write(
        "claims" if CLAIMS >= 200 else f"claims-{CLAIMS}",
        "Claims that become databases",
        {
            "Time": "Each claim is a subnet group, a firewall with its rule, a password and a "
            "database in the simulated cloud, with its connection Secret. Reconciler, cloud, "
            "function and Crossplane are processes of their own, as a start makes them.\n\n"
            + evidence.table(("what", "measured"), rows),
            "CPU": evidence.table(("process", "all", "each claim"), cpu),
            "What can't be composed": "From the declaration of a claim until `ucp status` and `ucp "
            "doctor` both have Crossplane's own message, beside the claims above (goal: 10 s).\n\n"
            + evidence.table(
                ("message", "told within"),
                [(f"… {reason} …", f"{seconds:.1f} s") for reason, seconds in found_out.items()],
            ),
        },
        command="make soak ARGS=tests/integration/components/test_many_claims.py",
    )
