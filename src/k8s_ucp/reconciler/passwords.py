"""The passwords controller: a Secret that asks for a password gets one, once, and keeps it.

Databases need a password before they exist, and it may be in no repository. So the repository (or a
Composition) declares the Secret with the label `k8s-ucp.io/generate: password` and without the key;
the key is written here under a field manager of its own, so that neither Argo CD nor Crossplane
takes it away. A key that is there is never changed.
"""

from __future__ import annotations

import base64
import secrets
import string

from k8s_ucp import names
from k8s_ucp.kube import SECRET, Object
from k8s_ucp.reconciler.controller import Controller, Runtime
from k8s_ucp.reconciler.runtime.informer import Informer, WatchSpec
from k8s_ucp.reconciler.runtime.settings import PASSWORDS
from k8s_ucp.reconciler.runtime.work_queue import BackOff, WorkQueue

KEY = "password"
LENGTH = 40
"""Letters and digits only: clouds differ in what else they take."""
MANAGER = "k8s-ucp-passwords"


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
        self._kube.apply(filled(secret, generate()), manager=MANAGER, force=False)
        self._log.info("password made", secret=key)
        return None


def generate() -> str:
    """A new password."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(LENGTH))


def lacks(secret: Object) -> bool:
    """It asks for a password, has none, and isn't on its way out."""
    metadata = secret["metadata"]
    asks = (metadata.get("labels") or {}).get(names.GENERATE) == KEY
    return asks and "deletionTimestamp" not in metadata and KEY not in (secret.get("data") or {})


def filled(secret: Object, password: str) -> Object:
    """What to apply: the password, to this very version of the Secret and no other."""
    metadata = secret["metadata"]
    data = {KEY: base64.b64encode(password.encode()).decode()}
    item = SECRET.object(metadata["name"], metadata["namespace"], data=data)
    item["metadata"] |= {each: metadata[each] for each in ("uid", "resourceVersion")}
    return item


def without_values(secret: Object) -> Object:
    """For the watch: which keys there are, not what is in them."""
    return {**secret, "data": dict.fromkeys(secret.get("data") or {}, "")}
