"""Renders a claim: runs the functions of its Composition in order, without a cluster. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from k8s_ucp.compositions.definitions import Definitions
from k8s_ucp.compositions.function import (
    CompositionError,
    Function,
    Object,
    Observed,
    Request,
    Response,
)
from k8s_ucp.errors import UsageError
from k8s_ucp.names import COMPOSED_PART, COMPOSITE


def render(
    claim: Object,
    definitions: Definitions,
    functions: Mapping[str, Function],
    observed: Mapping[str, Observed] | None = None,
) -> list[dict[str, Any]]:
    """The composed resources, in the Composition's order. Raises UsageError.

    functions: by the names in `functionRef`. observed: existing composed resources.
    """
    composite = definitions.complete(claim)
    if not (composite.get("metadata") or {}).get("name"):
        raise UsageError(f"{composite.get('kind')}: metadata.name is required")
    composition = definitions.composition(composite)
    last = Response()
    for step in composition["spec"].get("pipeline") or ():
        where = f"Composition {composition['metadata']['name']}, step {step['step']}"
        name = step["functionRef"]["name"]
        if name not in functions:
            raise UsageError(
                f"{where}: function {name} can't run here; available: {', '.join(functions)}"
            )
        request = Request(
            composite,
            step.get("input") or {},
            observed or {},
            desired=last.resources,
            environment=last.environment,
            answer=last.composite,
            connection=last.connection,
        )
        try:
            last = functions[name](request)
        except CompositionError as error:
            raise UsageError(f"{where}: {error}") from error
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            # Nothing has validated the step's input; Crossplane shows such an error, too.
            raise UsageError(f"{where}: {type(error).__name__}: {error}") from error
    return [_composed(name, each.object, composite) for name, each in last.resources.items()]


def _composed(name: str, found: Object, composite: Object) -> dict[str, Any]:
    """A composed resource with the metadata that Crossplane adds."""
    head = composite["metadata"]
    given = copy.deepcopy(dict(found))
    metadata = given.pop("metadata", None) or {}
    if not metadata.get("name"):
        metadata["generateName"] = f"{head['name']}-"
    if "namespace" in head:
        metadata["namespace"] = head["namespace"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), COMPOSED_PART: name}
    metadata["labels"] = {**(metadata.get("labels") or {}), COMPOSITE: head["name"]}
    return {
        "apiVersion": given.pop("apiVersion", None),
        "kind": given.pop("kind", None),
        "metadata": metadata,
        **given,
    }
