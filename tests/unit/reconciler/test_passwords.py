"""Generated passwords: created once, never shown, never changed."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any, cast

import pytest

from k8s_ucp import names
from k8s_ucp.kube import CONFIG_MAP, Kind
from k8s_ucp.reconciler.controller import Runtime
from k8s_ucp.reconciler.passwords import password_secret
from k8s_ucp.reconciler.passwords.controller import PasswordsController


def secret(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "quotes-stage-connection",
            "namespace": "ucp-clusters",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"k8s-ucp.io/generate": "password"},
            **metadata,
        },
        **({"data": data} if data is not None else {}),
    }


def test_a_labeled_secret_without_a_password_needs_one() -> None:
    assert password_secret.lacks(secret())
    assert password_secret.lacks(secret({"port": "NTQzMg=="}))


@pytest.mark.parametrize(
    "item",
    [
        secret({"password": "bWluZQ=="}),
        secret(labels={}),
        secret(labels=None),
        secret(labels={"k8s-ucp.io/generate": "certificate"}),
        secret(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
)
def test_other_secrets_get_no_password(item: dict[str, Any]) -> None:
    assert not password_secret.lacks(item)


def test_only_the_password_is_applied_with_the_resource_version_that_was_read() -> None:
    item = password_secret.filled(secret({"port": "NTQzMg=="}), "pw")
    assert item["data"] == {"password": base64.b64encode(b"pw").decode()}
    assert item["metadata"]["resourceVersion"] == "7"
    assert "labels" not in item["metadata"]


class Core:
    """An API server with one Secret that needs a password, and perhaps the record of a restore."""

    def __init__(self) -> None:
        self.restored: dict[str, str] | None = None
        self.applied: list[Any] = []

    def find(self, kind: Kind, name: str, namespace: str) -> Any:
        if kind == CONFIG_MAP:
            assert (name, namespace) == (names.RESTORED, names.CLUSTERS_NAMESPACE)
            return None if self.restored is None else {"data": self.restored}
        return secret()

    def apply(self, item: Any, **_: Any) -> None:
        self.applied.append(item)


def test_no_password_is_generated_before_the_backup_is_restored() -> None:
    """A new one would replace the old one, which a database still uses."""
    core, log = Core(), SimpleNamespace(info=lambda *_, **__: None)
    settings = SimpleNamespace(password_namespaces=())
    runtime = SimpleNamespace(kube=core, log=log, settings=settings)
    controller = PasswordsController(cast("Runtime", runtime))
    for core.restored in (None, {}, {"externalNames": "yes"}):
        assert controller.reconcile("ucp-clusters/quotes-stage-connection") is not None
        assert not core.applied
    core.restored = {"passwords": "yes"}
    assert controller.reconcile("ucp-clusters/quotes-stage-connection") is None
    (made,) = core.applied
    assert len(base64.b64decode(made["data"]["password"])) == password_secret.LENGTH


def test_passwords_have_characters_and_length_that_every_cloud_accepts() -> None:
    made = {password_secret.generate() for _ in range(50)}
    assert len(made) == 50
    assert all(len(each) == 40 and each.isalnum() and each.isascii() for each in made)


def test_the_watch_keeps_no_passwords_in_memory() -> None:
    kept = password_secret.without_values(secret({"password": "bWluZQ=="}))
    assert kept["data"] == {"password": ""}
