"""Secrets that request a generated password: parsing and filling them. Pure.

The repository (or a Composition) declares the Secret with the label `k8s-ucp.io/generate: password`
and without the key. The key has its own field manager, so that neither Argo CD nor Crossplane
removes it; an existing one is never changed.
"""

from __future__ import annotations

import base64
import secrets
import string

from k8s_ucp import names
from k8s_ucp.kube import SECRET, Object, labels_of

KEY = "password"
LENGTH = 40
"""Letters and digits only, since clouds differ in the other characters that they accept."""
MANAGER = "k8s-ucp-passwords"


def generate() -> str:
    """A new password."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(LENGTH))


def lacks(secret: Object) -> bool:
    """Whether it requests a password, has none, and isn't being deleted."""
    return (
        labels_of(secret).get(names.GENERATE) == KEY
        and "deletionTimestamp" not in secret["metadata"]
        and KEY not in (secret.get("data") or {})
    )


def filled(secret: Object, password: str) -> Object:
    """The object to apply: adds the password to exactly this version of the Secret."""
    metadata = secret["metadata"]
    data = {KEY: base64.b64encode(password.encode()).decode()}
    item = SECRET.object(metadata["name"], metadata["namespace"], data=data)
    item["metadata"] |= {each: metadata[each] for each in ("uid", "resourceVersion")}
    return item


def without_values(secret: Object) -> Object:
    """For the informer: keeps the keys of the data without their values."""
    return {**secret, "data": dict.fromkeys(secret.get("data") or {}, "")}
