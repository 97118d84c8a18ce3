"""The engines' own workloads for pods placement, from their releases.

They are stored in the core repository beside the CRDs: pinned, applied by `ucp start`, and managed
by Argo CD afterwards. Argo CD runs the same parts as on a host, so without dex and notifications.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from k8s_ucp.clusters.images import from_mirror
from k8s_ucp.components import argocd, crossplane
from k8s_ucp.errors import UcpError
from k8s_ucp.gitops.manifests.helm import template
from k8s_ucp.gitops.render.values import function_package
from k8s_ucp.topology import CrossplaneSettings

FILE = "workloads.yaml"
"""File in each engine's folder of the core repository."""
HELM_SECONDS = 30.0

READY_SECONDS = 2
"""Period of the readiness probes of Argo CD's pods."""

_READINESS = re.compile(
    r"(?P<head>^ +readinessProbe:\n(?: +httpGet:\n)(?: +(?:path|port): .*\n)+)"
    r"(?P<pad> +)initialDelaySeconds: \d+\n +periodSeconds: (?P<period>\d+)\n",
    re.M,
)
"""Matches the probes in Argo CD's manifest, which have no threshold: the default of 3 applies."""
_SERVER = re.compile(r"^ +- /usr/local/bin/argocd-server\n(?P<pad> +)env:\n", re.M)
"""The head of the variables of Argo CD's server in its manifest."""
_LEFT_OUT = ("dex", "notifications")
_NAMESPACED = (
    *("ServiceAccount", "Role", "RoleBinding", "Service"),
    *("Deployment", "StatefulSet", "NetworkPolicy"),
)
_WIDE = ("ClusterRole", "ClusterRoleBinding")
_NO_VERSION = re.compile(
    r"""^( +(?:helm\.sh/chart: crossplane-|app\.kubernetes\.io/version: )["']?)0\.0\.1(["']?)$""",
    re.M,
)
_KIND = re.compile(r"^kind: (\S+)$", re.M)
_NAME = re.compile(r"^  name: (\S+)$", re.M)


def of_argocd(module: Path, *, mirror: str | None = None) -> bytes:
    """Argo CD's workloads, RBAC and network policies from its install manifest. Raises UcpError."""
    text = (module / "manifests/install.yaml").read_text("utf-8")
    found = []
    for document in re.split(r"^---\n", text, flags=re.M):
        kind, name = _KIND.search(document), _NAME.search(document)
        if not kind or not name or any(part in name[1] for part in _LEFT_OUT):
            continue
        if kind[1] in _NAMESPACED:
            found.append(_placed(document, argocd.NAMESPACE))
        elif kind[1] in _WIDE:
            found.append(document)
    if not any("kind: StatefulSet" in each for each in found):
        raise UcpError(f"{module} does not contain Argo CD's manifests", next="ucp tools install")
    # Images are pinned by tag and often loaded already, so only missing ones are pulled.
    joined = _joined(found).replace("imagePullPolicy: Always", "imagePullPolicy: IfNotPresent")
    return from_mirror(_ask_often(_without_cache_moves(joined)), mirror).encode()


def of_crossplane(
    helm: Path,
    module: Path,
    version: str,
    settings: CrossplaneSettings,
    *,
    own_function: bool = False,
    mirror: str | None = None,
) -> bytes:
    """Crossplane's rendered Helm chart. version: of the image, such as `2.4.0`.

    own_function: add the package of our composition function to its cache. Raises HelmFailed.
    """
    arguments = (
        f"--sync-interval={settings.sync_interval}",
        f"--poll-interval={settings.poll_interval}",
        f"--max-concurrent-reconciles={settings.max_reconcile_rate}",
        crossplane.realtime(settings),
    )
    values = {
        "image.tag": f"v{version}",
        "leaderElection": str(settings.leader_election).lower(),
        "rbacManager.deploy": str(settings.rbac_manager).lower(),
        "args": "{" + ",".join(arguments) + "}",
    }
    limits = {"cpu": settings.limits.cpu, "memory": settings.limits.memory}
    values |= {f"resourcesCrossplane.limits.{key}": value for key, value in limits.items() if value}
    options = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    if own_function:
        for name, value in zip(
            ("Volumes", "VolumeMounts"), function_package.volumes(), strict=True
        ):
            options += ["--set-json", f"extra{name}Crossplane={json.dumps(value)}"]
    with tempfile.TemporaryDirectory(prefix="ucp-charts-") as home:
        text = template(
            helm,
            crossplane.NAME,
            module / "cluster/charts/crossplane",
            ["--namespace", crossplane.NAMESPACE, *options],
            home=Path(home),
            timeout=HELM_SECONDS,
        )
    documents = [each for each in re.split(r"^---\n", text, flags=re.M) if _KIND.search(each)]
    if own_function:
        documents.append(function_package.config_map(crossplane.NAMESPACE))
    return from_mirror(with_version(_joined(documents), version), mirror).encode()


def with_version(text: str, version: str) -> str:
    """Set the version in Crossplane's labels: the chart in the sources has 0.0.1."""
    return _NO_VERSION.sub(lambda found: found[1] + version + found[2], text)


def _ask_often(text: str) -> str:
    """Set the period of readiness probes to READY_SECONDS instead of half a minute.

    A server that is not ready at the first probe would otherwise count as not ready until the next,
    and delay everything that waits for it. The time until a pod becomes unready stays the same.
    """

    def changed(found: re.Match[str]) -> str:
        pad, period = found["pad"], int(found["period"])
        failures = max(3, period * 3 // READY_SECONDS)
        return (
            f"{found['head']}{pad}initialDelaySeconds: 1\n{pad}periodSeconds: {READY_SECONDS}\n"
            f"{pad}failureThreshold: {failures}\n"
        )

    return _READINESS.sub(changed, text)


def _without_cache_moves(text: str) -> str:
    name, value = argocd.WEBHOOK_REFRESHES_ONLY
    added = rf'\g<0>\g<pad>- name: {name}\n\g<pad>  value: "{value}"\n'
    return _SERVER.sub(added, text)


def _placed(document: str, namespace: str) -> str:
    """Set the namespace, which the install manifest leaves to whoever applies it."""
    metadata = f"metadata:\n  namespace: {namespace}\n"
    return re.sub(r"^metadata:\n", metadata, document, count=1, flags=re.M)


def _joined(documents: Iterable[str]) -> str:
    return "".join("---\n" + each.strip("\n") + "\n" for each in documents)
