"""Applies the limits to the library requests, whose own timeouts restart with every byte."""

from __future__ import annotations

from typing import Any

from requests.adapters import HTTPAdapter

from k8s_ucp.responses.limits import bound


class BoundedAdapter(HTTPAdapter):
    """Sends requests whose responses are read within the limits of `bounded`."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        bound(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        if not proxy.lower().startswith("socks"):  # These have pools of their own.
            bound(manager)
        return manager
