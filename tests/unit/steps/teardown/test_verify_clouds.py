"""The final check of the clouds: resources deleted, left over, unverifiable, or abandoned."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from k8s_ucp.context import StartContext
from k8s_ucp.engine.journal import Journal
from k8s_ucp.errors import UcpError
from k8s_ucp.inspect.teardown.abandoned import AbandonedRecord, AbandonedResource
from k8s_ucp.inspect.teardown.destruction import read_destruction
from k8s_ucp.kube import Object
from k8s_ucp.managed.external import CloudFailed, Declared
from k8s_ucp.steps.teardown import verify_clouds
from k8s_ucp.steps.teardown.abandonment import check_named
from k8s_ucp.steps.teardown.cloud_record import UNSEEN, CloudRecord, RecordedResource
from k8s_ucp.steps.teardown.verify_clouds import verify_clouds_empty
from k8s_ucp.topology import default
from k8s_ucp.topology.parts import Clouds
from k8s_ucp.workspace import Workspace

NEAR, FAR = "eu-west-3", "us-east-1"


class Cloud:
    """Cloud resources by external name; regions in `away` don't respond."""

    there: ClassVar[set[str]] = set()
    away: ClassVar[set[str]] = set()
    tags: ClassVar[dict[str, list[tuple[str, str, str]]]] = {}

    def __init__(self, _: object) -> None:
        pass

    def exists(self, _: str, declared: Declared) -> bool:
        self._ask(declared.parameters["region"])
        return declared.name in self.there

    def last_snapshot(self, kind: str, declared: Declared) -> str:
        return f"{declared.name}-final" if kind.startswith("Instance") else ""

    def tagged(self, region: str, _: object) -> list[tuple[str, str, str]]:
        self._ask(region)
        return self.tags.get(region, [])

    def _ask(self, region: str) -> None:
        if region in self.away:
            raise CloudFailed("DescribeVpcs: ServiceUnavailable", certain=False)


def resource(name: str, region: str = NEAR, kind: str = "VPC") -> RecordedResource:
    return RecordedResource(
        f"{kind}.example.org", "ucp-clusters", f"my-{name}", f"uid-{name}", name, {"region": region}
    )


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StartContext:
    """A teardown that is complete on the core, with two networks and a database recorded."""
    topology = default(clouds=Clouds.model_validate({"aws": {"simulated": True}}))
    found = StartContext(workspace=Workspace.at(tmp_path), topology=topology)
    found.state.make()
    found.journal = Journal(found.state.journal, "destroy")
    monkeypatch.setattr(verify_clouds, "ReadBack", Cloud)
    for name, value in (("there", set()), ("away", set()), ("tags", {})):
        monkeypatch.setattr(Cloud, name, value)
    monkeypatch.setattr(StartContext, "cloud", SimpleNamespace(account=lambda: None))
    objects: list[Object] = []
    monkeypatch.setattr(verify_clouds.OwnedObjects, "managed", objects)
    recorded = [resource("vpc-1"), resource("vpc-2", FAR), resource("db-1", kind="Instance")]
    CloudRecord(found.state.cloud_record).add_resources(recorded)
    return found


def verify(context: StartContext) -> None:
    verify_clouds_empty.run(context, lambda _: None)


def refused(context: StartContext) -> tuple[list[str], str]:
    """The listed resources and the next command; checks that a rerun accepts all names in it."""
    with pytest.raises(UcpError) as caught:
        verify(context)
    context.journal.end("failed")
    advice = str(caught.value.next)
    named = advice.split(" --abandon ")[1:]
    before, context.teardown.abandon = context.teardown.abandon, frozenset(named)
    check_named(context, [], ())
    context.teardown.abandon = before
    return [each.strip() for each in caught.value.message.splitlines()[1:]], advice


def given_up(context: StartContext) -> list[str]:
    return [each.what for each in AbandonedRecord(context.state.abandoned).resources()]


def test_a_cloud_without_the_recorded_resources_is_empty(context: StartContext) -> None:
    verify(context)
    assert (context.teardown.read_back, context.teardown.snapshots) == (3, ["db-1-final"])
    assert CloudRecord(context.state.cloud_record).resources() == []
    seen = read_destruction(context.state.destroyed)
    assert seen
    assert not seen.ended
    assert seen.told["snapshots"] == ["db-1-final"], "a rerun tells them at its end"


def test_a_region_that_cannot_be_checked_is_never_empty(context: StartContext) -> None:
    Cloud.away.add(FAR)
    why = "the check failed: DescribeVpcs: ServiceUnavailable"
    listed, advice = refused(context)
    assert listed == [f"everything in region {FAR}: {why}", f"VPC vpc-2 in {FAR}: {why}"]
    assert advice.endswith(f"ucp destroy --abandon {FAR}")
    context.teardown.abandon = frozenset([FAR])
    verify(context)
    assert context.teardown.read_back == 2
    assert given_up(context) == [f"VPC vpc-2 in {FAR}", f"everything in region {FAR}"]


def test_an_unreachable_region_is_listed_even_if_its_recorded_resources_are_abandoned(
    context: StartContext,
) -> None:
    record = AbandonedRecord(context.state.abandoned)
    record.add([AbandonedResource("VPC vpc-2", "", "2026-01-01T00:00:00Z", "uid-vpc-2")])
    Cloud.away.add(FAR)
    listed, _ = refused(context)
    assert [each.partition(":")[0] for each in listed] == [f"everything in region {FAR}"]


def test_abandoning_a_responding_region_records_only_its_existing_resources(
    context: StartContext,
) -> None:
    Cloud.there.add("vpc-2")
    context.teardown.abandon = frozenset([FAR])
    verify(context)
    assert given_up(context) == [f"VPC vpc-2 in {FAR}"]


def test_unrecorded_resources_are_found_by_tag_and_can_be_abandoned(
    context: StartContext,
) -> None:
    Cloud.tags[NEAR] = [("Subnet", "my-subnet", "subnet-9")]
    listed, advice = refused(context)
    words = "the cloud still has it, with the tag of my-subnet"
    assert listed == [f"Subnet subnet-9 in {NEAR}: {words}"]
    assert advice.endswith("ucp destroy --abandon subnet-9")
    context.teardown.abandon = frozenset(["subnet-9"])
    verify(context)
    assert given_up(context) == [f"Subnet subnet-9 in {NEAR}"]
    # It is already reported when the topology is destroyed the next time.
    CloudRecord(context.state.cloud_record).add_resources([resource("vpc-3")])
    context.teardown.abandon = frozenset()
    verify(context)


def test_an_unavailable_cloud_account_is_reported_and_can_be_abandoned(
    context: StartContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def account() -> Any:
        raise UcpError("its keys can't be read")

    monkeypatch.setattr(StartContext, "cloud", SimpleNamespace(account=account))
    listed, advice = refused(context)
    assert listed == ["everything in cloud aws: the check failed: its keys can't be read"]
    assert advice.endswith("ucp destroy --abandon aws")
    context.teardown.abandon = frozenset(["aws"])
    verify(context)
    assert given_up(context) == ["everything in cloud aws"]


def test_resources_of_a_dead_cluster_are_abandoned_by_the_clusters_name(
    context: StartContext,
) -> None:
    what = "load balancers and volumes"
    unseen = RecordedResource(UNSEEN, "", what, "u1", "", cluster="demo-prod")
    volume = RecordedResource("PersistentVolume", "", "pv-1", "v1", "vol-7", cluster="demo-prod")
    CloudRecord(context.state.cloud_record).add_resources([unseen, volume])
    listed, advice = refused(context)
    assert listed == [
        f"Unseen {what} of demo-prod: its cluster did not respond before it was deleted",
        "PersistentVolume vol-7 of demo-prod: its cluster was deleted before its deletion was "
        "confirmed",
    ]
    assert advice.endswith("ucp destroy --abandon demo-prod --abandon vol-7")
    context.teardown.abandon = frozenset(["demo-prod"])
    verify(context)
    assert len(given_up(context)) == 2
