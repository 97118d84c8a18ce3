"""Limits the size of responses for client libraries of forges, which read them whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from k8s_ucp.gitops.forge import base


class LimitedAdapter(HTTPAdapter):
    """Sends requests whose responses have at most base.LARGEST bytes, also after unpacking.

    Reading a larger one raises ForgeFailed.
    """

    def send(
        self, request: requests.PreparedRequest, *arguments: Any, **options: Any
    ) -> requests.Response:
        response = super().send(request, *arguments, **options)
        response.raw = _LimitedContent(response.raw, urlsplit(str(request.url)).netloc)
        return response


class _LimitedContent:
    def __init__(self, raw: Any, where: str) -> None:
        self._raw, self._where = raw, where

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amount: int, **options: Any) -> Iterator[bytes]:
        size = 0
        for part in self._raw.stream(amount, **options):
            size += len(part)
            if size > base.LARGEST:
                self._raw.close()
                raise base.too_large(self._where)
            yield part
