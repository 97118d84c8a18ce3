"""Runs kwokctl, which creates and starts the processes of an embedded control plane.

It is given everything (ports, programs, addresses), so it downloads nothing and chooses nothing. It
starts processes and returns at once; provider.py waits for them, which is cheaper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.processes import FOLDER_VARIABLE, clean_pid_files
from k8s_ucp.clusters.embedded.stages import write_stages
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, UcpError
from k8s_ucp.loopback import ADDRESS
from k8s_ucp.workspace import write_private_json


def write_settings(folder: ClusterFolder, settings: Mapping[str, Any]) -> None:
    """Write the configuration for `create`."""
    write_private_json(folder.kwok_config, settings)


def settings(
    folder: ClusterFolder,
    ports: Mapping[str, int],
    programs: Mapping[str, Path],
    token: str,
    *,
    version: str,
    gogc: int,
) -> dict[str, Any]:
    """kwokctl's configuration of one cluster.

    programs: paths of kwokctl's programs and of `true`. token: unique to this cluster; etcd derives
    its identity from it. version: of Kubernetes, with "v". gogc: GOGC of the API server, the growth
    of its heap in percent.
    """
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": {
            "runtime": "binary",
            "bindAddress": ADDRESS,
            # kwokctl selects flags and feature gates by it; the default depends on its release.
            "kubeVersion": version,
            # Not opened, see _SOCKETS; without values, kwokctl would look for free ports.
            "etcdPort": 1,
            "etcdPeerPort": 1,
            "kubeApiserverPort": ports["kube-apiserver"],
            "kubeControllerManagerPort": ports["kube-controller-manager"],
            "kubeSchedulerPort": ports["kube-scheduler"],
            "kwokControllerPort": ports["kwok-controller"],
            "etcdBinary": str(programs["etcd"]),
            "kubeApiserverBinary": str(programs["kube-apiserver"]),
            "kubeControllerManagerBinary": str(programs["kube-controller-manager"]),
            "kubeSchedulerBinary": str(programs["kube-scheduler"]),
            "kwokControllerBinary": str(programs["kwok"]),
            # It would run kubectl five times a second until the server responds, 0.1 s of CPU each.
            # With a program that always succeeds it returns as soon as everything is started.
            "kubectlBinary": str(programs["true"]),
        },
        "componentsPatches": _patches(folder, token, gogc),
    }


def _patches(folder: ClusterFolder, token: str, gogc: int) -> list[dict[str, Any]]:
    """Arguments and variables that kwokctl has no options for, by component."""
    return [
        *({"name": name, "extraArgs": _overridden_args(each)} for name, each in _SOCKETS.items()),
        {
            "name": "etcd",
            "extraArgs": _extra_args(
                {**_SINGLE_MEMBER, **_QUICK_ELECTION, "initial-cluster-token": token}
            ),
            "extraEnvs": _gogc(_ETCD_GOGC),
        },
        *(
            {"name": name, "extraArgs": _extra_args({**_NO_LEADER_ELECTION, **_serving(folder)})}
            for name in _CONTROLLERS
        ),
        {
            "name": "kwok-controller",
            "extraArgs": _overridden_args({**_NO_NODE_LEASES, "config": str(folder.stages)}),
            "extraEnvs": _gogc(_KWOK_GOGC),
        },
        {
            "name": "kube-controller-manager",
            "extraArgs": [
                *_overridden_args(_NODE_GRACE),
                *_extra_args({**ENABLED_CONTROLLERS, **_QUOTA_RESYNC}),
            ],
            "extraEnvs": _gogc(_MANAGER_GOGC),
        },
        {
            "name": "kube-apiserver",
            "extraArgs": _extra_args(API_SERVER_ARGUMENTS),
            "extraEnvs": _gogc(gogc),
        },
    ]


# etcd has no authentication here, so on a port any user of the machine could read every Secret. In
# etcd's notation these are sockets in the working folder of etcd and the API server, which is
# private; relative paths never exceed the limit of 107 bytes for a socket's path.
_CLIENT, _PEER = "unix://client.sock", "unix://peer.sock"
_SOCKETS: Mapping[str, Mapping[str, str]] = {
    "etcd": {
        "listen-client-urls": _CLIENT,
        "advertise-client-urls": _CLIENT,
        "listen-peer-urls": _PEER,
        "initial-advertise-peer-urls": _PEER,
        "initial-cluster": f"node0={_PEER}",
    },
    "kube-apiserver": {"etcd-servers": _CLIENT},
}

# etcd would keep its last 5000 writes in memory, CRDs included, for members that lag behind.
_SINGLE_MEMBER: Mapping[str, str] = {"snapshot-catchup-entries": "100"}

# A lone member, too, elects itself after a random part of the election timeout: up to a second by
# default, in which the API server waits. Milliseconds; etcd requires a ratio of five.
_QUICK_ELECTION: Mapping[str, str] = {"heartbeat-interval": "50", "election-timeout": "250"}

# There is one replica of each: leader election would cost seconds at the start and constant writes,
# and both would exit if etcd is unavailable for a moment.
_CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
_NO_LEADER_ELECTION: Mapping[str, str] = {"leader-elect": "false"}

# A node's lease lasts 200 s longer than the kwok that held it, and the next kwok has another
# identity: no new pod would become Ready for so long after a restart. Without leases, kwok updates
# a node only every ten minutes, so the grace period of the controller manager must be longer.
_NO_NODE_LEASES: Mapping[str, str] = {"node-lease-duration-seconds": "0"}
_NODE_GRACE: Mapping[str, str] = {"node-monitor-grace-period": "87600h0m0s"}

# Without metrics the first would report every autoscaler as broken; a stage sets their status. No
# kubelet attaches volumes. Nobody reads the warnings of the policies' type check, which takes 7
# MiB.
_DISABLED_CONTROLLERS = (
    "horizontal-pod-autoscaler-controller",
    "persistentvolume-attach-detach-controller",
    "validatingadmissionpolicy-status-controller",
)
ENABLED_CONTROLLERS: Mapping[str, str] = {
    "controllers": ",".join(["*", *(f"-{each}" for each in _DISABLED_CONTROLLERS)])
}

# A quota that is as new as the kinds that it counts rejects them until its next resync: by default
# that can take five minutes, in which the teams of a new topology could create no claims.
_QUOTA_RESYNC: Mapping[str, str] = {"resource-quota-sync-period": "15s"}

# None of the three has much to do, so a lower GOGC saves memory.
_KWOK_GOGC, _MANAGER_GOGC, _ETCD_GOGC = 25, 50, 50

# The API server listens on loopback only, so it would look for another address to advertise, and
# exit on a machine without a network. A loopback address can't be an endpoint of the Service
# `kubernetes`; simulated pods don't need one. Nor do they serve the webhooks of their apps: one
# that must not fail would reject everything that it is for, such as all pods.
API_SERVER_ARGUMENTS: Mapping[str, str] = {
    "advertise-address": ADDRESS,
    "endpoint-reconciler-type": "none",
    "disable-admission-plugins": "MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
}


def _serving(folder: ClusterFolder) -> dict[str, str]:
    """Serving certificate of the controllers, which otherwise create keys at start: 0.1 s of CPU.

    kwokctl passes the same to the API server and kwok.
    """
    return {
        "tls-cert-file": str(folder.certificate("admin.crt")),
        "tls-private-key-file": str(folder.certificate("admin.key")),
    }


def _extra_args(arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in arguments.items()]


def _overridden_args(arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{**each, "override": True} for each in _extra_args(arguments)]


def _gogc(gogc: int) -> list[dict[str, str]]:
    return [{"name": "GOGC", "value": str(gogc)}]


def create(folder: ClusterFolder, *, defined: bool, timeout: float) -> None:
    """Start the processes of a new cluster. Raises UcpError, DeadlineExceeded.

    defined: its definition is already written; otherwise kwokctl creates it from the settings.
    """
    write_stages(folder, kinds=())
    if defined:
        _call(folder, "start", [], timeout)
    else:
        _call(folder, "create", ["--kubeconfig", ""], timeout)


def start(folder: ClusterFolder, *, timeout: float) -> None:
    """Start only the processes that are down.

    Raises UcpError, DeadlineExceeded.
    """
    clean_pid_files(folder)
    _call(folder, "start", [], timeout)


def _call(folder: ClusterFolder, verb: str, arguments: list[str], timeout: float) -> None:
    # Nothing of the user's environment, which may contain secrets that the processes would inherit.
    # An empty PATH keeps kwokctl from using a kubectl that it finds there.
    environment = {FOLDER_VARIABLE: str(folder.root), "HOME": str(folder.root), "PATH": ""}
    kwokctl = [str(folder.kwokctl), verb, "cluster", "--name", folder.name, *arguments]
    try:
        process.run([*_PRIVATE_UMASK, *kwokctl], timeout=timeout, env=environment, cwd=folder.root)
    except DeadlineExceeded as error:
        what = f"`kwokctl {verb} cluster` of {folder.name}"
        raise DeadlineExceeded(what, timeout, error.last_state) from error
    except CommandFailed as error:
        raise UcpError(
            f"kwokctl failed to {verb} cluster {folder.name}: {explain(error.output)}"
        ) from error


_PRIVATE_UMASK = ("/bin/sh", "-c", 'umask 077; exec "$0" "$@"')
"""Makes keys, logs and sockets private; kwokctl and etcd would give access to the group."""


def explain(output: str) -> str:
    """The errors in kwokctl's JSON log lines; the whole output if there are none."""
    found = []
    for line in output.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("level") == "ERROR":
            reason = str(entry.get("err", "")).strip()
            found.append(f"{entry.get('msg', '')}: {reason}" if reason else str(entry.get("msg")))
    return "; ".join(found) or output.strip() or "no output"
