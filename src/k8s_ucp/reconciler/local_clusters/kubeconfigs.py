"""The kubeconfig of a LocalCluster, as a Secret for programs and a private file for people."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from k8s_ucp import names
from k8s_ucp.kube import SECRET, Kube, Object
from k8s_ucp.reconciler.access.shared_informers import SharedInformers
from k8s_ucp.reconciler.local_clusters.rules import SecretState, compare, kubeconfig_secret, owned
from k8s_ucp.reconciler.runtime.logs import Log
from k8s_ucp.workspace import make_private_folder, write_private_file


class Kubeconfigs:
    """Writes and repairs Secret and file, and deletes them if they are ours."""

    def __init__(
        self, kube: Kube, informers: SharedInformers, folder: Path | None, log: Log
    ) -> None:
        self._kube = kube
        self._informers = informers
        self._folder = folder
        self._log = log

    def write(
        self,
        item: Object,
        config: Mapping[str, Any],
        shared: Mapping[str, Any],
        version: str | None,
    ) -> bool:
        """Update Secret and file; False if a Secret of that name exists that isn't ours.

        config: for programs on this machine; shared: for users of the Secret.
        """
        desired = kubeconfig_secret(item, shared, version)
        metadata = desired["metadata"]
        found = self._informers.source(f"{metadata['namespace']}/{metadata['name']}")
        if compare(found, desired) is not SecretState.CURRENT:
            # The informer shows sources only, and may lag, so check the live object.
            found = self._kube.find(SECRET, metadata["name"], metadata["namespace"])
            state = compare(found, desired)
            if state is SecretState.FOREIGN:
                return False
            if state is not SecretState.CURRENT:
                self._write_secret(found, desired)
        self._write_file(item["metadata"]["name"], config)
        return True

    def remove(self, item: Object) -> None:
        """Delete Secret and file after the cluster was deleted."""
        metadata = item["metadata"]
        name = names.kubeconfig_secret(metadata["name"])
        found = self._kube.find(SECRET, name, metadata["namespace"])
        if found and owned(found, metadata["name"]):
            uid = found["metadata"]["uid"]
            self._kube.delete(SECRET, name, metadata["namespace"], uid=uid)
        if self._folder:
            self._file(self._folder, metadata["name"]).unlink(missing_ok=True)

    def _write_secret(self, found: Object | None, desired: Object) -> None:
        metadata = desired["metadata"]
        if found is None:
            self._kube.create(desired)
        else:
            change = {
                "metadata": {
                    "resourceVersion": found["metadata"]["resourceVersion"],
                    "labels": metadata["labels"],
                    "ownerReferences": metadata["ownerReferences"],
                },
                "data": desired["data"],
            }
            self._kube.patch(SECRET, metadata["name"], metadata["namespace"], change)
        self._log.info("kubeconfig written", secret=metadata["name"])

    def _write_file(self, cluster: str, config: Mapping[str, Any]) -> None:
        if self._folder is None:
            return
        file = self._file(self._folder, cluster)
        # JSON is also YAML, and much faster to write.
        text = json.dumps(config, indent=2, sort_keys=True) + "\n"
        try:
            if file.read_text(encoding="utf-8") == text:
                return
        except OSError:
            pass
        make_private_folder(self._folder)
        write_private_file(file, text)

    @staticmethod
    def _file(folder: Path, cluster: str) -> Path:
        return folder / f"{cluster}.yaml"
