"""kwokctl, which makes and starts the processes of an embedded control plane.

It is told everything (ports, programs, addresses), so it downloads nothing and chooses nothing. It
starts processes and returns at once; waiting for them is done in provider.py, at less cost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from k8s_ucp import process
from k8s_ucp.clusters.embedded.folder import ClusterFolder
from k8s_ucp.clusters.embedded.processes import MARK, forget_strangers
from k8s_ucp.clusters.embedded.stages import write_stages
from k8s_ucp.errors import CommandFailed, DeadlineExceeded, UcpError
from k8s_ucp.workspace import write_private_file

ADDRESS = "127.0.0.1"


def write_settings(folder: ClusterFolder, settings: Mapping[str, Any]) -> None:
    """Write the configuration for `create`."""
    write_private_file(folder.kwok_config, json.dumps(settings, indent=1) + "\n")


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

    programs: paths of what kwokctl runs and of `true`. token: of this cluster alone; etcd's own
    identity follows from it. version: of Kubernetes, with its v. gogc: how far Go lets the API
    server's memory grow, in percent of what is in use.
    """
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": {
            "runtime": "binary",
            "bindAddress": ADDRESS,
            # It picks flags and feature gates by it; its own default is that of its release.
            "kubeVersion": version,
            # Not opened, see _SOCKETS; left out, kwokctl would look for free ones.
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
            # It would run kubectl five times a second until the server answers, 0.1 s of CPU each.
            # With a program that always succeeds it returns as soon as all is started.
            "kubectlBinary": str(programs["true"]),
        },
        "componentsPatches": [
            *({"name": name, "extraArgs": _replaced(each)} for name, each in _SOCKETS.items()),
            {
                "name": "etcd",
                "extraArgs": _added({**_NO_FOLLOWERS, "initial-cluster-token": token}),
                "extraEnvs": _collecting(_ETCD_GOGC),
            },
            *(
                {"name": name, "extraArgs": _added({**_ALONE, **_serving(folder)})}
                for name in _CONTROLLERS
            ),
            {
                "name": "kwok-controller",
                "extraArgs": _replaced({**_NO_LEASE, "config": str(folder.stages)}),
                "extraEnvs": _collecting(_KWOK_GOGC),
            },
            {
                "name": "kube-controller-manager",
                "extraArgs": [*_replaced(_LONG_GRACE), *_added({**_FEWER, **_COUNTING})],
                "extraEnvs": _collecting(_MANAGER_GOGC),
            },
            {"name": "kube-apiserver", "extraArgs": _added(_HERE), "extraEnvs": _collecting(gogc)},
        ],
    }


# etcd has no users here, so on a port any user of the machine could read every Secret from it. As
# etcd writes them, these name sockets in the folder that it and the API server work in, which is
# private; being relative they never meet the 107 bytes that a socket's path may have.
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

# etcd would hold its last 5000 writes in memory, kinds among them, for members that lag behind.
_NO_FOLLOWERS: Mapping[str, str] = {"snapshot-catchup-entries": "100"}

# There is one of each: electing a leader would cost seconds at the start and writes for ever, and
# both would end themselves when etcd is away for a moment.
_CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
_ALONE: Mapping[str, str] = {"leader-elect": "false"}

# A node's lease outlives the kwok that held it by 200 s, and its successor is a stranger to it: for
# so long no new pod would become Ready after a restart. Without leases kwok tells of a node every
# ten minutes only; by then the controller-manager would have declared node and pods not ready.
_NO_LEASE: Mapping[str, str] = {"node-lease-duration-seconds": "0"}
_LONG_GRACE: Mapping[str, str] = {"node-monitor-grace-period": "87600h0m0s"}

# Without metrics the first would call every autoscaler broken; a stage gives them their numbers. No
# kubelet attaches volumes; and what the type check of policies says nobody reads, though it takes
# 7 MiB.
_OFF = (
    "horizontal-pod-autoscaler-controller",
    "persistentvolume-attach-detach-controller",
    "validatingadmissionpolicy-status-controller",
)
_FEWER: Mapping[str, str] = {"controllers": ",".join(["*", *(f"-{each}" for each in _OFF)])}

# A quota that is as new as the kinds it counts refuses them until it is looked at again: by default
# for up to five minutes, in which a new topology's teams could claim nothing.
_COUNTING: Mapping[str, str] = {"resource-quota-sync-period": "15s"}

# kwok holds the whole API group of each kind that it plays, and none of them has much to do: Go
# collects more often, so that with the stages they take no more memory than without.
_KWOK_GOGC, _MANAGER_GOGC, _ETCD_GOGC = 25, 50, 50

# Bound to loopback alone, it looks for another address to tell clients of, and ends itself on a
# machine without a network. As loopback can't be an endpoint of the Service `kubernetes`, nobody
# would get it there; simulated pods ask for none.
_HERE: Mapping[str, str] = {"advertise-address": ADDRESS, "endpoint-reconciler-type": "none"}


def _serving(folder: ClusterFolder) -> dict[str, str]:
    """What controllers serve with. Without it each makes two RSA keys as it starts: 0.1 s of CPU.

    The API server and kwok are told the same by kwokctl.
    """
    return {
        "tls-cert-file": str(folder.certificate("admin.crt")),
        "tls-private-key-file": str(folder.certificate("admin.key")),
    }


def _added(arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in arguments.items()]


def _replaced(arguments: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{**each, "override": True} for each in _added(arguments)]


def _collecting(gogc: int) -> list[dict[str, str]]:
    return [{"name": "GOGC", "value": str(gogc)}]


def create(folder: ClusterFolder, *, defined: bool, timeout: float) -> None:
    """Start the processes of a new cluster. Raises UcpError, DeadlineExceeded.

    defined: its definition is written; else kwokctl makes it of the settings.
    """
    write_stages(folder, kinds=())
    if defined:
        _call(folder, "start", [], timeout)
    else:
        _call(folder, "create", ["--kubeconfig", ""], timeout)


def start(folder: ClusterFolder, *, timeout: float) -> None:
    """Start the processes that are down, and no others, and none twice.

    Raises UcpError, DeadlineExceeded.
    """
    forget_strangers(folder)
    _call(folder, "start", [], timeout)


def set_version(folder: ClusterFolder, before: str, after: str) -> None:
    """Tell kwokctl which Kubernetes a cluster runs, with its v."""
    file = folder.home / "kwok.yaml"
    found = text = file.read_text("utf-8")
    for old, new in ((before, after), (before.removeprefix("v"), after.removeprefix("v"))):
        text = re.sub(rf"(?m)^( *(kubeVersion|version): ){re.escape(old)}$", rf"\g<1>{new}", text)
    if text != found:
        write_private_file(file, text)


def update(folder: ClusterFolder, kinds: Collection[str] | None) -> list[str]:
    """Bring a cluster's settings up to date: for its kinds, and where an older version made it.

    kinds: of the Gateway API, None where the API server can't be asked. Returns the components
    that have to start again to follow.
    """
    changed = ["kwok-controller"] if write_stages(folder, kinds) else []
    file = folder.home / "kwok.yaml"
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return changed
    after = updated(text, folder)
    if after != text:
        write_private_file(file, after)
        changed = ["kube-controller-manager", "kwok-controller"]
    return changed


def updated(text: str, folder: ClusterFolder) -> str:
    """What kwokctl keeps of a cluster's components, as this version would have it."""
    # Of all components only the API server has the first argument, and so on.
    for after, arguments in (("etcd-prefix", _HERE), ("node-monitor-grace-period", _FEWER)):
        missing = [name for name in arguments if not re.search(rf"^ *- '?--{name}=", text, re.M)]
        more = "".join(rf"\n\g<1>'--{name}={arguments[name]}'" for name in missing)
        text = re.sub(rf"^( *- )'?--{after}=.*$", rf"\g<0>{more}", text, count=1, flags=re.M)
    return text.replace(f"--config={folder.home / 'kwok.yaml'}", f"--config={folder.stages}")


def _call(folder: ClusterFolder, verb: str, arguments: list[str], timeout: float) -> None:
    # Nothing of the user's environment: secrets may be in it, and the processes inherit this one.
    # An empty PATH keeps kwokctl from using a kubectl it finds there.
    environment = {MARK: str(folder.root), "HOME": str(folder.root), "PATH": ""}
    kwokctl = [str(folder.kwokctl), verb, "cluster", "--name", folder.name, *arguments]
    try:
        process.run([*_PRIVATELY, *kwokctl], timeout=timeout, env=environment, cwd=folder.root)
    except DeadlineExceeded as error:
        what = f"`kwokctl {verb} cluster` of {folder.name}"
        raise DeadlineExceeded(what, timeout, error.last_state) from error
    except CommandFailed as error:
        raise UcpError(
            f"kwokctl failed to {verb} cluster {folder.name}: {explain(error.output)}"
        ) from error


_PRIVATELY = ("/bin/sh", "-c", 'umask 077; exec "$0" "$@"')
"""Keys, logs and sockets become the user's alone: kwokctl and etcd would let a group in."""


def explain(output: str) -> str:
    """The errors out of kwokctl's log lines; all of it where none are found."""
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
