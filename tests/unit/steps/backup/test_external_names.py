"""Which resources of an old core a new one waits for, before its providers may act."""

from __future__ import annotations

from typing import Any

from k8s_ucp.steps.backup.restore_external_names import not_yet

VPC = "VPC.ec2.aws.m.upbound.io/ucp-clusters/demo-eu"
SUBNET = "Subnet.ec2.aws.m.upbound.io/ucp-clusters/demo-eu-a"


def application(name: str, sync: str = "OutOfSync", *resources: str) -> dict[str, Any]:
    listed = []
    for each in resources:
        label, namespace, item = each.split("/")
        kind, _, group = label.partition(".")
        listed.append({"kind": kind, "group": group, "namespace": namespace, "name": item})
    status = {"sync": {"status": sync}, "resources": listed}
    return {"metadata": {"name": name}, "status": status}


def test_until_argo_cd_has_read_the_repository_nothing_is_known() -> None:
    for items in (
        [],
        [application("clusters", "Unknown")],
        [{"metadata": {"name": "clusters"}}],
    ):
        assert not_yet([], ["clusters"], items) == ["clusters: not compared with git yet"]


def test_what_is_declared_and_not_there_is_waited_for() -> None:
    items = [application("clusters", "OutOfSync", VPC, SUBNET), application("databases", "Synced")]
    wanted = ["clusters", "databases"]
    assert not_yet([SUBNET, VPC], wanted, items) == [
        f"{SUBNET}: not created yet",
        f"{VPC}: not created yet",
    ]
    assert not_yet([], wanted, items) == []


def test_what_the_repository_declares_no_more_is_not() -> None:
    assert not_yet([SUBNET], ["clusters"], [application("clusters", "Synced", VPC)]) == []


def test_what_a_composition_of_ours_makes_is_waited_for() -> None:
    group = "SecurityGroup.ec2.aws.m.upbound.io/ucp-clusters"
    databases = application("databases", "Synced", "Postgres.k8s-ucp.io/ucp-clusters/quotes-stage")
    missing = [
        f"{group}/quotes-stage-firewall",
        # As older versions wrote it; of something that is declared no more; in another namespace.
        f"{group}/quotes-stage-x7k2p",
        f"{group}/orders-stage-firewall",
        "SecurityGroup.ec2.aws.m.upbound.io/other/quotes-stage-firewall",
    ]
    assert not_yet(missing, ["databases"], [databases]) == [
        f"{group}/quotes-stage-firewall: not created yet"
    ]


def test_nor_is_anything_where_nothing_declares_resources() -> None:
    assert not_yet([VPC], [], []) == []
