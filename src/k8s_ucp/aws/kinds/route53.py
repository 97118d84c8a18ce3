"""Route 53: hosted zones and their records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from k8s_ucp.aws.kind import AwsKind, Call, Describe, Found, Parameters, by_name, kind_of
from k8s_ucp.managed.external import Declared


def _token(declared: Declared) -> str:
    """Identifies our zone, since several can have the same name."""
    return f"{declared.namespace}/{declared.object_name}"


def _record(declared: Declared) -> dict[str, Any]:
    asked = declared.parameters
    return {
        "Name": asked.get("name"),
        "Type": asked.get("type"),
        "TTL": asked.get("ttl", 300),
        "ResourceRecords": [{"Value": each} for each in asked.get("records") or ()],
    }


def _change(declared: Declared, action: str, record: Found) -> Parameters:
    change = {"Action": action, "ResourceRecordSet": record}
    return {
        "HostedZoneId": declared.parameters.get("zoneId"),
        "ChangeBatch": {"Changes": [change]},
    }


def _from_record(declared: Declared) -> Parameters:
    """One page, which begins with the record: a zone may have more than a page of them."""
    asked = declared.parameters
    return {
        "HostedZoneId": asked.get("zoneId"),
        "StartRecordName": asked.get("name"),
        "StartRecordType": asked.get("type"),
    }


def _is_record(declared: Declared, found: Found) -> bool:
    wanted = _record(declared)
    name = str(wanted["Name"]).rstrip(".")
    return str(found["Name"]).rstrip(".") == name and found["Type"] == wanted["Type"]


def _differs(declared: Declared, found: Found) -> bool:
    wanted = _record(declared)
    return any(wanted[key] != found.get(key) for key in ("TTL", "ResourceRecords"))


def _deleted_record(declared: Declared, found: Found) -> Iterable[Call]:
    yield "ChangeResourceRecordSets", _change(declared, "DELETE", found)


ZONE = AwsKind(
    kind_of("route53", "Zone", "zones"),
    "route53",
    create="CreateHostedZone",
    describe=Describe("GetHostedZone", by_name("Id"), ""),
    lookup=Describe(
        # One page, which begins with the zones of that name.
        "ListHostedZonesByName",
        lambda declared: {"DNSName": declared.parameters.get("name")},
        "HostedZones",
        lambda declared, found: found.get("CallerReference") == _token(declared),
    ),
    delete="DeleteHostedZone",
    delete_ask=by_name("Id"),
    fields={"name": "Name", "comment": "HostedZoneConfig.Comment"},
    more=lambda declared: {"CallerReference": _token(declared)},
    id_at="HostedZone.Id",
    id_key="Id",
    at_provider={"nameServers": "DelegationSet.NameServers"},
)
RECORD = AwsKind(
    kind_of("route53", "Record", "records"),
    "route53",
    create="ChangeResourceRecordSets",
    describe=Describe("ListResourceRecordSets", _from_record, "ResourceRecordSets", _is_record),
    deletion=_deleted_record,
    fields={},
    more=lambda declared: _change(declared, "UPSERT", _record(declared)),
    differs=_differs,
    update="ChangeResourceRecordSets",
    update_ask=lambda declared: _change(declared, "UPSERT", _record(declared)),
    references={"zoneId": "Zone"},
)

KINDS = (ZONE, RECORD)
