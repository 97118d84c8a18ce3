"""What one kind of AWS resource is: operations, fields, ids. The table is kinds/.

Operations and parameters are AWS's (`CreateVpc`, `CidrBlock`), fields those of forProvider.
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
"""A resource as its describing operation has it."""

Call = tuple[str, Parameters]
"""An operation and what it is asked."""

GROUP = "aws.m.upbound.io"


@dataclass(frozen=True)
class Describe:
    """How a resource is looked at: the operation, what it is asked, where the resource stands."""

    operation: str
    ask: Callable[[Declared], Parameters]
    at: str
    """Path in the answer, such as `Vpcs.0`; "" is all of it."""
    matches: Callable[[Declared, Found], bool] | None = None
    """Of a list at that path: which one it is, where the operation can't be asked for one."""
    only: str = ""
    """Asked only where the declaration has this field."""

    def found(self, declared: Declared, answer: Any) -> Found | None:
        """The resource in an answer."""
        there: Any = at_path(answer, self.at)
        if self.matches is None:
            found: Found | None = there
            return found
        return next((each for each in there or () if self.matches(declared, each)), None)


@dataclass(frozen=True)
class AwsKind:
    """One kind. fields: {field of forProvider: parameter of the creation}, both dotted.

    create: "" where an object makes nothing, and only tells of a resource that others make.
    """

    kind: Kind
    service: str
    create: str | Callable[[Declared], str]
    """Where it depends on the declaration, parameters that an operation doesn't take are left out.
    """
    describe: Describe
    fields: Mapping[str, str]
    delete: str = ""
    delete_ask: Callable[[Declared], Parameters] = lambda _: {}
    deletion: Callable[[Declared, Found], Iterable[Call]] | None = None
    """Instead of these two: several calls, or one that depends on what is there."""
    id_at: str = ""
    """Where the creation's answer has the id; "" where the declaration names the resource."""
    id_key: str = ""
    """Where the description has the id; "" is the last part of id_at."""
    tags: str = ""
    """Type of the resource in TagSpecifications; "" where it can't be found by a tag."""
    tag_list: str = ""
    """Parameter that takes a list of tags, of those that have one."""
    lookup: Describe | None = None
    """Finds it without its id, where no tag does."""
    lookup_filters: tuple[Mapping[str, Any], ...] = ()
    """Besides those of the tags."""
    also: tuple[Describe, ...] = ()
    """Further calls that describe it: what stands at their paths is added."""
    more: Callable[[Declared], Parameters] = lambda _: {}
    """Parameters of the creation besides the fields."""
    compared: Mapping[str, str] = field(default_factory=dict)
    """{field: path in what is described}: those whose difference an update can mend."""
    differs: Callable[[Declared, Found], bool] = lambda _declared, _found: False
    """Another difference that an update can mend."""
    update: str = ""
    update_ask: Callable[[Declared], Parameters] = lambda _: {}
    changes: Callable[[Declared, Found], Iterable[Call]] | None = None
    """Instead of these two: several calls, or some that depend on what is there."""
    late: Mapping[str, str] = field(default_factory=dict)
    """{field: path}: what the cloud chooses where the declaration says nothing."""
    state_at: str = ""
    ready_states: tuple[str, ...] = ()
    gone_states: tuple[str, ...] = ()
    details: Callable[[Declared, Found], Mapping[str, str]] = lambda _declared, _found: {}
    at_provider: Mapping[str, str] = field(default_factory=dict)
    """{field of status.atProvider: path}."""
    references: Mapping[str, str] = field(default_factory=dict)
    """{field: kind that `<field>Ref` and `<field>Selector` mean}; lists end with `Ids`. A kind that
    several services have is named as `Instance.rds`.
    """

    backing: str = ""
    """What really runs behind it on this machine; "" for most: nothing."""
    backed: Callable[[Declared], str] = lambda declared: declared.name
    """Name of the resource with the backing."""

    @property
    def named_by_us(self) -> bool:
        """The external name is ours to give."""
        return not self.id_at


def kind_of(group: str, kind: str, plural: str) -> Kind:
    """A kind of the provider's. group: of the service, such as ec2."""
    return Kind(f"{group}.{GROUP}/v1beta1", kind, plural)


def by_name(parameter: str, *, listed: bool = False) -> Callable[[Declared], Parameters]:
    """Asks by the external name."""
    return lambda declared: {parameter: [declared.name] if listed else declared.name}


def fields_of(*names: str, **others: str) -> dict[str, str]:
    """Fields whose parameters are called alike, and the others."""
    return {**{name: name[0].upper() + name[1:] for name in names}, **others}
