"""Definition of one kind of AWS resource: operations, fields, ids. The table is in kinds/.

Operations and parameters have AWS's names (`CreateVpc`, `CidrBlock`), fields those in forProvider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from k8s_ucp.kube import Kind
from k8s_ucp.managed.external import Declared
from k8s_ucp.managed.paths import at_path

Parameters = Mapping[str, Any]
Found = Mapping[str, Any]
"""A resource as returned by its describing operation."""

Call = tuple[str, Parameters]
"""(operation, parameters)"""

GROUP = "aws.m.upbound.io"


@dataclass(frozen=True)
class Describe:
    """How to observe a resource: operation, parameters, and its place in the response."""

    operation: str
    ask: Callable[[Declared], Parameters]
    at: str
    """Path in the response, such as `Vpcs.0`; "" for all of it."""
    matches: Callable[[Declared, Found], bool] | None = None
    """Selects the resource in the list at that path, if the operation can't."""
    only: str = ""
    """Only used if the declaration has this field."""

    def found(self, declared: Declared, answer: Any) -> Found | None:
        """The resource in a response."""
        items: Any = at_path(answer, self.at)
        if self.matches is None:
            found: Found | None = items
            return found
        return next((each for each in items or () if self.matches(declared, each)), None)


@dataclass(frozen=True)
class AwsKind:
    """One kind. fields: {field of forProvider: parameter of the creation}, both dotted.

    create: "" if an object creates nothing, and only describes a resource of another object.
    """

    kind: Kind
    service: str
    create: str | Callable[[Declared], str]
    """If it depends on the declaration, parameters that the operation doesn't accept are left
    out."""
    describe: Describe
    fields: Mapping[str, str]
    delete: str = ""
    delete_ask: Callable[[Declared], Parameters] = lambda _: {}
    deletion: Callable[[Declared, Found], Iterable[Call]] | None = None
    """Instead of the two above: several calls, or one that depends on the observed resource."""
    id_at: str = ""
    """Path of the id in the response of the creation; "" if the declaration names the resource."""
    id_key: str = ""
    """Path of the id in the description; "" for the last part of id_at."""
    tags: str = ""
    """Resource type in TagSpecifications; "" if it can't be found by a tag."""
    tag_list: str = ""
    """Parameter with a list of tags, for operations that have one."""
    lookup: Describe | None = None
    """Finds it without its id, if tags can't."""
    lookup_filters: tuple[Mapping[str, Any], ...] = ()
    """In addition to the tags."""
    also: tuple[Describe, ...] = ()
    """Further calls that describe it: the content at their paths is added."""
    more: Callable[[Declared], Parameters] = lambda _: {}
    """Parameters of the creation in addition to the fields."""
    compared: Mapping[str, str] = field(default_factory=dict)
    """{field: path in the description} of differences that an update can fix."""
    differs: Callable[[Declared, Found], bool] = lambda _declared, _found: False
    """Another difference that an update can fix."""
    update: str = ""
    update_ask: Callable[[Declared], Parameters] = lambda _: {}
    changes: Callable[[Declared, Found], Iterable[Call]] | None = None
    """Instead of the two above: several calls, or ones that depend on the observed resource."""
    late: Mapping[str, str] = field(default_factory=dict)
    """{field: path} of values that the cloud chooses if the declaration doesn't."""
    state_at: str = ""
    ready_states: tuple[str, ...] = ()
    gone_states: tuple[str, ...] = ()
    details: Callable[[Declared, Found], Mapping[str, str]] = lambda _declared, _found: {}
    at_provider: Mapping[str, str] = field(default_factory=dict)
    """{field of status.atProvider: path}"""
    references: Mapping[str, str] = field(default_factory=dict)
    """{field: kind that `<field>Ref` and `<field>Selector` refer to}; fields of lists end with
    `Ids`. A kind that several services have is written like `Instance.rds`."""

    backing: str = ""
    """Program that runs behind it on this machine; "" for most kinds, which have none."""
    backed: Callable[[Declared], str] = lambda declared: declared.name
    """Name of the resource with the program."""

    @property
    def named_by_us(self) -> bool:
        """Whether we choose the external name."""
        return not self.id_at


def kind_of(group: str, kind: str, plural: str) -> Kind:
    """A kind of the provider. group: of the service, such as ec2."""
    return Kind(f"{group}.{GROUP}/v1beta1", kind, plural)


def by_name(parameter: str, *, listed: bool = False) -> Callable[[Declared], Parameters]:
    """Parameters that select the resource by its external name."""
    return lambda declared: {parameter: [declared.name] if listed else declared.name}


def fields_of(*names: str, **others: str) -> dict[str, str]:
    """Fields whose parameters have the same name (capitalized), and the others."""
    return {**{name: name[0].upper() + name[1:] for name in names}, **others}
