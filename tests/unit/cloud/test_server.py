"""What the simulated cloud's process caches."""

from __future__ import annotations

import pytest
from botocore.loaders import JSONFileLoader, Loader, create_loader

from k8s_ucp.cloud.server import read_endpoints_once


def test_endpoints_are_read_once_and_service_models_once_per_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Loader, "FILE_LOADER_CLASS", JSONFileLoader)
    read_endpoints_once()

    first, second = create_loader(), create_loader()

    assert first.load_data("endpoints") is second.load_data("endpoints")
    assert first.load_data("endpoints")["partitions"]
    # Not shared: a client changes the model of its service.
    models = [each.load_service_model("sts", "service-2") for each in (first, second)]
    assert models[0] == models[1]
    assert models[0] is not models[1]
