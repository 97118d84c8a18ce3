"""Claims that Crossplane can't compose, and what commands report about them."""

from __future__ import annotations

import time

from k8s_ucp.aws.kinds.table import KINDS
from k8s_ucp.inspect import cluster_snapshot
from k8s_ucp.inspect.doctor import checks, examination
from k8s_ucp.inspect.status import reasons
from k8s_ucp.kube import Kube
from k8s_ucp.topology import default
from tests.unit.compositions.platform import claim, definitions

from .platform_api import POSTGRES
from .stack import Stack


def declare_broken(kube: Kube) -> dict[str, str]:
    """Declare claims without a Composition, with a failing function, and with an invalid field.

    Returns a part of Crossplane's message by the name of the claim.
    """
    broken = next(each for each in definitions().compositions if each["kind"] == "Composition")
    type_ref = {"apiVersion": "k8s-ucp.io/v1alpha1", "kind": "Postgres"}
    vpc = KINDS["VPC.ec2.aws.m.upbound.io"].kind.object("", spec={"forProvider": "wrong"})
    resources = {**broken["spec"]["pipeline"][0]["input"]}
    resources |= {"resources": [{"name": "vpc", "base": {**vpc, "metadata": {}}}]}
    for name, given in (("broken", {"apiVersion": "v1", "kind": "Odd"}), ("wrong", resources)):
        pipeline = [{**broken["spec"]["pipeline"][0], "input": given}]
        spec = {"compositeTypeRef": type_ref, "mode": "Pipeline", "pipeline": pipeline}
        labels = {"k8s-ucp.io/cloud": name}
        kube.apply({**broken, "metadata": {"name": name, "labels": labels}, "spec": spec})
    kube.apply(claim("azure", name="nowhere", namespace="team-a"))
    for name in ("broken", "wrong"):
        kube.apply(claim(name, name=name, namespace="team-a"))
    return {
        "nowhere": "no compatible Compositions",
        "broken": "input is Odd of v1",
        "wrong": "spec.forProvider",
    }


def told(running: Stack) -> dict[str, tuple[str, str]]:
    """{claim of the team: (reason in `ucp status`, messages of `ucp doctor`)}"""
    topology = default("demo", ())
    seen = cluster_snapshot.collect(topology, lambda _: running.host.kubeconfig, list)
    found = checks.findings(examination.collect(topology, seen, lambda: running.kube, time.time()))
    said = reasons(seen)
    names = [each["metadata"]["name"] for each in running.kube.list_all(POSTGRES, "team-a")]
    return {
        name: (
            said.get(f"claim Postgres team-a/{name}", ""),
            "\n".join(each.message for each in found if each.id.endswith(f"/team-a/{name}")),
        )
        for name in names
    }


def both_tell(said: dict[str, tuple[str, str]], name: str, reason: str) -> bool:
    return all(reason in each for each in said[name])
