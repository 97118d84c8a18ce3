"""An API server in memory, for tests of mirrors: resource versions, conflicts, JSON patches."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from k8s_ucp.kube import Conflict, Invalid, Kind, NotFound, Object

_KINDS = {"secrets": "Secret", "configmaps": "ConfigMap", "syncers": "Syncer"}


class FakeApi:
    """Objects by (plural, namespace, name). Serves the requests of Writer and DeletionGuard."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self._numbers = itertools.count(1)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content: str = "",
        timeout: float = 0,
    ) -> Any:
        parts = path.split("/namespaces/", 1)[1].split("/")
        namespace, plural = parts[0], parts[1]
        if len(parts) == 2:
            if method == "GET":
                return {"items": self.all(plural, namespace)}
            return self._create(plural, namespace, body)
        key = (plural, namespace, parts[2])
        live = self.objects.get(key)
        if live is None:
            raise NotFound(f'{plural} "{parts[2]}" not found', status=404)
        if method == "GET":
            return copy.deepcopy(live)
        if method == "DELETE":
            wanted = (body or {}).get("preconditions") or {}
            self._check(live, wanted.get("resourceVersion"), wanted.get("uid"))
            del self.objects[key]
            return {}
        after = copy.deepcopy(body) if method == "PUT" else patched(live, body)
        self._check(live, after["metadata"].get("resourceVersion"), after["metadata"].get("uid"))
        if live.get("immutable") and after.get("data") != live.get("data"):
            raise Invalid("field is immutable when `immutable` is set", status=422)
        if live.get("type") != after.get("type"):
            raise Invalid("type: field is immutable", status=422)
        return self._store(key, after)

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        found: Object = self.request("GET", kind.path(namespace, name))
        return found

    def find(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        try:
            return self.get(kind, name, namespace)
        except NotFound:
            return None

    def all(self, plural: str, namespace: str) -> list[Object]:
        return [
            copy.deepcopy(item)
            for (kind, where, _), item in self.objects.items()
            if (kind, where) == (plural, namespace)
        ]

    def put(self, plural: str, item: Object) -> Object:
        """Create or replace the object, as an administrator would."""
        metadata = item["metadata"]
        key = (plural, metadata["namespace"], metadata["name"])
        live = self.objects.get(key)
        kept = {"uid": live["metadata"]["uid"]} if live else {}
        return self._store(key, {**item, "metadata": {**metadata, **kept}})

    def _create(self, plural: str, namespace: str, body: Object) -> Object:
        key = (plural, namespace, body["metadata"]["name"])
        if key in self.objects:
            raise Conflict("already exists", status=409)
        return self._store(key, copy.deepcopy(body))

    def _store(self, key: tuple[str, str, str], item: Object) -> Object:
        number = next(self._numbers)
        metadata = {**item["metadata"], "namespace": key[1], "resourceVersion": str(number)}
        metadata.setdefault("uid", f"uid-{number}")
        item = {**item, "apiVersion": "v1", "kind": _KINDS[key[0]], "metadata": metadata}
        if key[0] == "secrets":
            item["type"] = item.get("type") or "Opaque"
        self.objects[key] = item
        return copy.deepcopy(item)

    @staticmethod
    def _check(live: Object, version: str | None, uid: str | None) -> None:
        metadata = live["metadata"]
        if version not in (None, metadata["resourceVersion"]) or uid not in (None, metadata["uid"]):
            raise Conflict("changed", status=409)


def patched(live: Object, steps: list[Object]) -> Object:
    """A copy of the object with the JSON patch applied. Raises Invalid."""
    after = copy.deepcopy(live)
    for step in steps:
        *folders, name = (
            each.replace("~1", "/").replace("~0", "~") for each in step["path"][1:].split("/")
        )
        place = after
        for each in folders:
            if each not in place:
                raise Invalid(f"no {each}", status=422)
            place = place[each]
        if step["op"] in ("replace", "remove") and name not in place:
            raise Invalid(f"no {name}", status=422)
        if step["op"] == "remove":
            del place[name]
        else:
            place[name] = step["value"]
    return after
