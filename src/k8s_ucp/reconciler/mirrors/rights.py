"""Rights of the mirror identity on an app cluster: Secrets or ConfigMaps, in target namespaces.

The Roles also record where copies may be: they are created before the first copy and deleted after
the last one, so that a reconciler without any state knows where to look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from k8s_ucp import names
from k8s_ucp.errors import UcpError
from k8s_ucp.kube import NAMESPACE, ROLE, ROLE_BINDING, Conflict, Kube, KubeError, Object
from k8s_ucp.reconciler.access import service_accounts
from k8s_ucp.reconciler.access.authenticators.base import NoAccess

MOST_NAMESPACES = 1_000
"""Each needs a watch with its own thread, and the app cluster determines their number."""

Fields = dict[str, set[str]]
"""{namespace: kinds} in which copies exist or may exist."""

_PLURALS = {"Secret": "secrets", "ConfigMap": "configmaps"}
_KINDS = {plural: kind for kind, plural in _PLURALS.items()}
_VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]


def known(admin: Kube, desired: Collection[str]) -> Fields:
    """Where the mirror identity has rights now. Raises KubeError.

    desired: namespaces whose rights are corrected afterwards. In the others, a Role of that name
    may be anyone's: if the identity can't watch there, the whole cluster would wait for that watch.
    """
    ours = f"{names.MANAGED_BY}={names.OURS}"
    bindings = admin.list_all(ROLE_BINDING, labels=ours)
    bound = {each["metadata"]["namespace"] for each in bindings if _binds(each)}
    found: Fields = {}
    for role in admin.list_all(ROLE, labels=ours):
        namespace, rules = role["metadata"]["namespace"], role.get("rules") or []
        if role["metadata"]["name"] != names.MIRROR_IDENTITY:
            continue
        if namespace in desired:
            found[namespace] = _kinds(rules)
        elif namespace in bound:
            found[namespace] = _kinds(filter(_allows_watches, rules))
    return found


def grant(admin: Kube, namespace: str, kinds: set[str]) -> None:
    """Create the namespace, if missing, and the rights in it; idempotent.

    Raises KubeError, or NoAccess if a Role of that name isn't ours.
    """
    if admin.find(NAMESPACE, namespace) is None:
        service_accounts.ensure(admin, service_accounts.described(NAMESPACE, namespace))
    service_accounts.ensure(admin, _role(namespace, kinds))
    service_accounts.ensure(admin, _binding(namespace))


def withdraw(admin: Kube, namespace: str, kinds: set[str]) -> None:
    """Reduce the rights to these kinds; the namespace stays. Raises KubeError."""
    role = admin.find(ROLE, names.MIRROR_IDENTITY, namespace)
    if role is None or not service_accounts.is_ours(role):
        return
    if kinds:
        service_accounts.ensure(admin, _role(namespace, kinds))
        return
    for kind in (ROLE_BINDING, ROLE):
        found = admin.find(kind, names.MIRROR_IDENTITY, namespace)
        if found and service_accounts.is_ours(found):
            try:
                admin.delete(kind, names.MIRROR_IDENTITY, namespace, uid=found["metadata"]["uid"])
            except Conflict:
                continue


def grant_all(admin: Kube, desired: Mapping[str, set[str]]) -> tuple[Fields, dict[str, str]]:
    """Add the desired rights to existing ones: (all fields, {namespace: refusal}).

    Raises NoAccess, or KubeError if the cluster doesn't respond.
    """
    if len(desired) > MOST_NAMESPACES:
        raise NoAccess(
            "TooManyNamespaces",
            f"copies are desired in {len(desired)} namespaces of the cluster; at most "
            f"{MOST_NAMESPACES} can be watched",
        )
    fields = _limited(known(admin, desired), desired)
    refused = {}
    for namespace, kinds in desired.items():
        merged = fields.get(namespace, set()) | kinds
        try:
            grant(admin, namespace, merged)
        except KubeError as error:
            if not error.status or error.status >= 500 or error.status in (401, 429):
                raise
            refused[namespace] = error.message
        except UcpError as error:
            refused[namespace] = error.message
        else:
            fields[namespace] = merged
    return fields, refused


def _limited(fields: Fields, desired: Mapping[str, set[str]]) -> Fields:
    """The first namespaces of `fields`, as many as can be watched; desired ones come first.

    The rest follow once rights were withdrawn from these.
    """
    others = sorted(fields.keys() - desired.keys())[: MOST_NAMESPACES - len(desired)]
    return {each: fields[each] for each in [*(fields.keys() & desired.keys()), *others]}


def _binds(binding: Object) -> bool:
    """Whether a RoleBinding gives the mirror identity the Role of that name."""
    (identity,) = _binding(binding["metadata"]["namespace"])["subjects"]
    role = binding.get("roleRef") or {}
    is_bound = identity in (binding.get("subjects") or [])
    return is_bound and (role.get("kind"), role.get("name")) == ("Role", names.MIRROR_IDENTITY)


def _allows_watches(rule: Object) -> bool:
    return {"list", "watch"} <= {*(rule.get("verbs") or [])} and not rule.get("resourceNames")


def _kinds(rules: Iterable[Object]) -> set[str]:
    named = {each for rule in rules for each in rule.get("resources") or []}
    return {_KINDS[each] for each in named if each in _KINDS}


def _role(namespace: str, kinds: set[str]) -> Object:
    resources = sorted(_PLURALS[each] for each in kinds)
    rule = {"apiGroups": [""], "resources": resources, "verbs": _VERBS}
    return service_accounts.described(ROLE, names.MIRROR_IDENTITY, namespace, rules=[rule])


def _binding(namespace: str) -> Object:
    subject = {
        "kind": "ServiceAccount",
        "name": names.MIRROR_IDENTITY,
        "namespace": names.IDENTITY_NAMESPACE,
    }
    return service_accounts.described(
        ROLE_BINDING,
        names.MIRROR_IDENTITY,
        namespace,
        roleRef={"apiGroup": ROLE.group, "kind": "Role", "name": names.MIRROR_IDENTITY},
        subjects=[subject],
    )
