"""A stand-in for `gcloud`: its arguments, output, errors and delays, with state in a JSON file.

It supports the calls of the gke provider; anything else is an argument error, as with the real
program. Operations take time: a cluster is PROVISIONING before it is RUNNING, a cluster that is
being changed rejects further changes, and a deleted one is STOPPING for a while.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

State = dict[str, Any]

FRESH: State = {
    "project": {"projectId": "shop-1", "lifecycleState": "ACTIVE"},
    "key_ids": ["key-1"],
    "permissions": ["projects", "container", "compute"],
    "apis": ["container.googleapis.com", "compute.googleapis.com"],
    "billing": True,
    "zones": ["europe-west9-a", "europe-west9-b", "us-east1-b", "us-east1-c"],
    "machines": {"e2-highcpu-2": 2, "e2-medium": 2, "n2-standard-8": 8},
    "quotas": {
        "CPUS": [24, 4],
        "SSD_TOTAL_GB": [500, 0],
        "IN_USE_ADDRESSES": [8, 0],
        "INSTANCES": [24, 0],
        "STATIC_ADDRESSES": [8, 8],
    },
    "versions": ["1.35.4-gke.1200", "1.34.9-gke.300"],
    "token": "ya29.stand-in",
    "latency": 0.0,
    "make_seconds": 0.3,
    "change_seconds": 0.1,
    "fails": [],
    "silent_zones": [],
    "breaks": "",
    "clusters": {},
    "apis_of_clusters": {},
    "calls": [],
}
"""fails: arguments of calls that fail once with a server error. silent_zones: locations of which a
list of clusters lacks the clusters, with a warning. breaks: why the next cluster that
is created ends in ERROR. apis_of_clusters: addresses of API servers, by the cluster's name or *.
"""

FLAGS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "auth print-access-token": (0, ()),
    "projects describe": (1, ()),
    "container get-server-config": (0, ("zone", "region")),
    "compute machine-types describe": (1, ("zone",)),
    "compute regions describe": (1, ()),
    "container clusters list": (0, ("filter",)),
    "container clusters describe": (1, ("zone", "region")),
    "container clusters create": (
        1,
        (
            *("zone", "region", "num-nodes", "machine-type", "disk-size", "release-channel"),
            *("cluster-version", "enable-shielded-nodes", "shielded-secure-boot"),
            *("shielded-integrity-monitoring", "enable-ip-alias", "labels", "async"),
        ),
    ),
    "container clusters resize": (1, ("zone", "region", "node-pool", "num-nodes", "async")),
    "container clusters delete": (1, ("zone", "region", "async")),
}
"""Words of a command -> (number of positional arguments, flags)."""


class Failed(Exception):
    def __init__(self, message: str, code: int = 1) -> None:
        self.code = code
        super().__init__(message)


@contextmanager
def opened(file: Path) -> Iterator[State]:
    """Lock and read the state; write it back at the end."""
    with file.open("r+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        state = json.load(stream)
        try:
            yield state
        finally:
            stream.seek(0)
            stream.truncate()
            json.dump(state, stream)


def main(file: Path, argv: list[str]) -> int:
    with opened(file) as state:
        latency = state["latency"]
        state["calls"].append({"argv": argv, "config": os.environ.get("CLOUDSDK_CONFIG", "")})
    time.sleep(latency)
    command = next((each for each in FLAGS if argv[: len(each.split())] == each.split()), "")
    name = f"gcloud.{command or ' '.join(argv[:2])}".replace(" ", ".")
    try:
        if not command:
            raise Failed(f"Invalid choice: '{argv[0] if argv else ''}'.", 2)
        names, flags = parsed(command, argv[len(command.split()) :])
        with opened(file) as state:
            authenticate(state)
            settle(state)
            if command in state["fails"]:
                state["fails"].remove(command)
                raise Failed("ResponseError: code=503, message=The service is unavailable.")
            answer = ANSWERS[command](state, names, flags)
    except Failed as error:
        print(f"ERROR: ({name}) {error}", file=sys.stderr)
        return error.code
    print(answer if isinstance(answer, str) else json.dumps(answer))
    return 0


def parsed(command: str, words: list[str]) -> tuple[list[str], dict[str, str]]:
    count, allowed = FLAGS[command]
    names = [each for each in words if not each.startswith("--")]
    flags = dict(
        each.removeprefix("--").partition("=")[::2] for each in words if each.startswith("--")
    )
    unknown = [each for each in flags if each not in (*allowed, "project", "quiet", "format")]
    if unknown or len(names) > count:
        wrong = " ".join([*(f"--{each}" for each in unknown), *names[count:]])
        raise Failed(f"unrecognized arguments: {wrong}", 2)
    if len(names) < count:
        raise Failed("argument NAME: Must be specified.", 2)
    if not (flags.get("project") or os.environ.get("CLOUDSDK_CORE_PROJECT")):
        raise Failed("The required property [project] is not currently set.")
    return names, flags


def authenticate(state: State) -> None:
    path = Path(os.environ.get("CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", "/nonexistent"))
    try:
        key = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        raise Failed(
            "You do not currently have an active account selected.\nPlease run:\n\n"
            "  $ gcloud auth login\n\nto obtain new credentials."
        ) from None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "others may read the key"
    if key["private_key_id"] not in state["key_ids"]:
        raise Failed(
            "There was a problem refreshing your current auth tokens: ('invalid_grant: Invalid JWT "
            "Signature.', {'error': 'invalid_grant'})\nPlease run:\n\n  $ gcloud auth login"
        )


def settle(state: State) -> None:
    """Complete the operations whose time has elapsed."""
    now = time.time()
    for name, cluster in list(state["clusters"].items()):
        if now < cluster.get("busy_until", 0):
            continue
        if cluster["status"] == "STOPPING":
            del state["clusters"][name]
        elif cluster["status"] == "PROVISIONING":
            if cluster["breaks"]:
                cluster.update(status="ERROR", statusMessage=cluster["breaks"])
            else:
                cluster.update(status="RUNNING", currentNodeCount=cluster["nodes"])
        elif cluster["status"] == "RECONCILING":
            cluster.update(status="RUNNING", currentNodeCount=cluster["nodes"])


def require(state: State, room: str, api: str, service: str) -> None:
    if api and api not in state["apis"]:
        raise Failed(
            f"ResponseError: code=403, message={service} has not been used in project 4711 before "
            f"or it is disabled. Enable it by visiting https://console.developers.google.com/apis/"
            f"api/{api}/overview?project=4711 then retry."
        )
    if room not in state["permissions"]:
        raise Failed(
            f'ResponseError: code=403, message=Required "{room}.get" permission(s) for '
            '"projects/shop-1".'
        )


def print_token(state: State, names: list[str], flags: Mapping[str, str]) -> str:
    return str(state["token"])


def describe_project(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    if names[0] != state["project"]["projectId"] or "projects" not in state["permissions"]:
        raise Failed(
            f"[robot@shop-1.iam.gserviceaccount.com] does not have permission to access projects "
            f"instance [{names[0]}] (or it may not exist): The caller does not have permission."
        )
    return state["project"]


def check_place(state: State, flags: Mapping[str, str]) -> str:
    location = flags.get("zone") or flags.get("region") or ""
    regions = {each.rpartition("-")[0] for each in state["zones"]}
    if location not in (*state["zones"], *regions):
        raise Failed(f'ResponseError: code=400, message=Location "{location}" does not exist.')
    return location


def server_config(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    require(state, "container", "container.googleapis.com", "Kubernetes Engine API")
    check_place(state, flags)
    versions = state["versions"]
    return {
        "channels": [
            {"channel": "REGULAR", "defaultVersion": versions[0], "validVersions": versions}
        ]
    }


def describe_machine(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    require(state, "compute", "compute.googleapis.com", "Compute Engine API")
    path = f"projects/shop-1/zones/{flags['zone']}"
    if flags["zone"] not in state["zones"] or names[0] not in state["machines"]:
        raise Failed(
            "Could not fetch resource:\n - The resource "
            f"'{path}/machineTypes/{names[0]}' was not found"
        )
    return {"name": names[0], "guestCpus": state["machines"][names[0]]}


def describe_region(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    require(state, "compute", "compute.googleapis.com", "Compute Engine API")
    quotas = [
        {"metric": metric, "limit": float(limit), "usage": float(usage)}
        for metric, (limit, usage) in state["quotas"].items()
    ]
    zones = [each for each in state["zones"] if each.rpartition("-")[0] == names[0]]
    site = "https://www.googleapis.com/compute/v1/projects/shop-1/zones"
    return {"name": names[0], "quotas": quotas, "zones": [f"{site}/{each}" for each in zones]}


def list_clusters(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    require(state, "container", "container.googleapis.com", "Kubernetes Engine API")
    key, _, value = flags["filter"].partition("=")
    found = []
    silent = state["silent_zones"]
    if silent:
        print(
            f"WARNING: The following zones did not respond: {', '.join(silent)}. List results may "
            "be incomplete.",
            file=sys.stderr,
        )
    for each in state["clusters"].values():
        if each["location"] in silent:
            continue
        label = key.removeprefix("resourceLabels.")
        have = each["name"] if key == "name" else each["resourceLabels"].get(label)
        if have == value:
            found.append(described(each))
    return found


def describe_cluster(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    require(state, "container", "container.googleapis.com", "Kubernetes Engine API")
    location, (name,) = check_place(state, flags), names
    cluster = state["clusters"].get(name)
    if cluster is None or cluster["location"] != location:
        raise Failed(f"ResponseError: code=404, message=Not found: {path(location, name)}.")
    return described(cluster)


def described(cluster: State) -> State:
    hidden = ("busy_until", "nodes", "breaks")
    return {k: v for k, v in cluster.items() if k not in hidden and v != 0}


def create_cluster(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    require(state, "container", "container.googleapis.com", "Kubernetes Engine API")
    location, (name,) = check_place(state, flags), names
    if not re.fullmatch(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", name):
        raise Failed(f"ResponseError: code=400, message=Invalid value for field name: {name}")
    if name in state["clusters"]:
        raise Failed(f"ResponseError: code=409, message=Already exists: {path(location, name)}.")
    if not state["billing"]:
        raise Failed(
            "ResponseError: code=403, message=This API method requires billing to be enabled."
        )
    per_zone = int(flags["num-nodes"])
    nodes = per_zone if "zone" in flags else per_zone * 3
    cpus = nodes * state["machines"][flags["machine-type"]]
    limit, usage = state["quotas"]["CPUS"]
    if cpus > limit - usage:
        raise Failed(
            "ResponseError: code=403, message=Insufficient regional quota to satisfy request: "
            f"resource \"CPUS\": request requires '{cpus}.0' and is short "
            f"'{cpus - limit + usage}.0'. project has a quota of '{limit}.0'."
        )
    labels = dict(each.split("=") for each in flags["labels"].split(","))
    server = state["apis_of_clusters"].get(name) or state["apis_of_clusters"].get("*") or {}
    state["clusters"][name] = {
        "name": name,
        "location": location,
        "status": "PROVISIONING",
        "currentMasterVersion": flags.get("cluster-version") or state["versions"][0],
        "currentNodeCount": 0,
        "resourceLabels": labels,
        "endpoint": server.get("endpoint", "192.0.2.1"),
        "masterAuth": {"clusterCaCertificate": server.get("authority", "")},
        "nodes": nodes,
        "breaks": state["breaks"],
        "busy_until": time.time() + state["make_seconds"],
    }
    state["breaks"] = ""
    return operation("CREATE_CLUSTER")


def existing(state: State, names: list[str], flags: Mapping[str, str]) -> State:
    require(state, "container", "container.googleapis.com", "Kubernetes Engine API")
    location, (name,) = check_place(state, flags), names
    cluster: State | None = state["clusters"].get(name)
    if cluster is None or cluster["location"] != location:
        raise Failed(f"ResponseError: code=404, message=Not found: {path(location, name)}.")
    if cluster["status"] in ("PROVISIONING", "RECONCILING", "STOPPING"):
        raise Failed(
            "ResponseError: code=400, message=Cluster is running incompatible operation "
            "operation-1700000000000-abc."
        )
    return cluster


def resize_cluster(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    cluster = existing(state, names, flags)
    if flags["node-pool"] != "default-pool":
        raise Failed(f"No node pool named [{flags['node-pool']}].")
    per_zone = int(flags["num-nodes"])
    cluster.update(
        status="RECONCILING",
        nodes=per_zone if "zone" in flags else per_zone * 3,
        busy_until=time.time() + state["change_seconds"],
    )
    return operation("SET_NODE_POOL_SIZE")


def delete_cluster(state: State, names: list[str], flags: Mapping[str, str]) -> Any:
    cluster = existing(state, names, flags)
    cluster.update(status="STOPPING", busy_until=time.time() + state["change_seconds"])
    return operation("DELETE_CLUSTER")


def path(location: str, name: str) -> str:
    return f"projects/shop-1/locations/{location}/clusters/{name}"


def operation(kind: str) -> Any:
    return {"name": "operation-1700000000000-abc", "operationType": kind, "status": "RUNNING"}


ANSWERS = {
    "auth print-access-token": print_token,
    "projects describe": describe_project,
    "container get-server-config": server_config,
    "compute machine-types describe": describe_machine,
    "compute regions describe": describe_region,
    "container clusters list": list_clusters,
    "container clusters describe": describe_cluster,
    "container clusters create": create_cluster,
    "container clusters resize": resize_cluster,
    "container clusters delete": delete_cluster,
}
