"""One kind of AWS resource for the engine: observe, create, recover, update, delete."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from k8s_ucp.aws.backing import SIMULATED, UNBACKED, BackedResource, Backing, BackingState
from k8s_ucp.aws.client import Answer, AwsAccount, ResourceNotFound, accepted
from k8s_ucp.aws.kind import AwsKind, Describe, Found
from k8s_ucp.fence.files import UNGUARDED, Gate
from k8s_ucp.managed.external import ABSENT, CloudFailed, Declared, ExternalObservation
from k8s_ucp.managed.paths import at_path, put_path

OWNER_TAGS = ("crossplane-namespace", "crossplane-name")


@dataclass(frozen=True)
class AwsResource:
    """Implements the protocol External (managed/external.py)."""

    account: AwsAccount
    kind: AwsKind
    backing: Backing | None = None
    """For kinds that have a program."""
    gate: Gate = UNGUARDED
    """Checked before each call: this core may have lost the fence since the reconciliation
    began."""

    @property
    def named_by_us(self) -> bool:
        return self.kind.named_by_us

    @property
    def created_synchronously(self) -> bool:
        # A program behind a resource takes time to start.
        return not self.kind.backing

    def observe(self, declared: Declared) -> ExternalObservation:
        if not declared.name:
            return ABSENT
        if declared.deleting and not self.kind.create:
            return ABSENT
        found = self._find(declared)
        if found is None:
            # A program that still runs is ended before the object is deleted.
            left = (
                declared.deleting and self.backing and self.backing.exists(self._backed(declared))
            )
            return ExternalObservation(exists=bool(left))
        runs = self._runs(declared)
        found = {**found, **runs.overrides}
        state = str(at_path(found, self.kind.state_at) or "") if self.kind.state_at else ""
        differing = [
            name
            for name, path in self.kind.compared.items()
            if (value := at_path(declared.parameters, name)) is not None
            and value != at_path(found, path)
        ]
        return ExternalObservation(
            exists=True,
            up_to_date=not differing and not self.kind.differs(declared, found),
            ready=runs.ready and (not self.kind.ready_states or state in self.kind.ready_states),
            why=runs.why or state or ", ".join(differing),
            late={
                name: value
                for name, path in self.kind.late.items()
                if name not in declared.parameters and (value := at_path(found, path)) is not None
            },
            details=self._details(declared, found),
            at_provider=self._at_provider(declared, found),
        )

    def create(self, declared: Declared) -> str:
        if self.backing:
            # Remains of a resource that was deleted outside ucp: a new one starts empty.
            self.backing.remove(self._backed(declared))
        asked: dict[str, Any] = {}
        for name, path in self.kind.fields.items():
            if (value := at_path(declared.parameters, name)) is not None:
                put_path(asked, path, value)
        asked |= self.kind.more(declared)
        tags = [{"Key": key, "Value": value} for key, value in _tags(declared).items()]
        if self.kind.tags:
            asked["TagSpecifications"] = [{"ResourceType": self.kind.tags, "Tags": tags}]
        if self.kind.tag_list:
            asked[self.kind.tag_list] = tags
        operation = self.kind.create
        if not isinstance(operation, str):
            operation = operation(declared)
            asked = accepted(self.kind.service, operation, asked)
        answer = self._call(declared, operation, asked)
        if not self.kind.id_at:
            return declared.name
        # Hosted zones have a path as id.
        return str(at_path(answer, self.kind.id_at)).rpartition("/")[2]

    def recover(self, declared: Declared) -> str | None:
        if self.kind.named_by_us:
            return declared.name if self._find(declared) is not None else ""
        found: Found | None
        if self.kind.lookup:
            found = self._described(declared, self.kind.lookup)
        elif self.kind.tags:
            owner = zip(OWNER_TAGS, (declared.namespace, declared.object_name), strict=True)
            filters = [{"Name": f"tag:{key}", "Values": [each]} for key, each in owner]
            describe = self.kind.describe
            asked = {"Filters": [*filters, *self.kind.lookup_filters]}
            answer = self._call(declared, describe.operation, asked)
            if len(at_path(answer, describe.at.partition(".0")[0]) or ()) > 1:
                return None
            found = at_path(answer, describe.at)
        else:
            return None
        key = self.kind.id_key or self.kind.id_at.rpartition(".")[2]
        return str(at_path(found, key)).rpartition("/")[2] if found else ""

    def update(self, declared: Declared) -> None:
        if self.kind.changes:
            found = self._find(declared)
            for operation, asked in self.kind.changes(declared, found) if found else ():
                self._call(declared, operation, asked)
        elif self.kind.update:
            self._call(declared, self.kind.update, self.kind.update_ask(declared))

    def delete(self, declared: Declared) -> None:
        with suppress(ResourceNotFound):
            if self.kind.deletion:
                found = self._find(declared)
                for operation, asked in self.kind.deletion(declared, found) if found else ():
                    self._call(declared, operation, asked)
            else:
                self._call(declared, self.kind.delete, self.kind.delete_ask(declared))
        # Only after the cloud agreed: it refuses to delete resources that are in use.
        if self.backing:
            self.backing.remove(self._backed(declared))

    def _at_provider(self, declared: Declared, found: Found) -> Mapping[str, Any]:
        """Content of status.atProvider, including the fields that can be compared with the spec."""
        fields: dict[str, Any] = {"id": declared.name}
        for name, path in (*self.kind.compared.items(), *self.kind.at_provider.items()):
            if (value := at_path(found, path)) is not None:
                put_path(fields, name, value)
        if SIMULATED in found:
            fields[SIMULATED] = found[SIMULATED]
        return fields

    def _runs(self, declared: Declared) -> BackingState:
        if self.backing is None:
            return UNBACKED if self.kind.backing else BackingState(ready=True)
        follow = self.kind.create and not declared.deleting
        query = self.backing.bring_up if follow else self.backing.state
        return query(self._backed(declared))

    def _details(self, declared: Declared, found: Found) -> Mapping[str, str]:
        details = self.kind.details(declared, found)
        simulated = {SIMULATED: str(found[SIMULATED])} if details and SIMULATED in found else {}
        return {**details, **simulated}

    def _backed(self, declared: Declared) -> BackedResource:
        return BackedResource(_region(declared), self.kind.backed(declared), declared.parameters)

    def _find(self, declared: Declared) -> Found | None:
        found = self._described(declared, self.kind.describe)
        if found is None or (
            self.kind.gone_states and at_path(found, self.kind.state_at) in self.kind.gone_states
        ):
            return None
        more: dict[str, Any] = {}
        for each in self.kind.also:
            if not each.only or each.only in declared.parameters:
                more |= self._described(declared, each) or {}
        return {**found, **more} if more else found

    def _described(self, declared: Declared, describe: Describe) -> Found | None:
        try:
            answer = self._call(declared, describe.operation, describe.ask(declared))
        except ResourceNotFound:
            if not self.kind.create:
                raise
            return None
        return describe.found(declared, answer)

    def _call(self, declared: Declared, operation: str, asked: Mapping[str, Any]) -> Answer:
        if not self.gate.is_open():
            raise CloudFailed(f"{operation}: not called: this core's fence is not confirmed")
        return self.account.call(self.kind.service, _region(declared), operation, **asked)


def _region(declared: Declared) -> str:
    return str(declared.parameters.get("region") or "us-east-1")


def _tags(declared: Declared) -> dict[str, str]:
    given = declared.parameters.get("tags") or {}
    owner = zip(OWNER_TAGS, (declared.namespace, declared.object_name), strict=True)
    return {**{key: str(value) for key, value in given.items()}, **dict(owner)}
