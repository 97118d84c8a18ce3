"""The reconciler's logs contain no credentials, whatever an error's text contains."""

from __future__ import annotations

import json
from io import StringIO

import pytest

from k8s_ucp.reconciler.runtime.logs import Log

BEGIN = "-----BEGIN RSA" + " PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        ("GET https://me:hunter2@example.org/x: 403", "GET https://…@example.org/x: 403"),
        ("ssh://git:hunt@er2@host/x", "ssh://…@host/x"),
        ("https://example.org/a@b", "https://example.org/a@b"),
        ("Authorization: Bearer hunter2", "Authorization: Bearer …"),
        ("Authorization: Basic aHVudGVyMg==", "Authorization: Basic …"),
        ("Secret src/basic does not exist", "Secret src/basic does not exist"),
        ("remote: ghp_" + "hunter2" * 5 + " expired", "remote: … expired"),
        ("401 for eyJhbGciOiJI.hunter2.sig", "401 for …"),
        (f"{BEGIN}\nhunter2\n-----END RSA PRIVATE KEY----- is used", "… is used"),
        (f"cut off: {BEGIN}\nhunter2\nhunter2", "cut off: …"),
    ],
)
def test_credentials_are_redacted(error: str, logged: str) -> None:
    stream = StringIO()
    Log(stream).error("failed", error=error, tried=[error])
    line = json.loads(stream.getvalue())
    assert (line["error"], line["tried"]) == (logged, [logged])
