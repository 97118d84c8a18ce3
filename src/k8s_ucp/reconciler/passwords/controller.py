"""The passwords controller: generates a password, once, for each Secret that requests one.

Databases need a password before they exist, and it must not be in a repository: so it is generated
on the core cluster.

A recreated core cluster gets its passwords back from the backup. Until a start has restored them,
none is generated: existing databases would not accept a new password, which would replace the old
one in the backup.
"""

from __future__ import annotations

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, SECRET, Object
from k8s_ucp.reconciler.backup_content import PASSWORDS as SECTION
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.passwords.password_secret import (
    KEY,
    MANAGER,
    filled,
    generate,
    lacks,
    without_values,
)
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.settings import PASSWORDS
from k8s_ucp.reconciler.runtime.work_queue import BackOff, WorkQueue

WAIT_SECONDS = 1.0
"""Interval of checks whether the backup was restored."""


class PasswordsController(Controller):
    """Fills in one Secret at a time."""

    name = PASSWORDS
    most = 1

    def __init__(self, runtime: Runtime) -> None:
        self.queue = WorkQueue(BackOff(start=1.0, cap=30.0))
        self._kube = runtime.kube
        self._log = runtime.log
        label = f"{names.GENERATE}={KEY}"
        self._watches = tuple(
            runtime.watch(WatchSpec(SECRET, each, labels=label, keep=without_values))
            for each in runtime.settings.password_namespaces
        )
        for each in self._watches:
            each.listen(self._changed)

    def watches(self) -> tuple[Informer, ...]:
        return self._watches

    def _changed(self, _: Object | None, after: Object | None) -> None:
        if after is not None and lacks(after):
            self.queue.add(f"{after['metadata']['namespace']}/{after['metadata']['name']}")

    def reconcile(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        secret = self._kube.find(SECRET, name, namespace)
        if secret is None or not lacks(secret):
            return None
        if not self._is_restored():
            return WAIT_SECONDS
        self._kube.apply(filled(secret, generate()), manager=MANAGER, force=False)
        self._log.info("password made", secret=key)
        return None

    def _is_restored(self) -> bool:
        noted = self._kube.find(CONFIG_MAP, names.RESTORED, names.CLUSTERS_NAMESPACE)
        return SECTION in ((noted or {}).get("data") or {})
