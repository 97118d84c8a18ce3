"""Resources of a previous core that a new core waits for before its providers may act."""

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


def test_applications_not_compared_with_git_yet_are_waited_for() -> None:
    for items in (
        [],
        [application("clusters", "Unknown")],
        [{"metadata": {"name": "clusters"}}],
    ):
        assert not_yet([], ["clusters"], items) == ["clusters: not compared with git yet"]


def test_declared_resources_that_do_not_exist_yet_are_waited_for() -> None:
    items = [application("clusters", "OutOfSync", VPC, SUBNET), application("databases", "Synced")]
    wanted = ["clusters", "databases"]
    assert not_yet([SUBNET, VPC], wanted, items) == [
        f"{SUBNET}: not created yet",
        f"{VPC}: not created yet",
    ]
    assert not_yet([], wanted, items) == []


def test_resources_that_the_repository_no_longer_declares_are_not_waited_for() -> None:
    assert not_yet([SUBNET], ["clusters"], [application("clusters", "Synced", VPC)]) == []


def test_resources_of_our_compositions_are_waited_for() -> None:
    group = "SecurityGroup.ec2.aws.m.upbound.io/ucp-clusters"
    databases = application("databases", "Synced", "Postgres.k8s-ucp.io/ucp-clusters/quotes-stage")
    missing = [
        f"{group}/quotes-stage-firewall",
        # Named by an older version; of a claim that was removed; in another namespace.
        f"{group}/quotes-stage-x7k2p",
        f"{group}/orders-stage-firewall",
        "SecurityGroup.ec2.aws.m.upbound.io/other/quotes-stage-firewall",
    ]
    assert not_yet(missing, ["databases"], [databases]) == [
        f"{group}/quotes-stage-firewall: not created yet"
    ]


def test_nothing_is_waited_for_if_no_application_declares_resources() -> None:
    assert not_yet([VPC], [], []) == []
