"""Differences between topology, repositories and clusters, and what does not count as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from k8s_ucp.inspect.cluster_snapshot import ClusterSnapshot
from k8s_ucp.inspect.differences import Committed, Difference, differences
from k8s_ucp.inspect.overlay_versions import brief, versions_in
from tests.unit.inspect.snapshots import TOPOLOGY, cluster, registration


def application(app: str, env: str, *images: str, sync: str = "Synced") -> dict[str, Any]:
    labels = {"k8s-ucp.io/app": app, "k8s-ucp.io/environment": env} if app else {}
    return {
        "metadata": {"name": f"{app}-{env}", "labels": labels},
        "status": {
            "sync": {"status": sync},
            "health": {"status": "Healthy"},
            "summary": {"images": list(images)},
        },
    }


ECHO = "ealen/echo-server"
SEEN = ClusterSnapshot(
    core_ready=True,
    environments=["prod", "stage"],
    clusters=[cluster("stage", Ready="True"), cluster("prod", Ready="True")],
    registrations=[registration("stage"), registration("prod")],
    applications=[
        application("echo", "stage", f"{ECHO}:0.9.3"),
        application("echo", "prod", f"{ECHO}:0.9.2"),
        application("", "root"),
    ],
)
COMMITTED = Committed(
    ["stage", "prod"], {"echo": {"stage": [f"{ECHO}:0.9.3"], "prod": [f"{ECHO}:0.9.2"]}}
)


def found(committed: Committed = COMMITTED, seen: ClusterSnapshot = SEEN) -> dict[str, Difference]:
    return {each.object: each for each in differences(TOPOLOGY, committed, seen)}


def columns(each: Difference) -> tuple[str, str, str]:
    return each.topology, each.repository, each.cluster


def test_promoted_tags_are_not_a_difference() -> None:
    assert found() == {}


def test_an_environment_committed_by_hand_is_offered_for_adoption() -> None:
    lab = replace(COMMITTED, environments=["stage", "prod", "lab"])
    seen = replace(
        SEEN,
        environments=["lab", *SEEN.environments],
        clusters=[*SEEN.clusters, cluster("lab")],
        registrations=[*SEEN.registrations, registration("lab")],
    )
    assert list(found(lab, seen)) == ["environment lab"]
    differing = found(lab, seen)["environment lab"]
    assert columns(differing) == ("-", "declared", "running")
    assert differing.next.startswith("ucp env add lab --cluster embedded")
    stopped = ClusterSnapshot(core_ready=False)
    for providers, named in (({"lab": "kind"}, "kind"), ({}, "P")):
        differing = found(replace(lab, providers=providers), stopped)["environment lab"]
        assert differing.next.startswith(f"ucp env add lab --cluster {named} adopts it")


def test_a_declared_object_that_is_not_committed_is_one_line_and_not_one_per_file() -> None:
    committed = Committed(
        ["stage"],
        {"echo": {"stage": [f"{ECHO}:0.9.3"]}},
        {
            "core: clusters/overlays/prod/kustomization.yaml": "create",
            "apps: apps/echo/overlays/prod/kustomization.yaml": "create",
            "core: ucp.yaml": "change",
        },
    )
    seen = replace(
        SEEN,
        environments=["stage"],
        clusters=SEEN.clusters[:1],
        registrations=SEEN.registrations[:1],
        applications=SEEN.applications[:1],
    )
    differing = found(committed, seen)
    assert list(differing) == ["environment prod", "app echo on prod", "core: ucp.yaml"]
    assert {each.next for each in differing.values()} == {"ucp start"}
    assert columns(differing["environment prod"]) == ("embedded, running", "-", "-")
    assert columns(differing["core: ucp.yaml"]) == ("rendered", "an earlier render", "")


def test_a_cluster_that_runs_another_tag_than_committed_is_a_difference() -> None:
    late = [application("echo", "stage", f"{ECHO}:0.9.2"), *SEEN.applications[1:]]
    differing = found(seen=replace(SEEN, applications=late))["app echo on stage"]
    assert differing.repository == f"{ECHO}:0.9.3"
    assert differing.cluster == f"{ECHO}:0.9.2, Synced, Healthy"


def test_objects_missing_only_on_the_cluster_are_differences() -> None:
    gone = replace(SEEN, clusters=SEEN.clusters[:1], registrations=SEEN.registrations[:1])
    assert columns(found(seen=gone)["environment prod"]) == ("embedded, running", "declared", "-")
    unsynced = [*SEEN.applications[:2], application("", "root", sync="OutOfSync")]
    (name,) = found(seen=replace(SEEN, applications=unsynced))
    assert name == "Application -root"


def test_an_overlay_that_a_commit_deleted_is_a_difference() -> None:
    committed = replace(COMMITTED, versions={"echo": {"stage": [f"{ECHO}:0.9.3"]}})
    advice = found(committed)["app echo on prod"].next
    assert advice.startswith("git -C gitops/demo/apps log -1 -- apps/echo/overlays/prod/ (")
    pending = replace(committed, changes={"apps: apps/echo/overlays/prod/hosts.yaml": "create"})
    assert found(pending)["app echo on prod"].next == "ucp start"


def test_an_app_that_only_the_repository_declares_is_a_difference() -> None:
    committed = replace(COMMITTED, versions={**COMMITTED.versions, "own": {"stage": []}})
    seen = replace(SEEN, applications=[*SEEN.applications, application("own", "stage")])
    assert columns(found(committed, seen)["app own on stage"])[:2] == ("-", "declared")


def test_an_unreachable_core_is_the_only_difference_of_clusters() -> None:
    assert list(found(seen=ClusterSnapshot(core_ready=False))) == ["cluster demo-core"]


def test_a_conflict_names_the_commands_of_both_resolutions() -> None:
    (differing,) = found(replace(COMMITTED, conflicts=["core:x.yaml"])).values()
    assert differing.next == "ucp start --ours core:x.yaml, or: ucp start --theirs core:x.yaml"


@pytest.mark.parametrize(
    ("pinned", "deployed"),
    [
        ("registry.local:5000/shop:1.0", "registry.local:5000/shop:1.0"),
        ("shop:sha256:aa", "shop@sha256:aa"),
        ("shop:1.0@sha256:aa", "shop@sha256:aa"),
    ],
)
def test_a_pinned_image_matches_the_deployed_image(pinned: str, deployed: str) -> None:
    committed = replace(COMMITTED, versions={"echo": {"stage": [pinned], "prod": []}})
    apps = [application("echo", "stage", deployed), *SEEN.applications[1:]]
    assert found(committed, replace(SEEN, applications=apps)) == {}


def test_a_tag_with_the_same_ending_is_a_different_tag() -> None:
    apps = [application("echo", "stage", f"{ECHO}:10.9.3"), *SEEN.applications[1:]]
    assert list(found(seen=replace(SEEN, applications=apps))) == ["app echo on stage"]


def test_a_chart_with_the_name_of_an_image_is_not_compared_with_it() -> None:
    item = application("echo", "stage", "shop:2")
    item["status"]["sourceType"] = "Helm"
    committed = replace(COMMITTED, versions={"echo": {"stage": ["shop:0.1.0"], "prod": []}})
    assert found(committed, replace(SEEN, applications=[item, *SEEN.applications[1:]])) == {}


def test_an_overlay_of_plain_manifests_is_listed_without_a_version() -> None:
    assert versions_in({"apps/own/overlays/stage/deployment.yaml": b""}) == {"own": {"stage": []}}


def test_an_unpinned_image_matches_every_version() -> None:
    text = b"images: [{name: a/web}, {name: 'r:5/db', newTag: '1'}, {name: c, digest: 'sha256:ab'}]"
    versions = versions_in({"apps/echo/overlays/stage/kustomization.yaml": text})
    assert versions == {"echo": {"stage": ["a/web", "r:5/db:1", "c@sha256:ab"]}}
    item = application("echo", "stage", "a/web:7")
    committed = replace(COMMITTED, versions={"echo": {"stage": ["a/web"], "prod": []}})
    assert found(committed, replace(SEEN, applications=[item, *SEEN.applications[1:]])) == {}


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ([], ""),
        (["r:5000/a/web:1.2"], "1.2"),
        (["web@sha256:ab"], "sha256:ab"),
        (["web"], ""),
        (["a/web:1", "b/db@sha256:ab"], "web 1, db sha256:ab"),
        (["a/web", "r:5000/db"], "2 without a version"),
        (["a/web", "db:1", "redis:2", "x:3"], "db 1, redis 2, 2 more"),
    ],
)
def test_versions_are_abbreviated_for_a_column(versions: list[str], words: str) -> None:
    assert brief(versions) == words
