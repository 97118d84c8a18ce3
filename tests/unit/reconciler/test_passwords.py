"""Passwords: made once, never shown, never changed."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from k8s_ucp.reconciler.passwords import password_secret


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


def test_one_without_a_password_asks() -> None:
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
def test_others_are_left_alone(item: dict[str, Any]) -> None:
    assert not password_secret.lacks(item)


def test_what_is_applied_is_the_password_alone_and_to_this_version() -> None:
    item = password_secret.filled(secret({"port": "NTQzMg=="}), "pw")
    assert item["data"] == {"password": base64.b64encode(b"pw").decode()}
    assert item["metadata"]["resourceVersion"] == "7"
    assert "labels" not in item["metadata"]


def test_every_cloud_takes_them() -> None:
    made = {password_secret.generate() for _ in range(50)}
    assert len(made) == 50
    assert all(len(each) == 40 and each.isalnum() and each.isascii() for each in made)


def test_the_watch_keeps_no_values() -> None:
    kept = password_secret.without_values(secret({"password": "bWluZQ=="}))
    assert kept["data"] == {"password": ""}
