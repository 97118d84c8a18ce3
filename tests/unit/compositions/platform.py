"""The platform's own kinds, as defined in templates/core/api."""

from __future__ import annotations

from functools import cache
from typing import Any

import crossplane.function.proto.v1.run_function_pb2 as messages

from k8s_ucp import yaml_io
from k8s_ucp.compositions import patch_and_transform, pipeline
from k8s_ucp.compositions.definitions import Definitions
from k8s_ucp.gitops.render.repositories import platform_api
from k8s_ucp.topology import default

FUNCTIONS = {patch_and_transform.NAME: patch_and_transform.compose}


@cache
def definitions() -> Definitions:
    files = platform_api(default("demo", (), ()))
    return Definitions.among(
        each
        for path, text in files.items()
        if not path.endswith("kustomization.yaml")
        for each in yaml_io.load_all(text.decode())
    )


def claim(
    cloud: str = "aws", name: str = "orders", namespace: str = "team-a", **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "k8s-ucp.io/v1alpha1",
        "kind": "Postgres",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "crossplane": {"compositionSelector": {"matchLabels": {"k8s-ucp.io/cloud": cloud}}},
            "environment": "stage",
            "region": "eu-west-3",
            "storageGB": 20,
            **spec,
        },
    }


def machine(cloud: str = "aws", name: str = "build", namespace: str = "team-a") -> dict[str, Any]:
    spec = claim(cloud)["spec"]
    return {
        **claim(cloud, name, namespace),
        "kind": "Compute",
        "spec": {
            "crossplane": spec["crossplane"],
            "size": "large",
            "region": "eu-west-3",
            "environment": "stage",
        },
    }


def composed(of: dict[str, Any]) -> list[dict[str, Any]]:
    return pipeline.render(of, definitions(), FUNCTIONS)


def asked(of: dict[str, Any]) -> Any:
    complete = definitions().complete(of)
    (step,) = definitions().composition(complete)["spec"]["pipeline"]
    request = messages.RunFunctionRequest()
    request.meta.tag = "tag"
    request.observed.composite.resource.update(complete)
    request.input.update(step["input"])
    return request
