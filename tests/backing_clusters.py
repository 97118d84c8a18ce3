"""Real API servers that stand in for clusters of other providers; tests share a few of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from k8s_ucp.clusters.existing.adoption import MARK, MARK_NAMESPACE
from k8s_ucp.clusters.existing.provider import ExistingProvider
from k8s_ucp.clusters.user_kubeconfig import UserKubeconfig
from k8s_ucp.kube import CONFIG_MAP, Kube
from tests.control_planes import control_planes, made

if TYPE_CHECKING:
    from k8s_ucp.tools.toolbox import Toolbox

NAMES = ("first", "second", "third")


class Behind(Mapping[str, str]):
    """API server for each cluster name; clusters that exist at the same time get different ones."""

    def __getitem__(self, name: str) -> str:
        return {"kept": "first", "n": "third", "own": "third"}.get(name, "second")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True)
class Backing:
    """configs: admin kubeconfigs by name. kubeconfig: a file with all of them, like a user's."""

    root: Path
    configs: Mapping[str, dict[str, Any]]

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kube config.yaml"

    def existing(self, workspace: str = "one") -> ExistingProvider:
        """The existing provider of a topology in that workspace."""
        return ExistingProvider(
            self.folder(workspace),
            owner=f"owner-{workspace}",
            contexts=Behind(),
            kubeconfig=UserKubeconfig([self.kubeconfig]),
        )

    def folder(self, workspace: str = "one") -> Path:
        return self.root / workspace / "my files" / "existing"

    def marks(self, workspace: str) -> list[str]:
        """Names of the clusters that are marked as used by that workspace."""
        found = []
        for name, config in self.configs.items():
            with contextlib.closing(Kube(config)) as kube:
                mark = kube.find(CONFIG_MAP, MARK, MARK_NAMESPACE)
                if mark and mark["data"]["owner"] == f"owner-{workspace}":
                    found.append(name)
        return found


@contextlib.contextmanager
def backing_clusters(
    root: Path, toolbox: Toolbox, planes: Sequence[str] = NAMES
) -> Iterator[Backing]:
    """Start all control planes and wait until they are ready; they are deleted at the end.

    planes: the ones to create; all other names refer to the last of them.
    """
    with control_planes(root / "planes", toolbox) as found:
        provider = found.provider()
        with ThreadPoolExecutor(len(planes)) as pool:
            list(pool.map(lambda name: made(provider, name), planes))
        behind = {name: name if name in planes else planes[-1] for name in NAMES}
        configs = {name: provider.kubeconfig(plane) for name, plane in behind.items()}
        backing = Backing(root, configs)
        backing.kubeconfig.write_text(json.dumps(merged(backing.configs)))
        yield backing


def merged(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One kubeconfig with a context for each name."""
    whole: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": ""}
    for section, key in (("clusters", "cluster"), ("users", "user")):
        whole[section] = [
            {"name": name, key: dict(config[section][0][key])} for name, config in configs.items()
        ]
    whole["contexts"] = [
        {"name": name, "context": {"cluster": name, "user": name}} for name in configs
    ]
    return whole
