"""function-patch-and-transform for embedded cores; same input, so the same Composition works.

The package itself is an image, which a core without pods can't run. Unsupported features are
reported when they are used: patches between composite and environment, and wildcards in field
paths. Described at https://docs.crossplane.io/latest/guides/function-patch-and-transform/. Pure.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from k8s_ucp.compositions.field_paths import FieldMissing, get, put
from k8s_ucp.compositions.function import (
    CompositionError,
    Desired,
    Object,
    Observed,
    Request,
    Response,
)
from k8s_ucp.compositions.transforms import formatted, text, transformed
from k8s_ucp.names import CONNECTION

NAME = "function-patch-and-transform"
INPUT = ("pt.fn.crossplane.io/v1beta1", "Resources")

Patch = Mapping[str, Any]


class _Waits(Exception):
    """A required field doesn't exist yet."""


@dataclass
class _Scope:
    """What the patches of one template read and write."""

    composite: Object
    observed: Object
    desired: dict[str, Any]
    answer: dict[str, Any]
    """The composite's own fields."""
    environment: dict[str, Any]
    """Values that patches of this run pass to later ones."""


def compose(request: Request) -> Response:
    """Compose the resources. Raises CompositionError with the resource and the patch."""
    head = (request.input.get("apiVersion"), request.input.get("kind"))
    if head != INPUT:
        raise CompositionError(f"input is {head[1]} of {head[0]}, not {INPUT[1]} of {INPUT[0]}")
    if request.input.get("environment"):
        raise CompositionError("patches of the environment itself are not supported on this core")
    sets = {each["name"]: each.get("patches") or () for each in request.input.get("patchSets", ())}
    environment = copy.deepcopy(dict(request.environment))
    found = Response(
        resources=dict(request.desired),
        composite=copy.deepcopy(dict(request.answer)),
        connection=dict(request.connection),
        environment=environment,
    )
    for template in request.input.get("resources") or ():
        name = template["name"]
        observed = request.observed.get(name)
        scope = _Scope(
            request.composite,
            observed.object if observed else {},
            _base(name, template, request),
            found.composite,
            environment,
        )
        if observed:
            _keep_name(scope)
            found.connection |= _connection(template, observed)
        try:
            for number, patch in enumerate(_patches(template, sets)):
                _apply(f"resource {name!r}, patch {number}", patch, scope, new=observed is None)
        except _Waits as reason:
            found.warnings.append(f"not composing {name!r} yet: {reason}")
            found.unready = True
            continue
        ready = observed is not None and _is_ready(template, observed.object)
        found.resources[name] = Desired(scope.desired, ready)
    _add_connection_secret(request, found)
    return found


def _base(name: str, template: Mapping[str, Any], request: Request) -> dict[str, Any]:
    if base := template.get("base"):
        return copy.deepcopy(dict(base))
    if name not in request.desired:
        raise CompositionError(f"resource {name!r} has no base, and no function before made it")
    return copy.deepcopy(dict(request.desired[name].object))


def _keep_name(scope: _Scope) -> None:
    existing = scope.observed.get("metadata") or {}
    kept = {key: existing[key] for key in ("name", "namespace") if key in existing}
    scope.desired.setdefault("metadata", {}).update(kept)


def _patches(template: Mapping[str, Any], sets: Mapping[str, tuple[Patch, ...]]) -> Iterator[Patch]:
    for patch in template.get("patches") or ():
        if patch.get("type") != "PatchSet":
            yield patch
        elif patch.get("patchSetName") in sets:
            yield from sets[patch["patchSetName"]]
        else:
            raise CompositionError(f"there is no patch set {patch.get('patchSetName')!r}")


def _apply(where: str, patch: Patch, scope: _Scope, *, new: bool) -> None:
    kind = patch.get("type", "FromCompositeFieldPath")
    source: Object
    match kind:
        case "FromCompositeFieldPath" | "CombineFromComposite":
            source, target = scope.composite, scope.desired
        case "FromEnvironmentFieldPath" | "CombineFromEnvironment":
            source, target = scope.environment, scope.desired
        case "ToCompositeFieldPath" | "CombineToComposite":
            source, target = scope.observed, scope.answer
        case "ToEnvironmentFieldPath" | "CombineToEnvironment":
            source, target = scope.observed, scope.environment
        case _:
            raise CompositionError(f"{where}: type {kind!r} is not supported on this core")
    policy = patch.get("policy") or {}
    try:
        value = transformed(_value(patch, source), patch.get("transforms") or ())
        path = patch.get("toFieldPath") or patch["fromFieldPath"]
        put(target, path, value, policy.get("toFieldPath", "Replace"))
    except FieldMissing as missing:
        if policy.get("fromFieldPath") == "Required" and new and target is scope.desired:
            raise _Waits(f"it requires {missing}") from None
    except KeyError as missing:
        raise CompositionError(f"{where}: it has no {missing}") from None
    except CompositionError as error:
        raise CompositionError(f"{where}: {error}") from error


def _value(patch: Patch, source: Object) -> Any:
    combine = patch.get("combine")
    if not combine:
        return get(source, patch["fromFieldPath"])
    values = [get(source, each["fromFieldPath"]) for each in combine["variables"]]
    return formatted(combine["string"]["fmt"], values)


def _connection(template: Mapping[str, Any], observed: Observed) -> dict[str, bytes]:
    """Connection details that an existing resource adds to the composite."""
    found: dict[str, bytes] = {}
    for each in template.get("connectionDetails") or ():
        match each.get("type"):
            case "FromValue":
                found[each["name"]] = str(each["value"]).encode()
            case "FromConnectionSecretKey":
                if (value := observed.connection.get(each["fromConnectionSecretKey"])) is not None:
                    found[each["name"]] = value
            case "FromFieldPath":
                try:
                    value = text(get(observed.object, each["fromFieldPath"])).encode()
                except FieldMissing:
                    continue  # It may appear later.
                found[each["name"]] = value
            case other:
                raise CompositionError(f"connection detail of type {other!r} is not supported")
    return found


def _is_ready(template: Mapping[str, Any], observed: Object) -> bool:
    default = {"type": "MatchCondition", "matchCondition": {"type": "Ready", "status": "True"}}
    return all(_passes(each, observed) for each in template.get("readinessChecks") or (default,))


def _passes(check: Mapping[str, Any], observed: Object) -> bool:
    kind = check.get("type")
    if kind == "None":
        return True
    if kind == "MatchCondition":
        wanted = check["matchCondition"]
        conditions = (observed.get("status") or {}).get("conditions") or ()
        return any(
            each.get("type") == wanted["type"] and each.get("status") == wanted["status"]
            for each in conditions
        )
    try:
        value = get(observed, check["fieldPath"])
    except FieldMissing:
        return False
    match kind:
        case "NonEmpty":
            return True
        case "MatchString":
            return bool(value == check["matchString"])
        case "MatchInteger":
            return bool(value == check["matchInteger"])
        case "MatchTrue":
            return value is True
        case "MatchFalse":
            return value is False
    raise CompositionError(f"readiness check of type {kind!r} is not supported")


def _add_connection_secret(request: Request, found: Response) -> None:
    """Compose a Secret: composites of Crossplane v2 have no connection details of their own."""
    composite = request.composite
    spec = composite.get("spec") or {}
    if not found.connection or "crossplane" not in spec:
        return
    metadata = composite["metadata"]
    ref = spec.get("writeConnectionSecretToRef") or request.input.get("writeConnectionSecretToRef")
    if ref and ref.get("patches"):
        raise CompositionError("patches of writeConnectionSecretToRef are not supported")
    ref = ref or {"name": f"{metadata['name']}-connection"}
    namespace = ref.get("namespace") or metadata.get("namespace")
    about: dict[str, Any] = {"name": ref["name"]} | ({"namespace": namespace} if namespace else {})
    if isinstance(spec.get("environment"), str):
        # The label by which a team's mirror finds an environment's connection Secrets.
        about["labels"] = {CONNECTION: spec["environment"]}
    data = {key: base64.b64encode(each).decode() for key, each in sorted(found.connection.items())}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": about,
        "type": "connection.crossplane.io/v1alpha1",
        "data": data,
    }
    found.resources[f"{metadata['name']}-connection-secret"] = Desired(secret, ready=True)
