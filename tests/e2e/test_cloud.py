"""Environments on EKS in the simulated AWS: the first start, another one, and a removal."""

from __future__ import annotations

import base64
import json
import signal
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import takewhile

import psutil
import pytest

from k8s_ucp import plans, yaml_io
from k8s_ucp.aws.account import read_account
from k8s_ucp.cloud.ledger import CloudLedgerEntry, remaining
from k8s_ucp.engine.pipeline import Plan
from k8s_ucp.kube import NAMESPACE, SECRET, Kind, Kube
from k8s_ucp.names import CLUSTERS_NAMESPACE
from k8s_ucp.steps.backup.adopt_resources import ADOPTING
from tests import quote_app
from tests.e2e.interruption_points import cut_somewhere
from tests.e2e.pages import follow, healthy
from tests.e2e.world import Workbench, until
from tests.postgres_client import psql
from tests.unit.compositions import own_kinds

OTHERS = "others"
"""Caller of the other owner's API calls in the ledger."""


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_eks_environments_keep_their_ids_and_leave_nothing_behind(world: Workbench) -> None:
    """Follows docs/walkthroughs/aws-without-an-account.md, with checks between its commands."""
    made: dict[tuple[str, str, str], int] = {}

    def they_are_there() -> None:
        until("everything is well", lambda: world.is_well(clusters="registered", applications=10))
        clusters = [each["cluster"] for each in world.status()["environments"]]
        assert all((each["provider"], each["simulated"]) == ("eks", True) for each in clusters)
        config = json.loads(world.ucp("kubeconfig", "stage", "-o", "json").stdout)
        assert config["current-context"] == clusters[0]["name"], "Crossplane's, from the core"
        refused = world.ucp("kubeconfig", "other", expect=2).stderr
        assert "available: demo-core, demo-prod, demo-stage" in refused
        made.update(left(world))
        assert by_kind(made)["cluster"] == by_kind(made)["node-group"] == 2

    def all_comes_back() -> None:
        connection = the_database_opens(world)
        kept = left(world)
        with world.commit("core", "Have stores, by a function of ours") as clone:
            own_kinds.commit_to(clone)
        world.ucp("stop", "--yes")
        world.ucp("start", "--yes", timeout=300)
        until("all is well again", lambda: world.is_well(clusters="registered", applications=12))
        assert left(world) == kept
        a_function_of_users_composes(world)
        a_database_keeps_its_rows(world, connection)
        until("the claim is ready", lambda: claims(world) == [("ready", "")])
        assert healthy(world, "team-shop.shop.stage")
        a_plan_names_what_stays_in_the_cloud(world)

    def the_team_is_gone() -> None:
        assert json.loads(teams(world)) == []
        until("its namespace is gone", lambda: not world.kube("core").find(NAMESPACE, "team-shop"))
        assert left(world) == made
        assert database_servers(world) == []
        assert not list(world.database_folder.glob("*"))

    def prod_is_gone() -> None:
        half = Counter({kind: number // 2 for kind, number in by_kind(made).items()})
        assert by_kind(left(world)) == half, "removed means gone from the cloud"
        assert left(world).items() <= made.items()
        calls = [each.operation for each in ledger_of(world) if each.succeeded]
        assert calls.index("DeleteCluster") < calls.index("DeleteRole"), (
            "the cluster needs its role"
        )
        until("stage is well", lambda: world.is_well(clusters="registered", applications=9))

    def all_is_gone() -> None:
        theirs = of_others(world, 20)
        a_silent_core_is_destroyed_by_its_name_alone(world)
        what_is_only_observed_is_not_forgotten(world)
        words = ("destroy", "--yes", "--delete-data")
        # After that step the clouds are verified to be empty, and the core no longer answers.
        tasks = takewhile(lambda each: each.step.id != "verify-clouds-empty", plans.destroy().tasks)
        cut_somewhere(world, Plan("destroy", tuple(tasks)), *words)
        assert "none is left" in world.ucp(*words, timeout=300).stderr
        it_says_that_it_was_destroyed(world)
        entries = ledger_of(world)
        assert {id for _, _, id in remaining(entries)} == theirs
        assert all(each.caller.endswith(OTHERS) for each in entries if each.id in theirs)

    looks = {
        "ucp team add shop --template service": they_are_there,
        "ucp claim list": all_comes_back,
        "ucp team remove shop": partial(a_team_that_is_stuck_stays, world),
        "ucp env remove prod": the_team_is_gone,
        "ucp cloud ledger": prod_is_gone,
        "ucp stop --yes": all_is_gone,
    }
    said = follow(world, "aws-without-an-account", looks)
    assert looks.keys() <= said.keys()
    assert " ready" in said["ucp claim list"]
    assert "demo was destroyed at" in said["ucp stop --yes"]
    assert "DeleteCluster" in said["ucp cloud ledger"]


def ledger_of(world: Workbench) -> list[CloudLedgerEntry]:
    ledger = (world.state / "components/cloud/ledger.jsonl").read_text("utf-8")
    return [CloudLedgerEntry(**json.loads(line)) for line in ledger.splitlines()]


def a_plan_names_what_stays_in_the_cloud(world: Workbench) -> None:
    told = world.ucp("destroy", "--plan", "-o", "json").stdout
    kept = {each["object"] for each in json.loads(told)["steps"] if each["action"] == "keep"}
    assert {"Postgres team-shop/shop-orders", "VPC demo-stage"} <= kept


def a_silent_core_is_destroyed_by_its_name_alone(world: Workbench) -> None:
    """Nothing is asked of it, and the plan lists what would remain."""
    config = world.state / "kubeconfigs" / "demo-core.yaml"
    text = config.read_text()
    config.unlink()
    said = world.ucp("destroy", "--yes", expect=1).stderr
    assert "ucp destroy --abandon demo-core" in said
    told = world.ucp("destroy", "--abandon", "demo-core", "--plan", "-o", "json").stdout
    kept = [each["object"] for each in json.loads(told)["steps"] if each["action"] == "keep"]
    assert "environment stage (eks)" in kept
    # `doctor --fix` rewrites the kubeconfig, and the core is accessible again.
    assert (
        "fixed: write the kubeconfig of demo-core"
        in world.ucp_any("doctor", "--fix", "--yes").stderr
    )
    assert json.loads(config.read_text()) == json.loads(text)


def what_is_only_observed_is_not_forgotten(world: Workbench) -> None:
    """An interrupted start leaves this state, while it matches resources of an earlier core."""
    core = world.kube("core")
    networks = core.kind_of("ec2.aws.m.upbound.io/v1beta1", "VPC")
    name = core.list_all(networks, CLUSTERS_NAMESPACE)[0]["metadata"]["name"]

    def mark(value: str | None) -> None:
        change = {"metadata": {"annotations": {ADOPTING: value}}}
        core.patch(networks, name, CLUSTERS_NAMESPACE, change)

    mark('["*"]')
    said = world.ucp("destroy", "--yes", "--delete-data", expect=1).stderr
    assert f"they are only observed, and would be kept in their clouds: VPC {name}" in said
    mark(None)


def it_says_that_it_was_destroyed(world: Workbench) -> None:
    """No core is left to ask, which is not a failure."""
    assert "demo was destroyed at" in world.ucp("destroy", "--yes", "--delete-data").stderr
    assert "demo was destroyed at" in world.ucp("status").stdout
    found = json.loads(world.ucp("doctor", "-o", "json").stdout)["findings"]
    assert [each["id"] for each in found if each["severity"] != "warning"] == ["destroyed/demo"]


def of_others(world: Workbench, count: int) -> set[str]:
    """Create networks of another owner in the same cloud; return their ids."""
    account = read_account(world.state / "components/reconciler/aws-account.json")
    assert account
    theirs = replace(account, caller=OTHERS)
    blocks = (f"10.{100 + number}.0.0/16" for number in range(count))
    made = [theirs.call("ec2", "eu-west-3", "CreateVpc", CidrBlock=each) for each in blocks]
    return {each["Vpc"]["VpcId"] for each in made}


def a_function_of_users_composes(world: Workbench) -> None:
    core = world.kube("core")
    stores = Kind("example.org/v1", "Store", "stores")
    core.apply(yaml_io.load(own_kinds.files()["store.yaml"]))

    def is_ready() -> bool:
        status = core.get(stores, "photos", CLUSTERS_NAMESPACE).get("status") or {}
        ready = [each for each in status.get("conditions", []) if each["type"] == "Ready"]
        return [each["status"] for each in ready] == ["True"]

    until("the store is ready", is_ready)
    assert by_kind(left(world))["bucket"] == 1
    core.delete(stores, "photos", CLUSTERS_NAMESPACE)
    until("its bucket is gone", lambda: by_kind(left(world))["bucket"] == 0)


def the_database_opens(world: Workbench) -> dict[str, str]:
    """Insert a row through the connection that the apps' mirror copied; return the connection."""
    stage = Kube(json.loads(world.ucp("kubeconfig", "stage", "-o", "json").stdout))
    name = "shop-orders-connection"

    def opened() -> dict[str, str] | None:
        found = stage.get(SECRET, name, "team-shop")["data"]
        given = {key: base64.b64decode(value).decode() for key, value in found.items()}
        return given if psql(given, "select 1") == "1" else None

    connection: dict[str, str] = until("its connection opens a database", opened, 240)
    until("its claim is ready", lambda: claims(world) == [("ready", "")])
    listed = [each["name"] for each in world.status()["applications"]]
    assert "team-shop.claims" in listed
    assert quote_app.authors(connection) == quote_app.AUTHORS, "the app runs on such a Secret"
    psql(connection, "create table orders (what text); insert into orders values ('tea')")
    return connection


def a_database_keeps_its_rows(world: Workbench, connection: dict[str, str]) -> None:
    """Check the row after a stop and a start, and after its server is killed."""
    rows = partial(psql, connection, "select * from orders")
    until("the row is there", lambda: rows() == "tea")
    (server,) = database_servers(world)
    server.send_signal(signal.SIGKILL)
    server.wait(10)
    until("it is there again", lambda: rows() == "tea")


def a_team_that_is_stuck_stays(world: Workbench) -> None:
    """A claim that can't be deleted is reported with the cloud's error, and keeps the team."""
    until("both run the new version", lambda: versions(world) == {"echo-stage", "echo-prod"})
    world.ucp("cloud", "fault", "add", "unavailable", "--service", "rds", "--operation", "Delete*")
    words = ("team", "remove", "shop", "--wait", "45", "--yes")
    said = world.ucp(*words, expect=1, timeout=120).stderr
    assert "Postgres shop-orders (Instance" in said
    assert "ServiceUnavailable" in said
    assert "team-shop" in {e["namespace"] for e in json.loads(teams(world))}
    world.ucp("cloud", "fault", "clear")


def versions(world: Workbench) -> set[str]:
    """Applications of echo that run the promoted version."""
    return {
        each["name"]
        for each in world.status()["applications"]
        if each["name"].startswith("echo-") and any(":0.9.3" in one for one in each["images"])
    }


def database_servers(world: Workbench) -> list[psutil.Process]:
    """Main processes of the database servers, without their child processes."""
    found = {each.pid: each for each in world.processes() if each.name() == "postgres"}
    return [each for each in found.values() if each.ppid() not in found]


def claims(world: Workbench) -> list[tuple[str, str]]:
    """State of each claim, and the reason."""
    listed = json.loads(world.ucp("claim", "list", "-o", "json").stdout)
    return [(each["state"], each["why"]) for each in listed]


def teams(world: Workbench) -> str:
    return world.ucp("team", "list", "-o", "json").stdout


def left(world: Workbench) -> dict[tuple[str, str, str], int]:
    """Creations minus deletions, by region, kind and id."""
    told = json.loads(world.ucp("cloud", "ledger", "-o", "json").stdout)
    return dict(remaining([CloudLedgerEntry(**each) for each in told]))


def by_kind(resources: dict[tuple[str, str, str], int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, kind, _), number in resources.items():
        found[kind] += number
    return found
