"""The kinds that an API server has. Servers of others may send anything in place of their lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.kube.connection import REQUEST_SECONDS, Connection
from k8s_ucp.kube.errors import NotFound, Unreachable
from k8s_ucp.kube.kinds import Kind


@dataclass(frozen=True)
class ApiResource:
    """A kind, as a server lists it."""

    kind: Kind
    verbs: frozenset[str]
    categories: frozenset[str]


def api_groups(server: Connection) -> dict[str, list[str]]:
    """{API group: its API versions, the preferred one first}, without the core group.

    Not every kind of a group has the preferred version. Raises KubeError.
    """
    listing = server.request("GET", "/apis")
    try:
        return {str(group["name"]): _versions(group) for group in listing["groups"]}
    except (KeyError, TypeError) as error:
        raise Unreachable(f"{server.server} did not list its API groups (GET /apis)") from error


def group_versions(server: Connection, group: str) -> list[str]:
    """The API versions of one group, the preferred one first.

    Raises KubeError; NotFound if the server lacks the group.
    """
    path = f"/apis/{group}"
    listing = server.request("GET", path)
    try:
        return _versions(listing)
    except (KeyError, TypeError) as error:
        raise Unreachable(f"{server.server} did not list its versions (GET {path})") from error


def api_resources(
    server: Connection, api_version: str, *, timeout: float = REQUEST_SECONDS
) -> list[ApiResource]:
    """The kinds of an API version, such as `v1` or `apps/v1`, without subresources.

    timeout: in seconds. Raises KubeError; NotFound if the server lacks the version.
    """
    path = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
    listing = server.request("GET", path, timeout=timeout)
    try:
        return [
            _resource(api_version, each)
            for each in listing["resources"] or ()
            if "/" not in each["name"]
        ]
    except (KeyError, TypeError) as error:
        raise Unreachable(f"{server.server} did not list its kinds (GET {path})") from error


def kinds_in(
    server: Connection, api_versions: Iterable[str], wanted: Callable[[ApiResource], bool]
) -> list[Kind]:
    """The wanted kinds of an API group, each in the first of its versions that has it.

    Versions that are gone are skipped. Raises KubeError.
    """
    found: dict[str, Kind] = {}
    for version in api_versions:
        try:
            resources = api_resources(server, version)
        except NotFound:
            continue
        for each in resources:
            if wanted(each):
                found.setdefault(each.kind.kind, each.kind)
    return list(found.values())


def _versions(group: Mapping[str, Any]) -> list[str]:
    listed = [group["preferredVersion"], *group["versions"]]
    return list(dict.fromkeys(str(each["groupVersion"]) for each in listed))


def _resource(api_version: str, listed: Mapping[str, Any]) -> ApiResource:
    return ApiResource(
        Kind(api_version, str(listed["kind"]), str(listed["name"]), bool(listed["namespaced"])),
        frozenset(map(str, listed.get("verbs") or ())),
        frozenset(map(str, listed.get("categories") or ())),
    )
